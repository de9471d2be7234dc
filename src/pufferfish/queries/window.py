# SPDX-License-Identifier: Apache-2.0
"""An upper bound of the loss from windows around each record; theory, section 8.6.

The adversary is told the records ``width`` steps away on both sides, and the sum outside. Left is
the sum inside: its exact law together with the outer records, a part of the mass for each state of
the record. Near an end of the sequence there is one outer record, or none.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import fmpz_poly

from pufferfish.errors import InputError
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import GridTooLarge, axis_of
from pufferfish.loss.problem import Problem
from pufferfish.loss.proof import bound_of
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import Point
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.model import Distribution, dot, monomials, numerators
from pufferfish.support import Lattice

#: Cells of all windows together, of some 64 bytes; records, where the law of each is worked out.
_MOST_CELLS, _MOST_RECORDS = 3_000_000, 20_000
#: Chances of states are rounded down to _BITS bits, which moves a loss by less than _MOVED.
_BITS, _MOVED = 80, Fraction(1, 2**78)
Vector = list[fmpz_poly]


class Window(NamedTuple):
    """What one record's window depends on."""

    left: int  # how many steps it reaches
    right: int
    law: Distribution  # of the record in the middle
    outer: tuple[bool, ...]  # states of the record before the window, if there is one


def window_loss(
    chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int], width: int
) -> RateLoss:
    """Return an upper bound of the loss as a function of u, unproved; it need not vanish at 0."""
    return RateLoss.of_problems(window_problems(chain, weights, lengths, width))


def prove_window(
    chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int], width: int,
    rate: Fraction, epsilon: Fraction | None = None,
) -> LossBound:  # fmt: skip
    """Return a proven upper bound of the loss at a rate; nothing is proved below it."""
    problems = window_problems(chain, weights, lengths, width)
    at_rate = (replace(own, axes=(replace(own.axes[0], rate=rate),)) for own in problems)
    found = bound_of(at_rate, epsilon)
    upper = None if found.upper is None else found.upper + _MOVED
    method = f"window+{found.method}"
    return replace(found, upper=upper, lower=Fraction(0), witness=None, method=method)


def window_problems(
    chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int], width: int
) -> list[Problem]:
    """Return problems whose largest loss bounds that of all records, or raise GridTooLarge."""
    k, windows = range(len(chain.states)), set(_windows(chain, lengths, width))
    steps, [first] = numerators(chain.transition), numerators([chain.start or ()])
    bits = 2 * width * sum(steps[0]).bit_length() + 2 * _BITS
    cells = sum(
        len(k) ** (1 + (own.left == width) + (own.right == width))
        * ((own.left + own.right + 1) * max(weights) + 1) for own in windows
    )  # fmt: skip
    if cells * (1 + bits // 512) > _MOST_CELLS:
        raise GridTooLarge
    z, columns = monomials(weights), list(zip(*steps, strict=True))

    def onwards(sums: Vector) -> Vector:
        return [z[s] * dot(columns[s], sums) for s in k]

    def backwards(sums: Vector) -> Vector:
        return [dot(row, [z[r] * sums[r] for r in k]) for row in steps]

    early = _repeated(onwards, [first[s] * z[s] for s in k], width)
    late = _repeated(backwards, [fmpz_poly([1]) for _ in k], width)
    sure = ([fmpz_poly([int(r == s)]) for s in k] for r in k)
    befores = [_repeated(onwards, own, width + 1)[-1] for own in sure]
    afters = [_repeated(backwards, [fmpz_poly([row[q]]) for row in steps], width)[-1] for q in k]
    found = []
    for own in sorted(windows):
        before = list(itertools.compress(befores, own.outer)) or [early[own.left]]
        after = afters if own.right == width else [late[own.right]]
        for one, other in itertools.product(before, after):
            found += _problem(chain.states, own.law, [one[s] * other[s] for s in k])
    return found


def _repeated(step: Callable[[Vector], Vector], start: Vector, times: int) -> list[Vector]:
    """Return so many vectors, each one step after the one before."""
    return list(itertools.accumulate(range(times - 1), lambda own, _: step(own), initial=start))


def _windows(chain: MarkovChain, lengths: Sequence[int], width: int) -> Iterator[Window]:
    """Yield the windows of all records, each kind at least once."""
    if chain.start is None:
        raise InputError("a chain that may start in any law has no windows: state its law")
    if chain.stationary:
        lengths = [min(length, 2 * width + 1) for length in lengths]
    if max(lengths) > _MOST_RECORDS:
        raise GridTooLarge
    columns, laws = list(zip(*numerators(chain.transition), strict=True)), list[Distribution]()
    [law] = numerators([chain.start])
    for _ in range(max(lengths)):
        laws.append(tuple(_rounded(p, sum(law)) for p in law))
        if not chain.stationary:
            law = [sum(map(int.__mul__, column, law)) for column in columns]
    for length in set(lengths):
        for t in range(length):
            left, right = min(t, width), min(length - 1 - t, width)
            outer = tuple(p > 0 for p in laws[t - width]) if left == width else ()
            yield Window(left, right, laws[t], outer)


def _rounded(p: int, total: int) -> Fraction:
    """Return p / total with so many bits, rounded down."""
    shift = _BITS + total.bit_length() - p.bit_length()
    return Fraction((p << shift) // total, 1 << shift)


def _problem(states: Sequence[str], law: Distribution, sums: Vector) -> list[Problem]:
    """Return the problem to tell possible states by sums of some chance; none for one state."""
    some = [s for s, p in enumerate(law) if p]
    size = max(len(sums[s]) for s in some)
    if len(some) < 2 or not size:
        return []
    found = [[int(sums[s][n]) * law[s].denominator for n in range(size)] for s in some]
    masses = np.array(found, dtype=object)
    # Only ratios count; but no point may have more than all of the mass.
    most = max(-(-sum(own) // law[s].numerator) for s, own in zip(some, found, strict=True))
    atoms = np.flatnonzero(masses.any(axis=0))
    lattice, noise = Lattice(Fraction(1), 0, np.arange(size)), DiscreteLaplace(1.0, Fraction(1))
    axis = axis_of(0, lattice, [noise], atoms)
    points = tuple(map(Point, masses[:, atoms], [most * law[s].numerator for s in some]))
    pairs = tuple(itertools.combinations(range(len(some)), 2))
    return [Problem((axis,), points, pairs, tuple(states[s] for s in some), 0)]
