# SPDX-License-Identifier: Apache-2.0
"""Ledger: accounts of secrets, charged before anything is released.

Releases of one table about one secret are charged together: the joint loss of all of them has to
stay within the budget of the secret (theory, section 6). A table is known by the digest of its
rows, an account by the name of the secret's column. Other tables under the same secret are other
people's; each has the whole budget for itself.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, PufferfishWarning, counted, warn_user
from pufferfish.joint import DoesNotFit
from pufferfish.ledger import store as stores
from pufferfish.ledger.account import Bound, budget_text, parse_budget
from pufferfish.ledger.checking import Progress, Verified, verify_ledger
from pufferfish.ledger.database import PATIENCE, Waiting
from pufferfish.ledger.price import ABOUT_PRIORS, Price, about_incomplete, end_of_budget, is_used_up
from pufferfish.ledger.records import Account, ReleaseRecord, UnitCounts
from pufferfish.ledger.state import read_state
from pufferfish.ledger.store import Store
from pufferfish.ledger.subject import Offer, Quote, Subject
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import Number, show
from pufferfish.scenario import Scenario

#: After so many computations that others overtook, the next one is made while they wait.
_OVERTAKEN = 5


@dataclass(frozen=True)
class Charged:
    """A release that is charged.

    Attributes
    ----------
    id : str
        Its name in the ledger.
    price : Price
    """

    id: str
    price: Price


@dataclass(frozen=True)
class Ledger:
    """A ledger file; made by :meth:`create` or :meth:`open`.

    The file is private (mode 0600): it holds plans and joint counts of the tables.

    Attributes
    ----------
    store : Store
    """

    store: Store

    @classmethod
    def create(
        cls, path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None
    ) -> "Ledger":
        """Make an empty ledger, readable by its owner only.

        Raises
        ------
        InputError
            If there is a file of that name, or it cannot be written.
        """
        return cls(stores.create(path, patience, waiting))

    @classmethod
    def open(
        cls, path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None
    ) -> "Ledger":
        """Open a ledger.

        Raises
        ------
        InputError
            If it is not there, no ledger, damaged, or of a newer version; it is left as it is.
        """
        return cls(stores.open_store(path, patience, waiting))

    @property
    def path(self) -> Path:
        """The file, links followed."""
        return self.store.path

    def open_account(self, secret: str, budget: Number) -> Account:
        """Open the account of a secret.

        Parameters
        ----------
        secret : str
            The name of the column that holds it.
        budget : number
            What the joint loss of all releases of one table may be at most; an exact decimal or
            fraction. It is never changed.

        Raises
        ------
        InputError
            If the secret has an account, or the budget is not above 0.
        """
        if not isinstance(secret, str) or not secret.strip():
            raise InputError(f"the secret must be the name of a column, but {secret!r} was given")
        return self.store.open_account(secret.strip(), parse_budget(budget))

    def accounts(self) -> list[Account]:
        """Return all accounts, by secret."""
        with self.store.reading() as view:
            return view.accounts()

    def entries(self, secret: str | None = None, digest: str | None = None) -> list[ReleaseRecord]:
        """Return the releases in the order of their charges, all or those of an account or table.

        Raises
        ------
        InputError
            If the secret has no account.
        """
        with self.store.reading() as view:
            if secret is not None:
                view.account(secret)
            return view.releases(secret, digest)

    def price(
        self,
        source: Any,
        plan: Plan,
        *,
        out_of_support: str = "refuse",
        prior: Scenario | Prior | None = None,
    ) -> Price:
        """Return the joint loss of all releases of a table about a secret, with this one.

        Nothing is charged, and nothing is drawn.

        Parameters
        ----------
        source : path, dataframe or Table
            The table that is to be released.
        plan : Plan
            It names the released column and that of the secret.
        out_of_support : "refuse" or "clamp"
            As it will be given to the release.
        prior : Scenario or Prior, optional
            What the plan was calibrated for, if that was not this table: the bound for whoever has
            this prior is then computed, instead of taken as the worst case.

        Raises
        ------
        InputError
            If there is no account, the plan does not name its columns, or a cell cannot be
            released.
        """
        subject = Subject.of(source, plan, out_of_support, prior)
        subject.check_rows()
        with self.store.reading() as view:
            state = read_state(view, subject.secret, subject.identity.digest)
        return subject.quote(state).price

    @contextmanager
    def charge(
        self,
        source: Any,
        plan: Plan,
        *,
        new_table: bool = False,
        out_of_support: str = "refuse",
        prior: Scenario | Prior | None = None,
    ) -> Iterator[Charged]:
        """Charge a release; it is on the disk before the block begins.

        If the block ends well the release is marked as released; otherwise it stays charged, and
        counts all the same: nobody knows what was seen of it.

        Parameters
        ----------
        source, plan, out_of_support, prior
            As for :meth:`price`. In the block, release this table by this plan, once.
        new_table : bool
            Whether a table that the ledger does not know, under a secret that was charged for
            others, is about other people.

        Yields
        ------
        Charged
            The release's name in the ledger, and its price.

        Raises
        ------
        DoesNotFit
            If the joint loss would exceed the budget; nothing is charged then.
        InputError
            As for :meth:`price`, and for an unknown table without ``new_table``.
        """
        subject = Subject.of(source, plan, out_of_support, prior)
        subject.check_rows()
        charged = self._charge(subject, new_table)
        try:
            yield charged
        except BaseException as error:
            error.add_note(self.stays_charged(charged))
            raise
        try:
            self.store.mark_released(charged.id)
        except InputError as error:
            # Whatever was in the way says that nothing was charged; this was, long before.
            reason = str(error).partition("; nothing was charged")[0]
            warn_user(
                f"the release {charged.id} is charged and done, and not to be repeated, but the "
                f"ledger could not be told that it is done ({reason}); it counts all the same",
                PufferfishWarning,
            )

    def offer(self, source: Any, plan: Plan, new_table: bool = False) -> "Offer":
        """Return what a further release of a table by plans that read it like this one is beside.

        Raises
        ------
        InputError
            As for :meth:`price`, and for an unknown table without ``new_table``.
        """
        subject = Subject.of(source, plan, "refuse", None)
        with self.store.reading() as view:
            state = read_state(view, subject.secret, subject.identity.digest)
        if state.others and not state.known and not new_table:
            raise self._unknown(subject, state.others)
        counted, joint, _ = subject.place(state)
        label = counted.labels[-1]
        people = subject.people_of(state, joint, label)
        own = subject.is_own(counted, people)
        return Offer(subject.secret, state, joint, label, own, people, subject.identity.order)

    def verify(self, progress: Progress | None = None) -> Verified:
        """Compute every joint loss again from the counts and the plans that the ledger holds.

        Parameters
        ----------
        progress : callable, optional
            Called with the releases checked so far, and how many there are.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        return verify_ledger(self.store, progress)

    def stays_charged(self, charged: Charged) -> str:
        """Return what to say of a release that did not end well."""
        return (
            f"the release {charged.id} stays charged, whatever was seen of it; see: pufferfish "
            f"ledger show {self.path}"
        )

    def _charge(self, subject: "Subject", new_table: bool) -> Charged:
        for _ in range(_OVERTAKEN):
            with self.store.reading() as view:
                state = read_state(view, subject.secret, subject.identity.digest)
            quote = subject.quote(state)
            self._check(subject, quote.price, new_table)
            # Compressed before, as whoever charges holds up everybody else.
            people = [subject.record(table) for table in quote.new_people]
            with self.store.begin_charge() as charge:
                if charge.account(subject.secret).version == state.account.version:
                    return self._write(charge, subject, quote, people)
        with self.store.begin_charge() as charge:
            state = read_state(charge, subject.secret, subject.identity.digest)
            quote = subject.quote(state)
            self._check(subject, quote.price, new_table)
            people = [subject.record(table) for table in quote.new_people]
            return self._write(charge, subject, quote, people)

    def _write(
        self,
        charge: stores.Charge,
        subject: "Subject",
        quote: "Quote",
        people: list[UnitCounts],
    ) -> Charged:
        secret, digest = subject.secret, subject.identity.digest
        subject.check_unchanged()
        charge.add_table(secret, digest, subject.identity.rows)
        if quote.new_counts is not None:
            charge.add_joint_counts(
                secret, digest, quote.new_counts.labels, quote.new_counts.to_bytes()
            )
        for counts in people:
            charge.add_unit_counts(counts)
        record = charge.add_release(
            secret,
            digest,
            [quote.price.column],
            mechanism=subject.plan.mechanism,
            plan=json.dumps(subject.plan.to_dict(), sort_keys=True),
            epsilon=show(subject.plan.epsilon_exact),
            bound=quote.price.bound.text,
            how=quote.price.bound.how,
            detail=quote.detail.to_json(),
        )
        return Charged(record.id, quote.price)

    def _unknown(self, subject: "Subject", others: int) -> InputError:
        return InputError(
            f"the ledger {self.path} does not know the table {subject.table.name}, but other "
            f"tables were charged under {subject.secret!r} ({others}): if a single cell was "
            "edited, a row or column added, or values written in another way, it is about the same "
            "people: release from the table that was charged; if they are other people, say so "
            "with --new-table (new_table=True)"
        )

    def _check(self, subject: "Subject", price: Price, new_table: bool) -> None:
        if price.needs_new_table and not new_table:
            raise self._unknown(subject, price.other_tables)
        if price.fits:
            return
        out = f"{counted(price.releases, 'release')} {'is' if price.releases == 1 else 'are'} out"
        before = f", with a joint loss of up to {_rounded(price.before)}" if price.releases else ""
        hints = about_incomplete(price.incomplete)
        if price.about_persons:
            hints += f"; {price.about_persons}"
        elif not price.own:
            hints += "; the plan was calibrated for another prior than that of this table"
        if not (price.own or price.told or price.person_rows > 1):
            hints += f": {ABOUT_PRIORS}"
        if price.releases and is_used_up(price.before, price.budget):
            advice = end_of_budget(price.secret, price.releases, price.budget)
        else:
            advice = f"what still fits is found by: pufferfish calibrate ... --ledger {self.path}"
        raise DoesNotFit(
            f"refused: with this release the joint loss of all releases of {subject.table.name} "
            f"about {price.secret!r} would be up to {_rounded(price.bound)} ({price.bound.how}), "
            f"over the budget {budget_text(price.budget)}; {out}{before}; nothing was charged; "
            f"{advice}{hints}"
        )


def _rounded(bound: Bound) -> str:
    return "infinity" if bound.value is None else f"{float(bound):.6g}"
