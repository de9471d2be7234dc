# SPDX-License-Identifier: Apache-2.0
"""Linear programs in doubles, solved by HiGHS.  Whoever uses an answer checks it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import PufferfishError
from pufferfish.numbers import FloatArray, IntArray

_OPTIONS: dict[str, Any] = {
    "output_flag": False, "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10, "small_matrix_value": 1e-12, "threads": 1,
    "simplex_strategy": 1,
}  # fmt: skip
#: The second try is for programs among whose small numbers the presolver loses its way.
_TRIES: tuple[dict[str, Any], ...] = (
    {"presolve": "choose"},
    {"presolve": "off", "dual_feasibility_tolerance": 1e-8},
)


class Infeasible(PufferfishError):
    """The program has no solution."""


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost . v`` subject to ``A v <= end`` and ``least <= v <= 1``.

    ``cost`` and ``least`` have one entry for each variable, ``end`` for each row; where ``equal``,
    the row says A v = end. A is compressed row by row in ``start``, ``index`` and ``value``.
    """

    cost: FloatArray
    least: FloatArray
    start: IntArray
    index: IntArray
    value: FloatArray
    end: FloatArray
    equal: npt.NDArray[np.bool_]


def solve(program: LinearProgram) -> tuple[FloatArray, FloatArray]:
    """Return an optimal solution to the solver's tolerance, and a multiplier for each row.

    Infeasible is raised where there is none, or PufferfishError where none is found.
    """
    import highspy  # slow to import

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.end)
    lp.col_cost_, lp.col_lower_ = program.cost, program.least
    lp.col_upper_ = np.ones(lp.num_col_)
    lp.row_lower_ = np.where(program.equal, program.end, -np.inf)
    lp.row_upper_ = program.end
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.start.astype(np.int32)
    lp.a_matrix_.index_ = program.index.astype(np.int32)
    lp.a_matrix_.value_ = program.value
    # The public class greets on standard output.
    highs: Any = getattr(highspy._core, "_Highs", highspy.Highs)()
    # Far more than is ever needed; among tiny numbers the solver may go round in circles.
    highs.setOptionValue("simplex_iteration_limit", 5 * (1000 + lp.num_row_ + lp.num_col_))
    status = None
    for options in _TRIES:
        for option, value in (_OPTIONS | options).items():
            highs.setOptionValue(option, value)
        highs.clearSolver()
        highs.passModel(lp)
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            found = highs.getSolution()
            return np.array(found.col_value), np.array(found.row_dual)
    # The presolver alone may err; the second try goes without.
    if status == highspy.HighsModelStatus.kInfeasible:
        raise Infeasible("the linear program has no solution")
    raise PufferfishError(
        f"the solver found no optimal channel ({highs.modelStatusToString(status)})"
    )
