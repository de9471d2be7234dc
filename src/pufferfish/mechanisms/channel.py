# SPDX-License-Identifier: Apache-2.0
"""Channel: a row-stochastic matrix of exact integers, from which draws are made as they stand."""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError
from pufferfish.mechanisms.entropy import Entropy, system_entropy
from pufferfish.mechanisms.sampler import Table
from pufferfish.mechanisms.thresholds import Row
from pufferfish.numbers import float_down, float_up, parse_number
from pufferfish.support import Levels, Support, lattice_of

#: Draws made at a time, so that the intermediate arrays stay in the processor's cache.
_BATCH = 1 << 17


@dataclass(frozen=True, eq=False)
class Channel:
    """Publishes output y for value x with probability ``rows[x, y] / denominators[x]``.

    Theory, section 4.

    Parameters
    ----------
    inputs : Lattice or Levels
        The alphabet of X; n_x values.
    outputs : Lattice or Levels
        The alphabet of what is published; n_y outputs.
    rows : array of integers, shape (n_x, n_y)
        None negative, not all of a row 0. Kept as Python integers in an array that cannot be
        written to; ``denominators`` are the sums of its rows.
    """

    inputs: Support
    outputs: Support
    rows: NDArray[np.object_]
    denominators: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        shape = self.inputs.size, self.outputs.size
        given = np.asarray(self.rows, dtype=object)
        if given.shape != shape or 0 in shape:
            raise InputError(
                f"a channel from {shape[0]} values to {shape[1]} outputs needs that many rows and "
                f"entries of each, but rows of shape {given.shape} were given"
            )
        try:
            rows = np.vectorize(lambda entry: int(operator.index(entry)), otypes=[object])(given)
        except TypeError as error:
            raise InputError(f"a channel's entries must be whole numbers: {error}") from None
        rows.setflags(write=False)
        denominators = tuple(rows.sum(axis=1).tolist())
        if rows.min() < 0 or 0 in denominators:
            raise InputError("a channel's entries must not be negative, nor all of a row 0")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "denominators", denominators)

    def draw(self, atoms: NDArray[np.int64], entropy: Entropy | None = None) -> NDArray[np.int64]:
        """Return one independent output for each value, exactly by the integers of its row.

        Parameters
        ----------
        atoms : integer array, shape (size,)
            Positions of the values among the inputs.
        entropy : Entropy, optional
            Where the random bits come from: the operating system, unless a test says otherwise.

        Returns
        -------
        int64 array, shape (size,)
            Positions among the outputs.
        """
        at, size = np.asarray(atoms), self.inputs.size
        whole = at.ndim == 1 and (not at.size or at.dtype.kind in "iu")
        if not whole or (at.size and not 0 <= at.min() <= at.max() < size):
            raise InputError(f"positions must be integers, at least 0 and below {size}, in a list")
        at = at.astype(np.int64, copy=False)
        source = entropy or system_entropy
        outputs = np.empty(at.size, dtype=np.int64)
        for start in range(0, at.size, _BATCH):
            part = at[start : start + _BATCH]
            outputs[start : start + _BATCH] = self._table.draw(part.size, source, part)
        return outputs

    def then(self, other: "Channel") -> "Channel":
        """Return the channel that sends each output of this one through another, exactly."""
        if other.inputs != self.outputs:
            raise InputError("the inputs of the second channel are not the outputs of the first")
        common = math.lcm(*other.denominators)
        rows = np.zeros((self.inputs.size, other.outputs.size), dtype=object)
        for s, y in zip(*np.nonzero(other.rows), strict=True):  # few, where they are labels of sets
            rows[:, y] += self.rows[:, s] * (other.rows[s, y] * (common // other.denominators[s]))
        return Channel(self.inputs, other.outputs, rows)

    def probability(self, x: int, y: int) -> Fraction:
        """Return the chance of output y for value x, exactly, by their positions."""
        return Fraction(self.rows[x, y], self.denominators[x])

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """All probabilities as doubles, shape (n_x, n_y), each correctly rounded."""
        totals = np.array(self.denominators, dtype=object)
        matrix: NDArray[np.float64] = (self.rows / totals[:, None]).astype(np.float64)
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def same(self) -> tuple[int | None, ...]:
        """For each value the position of the output that equals it, or None."""
        return same_places(self.inputs, self.outputs)

    @property
    def unchanged(self) -> bool:
        """Whether every value is published as it is, always."""
        return all(y is not None and self.probability(x, y) == 1 for x, y in enumerate(self.same))

    def keep_rate(self, weights: Sequence[Any] | NDArray[Any]) -> float:
        """Return the chance that a value is published unchanged, rounded down.

        Parameters
        ----------
        weights : numbers, shape (n_x,)
            How often each value occurs, in any unit: counts or probabilities, none negative.
        """
        kept = [0 if y is None else self.rows[x, y] for x, y in enumerate(self.same)]
        return float_down(self._mean(weights, kept))

    def mse(self, weights: Sequence[Any] | NDArray[Any]) -> float:
        """Return the mean squared difference of output and value, rounded up; may be infinite.

        ``weights`` as for :meth:`keep_rate`; levels need an order.
        """
        step, values, outputs = places(self.inputs, self.outputs)
        squared = (values[:, None] - outputs[None, :]) ** 2
        return float_up(step**2 * self._mean(weights, (self.rows * squared).sum(axis=1)))

    def _mean(self, weights: Any, found: Iterable[int]) -> Fraction:
        """Return the mean of found / denominators over values of some weights, exactly."""
        masses = whole_weights(weights, self.inputs.size)
        each = zip(masses, found, self.denominators, strict=True)
        return sum((Fraction(w * v, d) for w, v, d in each), Fraction(0)) / sum(masses)

    @cached_property
    def _table(self) -> Table:
        return Table.of([Row(row) for row in self.rows.tolist()])


def same_places(inputs: Support, outputs: Support) -> tuple[int | None, ...]:
    """Return for each value the position of the output that equals it, or None.

    Levels are compared by name; a number stands for an ordered level if it is its code 0, 1, ...
    """
    ends: tuple[Sequence[Any], ...]
    if isinstance(inputs, Levels) and isinstance(outputs, Levels):
        ends = inputs.names, outputs.names
    else:
        ends = lattice_of(inputs).values, lattice_of(outputs).values
    at = {output: y for y, output in enumerate(ends[1])}
    return tuple(map(at.get, ends[0]))


def check_labels(labels: Channel, sets: Any, support: Support) -> None:
    """Refuse labels that do not lead from each set that a channel publishes to its members."""
    fits = isinstance(sets, Channel) and (labels.inputs, labels.outputs) == (sets.outputs, support)
    if not fits or not isinstance(labels.inputs, Levels):
        raise InputError("the labels do not fit: they must lead from published sets to values")
    if ((labels.rows.T > 0) & (sets.rows == 0)).any():
        raise InputError("the labels do not fit: a value would be drawn from a set without it")
    same = set(labels.inputs.names).intersection(getattr(support, "names", ()))
    if same:
        raise InputError(f"the level {min(same)!r} has the name of a set of values; rename it")


def places(
    inputs: Support, outputs: Support
) -> tuple[Fraction, NDArray[np.object_], NDArray[np.object_]]:
    """Return a step, and in whole numbers of it the values and the outputs."""
    for end in (inputs, outputs):
        if isinstance(end, Levels) and not (end.ordered and end == inputs):
            raise InputError("a mean squared error needs numbers, or the same levels in an order")
    ends = lattice_of(inputs), lattice_of(outputs)
    step = Fraction(1, math.lcm(*(end.step.denominator for end in ends)))
    xs, ys = (np.array([int(v / step) for v in end.values], dtype=object) for end in ends)
    return step, xs, ys


def whole_weights(weights: Any, size: int) -> list[int]:
    """Return weights as whole numbers in the same proportions."""
    flat = np.asarray(weights, dtype=object).ravel()
    given = [parse_number(weight, "a weight") for weight in flat]
    if len(given) != size:
        raise InputError(f"there must be {size} weights, one for each value, not {len(given)}")
    if min(given) < 0 or not any(given):
        raise InputError("weights must not be negative, nor all of them 0")
    common = math.lcm(*(weight.denominator for weight in given))
    return [int(weight * common) for weight in given]
