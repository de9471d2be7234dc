# SPDX-License-Identifier: Apache-2.0
"""Speed of the exact noise, as ratios within one run: ``python benchmarks/bench_sampling.py``."""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from pufferfish.sampling import DiscreteLaplaceSampler
from pufferfish.sampling.laplace import _digits_of
from pufferfish.sampling.thresholds import proved_floors

STEP = Fraction(1)
DRAWS = 10**6
THEIR_DRAWS = 50_000


def seconds(work: Callable[[], object], runs: int = 7) -> float:
    """Return the best time of several runs, after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def opendp_laplace(scale: float) -> Callable[[], object]:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=scale)
    zeros = [0] * THEIR_DRAWS
    return lambda: measurement(zeros)


def main() -> None:
    dp.enable_features("contrib")
    generator = np.random.default_rng()
    numpy_time = seconds(lambda: generator.laplace(size=DRAWS)) / DRAWS
    print(f"NumPy's float Laplace: {numpy_time * 1e9:.1f} ns per value")
    print(
        f"{'scale':>8} {'ours, ns':>9} {'/ NumPy':>8} {'target':>7} {'OpenDP /':>9} {'target':>7}"
    )
    for scale in (0.5, 1.0, 10.0, 100.0, 1000.0, 1e6, 1e12, 1e15):
        sampler = DiscreteLaplaceSampler(scale, STEP)
        ours = seconds(lambda draw=sampler.draw: draw(DRAWS)) / DRAWS
        theirs = seconds(opendp_laplace(scale), runs=3) / THEIR_DRAWS
        most = "<= 4" if scale <= 1000 else ""
        least = ">= 100" if scale <= 1000 else ">= 20" if scale == 1e6 else ""
        print(
            f"{scale:8g} {ours * 1e9:9.1f} {ours / numpy_time:8.2f} {most:>7} "
            f"{theirs / ours:9.0f} {least:>7}"
        )
    print("making the tables of a scale, target < 0.1 s:")
    for scale in (5e-324, 1e-6, 0.5, 10.0, 128.0, 1000.0, 1e6, 1e12, 1e15, 2.0**57):
        proved_floors.cache_clear()
        start = time.perf_counter()
        _digits_of.__wrapped__(scale, STEP)
        print(f"{scale:12g} {time.perf_counter() - start:8.4f} s")


if __name__ == "__main__":
    main()
