# SPDX-License-Identifier: Apache-2.0
"""Noise, loss and what they mean: curves over epsilon and the scale, and an attacker's belief."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.proof import privacy_loss
from pufferfish.numbers import show_short
from pufferfish.plans.plan import Plan
from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario

BELIEFS = (0.01, 0.1, 0.5, 0.9)


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
