# SPDX-License-Identifier: Apache-2.0
"""The loss of all rows of one person together: exact where it can be computed, bounded where not.

For every number k of rows that is known, and every pair of secrets:

* both secrets have units with k rows: the exact joint loss of k independent releases on the joint
  prior of these units (:mod:`pufferfish.joint`), where its grid is small enough; otherwise the sum
  of the worst cases over the values that the r-th row of such a unit can have, r = 1, ..., k;
* only one of them has, or none: nothing is known of the other's joint prior, so it is k times the
  worst case over the whole support.

Rows of which all units of the pairs have the same value tell nothing, and are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from pufferfish.arrays import CountArray, IntArray
from pufferfish.certificate import Certificate
from pufferfish.errors import InputError, counted
from pufferfish.joint import Axis, GridTooLarge, JointLoss, Reach, joint_loss_of, worst_case
from pufferfish.joint.worst import total
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels, Support, lattice_of
from pufferfish.unitcounts import UnitGroup, Units, UnitsClaim

#: Cells of the grid, times secrets, up to which the joint loss of a unit's rows is computed.
MOST_CELLS = 1 << 22

JOINT, WORST = "joint loss", "worst-case sum"


@dataclass(frozen=True, eq=False)
class Case:
    """Some pairs under one adversary, for the units with k rows.

    Attributes
    ----------
    adversary : int
        Position of the prior in the scenario.
    rows : int
        The number k.
    support : Lattice or Levels
        That of the column.
    group : UnitGroup or None
        The units, where those of all these pairs are known.
    pairs : tuple of (int, int)
        Rows of the group's counts.
    """

    adversary: int
    rows: int
    support: Support
    group: UnitGroup | None
    pairs: tuple[tuple[int, int], ...]

    def loss(self, mechanism: Mechanism) -> tuple[Fraction | None, str]:
        """Return the least bound of the loss that can be had, and its name; None: infinite."""
        worst = self.worst(mechanism)
        try:
            joint = self.joint(mechanism)
        except GridTooLarge:
            return worst, WORST
        # Where both are equal, only the worst case may be an exact fraction.
        if joint.upper is None or (worst is not None and worst < joint.upper):
            return worst, (JOINT if worst is None else WORST)
        return joint.upper, JOINT

    def joint(self, mechanism: Mechanism) -> JointLoss:
        """Return the joint loss of all rows.

        Raises
        ------
        GridTooLarge
            If it cannot be computed.
        """
        masses, axes = self.problem(mechanism)
        if not axes:
            return JointLoss(Fraction(0), 0.0, "exact")
        released = [Axis(axis.support, (mechanism,)) for axis in axes]
        return joint_loss_of([masses], released, self.pairs, limit=MOST_CELLS)

    def problem(self, mechanism: Mechanism) -> tuple[CountArray, list[Axis]]:
        """Return the joint counts, and the rows that differ as axes on the atoms that occur.

        Returns
        -------
        masses : int64 array, shape (m, n_1, ..., n_j)
        axes : list of Axis, length j
            With nothing released of them.

        Raises
        ------
        GridTooLarge
            If the counts of these units are not known, or have too many cells.
        """
        if self.group is None:
            raise GridTooLarge(self.support.size**self.rows, MOST_CELLS)
        chosen = sorted({row for pair in self.pairs for row in pair})
        used = self.group.counts[chosen].any(axis=0)
        sequences = self.group.sequences[used]
        found = [np.unique(row, return_inverse=True) for row in sequences.T]
        differ = [(atoms, place.reshape(-1)) for atoms, place in found if len(atoms) > 1]
        shape = [len(atoms) for atoms, _ in differ]
        cells = prod(shape)
        if cells * len(chosen) > MOST_CELLS:
            raise GridTooLarge(cells, MOST_CELLS // len(chosen))
        masses = np.zeros((len(self.group.counts), cells), dtype=np.int64)
        at = np.zeros(len(sequences), dtype=np.int64)
        for atoms, place in differ:
            at = at * len(atoms) + place
        for row in chosen:
            np.add.at(masses[row], at, self.group.counts[row][used])
        axes = [Axis(_part(self.support, atoms, mechanism)) for atoms, _ in differ]
        return masses.reshape(len(masses), *shape), axes

    def worst(self, mechanism: Mechanism) -> Fraction | None:
        """Return the sum of the worst cases of all rows, for the worst of the pairs."""
        if self.group is None:
            return total([worst_case(mechanism, self.support)] * self.rows)
        sums = [
            total([worst_case(mechanism, self.support, reach) for reach in self._reaches(pair)])
            for pair in self.pairs
        ]
        finite = [value for value in sums if value is not None]
        return max(finite) if len(finite) == len(sums) else None

    def _reaches(self, pair: tuple[int, int]) -> Iterator[Reach]:
        """Yield the atoms that each row can have under one of the two secrets."""
        if self.group is not None:
            used = self.group.counts[list(pair)].any(axis=0)
            for row in self.group.sequences[used].T:
                atoms = np.unique(row)
                yield Reach(((int(atoms[0]), int(atoms[-1])),), (atoms,))


def _part(support: Support, atoms: IntArray, mechanism: Mechanism) -> Support:
    """Return the atoms that occur as a support of their own; codes keep their distances."""
    if isinstance(support, Levels) and not isinstance(mechanism, DiscreteLaplace):
        return Levels(tuple(support.names[k] for k in atoms.tolist()), support.ordered)
    lattice = lattice_of(support)
    index = lattice.index[atoms]
    return Lattice(lattice.step, lattice.origin + int(index[0]), index - index[0])


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
        ``joint loss`` or ``worst-case sum``, there.
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
    for k in sorted(known | set(numbers)):
        for rho, (prior, own) in enumerate(zip(scenario.priors, units, strict=True)):
            pairs = [(prior.row(first), prior.row(second)) for first, second in scenario.pairs]
            group = own.group(k)
            has = set() if group is None else set(np.flatnonzero(group.counts.any(axis=1)).tolist())
            both = tuple(pair for pair in pairs if has.issuperset(pair))
            if both:
                yield Case(rho, k, scenario.support, group, both)
            if len(both) < len(pairs):
                rest = tuple(pair for pair in pairs if pair not in both)
                yield Case(rho, k, scenario.support, None, rest)


def units_loss(scenario: Scenario, mechanism: Mechanism, numbers: Iterable[int] = ()) -> UnitsLoss:
    """Return the loss of all rows of a unit together, each released by the same mechanism.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units.
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
    largest = UnitsLoss(Fraction(0), 1, JOINT, ())
    seen = []
    for case in cases(scenario, numbers):
        upper, name = case.loss(mechanism)
        seen.append(case.rows)
        if upper is None:
            # No other number of rows can be worse.
            largest = replace(largest, upper=None, rows=case.rows, name=name)
            break
        if largest.upper is not None and upper >= largest.upper:
            largest = replace(largest, upper=upper, rows=case.rows, name=name)
    return replace(largest, numbers=tuple(dict.fromkeys(seen)))


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
    if len(numbers) > 6:
        return f"{numbers[0]} to {numbers[-1]}"
    return " or ".join(map(str, numbers))


def _protected(scenario: Scenario) -> list[list[int]]:
    """Return the positions of the protected secrets, for every prior."""
    return [[prior.row(name) for name in scenario.protected] for prior in scenario.priors]
