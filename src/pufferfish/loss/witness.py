# SPDX-License-Identifier: Apache-2.0
"""The witness theorem: which outputs decide the loss, and how such an output is named.

The loss is a supremum over all outputs, for Laplace noise over a continuum. It is attained at one
of finitely many *witnesses*, so that it is a maximum that can be computed and proved: of a column
with noise at an atom (theory, section 2), where several releases of it have one output and are one
of theta_eff (section 6), and of a region at an atom of the whole support (section 5). Outputs of
several columns, or rows, are a grid of finitely many cells, in C order.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Where(NamedTuple):
    """A cell of the grid of outputs, and positions of two secrets: ``first`` is likelier there."""

    cell: int
    first: int
    second: int


@dataclass(frozen=True)
class Witness:
    """Where a loss is attained.

    Attributes
    ----------
    outputs : tuple of str
        One output for each release, as text; columns in order, then releases, row after row.
    pair : (str, str)
        The two secrets that these outputs tell apart best; they are likelier under the first.
    adversary : int
        Position of the prior in the scenario, counted from 0.
    rows : int
        Rows of one person that the outputs belong to.
    """

    outputs: tuple[str, ...]
    pair: tuple[str, str]
    adversary: int
    rows: int = 1
