# SPDX-License-Identifier: Apache-2.0
"""QueryAnswer: the released answer to a query, with its errors, and its file."""

import csv
import io
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import LEVEL
from pufferfish.files import write_whole
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import parse_number, show
from pufferfish.tables.source import open_table
from pufferfish.tables.table import raw_texts

_COLUMNS = ("query", "value", "records")
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class QueryAnswer:
    """The noisy answer to a query: one number or, of a histogram, one for each state."""

    kind: str  #: ``count``, ``sum``, ``mean`` or ``histogram``.
    names: tuple[str, ...]  #: The states that were counted, or ``sum`` or ``mean``.
    values: tuple[Fraction, ...]  #: Exact; unbiased unless they were moved into bounds.
    records: int  #: How many records there are, which is public.
    noise: DiscreteLaplace  #: The noise of each number; of a mean that of the sum.
    bounds: Bounds | None = None  #: The range that the numbers were moved into.

    @property
    def value(self) -> float | int:
        """The only number; of a histogram there is none."""
        if len(self.values) > 1:
            raise InputError(f"a histogram has a number for each of {listed(self.names)}: .values")
        [value] = self.values
        return int(value) if value.denominator == 1 else float(value)

    def __float__(self) -> float:
        return float(self.value)

    @property
    def _divisor(self) -> int:
        return self.records if self.kind == "mean" else 1

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in each number."""
        return self.noise.std / self._divisor

    @property
    def margin(self) -> float:
        """Half the width of a 95 % interval around each number."""
        if not self.noise.scale:
            return 0.0
        rate = float(min(self.noise.step / Fraction(self.noise.scale), Fraction(10**6)))
        # P(|Z| > m) = 2 a^(m + 1) / (1 + a) in steps, a = e^-rate.
        tail = math.log((1 - LEVEL) * (1 + math.exp(-rate)) / 2)
        steps = max(0, math.ceil(-tail / rate) - 1)
        return float(steps * self.noise.step) / self._divisor

    def clamped(self, least: Fraction, greatest: Fraction) -> "QueryAnswer":
        """Return the answer moved into a range: nearer to the truth, and no longer unbiased."""
        values = tuple(min(max(value, least), greatest) for value in self.values)
        return replace(self, values=values, bounds=(least, greatest))

    def rows(self) -> list[dict[str, Any]]:
        """Return what may be published: a name, a number and the records, for each number."""
        # A mean that no decimal equals is a double.
        texts = [show(v) if "/" not in show(v) else repr(float(v)) for v in self.values]
        pairs = zip(self.names, texts, strict=True)
        return [{"query": name, "value": text, "records": self.records} for name, text in pairs]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write :meth:`rows` as CSV; names that spreadsheets take for formulas are guarded."""
        from pufferfish.release.sinks import guarded, texts  # slow to import

        if not str(path).lower().endswith(".csv"):
            raise InputError(f"cannot write {path}: an answer is CSV, and the name ends in .csv")
        file, rows = io.StringIO(), self.rows()
        safe = guarded(texts([row["query"] for row in rows])).to_pylist()
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"query": name} for row, name in zip(rows, safe, strict=True))
        write_whole(path, file.getvalue().encode(), force=force)

    def __repr__(self) -> str:
        pairs = zip(self.names, self.values, strict=True)
        named = ", ".join(f"{n} {float(v):.10g}" for n, v in pairs)
        return (
            f"<QueryAnswer of {self.records} records, {self.kind}: {named}\n"
            f"  standard error {self.standard_error:.4g}, 95 % within {self.margin:.6g}>"
        )


def read_bounds(given: Any) -> Any:
    """Return two bounds as exact numbers, or what is none: ``range`` or None."""
    if isinstance(given, str | None) and given in ("range", None):
        return given
    ends = [parse_number(b, "a bound") for b in given] if isinstance(given, list | tuple) else []
    if len(ends) != 2 or ends[0] > ends[1]:
        raise InputError(
            f"bounds must be 'range' or two numbers, the lesser one first, but {given!r} was given"
        )
    return tuple(ends)


def read_answer(path: str | Path, like: QueryAnswer) -> QueryAnswer:
    """Return the answer that :meth:`QueryAnswer.save` wrote; all but its numbers is ``like``."""
    from pufferfish.release.sinks import unguarded  # slow to import

    table = open_table(path)
    columns = [table.column(name) for name in _COLUMNS]
    batches = list(table.batches(columns))
    cells = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
    names, values, records = map(raw_texts, cells[0].columns) if cells else ([], [], [])
    if tuple(map(unguarded, names)) != like.names:
        raise InputError(
            f"{path} must have the rows {listed(like.names)}, in this order, but it has "
            f"{listed(names) or 'none'}"
        )
    numbers = tuple(parse_number(value, f"a value in {path}") for value in values)
    sizes = {parse_number(size, f"the number of records in {path}") for size in records}
    if len(sizes) != 1 or min(sizes).denominator != 1 or min(sizes) < 1:
        raise InputError(f"{path} must have one whole number of records")
    return replace(like, values=numbers, records=int(sizes.pop()))
