# SPDX-License-Identifier: Apache-2.0
"""The witness theorem: which outputs decide the loss, and how such an output is named.

The loss is a supremum over all outputs, for Laplace noise over a continuum. It is attained at one
of finitely many *witnesses*, so that it is a maximum that can be computed and proved.

*One column with noise.* Between neighbouring atoms L_s(y) = sum_x P_s(x) e^(-|y - x| / theta) is
A_s e^(-y / theta) + B_s e^(y / theta) with A_s, B_s >= 0. So L_i / L_j is a Moebius function of
e^(2 y / theta) there, hence monotone, and beyond the first and last atom it is constant: it is
largest at an atom (theory, section 2).

*Several releases of one column.* Hold the outputs of everything else fixed: their likelihoods only
reweigh the masses. The joint kernel of the Laplace releases in x is a non-negative mixture of
e^(-|x - z| / theta_eff), 1/theta_eff = sum of 1/theta, so no output has a larger ratio than the
worst z. That one is an atom, and equal outputs y_1 = .. = y_k = z attain it (theory, section 6).

*Several columns, several rows.* One column after the other: their outputs together are a grid of
finitely many cells, in C order, and the loss is the largest over its cells.

*Regions.* Every distribution of a region has its witness among the atoms of the whole support; so
has the largest over all of them (theory, section 5).
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
