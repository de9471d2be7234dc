# SPDX-License-Identifier: Apache-2.0
"""Frequencies: those that were estimated, with their errors, beside the original and released."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate
from pufferfish.plots import style


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
