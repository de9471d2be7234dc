# SPDX-License-Identifier: Apache-2.0
"""MarkovChain: records in their order, each depending on the one before; exact."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_poly

from pufferfish.errors import InputError
from pufferfish.numbers import text_of
from pufferfish.queries.model import (
    Distribution,
    Law,
    monomials,
    numerators,
    read_distribution,
    read_states,
    written,
)

Rows = tuple[Distribution, ...]


@dataclass(frozen=True, init=False)
class MarkovChain:
    """A Markov chain: P(X_1 = s), and P(X_{t+1} = s' | X_t = s) for every t, exact.

    Parameters
    ----------
    states : sequence of k names
    transition : sequence of k rows, or mapping from state to row
        Row s holds the probability of each next state: numbers or strings such as "3/4", or a
        mapping from state to probability.
    initial : "stationary", "any", or k probabilities
        The law of the first record. ``stationary``: the only one that the transitions keep; they
        must lead from every state to every other. ``any``: nothing is known of it, and whatever
        holds, holds for all of them.

    Attributes
    ----------
    start : tuple of Fraction or None
        The law of the first record; None: any.
    notes : tuple of str
        What was done to the input.
    """

    states: tuple[str, ...]
    transition: Rows
    start: Distribution | None
    notes: tuple[str, ...] = field(compare=False, repr=False)

    def __init__(self, states: Iterable[Any], transition: Any, initial: Any = "stationary") -> None:
        names, notes = read_states(states), list[str]()
        if isinstance(transition, Mapping):
            by_name = {text_of(key): row for key, row in transition.items()}
            transition = [by_name.get(name, ()) for name in names]
        given = list(transition) if isinstance(transition, Iterable) else []
        if len(given) != len(names):
            raise InputError(f"a chain of {len(names)} states needs a row of transitions for each")
        rows = tuple(
            read_distribution(row, names, f"the transitions from {name!r}", notes)
            for name, row in zip(names, given, strict=True)
        )
        object.__setattr__(self, "states", names)
        object.__setattr__(self, "transition", rows)
        if isinstance(initial, str) and initial in ("stationary", "any"):
            start = self._stationary() if initial == "stationary" else None
        else:
            start = read_distribution(initial, names, "the initial law", notes)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "notes", tuple(notes))

    @cached_property
    def irreducible(self) -> bool:
        """Whether the transitions lead from every state to every other."""
        steps = np.array([[p > 0 for p in row] for row in self.transition])
        reached = np.eye(len(steps), dtype=bool)
        for _ in self.states:
            reached = reached | (reached @ steps)
        return bool(reached.all())

    @cached_property
    def stationary(self) -> bool:
        """Whether an irreducible chain starts exactly in its stationary law."""
        return self.irreducible and self.start is not None and self.start == self._stationary()

    @property
    def any_length(self) -> bool:
        """Whether there is one law of sequences of every length, or any law may start them."""
        return self.start is None or self.stationary

    @property
    def backwards(self) -> Rows:
        """The transitions of a stationary chain when it is read from its end."""
        pi, k = self.start or (), range(len(self.states))
        return tuple(tuple(pi[r] * self.transition[r][s] / pi[s] for r in k) for s in k)

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of records in each sequence."""
        return tuple(lengths)

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every record of sequences of each length; theory, section 8.1."""
        if self.start is None:
            raise InputError("a chain that may start in any law has no scenario: state its law")
        z, k = monomials(weights), range(len(self.states))
        steps, [first] = numerators(self.transition), numerators([self.start])
        after = [[fmpz_poly([1]) for _ in k]]
        for _ in range(max(lengths) - 1):
            later = [z[r] * after[-1][r] for r in k]
            after.append([_dot(steps[s], later) for s in k])
        columns = list(zip(*steps, strict=True))
        for length in lengths:
            before = [fmpz_poly([p]) for p in first]
            for left in range(length - 1, -1, -1):
                here = [z[s] * before[s] for s in k]
                yield [here[s] * after[left][s] if here[s] else None for s in k]
                before = [_dot(columns[s], here) for s in k]

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this chain again, as JSON values."""
        initial: Any = "any" if self.start is None else written(self.start)
        rows = [written(row) for row in self.transition]
        return {
            "states": list(self.states), "transition": rows,
            "initial": "stationary" if self.stationary else initial,
        }  # fmt: skip

    def _stationary(self) -> Distribution:
        """Return the law that an irreducible chain keeps, by linear equations in rationals."""
        if not self.irreducible:
            raise InputError(
                "a chain whose transitions do not lead from every state to every other has no "
                "stationary law of its own: state the initial law (initial=[...])"
            )
        k = range(len(self.states))
        kept = [[fmpq(self.transition[r][s].numerator, self.transition[r][s].denominator) - (r == s)
                 for r in k] for s in k]  # fmt: skip
        kept[-1] = [fmpq(1) for _ in k]
        sums = fmpq_mat(len(k), 1, [fmpq(int(s == k[-1])) for s in k])
        found = fmpq_mat(kept).solve(sums)
        return tuple(Fraction(int(found[s, 0].p), int(found[s, 0].q)) for s in k)


def _dot(factors: Sequence[int], polynomials: Sequence[fmpz_poly]) -> fmpz_poly:
    pairs = zip(factors, polynomials, strict=True)
    return sum((factor * each for factor, each in pairs if factor), fmpz_poly())
