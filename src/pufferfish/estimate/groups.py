# SPDX-License-Identifier: Apache-2.0
"""Which frequencies a channel leaves estimable: exact linear algebra over its integers.

A released column shows q = p M. A sum a.p of the original frequencies p can be estimated without
bias if and only if M w = a for some weights w of the outputs; then w.q is the estimate. By duality
that is so exactly when v.a = 0 for each v with v M = 0. What is said to be estimable is decided by
exact ranks: a rank found in floating point would print nonsense for a channel that merges levels.
Groups are looked for modulo a prime, where numbers stay short, and then proved by exact ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from flint import fmpz_mat, nmod_mat

#: Every grouping of so many classes is looked at; beyond it only pairs are taken out first.
_SEARCHED = 14
#: Primes just below 2**63: one that misleads, by chance one in 2**60 or so, gives way to the next.
_PRIMES = (2**63 - 25, 2**63 - 165, 2**63 - 259)

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Structure:
    """The exact structure of a channel.

    Attributes
    ----------
    classes : tuple of tuple of int
        The inputs by equal rows of M, each class in increasing order.
    distinct : tuple of tuple of int
        The row of each class, in its lowest terms.
    pivots : tuple of int
        Positions of classes whose rows are a basis of the row space of M.
    groups : tuple of tuple of int
        A partition of the inputs into groups, each of which has an estimable sum: as many groups
        as there can be (M 1 = 1, so that all inputs together always are one).
    searched : bool
        Whether every possible partition was looked at.
    """

    classes: tuple[tuple[int, ...], ...]
    distinct: Rows
    pivots: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    searched: bool

    def estimable(self, values: Sequence[Fraction | int]) -> bool:
        """Whether the sum of values[x] p[x] can be estimated; decided exactly.

        Parameters
        ----------
        values : rationals, shape (n_x,)
        """
        if any(values[x] != values[c[0]] for c in self.classes for x in c):
            return False
        if len(self.pivots) == len(self.classes):
            return True
        return _spanned(self.distinct, len(self.pivots), [[values[c[0]] for c in self.classes]])


def structure_of(rows: Sequence[Sequence[int]]) -> Structure:
    """Return the structure of a channel.

    Parameters
    ----------
    rows : integers, shape (n_x, n_y)
        Not negative, no row all 0; each row over its own sum is a distribution.
    """
    merged: dict[tuple[int, ...], list[int]] = {}
    for x, row in enumerate(rows):
        divisor = gcd(*row)
        merged.setdefault(tuple(entry // divisor for entry in row), []).append(x)
    distinct = tuple(merged)
    classes = tuple(tuple(members) for members in merged.values())
    pivots, groups, searched = _solved(distinct)
    levels = (tuple(sorted(x for k in group for x in classes[k])) for group in groups)
    return Structure(classes, distinct, pivots, tuple(sorted(levels)), searched)


def _solved(rows: Rows) -> tuple[tuple[int, ...], list[list[int]], bool]:
    """Return a basis among the rows, and the groups of rows with estimable sums."""
    count = len(rows)
    rank = int(fmpz_mat([list(row) for row in rows]).rank())
    if rank == count:
        return tuple(range(count)), [[k] for k in range(count)], True
    for prime in _PRIMES:
        pivots, null = _left_null_space(rows, prime)
        if len(pivots) < rank:
            continue
        groups, searched = _zero_sums(count, null, prime)
        members = [set(group) for group in groups]
        if _spanned(rows, rank, [[int(k in group) for k in range(count)] for group in members]):
            return pivots, groups, searched
    raise ArithmeticError("three primes in a row misled")  # pragma: no cover - one in 2**180


def _spanned(rows: Rows, rank: int, sides: Sequence[Sequence[Fraction | int]]) -> bool:
    """Whether M w = a has a solution for every a: whether adding them leaves the rank as it is."""
    totals = [sum(row) for row in rows]
    columns = []
    for a in sides:
        common = lcm(*(Fraction(value).denominator for value in a))
        columns.append([int(value * common) * t for value, t in zip(a, totals, strict=True)])
    return bool(
        fmpz_mat([[*row, *(c[k] for c in columns)] for k, row in enumerate(rows)]).rank() == rank
    )


def _left_null_space(rows: Rows, prime: int) -> tuple[tuple[int, ...], list[dict[int, int]]]:
    """Return the positions of independent rows, and a basis of the v with v M = 0, both mod p.

    Rows that are independent modulo a prime are so in rationals.
    """
    outputs, totals = len(rows[0]), [sum(row) for row in rows]
    flat = [row[y] % prime for y in range(outputs) for row in rows]
    reduced, rank = nmod_mat(outputs, len(rows), flat, prime).rref()
    table = [[int(entry) for entry in line] for line in reduced.table()[:rank]]
    pivots = tuple(next(k for k, entry in enumerate(line) if entry) for line in table)
    null = []
    for free in sorted(set(range(len(rows))) - set(pivots)):
        # u times the integer rows is 0; M has each row over its sum.
        u = {free: 1} | {
            p: -line[free] for p, line in zip(pivots, table, strict=True) if line[free]
        }
        null.append({k: entry * totals[k] % prime for k, entry in sorted(u.items())})
    return pivots, null


def _zero_sums(count: int, null: list[dict[int, int]], prime: int) -> tuple[list[list[int]], bool]:
    """Partition positions into as many sets as possible over each of which every v sums to 0.

    The null space is a direct sum over the connected components of its support, and each
    component sums to 0 since the whole does; so only components are searched. One combination of
    the basis stands for all of it.
    """
    columns = [0] * count
    for power, v in enumerate(null):
        factor = pow(3, 41 * power + 1, prime)
        for k, entry in v.items():
            columns[k] = (columns[k] + factor * entry) % prime
    groups: list[list[int]] = []
    searched = True
    for component in _components(count, null):
        pairs, rest = _opposite_pairs(component, columns, prime)
        groups += pairs
        if len(rest) <= _SEARCHED:
            groups += _most_groups(rest, columns, prime)
        else:
            groups.append(rest)
            searched = False
    return groups, searched


def _components(count: int, null: list[dict[int, int]]) -> list[list[int]]:
    """Return the positions by connection through a basis vector that holds both."""
    parent = list(range(count))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for v in null:
        first, *others = v
        for k in others:
            parent[root(k)] = root(first)
    found: dict[int, list[int]] = {}
    for k in range(count):
        found.setdefault(root(k), []).append(k)
    return list(found.values())


def _opposite_pairs(
    component: list[int], columns: list[int], prime: int
) -> tuple[list[list[int]], list[int]]:
    """Take out pairs that sum to 0.

    That never costs a group: if the two are in two groups of a partition, the rest of these two
    sums to 0 as well.
    """
    waiting: dict[int, list[int]] = {}
    pairs = []
    for k in component:
        opposite = waiting.get(-columns[k] % prime)
        if opposite and columns[k]:
            pairs.append([opposite.pop(), k])
        else:
            waiting.setdefault(columns[k], []).append(k)
    return pairs, sorted(k for ks in waiting.values() for k in ks)


def _most_groups(members: list[int], columns: list[int], prime: int) -> list[list[int]]:
    """Partition into the largest number of sets that sum to 0, by dynamic programming on subsets.

    In a partition with the most groups, adding members one by one, group after group, passes a
    sum of 0 once per group; so the best order is looked for.
    """
    size = len(members)
    if size == 0:
        return []
    sums, best, last = [0] * (1 << size), [0] * (1 << size), [0] * (1 << size)
    for mask in range(1, 1 << size):
        low = (mask & -mask).bit_length() - 1
        sums[mask] = (sums[mask & (mask - 1)] + columns[members[low]]) % prime
        most = -1
        for k in range(size):
            if mask >> k & 1 and best[mask ^ (1 << k)] > most:
                most, last[mask] = best[mask ^ (1 << k)], k
        best[mask] = most + (sums[mask] == 0)
    groups: list[list[int]] = []
    mask = (1 << size) - 1
    while mask:
        if sums[mask] == 0:
            groups.append([])
        groups[-1].append(members[last[mask]])
        mask ^= 1 << last[mask]
    return groups
