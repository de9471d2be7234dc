# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret."""

from dataclasses import dataclass
from typing import Any

from pufferfish.numbers import IntArray
from pufferfish.support import Product
from pufferfish.tables.people import Stratum
from pufferfish.tables.report import TableReport
from pufferfish.tables.rules import Coding, Rules


@dataclass(frozen=True, eq=False)
class RowCounts:
    """The counts of a table.

    Attributes
    ----------
    product : Product
        The product of the supports of the public columns, with n atoms.
    secrets : tuple of str, length m
    counts : int64 array, shape (m, n)
        Rows of each secret with each combination of values, flat in C order.
    codings : tuple of Coding
        One for each public column.
    strata : tuple of Stratum
        The people by their number of rows; empty where every row is one person's.
    report : TableReport
    """

    product: Product
    secrets: tuple[str, ...]
    counts: IntArray
    codings: tuple[Coding, ...]
    strata: tuple[Stratum, ...]
    report: TableReport


def count_table(source: Any, rules: Rules, *, delimiter: str | None = None) -> RowCounts:
    """Return the counts of a table under some rules."""
    raise NotImplementedError
