# SPDX-License-Identifier: Apache-2.0
"""The joint loss in ball arithmetic: channels in integers, noise in balls, axis by axis.

Shares no code with the search in doubles. Along each noisy axis
``A_k = P_k + r_k A_{k-1}`` from left to right, ``B_k = r_{k+1} (P_{k+1} + B_{k+1})`` from right to
left and Q = A + B, with r the balls around e^-(gap / theta_eff): all terms are positive, so nothing
cancels, and Arb's exponents have no bound. Whole hyperplanes advance together, as lists. The upper
end of the largest ratio's logarithm is a proven upper bound, at every precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from flint import arb

from pufferfish.arrays import IntArray
from pufferfish.certificate.arbs import exp_minus, log_bounds
from pufferfish.joint.problem import Problem
from pufferfish.precision import precision

Balls = list[arb]


@dataclass(frozen=True)
class Enclosure:
    """Proven bounds of a finite joint loss, and where it is attained."""

    lower: float
    upper: float
    cell: int
    pair: tuple[int, int]
    adversary: int


def enclose(problem: Problem, bits: int) -> Enclosure:
    """Enclose a joint loss that is known to be finite.

    Parameters
    ----------
    problem : Problem
        ``infinite()`` returned None for it.
    bits : int
        Precision of the ball arithmetic.
    """
    with precision(bits):
        peaks = [_adversary(problem, rho) for rho in range(len(problem.masses))]
        best = max(range(len(peaks)), key=lambda rho: peaks[rho].upper)
        # Each adversary by itself: the largest of finished bounds.
        lower = max(peak.lower for peak in peaks)
        peak = peaks[best]
        return Enclosure(lower, peak.upper, peak.cell, peak.pair, best)


def _adversary(problem: Problem, rho: int) -> Enclosure:
    rows = [_likelihoods(problem, rho, row) for row in range(len(problem.rows))]
    if not problem.all_pairs or len(rows) == 2:
        found = [_pair(rows[i], rows[j], (i, j), rho) for i, j in problem.pairs]
        worst = max(found, key=lambda peak: peak.upper)
        return Enclosure(
            max(peak.lower for peak in found), worst.upper, worst.cell, worst.pair, rho
        )
    # The largest over the smallest secret of each cell; a cell has all of them or none.
    cells = [k for k, value in enumerate(rows[0]) if not value.is_zero()]
    ratios = []
    for k in cells:
        column = [row[k] for row in rows]
        ratios.append(reduce(arb.max, column) / reduce(arb.min, column))
    lower, upper, at = _largest(ratios)
    column = [row[cells[at]] for row in rows]
    order = sorted(range(len(rows)), key=lambda s: column[s].mid())
    return Enclosure(lower, upper, cells[at], (order[-1], order[0]), rho)


def _pair(one: Balls, other: Balls, pair: tuple[int, int], rho: int) -> Enclosure:
    """Both directions of one pair, over the cells that it can cause."""
    cells, ratios = [], []
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        if not a.is_zero():
            ratio = a / b
            cells.append(k)
            ratios.append(ratio if ratio > 1 else 1 / ratio if ratio < 1 else ratio.max(1 / ratio))
    lower, upper, at = _largest(ratios)
    cell = cells[at]
    first = one[cell].mid() >= other[cell].mid()
    return Enclosure(lower, upper, cell, pair if first else (pair[1], pair[0]), rho)


def _largest(ratios: Balls) -> tuple[float, float, int]:
    """Return bounds of the logarithm of the largest ratio, and a place where it may be."""
    top = reduce(arb.max, ratios)
    lower, upper = log_bounds(top)
    return lower, upper, next(k for k, ratio in enumerate(ratios) if not ratio < top)


def _likelihoods(problem: Problem, rho: int, row: int) -> Balls:
    """Return the balls around Q_s on the whole grid, in C order."""
    whole = problem.behind(rho, row)
    total = arb(problem.totals[rho][row])
    values: Balls = [arb(v) / total if v else arb(0) for v in map(int, whole.reshape(-1).tolist())]
    for axis in problem.merged:
        for d, length in enumerate(axis.shape):
            if axis.noisy and d == len(axis.shape) - 1:
                values = _noise(values, axis.index, axis.rate)
            # The next axis becomes the first one; after all of them they are in order again.
            inner = len(values) // length
            values = [value for r in range(inner) for value in values[r::inner]]
    return values


def _noise(values: Balls, index: IntArray, rate: Fraction) -> Balls:
    """Pass the noise over the first axis, in both directions."""
    n = len(index)
    inner = len(values) // n
    gaps = np.diff(index).tolist()
    known = {gap: exp_minus(gap * rate) for gap in set(gaps)}
    factors = [known[gap] for gap in gaps]
    planes = [values[k * inner : (k + 1) * inner] for k in range(n)]
    forth = [planes[0]]
    for factor, plane in zip(factors, planes[1:], strict=True):
        forth.append([a * factor + p for a, p in zip(forth[-1], plane, strict=True)])
    carried: Balls = [arb(0)] * inner
    for k in range(n - 2, -1, -1):
        factor = factors[k]
        carried = [(b + p) * factor for b, p in zip(carried, planes[k + 1], strict=True)]
        forth[k] = [a + b for a, b in zip(forth[k], carried, strict=True)]
    return [value for plane in forth for value in plane]


def bits_enough(enclosure: Enclosure) -> bool:
    """Whether the bounds are neighbouring doubles, or nearly."""
    return enclosure.upper - enclosure.lower <= 1e-15 * enclosure.upper


def cells_of(problem: Problem) -> int:
    """Return the cells that balls are computed for: of all secrets of all adversaries."""
    return problem.cells * len(problem.rows) * len(problem.masses)


def tried(problem: Problem, precisions: Sequence[int]) -> Enclosure:
    """Enclose the loss at growing precisions until its bounds meet."""
    found = enclose(problem, precisions[0])
    for bits in precisions[1:]:
        if bits_enough(found):
            break
        found = enclose(problem, bits)
    return found
