# SPDX-License-Identifier: Apache-2.0
"""The loss of all rows of one person together: exact where it can be computed, bounded where not.

For every number k of rows that is known, and every pair of secrets:

* both secrets have units with k rows: the exact joint loss of k independent releases, of one column
  or of several, on the joint prior of these units (:mod:`pufferfish.joint.unitrows`), where its
  grid is small enough; otherwise the least bound that is found;
* only one of them has, or none: nothing is known of the other's joint prior, so it is k times the
  worst case over the whole support.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pufferfish.certificate import Certificate
from pufferfish.errors import InputError, counted
from pufferfish.joint import Axis, Bound, GridTooLarge
from pufferfish.joint.loss import NOTHING
from pufferfish.joint.unitrows import (
    Places,
    UnitRows,
    exactly_counted,
    smallest_unit_bound,
    unknown_unit_bound,
)
from pufferfish.mechanisms import Mechanism
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario
from pufferfish.unitcounts import Units, UnitsClaim

JOINT = "joint loss"


@dataclass(frozen=True, eq=False)
class Case:
    """Some pairs under one adversary, for the units with k rows.

    Attributes
    ----------
    rows : int
        The number k.
    units : UnitRows or None
        The units, where those of all these pairs are known.
    pairs : tuple of (int, int)
        Rows of their counts.
    columns, most : int
        How many columns the scenario knows, and how many rows a unit may have in any other.
    """

    rows: int
    units: UnitRows | None
    pairs: tuple[tuple[int, int], ...]
    columns: int
    most: int

    def bound(
        self, released: Sequence[Axis], labels: Sequence[Sequence[str]], limit: int | None = None
    ) -> Bound:
        """Return the least bound that was found of the loss of all rows together.

        Parameters
        ----------
        released : sequence of Axis
            The columns of the scenario, then others, with everything that is released of them.
        labels : sequence of sequences of str
            What each release of each column is called.
        limit : int, optional
            Cells that a grid may have.
        """
        known = self.columns
        others = list(zip(released[known:], labels[known:], strict=True)) * self.most
        if self.units is None:
            own = list(zip(released[:known], labels[:known], strict=True)) * self.rows
            return unknown_unit_bound([*own, *others])
        return smallest_unit_bound(self.units, released, labels, self.pairs, others, limit)

    def places(self, released: Sequence[Axis], noisy: Collection[int]) -> Places:
        """Return every place at which rows differ, all counted together.

        Parameters
        ----------
        released : sequence of Axis
            As for :meth:`bound`.
        noisy : collection of int
            Columns that noise is yet to be put on.

        Raises
        ------
        GridTooLarge
            If they cannot be, or nothing is known of these units.
        """
        if self.units is None:
            raise GridTooLarge(released[0].support.size ** self.rows, 0)
        return exactly_counted(self.units, released, self.pairs, noisy)


@dataclass(frozen=True)
class UnitsLoss:
    """An upper bound of the loss of all rows of a unit together.

    Attributes
    ----------
    upper : Fraction or None
        The bound, exact; None: infinite.
    rows : int
        The number of rows at which it is attained.
    name : str
        Which bound it is there, as in :class:`pufferfish.joint.Bound`.
    numbers : tuple of int
        All numbers of rows that it holds for.
    """

    upper: Fraction | None
    rows: int
    name: str
    numbers: tuple[int, ...]

    @property
    def value(self) -> float:
        """The bound as a double, rounded up; may be infinite."""
        return float("inf") if self.upper is None else float_up(self.upper)

    @property
    def how(self) -> str:
        """Which bound it is, in words."""
        return f"{self.name} of {counted(self.rows, 'row')} of one person"

    def at_most(self, epsilon: Fraction) -> bool:
        """Whether the loss was proved to be at most epsilon, compared exactly."""
        return self.upper is not None and self.upper <= epsilon


def units_of(scenario: Scenario) -> tuple[Units, ...]:
    """Return the units of every prior; empty where none was counted by units.

    Raises
    ------
    InputError
        If only some priors were, or by different columns.
    """
    found = [prior.units for prior in scenario.priors]
    units = [own for own in found if own is not None]
    named = [p.report for p in scenario.priors if p.report is not None and p.report.rules.unit]
    if not units and not named:
        return ()
    if len(units) < len(found) or len({own.column for own in units}) > 1:
        raise InputError(
            "the rows of one person must be known by the same column (unit) in the priors of all "
            "adversaries, or in none of them"
        )
    return tuple(units)


def cases(scenario: Scenario, numbers: Iterable[int] = ()) -> Iterator[Case]:
    """Yield what has to be proved, from the smallest number of rows.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units.
    numbers : iterable of int
        Further numbers of rows that a unit may have, beside those that occur.
    """
    units = units_of(scenario)
    protected = _protected(scenario)
    known = {k for own, rows in zip(units, protected, strict=True) for k in own.numbers(rows)}
    product = scenario.product
    shape = (scenario.support.size,) if product is None else product.shape
    every = known | set(numbers)
    most = max([own.most for own in units] + list(every), default=1)
    for k in sorted(every):
        for prior, own in zip(scenario.priors, units, strict=True):
            pairs = [(prior.row(first), prior.row(second)) for first, second in scenario.pairs]
            group = own.group(k)
            has = set() if group is None else set(np.flatnonzero(group.counts.any(axis=1)).tolist())
            both = tuple(pair for pair in pairs if has.issuperset(pair))
            if both and group is not None:
                rows = UnitRows.of(group.sequences, group.counts, shape)
                yield Case(k, rows, both, len(shape), most)
            if len(both) < len(pairs):
                rest = tuple(pair for pair in pairs if pair not in both)
                yield Case(k, None, rest, len(shape), most)


def units_bound(
    scenario: Scenario,
    released: Sequence[Axis],
    labels: Sequence[Sequence[str]],
    numbers: Iterable[int] = (),
    limit: int | None = None,
) -> tuple[Bound, int, tuple[int, ...]]:
    """Return a bound of what all rows of a unit reveal together, by everything that is released.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units, of one column or of several together.
    released : sequence of Axis
        The columns of the scenario, then others, with what is released of each in every row.
    labels : sequence of sequences of str
        What each release of each column is called.
    numbers : iterable of int
        Further numbers of rows that a unit may have; nothing is known of such units.
    limit : int, optional
        Cells that a grid may have.

    Returns
    -------
    bound : Bound
        The largest over all numbers of rows, adversaries and pairs.
    rows : int
        The number of rows at which it is attained.
    numbers : tuple of int
        All numbers of rows that were looked at.

    Raises
    ------
    InputError
        If a mechanism does not suit its column.

    Notes
    -----
    Theory, section 6.
    """
    largest, rows = Bound(Fraction(0), JOINT, NOTHING, (), ()), 1
    every = list(cases(scenario, numbers))
    for case in every:
        bound = case.bound(released, labels, limit)
        if bound.upper is None:
            # No other number of rows can be worse.
            largest, rows = bound, case.rows
            break
        if largest.upper is not None and bound.upper >= largest.upper:
            largest, rows = bound, case.rows
    return largest, rows, tuple(dict.fromkeys(case.rows for case in every))


def units_loss(scenario: Scenario, mechanism: Mechanism, numbers: Iterable[int] = ()) -> UnitsLoss:
    """Return the loss of all rows of a unit together, each released by the same mechanism.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units, of one column.
    mechanism : DiscreteLaplace or Channel
        What is done to every row.
    numbers : iterable of int
        Further numbers of rows that a unit may have; nothing is known of such units.

    Raises
    ------
    InputError
        If the mechanism does not suit the support.

    Notes
    -----
    Theory, section 6.
    """
    released = [Axis(scenario.support, (mechanism,))]
    bound, rows, seen = units_bound(scenario, released, [["1"]], numbers)
    return UnitsLoss(bound.upper, rows, bound.name, seen)


def claim_of(scenario: Scenario, found: UnitsLoss) -> UnitsClaim:
    """Return what a plan says of the rows of one person."""
    return UnitsClaim(found.numbers, found.value, found.how, digest_of(scenario))


def digest_of(scenario: Scenario) -> str:
    """SHA-256 of the units of all priors; as private as the counts."""
    h = hashlib.sha256()
    units = units_of(scenario)
    names = sorted(scenario.protected)
    own = (
        mine.digest([prior.row(name) for name in names])
        for prior, mine in zip(scenario.priors, units, strict=True)
    )
    for digest in sorted(own):
        h.update(digest)
    return f"sha256:{h.hexdigest()}"


def together(certificate: Certificate, found: UnitsLoss, epsilon: Fraction) -> Certificate:
    """Return the certificate of single rows as one of all rows of a unit, which was proved too.

    ``found`` is at most epsilon.
    """
    # As everywhere the double nearest to epsilon stands for epsilon itself.
    loss = min(found.value, float(epsilon))
    single = certificate.statement.replace("The privacy loss", "The privacy loss of one row", 1)
    statement = (
        f"{single} All rows of one person together, {_listed(found.numbers)} of them, keep within "
        f"epsilon too: the largest loss is the {found.how}."
    )
    return replace(certificate, loss=max(certificate.loss, loss), statement=statement)


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) > 6 and numbers[-1] - numbers[0] + 1 == len(numbers):
        return f"{numbers[0]} to {numbers[-1]}"
    if len(numbers) > 6:
        return f"{len(numbers)} different numbers from {numbers[0]} to {numbers[-1]}"
    return " or ".join(map(str, numbers))


def _protected(scenario: Scenario) -> list[list[int]]:
    """Return the positions of the protected secrets, for every prior."""
    return [[prior.row(name) for name in scenario.protected] for prior in scenario.priors]
