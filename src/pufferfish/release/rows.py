# SPDX-License-Identifier: Apache-2.0
"""Rows: batches of raw cells become atoms; every row is checked, counted and reported.

The secret and the unit are read for counting alone, and never written.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    SeededWarning,
    UnchangedWarning,
    counted,
    did_you_mean,
    listed,
    warn_user,
)
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.numbers import IntArray
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseReport, ReleaseSpec, set_column
from pufferfish.support import Levels
from pufferfish.tables.encode import MISSING, OK, OUTSIDE, Encoder
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import Table, arrow, no_person, numbered, strings

BoolArray = npt.NDArray[np.bool_]
#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]


class Reader:
    """Reads the rows of a table, or of an array (no table); checks, counts and reports them all.

    ``public`` is the released column, ``secret`` and ``unit`` those that are counted, where they
    are there; ``keep`` are written as they are, ``written`` are these, the public one, and right
    behind it that of the sets. ``seen`` are the rows by what became of them, as in a ReleaseReport,
    ``inputs`` those by input of a channel; ``digest`` is one of the atoms of all rows in order.
    """

    secret: str | None = None
    unit: str | None = None
    keep: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    digests = False  # whether there is to be a digest

    def __init__(
        self, spec: ReleaseSpec, table: Table | None = None, keep: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:  # fmt: skip
        self.post, self._spec, self._table = Postprocess(spec), spec, table
        self._name = "the array" if table is None else table.name
        self.entropy = None if seed is None else seeded_entropy(seed)
        coding = spec.coding or Coding("x", spec.support)
        self.public = coding.column
        if table is not None:
            if not isinstance(keep, Iterable):
                raise InputError(f"keep must be a list of columns, but {keep!r} was given")
            self._choose(table, (keep,) if isinstance(keep, str) else tuple(keep))
        # The columns that are not only kept, the public one first.
        self.counted = [c for c in (self.public, self.secret, self.unit) if c is not None]
        self._encoder = Encoder(coding, table)
        self._secrets: Encoder | None = None
        if self.secret is not None and spec.protected:
            self._secrets = Encoder(Coding(self.secret, Levels(spec.protected)), table)

    @property
    def set_column(self) -> str | None:
        """The column of the sets beside the public one; None where none are published."""
        return None if self.post.sets is None else set_column(self.public)

    def _choose(self, table: Table, keep: Sequence[str]) -> None:
        """Find the columns to read and to write; neither the secret nor the unit can be kept.

        These two are known under whatever capitals and widths of letters. Nothing can be kept of
        a table that lacks the secret column: any other might be it under another name.
        """
        spec = self._spec
        if spec.coding is None:
            raise InputError(
                "the plan is of a given prior and names no column: name the one to release when it "
                "is made (calibrate --prior FILE --public COL, or plan.with_columns(public=COL)), "
                "or release an array"
            )
        self.public = public = table.column(spec.coding.column)
        self.unit = None if spec.unit is None else table.column(spec.unit)
        self.secret = spec.secret if spec.secret in table.columns else None
        for what, own in (("secret", spec.secret), ("unit", spec.unit)):
            if own is not None and _folded(own) in map(_folded, map(str, keep)):
                raise InputError(f"the {what} column {own!r} cannot be kept, under whatever name")
        kept = {table.column(name) for name in keep}
        if public in kept:
            raise InputError(f"the public column {public!r} cannot be kept: it is what is released")
        if kept and self.secret is None:
            lacks = "the plan names none: give --secret COL (with_columns(secret=...))"
            if spec.secret is not None:
                near = did_you_mean(spec.secret, table.columns)
                lacks = f"there is no {spec.secret!r} in {table.name}{near}"
            raise InputError(
                "columns can be kept only where the secret column is known, for any other might be "
                f"the secret under another name; {lacks}"
            )
        others = (*table.columns, spec.secret or "", spec.unit or "")
        if self.set_column and _folded(self.set_column) in map(_folded, others):
            raise InputError(
                f"the sets would have the name of another column, {self.set_column!r}: rename that "
                "one, or leave them out (--labels-only, labels_only=True)"
            )
        self.keep = tuple(column for column in table.columns if column in kept)
        written = [column for column in table.columns if column in {public, *kept}]
        if self.set_column is not None:
            written.insert(written.index(public) + 1, self.set_column)
        self.written = tuple(written)

    def read(
        self, batches: Iterable[pa.RecordBatch] | None = None, progress: Progress | None = None,
        total: int | None = None, parts: Iterable[dict[str, Any]] = (),
    ) -> Iterator[tuple[pa.RecordBatch, IntArray, BoolArray]]:  # fmt: skip
        """Yield each batch with the atoms of its usable rows, and which these are.

        The batches are those of the table by default, with the kept columns behind the others.
        What only all rows show, also the ``seen`` and ``inputs`` of parts, is refused at the end.
        """
        self.seen = Counter(rows_read=0, rows_released=0, set_aside=0, clamped=0)
        if self._secrets is not None:
            self.seen["outside_promise"] = 0
        self._atoms_digest = hashlib.sha256()
        mechanism = self._spec.mechanism
        inputs = mechanism.inputs.size if isinstance(mechanism, Channel) else 0
        self.inputs = np.zeros(inputs, dtype=np.int64)
        self._units: dict[str, int] = {}
        self._people: Counter[int] = Counter()
        self._protected: set[int] = set()
        if batches is None and self._table is not None:
            batches = self._table.batches([*self.counted, *self.keep])
        for batch in batches or ():
            yield batch, *self._encode(batch)
            if progress is not None:
                progress(self.seen["rows_read"], total)
        self.digest = self._atoms_digest.hexdigest()
        for part in parts:
            self.seen.update(part["seen"])
            self.inputs += np.array(part["inputs"], dtype=np.int64)
        self._check_people()
        self._unchanged = self.post.reads_back(self.inputs)
        if self._unchanged and not self._spec.allow_unchanged:
            more = "" if isinstance(mechanism, Channel) else ", or give --min-scale T (min_scale=T)"
            raise InputError(
                f"{_unchanged_words(mechanism)}; if that is wanted say so with --allow-unchanged "
                f"(allow_unchanged=True){more}"
            )

    def drawn(
        self, batch: pa.RecordBatch, atoms: IntArray, usable: BoolArray
    ) -> tuple[dict[str, pa.Array], IntArray]:
        """Return what a sink writes of a batch that :meth:`read` yields: other columns, values."""
        values, sets = self.post.draw(atoms, self.entropy)
        if self.keep and not usable.all():
            batch = batch.take(arrow(np.flatnonzero(usable)))
        others = {name: batch.column(name) for name in self.keep}
        if self.set_column is not None and self.post.sets is not None:
            others[self.set_column] = strings(self.post.sets.names).take(arrow(sets))
        return others, values

    def report(self, output: str | None = None) -> ReleaseReport:
        """Report what became of all rows, and warn of what it means."""
        report = ReleaseReport(
            self._name, output, self.public, self.keep, self.post.mechanism, **self.seen,
            seeded=self.entropy is not None, unchanged=self._unchanged, set_column=self.set_column,
        )  # fmt: skip
        if report.unchanged:
            warn_user(_unchanged_words(self._spec.mechanism), UnchangedWarning)
        if report.seeded:
            text = "the release was drawn from a seed: for tests only, it protects nobody"
            warn_user(text, SeededWarning)
        # What the guarantee does not cover (theory, section 7).
        absent = self._spec.secret if self._table is not None and self.secret is None else None
        outside = report.outside_promise or 0
        # The report on a file is given to the user, who reads there what was left out.
        missing = report.set_aside if report.output is None else 0
        kinds = (
            (report.keep, f"with the kept columns ({listed(report.keep)}) beside it the released "
             "column is no longer protected: together they may reveal the secret, even where each "
             "alone does not"),
            (absent, f"the secret column {absent!r} is not in the table, so rows outside the "
             "promise were not counted"),
            (outside, f"{counted(outside, 'released row')} with a secret that is in no pair: the "
             "promise does not cover them"),
            (report.clamped, f"{counted(report.clamped, 'released value')} moved to the nearest "
             "value of the support; the prior gives such values probability 0, so the guarantee "
             "does not cover these rows"),
            (missing, f"{counted(missing, 'row')} left out (no public value); which rows are left "
             "out shows in the output, and no mechanism covers it"),
        )  # fmt: skip
        for found, text in kinds:
            if found:
                warn_user(text, OutsidePromiseWarning)
        return report

    def _encode(self, batch: pa.RecordBatch) -> tuple[IntArray, BoolArray]:
        """Return the atoms of the usable rows, and which rows are usable."""
        atoms, state = self._encoder.encode(batch.column(0))
        if self.digests:
            self._atoms_digest.update(atoms.astype("<i8", copy=False).tobytes())
        usable = state != MISSING
        if state.any():  # some are not OK
            self._refuse(state)
            atoms = atoms[usable]
        protected = np.ones_like(usable)
        if self._secrets is not None:
            protected = self._secrets.encode(batch.column(self.secret))[1] == OK
            self.seen["outside_promise"] += int(np.count_nonzero(usable & ~protected))
        if self.unit is not None:
            nobody = no_person(self._spec.unit_missing)
            whose = numbered(batch.column(self.unit), self._units, nobody)
            self._people.update(whose[usable].tolist())
            self._protected.update(whose[protected].tolist())
            if self._people[-1]:
                raise InputError(
                    f"column {self.unit!r} is missing in {counted(self._people[-1], 'row')} with "
                    "a public value: whose they are must be known"
                )
        if self.inputs.size:
            self.inputs += np.bincount(atoms, minlength=self.inputs.size)
        self.seen.update(
            rows_read=len(usable), rows_released=len(atoms), set_aside=len(usable) - len(atoms),
            clamped=int(np.count_nonzero(state == OUTSIDE)),
        )  # fmt: skip
        return atoms, usable

    def _refuse(self, state: npt.NDArray[np.uint8]) -> None:
        """Refuse the first cell that is no number, or no atom and not to be clamped."""
        support, clamps = self._spec.support, self._spec.out_of_support == "clamp"
        levels = isinstance(support, Levels)
        taken = {OK: True, MISSING: self._table is not None, OUTSIDE: clamps and not levels}
        refused = ~np.isin(state, [kind for kind, fine in taken.items() if fine])
        if not refused.any():
            return
        first = int(refused.argmax())
        row, why = self.seen["rows_read"] + first + 1, "is no finite number"
        if state[first] == MISSING:
            why = "is missing, and an array keeps its length; leave it out, or release a dataframe"
        elif levels:
            why = "is none of the levels"
        elif state[first] == OUTSIDE:
            why = (
                f"is outside the support, which goes from {support.name(0)} to "
                f"{support.name(support.size - 1)}; clamp to the nearest value with "
                "--out-of-support clamp (out_of_support='clamp')"
            )
        raise InputError(f"data row {row} of {self._name}, column {self.public!r}, {why}")

    def _check_people(self) -> None:
        """Refuse a person with a number of rows that the plan knows nothing of."""
        allowed = sorted(self._spec.rows_per_person)
        mine = [rows for who, rows in self._people.items() if who in self._protected]
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


def _unchanged_words(mechanism: Mechanism) -> str:
    if isinstance(mechanism, Channel):
        return (
            "the channel always publishes every value that occurs in the table as one of its own: "
            "the column can be read back as if it were published unchanged"
        )
    return "the scale is 0: the column is published unchanged"
