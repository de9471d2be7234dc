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
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from pufferfish.errors import InputError, counted

#: Marks between fields, and what messages call them.
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: A longer line is refused, here and by DuckDB; so is a longer header.
LONGEST_LINE = 2_000_000
_MOST_COLUMNS = 20_000
#: So many bytes at a time stay in the processor's cache.
_BLOCK = 2**18
_MARK = b"\xef\xbb\xbf"  # of the order of bytes


@dataclass(frozen=True)
class Header:
    """What the first record of a text file says."""

    names: tuple[str, ...]  # as written
    delimiter: str
    end: bytes  # of a line: LF, CRLF or CR


@contextmanager
def opened(path: Path, name: str) -> Iterator[Any]:
    """Open a file for reading bytes, unpacked where its name ends in .gz; faults become ours."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InputError(f"{name}: truncated or corrupt gzip file") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None


def read_header(path: Path, name: str, delimiter: str | None) -> Header:
    """Return the header of a text file; its delimiter is the one that the first line has."""
    with opened(path, name) as file:
        start = file.read(LONGEST_LINE).removeprefix(_MARK)
    if b"\0" in start:
        raise InputError(f"{name} holds binary data or UTF-16 text; save it as CSV (UTF-8)")
    found = re.match(rb'(?:[^"\r\n]++|"[^"]*+")*+(\r\n|\n|\r|$)', start)
    line, end = (found[0], found[1] or b"\n") if found else (start, b"\n")
    if not line.strip():
        raise InputError(
            f"{name} is empty, or begins with an empty line: a table needs a header line with the "
            "column names"
        )
    text = _decoded(line, name, 1)
    marks = [mark for mark in DELIMITERS if mark in re.sub('"[^"]*"', "", text)]
    if delimiter is not None:
        marks = [{"tab": "\t", "\\t": "\t"}.get(str(delimiter), str(delimiter))]
    if len(marks) > 1 or not DELIMITERS.keys() >= set(marks):
        raise InputError(
            f"the header of {name} holds {' and '.join(DELIMITERS[mark] for mark in marks)}; say "
            "which one is between its fields (--delimiter)"
            if delimiter is None
            else f"the delimiter must be one of , ; | or tab, but {delimiter!r} was given"
        )
    mark = marks[0] if marks else ","
    try:
        names = tuple(next(_reader(io.StringIO(text, newline=""), mark)))
    except csv.Error:
        names = ()
    if not names or len(line) >= LONGEST_LINE - len(_MARK) or len(names) > _MOST_COLUMNS:
        raise InputError(
            f"the header of {name} is too long ({len(names):,} columns); at most {_MOST_COLUMNS:,} "
            "columns are read"
        )
    return Header(names, mark, end)


def _decoded(chunk: bytes, name: str, line: int) -> str:
    try:
        return chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        line += chunk[: error.start].count(b"\n")
        raise InputError(
            f"{name} is not UTF-8 text (line {line}); save it as UTF-8, for example with: "
            "iconv -f WINDOWS-1252 -t UTF-8"
        ) from None


def _reader(lines: Any, delimiter: str, strict: bool = False) -> Any:
    # As DuckDB does, one space between the delimiter and a quotation mark is allowed.
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=strict)


class _StrayQuoteError(Exception):
    """A quotation mark stands within a field, or after a space: a reader has to decide."""


def count_records(path: Path, name: str, header: Header, stopped: Event) -> int:
    """Return the number of records after the header; faults that DuckDB lets pass are refused.

    Where it is ``stopped`` before the end, the number is of no use to anybody.
    """
    tally = _Tally(name, header)
    rest, begin, width = b"", _MARK, len(header.names)
    try:
        with opened(path, name) as file:
            while (block := file.read(_BLOCK)) and not stopped.is_set():
                block = rest + block.removeprefix(begin)
                begin = b""
                cut = block.rfind(header.end[-1:]) + 1
                tally.add(block[:cut])
                rest = block[cut:]
                if len(rest) > LONGEST_LINE:
                    raise InputError(f"{name}: line {tally.lines + 1} is longer than 2 MB")
            tally.add(rest + header.end if rest else b"")
        records, right = tally.records, tally.marks == (width - 1) * tally.records
    except _StrayQuoteError:
        widths = [fields for _, fields in _widths(path, name, header, strict=False)]
        records, right = len(widths), set(widths) == {width}
    if stopped.is_set():
        return 0
    if tally.inside or not right:
        raise explain(path, name, header)
    return records - 1


class _Tally:
    """What has been counted of whole lines: records, lines, and marks between fields."""

    def __init__(self, name: str, header: Header) -> None:
        self.name, self.end, self.mark = name, header.end, ord(header.delimiter)
        self.single = len(header.names) == 1
        self.records = self.lines = self.marks = 0
        self.inside = False

    def add(self, chunk: bytes) -> None:
        """Count a chunk that begins with a line and ends with the end of one."""
        if not chunk.isascii():
            _decoded(chunk, self.name, self.lines + 1)
        if b"\0" in chunk:
            raise InputError(f"{self.name} holds binary data after line {self.lines}")
        data, size = np.frombuffer(chunk, np.uint8), len(self.end)
        ends, marks = data == self.end[-1], data == self.mark
        # The byte of line ends of another kind, or the first one of CRLF.
        second = b"\n" if self.end == b"\r" else b"\r"
        other = data == second[0] if second in chunk else np.zeros_like(ends)
        self.lines += int(np.count_nonzero(ends))
        if self.inside or b'"' in chunk:
            quotes = data == 34
            inside = np.bitwise_xor.accumulate(quotes) ^ self.inside
            # A quotation begins where a field does, or doubles a mark.
            before = quotes | marks | (data == 10) | (data == 13)
            if ((quotes & inside)[1:] & ~before[:-1]).any():
                raise _StrayQuoteError
            self.inside = bool(inside[-1]) if len(inside) else self.inside
            ends, other, marks = ends & ~inside, other & ~inside, marks & ~inside
        self.marks += int(np.count_nonzero(marks))
        records = int(np.count_nonzero(ends))
        pairs = int(np.count_nonzero(ends[1:] & other[:-1])) if size == 2 else 0
        if int(np.count_nonzero(other)) != pairs or (size == 2 and pairs != records):
            raise InputError(f"{self.name} mixes line ends (CRLF, LF, CR); write it with one kind")
        if not self.single:  # empty lines are no records
            empty = np.count_nonzero(ends[size:] & ends[:-size]) + np.count_nonzero(ends[:size])
            records -= int(empty)
        self.records += records


def _widths(path: Path, name: str, header: Header, strict: bool) -> Iterator[tuple[int, int]]:
    """Yield the first line and the number of fields of every record; 0 fields for a fault."""
    with opened(path, name) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
        pieces = iter(partial(lines.readline, LONGEST_LINE), "")  # an endless line is a fault
        reader, line = _reader(pieces, header.delimiter, strict), 1
        try:
            for record in reader:
                if record or len(header.names) == 1:
                    yield line, max(1, len(record))
                line = reader.line_num + 1
        except csv.Error:
            yield line, 0


def explain(path: Path, name: str, header: Header) -> InputError:
    """Return the error for a text file that cannot be read, with the first fault in it."""
    width = len(header.names)
    found = _widths(path, name, header, strict=True)
    line, fields = next(((line, n) for line, n in found if n != width), (0, width))
    if not line:
        return InputError(f"cannot read {name} as a text table")
    if not fields:
        return InputError(
            f"{name}, line {line}: a quoted field does not end where its quotation mark does"
        )
    return InputError(
        f"{name}: line {line} has {counted(fields, 'field')}, but the header has {width} (with "
        f"{DELIMITERS[header.delimiter]} between fields); correct that line, or quote the field "
        "that holds the mark"
    )
