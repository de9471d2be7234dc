# SPDX-License-Identifier: Apache-2.0
"""Side conditions of a channel: invariant, unbiased, and keeping each value often enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.calibration.channel_program import Program, Row
from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel, same_places
from pufferfish.rationals import parse_number, show
from pufferfish.support import Support, lattice_of


@dataclass(frozen=True)
class Conditions:
    """What a channel must meet beside privacy, each to 1e-9 (theory, section 4).

    Attributes
    ----------
    invariant : bool
        The frequencies mu stay what they are: mu M = mu.
    unbiased : bool
        The expected output is the value.
    min_keep : Fraction or None
        Each value stays itself at least that often.
    """

    invariant: bool = False
    unbiased: bool = False
    min_keep: Fraction | None = None

    @classmethod
    def checked(cls, invariant: bool, unbiased: bool, min_keep: object) -> Conditions:
        """Return the conditions that a user asked for.

        Raises
        ------
        InputError
            If ``min_keep`` is not between 0 and 1.
        """
        keep = None if min_keep is None else parse_number(min_keep, "min_keep")
        if keep is not None and not 0 <= keep <= 1:
            raise InputError(f"min_keep must be between 0 and 1, but {show(keep)} was given")
        return cls(invariant, unbiased, keep)

    @property
    def any(self) -> bool:
        """Whether there is any condition."""
        return self.invariant or self.unbiased or self.min_keep is not None

    @property
    def only_unchanged(self) -> bool:
        """Whether every value that counts must be published unchanged.

        Where the output has the distribution of X and X as its expectation, the expected square
        of their difference is E Y^2 - E X^2 = 0.
        """
        return self.invariant and self.unbiased

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions as they are listed: ``invariant``, ``unbiased``, ``min_keep 0.6``."""
        return tuple(
            name
            for name, wanted in (
                ("invariant", self.invariant),
                ("unbiased", self.unbiased),
                (f"min_keep {show(self.min_keep or Fraction(0))}", self.min_keep is not None),
            )
            if wanted
        )

    def missed_by(self, made: Channel, mu: Sequence[Fraction]) -> Fraction:
        """Return by how much a channel misses the conditions at worst, exactly."""
        if not self.any:
            return Fraction(0)
        rows = [
            [Fraction(int(m), d) for m in row]
            for row, d in zip(made.rows.tolist(), made.denominators, strict=True)
        ]
        worst = Fraction(0)
        if self.invariant:
            back = {y: x for x, y in enumerate(made.same) if y is not None}
            for y in range(made.outputs.size):
                found = sum((w * row[y] for w, row in zip(mu, rows, strict=True)), Fraction(0))
                worst = max(worst, abs(found - (mu[back[y]] if y in back else 0)))
        if self.unbiased:
            ys = lattice_of(made.outputs).values
            for value, row in zip(lattice_of(made.inputs).values, rows, strict=True):
                mean = sum((v * m for v, m in zip(ys, row, strict=True) if m), Fraction(0))
                worst = max(worst, abs(mean - value))
        if self.min_keep is not None:
            for row, kept in zip(rows, made.same, strict=True):
                if kept is not None:
                    worst = max(worst, self.min_keep - row[kept])
        return worst

    def add_to(
        self, program: Program, inputs: Support, outputs: Support, mu: Sequence[Fraction]
    ) -> None:
        """Add the conditions' rows and bounds to a program."""
        n_x, n_y = program.shape
        same = same_places(inputs, outputs)
        if self.invariant:
            back = {y: x for x, y in enumerate(same) if y is not None}
            weights = [m for m in mu if m]
            for y in range(n_y):
                columns = [x * n_y + y for x in range(n_x) if mu[x]]
                target = mu[back[y]] if y in back else Fraction(0)
                program.rows.append(Row(columns, weights, target, target))
        if self.unbiased:
            xs, ys = lattice_of(inputs).values, lattice_of(outputs).values
            # Values are taken from the middle of the outputs, where numbers are smallest.
            middle = (ys[0] + ys[-1]) / 2
            places = [y for y, v in enumerate(ys) if v != middle]
            distances = [ys[y] - middle for y in places]
            for x, value in enumerate(xs):
                columns = [x * n_y + y for y in places]
                program.rows.append(Row(columns, distances, value - middle, value - middle))
        if self.min_keep is not None:
            for x, kept in enumerate(same):
                if kept is not None:
                    program.least[x * n_y + kept] = self.min_keep

    def why_infeasible(self, epsilon: Fraction) -> str:
        """Return one line on what cannot be met, and what would make it feasible."""
        if self.only_unchanged:
            return (
                "a channel that is invariant and unbiased publishes every value unchanged, which "
                f"is not private at epsilon {_brief(epsilon)}; leave out one of the two, or ask "
                "for a larger epsilon"
            )
        asked = self.names
        advice = (
            "a larger epsilon"
            if self.min_keep is None
            else ("a smaller min_keep or a larger epsilon")
        )
        if len(asked) > 1:
            advice += ", or fewer conditions"
        return (
            f"no channel is private at epsilon {_brief(epsilon)} and {' and '.join(asked)}; "
            f"feasible with {advice}"
        )


def _brief(epsilon: Fraction) -> str:
    text = show(epsilon)
    return text if len(text) <= 12 else f"{float(epsilon):.6g}"
