# SPDX-License-Identifier: Apache-2.0
"""What an adversary holds possible under one secret: one distribution, or a set of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from pufferfish.errors import InputError
from pufferfish.numbers import CountArray, parse_number, precision, show

#: The ends of intervals are whole multiples of 2**-GRID, rounded outwards.
GRID = 160
UNIT = 1 << GRID
#: Precision at which the ends are found and proved.
_BITS = 192
#: An end is within 2**-_NEAR of the true one, as seen from the nearer of 0 and 1.
_NEAR = 64
_MAX_STEPS = 100


@dataclass(frozen=True)
class Confidence:
    """Rule: the prior was counted; with this confidence all its probabilities lie in the box."""

    level: Fraction  # 1 - alpha, for all cells of all secrets in the pairs together


@dataclass(frozen=True)
class TVBall:
    """Rule: every secret's distribution is within this total-variation distance of the prior's."""

    radius: Fraction  # tau, above 0 and at most 1 (nothing is known)


#: What a prior carries; no rule: it is exact.
Rule = Confidence | TVBall


def region_rule(confidence: object = None, tv_radius: object = None) -> Rule | None:
    """Return the rule that was asked for; a radius of 0 is none."""
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
    radius = parse_number(0 if tv_radius is None else tv_radius, "the total-variation radius")
    if not 0 <= radius <= 1:
        raise InputError(
            f"the total-variation radius must be from 0 to 1, but {tv_radius} was given"
        )
    return TVBall(radius) if radius else None


@dataclass(frozen=True, eq=False)
class Point:
    """One distribution: integers with an axis for each column, and their sum."""

    masses: CountArray
    total: int


@dataclass(frozen=True)
class Region:
    """The distributions { P : least <= P <= least + room, sum P = 1 }, numerators over ``unit``.

    ``spread`` is what the room takes: sum(least) + spread + free = unit, and ``free`` more lies on
    any one cell. A total-variation ball of radius tau has least 0, room the centre, spread 1 - tau
    and free tau: its extreme points move tau away from some cells and to one.
    """

    least: tuple[int, ...]
    room: tuple[int, ...]
    spread: int
    free: int
    unit: int


#: What is held possible under one secret.
AmbiguitySet = Point | Region


def ball_around(masses: Sequence[int], total: int, radius: Fraction) -> Region:
    """Return the total-variation ball around a distribution."""
    tau, of = radius.numerator, radius.denominator
    room = tuple(mass * of for mass in masses)
    return Region((0,) * len(room), room, (of - tau) * total, tau * total, total * of)


def box_of(counts: Sequence[int], total: int, alpha: Fraction) -> Region:
    """Return the box of Clopper-Pearson intervals, each at the level 1 - alpha."""
    ends = {count: clopper_pearson(count, total, alpha) for count in set(counts)}
    least = tuple(ends[count][0] for count in counts)
    room = tuple(ends[count][1] - ends[count][0] for count in counts)
    return Region(least, room, UNIT - sum(least), 0, UNIT)


def clopper_pearson(count: int, total: int, alpha: Fraction) -> tuple[int, int]:
    """Return the equal-tailed Clopper-Pearson interval of a count, rounded outwards, times 2**160.

    It may miss with the chance ``alpha``, half of it on each side. The lower end is the p at which
    ``count`` rows or more have probability alpha / 2 (0 for a count of 0); the upper end is 1 minus
    the lower end of the other rows. Theory, section 5.
    """
    return _lower_end(count, total, alpha / 2), UNIT - _lower_end(total - count, total, alpha / 2)


@cache
def _lower_end(count: int, total: int, tail: Fraction) -> int:
    """Return a grid point p with P(Binomial(total, p) >= count) <= tail, proved, near the largest.

    The slope of ln P(X >= count) in ln p is count P(X = count) / P(X >= count), which falls as p
    rises. So the function is concave, its tangent at any p lies above it, and Newton's step leads
    to the root or to its left: the lower end of the ball around where it leads is proved.
    """
    from flint import arb  # slow to import, and not needed for exact priors

    if count == 0:
        return 0
    with precision(_BITS + total.bit_length() + tail.denominator.bit_length()):
        log_tail = (arb(tail.numerator) / tail.denominator).log()
        choose = arb(total + 1).lgamma() - arb(count + 1).lgamma() - arb(total - count + 1).lgamma()
        p = min(max(int(_guess(count, total, tail) * 2**60) << (GRID - 60), 1), UNIT - 1)
        for _ in range(_MAX_STEPS):
            sums = _tail_sum(count, total, p)
            log_p, log_q = (arb(p) / UNIT).log(), (arb(UNIT - p) / UNIT).log()
            log_chance = choose + count * log_p + (total - count) * log_q + sums.log()
            missing = log_tail - log_chance
            there = p * (missing * sums / count).exp()
            if abs(missing) < arb((1, -_NEAR // 2 - 2)):
                return max(0, _floor(there.lower()))
            p = min(max(_floor(there.mid()), 1), UNIT - 1)
    return 0  # pragma: no cover - Newton's steps converge; and 0 is always a lower end


def _tail_sum(count: int, total: int, p: int) -> Any:
    """Return a ball around P(X >= count) / P(X = count) for X binomial, count > 0 above its mean.

    ``p`` is in units of 2**-GRID, with p (total + 1) below count + 1. With b = total - count, the
    tail of the continued fraction after 2m of its terms is F(m - b, m + 1; count + 2m + 1; -w) /
    F(m - b, m; count + 2m; -w): the ratio of their j-th terms rises in j, from 1 towards
    (count + 2m) / m; and at m = b it is 1.
    """
    from flint import arb

    rest = total - count
    odds = arb(p) / (UNIT - p)
    # Only the time depends on a good first guess of how many terms it takes.
    terms = min(8 + 2 * math.isqrt(min(count, rest)), 96)
    while True:
        m = min(terms, rest)
        ends = [arb(1)] if m == rest else [arb(1), arb(count + 2 * m) / m]
        ends = _continued(count, total, odds, m, ends)
        found = ends[0].union(ends[-1])
        near = found.rad() < found.mid() * arb((1, -(_NEAR + 16)))
        if m == rest or near or not found.is_finite():
            return found
        terms += terms // 2


def _continued(count: int, total: int, odds: Any, m: int, tails: list[Any]) -> list[Any]:
    """Return the continued fraction of :func:`_tail_sum` in balls or doubles, from its tails.

    With w the odds, e_{2k+1} = -(count + k)(b - k) w / ((count + 2k)(count + 2k + 1)) and e_{2k} =
    k (total + k) w / ((count + 2k - 1)(count + 2k)). As -1 < e_{2k+1} and the tails are positive,
    no denominator is 0.
    """
    for k in range(m - 1, -1, -1):
        at = count + 2 * k
        down = odds * ((count + k) * (total - count - k)) / (at * (at + 1))
        up = odds * ((k + 1) * (total + k + 1)) / ((at + 1) * (at + 2))
        tails = [1 / (1 - down / (1 + up * tail)) for tail in tails]
    return tails


def _guess(count: int, total: int, tail: Fraction) -> float:
    """Return roughly the same end in doubles; only the time depends on how good it is."""
    log_tail = math.log(tail.numerator) - math.log(tail.denominator)
    highest = math.log(count / total) - 1e-18
    # Below the root by P(X >= k) <= (total e p / k)^k; Newton from there, without balls.
    log_p = highest - 1 + log_tail / count
    choose = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
    for _ in range(60):
        p = math.exp(log_p)
        if not 0 < p < 1:
            break
        (sums,) = _continued(count, total, p / (1 - p), min(40, total - count), [1.0])
        chance = choose + count * log_p + (total - count) * math.log1p(-p) + math.log(sums)
        step = (log_tail - chance) * sums / count
        log_p = min(log_p + step, highest)
        if abs(step) < 1e-12:
            break
    return math.exp(log_p)


def _floor(exact: Any) -> int:
    """Return the whole number at or below an exact number; 0 where there is none."""
    whole = exact.floor().unique_fmpz()
    return 0 if whole is None else int(whole)
