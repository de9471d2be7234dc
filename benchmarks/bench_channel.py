# SPDX-License-Identifier: Apache-2.0
"""Speed of the optimal channel, against its solver: ``python benchmarks/bench_channel.py``.

The whole of it (program, solver, exact repair, certificate) against the time inside HiGHS.
"""

import statistics
import time

import highspy
import numpy as np
from timing import verdict

import pufferfish as pf

RUNS = 3


class Stopwatch:
    """Adds up the time that HiGHS itself takes."""

    def __init__(self) -> None:
        self.took = 0.0
        run = highspy.Highs.run

        def timed(solver: highspy.Highs) -> object:
            start = time.perf_counter()
            status = run(solver)
            self.took += time.perf_counter() - start
            return status

        highspy.Highs.run = timed


def scenario(levels: int, secrets: int, **region: str) -> pf.Scenario:
    rng = np.random.default_rng(levels * secrets)
    counts = {f"s{k}": rng.integers(1, 1000, levels) for k in range(secrets)}
    return pf.Scenario(pf.Prior.from_counts(counts, support=range(levels), **region))


def whole(of: pf.Scenario) -> float:
    start = time.perf_counter()
    pf.calibrate(of, "1/2", "channel")
    return time.perf_counter() - start


def main() -> None:
    clock = Stopwatch()
    whole(scenario(5, 2))
    for levels, secrets in ((100, 2), (50, 7), (400, 2)):
        ratios = []
        for _ in range(RUNS):
            clock.took = 0.0
            took = whole(scenario(levels, secrets))
            ratios.append(took / clock.took)
        name = f"{levels} levels, {secrets} secrets: times its solver"
        print(f"{name:45}{verdict(statistics.median(ratios), 3)}", flush=True)
    plain = statistics.median(whole(scenario(30, 2)) for _ in range(RUNS))
    robust = statistics.median(whole(scenario(30, 2, confidence="0.95")) for _ in range(RUNS))
    print(f"{'30 levels, confidence 0.95: times plain':45}{verdict(robust / plain, 50)}")


if __name__ == "__main__":
    main()
