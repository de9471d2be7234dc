# SPDX-License-Identifier: Apache-2.0
"""A channel without residue: no entries that are there only because doubles are not exact.

The repair adds a few units in the last place to whole columns, and the solver leaves entries of
1e-16 where it means 0. They cost nothing, but a channel that publishes one output in every row
would seem to publish others, and to tell something.

So the solver is asked once more, with every privacy inequality tightened by a share of the size of
its terms that is tiny, but above what rounding takes. From the basis at hand that needs hardly a
step, and its answer stays private where entries below 2**-40 become 0. It is taken only if that is
proved in integers, like for any answer, and costs next to nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pufferfish.calibration.channel_program import FloatArray
from pufferfish.calibration.costs import ObjectArray
from pufferfish.calibration.highs import Solution, Solver
from pufferfish.calibration.plain_rows import Entries
from pufferfish.calibration.repair import is_private, rounded
from pufferfish.errors import PufferfishError

if TYPE_CHECKING:
    from pufferfish.calibration.channel_task import Answer, Task

#: Entries below 2 to minus this are residue.
RESIDUE = 40
#: A clean channel may cost so much more than the other, relative to it.
_DEARER = Fraction(1, 10**9)
#: The largest share by which inequalities are tightened, and what it may cost, relative to all.
_SHARE, _SPENT = 2.0**-34, 2.0**-31


def has_residue(task: Task, answer: Answer) -> bool:
    """Whether a channel has positive entries below 2**-40, in rows that were chosen."""
    rows = answer.channel.rows
    least = 1 << (task.bits - RESIDUE)
    chosen = np.ones(len(rows), dtype=bool)
    chosen[task.free] = False
    return bool(((rows > 0) & (rows < least))[chosen].any())


def cleaned(
    task: Task, solver: Solver, solution: Solution, magnified: int, answer: Answer
) -> Answer:
    """Return an answer without residue where one is found that costs at most 1e-9 more.

    Parameters
    ----------
    task : Task
    solver : Solver
    solution : Solution
        What the solver found, and the basis of which it has at hand.
    magnified : int
        See :meth:`Solver.solve`.
    answer : Answer
        What became of it; returned if nothing else is found.
    """
    if not has_residue(task, answer):
        return answer
    most = answer.cost * (1 + _DEARER)
    for entries in _candidates(task, solver, solution, magnified, answer.channel.rows):
        try:
            rows = rounded(entries, task.costs.shape, 1 << task.bits)
            if is_private(task.scenario, rows, task.bound, task.regions):
                found = task.checked(rows)
                if found.cost <= most:
                    return found
        except PufferfishError:
            continue  # an empty row, or a side condition that is missed
    return answer


def _candidates(
    task: Task, solver: Solver, solution: Solution, magnified: int, rows: ObjectArray
) -> Iterator[Entries]:
    """Yield channels without residue that may be private, the cheapest to try first."""
    whole = 1 << task.bits
    shares = {
        (x, y): Fraction(int(rows[x, y]), whole) for x, y in zip(*rows.nonzero(), strict=True)
    }
    swept = _swept(shares)
    if len({y for _, y in swept}) == 1:
        yield swept  # one output alone: nothing can be learned from it
        return
    tight = solver.tightened(solution, _share(solver, solution))
    try:
        step = task.sensible(tight, tight.solve(magnified))
        yield _swept(of_doubles(step.values, task.costs.shape))
        bits = task.bits + RESIDUE
        yield _swept(of_integers(tight.refined(step, bits), task.costs.shape, bits))
    except PufferfishError:
        pass
    finally:
        solver.seconds = tight.seconds
    # Some other residue is needed: at least no output is all residue.
    used = {y for _, y in swept}
    yield {(x, y): p for (x, y), p in shares.items() if y in used}


def _share(solver: Solver, solution: Solution) -> float:
    """Return by which share to tighten: its price is what the duals say."""
    rows = slice(solver.program.sums)
    price = float(np.abs(solution.duals[rows]) @ solver.sizes(solution)[rows])
    cost = float(solver.program.cost @ solution.values)
    return min(_SHARE, _SPENT * cost / price) if price > 0 and cost > 0 else _SHARE


def _swept(entries: Entries) -> Entries:
    least = Fraction(1, 1 << RESIDUE)
    return {at: p for at, p in entries.items() if p >= least}


def of_doubles(values: FloatArray, shape: tuple[int, ...]) -> Entries:
    """Return the positive entries of the solver's channel."""
    plain = values[: shape[0] * shape[1]].reshape(shape)
    return {
        (int(x), int(y)): Fraction(float(plain[x, y]))
        for x, y in zip(*np.nonzero(plain > 0), strict=True)
    }


def of_integers(values: list[int], shape: tuple[int, ...], bits: int) -> Entries:
    """Return the positive entries of a channel over 2**bits."""
    one = 1 << bits
    return {
        divmod(c, shape[1]): Fraction(v, one)
        for c, v in enumerate(values[: shape[0] * shape[1]])
        if v > 0
    }
