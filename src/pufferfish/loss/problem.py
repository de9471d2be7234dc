# SPDX-License-Identifier: Apache-2.0
"""The loss as a list of problems in exact integers: kernels, ambiguity sets, pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pufferfish.loss.kernel import Axis, Mechanism
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.scenario import Scenario

#: The mechanisms that are applied to each column, by its position on the scenario's product.
Releases = Mapping[int, Sequence[Mechanism]]

#: Cells of the grid of outputs up to which the loss is computed.
LARGEST_GRID = 1 << 24


class GridTooLarge(Exception):
    """The grid of outputs has more cells than the loss can be proved on; internal."""

    def __init__(self, cells: int, limit: int) -> None:
        super().__init__(f"the grid has {cells} cells, more than {limit}")
        self.cells, self.limit = cells, limit


@dataclass(frozen=True, eq=False)
class Problem:
    """Kernels, and what each adversary holds possible under each secret.

    Attributes
    ----------
    axes : tuple of Axis
        One for each released column of each row.
    adversaries : tuple of tuples of Point or Region
        For each adversary one set per secret; masses of a point have one axis per ``axes``.
    pairs : tuple of (int, int)
        Positions of secrets that nobody may tell apart.
    secrets : tuple of str
        Their names.
    rows : int
        Rows of one person that all of this is about.
    """

    axes: tuple[Axis, ...]
    adversaries: tuple[tuple[Point | Region, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    secrets: tuple[str, ...]
    rows: int = 1


def problems_of(
    scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID
) -> list[Problem]:
    """Return the problem of single rows, then one for each adversary and number of rows.

    Raises GridTooLarge where a grid has more cells than ``limit``. What has no problem is
    :func:`unknown_rows`.
    """
    raise NotImplementedError


def unknown_rows(scenario: Scenario) -> int:
    """Return the largest number of rows that only one secret of some pair has; 0: none.

    Nothing is known of the other's rows together, so the loss of such people is bounded by this
    many times the sum of all worst cases over the whole support (and by nothing less).
    """
    raise NotImplementedError
