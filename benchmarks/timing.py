# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: medians of several runs, and the unit of work on large supports."""

import statistics
import time
from collections.abc import Callable

import numpy as np


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median time of several runs, after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def accumulate(size: int) -> float:
    """Return the time of one ``np.logaddexp.accumulate`` over so many doubles."""
    numbers = np.random.default_rng(1).normal(size=size)
    return seconds(lambda: np.logaddexp.accumulate(numbers), 3)


def verdict(measured: float, target: float) -> str:
    """Return a figure beside its target."""
    return f"{measured:8.2f}{target:8.1f}  {'met' if measured <= target else 'NOT MET'}"
