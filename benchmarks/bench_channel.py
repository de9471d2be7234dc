# SPDX-License-Identifier: Apache-2.0
"""Speed of the optimal channel, against its solver: ``python benchmarks/bench_channel.py``.

The whole of it (program, solver, exact repair, certificate) against the time of the solver.
"""

import statistics
import time
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from timing import verdict

import pufferfish as pf
from pufferfish.calibration.channel import channel
from pufferfish.calibration.solver import LinearProgram, solve
from pufferfish.loss.proof import prove

EPSILON = Fraction(1, 2)
RUNS = 3


def scenario(levels: int, secrets: int, **region: str) -> pf.Scenario:
    rng = np.random.default_rng(levels * secrets)
    counts = {f"s{k}": rng.integers(1, 1000, levels) for k in range(secrets)}
    return pf.Scenario(pf.Prior.from_counts(counts, support=range(levels), **region))


def whole(of: pf.Scenario) -> tuple[float, float]:
    """Return the time of everything, and that of the solver alone."""
    solving: list[float] = []

    def timed(program: LinearProgram) -> Any:
        begin = time.perf_counter()
        optimum = solve(program)
        solving.append(time.perf_counter() - begin)
        return optimum

    start = time.perf_counter()
    with patch("pufferfish.calibration.channel.solve", timed):
        solution = channel(of, EPSILON)
    if not prove(of, {0: (solution.mechanism,)}, EPSILON).holds:
        raise SystemExit("the channel is not private")
    return time.perf_counter() - start, sum(solving)


def median(of: pf.Scenario) -> float:
    return statistics.median(whole(of)[0] for _ in range(RUNS))


def main() -> None:
    whole(scenario(5, 2))
    for levels, secrets in ((100, 2), (50, 7), (400, 2)):
        ratios = []
        for _ in range(RUNS):
            took, solver = whole(scenario(levels, secrets))
            ratios.append(took / solver)
        name = f"{levels} levels, {secrets} secrets: times its solver"
        print(f"{name:45}{verdict(statistics.median(ratios), 3)}", flush=True)
    plain, robust = median(scenario(30, 2)), median(scenario(30, 2, confidence="0.95"))
    print(f"{'30 levels, confidence 0.95: times plain':45}{verdict(robust / plain, 50)}")


if __name__ == "__main__":
    main()
