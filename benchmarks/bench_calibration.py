# SPDX-License-Identifier: Apache-2.0
"""Speed of calibration on 10**6 atoms, in accumulates: ``python benchmarks/bench_calibration.py``.

Whole calls are timed: calibration, certificate, digest and plan.
"""

import argparse
import resource
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from timing import accumulate, seconds, verdict

import pufferfish as pf

ATOMS = 10**6
TARGETS = {"exact": 15.0, "wasserstein": 15.0, "relaxed": 30.0}
Counts = npt.NDArray[np.int64]


def shapes(atoms: int) -> Iterator[tuple[str, Counts, Counts]]:
    """Yield counts of two secrets: smooth, rough, wide, narrow, with holes, and very many rows."""
    rng = np.random.default_rng(2)
    x = np.linspace(-4, 4, atoms)

    def bell(height: float, centre: float, width: float) -> Counts:
        return rng.poisson(height * np.exp(-(((x - centre) / width) ** 2) / 2))

    yield "two bell curves", bell(1000, 0, 1), bell(1000, 0.2, 1.1)
    yield "wide bell curves", bell(1000, 0, 3), bell(1000, 0.5, 3.3)
    yield "narrow bell curves", bell(1e6, 0, 0.01), bell(1e6, 0.001, 0.011)
    yield "uniform random counts", rng.integers(0, 1000, atoms), rng.integers(0, 1000, atoms)
    holes = rng.random((2, atoms)) < 0.6
    counts = rng.poisson(300 + 50 * np.sin(3 * x), (2, atoms)) * holes
    yield "random holes", counts[0], counts[1]
    yield "counts up to 10**9", rng.integers(0, 10**9, atoms), rng.integers(0, 10**9, atoms)
    yield "smooth, up to 10**9", bell(1e9, 0, 1), bell(1e9, 0.2, 1.1)


def fresh(first: Counts, second: Counts) -> pf.Scenario:
    counts = {"a": first, "b": second}
    return pf.Scenario(pf.Prior.from_counts(counts, support=np.arange(len(first))))


def large_supports(chosen: str) -> None:
    print(f"{'10**6 atoms, two secrets':24}{'epsilon':>8}{'mechanism':>13}{'took':>8}{'target':>8}")
    for name, first, second in shapes(ATOMS):
        if chosen not in name:
            continue
        scenario = fresh(first, second)
        for epsilon in ("1", "0.1"):
            for mechanism, target in TARGETS.items():
                unit = accumulate(ATOMS)

                def work(
                    scenario: pf.Scenario = scenario,
                    epsilon: str = epsilon,
                    mechanism: str = mechanism,
                ) -> object:
                    scenario.__dict__.pop("digest", None)  # a cached digest would flatter
                    return pf.calibrate(scenario, epsilon, mechanism)

                took = seconds(work, 3) / unit
                print(f"{name:24}{epsilon:>8}{mechanism:>13}{verdict(took, target)}", flush=True)


def many_secrets() -> None:
    atoms, secrets = 10**4, 100
    rng = np.random.default_rng(4)
    x = np.linspace(-4, 4, atoms)
    counts = {
        f"s{k}": rng.poisson(500 * np.exp(-((x - centre) ** 2) / 2))
        for k, centre in enumerate(rng.normal(0, 0.1, secrets))
    }
    everyone = pf.Scenario(pf.Prior.from_counts(counts, support=np.arange(atoms)))
    one = seconds(lambda: pf.calibrate(fresh(counts["s0"], counts["s1"]), "0.5"))
    all_of_them = seconds(lambda: pf.calibrate(everyone, "0.5"), 3)
    print(f"{'exact, 100 secrets, all pairs: times two':45}{verdict(all_of_them / one, 75)}")


def peak_memory() -> None:
    """Run one exact calibration in this process, which does nothing else."""
    _, first, second = next(shapes(ATOMS))
    plan = pf.calibrate(fresh(first, second), "1")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"exact on 10**6 atoms: scale {plan.scale!r}; peak memory, GiB{verdict(peak, 1)}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--memory", action="store_true", help="only the peak memory")
    options.add_argument("--shape", default="", help="only shapes whose name holds this")
    given = options.parse_args()
    if given.memory:
        peak_memory()
        return
    large_supports(given.shape)
    if not given.shape:
        many_secrets()


if __name__ == "__main__":
    main()
