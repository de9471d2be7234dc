# SPDX-License-Identifier: Apache-2.0
"""Speed of a channel's draws, tables and certificate: ``python benchmarks/bench_channel_draws.py``.

Draws are ratios to discrete Laplace draws, timed in turns with them.
"""

import functools
import random
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pufferfish.certificate import certify_channel
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.prior import Prior
from pufferfish.sampling.categorical import RowTable
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

DRAWS = 10**6
TURNS = 15


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the processor's time of one run; what other programs take does not count."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def levels(size: int) -> Levels:
    return Levels(tuple(f"level {k:04d}" for k in range(size)))


def dense(size: int, *, dyadic: bool = True, seed: int = 0) -> Channel:
    """Return a channel without an entry of 0: the most thresholds that a row can have."""
    rng = random.Random(seed)
    rows = []
    for x in range(size):
        total = 2**64 if dyadic else rng.getrandbits(64) | 1 | 1 << 63
        row = [1 + rng.randrange(total // size - 1) for _ in range(size)]
        row[x] += total - sum(row)
        rows.append(row)
    return Channel.of(levels(size), levels(size), rows)


def draws() -> None:
    noise = DiscreteLaplace(1.0, Fraction(1))
    rng = np.random.default_rng(0)
    print("draws per value, dense channel, all inputs alike often (Laplace: scale 1, its fastest)")
    print(f"{'levels':>7} {'ns':>6} {'/ Laplace':>10} {'target':>7} {'table, s':>9} {'MB':>6}")
    for size in (2, 3, 5, 10, 20, 50, 100, 200, 400):
        channel = dense(size)
        rows = channel.rows.tolist()
        table_time = min(processor_seconds(lambda r=rows: RowTable.of(r)) for _ in range(3))
        table = RowTable.of(rows)
        memory = (table.guide.nbytes + table.thresholds.nbytes + table.places.nbytes) / 1e6
        atoms = rng.integers(0, size, DRAWS)
        channel.draw(atoms)
        ours, theirs = [], []
        for _ in range(TURNS):
            theirs.append(processor_seconds(lambda: noise.noise(DRAWS)))
            ours.append(processor_seconds(lambda c=channel, a=atoms: c.draw(a)))
        ratio = float(np.median(ours) / np.median(theirs))
        target = "<= 1.5" if size <= 100 else ""
        print(
            f"{size:7d} {np.median(ours) / DRAWS * 1e9:6.1f} {ratio:10.2f} {target:>7} "
            f"{table_time:9.4f} {memory:6.2f}"
        )


def certificates() -> None:
    print("certificate of a dense channel, target < 1 s")
    print(f"{'levels':>7} {'secrets':>8} {'one denominator, s':>19} {'all different, s':>17}")
    rng = random.Random(1)
    for size, secrets in ((100, 2), (50, 7), (400, 2), (400, 7)):
        prior = Prior.from_counts(
            {f"s{s}": [rng.randrange(1, 1000) for _ in range(size)] for s in range(secrets)},
            support=list(levels(size).names),
        )
        scenario = Scenario(prior)
        times = []
        for channel in (dense(size), dense(size, dyadic=False)):
            work = functools.partial(certify_channel, scenario, channel, Fraction(1))
            times.append(min(processor_seconds(work) for _ in range(3)))
        print(f"{size:7d} {secrets:8d} {times[0]:19.4f} {times[1]:17.4f}")


def main() -> None:
    draws()
    certificates()


if __name__ == "__main__":
    main()
