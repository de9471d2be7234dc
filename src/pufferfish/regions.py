# SPDX-License-Identifier: Apache-2.0
"""Regions: where a prior that was only estimated may lie; boxes of exact intervals, and balls.

A prior carries a *rule* (:class:`Confidence` or :class:`TVBall`); how wide an interval has to be
depends on how many there are, so the region itself is made for a scenario (:func:`regions_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.intervals import UNIT, interval
from pufferfish.rationals import parse_number, show

if TYPE_CHECKING:
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario

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
