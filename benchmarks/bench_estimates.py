# SPDX-License-Identifier: Apache-2.0
"""Speed of the channel that is best for estimates: ``python benchmarks/bench_estimates.py``.

Seconds of one processor, from counts to the proved channel, and by how many percent its objective
may be above the proven bound.
"""

import os
import time
from fractions import Fraction

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from timing import verdict

import pufferfish as pf

EPSILON = Fraction(1, 2)
#: Levels, secrets, and seconds. The optimum is certified to so many percent.
SIZES, NEAR = ((9, 2, 0.2), (100, 2, 5), (200, 2, 15), (15, 5, 15)), 0.5


def plan_of(levels: int, secrets: int) -> pf.Plan:
    rng = np.random.default_rng(levels * secrets)
    counts = {f"s{k}": rng.integers(1, 1000, levels) for k in range(secrets)}
    support = [f"v{x}" for x in range(levels)]
    return pf.calibrate(pf.Scenario(pf.Prior.from_counts(counts, support=support)), EPSILON)


def main() -> None:
    plan_of(5, 2)
    for levels, secrets, target in SIZES:
        start = time.process_time()
        plan = plan_of(levels, secrets)
        took = time.process_time() - start
        above = 100 * (1 - plan.objective_bound / plan.objective)
        for what, measured, wanted in (("seconds", took, target), ("percent", above, NEAR)):
            name = f"{levels} levels, {secrets} secrets: {what}"
            print(f"{name:45}{verdict(measured, wanted)}", flush=True)


if __name__ == "__main__":
    main()
