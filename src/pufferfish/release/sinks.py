# SPDX-License-Identifier: Apache-2.0
"""Sinks: files that released rows go into, batch by batch; a new format is one more entry here.

Cells of text files are exact decimals, in quotes where they must be, and guarded against
spreadsheet formulas.
"""

import decimal
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.errors import InputError
from pufferfish.files import named_path
from pufferfish.numbers import IntArray, show
from pufferfish.release.postprocess import Postprocess, to_doubles
from pufferfish.tables.table import arrow, as_strings, is_text, one_array, strings

#: What makes a spreadsheet take a cell for a formula, behind apostrophes that guarded it.
_FORMULA = r"\A'*[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  # full-width signs are the point
_EXACT = decimal.Context(decimal.MAX_PREC, traps=[decimal.Inexact])
#: Digits, marks between them, an exponent: a number in any country, and never a formula.
_NUMBER = r"(?i)\A[+-]?(?:[.,]?\d[\d.,]*(?:e[+-]?\d+)?%?|inf|infinity|nan) *\z"


def texts(names: Sequence[str]) -> pa.LargeStringArray:
    """Return texts as an array of the type that may hold more than 2 GiB."""
    return strings(names).cast(pa.large_string())


def concatenated(*cells: pa.LargeStringArray | str, separator: str = "") -> pa.LargeStringArray:
    """Return the texts of every row, end to end or with a separator; a missing one is empty."""
    parts = [texts([c])[0] if isinstance(c, str) else c for c in (*cells, separator)]
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")


def guarded(cells: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tabulator or a line end is changed, and so
    is such text behind apostrophes, so that :func:`unguarded` knows what was there. Numbers such
    as -3.2, +5 and 1e-3 are not.
    """
    risky = pc.match_substring_regex(cells, _FORMULA)
    if not pc.any(risky).as_py():
        return cells
    # Where a cell is missing, so is the condition, and the result.
    harmful = pc.and_not(risky, pc.match_substring_regex(cells, _NUMBER))
    return pc.if_else(harmful, concatenated("'", cells), cells)


def unguarded(text: str) -> str:
    """Return the text that :func:`guarded` was given."""
    bare = text.removeprefix("'")
    return bare if guarded(texts([bare]))[0].as_py() == text else text


def as_text(column: pa.Array, guards: bool = True) -> pa.LargeStringArray:
    """Return a kept column as text, not yet quoted; what was text before is guarded."""
    column = one_array(column)
    cells = as_strings(column).cast(pa.large_string())
    return guarded(cells) if guards and is_text(column.type) else cells


def lines(columns: Sequence[pa.LargeStringArray], separator: str) -> pa.Buffer:
    """Return the bytes of a batch of rows; missing cells are empty.

    What holds any separator, a double quote or a line end is put in double quotes.
    """
    cells = []
    for column in columns:
        needs = pc.match_substring_regex(column, '[,;|\t"\r\n]')
        if pc.any(needs).as_py():
            inside = pc.replace_substring(column, '"', '""')
            column = pc.if_else(needs, concatenated('"', inside, '"'), column)
        cells.append(column)
    rows = concatenated(concatenated(*cells, separator=separator), "\n")
    batch = pa.LargeListArray.from_arrays(arrow([0, len(rows)]), rows)
    return pc.binary_join(batch, texts([""])[0])[0].as_buffer()


def released_text(units: IntArray, step: Fraction) -> pa.LargeStringArray:
    """Return ``step * units`` as text: integers, or exact decimals of equal length.

    Where no decimal equals the step (1/3), the shortest text of the nearest double is returned.
    """
    if step == 1:
        return arrow(units).cast(pa.large_string())
    text = show(step)
    if "/" in text:
        return arrow(to_doubles(units, step)).cast(pa.large_string())
    places = len(text.partition(".")[2])
    distinct, at = np.unique(units, return_inverse=True)
    numerators = [Decimal(unit * int(step * 10**places)) for unit in distinct.tolist()]
    return texts([f"{number.scaleb(-places, _EXACT):f}" for number in numerators]).take(arrow(at))


@dataclass
class TextSink:
    """CSV or TSV: exact decimals, line ends of one character, UTF-8; compressed if asked for."""

    file: Any
    columns: Sequence[str]
    public: str = ""
    post: Postprocess | None = None  # None: nothing is released, and no text is guarded
    separator: str = ","
    compress: bool = False

    def __post_init__(self) -> None:
        if self.compress:
            # Neither the temporary name nor the time of day belongs in the output.
            self.file = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self.file, mtime=0)
        names = [as_text(texts([name]), self.post is not None) for name in self.columns]
        self.file.write(lines(names, self.separator))

    def write(self, kept: Mapping[str, pa.Array], values: Any = None) -> None:
        """Write a batch of rows: the kept columns by name, and the released values."""
        cells = {c: as_text(kept[c], self.post is not None) for c in kept}
        if self.post and self.post.levels:
            cells[self.public] = guarded(texts(self.post.levels.names)).take(arrow(values))
        elif self.post:
            cells[self.public] = released_text(values, self.post.step)
        self.file.write(lines([cells[c] for c in self.columns], self.separator))

    def close(self) -> None:
        """Write the end of a compressed file; the file itself stays open."""
        if self.compress:
            self.file.close()


@dataclass
class ParquetSink:
    """Parquet: released values as int64, double or string; kept columns keep their types."""

    file: Any
    columns: Sequence[str]
    public: str = ""
    post: Postprocess | None = None
    writer: Any = None

    def write(self, kept: Mapping[str, pa.Array], values: Any = None) -> None:
        """Write a batch of rows as a row group."""
        import pyarrow.parquet as pq  # slow to import

        cells = dict(kept)
        if self.post and self.post.levels:
            cells[self.public] = strings(self.post.levels.names).take(arrow(values))
        elif self.post:
            cells[self.public] = arrow(self.post.numpy(values))
        if self.writer is None:
            # Drawn integers seldom recur, and are spread alike in all batches: their differences
            # take less room than a dictionary, and the least and the most tell nothing.
            drawn = {self.public} if self.post and cells[self.public].type == pa.int64() else set()
            others = [c for c in self.columns if c not in drawn]
            schema = pa.schema([pa.field(c, cells[c].type, c in others) for c in self.columns])
            self.writer = pq.ParquetWriter(
                self.file, schema, use_dictionary=others, write_statistics=others,
                column_encoding=dict.fromkeys(drawn, "DELTA_BINARY_PACKED"),
                compression=dict.fromkeys(others, "snappy") | dict.fromkeys(drawn, "none"),
            )  # fmt: skip
        batch = pa.table([cells[c] for c in self.columns], names=self.columns)
        try:
            self.writer.write_table(batch.cast(self.writer.schema))
        except pa.ArrowException:
            raise InputError(
                "a kept column has another type in later rows than in the first ones; write CSV"
            ) from None

    def close(self) -> None:
        """Write the footer; of no rows at all a table with a header all the same."""
        if self.writer is None:
            nothing = dict.fromkeys(self.columns, pa.nulls(0, pa.string()))
            self.write(nothing, np.empty(0, dtype=np.int64))
        self.writer.close()


#: What the name of an output may end in, and what writes it.
SINKS: dict[str, Callable[..., TextSink | ParquetSink]] = {
    ".csv": TextSink, ".tsv": partial(TextSink, separator="\t"),
    ".csv.gz": partial(TextSink, compress=True),
    ".tsv.gz": partial(TextSink, separator="\t", compress=True), ".parquet": ParquetSink,
}  # fmt: skip


def sink_for(output: str | Path) -> Callable[..., TextSink | ParquetSink]:
    """Return what writes an output, by the ending of its name."""
    name = named_path(output).name.lower()
    for ending, sink in SINKS.items():
        if name.endswith(ending) and name != ending:
            return sink
    raise InputError(f"cannot write {output}: the name must end in one of {', '.join(SINKS)}")
