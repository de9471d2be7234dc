# SPDX-License-Identifier: Apache-2.0
"""Diagnose: one clear line for why a file could not be read, with line number and field counts."""

import csv
import io
import re
from pathlib import Path

from pufferfish.tables.sniff import NAMES, Header, not_utf8, open_bytes

_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FOUND = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


def explain(message: str, path: Path, header: Header | None) -> str:
    """Return one line for a message of DuckDB's.

    Parameters
    ----------
    message : str
        Its text; it may quote rows of the table, which must not get out.
    path : Path
        The file.
    header : Header or None
        What was seen in a text file; None for other kinds.
    """
    at = _LINE.search(message)
    line = int(at[1]) if at else None
    where = "" if line is None else f", line {line}"
    if "utf-8" in message.lower() or "unicode" in message.lower():
        return not_utf8(str(path), line)
    if header is not None:
        counts = _FOUND.search(message)
        if counts:
            return wrong_count(path, header, line, int(counts[2]))
        if "quote" in message and "unterminated" in message:
            return f'{path}{where}: a quoted field does not end where its quotation mark (") does'
        ends = _line_ends(path) if "state machine" in message else []
        if len(ends) > 1:
            return (
                f"{path} mixes line ends ({' and '.join(ends)}); write it again with one kind of "
                "them"
            )
        if "maximum line size" in message.lower() or "max_line_size" in message.lower():
            return f"{path}{where}: a line is longer than 2 MB; is a quotation mark missing?"
    if "memory" in message.lower():
        return f"{path}: too many distinct values for the memory of this machine"
    kind = "text table" if header is not None else f"{path.suffix.lstrip('.') or 'table'} file"
    first = message.partition("\n")[0].split(": ", 1)[-1]
    # The first line of other messages is general, but a path or a cell may make it long.
    return f"cannot read {path} as a {kind}{where}: {first[:160]}"


def wrong_count(path: Path, header: Header, line: int | None, found: int) -> str:
    """Return the message for a row whose fields are not as many as the header's."""
    expected = len(header.names)
    exact = _first_wrong(path, header)
    if exact is not None:
        line, found = exact
    where = "a line" if line is None else f"line {line}"
    return (
        f"{path}: {where} has {found} field{'s' * (found != 1)}, but the header has {expected} "
        f"(with {NAMES[header.delimiter]} between fields); correct that line, or quote the field "
        "that holds the mark"
    )


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
                fields = len(record)
                # A mark at the end of the line with nothing after it is let pass by DuckDB.
                trailing = fields == expected + 1 and record[-1] == ""
                if record and fields != expected and not trailing:
                    return reader.line_num, fields
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
