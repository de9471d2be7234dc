# SPDX-License-Identifier: Apache-2.0
"""Checking: every joint loss in a ledger computed again from the counts and plans that it holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.errors import PufferfishError
from pufferfish.ledger.account import Bound, budget_text, read_bound
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.pricing import bound_together
from pufferfish.ledger.records import Account, ReleaseRecord
from pufferfish.ledger.state import State, read_state
from pufferfish.ledger.store import Store

#: Relative difference of two proofs of one loss that says nothing.
_ALIKE = Fraction(1, 10**9)

#: Called with the releases checked so far, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Difference:
    """Something that is not as it should be.

    Attributes
    ----------
    secret : str
        The account.
    digest : str
        The table.
    release : str or None
        The release, or None where it is about the table.
    what : str
        What is wrong.
    """

    secret: str
    digest: str
    release: str | None
    what: str


@dataclass(frozen=True)
class Verified:
    """What a look at a whole ledger found.

    Attributes
    ----------
    releases : int
        How many were computed again.
    differences : tuple of Difference
    """

    releases: int
    differences: tuple[Difference, ...]


def verify_ledger(store: Store, progress: Progress | None = None) -> Verified:
    """Compute every joint loss again, in the order of the charges.

    Whether the counts are those of the tables is not looked at: the tables are not at hand.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    with store.reading() as view:
        accounts = {account.secret: account for account in view.accounts()}
        tables = [(s, table.digest) for s in accounts for table in view.tables(s)]
        counts = {key: view.joint_counts(*key) for key in tables}
        every = len(view.releases())
        states: dict[tuple[str, str], State | PufferfishError] = {}
        for secret, digest in tables:
            try:
                states[secret, digest] = read_state(view, secret, digest)
            except PufferfishError as error:
                states[secret, digest] = error
    found: list[Difference] = []
    done = 0
    for (secret, digest), state in states.items():
        if isinstance(state, PufferfishError):
            found.append(Difference(secret, digest, None, str(state)))
            continue
        for kept in counts[secret, digest]:
            fault = _other_counts(state.joint, kept.counts)
            if fault:
                found.append(Difference(secret, digest, None, fault))
        for record, what in _differences(state, accounts[secret]):
            done += 1
            if what:
                found.append(Difference(secret, digest, record.id, what))
            if progress is not None:
                progress(done, every)
    return Verified(done, tuple(found))


def _differences(state: State, account: Account) -> Iterator[tuple[ReleaseRecord, str]]:
    """Yield every release of a table, and what is wrong with it, if anything is."""
    outs, joint = state.outs, state.joint
    for number, record in enumerate(state.releases, 1):
        try:
            recorded = read_bound(record.bound, record.how)
            if joint is None:
                raise PufferfishError("there are no joint counts of its table")
            labels = list(dict.fromkeys(out.label for out in outs[:number]))
            known = [
                (plan.digest, detail.priors)
                for plan, detail in zip(state.plans[:number], state.details[:number], strict=True)
                if detail.priors is not None
            ]
            people = state.people(outs[:number])
            again = bound_together(joint.of(labels), outs[:number], known, people)
        except PufferfishError as error:
            yield record, f"its joint loss cannot be computed again: {error}"
            continue
        if not _alike(recorded, again):
            low = again.value is None or (recorded.value or 0) < again.value
            yield (
                record,
                (
                    f"its joint loss is recorded as {_text(recorded)}, but is {_text(again)}"
                    f"{': too little was charged' if recorded.value is not None and low else ''}"
                ),
            )
        elif not recorded.fits(account.budget):
            budget = budget_text(account.budget)
            yield record, f"its joint loss {_text(recorded)} is over the budget {budget}"
        else:
            yield record, ""


def _alike(one: Bound, other: Bound) -> bool:
    if one.value is None or other.value is None:
        return one.value == other.value
    return abs(one.value - other.value) <= _ALIKE * max(one.value, other.value)


def _other_counts(joint: JointTable | None, kept: bytes) -> str:
    """Return what is wrong with earlier counts: they must be sums of the latest."""
    try:
        earlier = JointTable.from_bytes(kept)
        if joint is not None and joint.of(earlier.labels).to_bytes() == earlier.to_bytes():
            return ""
        return f"the joint counts of {', '.join(earlier.labels)} are not those of all columns"
    except PufferfishError as error:
        return str(error)


def _text(bound: Bound) -> str:
    return "infinity" if bound.value is None else f"{float(bound):.12g}"
