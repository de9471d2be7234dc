# SPDX-License-Identifier: Apache-2.0
"""joint_loss_of: the joint loss with the best proof that the size of the grid allows."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from pufferfish.arrays import CountArray
from pufferfish.errors import InputError, did_you_mean
from pufferfish.joint.axes import Axis
from pufferfish.joint.balls import cells_of, tried
from pufferfish.joint.distance import distance_bound
from pufferfish.joint.floatproof import TooExtreme, enclose_in_doubles
from pufferfish.joint.problem import LARGEST_GRID, Problem, make_problem
from pufferfish.joint.record import GridTooLarge, JointLoss, bound_of, least
from pufferfish.joint.scaled import enclose_scaled

#: Cells (of all secrets and adversaries) up to which ball arithmetic is used at once: a second or
#: two on a slow machine.
BALL_CELLS = 100_000
#: Cells up to which it is used where the floating-point bound cannot be proved.
LAST_BALL_CELLS = 4_000_000
#: Bits of the first try and the next ones.
_PRECISIONS = (128, 256, 512, 1024)
_METHODS = ("auto", "ball", "float-bound")

#: Nothing was released.
NOTHING = JointLoss(Fraction(0), 0.0, "none")


def joint_loss_of(
    masses: Sequence[CountArray],
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    totals: Sequence[Sequence[int]] | None = None,
    *,
    method: str = "auto",
    limit: int = LARGEST_GRID,
) -> JointLoss:
    """Return the loss of everything that is released of some columns, with proof.

    Source: theory, section 6.

    Parameters
    ----------
    masses : sequence of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary: exact numerators of P_s(x_1, ..., x_k) for m secrets.
    axes : sequence of Axis
        The k columns with their releases.
    pairs : sequence of (int, int)
        Rows of secrets that nobody may tell apart.
    totals : sequence of sequences of int, shape (m,), optional
        The denominators, for a check: they must be the sums.
    method : "auto", "ball" or "float-bound"
        ``auto``: ball arithmetic up to `BALL_CELLS` cells times secrets times adversaries, the
        floating-point bound beyond; balls again up to `LAST_BALL_CELLS` where that one cannot be
        proved.
    limit : int
        Cells that the grid of outputs may have.

    Returns
    -------
    JointLoss
        Its value is rounded up; 0 for no releases.

    Raises
    ------
    InputError
        If shapes disagree, a mass is negative, or a channel or noise does not suit its column.
    GridTooLarge
        If the grid has more cells than the limit, or than can be proved: take a bound instead.
    """
    if method not in _METHODS:
        raise InputError(
            f"the method must be one of {', '.join(_METHODS)}, but {method!r} was given"
            f"{did_you_mean(str(method), _METHODS)}"
        )
    if not any(axis.releases for axis in axes):
        return NOTHING
    return loss_of_problem(make_problem(masses, axes, pairs, totals, limit), method)


def loss_of_problem(problem: Problem, method: str = "auto") -> JointLoss:
    """Return the joint loss of a problem; see :func:`joint_loss_of`."""
    found = _with_zero(problem, _decided(problem, method))
    shorter = distance_bound(problem)
    if shorter is not None and found.upper != least(found.upper, shorter):
        found = replace(found, upper=shorter, method=f"{found.method}+rational")
    if problem.exact:
        return found
    # Something was replaced by what tells more: the bound holds, the loss itself may be smaller.
    return replace(found, lower=0.0, exact=False, witness=None)


def _decided(problem: Problem, method: str) -> JointLoss:
    told = problem.infinite()
    if told is not None:
        return JointLoss(None, math.inf, "exact", True, problem.witness(*told), problem.cells)
    cells = cells_of(problem)
    doubles = method == "float-bound" or (method == "auto" and cells > BALL_CELLS)
    if doubles:
        for enclose in (enclose_in_doubles, enclose_scaled):
            with suppress(TooExtreme):
                found = enclose(problem)
                witness = problem.witness(found.cell, found.pair, found.adversary)
                return JointLoss(
                    bound_of(found.upper), found.lower, "float-bound", True, witness, problem.cells
                )
        if cells > LAST_BALL_CELLS:
            raise GridTooLarge(problem.cells, LAST_BALL_CELLS)
    ball = tried(problem, _PRECISIONS)
    witness = problem.witness(ball.cell, ball.pair, ball.adversary)
    name = "ball" if problem.noisy else "exact"
    return JointLoss(bound_of(ball.upper), ball.lower, name, True, witness, problem.cells)


def _with_zero(problem: Problem, found: JointLoss) -> JointLoss:
    """Decide in integers whether a loss that cannot be told from 0 is 0."""
    if found.lower > 0 or not problem.zero():
        return found
    return JointLoss(Fraction(0), 0.0, "exact", True, None, problem.cells)
