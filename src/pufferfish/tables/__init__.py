# SPDX-License-Identifier: Apache-2.0
"""Tables: files and dataframes are read, cleaned, counted and coded here."""

from pufferfish.tables.coder import Coded, Coder
from pufferfish.tables.count import count_table
from pufferfish.tables.opening import open_table
from pufferfish.tables.report import TableReport
from pufferfish.tables.rules import Rules, make_rules
from pufferfish.tables.source import Table

__all__ = [
    "Coded",
    "Coder",
    "Rules",
    "Table",
    "TableReport",
    "count_table",
    "make_rules",
    "open_table",
]
