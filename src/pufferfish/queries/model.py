# SPDX-License-Identifier: Apache-2.0
"""Models: joint laws of records that depend on each other, exact in rationals."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, permutations, product
from operator import mul
from typing import Any

from flint import fmpz_poly

from pufferfish.errors import InputError
from pufferfish.numbers import parse_number, show, text_of
from pufferfish.priors.given import TOLERANCE
from pufferfish.queries.sequences import check_known

#: For one record: for each state the polynomial whose coefficient n is proportional to
#: P(sum of all weights = n, this record has the state); None where the state is impossible there.
Law = list[fmpz_poly | None]
Distribution = tuple[Fraction, ...]
Rows = tuple[Distribution, ...]


@dataclass(frozen=True, init=False)
class Model:
    """A joint law of records, each of which has one of some states, or a class of such laws."""

    states: tuple[str, ...]  # their names
    notes: tuple[str, ...] = field(compare=False, repr=False)  # what was done to the input
    #: Whether it was fitted to a table, of which a plan then tells.
    from_rows: bool = field(default=False, compare=False, repr=False, kw_only=True)

    @property
    def any_length(self) -> bool:
        """Whether ``length="any"`` is allowed."""
        return False

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of records in each group that is independent of all others."""
        return tuple(lengths)

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every record of every group; theory, section 8.1."""
        raise InputError("a class of chains has no scenario: it holds many laws")

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as JSON values."""
        given = {own.name: getattr(self, own.name) for own in fields(self) if own.compare}
        return {name: _written(value) for name, value in given.items() if value is not None}


def set_fields(model: Any, **values: Any) -> None:
    """Set the fields of a frozen model, whose constructor reads what users give."""
    for name, value in values.items():
        object.__setattr__(model, name, value)


def read_states(states: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of states, at least two and all different."""
    given = [] if isinstance(states, str) or not isinstance(states, Iterable) else list(states)
    names = tuple(text_of(state) for state in given)
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"states must be two or more different names, but {states!r} was given")
    return names


def read_numbers(given: Any, count: int, what: str) -> list[Fraction]:
    """Return a list of so many numbers."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{what} must be a list of probabilities, but {given!r} was given")
    found = [parse_number(p, f"a probability of {what}") for p in given]
    if len(found) != count:
        raise InputError(f"{what} needs {count} probabilities, but {len(found)} were given")
    return found


def read_distribution(
    given: Any, states: Sequence[str], what: str, notes: list[str]
) -> Distribution:
    """Return probabilities in the order of the states; a note says if they were renormalised."""
    if isinstance(given, Mapping):
        named = {text_of(key): value for key, value in given.items()}
        check_known(named, states, what)
        given = [named.get(state, 0) for state in states]
    found = read_numbers(given, len(states), what)
    total = sum(found, Fraction(0))
    if min(found) < 0:
        raise InputError(f"{what} has the negative probability {show(min(found))}")
    if abs(total - 1) > TOLERANCE:
        raise InputError(f"the probabilities of {what} sum to {float(total):.10g}, not to 1")
    if total != 1:
        notes.append(f"the probabilities of {what} were renormalised to the sum 1")
    return tuple(p / total for p in found)


def read_matrix(given: Any, states: Sequence[str], what: str) -> list[Any]:
    """Return the row of each state, of a list of rows or a mapping from state to row."""
    if isinstance(given, Mapping):
        by_name = {text_of(state): row for state, row in given.items()}
        given = [by_name.get(state, ()) for state in states]
    rows = list(given) if isinstance(given, Iterable) else []
    if len(rows) != len(states):
        raise InputError(f"{what} of {len(states)} states needs a row for each")
    return rows


def read_rows(given: Any, states: Sequence[str], notes: list[str]) -> Rows:
    """Return transitions: for each state the probabilities of the next one."""
    rows = zip(states, read_matrix(given, states, "a transition matrix"), strict=True)
    return tuple(
        read_distribution(row, states, f"the transitions from {state!r}", notes)
        for state, row in rows
    )


@lru_cache(maxsize=16)  # a search asks for it again and again
def cross_ratio(rows: Rows, upper: Rows | None = None) -> Fraction | None:
    """Return the largest P(r,a) P(s,b) / (P(r,b) P(s,a)), r != s and a != b; None: infinite.

    With ``upper`` of all P between both.
    """
    largest, high = Fraction(1), upper or rows
    for r, s in permutations(range(len(rows)), 2):
        firsts, seconds = _two_largest(high[r], rows[s]), _two_largest(high[s], rows[r])
        products = [x * y for (x, a), (y, b) in product(firsts, seconds) if a != b and x and y]
        largest = max([largest, *products])
    return largest if isinstance(largest, Fraction) else None


def _two_largest(tops: Distribution, bottoms: Distribution) -> list[tuple[Any, int]]:
    """Return the two largest ratios, which may be infinite, with their places."""
    ratios = (t / b if b else math.inf if t else 0 for t, b in zip(tops, bottoms, strict=True))
    return sorted(((ratio, place) for place, ratio in enumerate(ratios)), reverse=True)[:2]


def numerators(rows: Iterable[Sequence[Fraction]]) -> list[list[int]]:
    """Return rows of fractions as integers over one denominator."""
    every = list(rows)
    common = math.lcm(*(p.denominator for row in every for p in row))
    return [[p.numerator * (common // p.denominator) for p in row] for row in every]


def monomials(weights: Iterable[int]) -> list[fmpz_poly]:
    """Return z^w for each weight, not negative."""
    return [fmpz_poly([0] * w + [1]) for w in weights]


def dot(factors: Sequence[int], polynomials: Sequence[fmpz_poly]) -> fmpz_poly:
    """Return the sum of polynomials times integers."""
    pairs = zip(factors, polynomials, strict=True)
    return sum((factor * each for factor, each in pairs if factor), fmpz_poly())


def _written(value: Any) -> Any:
    """Return JSON values that are read back exactly."""
    if isinstance(value, tuple):
        return list(map(_written, value))
    return show(value) if isinstance(value, Fraction) else value


def tree_laws(
    parents: Sequence[int | None], root: Distribution, transition: Sequence[Rows | None],
    weights: Sequence[int],
) -> Iterator[Law]:  # fmt: skip
    """Yield the law of every node of a tree, by messages up and down; theory, section 8.9."""
    z, one = monomials(weights), [fmpz_poly([1]) for _ in weights]
    order, children = downwards(parents)
    steps = [numerators(rows or ()) for rows in transition]
    below, message, outside = ([one] * len(order) for _ in range(3))
    outside[order[0]] = [fmpz_poly([p]) for p in numerators([root])[0]]
    for v in reversed(order):  # a node and all below it, given its state; given its parent's
        below[v] = reduce(_product, (message[c] for c in children[v]), z)
        message[v] = [dot(row, below[v]) for row in steps[v]]
    for v in order:  # all other nodes, with its state
        later = [*accumulate((message[c] for c in children[v][:0:-1]), _product, initial=one)]
        rest = _product(outside[v], z)
        for c in children[v]:
            here = _product(rest, later.pop())
            outside[c] = [dot(column, here) for column in zip(*steps[c], strict=True)]
            if later:  # there are more children
                rest = _product(rest, message[c])
    for before, own in zip(outside, below, strict=True):
        yield [a * b if a else None for a, b in zip(before, own, strict=True)]


def _product(some: Sequence[fmpz_poly], others: Sequence[fmpz_poly]) -> list[fmpz_poly]:
    return list(map(mul, some, others))


def downwards(parents: Sequence[int | None]) -> tuple[list[int], list[list[int]]]:
    """Return the nodes that the root leads to, each after its parent, and the children of all."""
    children: list[list[int]] = [[] for _ in parents]
    for v, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(v)
    order = [parents.index(None)]
    for v in order:
        order += children[v]
    return order, children
