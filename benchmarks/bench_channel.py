# SPDX-License-Identifier: Apache-2.0
"""Speed of the optimal channel, as ratios: ``python benchmarks/bench_channel.py``.

The whole of it (program, solver, repair, exact check) against the solver's own time, a channel
that is robust against a plain one, and seconds by size: random priors are quick, smooth ones with
squared cost are slow.
"""

import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import pufferfish as pf
from pufferfish.calibration.channel import channel
from pufferfish.certificate import certify_channel
from pufferfish.regions import regions_of

EPSILON = Fraction(1, 2)
RUNS = 3


def median(work: Callable[[], float]) -> float:
    work()
    return statistics.median(work() for _ in range(RUNS))


def random_scenario(levels: int, secrets: int) -> pf.Scenario:
    rng = np.random.default_rng(levels * secrets)
    counts = {f"s{k}": rng.integers(1, 1000, levels) for k in range(secrets)}
    return pf.Scenario(pf.Prior.from_counts(counts, support=range(levels)))


def smooth_scenario(levels: int, secrets: int) -> pf.Scenario:
    x = np.arange(levels) / levels
    counts = {
        f"s{k}": (1e6 * np.exp(-(((x - 0.3 - 0.4 * k / secrets) / 0.2) ** 2))).astype(int)
        for k in range(secrets)
    }
    return pf.Scenario(pf.Prior.from_counts(counts, support=range(levels)))


def main() -> None:
    print("whole calibration, as a multiple of the solver's own time (target: at most 3)")
    for levels, secrets in ((100, 2), (50, 7), (400, 2)):
        scenario = random_scenario(levels, secrets)

        def ratio(scenario: pf.Scenario = scenario) -> float:
            start = time.perf_counter()
            solution = channel(scenario, EPSILON)
            if not certify_channel(scenario, solution.channel, EPSILON).holds:
                raise SystemExit("the channel is not private")
            return (time.perf_counter() - start) / solution.solver_seconds

        print(f"{levels:6} levels {secrets:3} secrets {median(ratio):8.2f}")
    scenario = random_scenario(30, 2)
    regions = regions_of(scenario, confidence="0.95")

    def seconds(robust: bool) -> float:
        start = time.perf_counter()
        channel(scenario, EPSILON, regions=regions if robust else None)
        return time.perf_counter() - start

    plain, robust = median(lambda: seconds(False)), median(lambda: seconds(True))
    print(f"robust, 30 levels 2 secrets: {robust / plain:.0f} times plain (target: at most 50)")
    print("seconds by size, 2 secrets")
    for levels in (100, 200, 400):
        for name, scenario in (
            ("random", random_scenario(levels, 2)),
            ("smooth", smooth_scenario(levels, 2)),
        ):
            for cost in ("hamming", "squared"):
                start = time.perf_counter()
                channel(scenario, EPSILON, cost=cost)
                took = time.perf_counter() - start
                print(f"{levels:6} levels {name} {cost:8} {took:8.2f} s", flush=True)


if __name__ == "__main__":
    main()
