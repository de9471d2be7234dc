# SPDX-License-Identifier: Apache-2.0
"""State: what a ledger holds of one table under one secret, read as of one moment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out
from pufferfish.ledger.persons import are_in_order
from pufferfish.ledger.readings import Reading
from pufferfish.ledger.records import Account, ReleaseRecord
from pufferfish.ledger.store import View
from pufferfish.ledger.unittable import UnitHead, UnitTable
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.supportfile import any_support_from_dict, support_to_dict
from pufferfish.tables import Rules


@dataclass(frozen=True)
class Detail:
    """What the ledger remembers of a release beside its plan.

    Attributes
    ----------
    axis : str
        The axis of the joint counts that it is of.
    reading : str
        The key of how the plan reads its column.
    clamp : bool
        Whether numbers outside the support were moved to the nearest atom.
    own : bool
        Whether the plan was calibrated for what this very table says.
    rows, without_value, without_secret, incomplete : int
        Rows of the table; those without a value in this column; those without a secret; those with
        a value in some, but not all of the columns that were released until then.
    order : str
        The digest of the table's rows in the order in which they were released; empty: unknown.
    priors : tuple of Prior or None
        Those of the plan's scenario, where they are not of this table and were given.
    """

    axis: str
    reading: str
    clamp: bool
    own: bool
    rows: int
    without_value: int
    without_secret: int
    incomplete: int
    order: str = ""
    priors: tuple[Prior, ...] | None = None

    def to_json(self) -> str:
        """Return it as JSON."""
        data = {name: getattr(self, name) for name in _PLAIN}
        data["priors"] = None if self.priors is None else [_prior_to_dict(p) for p in self.priors]
        return json.dumps(data, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Detail":
        """Read back what :meth:`to_json` wrote.

        Raises
        ------
        InputError
            If it is nothing of the kind.
        """
        try:
            data = json.loads(text)
            priors = data.pop("priors")
            known = {name: _checked(data[name], kind) for name, kind in _PLAIN.items()}
            given = None if priors is None else tuple(_prior_from_dict(p) for p in priors)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"what the ledger remembers of a release is damaged ({error})"
            ) from None
        return cls(**known, priors=given)


_PLAIN: Mapping[str, type] = {
    "axis": str, "reading": str, "clamp": bool, "own": bool, "rows": int, "without_value": int,
    "without_secret": int, "incomplete": int, "order": str,
}  # fmt: skip


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def _prior_to_dict(prior: Prior) -> dict[str, Any]:
    return {
        "support": support_to_dict(prior.support),
        "secrets": list(prior.secrets),
        "counts": [[hex(int(c)) for c in row] for row in prior.counts],
    }


def _prior_from_dict(data: Mapping[str, Any]) -> Prior:
    rows = [[int(c, 16) for c in row] for row in data["counts"]]
    support = any_support_from_dict(data["support"])
    if any(len(row) != support.size or min(row) < 0 for row in rows):
        raise ValueError("a prior of another size")
    return Prior.from_numerators(support, tuple(data["secrets"]), rows)


class KeptUnits:
    """Counts of the rows of each person, read only where they are needed.

    Parameters
    ----------
    data : bytes
        What :meth:`UnitTable.to_bytes` wrote.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def head(self) -> UnitHead:
        """What was counted."""
        return UnitHead.read(self._data)

    @cached_property
    def table(self) -> UnitTable:
        """The counts too."""
        return UnitTable.from_bytes(self._data)


@dataclass(frozen=True, eq=False)
class State:
    """The releases of one table about one secret.

    Attributes
    ----------
    account : Account
    known : bool
        Whether the table was charged under that secret before.
    others : int
        How many other tables were.
    releases : list of ReleaseRecord
        In the order of their charges.
    details : list of Detail, as long
    plans : list of Plan, as long
    joint : JointTable or None
        The counts of all columns that were released; None before the first release.
    units : list of KeptUnits
        What was counted of the rows of each person.
    """

    account: Account
    known: bool
    others: int
    releases: list[ReleaseRecord] = field(default_factory=list)
    details: list[Detail] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    joint: JointTable | None = None
    units: list[KeptUnits] = field(default_factory=list)

    @property
    def outs(self) -> list[Out]:
        """The releases as pricing needs them."""
        pairs = zip(self.plans, self.details, strict=True)
        return [out_of(plan, d.axis, d.own, d.clamp, d.order) for plan, d in pairs]

    def people(self, outs: Sequence[Out]) -> dict[str, UnitTable]:
        """Return what is known of the rows of each person, for some releases, by unit column.

        Counts in the order of all these releases come before any other.
        """
        labels = {out.label for out in outs}
        found: dict[str, KeptUnits] = {}
        for kept in self.units:
            head = kept.head
            if labels <= set(head.labels) and (
                head.column not in found or are_in_order(outs, head.order)
            ):
                found[head.column] = kept
        return {unit: kept.table for unit, kept in found.items()}

    def holds(self, table: UnitTable) -> bool:
        """Whether these counts of the rows of each person are kept already."""
        return any(
            (kept.head.column, kept.head.order) == (table.column, table.order)
            and set(table.labels) <= set(kept.head.labels)
            for kept in self.units
        )

    @property
    def unit_rules(self) -> dict[str, Rules]:
        """The rules of the first plan that names each unit column."""
        found: dict[str, Rules] = {}
        for plan in self.plans:
            if plan.rules is not None and plan.rules.unit is not None:
                found.setdefault(plan.rules.unit, plan.rules)
        return found

    @property
    def readings(self) -> dict[str, Reading]:
        """One reading for every axis, in the order of the axes."""
        found: dict[str, Reading] = {}
        for plan, detail in zip(self.plans, self.details, strict=True):
            found.setdefault(detail.axis, Reading(plan, detail.clamp))
        return found

    @property
    def axes(self) -> dict[str, str]:
        """The axis of every reading that is known."""
        return {detail.reading: detail.axis for detail in self.details}

    @property
    def priors(self) -> list[tuple[str, Sequence[Prior]]]:
        """The priors of other scenarios than the table's, by their digests."""
        pairs = zip(self.plans, self.details, strict=True)
        return [(plan.digest, d.priors) for plan, d in pairs if d.priors is not None]


def out_of(
    plan: Plan,
    axis: str,
    own: bool,
    clamp: bool = False,
    order: str = "",
) -> Out:
    """Return a release as pricing needs it."""
    return Out(
        axis,
        plan.applied,
        plan.support,
        plan.pairs,
        plan.digest,
        own,
        rows_of_persons(plan),
        clamp,
        plan.regions if plan.robust else (),
        plan.epsilon_exact,
        Reading(plan, clamp).manner,
        None if plan.rules is None else plan.rules.unit,
        order,
    )


def rows_of_persons(plan: Plan) -> int:
    """Return how many rows one person may have, by a plan."""
    return 1 if plan.units is None else max(plan.units.rows, default=1)


def read_state(view: View, secret: str, digest: str) -> State:
    """Return what the ledger holds of a table under a secret.

    Raises
    ------
    InputError
        If the secret has no account, or records cannot be read.
    """
    account = view.account(secret)
    tables = view.tables(secret)
    known = any(table.digest == digest for table in tables)
    releases = view.releases(secret, digest)
    parsed: dict[str, Plan] = {}
    for release in releases:
        if release.plan not in parsed:
            parsed[release.plan] = _plan(release)
    details = {text: Detail.from_json(text) for text in {r.detail for r in releases}}
    counts = view.joint_counts(secret, digest)
    widest = max(counts, key=lambda c: len(c.columns), default=None)
    state = State(
        account,
        known,
        len(tables) - known,
        releases,
        [details[r.detail] for r in releases],
        [parsed[r.plan] for r in releases],
        None if widest is None else JointTable.from_bytes(widest.counts),
        [KeptUnits(kept.counts) for kept in view.unit_counts(secret, digest)],
    )
    lost = {d.axis for d in details.values()} - set(
        () if state.joint is None else state.joint.labels
    )
    if lost:
        raise InputError(f"the ledger lacks the joint counts of the column {min(lost)!r}")
    return state


def _plan(release: ReleaseRecord) -> Plan:
    try:
        return Plan.from_dict(json.loads(release.plan))
    except (ValueError, InputError) as error:
        raise InputError(f"the plan of the release {release.id} cannot be read: {error}") from None


def rows_without(atoms: Any, rows: Any) -> int:
    """Return the rows that have no value."""
    return int(np.asarray(rows)[np.asarray(atoms) < 0].sum())
