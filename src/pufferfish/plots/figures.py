# SPDX-License-Identifier: Apache-2.0
"""The plots: P(X|S), estimated frequencies, channel, transport plan, noise, loss, and beliefs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.ticker import MaxNLocator

from pufferfish.calibration.coupling import comonotone
from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate
from pufferfish.loss.proof import privacy_loss
from pufferfish.numbers import show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.support import Levels

BELIEFS = (0.01, 0.1, 0.5, 0.9)
#: Area of the mark for all of the mass, and of the smallest mark, in square points.
_LARGEST, _SMALLEST = 900.0, 4.0
#: More marks than these are drawn as pixels: each takes 700 bytes of a page.
_MOST_MARKS = 500


@style.style()
def distributions(scenario: Scenario | Prior) -> Any:
    """Draw P(X|S), the frequencies of the values with each protected secret.

    Each secret has a panel; the line in all of them is the mean of the secrets.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column; of several adversaries the first.
    """
    known = as_scenario(scenario)
    prior, support, secrets = known.priors[0], known.support, known.protected
    shares = prior.probabilities[[prior.row(secret) for secret in secrets]]
    figure, panels = style.new(
        "Share of each value, by secret", height=1.2 + 0.8 * len(secrets),
        nrows=len(secrets), sharex=True, sharey=True,
    )  # fmt: skip
    sides, mean = np.arange(support.size + 1) - 0.5, shares.mean(axis=0)
    # All bars, and the gaps as bars of 0, are one path: a picture of many values stays small.
    edges = np.add.outer(sides[:-1], (0.1, 0.9)).ravel()
    for axes, secret, share in zip(panels, secrets, shares, strict=True):
        heights = np.insert(share, range(1, support.size), 0)
        axes.stairs(heights, edges, fill=True, color=style.COLOURS[0], snap=False)
        axes.stairs(mean, sides, baseline=None, color=style.INK, linewidth=0.8,
                    label="mean of the secrets")  # fmt: skip
        axes.annotate(style.named(secret), (1, 1), xycoords="axes fraction", ha="right", va="top")
    column = style.named(known.product.columns[0] or "value")
    axes.set(ylim=(0, 1.3 * shares.max()), xlabel=column)
    style.name_ticks(axes.xaxis, [support.name(k) for k in range(support.size)])
    style.legend(figure, axes)
    return figure


@style.style()
def frequencies(
    estimate: Estimate, original: Mapping[Any, float] | None = None,
    released: Mapping[Any, float] | None = None,
) -> Any:  # fmt: skip
    """Draw estimated frequencies with their 95 % intervals.

    Where neighbouring values were taken together, the shares of these bins are drawn.

    Parameters
    ----------
    estimate : Estimate
        What ``Plan.estimate`` returned.
    original, released : mapping of value to share or count, optional
        The frequencies before and after the release, scaled to sum 1; the original ones are
        private.
    """
    drawn = dict(estimate.bins or estimate.frequencies)
    if not drawn:
        raise InputError("no frequency can be estimated from this release")
    names, places = list(drawn), range(len(drawn))
    figure, axes = style.new("Frequencies, with 95 % intervals")
    if original is not None:
        axes.bar(places, _shares(original, names), 0.7, color="none", edgecolor=style.INK,
                 label="original")  # fmt: skip
    if released is not None:
        axes.plot(places, _shares(released, names), style.MARKS[1], fillstyle="none",
                  color=style.COLOURS[1], label="released")  # fmt: skip
    values = np.array([own.estimate for own in drawn.values()])
    ends = np.array([own.interval for own in drawn.values()])
    axes.errorbar(places, values, abs(ends.T - values), fmt=style.MARKS[0], capsize=3,
                  color=style.COLOURS[0], label="estimated")  # fmt: skip
    axes.axhline(0, color=style.INK, linewidth=0.6)
    style.name_ticks(axes.xaxis, names)
    axes.set_ylabel("share of rows")
    style.legend(figure, axes)
    return figure


def _shares(given: Mapping[Any, float], names: Sequence[str]) -> list[float]:
    """Return shares in the order of names; what is not named is part of the whole."""
    by_name = {str(name): float(share) for name, share in given.items()}
    shares = [by_name.get(name, 0.0) for name in names]
    if sum(shares) <= 0:
        raise InputError(f"no frequency above 0 was given of {listed(names)}")
    return [share / sum(by_name.values()) for share in shares]


@style.style()
def channel(plan: Plan) -> Any:
    """Draw the channel of a plan: for each value the chance of each output.

    Parameters
    ----------
    plan : Plan
        Of the mechanism ``channel``.
    """
    if plan.channel is None:
        raise InputError(f"the plan adds noise (mechanism {plan.mechanism}): it has no channel")
    own = plan.channel.inputs, plan.channel.outputs
    inputs, outputs = ([support.name(k) for k in range(support.size)] for support in own)
    figure, axes = style.new(
        "Chance of each output, by value", width=min(7.5, 3.6 + 0.16 * len(outputs)),
        height=min(5.5, 1.8 + 0.15 * len(inputs)),
    )  # fmt: skip
    norm = PowerNorm(0.5, 0, 1)  # shows a chance of 1 in 100
    image = axes.imshow(plan.channel.matrix, cmap="binary", norm=norm, aspect="auto")
    style.name_ticks(axes.yaxis, inputs)
    style.name_ticks(axes.xaxis, outputs, room=0.45)
    axes.set(ylabel="value", xlabel="published" if plan.labels is None else "published set")
    figure.colorbar(image, ax=axes, label="chance")
    return figure


@style.style()
def transport(scenario: Scenario | Prior) -> Any:
    """Draw how the mass of one secret is moved to that of the other: the comonotone coupling.

    Each mark is mass at x that goes to x', in proportion to its area. The farthest distance decides
    ``wasserstein``, all of them ``relaxed`` (theory, section 3). Of several pairs the one is drawn
    whose mass moves farthest.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column of numbers or ordered levels; of several adversaries the first.
    """
    known = as_scenario(scenario)
    couplings = zip(known.pairs, map(comonotone, known.views()), strict=False)
    pair, found = max(couplings, key=lambda own: own[1].largest_distance)
    first, second = map(style.named, pair)
    mass = found.mass.astype(np.float64) / found.total
    lattice, farthest = known.lattice, found.largest_distance
    figure, axes = style.new(f"Moving {first}\nto {second}", height=4.4)
    names = "stays", f"farthest: {show(farthest * lattice.step)}", "_"  # once
    for shift, line, label in zip((0, farthest, -farthest), ("-", "--", "--"), names, strict=True):
        axes.axline((0, shift), slope=1, color=style.INK, linewidth=0.8, linestyle=line,
                    label=label)  # fmt: skip
    axes.scatter(
        found.view.index[found.first], found.view.index[found.second],
        s=np.maximum(_SMALLEST, _LARGEST * mass), color=style.COLOURS[0], label="mass",
        clip_on=False, rasterized=len(mass) > _MOST_MARKS,
    )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(known.support, Levels):
            style.name_ticks(axis, known.support.names)
        else:
            axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
            axis.set_major_formatter(
                lambda k, _: show_short(lattice.step * (lattice.origin + int(k)))
            )
    ends = -0.5, int(lattice.index[-1]) + 0.5
    axes.set(xlim=ends, ylim=ends, xlabel=f"value with {first}", ylabel=f"value with {second}")
    style.legend(figure, axes, markerscale=0.3)
    return figure


@style.style()
def noise(plans: Iterable[Plan]) -> Any:
    """Draw the scale of noise against epsilon, a line for each mechanism.

    Parameters
    ----------
    plans : iterable of Plan
        Plans that add noise, of any mechanisms and epsilons.
    """
    points = [(own.mechanism, own.epsilon, own.scale) for own in plans if own.scale is not None]
    if not points:
        raise InputError("there is no plan that adds noise")
    figure, axes = style.new("Noise that each mechanism needs")
    draw_noise(axes, points)
    return figure


def draw_noise(axes: Any, points: Sequence[tuple[str, float, float]]) -> None:
    """Draw (mechanism, epsilon, scale), a line for each mechanism; scales of 0 lie on the axis."""
    ends = []
    for k, name in enumerate(dict.fromkeys(name for name, *_ in points)):
        line = sorted(own for mechanism, *own in points if mechanism == name)
        axes.plot(*zip(*line, strict=True), label=name, color=style.COLOURS[k],
                  linestyle=style.LINES[k], marker=style.MARKS[k])  # fmt: skip
        ends.append((line[-1][1], name, style.COLOURS[k]))
    positive = [scale for *_, scale in points if scale]
    if positive:
        axes.set_yscale("symlog", linthresh=min(positive) / 2)
        axes.set_ylim(0, 1.5 * max(positive))
        axes.yaxis.set_major_formatter("{x:g}")
    style.label_ends(axes, ends)
    axes.set(xlabel="epsilon", ylabel="scale of the noise")


@style.style()
def loss(scenario: Scenario | Prior, plan: Plan) -> Any:
    """Draw the privacy loss against the scale of noise, with the epsilon and scale of a plan.

    The loss is that under the prior itself, also where the plan holds for a region around it.

    Parameters
    ----------
    scenario : Scenario or Prior
        What the plan was computed from.
    plan : Plan
        It adds noise.
    """
    if plan.scale is None:
        raise InputError("the plan has a channel: no scale of noise decides its loss")
    known = as_scenario(scenario, plan.pairs)
    known = known.with_rules([None] * len(known.priors))
    middle = plan.scale or float(known.lattice.step) * max(int(known.lattice.index[-1]), 1) / 8
    scales = np.linspace(middle / 8, 3 * middle, 60).tolist()
    losses = [privacy_loss(known, scale) for scale in scales]
    own = plan.epsilon_exact if plan.noisy is None else plan.noisy.left(plan.epsilon_exact)
    figure, axes = style.new("Loss against noise")
    axes.plot(scales, losses, color=style.COLOURS[0])
    axes.axhline(float(own), color=style.COLOURS[1], linestyle="--")
    mark = (plan.scale, privacy_loss(known, plan.scale))
    axes.plot(*mark, "o", color=style.INK, clip_on=False)
    axes.annotate(f"the plan: scale {plan.scale:.4g}", mark, (6, 6), textcoords="offset points")
    axes.set(xlim=(0, scales[-1]), ylim=(0, max(3 * float(own), min(losses))),
             xlabel="scale of the noise", ylabel="privacy loss")  # fmt: skip
    ends = [(losses[-1], "loss under\nthe prior", style.COLOURS[0]),
            (float(own), f"epsilon {show_short(own)}", style.COLOURS[1])]  # fmt: skip
    style.label_ends(axes, ends)
    return figure


def moved(belief: float, loss: float) -> tuple[float, float]:
    """Return the least and the largest belief after outputs that lose so much."""
    odds = belief / (1 - belief)
    low, high = (odds * math.exp(sign * min(loss, 700)) for sign in (-1, 1))
    return low / (1 + low), 1 / (1 + 1 / high)


@style.style()
def belief(plan: Plan, beliefs: Sequence[float] = BELIEFS) -> Any:
    """Draw what an attacker believes of a secret before and after the worst outputs.

    Somebody holds one secret of a pair, with some probability, rather than the other. No output of
    the plan moves this probability farther than the bars reach.

    Parameters
    ----------
    plan : Plan
        Its certified loss is used.
    beliefs : sequence of float
        Probabilities before, each above 0 and below 1.
    """
    if not 0 < min(beliefs, default=0) <= max(beliefs) < 1:
        raise InputError("a belief must be above 0 and below 1")
    witness = plan.certificate.witness
    first, second = map(style.named, witness.pair if witness else plan.pairs[0])
    ends, places = [moved(each, plan.loss) for each in beliefs], range(len(beliefs))
    title = f"Belief in {first}\nrather than {second}"
    figure, axes = style.new(title, height=1.3 + 0.25 * len(ends))
    axes.hlines(places, *zip(*ends, strict=True), color=style.COLOURS[0], linewidth=5,
                label="after the worst outputs")  # fmt: skip
    axes.plot(beliefs, places, "|", color=style.INK, markersize=12, label="before")
    for place, (start, end) in enumerate(ends):
        text = f"{100 * start:.3g} % to {100 * end:.3g} %"
        axes.annotate(text, (1.02, place), xycoords=axes.get_yaxis_transform(), va="center")
    axes.set_yticks(places, [f"{100 * each:.3g} %" for each in beliefs])
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    axes.set(xlim=(0, 1), ylim=(-0.5, len(beliefs) - 0.5),
             xlabel="probability of this secret", ylabel="before")  # fmt: skip
    style.legend(figure, axes)
    return figure
