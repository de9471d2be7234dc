# SPDX-License-Identifier: Apache-2.0
"""Values that no protected secret can take: what is published for them tells nothing either.

The constraints do not contain their rows. Published as they are, they would leave a person whose
value the prior calls impossible (a level that was declared but never seen) without any protection.
So their row is the *average row*, what is published on average for those whom the prior knows:

    avg(y) = mean of Q_s(y) over adversaries and protected secrets,  Q_s(y) = sum_x P_s(x) M(y|x).

**Theorem.** Let all pairs of one adversary's secrets be protected, with a loss of at most ln E,
and let every value that none of them can take have the row avg. If the true distributions are
P'_s = (1 - t_s) P_s + t_s U_s, with any t_s from 0 to 1 and any U_s on such values, then the loss
is still at most ln E.

*Proof.* U_s is published as avg, so Q'_s = (1 - t_s) Q_s + t_s avg. As a mean, avg(y) lies between
the least and the largest Q_s(y), and so do all Q'_s(y). The largest is at most E times the least,
for all pairs are protected (where the least is 0, so is the largest). Hence Q'_i(y) <= E Q'_j(y).

Where only some pairs are protected, or for several adversaries, the same proof bounds the loss by
the largest ratio of any two of the averaged likelihoods, which may be above E. With ``min_keep`` p
the row is p times the value itself and 1 - p times avg: the share p of such persons is published
as is, and the theorem does not hold. An ``unbiased`` channel, whose rows must have their value's
mean, and an ``invariant`` one, for values of positive weight, do without avg.

A value that occurs only under secrets in no pair has that row as well: nothing of it is left in a
release, which is the price of the rule where such rows are released too. Protecting a pair with
that secret, or a ``min_keep``, keeps it. (Documentation: theory, section 4, "Values that no
protected secret can take".)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pufferfish.calibration.costs import ObjectArray
from pufferfish.regions import Box, Concrete
from pufferfish.scenario import Scenario


def possible(scenario: Scenario, regions: Sequence[Concrete] | None) -> npt.NDArray[np.bool_]:
    """Return which values some protected secret can take: privacy says nothing of other rows.

    With a region around every prior these are all values; a region leaves none to this module.
    """
    masses = np.zeros(scenario.support.size, dtype=bool)
    for rho, prior in enumerate(scenario.priors):
        region = None if regions is None else regions[rho]
        if isinstance(region, Box):
            masses |= (region.upper != 0).any(axis=0)
        elif region is not None and region.radius > 0:
            masses[:] = True
        else:
            at = [prior.row(s) for s in scenario.protected]
            masses |= (prior.counts[at] != 0).any(axis=0)
    return masses


@dataclass(frozen=True)
class Average:
    """The mean prior, over adversaries and protected secrets; what is published for it is avg.

    Attributes
    ----------
    masses : tuple of int
        Numerators, one per value.
    total : int
        Their sum.
    """

    masses: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, scenario: Scenario) -> Average:
        """Return the mean of the protected secrets' distributions, exactly."""
        at = [
            (prior, prior.row(secret)) for prior in scenario.priors for secret in scenario.protected
        ]
        common = math.lcm(*(prior.totals[row] for prior, row in at))
        masses = [0] * scenario.support.size
        for prior, row in at:
            factor = common // prior.totals[row]
            for x, count in enumerate(prior.counts[row].tolist()):
                if count:
                    masses[x] += int(count) * factor
        shared = math.gcd(*masses)
        reduced = tuple(mass // shared for mass in masses)
        return cls(reduced, sum(reduced))

    def row(
        self, rows: ObjectArray, whole: int, kept: int | None, share: Fraction
    ) -> tuple[list[int], int]:
        """Return ``share`` of the value itself and the rest of avg, as integers and their sum.

        Parameters
        ----------
        rows : array of integers, shape (n_x, n_y)
            The channel; each row of a possible value sums to ``whole``.
        whole : int
        kept : int or None
            The output that equals the value; without one all is avg.
        share : Fraction
            From 0 to 1.
        """
        at = [x for x, mass in enumerate(self.masses) if mass]
        masses = np.array([self.masses[x] for x in at], dtype=object)
        sums = [int(v) for v in np.dot(masses, rows[at])]
        keep, parts = (share.numerator, share.denominator) if kept is not None else (0, 1)
        found = [(parts - keep) * v for v in sums]
        if kept is not None:
            found[kept] += keep * self.total * whole
        shared = math.gcd(*found)
        return [v // shared for v in found], parts * self.total * whole // shared


@dataclass(frozen=True, eq=False)
class Priced:
    """The expected cost in terms of the rows that the program chooses.

    It is ``fixed + sum_x weights[x] sum_y costs[x, y] M(y|x)``, where rows that follow from the
    others no longer appear.

    Attributes
    ----------
    weights : list of Fraction
    costs : array of numbers, shape (n_x, n_y)
    fixed : Fraction
    """

    weights: Sequence[Fraction]
    costs: ObjectArray
    fixed: Fraction


def priced(
    weights: Sequence[Fraction],
    costs: ObjectArray,
    average: Average,
    shares: Mapping[int, tuple[int | None, Fraction]],
) -> Priced:
    """Return the cost where the rows of some values are avg: others' rows bear theirs as well.

    Parameters
    ----------
    weights : list of Fraction
        mu.
    costs : array of numbers, shape (n_x, n_y)
        c(x, y).
    average : Average
    shares : mapping
        For every value whose row is avg the output that equals it, and the share that is kept.
    """
    counting = [x for x in shares if weights[x]]
    if not counting:
        return Priced(weights, costs, Fraction(0))
    fixed = Fraction(0)
    borne = np.zeros(costs.shape[1], dtype=object)
    for x in counting:
        kept, share = shares[x]
        share = Fraction(0) if kept is None else share
        if kept is not None and share:
            fixed += weights[x] * share * costs[x, kept]
        borne = borne + weights[x] * (1 - share) * costs[x]
    changed = costs.copy()
    for x, mass in enumerate(average.masses):
        if x not in shares and (mass or weights[x]):
            changed[x] = weights[x] * costs[x] + Fraction(mass, average.total) * borne
    counted = [
        Fraction(int(x not in shares and bool(w or mass)))
        for x, (w, mass) in enumerate(zip(weights, average.masses, strict=True))
    ]
    return Priced(counted, changed, fixed)
