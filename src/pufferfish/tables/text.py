# SPDX-License-Identifier: Apache-2.0
"""Text: the header of a text file, and a strict count of its records.

DuckDB parses the records. It lets some faults pass (a surplus empty field at the end of a line, a
last line longer than its buffer, broken text in columns that are not read), so every file is also
gone through here: bytes are counted, and rows read must equal records counted.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish.errors import InputError, counted

#: Marks between fields, and what messages call them.
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: A longer line is refused, here and by DuckDB.
LONGEST_LINE = 2_000_000
_LONGEST_HEADER = 2**24
_MOST_COLUMNS = 20_000
_BLOCK = 2**22
_ENDS = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
_MAGIC = {
    b"PK\x03\x04": "a ZIP archive or spreadsheet",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


@dataclass(frozen=True)
class Header:
    """What the first record of a text file says.

    Attributes
    ----------
    names : tuple of str
        The names of the columns, as written.
    delimiter : str
        The mark between fields.
    end : str
        The end of a line: LF, CRLF or CR.
    """

    names: tuple[str, ...]
    delimiter: str
    end: str


@contextmanager
def _opened(path: Path, name: str) -> Iterator[Any]:
    """Open a file for reading bytes, unpacked where its name ends in .gz; faults become ours."""
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(f"{name}: truncated or corrupt gzip file") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


def check_gzip(path: Path, name: str) -> None:
    """Unpack a whole file once, for its checksum, which DuckDB does not look at."""
    with _opened(path, name) as file:
        while file.read(_BLOCK):
            pass


def read_header(path: Path, name: str, delimiter: str | None) -> Header:
    """Return the header of a text file; its delimiter is the one that the first line has."""
    with _opened(path, name) as file:
        start = file.read(2**16)
        while len(start) < _LONGEST_HEADER and not _header_end(start):
            more = file.read(len(start))
            if not more:
                break
            start += more
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise InputError(f"{name} holds {what}, not UTF-8 text; save it as CSV (UTF-8)")
    if b"\0" in start:
        what = "UTF-16 text" if start[1:20:2].strip(b"\0") == b"" else "binary data"
        raise InputError(f"{name} holds {what}, not UTF-8 text; save it as CSV (UTF-8)")
    start = start.removeprefix(b"\xef\xbb\xbf")
    if not start.strip():
        raise InputError(f"{name} is empty: a table needs a header line with the column names")
    line = start[: _header_end(start) or len(start)]
    if len(line) >= _LONGEST_HEADER:
        raise InputError(f"the header of {name} is longer than {_LONGEST_HEADER // 2**20} MB")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(name, line[: error.start].count(b"\n") + 1) from None
    if not text.strip(" \t\r\n"):
        raise InputError(f"{name} begins with an empty line; its first line must be the header")
    mark = _delimiter(text, name, delimiter)
    try:
        record = next(_reader(io.StringIO(text, newline=""), mark))
    except csv.Error:
        raise InputError(f"the header of {name} holds a name that is too long") from None
    if len(record) > _MOST_COLUMNS:
        raise InputError(f"{name} has {len(record):,} columns, more than {_MOST_COLUMNS:,}")
    end = next((end for end in ("\r\n", "\n", "\r") if text.endswith(end)), "\n")
    return Header(tuple(record), mark, end)


def _header_end(start: bytes) -> int:
    """Return where the first line end outside quotation marks ends; 0 where there is none."""
    place = 0
    for k, piece in enumerate(start.split(b'"')):
        found = re.search(rb"\r\n|\n|\r(?=.)", piece, re.DOTALL) if k % 2 == 0 else None
        if found:
            return place + found.end()
        place += len(piece) + 1
    return 0


def _delimiter(text: str, name: str, given: str | None) -> str:
    if given is not None:
        mark = {"tab": "\t", "\\t": "\t"}.get(given, given)
        if mark not in DELIMITERS:
            raise InputError(f"the delimiter must be one of , ; | or tab, but {given!r} was given")
        return mark
    outside = "".join(text.split('"')[::2])
    found = [mark for mark in DELIMITERS if mark in outside]
    if len(found) > 1:
        marks = " and ".join(DELIMITERS[mark] for mark in found)
        raise InputError(
            f"the header of {name} holds {marks}; say which one is between its fields (--delimiter)"
        )
    return found[0] if found else ","


def _reader(lines: Any, delimiter: str, strict: bool = False) -> Any:
    # As DuckDB does, one space between the delimiter and a quotation mark is allowed.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=strict)


class _StrayQuoteError(Exception):
    """A quotation mark stands within a field, so that counting quotation marks does not do."""


def count_records(path: Path, name: str, header: Header) -> int:
    """Return the number of records after the header; faults that DuckDB lets pass are refused."""
    tally = _Tally(name, header)
    rest, begin = b"", b"\xef\xbb\xbf"
    try:
        with _opened(path, name) as file:
            while block := file.read(_BLOCK):
                block = rest + block.removeprefix(begin)
                begin = b""
                cut = block.rfind(tally.end[-1:]) + 1
                tally.add(block[:cut])
                rest = block[cut:]
                if len(rest) > LONGEST_LINE:
                    raise InputError(f"{name}: line {tally.lines + 1} is longer than 2 MB")
            tally.add(rest + tally.end if rest else b"")
    except _StrayQuoteError:
        return _parsed(path, name, header)
    if tally.inside or tally.marks != (len(header.names) - 1) * tally.records:
        raise explain(path, name, header)
    return tally.records - 1


class _Tally:
    """What has been counted of whole lines: records, lines, and marks between fields."""

    def __init__(self, name: str, header: Header) -> None:
        self.name, self.end = name, header.end.encode()
        self.mark = ord(header.delimiter)
        self.single = len(header.names) == 1
        self.records = self.lines = self.marks = 0
        self.inside = False

    def add(self, chunk: bytes) -> None:
        """Count a chunk that begins with a line and ends with the end of one."""
        data = np.frombuffer(chunk, dtype=np.uint8)
        if not chunk.isascii():
            try:
                chunk.decode("utf-8")
            except UnicodeDecodeError as error:
                raise _not_utf8(self.name, self._line(chunk, error.start)) from None
        if not data.all():
            where = self._line(chunk, chunk.index(0))
            raise InputError(f"{self.name} holds binary data (a NUL byte in line {where})")
        last = self.end[-1]
        ends, other, marks = data == last, data == 23 - last, data == self.mark
        lines = int(np.count_nonzero(ends))
        quotes, began = data == 34, self.inside
        if began or quotes.any():
            outside = self._outside(data, quotes)
            ends, other, marks = ends & outside, other & outside, marks & outside
        self.marks += int(np.count_nonzero(marks))
        records = int(np.count_nonzero(ends))
        pairs = int(np.count_nonzero(ends[1:] & other[:-1])) if len(self.end) == 2 else 0
        if int(np.count_nonzero(other)) != pairs or (len(self.end) == 2 and pairs != records):
            raise InputError(
                f"{self.name} mixes line ends (CRLF, LF or CR) in lines {self.lines + 1} to "
                f"{self.lines + lines}; write it again with one kind of them"
            )
        self.lines += lines
        self.records += records
        if not self.single and (chunk.startswith(self.end) or self.end * 2 in chunk):
            # Empty lines are no records.
            places = np.flatnonzero(ends)
            empty = np.diff(places, prepend=-1) == len(self.end)
            self.records -= int(np.count_nonzero(empty[int(began) :]))

    def _line(self, chunk: bytes, place: int) -> int:
        return self.lines + chunk[:place].count(self.end[-1:]) + 1

    def _outside(self, data: Any, quotes: Any) -> Any:
        """Return which bytes are outside quotation marks."""
        began, place = self.inside, np.flatnonzero(quotes)
        opening = place[int(began) :: 2]
        before, second = data[np.maximum(opening - 1, 0)], data[np.maximum(opening - 2, 0)]
        # Where a field begins, after one space perhaps; or it doubles the one before.
        begins = (opening == 0) | (before == self.mark) | (before == 10) | (before == 13)
        begins |= (before == 34) | ((before == 32) & (second == self.mark))
        if not begins.all():
            raise _StrayQuoteError
        self.inside = bool((len(place) + began) % 2)
        return (np.cumsum(quotes, dtype=np.uint8) & 1) == int(began)


def _records(path: Path, name: str, header: Header, strict: bool) -> Iterator[tuple[int, int]]:
    """Yield the first line and the number of fields of every record that is not empty."""
    with _opened(path, name) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
        reader = _reader(lines, header.delimiter, strict)
        line = 1
        try:
            for record in reader:
                if record or len(header.names) == 1:
                    yield line, len(record)
                line = reader.line_num + 1
        except csv.Error:
            yield line, 0


def _parsed(path: Path, name: str, header: Header) -> int:
    """Return the number of records of a file with quotation marks within fields."""
    count = -1
    for _, fields in _records(path, name, header, strict=False):
        if fields not in (len(header.names), 0 if len(header.names) == 1 else -1):
            raise explain(path, name, header)
        count += 1
    return count


def explain(path: Path, name: str, header: Header) -> InputError:
    """Return the error for a text file that cannot be read, with the first fault in it."""
    expected = len(header.names)
    for line, fields in _records(path, name, header, strict=True):
        if not fields and expected > 1:
            return InputError(
                f'{name}, line {line}: a quoted field does not end where its quotation mark (") '
                "does"
            )
        if fields not in (expected, 0):
            return InputError(
                f"{name}: line {line} has {counted(fields, 'field')}, but the header has "
                f"{expected} (with {DELIMITERS[header.delimiter]} between fields); correct that "
                "line, or quote the field that holds the mark"
            )
    return InputError(f"cannot read {name} as a text table")


def _not_utf8(name: str, line: int) -> InputError:
    return InputError(
        f"{name} is not UTF-8 text (line {line}); save it as UTF-8, for example with: "
        "iconv -f WINDOWS-1252 -t UTF-8"
    )
