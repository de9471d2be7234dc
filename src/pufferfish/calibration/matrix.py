# SPDX-License-Identifier: Apache-2.0
"""A program's rows as doubles, scaled so that the solver's absolute tolerances mean something."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pufferfish.calibration.channel_program import FloatArray, Program
from pufferfish.calibration.dyadic import exponent_of, shifted

#: Rows whose coefficients are all below 2 to this are magnified.
_SMALL = -16


@dataclass(frozen=True)
class Matrix:
    """A program's rows as doubles, row by row; a row stands for 2**exponent times itself.

    Attributes
    ----------
    start : int32 array, shape (rows + 1,)
    index : int32 array
    value : float64 array
    exponent : int64 array, shape (rows,)
    lower, upper : float64 arrays, shape (rows,)
    """

    start: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    value: FloatArray
    exponent: npt.NDArray[np.int64]
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, program: Program) -> Matrix:
        """Scale and convert; rows that share their coefficients are converted once."""
        known: dict[int, tuple[int, FloatArray]] = {}
        rows = program.rows
        for row in rows:
            if id(row.coefficients) not in known:
                # Tolerances are absolute: tiny coefficients are magnified, so that they count.
                # Inequalities of large ones stay as they are: their small terms count too.
                top = exponent_of(max(map(abs, row.coefficients), default=Fraction(1)))
                if top >= _SMALL and (top <= 0 or row.lower != row.upper):
                    top = 0
                scaled = np.array([float(shifted(a, -top)) for a in row.coefficients])
                known[id(row.coefficients)] = top, scaled
        exponent = np.array([known[id(r.coefficients)][0] for r in rows], dtype=np.int64)
        shifts = (-exponent).tolist()
        infinity = np.inf
        return cls(
            np.cumsum([0, *(len(r.columns) for r in rows)], dtype=np.int32),
            np.concatenate([np.array(r.columns, np.int32) for r in rows]),
            np.concatenate([known[id(r.coefficients)][1] for r in rows]),
            exponent,
            np.array(
                [
                    -infinity if r.lower is None else float(shifted(r.lower, s))
                    for r, s in zip(rows, shifts, strict=True)
                ]
            ),
            np.array(
                [
                    infinity if r.upper is None else float(shifted(r.upper, s))
                    for r, s in zip(rows, shifts, strict=True)
                ]
            ),
        )
