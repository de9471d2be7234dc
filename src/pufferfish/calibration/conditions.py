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
from pufferfish.regions import brief
from pufferfish.support import Support, lattice_of

#: Above it the channel of this epsilon is used, for e^epsilon is one of the solver's coefficients.
#: Without side conditions that costs at most m / (e^20 - 1 + m) of the largest cost more, 4e-9 for
#: two secrets (theory, section 4).
LARGEST_EPSILON = Fraction(20)


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

    def why_infeasible(
        self, epsilon: Fraction, *, robust: bool = False, most: Fraction | None = None
    ) -> str:
        """Return one line on what cannot be met, and what would make it feasible.

        Parameters
        ----------
        epsilon : Fraction
        robust : bool
            Whether the channel is to hold for a whole region of priors.
        most : Fraction, optional
            A ``min_keep`` that is feasible with all the rest, the largest of some digits.
        """
        if self.only_unchanged:
            return (
                "a channel that is invariant and unbiased publishes every value unchanged, which "
                f"is not private at epsilon {brief(epsilon)}; leave out one of the two, or ask "
                "for a larger epsilon"
            )
        asked = [
            words
            for words, wanted in (
                ("is invariant", self.invariant),
                ("is unbiased", self.unbiased),
                (
                    f"keeps every value at least {show(self.min_keep or Fraction(0))} of the time",
                    self.min_keep is not None,
                ),
            )
            if wanted
        ]
        return (
            f"no channel that is private at epsilon {brief(min(epsilon, LARGEST_EPSILON))} "
            f"{' and '.join(asked)}; {self.what_helps(epsilon, robust=robust, most=most)}"
        )

    def what_helps(
        self, epsilon: Fraction, *, robust: bool = False, most: Fraction | None = None
    ) -> str:
        """Return what would make the conditions feasible; parameters as above."""
        ways = []
        if self.min_keep is not None:
            ways.append("a smaller min_keep" if most is None else f"min_keep {show(most)} or less")
        if epsilon < LARGEST_EPSILON:
            ways.append("a larger epsilon")
        if len(self.names) > 1:
            ways.append("fewer conditions")
        text = f"feasible with {(' or ' if most is None else ', or with ').join(ways)}"
        if epsilon >= LARGEST_EPSILON:
            text += (
                f" (channels are computed for epsilon {show(LARGEST_EPSILON)} at most, unless "
                "every value may be published unchanged)"
            )
        if robust:
            text += (
                "; the channel is to hold for a whole region (confidence or tv_radius), without "
                "which it may be feasible as asked"
            )
        return text
