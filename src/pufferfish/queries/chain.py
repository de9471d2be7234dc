# SPDX-License-Identifier: Apache-2.0
"""MarkovChain: records in their order, each depending on the one before; exact."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from flint import fmpq, fmpq_mat

from pufferfish.errors import InputError, PriorWarning, listed, warn_user
from pufferfish.numbers import Number, parse_number
from pufferfish.queries import model
from pufferfish.queries.model import Distribution, Law, Rows
from pufferfish.queries.sequences import SequenceRules, Sequences, read_sequences


@dataclass(frozen=True, init=False)
class MarkovChain(model.Model):
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
    """

    transition: Rows
    start: Distribution | None  # the law of the first record; None: any

    def __init__(
        self, states: Iterable[Any], transition: Any, initial: Any = "stationary",
        *, from_rows: bool = False, notes: Iterable[str] = (),
    ) -> None:  # fmt: skip
        names, said = model.read_states(states), list(notes)
        rows = model.read_rows(transition, names, said)
        model.set_fields(self, states=names, transition=rows, from_rows=from_rows)
        start: Distribution | None = None
        if isinstance(initial, str) and initial == "stationary":
            start = self._stationary()
        elif not isinstance(initial, str) or initial != "any":
            start = model.read_distribution(initial, names, "the initial law", said)
        model.set_fields(self, start=start, notes=tuple(said))

    @classmethod
    def from_sequences(
        cls, table: Any, *, state: str, time: str | None = None, sequence: str | None = None,
        states: Iterable[Any] | None = None, smoothing: Number = 0,
        initial: Literal["stationary", "any", "counted"] = "stationary",
        gaps: Literal["refuse", "order"] = "refuse", missing: Iterable[str] = (),
    ) -> "MarkovChain":  # fmt: skip
        """Fit a chain to the sequences of a table: shares of the transitions that occur, exact.

        The sampling error is not counted: :meth:`ChainBox.from_sequences` does.

        Parameters
        ----------
        table : path, dataframe or Table
            With a row for each record, in any order.
        state, time, sequence : str
            The columns of a record's state, of what orders the records (numbers, ISO dates or
            times), and of what marks the records of one sequence.
        states : iterable, optional
            All states, so that one may be declared that no row has; by default those that occur.
        smoothing : number
            Added to how often each transition and first state occurs, so that none is impossible.
        initial : "stationary", "any" or "counted"
            As of a chain; ``counted``: the shares of the sequences' first states.
        gaps : "refuse" or "order"
            Whether irregular times are refused, or records follow each other whatever the times;
            without times in the order of the rows.
        missing : iterable of str
            Texts that mean a missing value, which is refused.
        """
        added = parse_number(smoothing, "the smoothing")
        if added < 0:
            raise InputError(f"the smoothing must be at least 0, but {smoothing} was given")
        found = sequences_of(
            table, states, state=state, time=time, sequence=sequence, gaps=gaps, missing=missing
        )
        rows = [[n + added for n in row] for row in found.transitions().tolist()]
        lost = [name for name, row in zip(found.states, rows, strict=True) if not sum(row)]
        if lost:
            raise InputError(
                f"no record follows one of the state {listed(lost)}, of which nothing is known: "
                "give smoothing (such as 1/2), or leave it out of states and table"
            )
        firsts = [n + added for n in found.firsts().tolist()]
        chain = cls(
            found.states, list(map(_shares, rows)),
            _shares(firsts) if initial == "counted" else initial,
            from_rows=True, notes=found.notes,
        )  # fmt: skip
        never = sum(p == 0 for row in [*chain.transition, chain.start or ()] for p in row)
        if never:
            warn_user(
                f"{never} transitions or first states occur in no sequence and are impossible in "
                "the chain: nobody is protected against who holds them possible; smoothing (such "
                "as 1/2) makes them possible",
                PriorWarning,
            )
        return chain

    @cached_property
    def irreducible(self) -> bool:
        """Whether the transitions lead from every state to every other."""
        steps = np.array([[p > 0 for p in row] for row in self.transition])
        reached = np.eye(len(steps), dtype=bool)
        for _ in self.states:
            reached |= reached @ steps
        return bool(reached.all())

    @cached_property
    def stationary(self) -> bool:
        """Whether an irreducible chain starts exactly in its stationary law."""
        return self.irreducible and self.start == self._stationary()

    @property
    def any_length(self) -> bool:
        """Whether ``length="any"`` is allowed: the chain starts stationary, or in any law."""
        return self.start is None or self.stationary

    @property
    def backwards(self) -> Rows:
        """The transitions of a stationary chain when it is read from its end."""
        pi, k = self.start or (), range(len(self.states))
        return tuple(tuple(pi[r] * self.transition[r][s] / pi[s] for r in k) for s in k)

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every record of sequences of each length; theory, section 8.1."""
        if self.start is None:
            raise InputError("a chain that may start in any law has no scenario: state its law")
        for n in lengths:
            parents, steps = [None, *range(n - 1)], [None, *[self.transition] * (n - 1)]
            yield from model.tree_laws(parents, self.start, steps, weights)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this chain again, as JSON values."""
        given = super().to_json()
        initial = given.pop("start", "any")
        return given | {"initial": "stationary" if self.stationary else initial}

    def _stationary(self) -> Distribution:
        """Return the law that an irreducible chain keeps, by linear equations in rationals."""
        if not self.irreducible:
            raise InputError(
                "a chain whose transitions do not lead from every state to every other has no "
                "stationary law of its own: state the initial law (initial=[...])"
            )
        k = range(len(self.states))
        rows = [[fmpq(p.numerator, p.denominator) for p in row] for row in self.transition]
        kept = [[rows[r][s] - (r == s) for r in k] for s in k[:-1]] + [[1 for _ in k]]
        sums = [[0]] * (len(k) - 1) + [[1]]
        found = fmpq_mat(kept).solve(fmpq_mat(sums))
        return tuple(Fraction(int(p.p), int(p.q)) for p in found.entries())


def _shares(counts: Sequence[Any]) -> list[Fraction]:
    return [Fraction(n) / sum(counts) for n in counts]


def sequences_of(
    table: Any, states: Any, *, missing: str | Iterable[str] = (), **columns: Any
) -> Sequences:
    """Return the sequences of a table that a model is fitted to, and warn of what that means."""
    texts = (missing,) if isinstance(missing, str) else tuple(missing)
    found = read_sequences(table, SequenceRules(missing=texts, **columns), states)
    model.read_states(found.states)
    warn_user(
        "the model is fitted to the sequences of the table: a plan for it is an output of them, "
        "which tells of every record; keep it private, or release other sequences",
        PriorWarning,
    )
    return found
