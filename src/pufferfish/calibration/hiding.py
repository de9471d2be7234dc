# SPDX-License-Identifier: Apache-2.0
"""Channels that hide every value from every other, whatever the secret, within an epsilon of own.

A channel M with M(y|x) <= e^own M(y|x') for all outputs y and all values x, x' tells no more than
``own`` of its value under *any* prior, k rows of it no more than ``k * own``, and beside other
releases it adds no more than that (theory, section 6: worst cases). So there always is one that
fits where a channel for the secret alone may not: rows of one person that go together, columns of
which nothing is known. Of the two families the cheaper one is
taken (:mod:`pufferfish.calibration.families`).

With few values a linear program finds the cheapest one. With more it is *randomised response*: a
set T of t outputs; a value is replaced by the output of T that costs least (itself, where it is
one), and that is published with chance e^own / (e^own + t - 1), every other output of T with
chance 1 / (e^own + t - 1). With t = 1 it is constant; with all values it is the k-ary randomised
response of Kairouz, Oh and Viswanath (arXiv 1407.1338).

**Theorem.** For the cost hamming the t most frequent values, for the best t, are the cheapest of
all channels that hide every value from every other. *Proof.* Let E = e^own, m_y the least entry of
column y, S their sum, and u = (1 - S) / (E - 1). Then M(x|x) is at most E m_x, and at most
1 - S + m_x, as row x sums to 1. Where m_x is above u the second counts, which stays what it is if
m_x is made smaller, while all others rise: so let no m_x be above u. The kept share is then at most
E sum mu_x m_x, for a given S at most that of the m that fills the most frequent values up to u, one
after the other. This is linear in S while S / u stays between two whole numbers, hence largest
where S / u is some whole t: u = 1 / (E - 1 + t), the randomised response of t values. ∎
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.calibration.channel import (
    ChannelSolution,
    channel,
    exponential_above,
    exponential_below,
)
from pufferfish.calibration.channel_task import CONDITION_TOLERANCE
from pufferfish.calibration.conditions import LARGEST_EPSILON, Conditions
from pufferfish.calibration.costs import (
    ObjectArray,
    cost_matrix,
    default_cost,
    expected_cost,
    weights_of,
)
from pufferfish.calibration.dyadic import as_double, log2
from pufferfish.errors import InputError, listed
from pufferfish.mechanisms.channel import Channel
from pufferfish.prior import Prior
from pufferfish.rationals import float_down, show
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

#: Values up to which the cheapest channel is computed; above it is randomised response.
MOST_VALUES = 30
#: Up to it e^own is computed, to see how near the cost is to the least.
_MOST = Fraction(5000)


@dataclass(frozen=True, eq=False)
class Hiding:
    """The channels that hide every value of a scenario from every other.

    Parameters
    ----------
    scenario : Scenario
        Of which only the values count, and how often each occurs.
    options : mapping
        Those of a channel: cost, outputs, invariant, unbiased, min_keep, weights.
    """

    scenario: Scenario
    options: Mapping[str, Any]

    def channel(self, own: Fraction) -> ChannelSolution:
        """Return the channel for an epsilon of its own.

        Raises
        ------
        InputError
            If an option is wrong, or no such channel meets the side conditions.
        """
        given = {**self.options, "weights": list(self._weights)}
        if self.scenario.support.size <= MOST_VALUES:
            return channel(self._values, own, **given)
        return self._randomised(own)

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """What is asked of the channel beside its cost, as it is listed."""
        outputs = self.options.get("outputs")
        return (*self._conditions.names, *(() if outputs is None else (f"outputs {outputs}",)))

    def why_not(self, own: Fraction | None) -> str:
        """Return why none of these channels fits, for an error message.

        Parameters
        ----------
        own : Fraction or None
            An epsilon within which one would fit; None where nothing is left.
        """
        what = "a channel that hides every value from every other"
        if own is None:
            return f"{what} has nothing left to use"
        try:
            self.channel(own)
        except InputError as error:
            return f"{what} would have to do so within epsilon {float(own):.6g}, but {error}"
        return f"nor does {what} fit"

    def what_helps(self, *further: str) -> str:
        """Return what can be done where nothing fits, for an error message."""
        support = self.scenario.support
        noisy = not isinstance(support, Levels) or support.ordered
        ways = [
            "a larger epsilon",
            *(["weaker conditions, or none"] if self.asked else []),
            *(["noise (the mechanism exact)"] if noisy else []),
            *further,
        ]
        return f"what helps: {'; or '.join(ways)}"

    @cached_property
    def _values(self) -> Scenario:
        """The scenario in which every value is a secret that shows."""
        support = self.scenario.support
        names = tuple(f"value {k}" for k in range(support.size))
        same = np.eye(support.size, dtype=np.int64)
        return Scenario(Prior.from_numerators(support, names, list(same)))

    @cached_property
    def _weights(self) -> Sequence[Fraction]:
        return weights_of(self.scenario, self.options.get("weights"))

    @cached_property
    def _conditions(self) -> Conditions:
        given = {name: self.options.get(name, False) for name in ("invariant", "unbiased")}
        return Conditions.checked(**given, min_keep=self.options.get("min_keep"))

    @cached_property
    def _cost(self) -> Any:
        given = self.options.get("cost")
        return default_cost(self.scenario.support) if given is None else given

    @cached_property
    def _costs(self) -> ObjectArray:
        return cost_matrix(self.scenario.support, self.scenario.support, self._cost)

    @cached_property
    def _doubles(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The costs, the largest of which is 1, and the weights."""
        largest = max(map(max, self._costs.tolist())) or 1
        costs = np.array(
            [[float(Fraction(c) / largest) for c in row] for row in self._costs.tolist()]
        )
        return costs, np.array([float(w) for w in self._weights])

    def _randomised(self, own: Fraction) -> ChannelSolution:
        conditions, support = self._conditions, self.scenario.support
        keep = conditions.min_keep or Fraction(0)
        name = self._cost.strip().lower() if isinstance(self._cost, str) else "own"
        other = [what for what in self.asked if not what.startswith("min_keep")]
        if other:
            raise InputError(
                f"for more than {MOST_VALUES} values only randomised response hides every value "
                f"from every other, which cannot be had with {listed(other)}"
            )
        below = exponential_below(min(own, LARGEST_EPSILON))
        rows, sums = self._rows(self._chosen(own) if not keep else list(range(support.size)), below)
        made = Channel(support, support, rows, tuple(sums))
        missed = conditions.missed_by(made, self._weights)
        if missed > CONDITION_TOLERANCE:
            raise InputError(
                f"randomised response among {support.size} values keeps each of them "
                f"{float(keep - missed):.4g} of the time at epsilon {float(own):.6g}, less than "
                f"min_keep {show(keep)}"
            )
        cost = expected_cost(rows, sums, self._costs, self._weights)
        best = name == "hamming" and not keep
        least = self._least_changed(own) if best else self._least_anyway()
        bound = min(float_down(least), as_double(cost))
        notes = () if best else (_PERHAPS,)
        repair = as_double(cost) / bound - 1 if bound > 0 else as_double(cost)
        weights = tuple(self._weights)
        return ChannelSolution(made, cost, bound, repair, 0.0, weights, name, self.asked, notes)

    def _rows(self, chosen: Sequence[int], below: Fraction) -> tuple[ObjectArray, list[int]]:
        """Return randomised response among some outputs, in whole numbers, and the sums of rows.

        ``below`` is an E with 1 < E <= e^own. All rows over their sums are mixtures of rows that
        have ``much`` at one output and ``little`` at the others, with much / little <= E.
        """
        little = 1 << 64 + max(0, math.ceil(-log2(below - 1)))
        much = math.floor(below * little)
        n, t = self.scenario.support.size, len(chosen)
        rows, sums = np.zeros((n, n), dtype=object), []
        for x in range(n):
            # Among outputs of equal cost nothing is preferred, but for the value itself.
            prices = [self._costs[x, y] for y in chosen]
            itself = x in chosen and (self._conditions.min_keep or self._costs[x, x] == min(prices))
            like = [x] if itself else [chosen[k] for k, p in enumerate(prices) if p == min(prices)]
            row = {y: len(like) * little for y in chosen}
            row |= dict.fromkeys(like, much + (len(like) - 1) * little)
            shared = math.gcd(*row.values())
            for y, chance in row.items():
                rows[x, y] = chance // shared
            sums.append(len(like) * (much + (t - 1) * little) // shared)
        return rows, sums

    def _chosen(self, own: Fraction) -> list[int]:
        """Return the outputs T: added one by one, each the one that leaves the least cost.

        For the cost hamming these are the most frequent values, and the number of them is the best:
        the kept share E C_t / (E - 1 + t), where C_t are the weights of t values, does not rise
        again once it has fallen, since C_t is concave in t. For other costs the outputs are a good
        choice, and all values are taken where these cost less.
        """
        costs, weights = self._doubles
        more = math.expm1(min(own, LARGEST_EPSILON))
        single = weights @ costs
        nearest = np.full(len(weights), np.inf)
        chosen: list[int] = []
        least, spent = math.inf, 0.0
        while len(chosen) < len(weights):
            reached = weights @ np.minimum(nearest[:, None], costs)
            prices = (more * reached + spent + single) / (more + 1 + len(chosen))
            prices[chosen] = np.inf
            y = int(np.argmin(prices))
            if prices[y] >= least:
                break
            chosen.append(y)
            least, spent = float(prices[y]), spent + float(single[y])
            nearest = np.minimum(nearest, costs[:, y])
        every = more * float(weights @ costs.min(axis=1)) + float(single.sum())
        return chosen if least <= every / (more + len(weights)) else list(range(len(weights)))

    def _least_changed(self, own: Fraction) -> Fraction:
        """Return the share of changed values that no channel that hides every value undercuts."""
        if own > _MOST:
            return Fraction(0)
        above, kept, most = exponential_above(own), Fraction(0), Fraction(0)
        for t, weight in enumerate(sorted(self._weights, reverse=True)):
            kept += weight
            most = max(most, above * kept / (above + t))
        return 1 - most

    def _least_anyway(self) -> Fraction:
        """Return what the cheapest outputs cost, were hiding no matter."""
        rows = zip(self._weights, self._costs.tolist(), strict=True)
        return sum((w * min(row) for w, row in rows if w), Fraction(0))


_PERHAPS = (
    f"for more than {MOST_VALUES} values only randomised response is tried among the channels that "
    "hide every value from every other: it is private, but perhaps not the cheapest"
)
