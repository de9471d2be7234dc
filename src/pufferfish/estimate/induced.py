# SPDX-License-Identifier: Apache-2.0
"""Rounded or tightly bounded noisy values: the finite channel that they are, inverted.

Rounding joins lattice points into cells, and bounds join all that lies beyond them. What is left
is a channel from the atoms to the cells. Its entries are no rationals, so its rank is judged by
its singular values; where they do not clearly suffice, nothing is estimated.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.estimate.figures import (
    FloatArray,
    Sample,
    Weighted,
    condition_notes,
    few_notes,
    moments,
    rescaled,
)
from pufferfish.estimate.record import Estimate, Frequency
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.support import Lattice, Support

#: Entries of the channel.
MOST_ENTRIES = 4_000_000
#: The least singular value over the largest, below which the channel is not inverted.
_CLEAR = 1e-8


@dataclass(frozen=True)
class Cells:
    """Consecutive released values; the first and the last stand for all beyond them too.

    Attributes
    ----------
    first, last : int
        Released values, in units of the released step.
    step : Fraction
        The released step.
    lattice : Lattice
        The atoms, on the lattice of the noise.
    """

    first: int
    last: int
    step: Fraction
    lattice: Lattice

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.last - self.first + 1

    def starts(self) -> list[int]:
        """Return the least lattice point of each cell but the first, in steps of the lattice."""
        return [
            _least_unit(j, self.lattice.step, self.step)
            for j in range(self.first + 1, self.last + 1)
        ]


def cells_of(lattice: Lattice, step: Fraction, limits: tuple[int, int] | None) -> Cells:
    """Return the cells of a release on a step, with bounds or without.

    One cell on either side of the atoms' own is kept; further away they tell nothing more.
    """
    first = _cell(lattice.origin, lattice.step, step) - 1
    last = _cell(lattice.origin + int(lattice.index[-1]), lattice.step, step) + 1
    if limits is not None:
        low, high = limits
        first, last = min(max(first, low), high), max(min(last, high), low)
    return Cells(first, last, step, lattice)


def estimate_cells(
    cells: Cells, values: list[int], sample: Sample, noise: DiscreteLaplace, support: Support
) -> Estimate:
    """Return estimates through the channel from the atoms to the cells, or why there are none."""
    size = support.size
    if size * cells.size > MOST_ENTRIES:
        return _refused(
            sample,
            support,
            "bounds inside the range of the values, or rounding, need a channel of "
            f"{size:,} by {cells.size:,} entries, which is too large",
        )
    matrix = _matrix(cells, noise)
    counts = np.zeros(cells.size)
    for value, count in zip(values, sample.counts.tolist(), strict=True):
        counts[min(max(value, cells.first), cells.last) - cells.first] += count
    grouped = Sample(counts, sample.rows)
    # With all atoms equally frequent; an output without mass there keeps a weight of 0.
    roots = np.sqrt(matrix.mean(axis=0))
    scaled = np.divide(matrix, roots, out=np.zeros_like(matrix), where=roots > 0)
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    if size > cells.size or singular[-1] < _CLEAR * singular[0]:
        return _refused(
            sample,
            support,
            "the bounds or the rounding join values that the frequencies need apart: with "
            f"{cells.size} released values that differ, the {size} original ones cannot be told "
            "apart (for a mean or frequencies release without them, or with wider bounds)",
        )
    inverse = np.divide(
        (right.T / singular) @ left.T,
        roots[:, None],
        out=np.zeros((cells.size, size)),
        where=roots[:, None] > 0,
    )
    entries = []
    for x in range(size):
        figure = Weighted.on(inverse[:, x], matrix).figure(grouped, grouped.mean(inverse[:, x]))
        entries.append(
            Frequency(figure.estimate, figure.standard_error, figure.ends, (support.name(x),))
        )
    lattice = cells.lattice
    last = int(lattice.index[-1])
    t = (2 * lattice.index - last) / max(last, 1)
    powers: list[FloatArray | None] = [inverse @ t**power for power in (1, 2, 3, 4)]
    mean, variance, _ = moments(grouped, powers, lambda w: Weighted.on(w, matrix))
    half = Fraction(max(last, 1), 2)
    unit = float(lattice.step * half)
    middle = float(lattice.step * (lattice.origin + Fraction(last, 2)))
    condition = float(np.linalg.cond(matrix))
    return Estimate(
        rows=sample.rows,
        entries=tuple(entries),
        not_estimable=(),
        mean=rescaled(mean, unit, middle),
        variance=rescaled(variance, unit**2),
        condition_number=condition,
        notes=(*few_notes(*entries, mean), *condition_notes(condition)),
    )


def _refused(sample: Sample, support: Support, reason: str) -> Estimate:
    labels = tuple(support.name(k) for k in range(support.size))
    return Estimate(sample.rows, (), labels, None, None, None, (f"nothing is estimated: {reason}",))


def _cell(unit: int, fine: Fraction, step: Fraction) -> int:
    """Return the released value of a sum: itself, or the nearest integer (ties to the even one)."""
    return unit if fine == step else round(unit * fine)


def _least_unit(cell: int, fine: Fraction, step: Fraction) -> int:
    """Return the least lattice point whose released value is at least ``cell``."""
    if fine == step:
        return cell
    edge = (cell - Fraction(1, 2)) / fine
    unit = -(-edge.numerator // edge.denominator)
    return unit if round(unit * fine) >= cell else unit + 1


def _matrix(cells: Cells, noise: DiscreteLaplace) -> FloatArray:
    """Return the probabilities of the cells for each atom, shape (n, cells)."""
    lattice = cells.lattice
    starts = np.array([start - lattice.origin for start in cells.starts()], dtype=np.int64)
    distance = starts[None, :] - lattice.index[:, None]
    rate = float(noise.step / Fraction(noise.scale)) if noise.scale else np.inf
    # P(Z >= d) for d > 0, and P(Z <= d - 1) for d <= 0: each on the side where it is small.
    far = np.where(distance > 0, distance, 1 - distance)
    tail = np.exp(-rate * far) / (1 + np.exp(-rate))
    size = len(lattice.index)
    above = np.where(distance > 0, tail, 1 - tail)
    below = np.where(distance > 0, 1 - tail, tail)
    above = np.hstack([np.ones((size, 1)), above, np.zeros((size, 1))])
    below = np.hstack([np.zeros((size, 1)), below, np.ones((size, 1))])
    # Cell j is [start j, start j+1): a difference of tails on one side, or 1 less both.
    matrix: FloatArray = np.where(
        above[:, :-1] <= 0.5, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]
    )
    return matrix
