# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: rows of the report, medians of several runs, peers, a unit of work."""

import importlib
import math
import re
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One measurement. It is a ratio where there is a base, and a point of a plot with a size."""

    work: str  # one table and one plot for each
    way: str  # one line of them for each
    took: float | None  # seconds, if no unit of its own; None: left out
    base: float | None = None  # seconds of what it is measured against
    unit: str = "s"
    target: float | None = None
    size: float | None = None
    note: str = ""  # why it is left out, or not judged

    @property
    def name(self) -> str:
        return self.work if self.way == "ours" else f"{self.work}: {self.way}"

    @property
    def measured(self) -> float | None:
        return self.took / self.base if self.took is not None and self.base else self.took

    @property
    def figure(self) -> str:
        if self.unit == "s" or self.measured is None:
            return shown(self.measured)
        return f"{digits(self.measured)} {self.unit}"

    @property
    def verdict(self) -> str:
        if self.note or self.measured is None or self.target is None:
            return self.note
        return "met" if self.measured <= self.target else "NOT MET"

    def __str__(self) -> str:
        target = "" if self.target is None else f"at most {self.target:.3g}: "
        size = "" if self.size is None else digits(self.size, 12)
        return f"{self.name:48}{size:>12}  {self.figure:28}{target}{self.verdict}"


def shown(seconds: float | None) -> str:
    """Return a time in s, ms, µs or ns."""
    if seconds is None:
        return "–"
    step = min(max(math.ceil(-math.log10(seconds) / 3), 0), 3)
    return f"{digits(seconds * 1000**step)} {('s', 'ms', 'µs', 'ns')[step]}"


def digits(figure: float, many: int = 3) -> str:
    """Return a figure with so many digits, and without an exponent."""
    return f"{float(f'{figure:.{many}g}'):,.12g}"


class Given(NamedTuple):
    """What was asked for: small sizes or the usual ones, and how many rows tables have."""

    quick: bool = False
    rows: tuple[int, ...] = (10**5, 10**6, 10**7)

    def pick(self, usual: Any, small: Any) -> Any:
        return small if self.quick else usual


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median time of several runs, after one that does not count."""
    return in_turn({"": work}, runs)[""]


def in_turn(ways: Mapping[str, Callable[[], Any]], runs: int = 5) -> dict[str, float]:
    """Return the median time of each way, run one after another, over and over.

    The first round does not count. Several ways have to come to one number, up to 1e-9.
    """
    results = {way: run() for way, run in ways.items()}
    first = next(iter(results.values()))
    if len(ways) > 1 and not all(math.isclose(each, first) for each in results.values()):
        raise SystemExit(f"the ways differ: {results}")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            times[way].append(time.perf_counter() - start)
    return {way: statistics.median(own) for way, own in times.items()}


def accumulate(size: int) -> float:
    """Return the time of one ``np.logaddexp.accumulate`` over so many doubles."""
    import numpy as np  # not at the top: some benchmarks set its threads first, or count memory

    numbers = np.random.default_rng(1).normal(size=size)
    return seconds(lambda: np.logaddexp.accumulate(numbers), 3)


def peers(work: str, **modules: str) -> tuple[dict[str, Any], list[Row]]:
    """Import peers by name; return those that are there, and rows that say what the others lack."""
    there, absent = {}, []
    for name, module in modules.items():
        try:
            there[name] = importlib.import_module(module)
        except ImportError as error:
            reason = re.sub(r" \(.*", "", str(error))  # without the path of the module
            absent.append(Row(work, name, None, note=f"left out: {reason}"))
    return there, absent
