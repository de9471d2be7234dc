# SPDX-License-Identifier: Apache-2.0
"""The paper's first figure as numbers: where the strict and the relaxed condition hold.

The figure shows I(x, x'; theta) = (e^{|x - x'| / theta} - e^eps) pi*(x, x'). At the wasserstein
scale no cell is positive; at the relaxed scale some are, while no column x' sums to more than 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.coupling import Coupling, comonotone
from pufferfish.errors import InputError
from pufferfish.paper.glucose import binned
from pufferfish.paper.signs import cell_sign, column_sums, factors
from pufferfish.rationals import float_down, float_up, parse_epsilon, parse_number, show
from pufferfish.scenario import Scenario

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SignArray = npt.NDArray[np.int8]

#: e^eps is a double up to here.
_LARGEST_EPSILON = 700


@dataclass(frozen=True, eq=False)
class Condition:
    """I(x, x'; theta) at one scale, with signs that are decided rigorously.

    Attributes
    ----------
    scale : float
        theta, in bins.
    cells : float64 array, shape (c,)
        I of every cell of the coupling; no unit.
    cell_signs : int8 array, shape (c,)
        -1, 0 or 1, from rational arithmetic: I has the sign of ``|x - x'| / theta - eps``.
    sums : float64 array, shape (k,)
        The sum of I over x, for every x' that has mass.
    sum_signs : int8 array, shape (k,)
        -1, 0 or 1, from ball arithmetic with as many digits as it takes.
    """

    scale: float
    cells: FloatArray
    cell_signs: SignArray
    sums: FloatArray
    sum_signs: SignArray

    @property
    def positive_cells(self) -> int:
        """How many cells are positive."""
        return int(np.count_nonzero(self.cell_signs > 0))

    @property
    def positive_sums(self) -> int:
        """How many columns have a positive sum."""
        return int(np.count_nonzero(self.sum_signs > 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as JSON values."""
        return {
            "scale": self.scale,
            "cells": self.cells.tolist(),
            "cell_signs": self.cell_signs.tolist(),
            "sums": self.sums.tolist(),
            "sum_signs": self.sum_signs.tolist(),
        }


@dataclass(frozen=True)
class Claim:
    """A claim that the figure makes, checked.

    Attributes
    ----------
    name : str
        "strict" or "relaxed".
    text : str
        The claim.
    holds : bool
    found : str
        What was counted.
    """

    name: str
    text: str
    holds: bool
    found: str


@dataclass(frozen=True, eq=False)
class FigureOne:
    """The figure's numbers.

    Attributes
    ----------
    source : str
        The file.
    epsilon, age : Fraction
        Epsilon, and the age that divides the two secrets.
    bins : int
        Bins of equal width, numbered from 0, between ``lowest`` and ``highest``.
    lowest, highest : Fraction
        The observed range of Glucose.
    rows_used, rows_set_aside : int
        Rows with both cells, and rows in which one is missing.
    scenario : Scenario
        The two age groups on the bins.
    side_columns, side_rows : float
        The scales that the two sides need, given x' and given x; in bins.
    x, x_prime : int64 array, shape (c,)
        The bins of every cell of the comonotone coupling.
    mass : float64 array, shape (c,)
        pi*(x, x').
    columns : int64 array, shape (k,)
        The bins x' that have mass.
    strict, relaxed : Condition
        At the wasserstein scale, and at the relaxed scale.
    """

    source: str
    epsilon: Fraction
    age: Fraction
    bins: int
    lowest: Fraction
    highest: Fraction
    rows_used: int
    rows_set_aside: int
    scenario: Scenario
    side_columns: float
    side_rows: float
    x: IntArray
    x_prime: IntArray
    mass: FloatArray
    columns: IntArray
    strict: Condition
    relaxed: Condition

    @property
    def claims(self) -> tuple[Claim, Claim]:
        """The two claims of the figure."""
        strict, relaxed = self.strict, self.relaxed
        c, k = len(self.x), len(self.columns)
        return (
            Claim(
                "strict",
                f"at the wasserstein scale {strict.scale!r} no I(x, x') is above 0",
                strict.positive_cells == 0,
                f"{strict.positive_cells} of {c} cells are above 0",
            ),
            Claim(
                "relaxed",
                f"at the relaxed scale {relaxed.scale!r} some I(x, x') is above 0, "
                "but no sum over x is",
                relaxed.positive_cells > 0 and relaxed.positive_sums == 0,
                f"{relaxed.positive_cells} of {c} cells and {relaxed.positive_sums} of {k} sums "
                "are above 0",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "source": self.source,
            "epsilon": float(self.epsilon),
            "age": float(self.age),
            "bins": self.bins,
            "range": [float(self.lowest), float(self.highest)],
            "rows_used": self.rows_used,
            "rows_set_aside": self.rows_set_aside,
            "side_columns": self.side_columns,
            "side_rows": self.side_rows,
            "x": self.x.tolist(),
            "x_prime": self.x_prime.tolist(),
            "mass": self.mass.tolist(),
            "columns": self.columns.tolist(),
            "strict": self.strict.to_dict(),
            "relaxed": self.relaxed.to_dict(),
            "claims": [
                {"name": c.name, "text": c.text, "holds": c.holds, "found": c.found}
                for c in self.claims
            ],
        }


def figure_one(path: Any, epsilon: Any = 1, bins: int = 100, age: Any = 29) -> FigureOne:
    """Compute the paper's first figure from the Pima Indians Diabetes table.

    The public value is Glucose in bins of equal width, the secret whether Age is above a limit.
    The paper does not give its limit; 29 divides the table into about equal parts.

    Parameters
    ----------
    path : path or dataframe
        A table with the columns Glucose and Age.
    epsilon : number or str
        Above 0, at most 700.
    bins : int
        At least 2.
    age : number or str
        The secret is Age <= age (x) against Age > age (x').

    Returns
    -------
    FigureOne

    Raises
    ------
    InputError
        If the table or a column cannot be read, a cell is no number, all values are equal, or one
        of the age groups is empty.

    Notes
    -----
    Source: the paper's first figure; theory, section 3.
    """
    from pufferfish.calibration.relaxed import relaxed as relaxed_noise
    from pufferfish.calibration.roots import sides
    from pufferfish.calibration.wasserstein import wasserstein

    exact_epsilon = parse_epsilon(epsilon)
    if exact_epsilon > _LARGEST_EPSILON:
        raise InputError(
            f"epsilon must be at most {_LARGEST_EPSILON} for the figure, but {epsilon} was given"
        )
    limit = parse_number(age, "the age")
    table = binned(path, bins, limit)
    view = next(table.scenario.views())
    coupling = comonotone(view)
    needed = [
        0.0 if np.isinf(u) else float_up(view.step / Fraction(u))
        for u in sides(coupling, float_down(exact_epsilon))
    ]
    scales = [
        method(table.scenario, exact_epsilon).scale for method in (wasserstein, relaxed_noise)
    ]
    strict, relaxed = (condition(coupling, scale, exact_epsilon) for scale in scales)
    index = view.index
    return FigureOne(
        table.source,
        exact_epsilon,
        limit,
        bins,
        table.lowest,
        table.highest,
        table.rows_used,
        table.rows_set_aside,
        table.scenario,
        needed[0],
        needed[1],
        index[coupling.first],
        index[coupling.second],
        np.array([int(m) / coupling.total for m in coupling.mass.tolist()]),
        index[np.unique(coupling.second)],
        strict,
        relaxed,
    )


def condition(coupling: Coupling, scale: float, epsilon: Fraction) -> Condition:
    """Return I(x, x'; theta) of a coupling at one scale.

    Parameters
    ----------
    coupling : Coupling
        On a lattice of step 1.
    scale : float
        theta; 0 only for a coupling that moves nothing.
    epsilon : Fraction
        Above 0.

    Raises
    ------
    InputError
        If the scale is 0 and the coupling moves mass.
    """
    theta = Fraction(scale)
    if theta <= 0 < coupling.largest_distance:
        raise InputError(f"the scale must be above 0, but {show(theta)} was given")
    distances = coupling.distance.tolist()
    # Taken in rationals, so that a cell at the very edge is seen to be 0.
    exponents = {d: d / theta - epsilon if d else -epsilon for d in set(distances)}
    masses = [int(m) for m in coupling.mass.tolist()]
    starts = np.flatnonzero(np.diff(coupling.second, prepend=-1)).tolist()
    sums = column_sums(masses, distances, starts, exponents, epsilon, coupling.total)
    factor = factors(exponents, epsilon)
    return Condition(
        scale,
        np.array(
            [factor[d] * (m / coupling.total) for m, d in zip(masses, distances, strict=True)]
        ),
        np.array([cell_sign(exponents[d]) for d in distances], dtype=np.int8),
        np.array([value for value, _ in sums]),
        np.array([sign for _, sign in sums], dtype=np.int8),
    )
