# SPDX-License-Identifier: Apache-2.0
"""QueryAnswer: the released answer to a query, with its errors."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError, listed
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import parse_number, show

#: The confidence of intervals.
LEVEL = 0.95


@dataclass(frozen=True)
class QueryAnswer:
    """The noisy answer to a query: unbiased, one number or, of a histogram, one for each state.

    Attributes
    ----------
    names : tuple of str
        ``count``, ``sum`` or ``mean``, or the states of a histogram.
    values : tuple of Fraction
        The numbers, exact.
    records : int
        How many records there are, which is public.
    noise : DiscreteLaplace
        The noise of each number; of a mean that of the sum.
    """

    names: tuple[str, ...]
    values: tuple[Fraction, ...]
    records: int
    noise: DiscreteLaplace

    @property
    def value(self) -> float | int:
        """The only number; of a histogram there is none."""
        if len(self.values) > 1:
            raise InputError(f"a histogram has a number for each of {listed(self.names)}: .values")
        [value] = self.values
        return int(value) if value.denominator == 1 else float(value)

    def __float__(self) -> float:
        return float(self.value)

    @property
    def _divisor(self) -> int:
        return self.records if self.names == ("mean",) else 1

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in each number."""
        return self.noise.std / self._divisor

    @property
    def margin(self) -> float:
        """Half the width of a 95 % interval around each number."""
        rate = float(self.noise.step / Fraction(self.noise.scale)) if self.noise.scale else math.inf
        # P(|Z| > m) = 2 a^(m + 1) / (1 + a) in steps, a = e^-rate.
        tail = math.log((1 - LEVEL) * (1 + math.exp(-rate)) / 2)
        steps = max(0, math.ceil(-tail / rate) - 1)
        return float(steps * self.noise.step) / self._divisor

    def clamped(self, least: Fraction, greatest: Fraction) -> "QueryAnswer":
        """Return the answer moved into a range: nearer to the truth, and no longer unbiased."""
        values = tuple(min(max(value, least), greatest) for value in self.values)
        return QueryAnswer(self.names, values, self.records, self.noise)

    def rows(self) -> list[dict[str, Any]]:
        """Return what may be published: a name, a number and the records, for each number."""
        pairs = zip(self.names, self.values, strict=True)
        return [{"query": n, "value": show(v), "records": self.records} for n, v in pairs]

    def __repr__(self) -> str:
        named = ", ".join(
            f"{n} {float(v):.10g}" for n, v in zip(self.names, self.values, strict=True)
        )
        return (
            f"<QueryAnswer of {self.records} records: {named}\n"
            f"  standard error {self.standard_error:.4g}, 95 % within {self.margin:.6g}>"
        )


def read_answer(rows: Any, names: tuple[str, ...], noise: DiscreteLaplace) -> QueryAnswer:
    """Return the answer of rows that :meth:`QueryAnswer.rows` wrote."""
    if [str(row["query"]) for row in rows] != list(names):
        raise InputError(
            f"the released answer must have the rows {listed(names)}, but it has "
            f"{listed(str(row['query']) for row in rows)}"
        )
    values = tuple(parse_number(row["value"], "a value of the answer") for row in rows)
    records = {parse_number(row["records"], "the number of records") for row in rows}
    if len(records) != 1 or min(records).denominator != 1 or min(records) < 1:
        raise InputError("the released answer must have one whole number of records")
    return QueryAnswer(names, values, int(records.pop()), noise)
