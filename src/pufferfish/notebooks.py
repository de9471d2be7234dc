# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks: what ``_repr_html_`` of priors, plans and estimates returns."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from pufferfish.errors import printable, short_name

#: Rows that are shown.
_MOST = 40


def html_table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML, of at most 40 rows; the first cell of a row is its head."""
    shown = list(islice(rows, _MOST + 1))
    caption = f"<caption>{escape(title)}</caption>"
    heads = "".join(f'<th scope="col">{_cell(head)}</th>' for head in headers)
    lines = [
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in shown[:_MOST]
    ]
    if len(shown) > _MOST:
        lines.append(f'<tr><th scope="row">...</th>{"<td></td>" * (len(headers) - 1)}</tr>')
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "-" if value is None else str(value)
    return escape(printable(short_name(text)))
