# SPDX-License-Identifier: Apache-2.0
"""What goes where: the channel as a heat map, and the transport plan of a pair of secrets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.ticker import MaxNLocator

from pufferfish.calibration.coupling import comonotone
from pufferfish.errors import InputError, listed_pairs
from pufferfish.numbers import show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.support import Levels

#: Area of the mark for all of the mass, and of the smallest mark, in square points.
_LARGEST, _SMALLEST = 900.0, 4.0
#: More marks than these are drawn as pixels: each takes 700 bytes of a page.
_MOST_MARKS = 500


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
    couplings = {
        frozenset(own): (own, comonotone(view))
        for own, view in zip(known.pairs, known.views(), strict=False)
    }
    chosen = frozenset(pair or max(couplings, key=lambda own: couplings[own][1].largest_distance))
    if chosen not in couplings:
        raise InputError(f"no such pair; the pairs are {listed_pairs(known.pairs)}")
    (first, second), found = couplings[chosen]
    first, second = style.named(first), style.named(second)
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
