# SPDX-License-Identifier: Apache-2.0
"""Speed of joint losses, as ratios: ``python benchmarks/bench_joint.py``.

One *accumulate* is one ``np.logaddexp.accumulate`` over as many doubles as the grid has cells.
Whole calls are timed: from joint masses to a proven bound.
"""

import resource
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pufferfish.joint import Axis, Known, joint_loss_of, least_scales, smallest_bound
from pufferfish.joint.fast import FastLoss
from pufferfish.joint.problem import make_problem
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.support import make_lattice

RUNS = 3
PAIR = [(0, 1)]
#: Accumulates that a joint loss may take.
TARGET = 20.0


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median time of several runs, after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def unit(cells: int) -> float:
    numbers = np.random.default_rng(1).normal(size=cells)
    return seconds(lambda: np.logaddexp.accumulate(numbers))


def noise(scale: float) -> DiscreteLaplace:
    return DiscreteLaplace(scale, Fraction(1))


def report(name: str, took: float, accumulate: float, how: str, target: float = TARGET) -> None:
    print(f"{name:58}{took / accumulate:8.1f}{target:8.0f}  {how}")


def three_columns() -> None:
    size = 100
    support = make_lattice(map(Fraction, range(size)))
    rng = np.random.default_rng(2)
    masses = [rng.poisson(3, (2, size, size, size))]
    accumulate = unit(size**3)
    print(f"{'100 x 100 x 100, two secrets':58}{'took':>8}{'target':>8}  proof")
    for scales in ((3.0, 7.0, 20.0), (0.1, 0.1, 0.1), (1e-3, 1e-3, 1e-3)):
        axes = [Axis(support, (noise(scale), noise(2 * scale))) for scale in scales]
        problem = make_problem(masses, axes, PAIR)

        def doubles() -> object:
            return FastLoss(make_problem(masses, axes, PAIR)).at()  # noqa: B023

        report(f"in doubles, scales {scales}", seconds(doubles), accumulate, "none")
        took = seconds(lambda: joint_loss_of(masses, axes, PAIR))  # noqa: B023
        found = joint_loss_of(masses, axes, PAIR)
        report(f"proved, {problem.cells} cells", took, accumulate, found.method)
    outputs = make_lattice(map(Fraction, range(100)))
    channel = Channel.of(support, outputs, rng.integers(1, 1000, (size, size)))
    axes = [Axis(support, (noise(3.0),)), Axis(support, (noise(7.0),)), Axis(support, (channel,))]
    took = seconds(lambda: joint_loss_of(masses, axes, PAIR))
    found = joint_loss_of(masses, axes, PAIR)
    report("proved, a channel of 100 outputs in one column", took, accumulate, found.method)


def balls() -> None:
    support = make_lattice(map(Fraction, range(46)))
    masses = [np.random.default_rng(3).poisson(3, (2, 46, 46, 46))]
    axes = [Axis(support, (noise(scale),)) for scale in (3.0, 7.0, 20.0)]
    took = seconds(lambda: joint_loss_of(masses, axes, PAIR, method="ball"))
    print(f"46 x 46 x 46 in ball arithmetic: {took / unit(46**3):.0f} accumulates, {took:.2f} s")


def many_releases() -> None:
    support = make_lattice(map(Fraction, range(50)))
    rng = np.random.default_rng(4)
    masses = [rng.integers(1, 100, (2, 50, 50))]
    scales = (np.abs(rng.normal(size=1000)) * 1e4 + 1e4).tolist()
    axes = [Axis(support, tuple(map(noise, part))) for part in (scales[:500], scales[500:])]
    joint = seconds(lambda: joint_loss_of(masses, axes, PAIR))
    bound = seconds(lambda: smallest_bound(axes, [Known((0, 1), masses, PAIR)]))
    print(
        f"1,000 releases of two columns: joint loss {joint:.3f} s, smallest bound {bound:.3f} s "
        f"(target: at most two joint losses and 0.5 s, here {2 * joint + 0.5:.3f} s)"
    )


def scales() -> None:
    support = make_lattice(map(Fraction, range(40)))
    masses = [np.random.default_rng(5).poisson(3, (2, 40, 40, 40))]
    axes = [Axis(support)] * 3
    further = [(0, Fraction(1)), (1, Fraction(1)), (2, Fraction(2))]
    once = seconds(lambda: joint_loss_of(masses, [Axis(support, (noise(3.0),))] * 3, PAIR))
    took = seconds(lambda: least_scales(masses, axes, PAIR, further, Fraction(1, 10)))
    print(f"least scales of three columns of 40 values: {took / once:.1f} joint losses")


def main() -> None:
    three_columns()
    balls()
    many_releases()
    scales()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
