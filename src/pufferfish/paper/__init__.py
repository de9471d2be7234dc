# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers: its five blocks, its table of results, and its first figure."""

from pufferfish.paper.figure import Claim, Condition, FigureOne, figure_one
from pufferfish.paper.sources import Block, Note, Reported, block, blocks, epsilons, write_table
from pufferfish.paper.table import Cell, Reduction, Reproduction, Row, reproduce

__all__ = [
    "Block",
    "Cell",
    "Claim",
    "Condition",
    "FigureOne",
    "Note",
    "Reduction",
    "Reported",
    "Reproduction",
    "Row",
    "block",
    "blocks",
    "epsilons",
    "figure_one",
    "reproduce",
    "write_table",
]
