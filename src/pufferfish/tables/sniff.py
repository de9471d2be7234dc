# SPDX-License-Identifier: Apache-2.0
"""Sniff: the header of a text file and the mark between its fields, and nothing else guessed."""

import csv
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, counted
from pufferfish.rationals import NotFinite, parse_text
from pufferfish.tables.source import trimmed_names

#: Marks between fields, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}

#: So much of the file is looked at for its header.
_LOOK = 2**18
#: And so much, in bytes, where the header is longer.
_LONGEST = 2**24
_RECORDS = 20

_MAGIC = {
    b"PK\x03\x04": "a ZIP archive or spreadsheet",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"SQLi": "a database",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Header:
    """What the first lines of a text file show.

    Attributes
    ----------
    names : tuple of str
        The names of the columns, trimmed.
    delimiter : str
        The mark between fields.
    goes_on : bool
        Whether anything but blanks follows the header.
    """

    names: tuple[str, ...]
    delimiter: str
    goes_on: bool = False


def sniff(path: Path, name: str) -> Header:
    """Return the header of a text file.

    Raises
    ------
    InputError
        If the file is empty, no UTF-8 text, begins with an empty line, or names a column twice.
    """
    text, more = _first_text(path, name)
    if not text.strip():
        raise InputError(f"{name} is empty: a table needs a header line with the column names")
    if not text.lstrip(" \t").strip("\r\n") or text[0] in "\r\n":
        raise InputError(f"{name} begins with an empty line; its first line must be the header")
    best: tuple[tuple[bool, int], str, list[str]] | None = None
    for delimiter in DELIMITERS:
        records = _records(text, delimiter)
        if not records:
            continue
        fields = len(records[0])
        agrees = fields > 1 and all(len(record) == fields for record in records)
        score = (agrees, fields)
        if best is None or score > best[0]:
            best = (score, delimiter, records[0])
    if best is None:
        raise InputError(f"the header of {name} cannot be read as text with fields")
    header = best[2]
    rest = _after_header(text, best[1], name)
    try:
        found = Header(trimmed_names(header, name), best[1], more or bool(rest.strip()))
    except InputError as error:
        if sum(map(_is_number, header)) * 2 > len(header):
            raise InputError(f"{error}; is the first line of the file a header?") from None
        raise
    _check_ends(text, found, name)
    return found


def wrong_count(name: str, header: Header, line: int | None, found: int) -> str:
    """Return the message for a row whose fields are not as many as the header's."""
    where = "a line" if line is None else f"line {line}"
    return (
        f"{name}: {where} has {counted(found, 'field')}, but the header has {len(header.names)} "
        f"(with {NAMES[header.delimiter]} between fields); correct that line, or quote the field "
        "that holds the mark"
    )


def _after_header(text: str, delimiter: str, name: str) -> str:
    """Return what follows the header.

    Raises
    ------
    InputError
        If a line ends within a name in another way than the header itself does: DuckDB would take
        that for the end of all lines, and find no row.
    """
    reader = _reader(text, delimiter)
    next(reader)
    lines = io.StringIO(text, newline="")
    *within, last = [_line_end(next(lines)) for _ in range(reader.line_num)]
    if last and any(end != last for end in within):
        raise InputError(
            f"the header of {name} has a line break within the name of a column that is none of "
            "those between its lines (CRLF, LF or CR); write that name on one line"
        )
    return lines.read()


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _check_ends(text: str, header: Header, name: str) -> None:
    """Refuse a mark at the end of a line with nothing after it, where the header has none.

    DuckDB lets such a surplus field pass, so that it is looked for here; only as far as the look
    at the start of the file goes, because all of it would be read twice otherwise.
    """
    reader = _reader(text, header.delimiter)
    surplus = len(header.names) + 1
    try:
        for record in reader:
            if len(record) == surplus and record[-1] == "":
                raise InputError(wrong_count(name, header, reader.line_num, surplus))
    except csv.Error:
        pass  # a field of great length: left to DuckDB


def open_bytes(path: Path) -> io.BufferedReader:
    """Open a file for reading, unpacked where its name ends in .gz."""
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(gzip.GzipFile(path))
    return path.open("rb")


def check_gzip(path: Path, name: str) -> None:
    """Unpack a whole file once to see that it is complete and unchanged: DuckDB checks no sums.

    Raises
    ------
    InputError
        If it is damaged or cannot be read.
    """
    try:
        with gzip.open(path) as file:
            while file.read(2**20):
                pass
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(
            f"{name} is no complete gzip file, or is damaged (its checksum does not fit)"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


def _first_text(path: Path, name: str) -> tuple[str, bool]:
    """Return the first lines, with the whole header, and whether there are more."""
    try:
        with open_bytes(path) as file:
            start = file.read(_LOOK)
            while (more := bool(file.peek(1))) and not _has_header(start):
                if len(start) >= _LONGEST:
                    if b"\n" in start or b"\r" in start:
                        break  # a stray quotation mark, perhaps: the lines are looked at below
                    raise InputError(
                        f"the header of {name} is longer than {_LONGEST // 2**20} MB; is it a text "
                        "table?"
                    )
                start += file.read(3 * len(start))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(f"{name} is no complete gzip file") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise InputError(
                f"{name} holds {what}, not a text table; save it as CSV (UTF-8) or Parquet, with "
                "the ending that fits"
            )
    if start.startswith(_UTF16) or _looks_utf16(start):
        raise InputError(f"{name} is UTF-16 text; save it as CSV in UTF-8")
    if b"\x00" in start:
        raise InputError(f"{name} holds binary data, not a text table")
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        # The look may end within a character; only then is the last one incomplete.
        if not (more and error.start >= len(start) - 4):
            raise InputError(not_utf8(name, start[: error.start].count(b"\n") + 1)) from None
        text = start[: error.start].decode("utf-8")
    if more:
        end = "\n" if "\n" in text else "\r"
        text = text[: text.rfind(end) + 1] or text
    return text.removeprefix("\ufeff"), more


def _has_header(start: bytes) -> bool:
    """Whether the first bytes hold a line end outside quotation marks, or are no text at all."""
    if b"\x00" in start:
        return True
    if b'"' not in start:
        return b"\n" in start or b"\r" in start[:-1]
    outside = re.sub(rb'"[^"]*("|$)', b"", start)
    return b"\n" in outside or b"\r" in outside[:-1]


def not_utf8(name: str, line: int | None) -> str:
    """Return the message for a file in another encoding."""
    where = "" if line is None else f" (line {line})"
    return (
        f"{name} is not UTF-8 text{where}; save it as UTF-8, for example with: "
        "iconv -f WINDOWS-1252 -t UTF-8"
    )


def _looks_utf16(start: bytes) -> bool:
    even, odd = start[:200:2].count(0), start[1:200:2].count(0)
    return len(start) > 8 and max(even, odd) > 40 * len(start[:200]) // 100 and min(even, odd) == 0


def _records(text: str, delimiter: str) -> list[list[str]]:
    """Return the first records, those of empty lines aside."""
    records: list[list[str]] = []
    reader = _reader(text, delimiter)
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) >= _RECORDS:
                break
    except csv.Error:
        pass  # a field of great length in one reading; another delimiter may do
    return records


def _reader(text: str, delimiter: str) -> Any:
    # As DuckDB does, one space between the delimiter and a quotation mark is allowed.
    return csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t"
    )


def _is_number(text: str) -> bool:
    try:
        return parse_text(text) is not None
    except NotFinite:
        return True
