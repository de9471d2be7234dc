# SPDX-License-Identifier: Apache-2.0
"""Household: few records in any joint law, or members of whom only the number counts; exact."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import fmpz_poly

from pufferfish.errors import InputError
from pufferfish.numbers import text_of
from pufferfish.queries import model
from pufferfish.queries.model import Distribution, Law
from pufferfish.queries.sequences import check_known

Joint = tuple[tuple[tuple[str, ...], Fraction], ...]


@dataclass(frozen=True, init=False)
class Household(model.Model):
    """Members whose states have a joint law, given by one of two arguments.

    Parameters
    ----------
    states : sequence of k names
    joint : mapping, or sequence of pairs
        From the states of all members, ``("ill", "well", ...)``, to their probability; what is
        left out has none.
    counts : sequence of n + 1 probabilities
        For two states: of 0, 1, ..., n members in the second one. Which ones these are is as
        likely as any others.
    """

    joint: Joint | None
    counts: Distribution | None

    def __init__(self, states: Iterable[Any], joint: Any = None, counts: Any = None) -> None:
        names, notes = model.read_states(states), list[str]()
        if (joint is None) == (counts is None):
            raise InputError("a household needs either joint or counts")
        if joint is not None:
            joint = _read_joint(joint, names, notes)
        else:
            counts = _read_counts(counts, names, notes)
        model.set_fields(self, states=names, joint=joint, counts=counts, notes=tuple(notes))

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of members."""
        return (len(self.joint[0][0]) if self.joint else len(self.counts or ()) - 1,)

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every member; with counts it is that of each."""
        [size] = self.sizes(())
        for member in range(size):
            masses = [Counter[int]() for _ in self.states]
            for state, total, mass in self._terms(weights, member):
                masses[state][total] += mass
            rows = ([own[n] for n in range(max(own, default=0) + 1)] for own in masses)
            yield [fmpz_poly(row) if any(row) else None for row in rows]

    def _terms(self, weights: Sequence[int], member: int) -> Iterator[tuple[int, int, int]]:
        """Yield the state of a member, the sum of all weights and what it is proportional to."""
        if self.joint:
            [masses] = model.numerators([[p for _, p in self.joint]])
            for (states, _), mass in zip(self.joint, masses, strict=True):
                at = [self.states.index(state) for state in states]
                yield at[member], sum(weights[s] for s in at), mass
        else:
            [masses] = model.numerators([self.counts or ()])
            for j, mass in enumerate(masses):
                others = len(masses) - 1 - j
                total = others * weights[0] + j * weights[1]
                yield 0, total, mass * others
                yield 1, total, mass * j


def _read_counts(given: Any, states: Sequence[str], notes: list[str]) -> Distribution:
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    found = list(given) if several else []
    if len(states) != 2 or len(found) < 2:
        raise InputError(
            "counts must be a list of the probabilities of 0, 1, ..., n members in the second of "
            f"two states, but {given!r} was given for {len(states)} states"
        )
    numbers = [str(n) for n in range(len(found))]
    return model.read_distribution(found, numbers, "the number of members", notes)


def _read_joint(given: Any, states: Sequence[str], notes: list[str]) -> Joint:
    try:
        pairs = list(given.items() if isinstance(given, Mapping) else given)
        every = [tuple(map(text_of, members)) for members, _ in pairs]
    except (TypeError, ValueError):  # no pairs, or no members
        pairs = every = []
    if not every or not every[0] or len(set(map(len, every))) > 1 or len(set(every)) < len(every):
        raise InputError(
            f"joint must map a state for each member, such as ({states[0]!r}, {states[1]!r}), to "
            f"their probability, and nothing twice, but {given!r} was given"
        )
    check_known((name for members in every for name in members), states, "joint")
    law = model.read_distribution([p for _, p in pairs], list(map(str, every)), "joint", notes)
    return tuple(sorted((members, p) for members, p in zip(every, law, strict=True) if p))
