# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers: its five ``blocks``, its ``table`` of results, and its first ``figure``.

``drawings`` draws them, with the claims of the captions.
"""

from pufferfish.paper.blocks import Block, block, blocks, epsilons, write_table
from pufferfish.paper.figure import FigureOne, figure_one
from pufferfish.paper.table import Reproduction, reproduce

__all__ = [
    "Block", "FigureOne", "Reproduction", "block", "blocks", "epsilons", "figure_one", "reproduce",
    "write_table",
]  # fmt: skip
