# SPDX-License-Identifier: Apache-2.0
"""Speed of calibration and couplings. Whole calls are timed: with certificate, digest and plan."""

import resource
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import Given, Row, accumulate, in_turn, peers, seconds

import pufferfish as pf
from pufferfish.calibration.coupling import comonotone
from pufferfish.priors.scenario import PairView

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


def calibrated(scenario: pf.Scenario, epsilon: str, mechanism: str) -> float:
    def work() -> object:
        scenario.__dict__.pop("digest", None)  # a cached digest would flatter
        return pf.calibrate(scenario, epsilon, mechanism)

    return seconds(work, 3)


def large_supports(given: Given) -> Iterator[Row]:
    """Calibration of noise on many levels.

    Two secrets on a million levels, for epsilon 1 and 0.1; the slower of both is shown. One
    accumulate is one np.logaddexp.accumulate over as many doubles.
    """
    atoms = given.pick(10**6, 10**4)
    for name, first, second in shapes(atoms):
        scenario, unit = fresh(first, second), accumulate(atoms)
        for mechanism, target in TARGETS.items():
            took = max(calibrated(scenario, epsilon, mechanism) for epsilon in ("1", "0.1"))
            yield Row(name, mechanism, took, unit, "accumulates", target)
    import pyarrow as pa  # not at the top: memory() would count it

    rows, rng = atoms // 10, np.random.default_rng(1)
    table = pa.table({"s": rng.choice(["a", "b"], rows), "x": rng.integers(0, atoms // 2, rows)})
    columns = {"secret": "s", "public": "x", "support": range(atoms // 2), "pairs": [("a", "b")]}
    took = seconds(lambda: pf.noisy_counts(table, "0.3", **columns), 3)
    yield Row("noisy counts of half as many", "ours", took, unit, "accumulates", 40)


def levels(given: Given) -> Iterator[Row]:
    """How the cost of noise grows with levels.

    Two bell curves, epsilon 1.
    """
    for size in given.pick((10**2, 10**3, 10**4, 10**5, 10**6), (10**2, 10**3)):
        _, first, second = next(shapes(size))
        for mechanism in TARGETS:
            took = calibrated(fresh(first, second), "1", mechanism)
            yield Row("calibrate noise", mechanism, took, size=size)


def secrets(given: Given) -> Iterator[Row]:
    """How the cost grows with secrets, of which all pairs are protected.

    Exact noise on 10,000 levels, and the channel that keeps most on 10.
    """
    rng, most = np.random.default_rng(4), given.pick(10**4, 10**3)
    took = {}
    for mechanism, atoms in (("exact", most), ("channel", 10)):
        x = np.linspace(-4, 4, atoms)
        counts = {
            f"s{k}": rng.poisson(500 * np.exp(-((x - centre) ** 2) / 2))
            for k, centre in enumerate(rng.normal(0, 0.1, 100))
        }
        sizes = given.pick((2, 5, 10, 20, 50, 100), (2, 10))
        for size in sizes:
            own = {name: counts[name] for name in list(counts)[:size]}
            scenario = pf.Scenario(pf.Prior.from_counts(own, support=np.arange(atoms)))
            took[size] = calibrated(scenario, "0.5", mechanism)
            target = 75 if mechanism == "exact" and size == sizes[-1] else None
            work, unit = "calibrate for all pairs", "times two secrets"
            yield Row(work, mechanism, took[size], took[2], unit, target, size)


#: Levels up to which a way is fast enough, or fits the memory.
MOST = {"literal, dense": 3000, "POT, emd": 1000}


def ours(view: PairView) -> float:
    coupling = comonotone(view)
    return float(coupling.distance @ (coupling.mass / coupling.total))


def literal(view: PairView) -> float:
    """Difference min(F_i(x), F_j(x')) twice, in whole numbers."""
    first = np.cumsum(view.counts_first) * view.total_second
    second = np.cumsum(view.counts_second) * view.total_first
    mass = np.minimum.outer(first, second)
    for axis in (0, 1):
        mass = np.diff(mass, axis=axis, prepend=0)
    distance = np.abs(np.subtract.outer(view.index, view.index))
    return float((mass * distance).sum() / view.total_first / view.total_second)


def pot_emd_1d(ot: Any, x: Any, p: Any, q: Any) -> float:
    plan = ot.emd_1d(x, x, p, q, metric="cityblock", dense=False)
    return float(np.abs(x[plan.row] - x[plan.col]) @ plan.data)


def pot_emd(ot: Any, x: Any, p: Any, q: Any) -> float:
    distance = np.abs(np.subtract.outer(x, x))
    return float((ot.emd(p, q, distance) * distance).sum())


def couplings(given: Given) -> Iterator[Row]:
    """Couplings, beside the definition and POT.

    The optimal transport between two distributions on a line. The literal implementation holds the
    whole matrix, as the paper writes it; POT's emd_1d sorts, as ours does, in doubles instead of
    whole numbers; its emd solves any transport problem. All find the same cost.
    """
    work = "couple two secrets"
    there, absent = peers(work, POT="ot")
    yield from absent
    for size in given.pick((100, 300, 1000, 3000, 10**4, 10**5, 10**6), (100, 300)):
        counts = np.random.default_rng(3).integers(0, 1000, (2, size))
        prior = pf.Prior.from_counts(dict(zip("ab", counts, strict=True)), support=range(size))
        view = next(pf.Scenario(prior).views())
        p, q = view.counts_first / view.total_first, view.counts_second / view.total_second
        ways = {"ours": partial(ours, view), "literal, dense": partial(literal, view)}
        for ot in there.values():
            ways["POT, emd_1d"] = partial(pot_emd_1d, ot, view.index.astype(float), p, q)
            ways["POT, emd"] = partial(pot_emd, ot, view.index.astype(float), p, q)
        times = in_turn({way: ways[way] for way in ways if size <= MOST.get(way, size)}, 3)
        for way, took in times.items():
            yield Row(work, way, took, times["ours"], "times ours", size=size)


def memory(given: Given) -> Iterator[Row]:
    """The memory of one exact calibration, by a process that does nothing else."""
    atoms = given.pick(10**6, 10**4)
    _, first, second = next(shapes(atoms))
    pf.calibrate(fresh(first, second), "1")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Row(f"exact on {atoms:,} levels, peak", "ours", peak, None, "GiB", 1)
