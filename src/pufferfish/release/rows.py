# SPDX-License-Identifier: Apache-2.0
"""Rows: batches of raw cells become atoms; every row is checked, counted and reported.

The secret and the unit are read for counting alone, and never written.
"""

import hashlib
import unicodedata
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    SeededWarning,
    counted,
    did_you_mean,
    listed,
    warn_user,
)
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.numbers import IntArray
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseReport, ReleaseSpec
from pufferfish.support import Levels
from pufferfish.tables.encode import MISSING, OK, OUTSIDE, UNREADABLE, Encoder
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import Table, distinct, texts_of

BoolArray = npt.NDArray[np.bool_]
#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]
#: What was warned of already, by the mechanism of a plan: once per plan and process.
_WARNED: dict[int, set[int]] = {}


class Reader:
    """Reads the rows of a table, or of an array (no table); checks, counts and reports them all.

    ``public`` is the released column, ``secret`` and ``unit`` those that are counted, where they
    are there; ``keep`` are written as they are, ``written`` are these and the public one.
    ``seen`` are the rows by what became of them, as in a ReleaseReport.
    """

    secret: str | None = None
    unit: str | None = None
    keep: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    def __init__(
        self,
        spec: ReleaseSpec,
        table: Table | None = None,
        keep: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:
        self.post = Postprocess(spec)
        self.post.check_read_back()
        self._spec, self._table, self._seeded = spec, table, seed is not None
        self._entropy = None if seed is None else seeded_entropy(seed)
        coding = spec.coding or Coding("x", spec.support)
        self.public = coding.column
        if table is not None:
            self._choose(table, (keep,) if isinstance(keep, str) else keep)
        self._encoder = Encoder(coding, table)
        self._secrets: Encoder | None = None
        if self.secret is not None and spec.protected:
            self._secrets = Encoder(Coding(self.secret, Levels(spec.protected)), table)

    @property
    def counted(self) -> list[str]:
        """The columns that are not only kept, the public one first."""
        return [name for name in (self.public, self.secret, self.unit) if name is not None]

    def _choose(self, table: Table, keep: Sequence[str]) -> None:
        """Find the columns to read and to write; neither the secret nor the unit can be kept.

        These two are known under whatever capitals and widths of letters. Nothing can be kept of
        a table that lacks the secret column: any other might be it under another name.
        """
        spec = self._spec
        if spec.coding is None:
            raise InputError(
                "the prior did not come from a table, so no column is named; name the one to "
                "release with --public COL (plan.with_columns(public=COL)), or release an array"
            )
        self.public = public = table.column(spec.coding.column)
        if keep and spec.secret is None:
            raise InputError(
                "columns can be kept only where the secret column is named, so that it is not "
                "among them: give --secret COL (with_columns(secret=...))"
            )
        self.unit = None if spec.unit is None else table.column(spec.unit)
        self.secret = spec.secret if spec.secret in table.columns else None
        for name in map(str, keep):
            for what, own in (("secret", spec.secret), ("unit", spec.unit)):
                if own is not None and _folded(name) == _folded(own):
                    same = "" if name.strip() == own else f", nor {name.strip()!r}, the same name"
                    raise InputError(f"the {what} column {own!r} cannot be kept{same}")
        kept = {table.column(name) for name in keep}
        if public in kept:
            raise InputError(f"the public column {public!r} cannot be kept: it is what is released")
        if kept and self.secret is None:
            others = [column for column in table.columns if column and column != public]
            raise InputError(
                f"the secret column {spec.secret!r} is not in {table.name}"
                f"{did_you_mean(str(spec.secret), others)}, so no column can be kept: any might be "
                f"the secret under another name; the other columns are {listed(others)}"
            )
        self.keep = tuple(column for column in table.columns if column in kept)
        self.written = tuple(column for column in table.columns if column in {public, *kept})

    def read(
        self,
        batches: Iterable[pa.RecordBatch] | None = None,
        progress: Progress | None = None,
        total: int | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, IntArray, BoolArray]]:
        """Yield each batch with the atoms of its usable rows, and which these are.

        The batches are those of the table by default, with the kept columns behind the others.
        """
        self.seen = Counter(rows_read=0, rows_released=0, set_aside=0, clamped=0)
        if self._secrets is not None:
            self.seen["outside_promise"] = 0
        self._atoms_digest = hashlib.sha256()
        # Released rows by input of a channel: those whose value it is, and those moved there.
        mechanism = self._spec.mechanism
        size = mechanism.inputs.size if isinstance(mechanism, Channel) else 0
        self._exact, self._moved = np.zeros((2, size), dtype=np.int64)
        self._people: Counter[str] = Counter()
        self._protected: set[str] = set()
        if batches is None and self._table is not None:
            batches = self._table.batches([*self.counted, *self.keep])
        for batch in batches or ():
            yield batch, *self._encode(batch)
            if progress is not None:
                progress(self.seen["rows_read"], total)
        self._check_people()

    @property
    def digest(self) -> str:
        """A digest of the atoms of all rows in their order."""
        return self._atoms_digest.hexdigest()

    def draw(self, atoms: IntArray) -> IntArray:
        """Return released values for atoms."""
        return self.post.draw(atoms, self._entropy)

    def report(self, output: str | None = None) -> ReleaseReport:
        """Report what became of all rows, and warn of what it means.

        What can be read back is refused, unless that is allowed.
        """
        unchanged = self.post.check_read_back(self._exact + self._moved)
        report = ReleaseReport(
            "the array" if self._table is None else self._table.name,
            output,
            self.public,
            self.keep,
            self.post.mechanism,
            **self.seen,
            seeded=self._seeded,
            keep_rate=self.post.keep_rate(self._exact, self._moved),
            unchanged=unchanged,
        )
        absent = self._spec.secret if self._table is not None and self.secret is None else None
        _warn(report, absent, self._spec.mechanism)
        return report

    def _encode(self, batch: pa.RecordBatch) -> tuple[IntArray, BoolArray]:
        """Return the atoms of the usable rows, and which rows are usable."""
        encoded = self._encoder.encode(batch.column(0))
        self._refuse(batch.column(0), encoded.state)
        usable = encoded.state != MISSING
        atoms, outside = encoded.atoms[usable], encoded.state[usable] == OUTSIDE
        self._atoms_digest.update(np.where(usable, encoded.atoms, -1).astype("<i8").tobytes())
        protected = np.ones_like(usable)
        if self._secrets is not None:
            protected = self._secrets.encode(batch.column(self.secret)).state == OK
            self.seen["outside_promise"] += int((usable & ~protected).sum())
        if self.unit is not None:
            self._count_people(batch.column(self.unit), usable, protected)
        if size := self._exact.size:
            self._exact += np.bincount(atoms[~outside], minlength=size)
            self._moved += np.bincount(atoms[outside], minlength=size)
        rows, released, clamped = len(usable), len(atoms), int(outside.sum())
        self.seen.update(rows_read=rows, rows_released=released, clamped=clamped)
        self.seen["set_aside"] += rows - released
        return atoms, usable

    def _refuse(self, cells: pa.Array, state: npt.NDArray[np.uint8]) -> None:
        """Refuse the first cell that is no number, or no atom and not to be clamped."""
        support, clamps = self._spec.support, self._spec.out_of_support == "clamp"
        levels = isinstance(support, Levels)
        refused = state == UNREADABLE
        if levels or not clamps:
            refused |= state == OUTSIDE
        if self._table is None:
            refused |= state == MISSING
        if not refused.any():
            return
        first = int(refused.argmax())
        at, hint = self.seen["rows_read"] + first, ""
        where = f"the value at position {at} (counted from 0)"
        if self._table is not None:
            where = f"data row {at + 1} of {self._table.name}, column {self.public!r},"
        if state[first] == MISSING:
            hint = ", and an array keeps its length; leave it out, or release a dataframe"
        elif state[first] == OUTSIDE and not levels:
            hint = (
                f", which goes from {support.name(0)} to {support.name(support.size - 1)}; clamp "
                "to the nearest value with --out-of-support clamp (out_of_support='clamp')"
            )
        elif state[first] == OUTSIDE and clamps:
            hint = "; only numbers can be clamped"
        raise InputError(f"{where} {self._encoder.why(cells[first].as_py())}{hint}")

    def _count_people(self, cells: pa.Array, usable: BoolArray, protected: BoolArray) -> None:
        values, places = distinct(cells)
        names = np.array(texts_of(values), dtype=object)[places]
        self._people.update(names[usable])
        self._protected.update(names[protected])
        if self._people[""]:
            raise InputError(
                f"column {self.unit!r} is missing in {counted(self._people[''], 'row')} with a "
                "public value: whose they are must be known"
            )

    def _check_people(self) -> None:
        """Refuse a person with a number of rows that the plan knows nothing of."""
        allowed = sorted(self._spec.rows_per_person)
        mine = [rows for name, rows in self._people.items() if name in self._protected]
        wrong = [rows for rows in mine if rows and rows not in allowed]
        if wrong:
            known = " or ".join(map(str, allowed)) or "no such number of"
            raise InputError(
                f"{counted(len(wrong), 'unit')} of column {self.unit!r} with a number of "
                f"rows that the plan knows nothing of, such as {max(wrong)}; it knows units with "
                f"{known} rows: leave the others out, or calibrate from a table that has such units"
            )


def _folded(name: str) -> str:
    """Return what two names have in common that people would take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def _warn(report: ReleaseReport, absent: str | None, mechanism: object) -> None:
    """Warn of what the guarantee does not cover (theory, section 7): once per plan and kind."""
    if id(mechanism) not in _WARNED:
        _WARNED[id(mechanism)] = set()
        weakref.finalize(mechanism, _WARNED.pop, id(mechanism))
    known, outside = _WARNED[id(mechanism)], report.outside_promise or 0
    # The report on a file is given to the user, who reads there what was left out.
    missing = report.set_aside if report.output is None else 0
    kinds = (
        f"with the kept columns ({listed(report.keep)}) beside it the released column is no longer "
        "protected: together they may reveal the secret, even where each alone does not",
        f"the secret column {absent!r} is not in the table, so rows outside the promise were not "
        "counted",
        f"{counted(outside, 'released row')} with a secret that is in no pair: the promise does "
        "not cover them",
        f"{counted(report.clamped, 'released value')} moved to the nearest value of the support; "
        "the prior gives such values probability 0, so the guarantee does not cover these rows",
        f"{counted(missing, 'row')} left out (no public value); which rows are left out shows in "
        "the output, and no mechanism covers it",
    )
    there = (report.keep, absent, outside, report.clamped, missing)
    for kind, text in enumerate(kinds):
        if there[kind] and kind not in known:
            known.add(kind)
            warn_user(text, OutsidePromiseWarning)
    if report.seeded:
        text = "the release was drawn from a seed: for tests only, it protects nobody"
        warn_user(text, SeededWarning)
