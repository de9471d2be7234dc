# SPDX-License-Identifier: Apache-2.0
"""Speed of exact draws, per value."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from timing import Given, Row, peers, seconds

from pufferfish import Channel, DiscreteLaplace
from pufferfish.support import Levels

NUMPY = "NumPy, float Laplace"


def floats(draws: int) -> float:
    generator = np.random.default_rng()
    return seconds(lambda: generator.laplace(size=draws)) / draws


def opendp(dp: Any, scale: float, draws: int) -> Callable[[], object]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noise, zeros = dp.m.make_laplace(*space, scale=scale), [0] * draws
    return lambda: noise(zeros)


def one_by_one(mechanism: Any, scale: float, draws: int) -> Callable[[], object]:
    noise = mechanism(epsilon=1 / scale, sensitivity=1)
    return lambda: [noise.randomise(0) for _ in range(draws)]


def noise(given: Given) -> Iterator[Row]:
    """Noise, beside that of other libraries.

    Seconds per value. Ours and OpenDP's is exact discrete noise, OpenDP's from vectors of integers;
    diffprivlib draws single values; NumPy's floats are what is often used, and protect nobody.
    """
    work, many, fewer = "draw noise", given.pick(10**6, 10**4), given.pick(20_000, 500)
    there, absent = peers(work, OpenDP="opendp.prelude", diffprivlib="diffprivlib.mechanisms")
    yield from absent
    for scale in (0.5, 1.0, 10.0, 100.0, 1000.0):
        base, own = floats(many), DiscreteLaplace(scale, Fraction(1))
        ours = seconds(lambda own=own: own.noise(many)) / many
        yield Row(work, "ours", ours, base, "times NumPy", 4, scale)
        yield Row(work, NUMPY, base, size=scale)
        others = {}
        if "OpenDP" in there:
            others["OpenDP"] = opendp(there["OpenDP"], scale, fewer)
        if "diffprivlib" in there:
            for kind in ("Geometric", "Laplace"):
                mechanism = getattr(there["diffprivlib"], kind)
                others[f"diffprivlib, {kind}"] = one_by_one(mechanism, scale, fewer)
        for way, run in others.items():
            yield Row(work, way, seconds(run, 3) / fewer, ours, "times ours", size=scale)


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


def draws(given: Given) -> Iterator[Row]:
    """Draws from a channel.

    Seconds per value, of a channel without an entry of 0.
    """
    many = given.pick(10**6, 10**4)
    for size in given.pick((2, 10, 100, 400), (2, 10)):
        channel, base = dense(size), floats(many)
        atoms = np.random.default_rng().integers(0, size, many)
        ours = seconds(lambda channel=channel, atoms=atoms: channel.draw(atoms)) / many
        yield Row("draw from a channel", "ours", ours, base, "times NumPy", 4, size)
        yield Row("draw from a channel", NUMPY, base, size=size)
