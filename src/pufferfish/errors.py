# SPDX-License-Identifier: Apache-2.0
"""Errors with their exit statuses, warnings, and how names are shown, listed and tabulated."""

import difflib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice

#: The folder of the package; its frames are nobody's own code.
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
#: Rows of a table that a notebook shows.
_MOST_ROWS = 40


class PufferfishError(Exception):
    """Base of every error that the package raises on purpose; one line of text.

    Attributes
    ----------
    exit_status : int
        What the command line exits with: 2 for wrong input, 1 for a failed check.
    """

    exit_status = 2


class InputError(PufferfishError, ValueError):
    """Wrong input: names what was given, what is allowed and, where there is one, a near match."""


class CheckFailed(PufferfishError):
    """A check came out negative, for example a plan whose recomputed loss exceeds epsilon."""

    exit_status = 1


class PufferfishWarning(UserWarning):
    """Base of the package's warnings; each kind below can be filtered on its own."""


class PriorWarning(PufferfishWarning):
    """Something about the table or prior to look at, such as a secret of a single row."""


class UnchangedWarning(PufferfishWarning):
    """The least scale is 0: a release would publish the column unchanged."""


class OutsidePromiseWarning(PufferfishWarning):
    """Some of what is released is not covered by the guarantee (kept columns, other secrets)."""


class SeededWarning(PufferfishWarning):
    """A release was drawn from a seed: for tests only, it protects nobody."""


def warn_user(message: str, category: type[PufferfishWarning]) -> None:
    """Warn at the line of the user's own code that called the package, however deep this is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def did_you_mean(given: object, allowed: Iterable[str]) -> str:
    """Return ``' (did you mean ...?)'`` for the nearest allowed name, or an empty string."""
    folded = {name.casefold(): name for name in allowed}
    close = difflib.get_close_matches(str(given).casefold(), list(folded), n=1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def quoted(name: str) -> str:
    """Return a name as it stands in a list: in quotes where it would be misread.

    That is where it is empty, holds a comma, a quote or a blank at its edge, or does not print.
    """
    text = short_name(name)
    plain = text and text == text.strip() and text.isprintable() and not set(text) & set(",'\"")
    return text if plain else repr(text)


def short_name(name: str, longest: int = 60) -> str:
    """Return a name, or its beginning where it is longer."""
    return name if len(name) <= longest else f"{name[: longest - 3]}..."


def printable(text: str) -> str:
    """Return text with an escape in place of each character that does not print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def joined(items: Iterable[object], limit: int = 8, text: Callable[..., str] = str) -> str:
    """Return the ``text`` of each item joined by commas; ``and 240 more`` beyond ``limit``."""
    every = list(items)
    shown = ", ".join(map(text, every[:limit]))
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"


def listed(items: Iterable[object], limit: int = 8, name: Callable[..., str] = str) -> str:
    """Return the names of items, each :func:`quoted`, joined as :func:`joined` does."""
    return joined(items, limit, lambda item: quoted(name(item)))


def listed_pairs(pairs: Sequence[Sequence[str]], limit: int = 4) -> str:
    """Return pairs of names joined by commas: ``(a, b), (a, c) and 3 more``."""
    return joined(pairs, limit, lambda pair: f"({listed(pair)})")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is one: ``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def html_table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of at most 40 rows as HTML; the first cell of a row is its head."""
    shown = list(islice(rows, _MOST_ROWS + 1))
    caption = f"<caption>{escape(title)}</caption>"
    heads = "".join(f'<th scope="col">{_cell(head)}</th>' for head in headers)
    lines = [
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in shown[:_MOST_ROWS]
    ]
    if len(shown) > _MOST_ROWS:
        lines.append(f'<tr><th scope="row">...</th>{"<td></td>" * (len(headers) - 1)}</tr>')
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "-" if value is None else str(value)
    return escape(printable(short_name(text)))
