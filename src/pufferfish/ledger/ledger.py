# SPDX-License-Identifier: Apache-2.0
"""Ledger: datasets with a budget, charged before anything is released of them.

All releases of one table about one secret are charged together: their joint loss has to stay
within the budget (theory, section 6). A table is known by the digest of its rows, fixed when its
dataset is opened; another table about the same secret is either an edited copy, which is refused,
or one of other people, by the word of the user, with a budget of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.errors import (
    CheckFailed,
    InputError,
    PufferfishWarning,
    listed,
    quoted,
    warn_user,
)
from pufferfish.ledger import records as stores
from pufferfish.ledger.pricing import (
    Price,
    Progress,
    State,
    Subject,
    Verified,
    dataset_of,
    verify_books,
)
from pufferfish.ledger.records import Dataset, Records, ReleaseRecord, parse_budget
from pufferfish.ledger.store import PATIENCE, Waiting
from pufferfish.numbers import Number, show_short
from pufferfish.plans.plan import Plan
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
    store: Records

    def mark_released(self) -> None:
        """Note that the output is in place; a ledger that cannot be told draws a warning."""
        try:
            with self.store.begin_charge() as charge:
                charge.mark_released(self.id)
        except InputError as error:
            # Whatever was in the way says that nothing was charged; this was, long before.
            reason = str(error).partition("; nothing was charged")[0]
            warn_user(
                f"the release {self.id} is charged and done, and not to be repeated, but the "
                f"ledger could not be told that it is done ({reason}); it counts all the same",
                PufferfishWarning,
            )

    def __enter__(self) -> "Charged":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.mark_released()
        else:
            error.add_note(
                f"the release {self.id} stays charged, whatever was seen of it; see: pufferfish "
                f"ledger show {self.store.path}"
            )


@dataclass(frozen=True)
class Books:
    """All that a ledger holds; ``exposed``: others than its owner can read or write the file."""

    notice: str
    exposed: bool
    datasets: tuple[Dataset, ...]
    releases: tuple[ReleaseRecord, ...]


@dataclass(frozen=True)
class Ledger:
    """A ledger file; made by :meth:`create` or :meth:`open`.

    The file is private (mode 0600): it holds plans and digests of the tables.

    Attributes
    ----------
    store : Records
    """

    store: Records

    @classmethod
    def create(
        cls, path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None
    ) -> "Ledger":
        """Make an empty ledger, readable by its owner only.

        Parameters
        ----------
        path : str or Path
        patience : float
            Seconds to wait for other processes.
        waiting : callable, optional
            Told now and then how many seconds that took so far.

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
        """Open a ledger; parameters as for :meth:`create`.

        Raises
        ------
        InputError
            If it is not there, no ledger, damaged, or of another version; it is left as it is.
        """
        return cls(stores.open_store(path, patience, waiting))

    @property
    def path(self) -> Path:
        """The file, links followed."""
        return self.store.path

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
            What the joint loss of all releases may be at most; an exact decimal or fraction. It
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
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"a dataset needs a name, but {name!r} was given")
        name, exact, opened = name.strip(), parse_budget(budget), open_table(table)
        column, identity = opened.column(secret), identity_of(opened)
        with self.store.begin_charge() as charge:
            datasets = charge.datasets()
            about = [dataset for dataset in datasets if dataset.secret == column]
            for dataset in datasets:
                if dataset.name == name or (dataset in about and dataset.digest == identity.digest):
                    raise InputError(
                        f"{self.path} has the dataset {dataset.name!r} of {dataset.rows} rows "
                        "already; its table and its budget are never changed"
                    )
            if about and not other_people:
                raise InputError(
                    f"{self.path} has a dataset about {column!r} already "
                    f"({listed(quoted(dataset.name) for dataset in about)}): if the people of "
                    f"{opened.name} are the same, release from that table; if they are others, "
                    "say so with --other-people (other_people=True)"
                )
            values = name, column, exact, identity.digest, identity.rows, other_people
            return charge.add_dataset(*values)

    def price(self, table: Any, plan: Plan, **options: Any) -> Price:
        """Return the joint loss of all releases of a table about a secret, with this one.

        Nothing is charged, and nothing is drawn.

        Parameters
        ----------
        table : path, dataframe or Table
            The table that is to be released.
        plan : Plan
            It names the released column and that of the secret.
        **options
            As they will be given to the release: ``min_scale``, ``out_of_support``, ...

        Raises
        ------
        InputError
            If the ledger has no such dataset, or the plan does not name its columns, reads its
            column otherwise than earlier releases, or cannot be released.
        """
        subject = Subject.of(table, plan, options)
        with self.store.reading() as view:
            state = subject.state(view)
        return subject.price(state)

    def charge(
        self,
        table: Any,
        plan: Plan,
        *,
        keep: Sequence[str] = (),
        seed: int | None = None,
        **options: Any,
    ) -> Charged:
        """Charge a release, at once and durably; draw it in the block of ``with``.

        Parameters
        ----------
        table, plan, **options
            As for :meth:`price`. Release this table by this plan, once.
        keep, seed
            Refused: kept columns are published as they are, and seeded noise protects nobody.

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
        if keep:
            raise InputError(
                "--keep cannot be given with --ledger: kept columns are published as they are, and "
                "the joint loss does not cover them"
            )
        if seed is not None:
            raise InputError("--seed cannot be given with --ledger: its noise protects nobody")
        subject = Subject.of(table, plan, options)
        subject.rehearse()
        with self.store.reading() as view:
            state = subject.state(view)
        price = self._checked(subject, state)
        with self.store.begin_charge() as charge:
            same = charge.dataset(state.dataset.name).version == state.dataset.version
            if not same:  # somebody charged meanwhile: the others wait for this computation
                price = self._checked(subject, subject.state(charge))
            subject.check_unchanged()
            record = charge.add_release(
                state.dataset.name,
                price.column,
                subject.plan.to_json(),
                price.own,
                price.bound.upper,
                price.bound.kind,
            )
        return Charged(record.id, price, self.store)

    def budget(self, table: Any, secret: str) -> Fraction:
        """Return the budget of the dataset of a table and a secret."""
        opened = open_table(table)
        column, identity = opened.column(secret), identity_of(opened)
        with self.store.reading() as view:
            return dataset_of(view, opened, column, identity.digest).budget

    def show(self) -> Books:
        """Return all datasets and releases."""
        with self.store.reading() as view:
            datasets, releases = tuple(view.datasets()), tuple(view.releases())
            return Books(view.notice(), self.store.exposed, datasets, releases)

    def verify(self, table: Any = None, progress: Progress | None = None) -> Verified:
        """Compare what was charged with budgets and worst cases, and with a table's joint losses.

        Parameters
        ----------
        table : path, dataframe or Table, optional
            The joint losses of its datasets are computed again; without it, only what the ledger
            itself holds is looked at.
        progress : callable, optional
            Called with the releases checked so far, and how many there are.

        Raises
        ------
        InputError
            If the file cannot be read, or the table is none of its datasets.
        """
        return verify_books(self.store, table, progress)

    def _checked(self, subject: Subject, state: State) -> Price:
        """Return the price beside what is charged; refuse one over the budget."""
        price = subject.price(state)
        if price.fits:
            return price
        bound = price.bound
        value = "infinite" if bound.upper is None else f"up to {bound.value:.6g}"
        why = ""
        if price.rows > 1:
            why = f"; one person may have {price.rows} rows"
        elif not price.own:
            why = "; the plan is for other counts than those of this table"
        elif price.incomplete:
            why = f"; rows that lack a released value: {price.incomplete}"
        raise DoesNotFit(
            f"refused: with this release the joint loss of all releases of {subject.table.name} "
            f"about {price.dataset.secret!r} would be {value} ({bound.kind}), over the budget "
            f"{show_short(price.dataset.budget)}; releases out: {price.releases}; nothing was "
            f"charged{why}"
        )
