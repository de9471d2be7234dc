# SPDX-License-Identifier: Apache-2.0
"""Sniff: the header of a text file and the mark between its fields, and nothing else guessed."""

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

from pufferfish.errors import InputError
from pufferfish.rationals import NotFinite, parse_text
from pufferfish.tables.source import trimmed_names

#: Marks between fields, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}

#: So much of the file is looked at for its header.
_LOOK = 2**18
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
    """

    names: tuple[str, ...]
    delimiter: str


def sniff(path: Path, name: str) -> Header:
    """Return the header of a text file.

    Raises
    ------
    InputError
        If the file is empty, no UTF-8 text, begins with an empty line, or names a column twice.
    """
    text = _first_text(path, name)
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
    try:
        return Header(trimmed_names(header, name), best[1])
    except InputError as error:
        if sum(map(_is_number, header)) * 2 > len(header):
            raise InputError(f"{error}; is the first line of the file a header?") from None
        raise


def open_bytes(path: Path) -> io.BufferedReader:
    """Open a file for reading, unpacked where its name ends in .gz."""
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(gzip.GzipFile(path))
    return path.open("rb")


def _first_text(path: Path, name: str) -> str:
    try:
        with open_bytes(path) as file:
            start = file.read(_LOOK)
            more = bool(file.read(1))
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
    if more and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    return text.removeprefix("\ufeff")


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
    # As DuckDB does, one space between the delimiter and a quotation mark is allowed.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t"
    )
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) >= _RECORDS:
                break
    except csv.Error:
        pass  # a field of great length in one reading; another delimiter may do
    return records


def _is_number(text: str) -> bool:
    try:
        return parse_text(text) is not None
    except NotFinite:
        return True
