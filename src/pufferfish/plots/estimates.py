# SPDX-License-Identifier: Apache-2.0
"""Frequencies: those that were estimated, with their errors, beside the original and released."""

from collections.abc import Mapping
from typing import Any

from pufferfish.errors import InputError
from pufferfish.estimate.estimate import Estimate
from pufferfish.plots import style


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
    figures = dict(estimate.bins or estimate.frequencies)
    if not figures:
        raise InputError("no frequency can be estimated from this release")
    names = list(figures)
    with style.style():
        figure, axes = style.new("Frequencies, with 95 % intervals")
        if original is not None:
            shares = _shares(original, names)
            axes.bar(
                range(len(names)), shares, 0.7, color="none", edgecolor=style.INK, label="original"
            )
        if released is not None:
            shares = _shares(released, names)
            axes.plot(range(len(names)), shares, style.MARKS[1], fillstyle="none",
                      color=style.COLOURS[1], label="released")  # fmt: skip
        values = [own.estimate for own in figures.values()]
        ends = [own.interval for own in figures.values()]
        errors = [[v - low for v, (low, _) in zip(values, ends, strict=True)],
                  [high - v for v, (_, high) in zip(values, ends, strict=True)]]  # fmt: skip
        axes.errorbar(range(len(names)), values, errors, fmt=style.MARKS[0], capsize=3,
                      color=style.COLOURS[0], label="estimated")  # fmt: skip
        axes.axhline(0, color=style.INK, linewidth=0.6)
        style.name_ticks(axes.xaxis, names)
        axes.set_ylabel("share of rows")
        style.legend(figure, axes)
    return figure


def _shares(given: Mapping[Any, float], names: list[str]) -> list[float]:
    """Return shares in the order of names; what is not named is part of the whole."""
    by_name = {str(name): float(share) for name, share in given.items()}
    total = sum(by_name.values())
    if total <= 0:
        raise InputError("frequencies must not all be 0")
    return [by_name.get(name, 0.0) / total for name in names]
