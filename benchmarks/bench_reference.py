# SPDX-License-Identifier: Apache-2.0
"""How much faster is `relaxed`, certificate included, than the paper's definitions as they stand?

    python benchmarks/bench_reference.py [--atoms 2000] [--repeat 5]

The other side is the literal dense implementation of the tests: an n x n coupling, and a bisection
for every column and for every row. Both run in this one process, after a warm-up; only their ratio
means anything.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pufferfish as pf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from slow import literal

TARGET = 200


def seconds(work: Callable[[], object]) -> float:
    """Run once and return how long it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--atoms", type=int, default=2000)
    options.add_argument(
        "--repeat", type=int, default=5, help="runs of the fast side; least counts"
    )
    options.add_argument("--epsilon", default="1")
    given = options.parse_args()
    n = given.atoms
    rng = np.random.default_rng(2601)
    bumps = 20 + 10 * np.sin(np.arange(n) / 50)
    first, second = (rng.poisson(bumps + shift) + 1 for shift in (0, 2))
    scenario = pf.Scenario(
        pf.Prior.from_counts({"a": first, "b": second}, support=np.arange(n)), pairs=[("a", "b")]
    )
    total_first, total_second = int(first.sum()), int(second.sum())
    points = np.arange(n, dtype=np.float64)
    # Integers over one common total, so that the dense side ties exactly too.
    masses = (first * total_second, second * total_first)
    small = slice(0, 50)
    literal.relaxed(points[small], masses[0][small], masses[1][small], 1.0)
    plan = pf.calibrate(scenario, given.epsilon, mechanism="relaxed")

    fast = min(
        seconds(lambda: pf.calibrate(scenario, given.epsilon, mechanism="relaxed"))
        for _ in range(given.repeat)
    )
    found: list[float] = []
    slow = seconds(
        lambda: found.append(literal.relaxed(points, *masses, float(plan.epsilon_exact)))
    )
    difference = abs(found[0] / plan.scale - 1)
    if not plan.certificate.holds or difference > 1e-9:
        sys.exit(f"the two sides disagree: {found[0]!r} and {plan.scale!r}")
    print(f"{n} atoms, epsilon {given.epsilon}: scale {plan.scale!r}, certificate holds,")
    print(f"  literal dense implementation   {slow:10.4f} s")
    print(f"  relaxed with its certificate   {fast:10.4f} s  ({plan.certificate.method})")
    ratio = slow / fast
    verdict = "met" if ratio >= TARGET else "NOT met"
    print(f"  ratio {ratio:.0f} (target: at least {TARGET}, {verdict})")


if __name__ == "__main__":
    main()
