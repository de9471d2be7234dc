# SPDX-License-Identifier: Apache-2.0
"""Rows of a table on their way to a release: checked, cleaned as in calibrating, and counted."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.promise import SecretCounter
from pufferfish.release.readback import AtomCounter
from pufferfish.release.units import UnitCounter
from pufferfish.support import IntArray, Levels
from pufferfish.tables import Coded, Coder, Rules, Table
from pufferfish.tables.classify import looks_missing
from pufferfish.tables.coder import MISSING, OUTSIDE, UNREADABLE
from pufferfish.texts import text_of

#: Why a row is not in the output.
MISSING_PUBLIC = "no public value"
_MEANT_MISSING = (
    "; if it stands for a missing value, say so with --missing TEXT (missing=[TEXT]), in "
    "calibrating where the plan is from a table"
)


@dataclass(frozen=True)
class Columns:
    """The columns of a table that a release reads.

    Attributes
    ----------
    public : str
        The one that is released.
    secret : str or None
        Read for counting the rows outside the promise only; None where it is not there.
    keep : tuple of str
        Written as they are, in the order of the table.
    written : tuple of str
        The released one and the kept ones, in the order of the table.
    absent : str or None
        The secret that the rules name, where the table has no such column.
    unit : str or None
        Read for counting the rows of one person only; None where every row is a person.
    """

    public: str
    secret: str | None
    keep: tuple[str, ...]
    written: tuple[str, ...]
    absent: str | None = None
    unit: str | None = None


@dataclass
class Tally:
    """What was counted while reading.

    Attributes
    ----------
    rows, released, clamped : int
        Rows read; rows with a public value; those of them that were moved to the nearest atom.
    outside : Counter
        Released rows by the reason why their secret is outside the promise.
    atoms : AtomCounter or None
        Released rows by value, for a channel; None where they are not counted.
    """

    rows: int = 0
    released: int = 0
    clamped: int = 0
    outside: Counter[str] = field(default_factory=Counter)
    atoms: AtomCounter | None = None

    @property
    def set_aside(self) -> tuple[tuple[str, int], ...]:
        """Rows that are not released, by reason."""
        rows = self.rows - self.released
        return ((MISSING_PUBLIC, rows),) if rows else ()


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of rows.

    Attributes
    ----------
    cells : pyarrow.RecordBatch
        The raw cells of the columns that were read, all rows.
    usable : bool array, shape (rows,)
        Which rows have a public value.
    atoms : int64 array, shape (usable rows,)
        Their atoms.
    """

    cells: pa.RecordBatch
    usable: npt.NDArray[np.bool_]
    atoms: IntArray


def rules_of(spec: ReleaseSpec) -> Rules:
    """Return the cleaning rules.

    Raises
    ------
    InputError
        If there are none: then no column has a name.
    """
    if spec.rules is None:
        raise InputError(
            "the prior did not come from a table, so no column is named; name the one to release "
            "with --public COL (plan.with_columns(public=COL)), or release an array"
        )
    return spec.rules


def choose_columns(table: Table, rules: Rules, keep: Sequence[str]) -> Columns:
    """Return the columns to read and to write.

    Raises
    ------
    InputError
        If a column does not exist, the secret column is not known, or the secret, the unit or the
        public column is to be kept; the first two under whatever capitals and widths of letters.
        Nothing can be kept of a table that lacks the secret column.
    """
    if isinstance(keep, str):
        keep = (keep,)
    public = table.column(rules.public)
    if keep and rules.secret is None:
        raise InputError(
            "columns can be kept only where the secret column is named, so that it is not among "
            "them: give --secret COL (with_columns(secret=...))"
        )
    secret = rules.secret if rules.secret in table.columns else None
    unit = None if rules.unit is None else table.column(rules.unit)
    named = set()
    for name in keep:
        # The unit says which rows are one person's, and often who.
        for what, own in (("secret", rules.secret), ("unit", rules.unit)):
            if own is not None and _folded(str(name)) == _folded(own):
                given = str(name).strip()
                same = "" if given == own else f", nor {given!r}, which is the same name"
                raise InputError(f"the {what} column {own!r} cannot be kept{same}")
        column = table.column(name)
        if column == public:
            raise InputError(f"the public column {public!r} cannot be kept: it is what is released")
        named.add(column)
    if named and secret is None:
        others = [column for column in table.columns if column and column != public]
        raise InputError(
            f"the secret column {rules.secret!r} is not in {table.name}"
            f"{did_you_mean(str(rules.secret), others)}, so no column can be kept: any might be "
            "the secret under another name; the plan and the table must name it alike, or leave "
            f"out --keep (keep=[...]); the other columns are {listed(others, 20)}"
        )
    written = tuple(c for c in table.columns if c == public or c in named)
    kept = tuple(c for c in written if c != public)
    absent = rules.secret if secret is None else None
    return Columns(public, secret, kept, written, absent, unit)


def _folded(name: str) -> str:
    """Return what two names have in common that people would take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def settle(
    coded: Coded,
    cells: pa.Array,
    spec: ReleaseSpec,
    coder: Coder,
    where: Callable[[int], str],
    meant_missing: str = _MEANT_MISSING,
) -> int:
    """Check a batch, and return how many of its values are clamped to the nearest atom.

    Parameters
    ----------
    coded : Coded
        What the cells stand for.
    cells : Arrow array, shape (rows,)
        The raw cells.
    spec, coder
        What is asked for, and what coded the cells.
    where : callable
        Returns in words where the cell of a row is, for a message.
    meant_missing : str
        What to do about a cell that looks like a missing value, for a message.

    Raises
    ------
    InputError
        For the first cell that is no number, or that is no atom and cannot or must not be
        clamped. The cell itself is not shown.
    """
    outside = coded.state == OUTSIDE
    refused = coded.state == UNREADABLE
    if spec.out_of_support == "refuse" or isinstance(spec.support, Levels):
        refused |= outside
    if refused.any():
        first = int(refused.argmax())
        cell = cells[first].as_py()
        hint = _about_support(spec) if outside[first] else ""
        if looks_missing([text_of(cell)]):
            hint += meant_missing
        raise InputError(f"{where(first)} {coder.why(cell)}{hint}")
    return int(np.count_nonzero(outside))


def _about_support(spec: ReleaseSpec) -> str:
    """Return what to know of the support, for a message about a value that is outside of it."""
    support = spec.support
    if isinstance(support, Levels):
        clamp = spec.out_of_support == "clamp"
        return "; levels cannot be clamped, as none is nearest to another" if clamp else ""
    least, greatest = support.name(0), support.name(support.size - 1)
    extent = f"goes from {least} to {greatest}" if support.size > 1 else f"is {least} alone"
    return (
        f", which {extent}; clamp to the nearest value with --out-of-support clamp "
        "(out_of_support='clamp')"
    )


def read_rows(
    table: Table, spec: ReleaseSpec, columns: Columns, coder: Coder, tally: Tally, *, again: bool
) -> Iterator[Batch]:
    """Yield the rows in batches, and count them in ``tally``.

    Parameters
    ----------
    table, spec, columns, coder
        What is read, and how.
    tally : Tally
        Counts all rows up to the batch that was yielded last.
    again : bool
        The first time the secret and the unit are read and counted, the second time the kept
        columns are read.

    Raises
    ------
    InputError
        For a cell that cannot be released, with its row number; or, after the last batch, for a
        unit whose number of rows the plan does not know.
    """
    if again:
        wanted = [columns.public, *columns.keep]
    else:
        wanted = [columns.public, *(c for c in (columns.secret, columns.unit) if c is not None)]
    secrets = SecretCounter(rules_of(spec), spec.protected)
    units = UnitCounter(rules_of(spec), spec.units, spec.protected, table)
    for cells in table.batches(wanted):
        before = tally.rows
        coded = coder.code(cells.column(0))

        def where(place: int, before: int = before) -> str:
            return f"data row {before + place + 1} of {table.name}, column {columns.public!r},"

        tally.clamped += settle(coded, cells.column(0), spec, coder, where)
        usable = coded.state != MISSING
        atoms = coded.atoms if usable.all() else coded.atoms[usable]
        tally.rows += len(cells)
        tally.released += len(atoms)
        if tally.atoms is not None:
            tally.atoms.count(coded)
        if not again and columns.secret is not None:
            secrets.count(cells.column(1), usable, tally.outside)
        if not again and columns.unit is not None:
            secret = None if columns.secret is None else cells.column(1)
            units.count(cells.column(len(wanted) - 1), secret, usable)
        yield Batch(cells, usable, atoms)
    units.check()
