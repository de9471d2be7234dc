# SPDX-License-Identifier: Apache-2.0
"""Speed of exact draws, as ratios within one run: ``python benchmarks/bench_sampling.py``."""

import random
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
from timing import seconds, verdict

from pufferfish import Channel, DiscreteLaplace
from pufferfish.support import Levels

DRAWS = 10**6
THEIR_DRAWS = 50_000


def dense(size: int) -> Channel:
    """Return a channel without an entry of 0: the most thresholds that a row can have."""
    rng = random.Random(0)
    rows = []
    for x in range(size):
        row = [1 + rng.randrange(2**64 // size - 1) for _ in range(size)]
        row[x] += 2**64 - sum(row)
        rows.append(row)
    levels = Levels(tuple(f"level {k:04d}" for k in range(size)))
    return Channel(levels, levels, rows)


def main() -> None:
    dp.enable_features("contrib")
    generator = np.random.default_rng()
    floats = seconds(lambda: generator.laplace(size=DRAWS)) / DRAWS
    print(f"NumPy's float Laplace: {floats * 1e9:.1f} ns per value")
    for scale in (0.5, 1.0, 10.0, 100.0, 1000.0):
        noise = DiscreteLaplace(scale, Fraction(1))
        ours = seconds(lambda noise=noise: noise.noise(DRAWS)) / DRAWS
        print(f"{f'noise of scale {scale:g}: times NumPy':45}{verdict(ours / floats, 4)}")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        theirs = dp.m.make_laplace(*space, scale=scale)
        zeros = [0] * THEIR_DRAWS
        slow = seconds(lambda theirs=theirs, zeros=zeros: theirs(zeros), 3) / THEIR_DRAWS
        print(f"{f'  OpenDP takes {slow / ours:.0f} times as long':45}")
    for size in (2, 10, 100, 400):
        channel = dense(size)
        atoms = generator.integers(0, size, DRAWS)
        ours = seconds(lambda channel=channel, atoms=atoms: channel.draw(atoms)) / DRAWS
        print(f"{f'channel of {size} levels: times NumPy':45}{verdict(ours / floats, 4)}")


if __name__ == "__main__":
    main()
