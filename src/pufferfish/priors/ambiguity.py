# SPDX-License-Identifier: Apache-2.0
"""What an adversary holds possible under one secret: one distribution, or a set of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from statistics import NormalDist
from typing import Any

from pufferfish.errors import InputError
from pufferfish.numbers import CountArray, Number, parse_number, precision, show

#: The ends of intervals are whole multiples of 2**-GRID, rounded outwards.
GRID = 160
UNIT = 1 << GRID
#: Precision at which the ends are found and proved.
_BITS = 192
#: An end is within some 2**-_NEAR of the true one, as seen from the nearer of 0 and 1.
_NEAR = 64
#: Less noise than this would hardly hide a row, and needs doubles beyond their range.
_LEAST_EPSILON, _MOST_EPSILON, _MOST_ROWS = Fraction(1, 10**9), 100, 2**53


@dataclass(frozen=True)
class Confidence:
    """Rule: the prior was counted; what is released holds with this confidence.

    A channel holds for all distributions of a box, a scale by a walk (theory, section 5), which
    needs less noise; by the box, too, with ``box`` and where a walk would take long.
    """

    level: Fraction  # 1 - alpha; in the box for all cells of all secrets in the pairs together
    box: bool = False


@dataclass(frozen=True)
class TVBall:
    """Rule: every secret's distribution is within this total-variation distance of the prior's."""

    radius: Fraction  # tau, above 0 and at most 1 (nothing is known)


@dataclass(frozen=True)
class NoisyCounts:
    """Rule: of the rows nothing is used but counts with discrete Laplace noise.

    Anyone may have them, and what is computed from them (theory, section 7.8). As under a
    Confidence, a channel holds for a box, and a scale by a walk.
    """

    secrets: tuple[str, ...]  # those of the pairs, declared
    counts: tuple[tuple[int, ...], ...]  # by secret and atom; noise makes some negative
    others: tuple[int, ...]  # by atom, of all other rows: used by estimates alone
    rows: int  # that were counted, whatever their secret: a release shows how many
    epsilon1: Fraction  # a row moves two counts by 1; their noise has a = e^(-epsilon1 / 2)
    level: Fraction  # 1 - alpha, for the walk or the box
    held_out: bool = False  # whether these rows are not released, but others from the same law

    def __str__(self) -> str:
        return f"counts with noise (epsilon {show(self.epsilon1)}, {self.rows} rows)"

    def total(self, own: Fraction) -> Fraction:
        """Return what counts and release cost together: a row is in both, or in one of them."""
        return max(own, self.epsilon1) if self.held_out else own + self.epsilon1

    def left(self, total: Fraction) -> Fraction:
        """Return what of an epsilon is left for the release."""
        own = total if self.held_out else total - self.epsilon1
        if own <= 0 or self.total(own) > total:
            spent = show(self.epsilon1)
            raise InputError(f"epsilon {show(total)} must be above the {spent} of noisy counts")
        return own

    def check(self, pairs: Iterable[tuple[str, str]], size: int) -> None:
        """Refuse counts that are not those of these pairs and so many values, or out of range."""
        named, every = sorted(set(chain(*pairs))), [*self.counts, self.others]
        if sorted(self.secrets) != named or [*map(len, every)] != [size] * (len(named) + 1):
            raise InputError("noisy counts must be of each secret in the pairs, and of each value")
        if not 0 <= self.rows < _MOST_ROWS or max(abs(n) for n in chain(*every)) > _MOST_ROWS:
            raise InputError("noisy counts, and the number of rows, must be below 2**53")
        noise_epsilon(self.epsilon1)
        parse_level(self.level)

    def belief(self, secret: str, shares: int = 1) -> "Counted":
        """Return the counts of a secret, for bounds that fail with a chance alpha / 2 / shares."""
        alpha = (1 - self.level) / (2 * shares)
        return Counted(self.counts[self.secrets.index(secret)], self.rows, alpha, self.epsilon1)


def noise_epsilon(epsilon: Number) -> Fraction:
    """Return the epsilon of noisy counts."""
    spent = parse_number(epsilon, "the epsilon of noisy counts")
    if not _LEAST_EPSILON <= spent <= _MOST_EPSILON:
        raise InputError(
            f"the epsilon of noisy counts is from 1e-9 to {_MOST_EPSILON}, but {epsilon} was given"
        )
    return spent


#: What a prior carries; no rule: it is exact.
Rule = Confidence | TVBall | NoisyCounts


def region_rule(
    confidence: object = None, tv_radius: object = None, region: object = None
) -> Rule | None:
    """Return the rule that was asked for; a radius of 0 is none."""
    if region is not None and (region != "box" or confidence is None):
        raise InputError(f"region can only be 'box', with a confidence, but {region!r} was given")
    if confidence is not None and tv_radius is not None:
        raise InputError(
            "a region is given by confidence or by tv_radius, but both were given "
            f"({confidence} and {tv_radius})"
        )
    if confidence is not None:
        return Confidence(parse_level(confidence), region is not None)
    radius = parse_number(0 if tv_radius is None else tv_radius, "the total-variation radius")
    if not 0 <= radius <= 1:
        raise InputError(
            f"the total-variation radius must be from 0 to 1, but {tv_radius} was given"
        )
    return TVBall(radius) if radius else None


def parse_level(confidence: object) -> Fraction:
    """Return a confidence as a fraction between 0 and 1."""
    level = parse_number(confidence, "the confidence")
    if not 0 < level < 1:
        hint = f"; {show(level)} % is {show(level / 100)}" if 1 < level < 100 else ""
        raise InputError(
            f"the confidence must be above 0 and below 1, but {confidence} was given{hint}"
        )
    return level


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


@dataclass(frozen=True)
class Counted:
    """Counts with an error probability: they bound the mean of one function at a time.

    Such a bound fails with the chance ``alpha``. ``rows`` is the number of rows, of all secrets,
    that the bets are fixed by; ``noise`` the epsilon of discrete Laplace noise on the counts, where
    replacing a row moves two of them by 1. Theory, section 5.
    """

    counts: tuple[int, ...]
    rows: int
    alpha: Fraction
    noise: Fraction | None = None

    @property
    def bets(self) -> tuple[Fraction, ...]:
        """15/16, and 2**-1 to 2**-R, R = 1 + ceil(log2 sqrt rows)."""
        last = 1 + ((max(self.rows, 1) - 1).bit_length() + 1) // 2
        return Fraction(15, 16), *(Fraction(1, 1 << k) for k in range(1, last + 1))

    @property
    def is_share(self) -> bool:
        """Whether a share is all there is to bound: two values, whose counts are those of rows."""
        return len(self.counts) == 2 and self.noise is None

    def upper_share(self, atom: int) -> Fraction:
        """Return the one-sided Clopper-Pearson bound of the share of an atom."""
        total = sum(self.counts)
        return Fraction(clopper_pearson(self.counts[atom], total, 2 * self.alpha)[1], UNIT)


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


@lru_cache(maxsize=4096)
def _lower_end(count: int, total: int, tail: Fraction) -> int:
    """Return a grid point p with P(Binomial(total, p) >= count) <= tail, proved, near the largest.

    Newton's method on ln P(X >= count) as a function of ln p: its slope is count P(X = count) /
    P(X >= count). The point returned is proved by itself, by an upper bound of that probability.
    """
    from flint import arb  # slow to import, and not needed for exact priors

    if count == 0:
        return 0
    # Roughly the same end (Wilson's); only the time depends on how good it is.
    z = NormalDist().inv_cdf(max(float(tail), 1e-300))
    centre, width = count + z**2 / 2, math.sqrt(count * (total - count) / total + z**2 / 4)
    p = max(int((centre + z * width) / (total + z**2) * 2**60), 1) << (GRID - 60)
    with precision(_BITS + total.bit_length() + tail.denominator.bit_length()):
        log_tail = (arb(tail.numerator) / tail.denominator).log()
        choose = arb(total + 1).lgamma() - arb(count + 1).lgamma() - arb(total - count + 1).lgamma()
        # With more terms in every step the last ones show that more would not change it.
        for terms in (2**k - 1 for k in range(4, 20)):
            p = max(1, min(p, UNIT * count // total, UNIT - 1))
            bound = _tail_bound(count, total, arb(p) / (UNIT - p), terms)
            log_p, log_q = (arb(p) / UNIT).log(), (arb(UNIT - p) / UNIT).log()
            missing = log_tail - (choose + count * log_p + (total - count) * log_q + bound.log())
            near = (min(p, UNIT - p) >> _NEAR) + 1
            step = p * ((missing * bound / count).exp() - 1)
            if missing >= 0 and step < 4 * near:
                return p
            if p == 1 and not missing >= 0:
                break
            p += int(step.mid().floor().unique_fmpz()) - near
    return 0  # it lies below the grid; and 0 is always a lower end


def _tail_bound(count: int, total: int, odds: Any, terms: int) -> Any:
    """Return a bound on P(X >= count) / P(X = count) for X binomial, from above, as a ball.

    The odds are p : 1 - p with p (total + 1) below count + 1, and the number of terms is odd. With
    b = total - count and w the odds it is Gauss's continued fraction, whose tail after 2m terms is
    F(m - b, m + 1; count + 2m + 1; -w) / F(m - b, m; count + 2m; -w). That is at least 1, because
    the ratio of their j-th terms rises in j from 1, and 1 for m = b. Each level falls as its tail
    rises, so an odd number of levels from the tail 1 is an upper bound. No denominator is 0,
    because ``down`` is below 1.
    """
    from flint import arb

    rest, value = total - count, arb(1)
    for k in range(min(terms, rest) - 1, -1, -1):
        at = count + 2 * k
        down = odds * ((count + k) * (rest - k)) / (at * (at + 1))
        up = odds * ((k + 1) * (total + k + 1)) / ((at + 1) * (at + 2))
        value = 1 / (1 - down / (1 + up * value))
    return value
