# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests on tables: write a text, count it, and look at the counts by name."""

import warnings
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pufferfish.errors import InputError, PriorWarning
from pufferfish.support import Support
from pufferfish.tables.count import RowCounts, count_table
from pufferfish.tables.rules import make_rules
from pufferfish.tables.source import open_table


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def count(
    table: Any, secret: str = "s", public: Any = "x", delimiter: str | None = None, **rules: Any
) -> RowCounts:
    """Count a table whose few rows draw the warning about single rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*single row", category=PriorWarning)
        made = make_rules(secret=secret, public=public, **rules)
        found = count_table(open_table(table, delimiter=delimiter), made)
        for text in found.report.warnings:
            warnings.warn(text, PriorWarning, stacklevel=2)
        return found


def refused(table: Any, secret: str = "s", public: Any = "x", **rules: Any) -> str:
    """The one line with which a table is refused."""
    with pytest.raises(InputError) as caught:
        count(table, secret, public, **rules)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


def support(found: RowCounts) -> Any:
    """The support of the only column."""
    axis: Support = found.product.only
    return axis


def as_dict(found: RowCounts) -> dict[str, dict[str, int]]:
    """The counts above zero: {secret: {value as text: rows}}."""
    names = [found.product.name(k) for k in range(found.product.size)]
    return {
        secret: {name: int(c) for name, c in zip(names, row, strict=True) if c}
        for secret, row in zip(found.secrets, found.counts, strict=True)
    }


def values(found: RowCounts) -> list[Fraction | str]:
    return list(getattr(support(found), "values", None) or support(found).names)


def aside(found: RowCounts) -> list[tuple[str, str, int]]:
    return [(a.reason, a.name, a.rows) for a in found.report.set_aside]


def csv_text(rows: Iterable[tuple[str, str]], header: str = "s,x") -> str:
    return "\n".join([header, *(f"{a},{b}" for a, b in rows)]) + "\n"
