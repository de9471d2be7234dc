# SPDX-License-Identifier: Apache-2.0
"""Channel: a row-stochastic matrix of exact integers, from which draws are made as they stand."""

import math
import operator
from collections.abc import Sequence
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

#: Bits to which expected costs are computed: what is rounded away no double could hold.
_BITS = 256
#: Draws made at a time, so that the intermediate arrays stay in the processor's cache.
_BATCH = 1 << 17


@dataclass(frozen=True, eq=False)
class Channel:
    """Publishes output y for value x with probability ``rows[x, y] / denominators[x]``.

    Parameters
    ----------
    inputs : Lattice or Levels
        The alphabet of X; n_x values.
    outputs : Lattice or Levels
        The alphabet of what is published; n_y outputs.
    rows : array of integers, shape (n_x, n_y)
        None negative, not all of a row 0. Kept as Python integers in an array that cannot be
        written to; ``denominators`` are the sums of its rows.

    Raises
    ------
    InputError
        If shapes disagree, an entry is negative or no integer, or a row is all 0.

    Notes
    -----
    Source: theory, section 4.
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
        rows = np.empty(shape, dtype=object)
        rows[:] = [_whole(row) for row in given.tolist()]
        rows.setflags(write=False)
        denominators = tuple(map(sum, rows.tolist()))
        if min(map(min, rows)) < 0 or 0 in denominators:
            raise InputError("a channel's entries must not be negative, nor all of a row 0")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "denominators", denominators)

    @classmethod
    def of(cls, inputs: Support, outputs: Support, rows: Any) -> "Channel":
        """Return the channel of some rows of integers; each row's sum is its denominator."""
        return cls(inputs, outputs, rows)

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

        Raises
        ------
        InputError
            If a position is no integer or out of range.
        """
        at = np.asarray(atoms)
        if at.ndim != 1 or (at.size and at.dtype.kind not in "iu"):
            raise InputError("values are drawn for a one-dimensional array of integer positions")
        if at.size and not 0 <= at.min() <= at.max() < self.inputs.size:
            raise InputError(f"positions must be at least 0 and below {self.inputs.size}")
        at = at.astype(np.int64, copy=False)
        source = system_entropy if entropy is None else entropy
        outputs = np.empty(at.size, dtype=np.int64)
        for start in range(0, at.size, _BATCH):
            part = at[start : start + _BATCH]
            outputs[start : start + _BATCH] = self._table.draw_for(part, part.size, source)
        return outputs

    def probability(self, x: int, y: int) -> Fraction:
        """Return the chance of output y for value x, exactly; both are positions."""
        return Fraction(self.rows[x, y], self.denominators[x])

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """All probabilities as doubles, shape (n_x, n_y), each correctly rounded."""
        rows = zip(self.rows.tolist(), self.denominators, strict=True)
        matrix = np.array([[value / d for value in row] for row, d in rows], dtype=np.float64)
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def same(self) -> tuple[int | None, ...]:
        """For each value the position of the output that equals it, or None."""
        return same_places(self.inputs, self.outputs)

    @property
    def unchanged(self) -> bool:
        """Whether every value is published as it is, always."""
        return all(
            y is not None and self.rows[x, y] == self.denominators[x]
            for x, y in enumerate(self.same)
        )

    def keep_rate(self, weights: Sequence[Any] | NDArray[Any]) -> float:
        """Return the chance that a value is published unchanged, rounded down.

        Parameters
        ----------
        weights : numbers, shape (n_x,)
            How often each value occurs, in any unit: counts or probabilities, none negative.

        Raises
        ------
        InputError
            If there are not n_x of them, one is negative or no number, or all are 0.
        """
        kept = np.zeros(self.rows.shape, dtype=object)
        for x, y in enumerate(self.same):
            if y is not None:
                kept[x, y] = 1
        return float_down(self._expected(weights, kept))

    def mse(self, weights: Sequence[Any] | NDArray[Any]) -> float:
        """Return the mean squared difference of output and value, rounded up; may be infinite.

        Parameters
        ----------
        weights : numbers, shape (n_x,)
            How often each value occurs, in any unit.

        Raises
        ------
        InputError
            If the weights are wrong, or values or outputs are levels without an order.
        """
        step, values, outputs = places(self.inputs, self.outputs)
        squared = (values[:, None] - outputs[None, :]) ** 2
        return float_up(step**2 * self._expected(weights, squared, up=True))

    @cached_property
    def _table(self) -> Table:
        return Table.of([Row(row) for row in self.rows.tolist()])

    def _expected(self, weights: Any, costs: NDArray[np.object_], up: bool = False) -> Fraction:
        """Return the expected cost for whole numbers c(x, y), to 2**-256 of the largest c.

        It is rounded down, or up where asked for.
        """
        masses = whole_weights(weights, self.inputs.size)
        total = 0
        for mass, row, cost, denominator in zip(
            masses, self.rows.tolist(), costs.tolist(), self.denominators, strict=True
        ):
            spent = sum(v * c for v, c in zip(row, cost, strict=True) if v and c)
            units = mass * spent << _BITS
            total += -(-units // denominator) if up else units // denominator
        return Fraction(total, sum(masses) << _BITS)


def same_places(inputs: Support, outputs: Support) -> tuple[int | None, ...]:
    """Return for each value the position of the output that equals it, or None.

    Levels are compared by name; a number stands for an ordered level if it is its code 0, 1, ...
    """
    if isinstance(inputs, Levels) and isinstance(outputs, Levels):
        names = {name: y for y, name in enumerate(outputs.names)}
        return tuple(names.get(name) for name in inputs.names)
    values = {value: y for y, value in enumerate(lattice_of(outputs).values)}
    return tuple(values.get(value) for value in lattice_of(inputs).values)


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


def _whole(values: list[Any]) -> list[int]:
    """Return integers of any type as Python's own."""
    if set(map(type, values)) == {int}:
        return values
    whole = []
    for value in values:
        try:
            whole.append(int(operator.index(value)))
        except TypeError:
            raise InputError(
                f"a channel's entries must be whole numbers, but {value!r} was given"
            ) from None
    return whole


def whole_weights(weights: Any, size: int) -> list[int]:
    """Return weights as whole numbers in the same proportions."""
    given = [
        parse_number(weight, "a weight") for weight in np.asarray(weights, dtype=object).ravel()
    ]
    if len(given) != size:
        raise InputError(f"there must be {size} weights, one for each value, not {len(given)}")
    if min(given) < 0 or not any(given):
        raise InputError("weights must not be negative, nor all of them 0")
    common = math.lcm(*(weight.denominator for weight in given))
    return [int(weight * common) for weight in given]
