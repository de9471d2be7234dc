# SPDX-License-Identifier: Apache-2.0
"""Random joint scenarios, in the package's terms and in those of the slow code beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.joint import Axis
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.support import Support, make_lattice, make_levels
from slow import joint_brute as brute
from slow.digits import M, Real, real


@dataclass(frozen=True)
class Case:
    """One scenario twice."""

    masses: list[Any]
    axes: list[Axis]
    pairs: list[tuple[int, int]]
    joints: list[list[dict[tuple[int, ...], int]]]
    releases: list[brute.Release]
    scales: list[float | None]  # of each release, None for a channel

    def loss(self) -> Real:
        """The loss by brute force, to 50 digits."""
        ratio = brute.largest_ratio(self.joints, self.pairs, self.releases)
        return M.inf if ratio is None else M.log(real(ratio))

    def loss_at_the_doubles(self) -> Real:
        """The same with the decays of the scales as they are, to 50 digits."""
        tables: list[brute.Release] = []
        for (column, table), scale in zip(self.releases, self.scales, strict=True):
            if scale:
                values = list(table[0])
                decay = M.exp(-1 / M.mpf(scale))
                outputs = range(min(values) - 1, max(values) + 2)
                table = [{x: decay ** abs(y - x) for x in values} for y in outputs]
            tables.append((column, table))
        ratio = brute.largest_ratio(self.joints, self.pairs, tables)
        return M.inf if ratio is None else M.log(real(ratio))


def cases(number: int, seed: int = 4, columns: tuple[int, ...] = (1, 2, 3)) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield _case(rng, int(rng.choice(columns)))


def _case(rng: np.random.Generator, columns: int) -> Case:
    values = [
        sorted(rng.choice(5, int(rng.integers(2, 4)), False).tolist()) for _ in range(columns)
    ]
    sizes = [len(v) for v in values]
    secrets = int(rng.integers(2, 4))
    adversaries = int(rng.integers(1, 3))
    masses = []
    # Where every secret can have everything, losses are finite more often.
    full = rng.random() < 0.3
    for _ in range(adversaries):
        counts = rng.integers(1 if full else 0, 9, (secrets, *sizes))
        if not full:
            counts *= rng.random(counts.shape) < 0.5
        counts.reshape(secrets, -1)[:, int(rng.integers(0, np.prod(sizes)))] += 1
        if rng.random() < 0.1:
            counts[1:] = counts[:1]
        masses.append(counts)
    joints = [
        [
            {
                tuple(values[c][k] for c, k in enumerate(place)): int(counts[s][place])
                for place in np.ndindex(*sizes)
                if counts[s][place]
            }
            for s in range(secrets)
        ]
        for counts in masses
    ]
    pairs = [(i, j) for i in range(secrets) for j in range(i)]
    if len(pairs) > 1 and rng.random() < 0.5:
        pairs = [pairs[k] for k in rng.permutation(3)[:2]]
    releases: list[brute.Release] = []
    mechanisms: list[list[Any]] = [[] for _ in values]
    scales: list[float | None] = []
    # Levels have codes 0, 1, 2, ...; here they stand for numbers without holes.
    supports: list[Support] = [make_lattice(map(Fraction, v), Fraction(1)) for v in values]
    for c, v in enumerate(values):
        if v == list(range(len(v))) and rng.random() < 0.5:
            supports[c] = make_levels(map(str, v), order=[str(x) for x in v])
    for _ in range(int(rng.integers(2, 4))):
        column = int(rng.integers(0, columns))
        kind = rng.random()
        if kind < 0.55:
            decay = Fraction(int(rng.integers(1, 20)), 20)
            scale = float(-1 / M.log(real(decay)))
            releases.append((column, brute.laplace(values[column], decay)))
            mechanisms[column].append(DiscreteLaplace(scale, Fraction(1)))
            scales.append(scale)
        elif kind < 0.9:
            rows = _rows(rng, sizes[column])
            releases.append((column, brute.channel(values[column], rows)))
            outputs = make_lattice(map(Fraction, range(len(rows[0]))))
            mechanisms[column].append(Channel.of(supports[column], outputs, rows))
            scales.append(None)
        else:
            releases.append((column, brute.unchanged(values[column])))
            mechanisms[column].append(DiscreteLaplace(0.0, Fraction(1)))
            scales.append(0.0)
    axes = [Axis(s, tuple(m)) for s, m in zip(supports, mechanisms, strict=True)]
    return Case(masses, axes, pairs, joints, releases, scales)


def _rows(rng: np.random.Generator, size: int) -> list[list[int]]:
    outputs, total = int(rng.integers(2, 4)), 24
    rows = []
    for _ in range(size):
        cuts = np.sort(rng.integers(0, total + 1, outputs - 1))
        if rng.random() < 0.7:
            cuts = np.sort(rng.choice(np.arange(1, total), outputs - 1, False))
        rows.append(np.diff(cuts, prepend=0, append=total).tolist())
    return rows
