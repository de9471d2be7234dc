# SPDX-License-Identifier: Apache-2.0
"""Speed of channels, on one thread: seconds of a processor are measured, too."""

import os
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from unittest.mock import patch

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from timing import Given, Row

import pufferfish as pf
from pufferfish.calibration.channel import channel
from pufferfish.calibration.solver import LinearProgram, solve
from pufferfish.loss.proof import prove

EPSILON, RUNS = Fraction(1, 2), 3


def scenario(support: list[Any], secrets: int, **region: str) -> pf.Scenario:
    rng = np.random.default_rng(len(support) * secrets)
    counts = {f"s{k}": rng.integers(1, 1000, len(support)) for k in range(secrets)}
    return pf.Scenario(pf.Prior.from_counts(counts, support=support, **region))


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


def channels(given: Given) -> Iterator[Row]:
    """The channel that keeps most, and levels.

    The whole of it (program, solver, exact repair, proof), as a multiple of HiGHS's own time; and
    for a region of priors, as a multiple of that for one prior.
    """
    whole(scenario([*range(5)], 2))
    few, target = given.pick((10, 20, 50), (10,)), 3
    for secrets, sizes in ((2, given.pick((*few, 100, 200, 400), (10, 20))), (7, few)):
        for size in sizes:
            runs = [whole(scenario([*range(size)], secrets)) for _ in range(RUNS)]
            took, solver = sorted(runs, key=lambda run: run[0] / run[1])[RUNS // 2]
            wanted = target if size in (sizes[-1], 100) else None
            work = f"channel of {secrets} secrets"
            yield Row(work, "ours", took, solver, "times its solver", wanted, size)
            yield Row(work, "HiGHS alone", solver, size=size)
    plain, robust = (
        statistics.median(whole(scenario([*range(30)], 2, **region))[0] for _ in range(RUNS))
        for region in ({}, {"confidence": "0.95"})
    )
    yield Row("30 levels, confidence 0.95", "ours", robust, plain, "times plain", 50)


def best_for_estimates(given: Given) -> Iterator[Row]:
    """The channel that is best for estimates.

    Seconds of one processor from counts to the proved channel, and by how many percent its
    objective may be above the proven bound.
    """
    every = ((5, 2, None), (9, 2, 0.2), (100, 2, 5), (200, 2, 15), (15, 5, 15))
    for levels, secrets, target in given.pick(every, every[:2]):
        start = time.process_time()
        plan = pf.calibrate(scenario([f"v{x}" for x in range(levels)], secrets), EPSILON)
        took = time.process_time() - start
        above = 100 * (1 - plan.objective_bound / plan.objective)
        if target:  # the first warms up
            name = f"{levels} levels, {secrets} secrets"
            yield Row(name, "ours", took, target=target)
            yield Row(name, "above the bound", above, unit="%", target=0.5)
