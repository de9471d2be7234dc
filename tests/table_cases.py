# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests on tables: write a text, count it, and look at the counts by name."""

import warnings
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.errors import PriorWarning
from pufferfish.prior import Prior
from pufferfish.tables import count_table, make_rules


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def count(table: Any, secret: str = "s", public: str = "x", **rules: Any) -> Prior:
    """Count a table whose few rows draw the warning about single rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*single row", category=PriorWarning)
        return count_table(table, make_rules(secret=secret, public=public, **rules))


def as_dict(prior: Prior) -> dict[str, dict[str, int]]:
    """The counts above zero: {secret: {value as text: rows}}."""
    names = [prior.support.name(k) for k in range(prior.support.size)]
    return {
        secret: {name: int(c) for name, c in zip(names, row, strict=True) if c}
        for secret, row in zip(prior.secrets, prior.counts, strict=True)
    }


def values(prior: Prior) -> list[Fraction | str]:
    return list(getattr(prior.support, "values", None) or prior.support.names)


def csv_text(rows: Iterable[tuple[str, str]], header: str = "s,x") -> str:
    return "\n".join([header, *(f"{a},{b}" for a, b in rows)]) + "\n"
