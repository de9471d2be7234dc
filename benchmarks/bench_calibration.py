# SPDX-License-Identifier: Apache-2.0
"""Speed of calibration on large supports, as ratios: ``python benchmarks/bench_calibration.py``.

One *accumulate* is one ``np.logaddexp.accumulate`` over 10**6 doubles. Whole calls are timed:
calibration, certificate, digest and plan.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

import pufferfish as pf

ATOMS = 10**6
RUNS = 5
#: Accumulates that each mechanism may take on 10**6 atoms.
TARGETS = {"exact": 12.0, "wasserstein": 15.0, "relaxed": 30.0}


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median time of several runs, after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def accumulate() -> Callable[[], object]:
    numbers = np.random.default_rng(1).normal(size=ATOMS)
    return lambda: np.logaddexp.accumulate(numbers)


def shapes(atoms: int) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield counts of two secrets: smooth, rough, and with holes."""
    rng = np.random.default_rng(2)
    x = np.linspace(-4, 4, atoms)
    yield (
        "two bell curves",
        rng.poisson(1000 * np.exp(-(x**2) / 2)),
        rng.poisson(1000 * np.exp(-((x - 0.2) ** 2) / 2.4)),
    )
    yield "uniform random counts", rng.integers(0, 1000, atoms), rng.integers(0, 1000, atoms)
    holes = rng.random((2, atoms)) < 0.6
    counts = rng.poisson(300 + 50 * np.sin(3 * x), (2, atoms)) * holes
    yield "random holes", counts[0], counts[1]


def fresh(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> pf.Scenario:
    return pf.Scenario(
        pf.Prior.from_counts({"a": first, "b": second}, support=np.arange(len(first)))
    )


def large_supports() -> None:
    print(f"{ATOMS} lattice atoms, two secrets; in accumulates, median of {RUNS}")
    print(f"{'':24}{'epsilon':>8}{'mechanism':>13}{'took':>8}{'target':>8}  certificate")
    for name, first, second in shapes(ATOMS):
        scenario = fresh(first, second)
        for epsilon in ("1", "0.1"):
            for mechanism, target in TARGETS.items():
                unit = seconds(accumulate(), 3)

                def work(
                    scenario: pf.Scenario = scenario,
                    epsilon: str = epsilon,
                    mechanism: str = mechanism,
                ) -> object:
                    scenario.__dict__.pop("digest", None)  # a cached digest would flatter
                    return pf.calibrate(scenario, epsilon, mechanism)

                took = seconds(work) / unit
                plan = pf.calibrate(scenario, epsilon, mechanism)
                print(
                    f"{name:24}{epsilon:>8}{mechanism:>13}{took:8.1f}{target:8.0f}  "
                    f"{plan.certificate.method}"
                )
                if mechanism == "exact" and plan.scale > 0:
                    shaved = pf.DiscreteLaplace(plan.scale * (1 - 1e-9), plan.noise.step)
                    within = not pf.certify(scenario, shaved, plan.epsilon_exact, "ball").holds
                    print(f"{'':24}within 1e-9 of theta* (by ball arithmetic): {within}")


def many_secrets() -> None:
    atoms, secrets = 10**4, 100
    rng = np.random.default_rng(4)
    x = np.linspace(-4, 4, atoms)
    centres = rng.normal(0, 0.1, secrets)
    counts = {
        f"s{k}": rng.poisson(500 * np.exp(-((x - c) ** 2) / 2)) for k, c in enumerate(centres)
    }
    support = np.arange(atoms)
    everyone = pf.Scenario(pf.Prior.from_counts(counts, support=support))
    two = pf.Scenario(pf.Prior.from_counts({s: counts[s] for s in ("s0", "s1")}, support=support))
    one = seconds(lambda: pf.calibrate(two, "0.5"))
    all_of_them = seconds(lambda: pf.calibrate(everyone, "0.5"), 3)
    print(
        f"exact, {secrets} secrets, all pairs, {atoms} atoms: {all_of_them / one:.0f} times two "
        f"secrets (target: at most 75)"
    )


def peak_memory() -> None:
    """Run one exact calibration in this process, which does nothing else."""
    _, first, second = next(shapes(ATOMS))
    plan = pf.calibrate(fresh(first, second), "1")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"exact on {ATOMS} atoms: scale {plan.scale!r}, peak memory {peak:.2f} GiB (target: < 1)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--memory", action="store_true", help="only the peak memory")
    if options.parse_args().memory:
        peak_memory()
        return
    large_supports()
    many_secrets()


if __name__ == "__main__":
    main()
