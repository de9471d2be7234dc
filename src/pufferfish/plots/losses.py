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

_POINTS = 60
#: Scales on both sides of that of the plan.
_BELOW, _ABOVE = 8.0, 3.0
BELIEFS = (0.01, 0.1, 0.5, 0.9)


def noise(plans: Iterable[Plan]) -> Any:
    """Draw the scale of noise against epsilon, a line for each mechanism.

    Parameters
    ----------
    plans : iterable of Plan
        Plans that add noise, of any mechanisms and epsilons.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for plan in plans:
        if plan.scale is not None:
            lines.setdefault(plan.mechanism, []).append((plan.epsilon, plan.scale))
    if not lines:
        raise InputError("there is no plan that adds noise")
    with style.style():
        figure, axes = style.new("Noise that each mechanism needs")
        draw_noise(axes, lines)
    return figure


def draw_noise(axes: Any, lines: dict[str, list[tuple[float, float]]]) -> None:
    """Draw (epsilon, scale) of each mechanism; scales of 0 lie on the axis."""
    positive = [scale for line in lines.values() for _, scale in line if scale]
    ends = []
    for k, (name, line) in enumerate(lines.items()):
        kind, line = k % len(style.COLOURS), sorted(line)
        axes.plot(
            *zip(*line, strict=True), label=name, color=style.COLOURS[kind],
            linestyle=style.LINES[kind], marker=style.MARKS[kind], markersize=4,
        )  # fmt: skip
        ends.append((line[-1][1], name, style.COLOURS[kind]))
    if positive:
        axes.set_yscale("symlog", linthresh=min(positive) / 2)
        axes.set_ylim(0, 1.5 * max(positive))
        axes.yaxis.set_major_formatter("{x:g}")
    style.label_ends(axes, ends)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("scale of the noise")


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
    step = float(known.lattice.step)
    width = step * int(known.lattice.index[-1])
    middle = plan.scale or max(width, step) / 8
    scales = np.linspace(middle / _BELOW, middle * _ABOVE, _POINTS).tolist()
    losses = [privacy_loss(known, scale) for scale in scales]
    own = plan.epsilon_exact if plan.noisy is None else plan.noisy.left(plan.epsilon_exact)
    with style.style():
        figure, axes = style.new("Loss against noise")
        axes.plot(scales, losses, color=style.COLOURS[0])
        axes.axhline(float(own), color=style.COLOURS[1], linestyle="--")
        mark = (plan.scale, privacy_loss(known, plan.scale))
        axes.plot(*mark, "o", color=style.INK, clip_on=False)
        text = f"the plan: scale {plan.scale:.4g}"
        axes.annotate(text, mark, (6, 6), textcoords="offset points")
        axes.set_xlim(0, scales[-1])
        axes.set_ylim(0, max(3 * float(own), min(losses)))
        ends = [(losses[-1], "loss under\nthe prior", style.COLOURS[0]),
                (float(own), f"epsilon {show_short(own)}", style.COLOURS[1])]  # fmt: skip
        style.label_ends(axes, ends)
        axes.set_xlabel("scale of the noise")
        axes.set_ylabel("privacy loss")
    return figure


def moved(belief: float, loss: float) -> tuple[float, float]:
    """Return the least and the largest belief after outputs that lose so much."""
    odds = belief / (1 - belief)
    low, high = (odds * math.exp(sign * min(loss, 700)) for sign in (-1, 1))
    return low / (1 + low), high / (1 + high)


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
    if not all(0 < each < 1 for each in beliefs):
        raise InputError("a belief must be above 0 and below 1")
    witness = plan.certificate.witness
    first, second = map(style.named, witness.pair if witness else plan.pairs[0])
    ends = [moved(each, plan.loss) for each in beliefs]
    with style.style():
        figure, axes = style.new(f"Belief in {first} rather than {second}", height=2.8)
        places = range(len(beliefs))
        low, high = zip(*ends, strict=True)
        axes.hlines(places, low, high, color=style.COLOURS[0], linewidth=5, alpha=0.6,
                    label="after the worst outputs")  # fmt: skip
        axes.plot(beliefs, places, "o", color=style.INK, label="before")
        for place, (start, end) in enumerate(ends):
            text = f"{100 * start:.3g} % to {100 * end:.3g} %"
            axes.annotate(text, (end, place), (6, 7), textcoords="offset points", fontsize="small")
        axes.set_yticks(places, [f"{100 * each:.3g} %" for each in beliefs])
        axes.set_ylim(-0.5, len(beliefs) - 0.3)
        axes.set_xlim(0, 1.25)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_ylabel("before")
        axes.set_xlabel("probability of this secret")
        style.legend(figure, axes)
    return figure
