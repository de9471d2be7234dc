# SPDX-License-Identifier: Apache-2.0
"""Models: joint laws of records that depend on each other, exact in rationals."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from flint import fmpz_poly

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import parse_number, show, text_of
from pufferfish.priors.given import TOLERANCE

#: For one record: for each state the polynomial whose coefficient n is proportional to
#: P(sum of all weights = n, this record has the state); None where the state is impossible there.
Law = list[fmpz_poly | None]
Distribution = tuple[Fraction, ...]
Rows = tuple[Distribution, ...]


class Model(Protocol):
    """A joint law of records, each of which has one of some states."""

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states."""

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of records in each group that is independent of all others."""

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every record of every group; theory, section 8.1."""

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this model again, as JSON values."""


def read_states(states: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of states, at least two and all different."""
    given = [] if isinstance(states, str) or not isinstance(states, Iterable) else list(states)
    names = tuple(text_of(state) for state in given)
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"states must be two or more different names, but {states!r} was given")
    return names


def read_distribution(
    given: Any, states: Sequence[str], what: str, notes: list[str]
) -> Distribution:
    """Return probabilities in the order of the states; a note says if they were renormalised."""
    if isinstance(given, Mapping):
        named = {text_of(key): value for key, value in given.items()}
        unknown = [name for name in named if name not in states]
        if unknown:
            raise InputError(
                f"{what} names the unknown state {unknown[0]!r}{did_you_mean(unknown[0], states)}; "
                f"the states are {listed(states)}"
            )
        given = [named.get(state, 0) for state in states]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what} must be a list of probabilities, but {given!r} was given")
    found = [parse_number(p, f"a probability of {what}") for p in given]
    if len(found) != len(states):
        raise InputError(f"{what} needs {len(states)} probabilities, but {len(found)} were given")
    total = sum(found, Fraction(0))
    if min(found) < 0 or abs(total - 1) > TOLERANCE:
        wrong = f"sum to {float(total):.10g}, not to 1"
        wrong = f"hold the negative one {show(min(found))}" if min(found) < 0 else wrong
        raise InputError(f"the probabilities of {what} {wrong}")
    if total != 1:
        notes.append(f"the probabilities of {what} were renormalised to the sum 1")
    return tuple(p / total for p in found)


def read_rows(given: Any, states: Sequence[str], what: str, notes: list[str]) -> Rows:
    """Return transitions: for each state the probabilities of the next one; of ``what``."""
    if isinstance(given, Mapping):
        by_name = {text_of(key): row for key, row in given.items()}
        given = [by_name.get(name, ()) for name in states]
    rows = list(given) if isinstance(given, Iterable) else []
    if len(rows) != len(states):
        raise InputError(f"{what} of {len(states)} states needs a row of transitions for each")
    return tuple(
        read_distribution(row, states, f"the transitions from {name!r}", notes)
        for name, row in zip(states, rows, strict=True)
    )


def numerators(rows: Iterable[Distribution]) -> list[list[int]]:
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


def written(distribution: Distribution) -> list[str]:
    """Return a distribution as texts that are read back exactly."""
    return [show(p) for p in distribution]
