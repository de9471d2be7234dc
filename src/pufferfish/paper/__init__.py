# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers: its ``table`` of results with its five blocks, and its first ``figure``.

``drawings`` draws them, with the claims of the captions.
"""

from pufferfish.paper.figure import FigureOne, figure_one
from pufferfish.paper.table import (
    Block,
    Reproduction,
    block,
    blocks,
    epsilons,
    reproduce,
    write_table,
)

__all__ = [
    "Block", "FigureOne", "Reproduction", "block", "blocks", "epsilons", "figure_one", "reproduce",
    "write_table",
]  # fmt: skip
