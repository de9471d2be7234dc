# SPDX-License-Identifier: Apache-2.0
"""Ledger: datasets with a budget, charged before anything is released of them.

All releases of one table about one secret are charged together: their joint loss has to stay
within the budget (theory, section 6). A table is known by the digest of its rows, fixed when its
dataset is opened; another table about the same secret is either an edited copy, which is refused,
or one of other people, by the word of the user, with a budget of its own.
"""

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from pufferfish.errors import CheckFailed, InputError, PufferfishWarning, listed, warn_user
from pufferfish.files import home_expanded, named_path
from pufferfish.ledger import records, store
from pufferfish.ledger.answers import AnswerSubject
from pufferfish.ledger.counts import COUNTS, is_draw
from pufferfish.ledger.pricing import Price, State, Subject, dataset_of, stamp_of
from pufferfish.ledger.records import Dataset, ReleaseRecord, parse_budget, parse_name
from pufferfish.ledger.verify import Verified, verify_ledger
from pufferfish.numbers import Number, checked_flag, show_short
from pufferfish.plans.plan import Plan
from pufferfish.queries.plan import QueryPlan
from pufferfish.tables.identity import identity_of
from pufferfish.tables.source import open_table


class DoesNotFit(CheckFailed):
    """A release that would exceed the budget; nothing was charged."""


@dataclass(frozen=True)
class Charged:
    """A release that is charged; as a context manager it notes that its output is in place.

    If the block ends well the release is marked as released; otherwise it stays charged, and
    counts all the same: nobody knows what was seen of it.
    """

    id: str
    price: Price
    path: Path

    def __enter__(self) -> "Charged":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.add_note(
                f"the release {self.id} stays charged, whatever was seen of it; see: pufferfish "
                f"ledger show {self.path}"
            )
            return
        try:
            with store.writing(self.path) as connection:
                records.mark_released(connection, self.id)
        except InputError as fault:
            warn_user(
                f"the release {self.id} is charged and done, and not to be repeated, but the "
                f"ledger could not be told that it is done ({fault}); it counts all the same",
                PufferfishWarning,
            )


class Books(NamedTuple):
    """All that a ledger holds, in the order of opening and charging."""

    datasets: tuple[Dataset, ...]
    releases: tuple[ReleaseRecord, ...]


@dataclass(frozen=True)
class Ledger:
    """A ledger file; made by :meth:`create` or :meth:`open`.

    The file is private (mode 0600): it holds plans and digests of the tables.

    Attributes
    ----------
    path : Path
        The file, links followed.
    """

    path: Path

    @classmethod
    def create(cls, path: str | Path) -> "Ledger":
        """Make an empty ledger in a new file, readable by its owner only."""
        made = cls(_place(path))
        store.create(made.path)
        return made

    @classmethod
    def open(cls, path: str | Path) -> "Ledger":
        """Open a ledger that :meth:`create` made, after a look at the whole file.

        One that is damaged, or of another version, is refused and left as it is.
        """
        found = cls(_place(path))
        store.check(found.path)
        return found

    def dataset(
        self, name: str, table: Any, *, secret: str, budget: Number, other_people: bool = False
    ) -> Dataset:
        """Open a dataset: a table as it is now, under one secret, with a budget.

        Parameters
        ----------
        name : str
        table : path, dataframe or Table
            Its digest is fixed; edited or grown tables are refused later.
        secret : str
            The column that holds the secret.
        budget : number
            The most that the joint loss of all releases may be; an exact decimal or fraction. It
            is never changed.
        other_people : bool
            Whether the people of this table are others than those of the datasets about this
            secret that the ledger has. Recorded, and shown.

        Raises
        ------
        InputError
            If the name or the table has a dataset already, the ledger has other ones about the
            secret and ``other_people`` is not said, or the budget is not above 0.
        """
        name, exact, opened = parse_name(name), parse_budget(budget), open_table(table)
        column, identity = opened.column(secret), identity_of(opened)
        others = checked_flag(other_people, "other_people")
        made = Dataset(name, column, exact, identity.digest, identity.rows, others)
        with store.writing(self.path) as connection:
            datasets = records.datasets(connection)
            about = [known for known in datasets if known.secret == column]
            for known in datasets:
                if known.name == made.name or (known in about and known.digest == made.digest):
                    raise InputError(
                        f"{self.path} has the dataset {known.name!r} of {known.rows} rows already; "
                        "its table and its budget are never changed"
                    )
            if about and not others:
                raise InputError(
                    f"{self.path} has a dataset about {column!r} already "
                    f"({listed(known.name for known in about)}): if the people of {opened.name} "
                    "are others, say so with --other-people (other_people=True)"
                )
            records.add_dataset(connection, made)
        return made

    def price(self, table: Any, plan: Plan | QueryPlan, **options: Any) -> Price:
        """Return the joint loss of all releases of a table about a secret, with this one.

        Nothing is charged, and nothing is drawn.

        Parameters
        ----------
        table : path, dataframe or Table
            The table that is to be released.
        plan : Plan or QueryPlan
            It names the released column and that of the secret. Of a query the secret is the column
            of states.
        **options
            As they will be given to the release: ``min_scale``, ``out_of_support``, ...

        Raises
        ------
        InputError
            If the ledger has no such dataset, or the plan does not name its columns, reads its
            column otherwise than earlier releases, or cannot be released.
        """
        subject = _subject(table, plan, options)
        return subject.price(self._state(subject))

    def charge(self, table: Any, plan: Plan | QueryPlan, **options: Any) -> Charged:
        """Charge a release, at once and durably; draw it in the block of ``with``.

        Release this table by this plan, once, with these options, and neither with further
        columns nor from a seed: nothing accounts for these.

        Parameters
        ----------
        table, plan, **options
            As for :meth:`price`.

        Returns
        -------
        Charged
            The release's name in the ledger, and its price; to be used as a context manager.

        Raises
        ------
        DoesNotFit
            If the joint loss would exceed the budget; nothing is charged then.
        InputError
            As for :meth:`price`.
        """
        subject = _subject(table, plan, options)
        subject.rehearse()
        state = self._state(subject)
        price, bound = _fitting(subject, state)
        with store.writing(self.path) as connection:
            now = subject.state(connection)
            # Whoever charged meanwhile is seen; the others wait for this computation.
            if len(now.releases) != len(state.releases):
                price, bound = _fitting(subject, now)
            if stamp_of(subject.table) != subject.stamp:
                name = subject.table.name
                raise InputError(f"{name} changed while it was read; nothing was charged")
            drawn = isinstance(plan, Plan) and is_draw(plan)
            record = ReleaseRecord(
                price.dataset.name, price.column, subject.text, price.own, bound,
                COUNTS if drawn else price.kind,
            )  # fmt: skip
            records.add_release(connection, record)
        return Charged(record.id, price, self.path)

    def account(self, table: Any, secret: str) -> tuple[Dataset, list[ReleaseRecord]]:
        """Return the dataset of a table and a secret, and what is charged to it."""
        opened = open_table(table)
        column, identity = opened.column(secret), identity_of(opened)
        with store.reading(self.path) as connection:
            dataset = dataset_of(connection, opened, column, identity.digest)
            return dataset, records.releases(connection, dataset.name)

    def show(self) -> Books:
        """Return all datasets and releases."""
        with store.reading(self.path) as connection:
            datasets, releases = records.datasets(connection), records.releases(connection)
        return Books(tuple(datasets), tuple(releases))

    def verify(self, table: Any = None) -> Verified:
        """Compare what was charged with budgets and worst cases, and with a table's joint losses.

        Parameters
        ----------
        table : path, dataframe or Table, optional
            The joint losses of its datasets are computed again; without it, only what the ledger
            itself holds is looked at.
        """
        return verify_ledger(self.path, table)

    def _state(self, subject: Subject | AnswerSubject) -> State:
        with store.reading(self.path) as connection:
            return subject.state(connection)


def _subject(table: Any, plan: Any, options: dict[str, Any]) -> Subject | AnswerSubject:
    kind = AnswerSubject if isinstance(plan, QueryPlan) else Subject
    return kind(table, plan, options)


def _fitting(subject: Subject | AnswerSubject, state: State) -> tuple[Price, Fraction]:
    """Return the price beside what is charged, and its bound; refuse one over the budget."""
    price = subject.price(state)
    bound = price.bound
    if price.fits and bound.upper is not None:
        return price, bound.upper
    value = "infinite" if bound.upper is None else f"up to {bound.value:.6g}"
    raise DoesNotFit(
        f"refused: with this release the joint loss of all releases of {subject.table.name} about "
        f"{price.dataset.secret!r} would be {value} ({bound.kind}), over the budget "
        f"{show_short(price.dataset.budget)}; releases out: {price.releases}; nothing was charged"
    )


def _place(path: str | Path) -> Path:
    return Path(os.path.realpath(home_expanded(named_path(path))))
