# SPDX-License-Identifier: Apache-2.0
"""What an adversary holds possible under one secret: one distribution, or a set of them."""

import math
from fractions import Fraction
from functools import cache
from flint import arb
from pufferfish.precision import precision
from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
import numpy as np
import numpy.typing as npt
from pufferfish.errors import InputError
from pufferfish.numbers import parse_number, show

#: The ends of intervals are whole multiples of 2**-GRID, rounded outwards.
GRID = 160
UNIT = 1 << GRID
#: Precision at which the ends are found and proved.
_BITS = 192
#: An end is within 2**-_NEAR of the true one, as seen from the nearer of 0 and 1.
_NEAR = 64
_MAX_STEPS = 100


def interval(count: int, total: int, alpha: Fraction) -> tuple[int, int]:
    """Return the equal-tailed Clopper-Pearson interval of a count, rounded outwards.

    Parameters
    ----------
    count, total : int
        How many of how many rows.
    alpha : Fraction
        The chance that the interval may miss, half of it on each side.

    Returns
    -------
    lower, upper : int
        In units of 2**-GRID; 0 for a count of 0, and 2**GRID (that is 1) for all rows.

    Notes
    -----
    Theory, section 5. The lower end is the p at which ``count`` rows or more have probability
    alpha / 2, the upper end the p at which ``count`` or fewer have; by symmetry the latter is
    1 minus the lower end of the other rows.
    """
    return lower_end(count, total, alpha / 2), UNIT - lower_end(total - count, total, alpha / 2)


@cache
def lower_end(count: int, total: int, tail: Fraction) -> int:
    """Return a grid point p with P(Binomial(total, p) >= count) <= tail, proved, near the largest.

    Parameters
    ----------
    count, total : int
    tail : Fraction
        Above 0, at most 1/2.

    Notes
    -----
    The slope of ln P(X >= count) in ln p is count P(X = count) / P(X >= count), which falls as p
    rises. So the function is concave, its tangent at any p lies above it, and Newton's step leads
    to the root or to its left: the lower end of the ball around where it leads is proved.
    """
    if count == 0:
        return 0
    with precision(_BITS + total.bit_length() + tail.denominator.bit_length()):
        log_tail = (arb(tail.numerator) / tail.denominator).log()
        choose = arb(total + 1).lgamma() - arb(count + 1).lgamma() - arb(total - count + 1).lgamma()
        p = min(max(int(_guess(count, total, tail) * 2**60) << (GRID - 60), 1), UNIT - 1)
        for _ in range(_MAX_STEPS):
            sums = tail_sum(count, total, p)
            log_p, log_q = (arb(p) / UNIT).log(), (arb(UNIT - p) / UNIT).log()
            log_chance = choose + count * log_p + (total - count) * log_q + sums.log()
            missing = log_tail - log_chance
            there = p * (missing * sums / count).exp()
            if abs(missing) < arb((1, -_NEAR // 2 - 2)):
                return max(0, _floor(there.lower()))
            p = min(max(_floor(there.mid()), 1), UNIT - 1)
    return 0  # pragma: no cover - Newton's steps converge; and 0 is always a lower end


def tail_sum(count: int, total: int, p: int) -> arb:
    """Return a ball around P(X >= count) / P(X = count) for X binomial, count > 0 above its mean.

    Parameters
    ----------
    count, total : int
    p : int
        In units of 2**-GRID, with p (total + 1) below count + 1.

    Notes
    -----
    With b = total - count and w the odds, e_{2m+1} = -(count + m)(b - m) w / ((count + 2m)
    (count + 2m + 1)) and e_{2m} = m (total + m) w / ((count + 2m - 1)(count + 2m)). The tail after
    2m of them is F(m - b, m + 1; count + 2m + 1; -w) / F(m - b, m; count + 2m; -w): the ratio of
    their j-th terms rises in j, from 1 towards (count + 2m) / m; and at m = b it is 1. As
    -1 < e_{2m+1} and the tails are positive, no denominator is.
    """
    rest = total - count
    odds = arb(p) / (UNIT - p)
    # Only the time depends on a good first guess of how many it takes.
    steps = min(8 + 2 * math.isqrt(min(count, rest)), 96)
    while True:
        m = min(steps, rest)
        ends = [arb(1)] if m == rest else [arb(1), arb(count + 2 * m) / m]
        for k in range(m - 1, -1, -1):
            at = count + 2 * k
            down = odds * ((count + k) * (rest - k)) / (at * (at + 1))
            up = odds * ((k + 1) * (total + k + 1)) / ((at + 1) * (at + 2))
            inner = [1 + up * end for end in ends]
            ends = [value / (value - down) for value in inner]
        found = ends[0].union(ends[-1])
        near = found.rad() < found.mid() * arb((1, -(_NEAR + 16)))
        if m == rest or near or not found.is_finite():
            return found
        steps += steps // 2


def _guess(count: int, total: int, tail: Fraction) -> float:
    """Return roughly the same end in doubles; only the time depends on how good it is."""
    log_tail = math.log(tail.numerator) - math.log(tail.denominator)
    # Below the root by P(X >= k) <= (total e p / k)^k; Newton from there, without balls.
    log_p = min(math.log(count / total) - 1 + log_tail / count, -1e-18)
    choose = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
    for _ in range(60):
        p = math.exp(log_p)
        if not 0 < p < 1:
            break
        sums = _rough_sum(count, total, p / (1 - p))
        chance = choose + count * log_p + (total - count) * math.log1p(-p) + math.log(sums)
        step = (log_tail - chance) * sums / count
        log_p = min(log_p + step, -1e-18)
        if abs(step) < 1e-12:
            break
    return math.exp(log_p)


def _rough_sum(count: int, total: int, odds: float) -> float:
    rest, tail = total - count, 1.0
    for k in range(min(40, rest) - 1, -1, -1):
        at = count + 2 * k
        down = odds * (count + k) * (rest - k) / at / (at + 1)
        up = 1 + odds * (k + 1) * (total + k + 1) / (at + 1) / (at + 2) * tail
        tail = up / max(up - down, 1e-9)
    return tail


def _floor(exact: arb) -> int:
    """Return the whole number at or below an exact number; 0 where there is none."""
    whole = exact.floor().unique_fmpz()
    return 0 if whole is None else int(whole)


if TYPE_CHECKING:
    from pufferfish.priors.prior import Prior
    from pufferfish.priors.scenario import Scenario

Whole = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Confidence:
    """Rule: the prior was counted; with this confidence all its probabilities lie in the box.

    Attributes
    ----------
    level : Fraction
        1 - alpha, between 0 and 1, for all cells of all secrets in the pairs together.
    """

    level: Fraction

    def describe(self) -> str:
        """Return one line that names the region."""
        percent = show(self.level * 100)
        return f"Clopper-Pearson intervals that hold together with {percent} % confidence"


@dataclass(frozen=True)
class TVBall:
    """Rule: every secret's distribution is within this total-variation distance of the prior's.

    Attributes
    ----------
    radius : Fraction
        tau, from 0 (the prior is exact) to 1 (nothing is known).
    """

    radius: Fraction

    def describe(self) -> str:
        """Return one line that names the region."""
        return f"total-variation balls of radius {brief(self.radius)}"


#: What a prior carries.
Region = Confidence | TVBall


def region_rule(confidence: object = None, tv_radius: object = None) -> Region | None:
    """Return the rule that was asked for, or None.

    Parameters
    ----------
    confidence : number, optional
        Above 0 and below 1.
    tv_radius : number, optional
        From 0 to 1.

    Raises
    ------
    InputError
        If both are given, or one is out of range.
    """
    if confidence is not None and tv_radius is not None:
        raise InputError(
            "a region is given by confidence or by tv_radius, but both were given "
            f"({confidence} and {tv_radius})"
        )
    if confidence is not None:
        level = parse_number(confidence, "the confidence")
        if not 0 < level < 1:
            hint = f"; {show(level)} % is {show(level / 100)}" if 1 < level < 100 else ""
            raise InputError(
                f"the confidence must be above 0 and below 1, but {confidence} was given{hint}"
            )
        return Confidence(level)
    if tv_radius is not None:
        radius = parse_number(tv_radius, "the total-variation radius")
        if not 0 <= radius <= 1:
            raise InputError(
                f"the total-variation radius must be from 0 to 1, but {tv_radius} was given"
            )
        return TVBall(radius)
    return None


@dataclass(frozen=True, eq=False)
class Box:
    """For each protected secret the distributions P with lower <= P <= upper in every cell.

    Attributes
    ----------
    lower, upper : arrays of Python integers, shape (m, n)
        Numerators over ``denominator``; no row of ``lower`` sums to more than 1, none of ``upper``
        to less.
    denominator : int
    rule : Confidence or None
        What it was made from, for messages.
    """

    lower: Whole
    upper: Whole
    denominator: int
    rule: Region | None = None

    def contains(self, row: int, probabilities: Sequence[Fraction]) -> bool:
        """Whether a distribution lies in the region of the secret in a row, exactly."""
        ends = zip(self.lower[row], self.upper[row], probabilities, strict=True)
        return sum(probabilities) == 1 and all(a <= p * self.denominator <= b for a, b, p in ends)


@dataclass(frozen=True, eq=False)
class Ball:
    """For each protected secret the distributions within ``radius`` of the prior's.

    Attributes
    ----------
    centre : array of Python integers, shape (m, n)
        Numerators of the prior, of all protected secrets.
    totals : tuple of int
        The sum of each row.
    radius : Fraction
        In total variation (half the sum of the absolute differences); 0 for an exact prior.
    rule : TVBall or None
        What it was made from; None for an exact prior.
    """

    centre: Whole
    totals: tuple[int, ...]
    radius: Fraction
    rule: Region | None = None

    def contains(self, row: int, probabilities: Sequence[Fraction]) -> bool:
        """Whether a distribution lies in the region of the secret in a row, exactly."""
        total = self.totals[row]
        apart = sum(
            abs(p - Fraction(int(c), total))
            for c, p in zip(self.centre[row], probabilities, strict=True)
        )
        return sum(probabilities) == 1 and min(probabilities) >= 0 and apart <= 2 * self.radius

    @cached_property
    def is_exact(self) -> bool:
        """Whether the region is the prior alone."""
        return self.radius == 0


#: The region of one adversary, for all protected secrets in the scenario's order.
Concrete = Box | Ball


def regions_of(
    scenario: Scenario, *, confidence: object = None, tv_radius: object = None
) -> tuple[Concrete, ...]:
    """Return the region of every adversary's prior, over the protected secrets.

    Parameters
    ----------
    scenario : Scenario
        m protected secrets, n levels (or values), those that were declared but never seen too.
    confidence, tv_radius : number, optional
        A rule for all adversaries; without one each prior's own ``region`` counts, and a prior
        that has none is taken as exact.

    Returns
    -------
    tuple of Box or Ball
        One per adversary.

    Raises
    ------
    InputError
        If confidence is asked for where the prior was not counted from rows.

    Notes
    -----
    Theory, section 5. The level of each interval is 1 - alpha / cells, and cells counts every
    level of every protected secret, for all adversaries whose prior was counted: together they
    hold with the stated confidence.
    """
    given = region_rule(confidence, tv_radius)
    rules = [given or prior.region for prior in scenario.priors]
    counted = sum(isinstance(rule, Confidence) for rule in rules)
    cells = scenario.support.size * len(scenario.protected) * counted
    return tuple(
        _region(prior, rule, scenario.protected, cells)
        for prior, rule in zip(scenario.priors, rules, strict=True)
    )


def has_region(scenario: Scenario) -> bool:
    """Whether any adversary's prior is only known to lie in a region."""
    return any(prior.region not in (None, TVBall(Fraction(0))) for prior in scenario.priors)


def describe_regions(regions: Sequence[Concrete]) -> str:
    """Return the regions' names, each once."""
    names = [
        "an exact prior" if region.rule is None else region.rule.describe() for region in regions
    ]
    return "; ".join(dict.fromkeys(names))


def _region(prior: Prior, rule: Region | None, secrets: Sequence[str], cells: int) -> Concrete:
    rows = [prior.row(secret) for secret in secrets]
    if isinstance(rule, Confidence):
        if not prior.from_rows:
            raise InputError(
                "confidence needs counts of rows (Prior.from_counts or Prior.from_table), but the "
                "prior was given as probabilities; give tv_radius instead"
            )
        alpha = 1 - rule.level
        lower, upper = _ends(prior.counts[rows], [prior.totals[r] for r in rows], alpha / cells)
        return Box(lower, upper, UNIT, rule)
    radius = Fraction(0) if rule is None else rule.radius
    centre = prior.counts[rows].astype(object)
    return Ball(centre, tuple(prior.totals[r] for r in rows), radius, rule)


def _ends(counts: npt.NDArray[Any], totals: Sequence[int], alpha: Fraction) -> tuple[Whole, Whole]:
    """Return the ends of the interval of every cell, shape (m, n), in units of 1 / UNIT."""
    lower = np.empty(counts.shape, dtype=object)
    upper = np.empty(counts.shape, dtype=object)
    for row, total in enumerate(totals):
        known = {c: interval(c, total, alpha) for c in {int(c) for c in counts[row]}}
        for k, c in enumerate(counts[row].tolist()):
            lower[row, k], upper[row, k] = known[int(c)]
    return lower, upper


def brief(number: Fraction) -> str:
    """Return a number for a message: exactly where that is short, or six digits of it."""
    text = show(number)
    return text if len(text) <= 24 else f"{float(number):.6g}"
