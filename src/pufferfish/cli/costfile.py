# SPDX-License-Identifier: Apache-2.0
"""A cost file: what publishing y for x costs, as a table that a person wrote in a spreadsheet."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pufferfish.cli.files import check_there
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import parse_number, parse_text, show

if TYPE_CHECKING:
    from pufferfish.support import Support

#: What separates the cells where the first line has no comma, as some spreadsheets save it.
_SEPARATORS = (";", "\t")
_SHAPE = "its first row names the outputs, its first column the values, all else are costs"


@dataclass(frozen=True)
class CostFile:
    """The costs of a file, under the names that stand in it.

    Attributes
    ----------
    path : str
        The file.
    outputs : tuple of str
        Names of the columns.
    rows : mapping
        ``{value: {output: cost}}``, exact and not negative.
    """

    path: str
    outputs: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Fraction]]

    def fitted(
        self, support: "Support", outputs: "Support | None"
    ) -> tuple[dict[str, dict[str, Fraction]], list[str]]:
        """Return the costs under the names of a support, and notes on what is not used.

        Parameters
        ----------
        support : Lattice or Levels
            The values; each needs a row.
        outputs : Lattice or Levels, or None
            What can be published; each needs a column. None: not known yet, so not checked.

        Raises
        ------
        InputError
            If a value has no row or an output no column; names the nearest.
        """
        named_rows = self._named(self.rows, support, "row")
        named_columns = self._named(self.outputs, outputs or support, "column")
        notes = self._check(named_rows, support, "row", "value")
        if outputs is not None:
            notes += self._check(named_columns, outputs, "column", "output")
        known = {support.name(k) for k in range(support.size)}
        published = None if outputs is None else {outputs.name(k) for k in range(outputs.size)}
        return {
            name: {
                output: self.rows[written][column]
                for output, column in named_columns.items()
                if published is None or output in published
            }
            for name, written in named_rows.items()
            if name in known
        }, notes

    def _named(self, written: Iterable[str], support: "Support", kind: str) -> dict[str, str]:
        """Return what is written in the file, by the names that a support would give it."""
        found: dict[str, str] = {}
        known = {support.name(k) for k in range(support.size)}
        for text in written:
            number = None if text in known else parse_text(text)
            name = text if number is None else show(number)
            if name in found:
                raise InputError(
                    f"the cost file {self.path} has two {kind}s for the same number: "
                    f"{found[name]!r} and {text!r}"
                )
            found[name] = text
        return found

    def _check(
        self, named: Mapping[str, str], support: "Support", kind: str, what: str
    ) -> list[str]:
        """Check that everything of a support is named; return a note on the names beyond it."""
        known = [support.name(k) for k in range(support.size)]
        lost = [name for name in known if name not in named]
        over = [name for name in named if name not in set(known)]
        if lost:
            raise InputError(
                f"the cost file {self.path} has no {kind} for {listed(map(repr, lost))}"
                f"{did_you_mean(lost[0], over).replace('did you mean', 'is it')}; every {what} "
                f"needs one"
            )
        if not over:
            return []
        which = f"is the {kind}" if len(over) == 1 else f"are the {kind}s"
        return [f"not used {which} {listed(map(repr, over))} of {self.path}: no such {what} occurs"]


def read_cost_file(path: str) -> CostFile:
    """Read a CSV file: first row = outputs, first column = values; the corner is ignored.

    Raises
    ------
    InputError
        If the file cannot be read, a name is blank or occurs twice, a row is too short or too
        long, or a cost is no number or negative.
    """
    check_there(path, "cost file")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the cost file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"the cost file {path} is not UTF-8 text") from None
    lines = _lines(text, path)
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise InputError(f"the cost file {path} holds no costs: {_SHAPE}")
    outputs = tuple(lines[0][1][1:])
    _check_names(outputs, path, "column")
    _check_names([cells[0] for _, cells in lines[1:]], path, "row")
    rows = {}
    for number, cells in lines[1:]:
        value = cells[0]
        if len(cells) != len(outputs) + 1:
            raise InputError(
                f"line {number} of the cost file {path} has {len(cells) - 1} costs for {value!r}, "
                f"but there are {len(outputs)} outputs"
            )
        rows[value] = {
            output: _cost(cell, value, output, path)
            for output, cell in zip(outputs, cells[1:], strict=True)
        }
    return CostFile(path, outputs, rows)


def _lines(text: str, path: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not blank, each with its number and its cells trimmed."""
    # Only line ends separate lines: a level may hold other characters that Python splits at.
    first = next((line for line in text.split("\n") if line.strip()), "")
    separator = next((s for s in _SEPARATORS if s in first and "," not in first), ",")
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=separator, strict=True, skipinitialspace=True)
    lines = []
    try:
        for cells in reader:
            trimmed = [cell.strip() for cell in cells]
            if any(trimmed):
                lines.append((reader.line_num, trimmed))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num} of the cost file {path} cannot be read: {error}"
        ) from None
    return lines


def _check_names(names: Sequence[str], path: str, kind: str) -> None:
    if "" in names:
        raise InputError(f"the cost file {path} has a {kind} without a name: {_SHAPE}")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(
            f"the cost file {path} has more than one {kind} for {listed(map(repr, twice))}"
        )


def _cost(cell: str, value: str, output: str, path: str) -> Fraction:
    what = f"the cost of publishing {output!r} for {value!r} in {path}"
    if not cell:
        raise InputError(f"{what} is missing")
    cost = parse_number(cell, what)
    if cost < 0:
        raise InputError(f"{what} must not be negative, but {cell} was given")
    return cost
