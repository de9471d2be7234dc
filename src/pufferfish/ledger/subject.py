# SPDX-License-Identifier: Apache-2.0
"""Subject: a table as it is now and a plan to release it by, priced beside what is out of it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.ledger.account import Bound, read_bound
from pufferfish.ledger.jointtable import Counted, JointTable, count
from pufferfish.ledger.out import Out
from pufferfish.ledger.persons import are_in_order
from pufferfish.ledger.price import NOTHING, Order, Price
from pufferfish.ledger.pricing import bound_together
from pufferfish.ledger.readings import Reading, rules_of_charge
from pufferfish.ledger.records import UnitCounts
from pufferfish.ledger.state import Detail, State, out_of, rows_without
from pufferfish.ledger.unittable import UnitTable, count_units
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.release import check_release, file_state
from pufferfish.scenario import Scenario
from pufferfish.tables import Table, open_table
from pufferfish.tables.identity import TableIdentity, identity_of
from pufferfish.unitloss import digest_of


@dataclass(frozen=True, eq=False)
class Offer:
    """What a further release is beside.

    Attributes
    ----------
    secret : str
        The account.
    state : State
        What is out.
    joint : JointTable
        The counts of all columns, with that of the release.
    label : str
        The axis of the release.
    own : bool
        Whether the plan was calibrated for what this very table says.
    people : mapping from unit column to UnitTable
        The rows of each person, as the table has them now.
    order : str
        The digest of the table's rows in their order now.
    """

    secret: str
    state: State
    joint: JointTable
    label: str
    own: bool
    people: Mapping[str, UnitTable]
    order: str

    def bound(self, plan: Plan) -> Bound:
        """Return the joint loss of everything with a release by this plan."""
        outs = [*self.state.outs, out_of(plan, self.label, True, order=self.order)]
        return bound_together(self.joint, outs, self.state.priors, self.people)

    @property
    def in_order(self) -> bool:
        """Whether the rows are now in the order in which they were released, where that counts."""
        return not self.people or are_in_order(self.state.outs, self.order)

    @property
    def before(self) -> Bound:
        """The joint loss of what is out, without any further release."""
        return bound_together(self.joint, self.state.outs, self.state.priors, self.people)


@dataclass(frozen=True, eq=False)
class Quote:
    """A price, and what has to be written if it is taken."""

    price: Price
    detail: Detail
    new_counts: JointTable | None
    new_people: list[UnitTable]


@dataclass(frozen=True, eq=False)
class Subject:
    """What is to be charged: a table as it is now, and a plan.

    Attributes
    ----------
    source : path, dataframe or Table
        As it was given.
    table : Table
    identity : TableIdentity
    file : tuple of int or None
        The state of the file before the identity was taken.
    plan : Plan
    reading : Reading
        How the plan reads the table.
    priors : tuple of Prior or None
        What the plan was calibrated for, if that was told.
    counted : dict
        Counts that were made already, by the readings that they are for.
    people : dict
        Those of the rows of each person, by the unit column and the readings.
    """

    source: Any
    table: Table
    identity: TableIdentity
    file: tuple[int, ...] | None
    plan: Plan
    reading: Reading
    priors: tuple[Prior, ...] | None
    counted: dict[tuple[str, ...], Counted]
    people: dict[tuple[str, ...], UnitTable]

    @classmethod
    def of(
        cls, source: Any, plan: Plan, out_of_support: str, prior: Scenario | Prior | None
    ) -> "Subject":
        """Take the identity of a table, and check what can be checked of the plan.

        Raises
        ------
        InputError
            If the plan does not name its columns, the table cannot be read, or the prior is not
            that of the plan.
        """
        if not isinstance(plan, Plan):
            raise InputError(f"a Plan is needed, but a {type(plan).__name__} was given")
        rules_of_charge(plan)
        # Checks the option; the mechanism must suit its support in any case.
        clamp = plan.release_spec(out_of_support=out_of_support).out_of_support == "clamp"
        priors = None if prior is None else _priors_of(plan, prior)
        state = file_state(source)
        table = open_table(source)
        identity = identity_of(table)
        reading = Reading(plan, clamp)
        return cls(source, table, identity, state, plan, reading, priors, {}, {})

    @property
    def secret(self) -> str:
        """The account."""
        return self.reading.rules.secret or ""

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since its identity was taken."""
        if file_state(self.source) != self.file:
            raise InputError(f"{self.table.name} changed while it was read; nothing was charged")

    def check_rows(self) -> None:
        """Refuse a table that a release would refuse, before anything is charged for it.

        Cells are looked at when they are counted. Whether the column could be read back is not
        asked: who releases it may allow that.

        Raises
        ------
        InputError
            If a person has another number of rows than the plan knows.
        """
        if self.reading.rules.unit is None:
            return
        clamp = "clamp" if self.reading.clamp else "refuse"
        spec = self.plan.release_spec(out_of_support=clamp, allow_unchanged=True)
        check_release(self.table, spec)
        self.check_unchanged()

    def quote(self, state: State) -> Quote:
        """Return the price beside what is out."""
        counted, joint, new = self.place(state)
        label = counted.labels[-1]
        people = self.people_of(state, joint, label)
        own = self.is_own(counted, people)
        order = self.identity.order
        offered = out_of(self.plan, label, own, self.reading.clamp, order)
        priors = None if own else self.priors
        others = [*state.priors, *([(self.plan.digest, priors)] if priors is not None else [])]
        outs = [*state.outs, offered]
        bound = bound_together(joint, outs, others, people)
        detail = Detail(
            axis=label,
            reading=self.reading.key,
            clamp=self.reading.clamp,
            own=own,
            rows=self.identity.rows,
            without_value=rows_without(counted.atoms[-1], counted.rows),
            without_secret=joint.without_secret,
            incomplete=joint.incomplete,
            order=order,
            priors=None
            if any(digest == self.plan.digest for digest, _ in state.priors)
            else priors,
        )
        last = state.releases[-1] if state.releases else None
        price = Price(
            secret=self.secret,
            digest=self.identity.digest,
            rows=self.identity.rows,
            column=self.reading.column,
            releases=len(state.releases),
            before=NOTHING if last is None else read_bound(last.bound, last.how),
            bound=bound,
            budget=state.account.budget,
            known=state.known,
            other_tables=state.others,
            incomplete=joint.incomplete,
            own=own,
            robust=self.plan.robust,
            person_rows=max([out.rows for out in outs] + [t.most_rows for t in people.values()]),
            order=_order(outs) if people else "same",
            told=own or self.plan.digest in dict(others),
        )
        return Quote(price, detail, new, [t for t in people.values() if not state.holds(t)])

    def record(self, table: UnitTable) -> UnitCounts:
        """Return the counts of the rows of each person as the ledger keeps them."""
        data = table.to_bytes()
        order = table.order or hashlib.sha256(data).hexdigest()
        secret, digest = self.secret, self.identity.digest
        return UnitCounts(secret, digest, table.column, order, table.labels, data)

    def people_of(self, state: State, joint: JointTable, label: str) -> dict[str, UnitTable]:
        """Return the rows of each person, by every unit column that a plan names.

        Raises
        ------
        InputError
            If a row with a released value has no unit, or a unit has several secrets.
        """
        rules = state.unit_rules
        if self.reading.rules.unit is not None:
            rules.setdefault(self.reading.rules.unit, self.reading.rules)
        if not rules:
            return {}
        known = state.readings
        known.setdefault(label, self.reading)
        readings = [(axis.label, known[axis.label]) for axis in joint.axes]
        found = {}
        for unit, own in rules.items():
            key = (unit, *(f"{name} {reading.key}" for name, reading in readings))
            if key not in self.people:
                order = self.identity.order
                self.people[key] = count_units(self.table, own, order, joint, readings)
                self.check_unchanged()
            found[unit] = self.people[key]
        return found

    def place(self, state: State) -> tuple[Counted, JointTable, JointTable | None]:
        """Return the counts for the plan's reading, of all columns, and these if they are new.

        All columns are counted again, as numbers that are written in several ways are one to the
        identity of a table, but may be several levels.

        Raises
        ------
        InputError
            If the counts are not those that the ledger holds.
        """
        counted = self._count([*state.readings.items(), (None, self.reading)])
        if state.joint is None:
            return counted, counted.joint, counted.joint
        label = counted.labels[-1]
        before = state.axes.get(self.reading.key, label)
        again = counted.joint.of(state.joint.labels)
        if not again.same_as(state.joint) or before != label:
            raise InputError(
                f"{self.table.name} is a table that the ledger knows, but the counts of its values "
                "are others than those that were charged: numbers written in several ways (250.0 "
                "and 250.00) are the same for knowing a table again, and are several levels here; "
                "write each number in one way, as in the table that was charged; nothing was "
                "charged"
            )
        if label in state.joint.labels:
            return counted, state.joint, None
        return counted, counted.joint, counted.joint

    def _count(self, readings: Sequence[tuple[str | None, Reading]]) -> Counted:
        key = tuple(f"{label} {reading.key}" for label, reading in readings)
        if key not in self.counted:
            self.counted[key] = count(self.table, self.secret, readings)
            self.check_unchanged()
        return self.counted[key]

    def is_own(self, counted: Counted, people: Mapping[str, UnitTable]) -> bool:
        """Whether the plan's digest is that of this table's own counts, in its order now."""
        atoms, support, plan = counted.atoms[-1], self.plan.support, self.plan
        names, used = counted.joint.secrets, atoms >= 0
        rows = []
        for secret in plan.protected:
            if secret not in names:
                return False
            mine = used & (counted.secrets == names.index(secret))
            array = np.zeros(support.size, dtype=np.int64)
            np.add.at(array, atoms[mine], counted.rows[mine])
            if not array.any():
                return False
            rows.append(array)
        prior = Prior.from_numerators(support, plan.protected, rows, from_rows=True)
        scenario = Scenario(prior, plan.pairs)
        if len(plan.regions) == 1:
            scenario = scenario.with_regions(plan.regions)
        if scenario.digest != plan.digest:
            return False
        unit = self.reading.rules.unit
        return unit is None or self._knows_people(prior, counted, people[unit])

    def _knows_people(self, prior: Prior, counted: Counted, table: UnitTable) -> bool:
        """Whether the plan was calibrated for the rows of these very people, in this order."""
        label, claim = counted.labels[-1], self.plan.units
        axis = counted.joint.axes[counted.joint.axis(label)].support
        units = table.units_on(label, axis, self.plan.support)
        if units is None or claim is None or not self.identity.order:
            return False
        secrets = [table.secrets.index(secret) for secret in prior.secrets]
        own = units.moved(np.arange(self.plan.support.size), secrets)
        scenario = Scenario(replace(prior, units=own), self.plan.pairs)
        return digest_of(scenario) == claim.digest


def _order(outs: Sequence[Out]) -> Order:
    """Return how the order of the rows is now, beside that of the releases before."""
    *before, now = outs
    if are_in_order(outs, now.order):
        return "same"
    return "other" if before and are_in_order(before, before[0].order) else "mixed"


def _priors_of(plan: Plan, given: Scenario | Prior) -> tuple[Prior, ...]:
    """Return the priors that a plan was calibrated for.

    Raises
    ------
    InputError
        If they are not.
    """
    scenario = plan.scenario_of(given) if isinstance(given, Prior) else given
    if not isinstance(scenario, Scenario):
        raise InputError(f"a Scenario or a Prior is needed, but a {type(given).__name__} was given")
    if len(plan.regions) == len(scenario.priors):
        scenario = scenario.with_regions(plan.regions)
    if scenario.digest != plan.digest:
        raise InputError("the prior is another one than that which the plan was calibrated for")
    return scenario.priors
