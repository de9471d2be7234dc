# SPDX-License-Identifier: Apache-2.0
"""All that is asked of a channel, and the cost in terms of the rows that are free to choose."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pufferfish.calibration.channel_options import Conditions, Costs
from pufferfish.mechanisms.channel import same_places
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point, Region
from pufferfish.support import Support

#: The largest term of the cost is about 2 to this: the solver's tolerances are absolute.
HEADROOM = 8
#: By so much more is kept than asked for, which the repair may take; more for a small epsilon.
_KEPT_MORE = Fraction(1, 2**32)

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False)
class Task:
    """What each adversary holds possible under each secret, the pairs of these, E, and the options.

    E, ``bound``, is rational with 1 < E <= e^epsilon; the weights mu sum to 1.
    """

    inputs: Support
    outputs: Support
    sets: tuple[tuple[AmbiguitySet, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    bound: Fraction
    costs: Costs
    weights: tuple[Fraction, ...]
    conditions: Conditions

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of values and of outputs."""
        return self.inputs.size, self.outputs.size

    @cached_property
    def same(self) -> tuple[int | None, ...]:
        """For each value the output that equals it."""
        return same_places(self.inputs, self.outputs)

    @property
    def both(self) -> tuple[tuple[int, int], ...]:
        """The pairs in both orders."""
        return (*self.pairs, *((j, i) for i, j in self.pairs))

    @property
    def is_all_pairs(self) -> bool:
        """Whether every two secrets form a pair."""
        secrets = len(self.sets[0])
        return len(self.pairs) == secrets * (secrets - 1) // 2

    @property
    def kept_more(self) -> Fraction:
        """By how much more than ``min_keep`` the program keeps."""
        return _KEPT_MORE * max(_ONE, 1 / (16384 * (self.bound - 1)))

    @cached_property
    def average(self) -> tuple[int, ...]:
        """The mean of all point priors, in whole numbers."""
        points = [s for secrets in self.sets for s in secrets if isinstance(s, Point)]
        common = math.lcm(*(point.total for point in points))
        masses = [0] * self.inputs.size
        for point in points:
            for x, mass in enumerate(point.masses.reshape(-1).tolist()):
                masses[x] += int(mass) * (common // point.total)
        return tuple(masses)

    @cached_property
    def averaged(self) -> dict[int, Fraction]:
        """The values that no protected secret can take, and the share of each that is kept.

        Privacy says nothing of their rows. They are published like the average: the rest of the
        share has the row avg(y), the mean over adversaries and secrets of sum_x P_s(x) M(y|x).
        Whoever has such a value is then protected too (theory, section 4): if all pairs of one
        adversary are protected, avg(y) lies between likelihoods that differ by a factor E at most.
        An unbiased channel, and values of positive weight in an invariant one, do without.
        """
        if self.conditions.unbiased or any(isinstance(s, Region) for own in self.sets for s in own):
            return {}  # regions reach all values
        keep = self.conditions.min_keep or _ZERO
        return {
            x: keep if self.same[x] is not None else _ZERO
            for x, mass in enumerate(self.average)
            if not mass and not (self.conditions.invariant and self.weights[x])
        }

    @cached_property
    def unit(self) -> Fraction:
        """A power of 2 of which the largest cost is about 2**HEADROOM times as large."""
        largest = max(map(max, self.costs.whole.tolist())) * self.costs.unit
        return Fraction(2) ** (exponent(largest) - HEADROOM) if largest else _ONE

    @cached_property
    def prices(self) -> FloatArray:
        """The costs c(x, y) in units of ``unit``."""
        # Doubles may not hold them; small ones lose nothing, for costs span less than 1e9.
        excess = max(0, max(map(max, self.costs.whole.tolist())).bit_length() - 512)
        prices: FloatArray = (self.costs.whole >> excess).astype(np.float64)
        return prices * float(self.costs.unit * 2**excess / self.unit)

    @cached_property
    def terms(self) -> FloatArray:
        """What M(y|x) adds to the cost, in units of ``unit`` (for averaged rows: nothing)."""
        terms: FloatArray = np.array([[float(w)] for w in self.weights]) * self.prices
        borne = np.zeros(self.shape[1])
        for x, share in self.averaged.items():
            borne += float(1 - share) * terms[x]
            terms[x] = 0.0
        if borne.any():  # the other rows bear what their average costs
            total = sum(self.average)
            terms += np.array([[mass / total] for mass in self.average]) * borne
        return terms

    @cached_property
    def fixed(self) -> Fraction:
        """What the kept shares of averaged rows cost, in the costs' own unit."""
        kept = ((x, self.same[x], share) for x, share in self.averaged.items() if share)
        spent = (self.weights[x] * share * self.costs.whole[x, y] for x, y, share in kept)
        return sum(spent, _ZERO) * self.costs.unit


def exponent(value: Fraction) -> int:
    """Return about log2 of a positive number."""
    return value.numerator.bit_length() - value.denominator.bit_length()
