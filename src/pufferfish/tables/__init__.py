# SPDX-License-Identifier: Apache-2.0
"""Tables: files and dataframes are read, cleaned, counted and coded here."""

from pufferfish.tables.coder import Coded, Coder
from pufferfish.tables.count import count_table
from pufferfish.tables.joint import count_joint_table
from pufferfish.tables.jointreport import ColumnReport, JointReport
from pufferfish.tables.jointrules import JointRules, make_joint_rules
from pufferfish.tables.opening import open_table
from pufferfish.tables.report import TableReport
from pufferfish.tables.rules import MISSING_LEVEL, Rules, make_rules
from pufferfish.tables.source import Table

__all__ = [
    "MISSING_LEVEL",
    "Coded",
    "Coder",
    "ColumnReport",
    "JointReport",
    "JointRules",
    "Rules",
    "Table",
    "TableReport",
    "count_joint_table",
    "count_table",
    "make_joint_rules",
    "make_rules",
    "open_table",
]
