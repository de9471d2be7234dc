# SPDX-License-Identifier: Apache-2.0
"""A hostile table, and reports of all kinds of plans."""

import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd

import pufferfish as pf
from pufferfish.errors import PufferfishWarning
from pufferfish.report.page import page

#: Markup, formulas, mathematics, templates, and characters that a page or a terminal would obey.
LEVELS = [
    "<script>alert(1)</script>", "</svg>", "</svg><script>alert(3)</script>", "&lt;", "x" * 10_000,
    "\u200eleft\u200fright", "\u202eevil\u2066", "=cmd|' /C calc'!A0", "@SUM(1)", "-1+2", "+1-1",
    "$x$", "$\\alpha$", "\\alpha_1^2", "two\nlines", "a\tb\u2028c\x85", "\U0001f421 fish",
    "nul\x00l", "{{ 7*7 }}", "{% raw %}", "]]>", "<!-- x", "'\"><img src=x onerror=alert(1)>",
    "a, \"b\"", "\x1b[31mred\x07", "\xad\ufeff",
]  # fmt: skip
SECRETS = ["</title><script>alert(2)</script>", "=1+1 \u202e{{ 7*7 }}", "\x1b]0;x\x07\n$y$"]
SECRET, COLUMN = "</h1><b>&amp\u202es\x1b[2J", "=x|<i>{{ 7*7 }}\n$z$\x07"
#: What must never be found in what is shown: it acts, or hides what stands beside it.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def hostile_rows() -> Iterator[tuple[str, str]]:
    """Yield the rows of the hostile table: a secret and a level each."""
    for k, (secret, level) in enumerate(itertools.product(SECRETS, LEVELS)):
        yield from [(secret, level)] * (1 + 7 * k % 5)


def hostile_table() -> pd.DataFrame:
    """Return the hostile table."""
    return pd.DataFrame(list(hostile_rows()), columns=[SECRET, COLUMN])


def numbers(first: int = 0) -> pd.DataFrame:
    """Return a table of 3,000 rows; two that begin with another value differ in one row."""
    column = [0, 1, 2, 3, 3, 2] * 500
    return pd.DataFrame({"s": ["a", "b"] * 1500, "x": [first, *column[1:]]})


def noisy(table: Any, **options: Any) -> Any:
    """Return counts of :func:`numbers` with noise from a seed."""
    given: Any = {"secret": "s", "public": "x", "pairs": [("a", "b")], "seed": 1}
    if "levels" not in options:
        given["support"] = range(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PufferfishWarning)
        return pf.noisy_counts(table, 1, **given, **options)


def reports() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of a report of each kind."""
    table = numbers()
    known = pf.Prior.from_table(table, secret="s", public="x")
    robust = pf.Prior.from_table(table, secret="s", public="x", confidence="0.95")
    small = pf.Prior.from_table(table.head(60), secret="s", public="x")
    levels = pf.Prior.from_counts(
        {f"group {g}": [5 + (3 * g + 7 * x) % 11 for x in range(30)] for g in range(5)},
        support=[f"a level with a long name, number {x}" for x in range(30)],
    )
    strange = pf.Prior.from_table(hostile_table(), secret=SECRET, public=COLUMN)
    plan, channel = pf.calibrate(known, "0.5"), pf.calibrate(strange, 1)
    yield "robust", page(pf.calibrate(robust, "0.5"), robust)
    yield "sample", page(pf.calibrate(small, "0.5"), small)
    yield "nothing", page(pf.calibrate(known, "0.01", "wasserstein"), known)
    yield "channel", page(pf.calibrate(levels, "0.5"), levels, source="a table.csv")
    yield "public", page(plan, public=True)
    yield "publishable", page(pf.calibrate(noisy(table), 2), public=True)
    yield "hostile", page(channel, strange, source="<u>\u202e.csv")
    yield "hostile-public", page(channel, public=True)
