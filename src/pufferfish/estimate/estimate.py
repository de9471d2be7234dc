# SPDX-License-Identifier: Apache-2.0
"""Estimate: frequencies, mean and variance of the original column, each with a standard error."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """An estimate with its standard error; the interval covers 95 % of all releases."""

    estimate: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Frequency(Figure):
    """The frequency of the values ``labels`` together; mostly it is one value."""

    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """Estimates of the original column from a released one."""

    rows: int
    entries: tuple[Frequency, ...]
    not_estimable: tuple[str, ...]
    mean: Figure | None
    variance: Figure | None
    notes: tuple[str, ...] = ()

    @property
    def frequencies(self) -> Mapping[str, float]:
        """The estimated frequencies by value."""
        return {e.labels[0]: e.estimate for e in self.entries if len(e.labels) == 1}

    def __iter__(self) -> Iterator[Frequency]:
        return iter(self.entries)
