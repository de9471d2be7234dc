# SPDX-License-Identifier: Apache-2.0
"""Diagnose: one clear line for why a file could not be read, with line number and field counts."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from pufferfish.tables.sniff import Header, not_utf8, open_bytes, wrong_count

_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FOUND = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_ENCODING = re.compile(r"invalid (utf-8|unicode)|not utf-8")
_BLANK = re.compile(r"\s*")

#: DuckDB's words on broken Parquet files that hold nothing of the file, and ours for them.
_PARQUET = {
    "footer length error": "its end is damaged",
    "no magic bytes": "it does not end as one",
    "too small": "it is too short",
    "encrypted": "it is encrypted",
}
#: JSON files beyond this size are not looked through again for the line of a fault.
_LOOK_JSON = 2**26


def explain(message: str, path: Path, header: Header | None) -> str:
    """Return one line for a message of DuckDB's.

    Only what is recognised is passed on, in our words: DuckDB quotes rows of the table, which
    must not get out.

    Parameters
    ----------
    message : str
        Its text.
    path : Path
        The file.
    header : Header or None
        What was seen in a text file; None for other kinds.
    """
    # The path stands in many messages, and its words mean nothing here.
    words = message.replace(str(path.absolute()), "").replace(str(path), "").lower()
    at = _LINE.search(message)
    line = int(at[1]) if at else None
    where = "" if line is None else f", line {line}"
    if _ENCODING.search(words):
        return not_utf8(str(path), line)
    if header is not None:
        counts = _FOUND.search(message)
        if counts:
            exact = _first_wrong(path, header)
            return wrong_count(str(path), header, *(exact or (line, int(counts[2]))))
        if "quote" in words and "unterminated" in words:
            return f'{path}{where}: a quoted field does not end where its quotation mark (") does'
        ends = _line_ends(path) if "state machine" in words else []
        if len(ends) > 1:
            return (
                f"{path} mixes line ends ({' and '.join(ends)}); write it again with one kind of "
                "them"
            )
        if "maximum line size" in words or "max_line_size" in words:
            return f"{path}{where}: a line is longer than 2 MB; is a quotation mark missing?"
    if words.startswith("out of memory"):
        return f"{path}: too many distinct values for the memory of this machine"
    if header is not None:
        return f"cannot read {path} as a text table{where}"
    if "json" in words:
        return f"cannot read {path} as JSON{_json_fault(path)}"
    why = next((ours for theirs, ours in _PARQUET.items() if theirs in words), "")
    return f"cannot read {path} as a Parquet file{why and ': '}{why}"


class _TwiceError(ValueError):
    pass


def _json_fault(path: Path) -> str:
    """Return in words where Python, which counts lines as people do, finds the first fault."""
    try:
        with open_bytes(path) as file:
            data = file.read(_LOOK_JSON + 1)
        if len(data) > _LOOK_JSON:
            return ""
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, ValueError):
        return ""
    # Integers stay text: Python refuses to read those of more than 4,300 digits.
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_int=str)
    place = start = 0
    try:
        while place < len(text):
            blank = _BLANK.match(text, place)
            start = blank.end() if blank else place
            if start == len(text):
                break
            _, place = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return f": there is a fault in line {error.lineno}"
    except (_TwiceError, RecursionError) as error:
        what = "an object has one key twice" if isinstance(error, _TwiceError) else "it is too deep"
        line = text.count("\n", 0, start) + 1
        return f": {what} (in the value that begins in line {line})"
    return ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _first_wrong(path: Path, header: Header) -> tuple[int, int] | None:
    """Return line and fields of the first row that does not fit, as Python reads the file.

    DuckDB counts rows, not lines, and stops counting fields at the first one too many.
    """
    expected = len(header.names)
    try:
        with open_bytes(path) as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, delimiter=header.delimiter, skipinitialspace=True)
            for record in reader:
                if record and len(record) != expected:
                    return reader.line_num, len(record)
    except (csv.Error, OSError, EOFError):
        pass
    return None


def _line_ends(path: Path) -> list[str]:
    """Return the kinds of line ends in a file, in words."""
    found: dict[str, None] = {}
    previous = b""
    try:
        with open_bytes(path) as file:
            while block := file.read(2**20):
                block = previous + block
                pairs = block.count(b"\r\n")
                kinds = (("CRLF", pairs), ("LF", block.count(b"\n") - pairs))
                returns = block.count(b"\r") - pairs - block.endswith(b"\r")
                found.update((kind, None) for kind, n in (*kinds, ("CR", returns)) if n > 0)
                previous = b"\r" if block.endswith(b"\r") else b""
    except (OSError, EOFError):
        return []
    return list(found)
