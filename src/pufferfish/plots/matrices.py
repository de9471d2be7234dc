# SPDX-License-Identifier: Apache-2.0
"""What goes where: the channel as a heat map, and the transport plan of a pair of secrets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferfish.calibration.coupling import comonotone
from pufferfish.errors import InputError, listed_pairs
from pufferfish.numbers import show
from pufferfish.plans.plan import Plan
from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario

#: Area of the mark for all of the mass, and of the smallest mark, in square points.
_LARGEST, _SMALLEST = 900.0, 4.0


def channel(plan: Plan) -> Any:
    """Draw the channel of a plan: for each value the chance of each output.

    Parameters
    ----------
    plan : Plan
        Of the mechanism ``channel``.
    """
    if plan.channel is None:
        raise InputError(f"the plan adds noise (mechanism {plan.mechanism}): it has no channel")
    inputs, outputs = map(style.names_of, (plan.channel.inputs, plan.channel.outputs))
    width = min(9.0, 3.6 + 0.16 * len(outputs))
    with style.style():
        figure, axes = style.new(
            "Chance of each output, by value",
            width=width,
            height=min(7.0, 2.4 + 0.13 * len(inputs)),
        )
        image = axes.imshow(plan.channel.matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto")
        style.name_ticks(axes.yaxis, inputs)
        style.name_ticks(axes.xaxis, outputs)
        axes.tick_params(axis="x", labelrotation=90)
        axes.set_ylabel("value")
        axes.set_xlabel("published" if plan.labels is None else "published set")
        figure.colorbar(image, ax=axes, label="chance")
    return figure


def transport(scenario: Scenario | Prior, pair: Sequence[str] | None = None) -> Any:
    """Draw how the mass of one secret is moved to that of the other: the comonotone coupling.

    Each mark is mass at x that goes to x', in proportion to its area. The farthest distance decides
    ``wasserstein``, all of them ``relaxed`` (theory, section 3).

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column of numbers or ordered levels; of several adversaries the first.
    pair : (str, str), optional
        One of the pairs; by default the one whose mass moves farthest.
    """
    known = as_scenario(scenario)
    own = {frozenset(each): k for k, each in enumerate(known.pairs)}
    couplings = [comonotone(view) for _, view in zip(known.pairs, known.views(), strict=False)]
    at = max(range(len(couplings)), key=lambda k: couplings[k].largest_distance)
    if pair is not None:
        if frozenset(pair) not in own:
            raise InputError(f"no such pair; the pairs are {listed_pairs(known.pairs)}")
        at = own[frozenset(pair)]
    found, (first, second) = couplings[at], map(style.named, known.pairs[at])
    index, mass = found.view.index, found.mass.astype(np.float64) / found.total
    x, x_prime = index[found.first], index[found.second]
    farthest = found.largest_distance
    step, origin = known.lattice.step, known.lattice.origin
    with style.style():
        figure, axes = style.new(f"Moving {first} to {second}", height=4.4, width=4.8)
        ends = [0, int(known.lattice.index[-1])]
        axes.plot(ends, ends, color=style.INK, linewidth=0.8, label="stays")
        label = f"farthest: {show(farthest * step)}"
        for sign in (1, -1):
            shifted = [end + sign * farthest for end in ends]
            axes.plot(ends, shifted, ":", color=style.INK, linewidth=0.8, label=label)
            label = "_"  # once
        area = np.maximum(_SMALLEST, _LARGEST * mass)
        axes.scatter(x, x_prime, s=area, color=style.COLOURS[0], alpha=0.7, label="mass")
        if known.support.size == ends[1] + 1:
            names = style.names_of(known.support)
            style.name_ticks(axes.xaxis, names)
            style.name_ticks(axes.yaxis, names)
        else:
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda k, _: f"{float(step) * (k + origin):g}")
        axes.set_xlim(ends[0] - 0.5, ends[1] + 0.5)
        axes.set_ylim(ends[0] - 0.5, ends[1] + 0.5)
        axes.set_xlabel(f"value with {first}")
        axes.set_ylabel(f"value with {second}")
        style.legend(figure, axes, markerscale=0.3)
    return figure
