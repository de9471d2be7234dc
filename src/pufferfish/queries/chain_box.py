# SPDX-License-Identifier: Apache-2.0
"""ChainBox: all Markov chains whose transitions lie between two matrices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pufferfish.errors import InputError
from pufferfish.numbers import Number
from pufferfish.priors.ambiguity import UNIT, clopper_pearson, parse_level
from pufferfish.queries import model
from pufferfish.queries.chain import MarkovChain, sequences_of
from pufferfish.queries.model import Distribution, Rows

_GRID = 10**18  # the ends of fitted intervals are rounded outwards to multiples of 1 / this


@dataclass(frozen=True, init=False)
class ChainBox(model.Model):
    """The Markov chains with each entry of their transitions between two bounds, exact.

    Parameters
    ----------
    states : sequence of k names
    lower, upper : k rows of k numbers
        The bounds; they are kept as tight as rows that sum to 1 make them.
    initial : "stationary" or "any"
        Whether every member starts in its own stationary law, or in any law.
    """

    lower: Rows
    upper: Rows
    initial: Literal["stationary", "any"]
    any_length: ClassVar[bool] = True  # what bounds all members does so at every length

    def __init__(
        self, states: Iterable[Any], lower: Any, upper: Any, initial: Any = "stationary",
        *, from_rows: bool = False, notes: Iterable[str] = (),
    ) -> None:  # fmt: skip
        names = model.read_states(states)
        if initial not in ("stationary", "any"):
            raise InputError(f"initial must be 'stationary' or 'any', but {initial!r} was given")
        least, most = zip(
            *map(_tight, names, _matrix(lower, names), _matrix(upper, names)), strict=True
        )
        model.set_fields(
            self, states=names, lower=least, upper=most, initial=initial, notes=tuple(notes),
            from_rows=from_rows,
        )  # fmt: skip

    @classmethod
    def from_sequences(
        cls, table: Any, *, states: Iterable[Any] | None = None, confidence: Number = "0.95",
        initial: Literal["stationary", "any"] = "stationary", **columns: Any,
    ) -> "ChainBox":  # fmt: skip
        """Fit a box to the sequences of a table.

        Each transition has a Clopper-Pearson interval, at the level 1 - (1 - confidence) / k**2:
        valid only asymptotically, for rows of dependent counts (theory, section 8.11). ``columns``
        are state, time, sequence, gaps and missing as in :meth:`MarkovChain.from_sequences`.
        """
        level = parse_level(confidence)
        found = sequences_of(table, states, **columns)
        alpha = (1 - level) / len(found.states) ** 2
        ends = [[clopper_pearson(n, sum(row), alpha) for n in row]
                for row in found.transitions().tolist()]  # fmt: skip
        lower = [[Fraction(p * _GRID // UNIT, _GRID) for p, _ in row] for row in ends]
        upper = [[Fraction(-(-p * _GRID // UNIT), _GRID) for _, p in row] for row in ends]
        return cls(found.states, lower, upper, initial, from_rows=True, notes=found.notes)

    def __contains__(self, chain: object) -> bool:
        """Whether a chain is a member."""
        if not isinstance(chain, MarkovChain) or chain.states != self.states:
            return False
        every = zip(self.lower, chain.transition, self.upper, strict=True)
        within = all(a <= p <= b for rows in every for a, p, b in zip(*rows, strict=True))
        return within and (self.initial == "any" or chain.stationary)

    def chains(self) -> tuple[MarkovChain, ...] | None:
        """Return stationary chains whose largest loss bounds that of all members; None: unknown.

        Two states, alpha = P(0 -> 1), beta = P(1 -> 0): while alpha + beta <= 1 the loss falls in
        both (theory, section 8.7), at 1 to that of independent records; beyond it is no more than
        theirs for any initial law, as what surrounds a record takes back what the record adds.
        """
        alpha, beta = self.lower[0][1], self.lower[1][0]
        if len(self.states) == 2 and alpha + beta >= 1:
            return (MarkovChain(self.states, [[Fraction(1, 2)] * 2] * 2),)
        if len(self.states) > 2 or self.initial == "any" or not alpha * beta:
            return None
        return (MarkovChain(self.states, [[1 - alpha, alpha], [beta, 1 - beta]]),)

    @property
    def k_squared(self) -> Fraction | None:
        """A bound of all P(r,a) P(s,b) / (P(r,b) P(s,a)), theory, section 8.7; None: infinite."""
        return model.cross_ratio(self.lower, self.upper)


def _matrix(given: Any, states: Sequence[str]) -> list[list[Fraction]]:
    rows = model.read_matrix(given, states, "a matrix of bounds")
    return [model.read_numbers(row, len(states), "a row of bounds") for row in rows]


def _tight(
    state: str, low: Sequence[Fraction], high: Sequence[Fraction]
) -> tuple[Distribution, Distribution]:
    """Return the least and greatest values that entries of a row between these bounds have."""
    pairs = [(max(a, Fraction(0)), min(b, Fraction(1))) for a, b in zip(low, high, strict=True)]
    least, most = (sum(ends, Fraction(0)) for ends in zip(*pairs, strict=True))
    if any(a > b for a, b in pairs) or not least <= 1 <= most:
        raise InputError(f"no distribution lies within the bounds of the row of state {state!r}")
    lower = tuple(max(a, 1 - most + b) for a, b in pairs)
    return lower, tuple(min(b, 1 - least + a) for a, b in pairs)
