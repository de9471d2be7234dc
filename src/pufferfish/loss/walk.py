# SPDX-License-Identifier: Apache-2.0
"""The walk: the least scale on a fixed grid that counted rows allow with some confidence.

The scales range / (epsilon ratio^r) are tried one after the other, up to the first that fails. The
test asks U_i(y) <= e^epsilon L_j(y) of every pair and output, each bound with an error alpha / 2 of
its own: the first scale that is not private and its witness are fixed by the distributions, and to
pass them is one comparison. So every scale has to be tried, in this order (theory, section 5).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb

from pufferfish.errors import PufferfishError
from pufferfish.loss.balls import exp_minus
from pufferfish.loss.betting import Wealth, rescaled
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.rounding import UNIT
from pufferfish.numbers import FloatArray, IntArray, float_up, precision
from pufferfish.priors.ambiguity import Confidence, Counted, NoisyCounts
from pufferfish.priors.betting import ball, is_bound
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, positions
from pufferfish.support import Lattice

#: Neighbouring scales: no scale is larger than it has to be by more than half a per cent.
RATIO = Fraction(201, 200)
#: The grid ends where noise is this small a part of the step: hardly a value is changed.
LEAST_STEPS = Fraction(1, 32)
#: Larger supports would take minutes: the box takes the place of the walk. So it does where scales
#: are so many steps that rates are too small for doubles to be that precise.
MOST_ATOMS, _LARGEST_SCALE = 300, 1e290
#: Errors of ln(1 + gap) from two means that are proved: 60 u relative; and of epsilon in doubles.
_ERROR = 100 * UNIT
#: Of the balls.
_BITS = 128


@dataclass(frozen=True, eq=False)
class Claim:
    """Counted rows of one adversary by secret, the pairs of positions, and the largest loss."""

    beliefs: tuple[Counted, ...]
    pairs: tuple[tuple[int, int], ...]
    lattice: Lattice
    epsilon: Fraction


def claims_of(scenario: Scenario, epsilon: Fraction) -> list[Claim]:
    """Return what a walk has to show, for each adversary; nothing where boxes take its place."""
    if scenario.support.size > MOST_ATOMS:
        return []
    beliefs = [_beliefs(prior, scenario.protected) for prior in scenario.priors]
    step = scenario.lattice.step if scenario.support.ordered and all(beliefs) else Fraction(0)
    if not step or next(scales(scenario.lattice, epsilon)) > _LARGEST_SCALE * step:
        return []
    pairs = positions(scenario.pairs, scenario.protected)
    return [Claim(own, pairs, scenario.lattice, epsilon) for own in beliefs]


def _beliefs(prior: Prior, secrets: Sequence[str]) -> tuple[Counted, ...]:
    """Return the counts of each secret, whose bounds fail with a chance alpha / 2, if they walk."""
    match prior.rule:
        case NoisyCounts() as noisy:
            return tuple(map(noisy.belief, secrets))
        case Confidence(level, box=False):
            at = [prior.row(secret) for secret in secrets]
            # Whose rows they are is given: the bets may depend on their number.
            rows, alpha = sum(prior.totals[row] for row in at), (1 - level) / 2
            return tuple(Counted(tuple(prior.counts[k].tolist()), rows, alpha) for k in at)
    return ()


def walked(claims: Sequence[Claim], scale: float | None = None) -> tuple[float, Certificate]:
    """Return the least scale that is reached, and what is proved of it or of a scale.

    A scale is private where the walk reaches it or a smaller one of the grid.
    """
    epsilon, found = claims[0].epsilon, walk(claims, until=scale or 0.0)
    holds = scale is None or found <= scale
    # Epsilon is what it promises: a bound at a scale that the rows chose would not hold as surely.
    loss = float(epsilon) if holds else math.inf
    return found, Certificate("walk", loss, 0.0, epsilon, holds, decided=True)


def scales(lattice: Lattice, epsilon: Fraction, ratio: Fraction = RATIO) -> Iterator[float]:
    """Yield the grid: range / epsilon, and from there downwards, each rounded up."""
    scale = lattice.step * int(lattice.index[-1]) / epsilon
    yield float_up(scale)
    while scale >= ratio * LEAST_STEPS * lattice.step:
        scale /= ratio
        yield float_up(scale)


def walk(claims: Sequence[Claim], ratio: Fraction = RATIO, until: float = 0.0) -> float:
    """Walk down until a test fails for some adversary, or to the first scale not above ``until``.

    All claims are about one lattice and one epsilon.
    """
    lattice, epsilon = claims[0].lattice, claims[0].epsilon
    tests = [_Test(claim) for claim in claims]
    found = 0.0
    for scale in scales(lattice, epsilon, ratio):
        # The first one needs no test.
        if found and not all(test.holds(scale) for test in tests):
            break
        found = scale
        if scale <= until:
            break
    if not all(test.confirmed(found) for test in tests):
        raise PufferfishError("balls do not prove what doubles proved of a scale; please report it")
    return found


class _Test:
    """The test of one scale after the other; each is the next one's first guess."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.places = claim, claim.lattice.index
        self.outputs = np.arange(len(self.places))
        # Of h and of 1 - h, by output and secret.
        self.means = np.full((2, len(self.outputs), len(claim.beliefs)), 0.5)
        self.passed: FloatArray | None = None
        both = [*claim.pairs, *((j, i) for i, j in claim.pairs)]
        self.firsts, self.seconds = map(list, zip(*both, strict=True))
        self.shares = claim.beliefs[0].is_share
        if self.shares:
            ends = [[own.upper_share(y) for own in claim.beliefs] for y in (0, 1)]
            upper = np.array([[float_up(end) for end in row] for row in ends])
            self.means = np.stack([upper, upper[::-1]])

    def holds(self, scale: float) -> bool:
        """Return whether the loss at a scale is proved to be at most epsilon, in a hurry if so."""
        most = float(self.claim.epsilon) * (1 - _ERROR)
        rate = float(self.claim.lattice.step / Fraction(scale))
        open_ = self.outputs
        for close in (False, True):
            losses = self._losses(rate, open_, close)
            open_ = open_[(losses > most).any(axis=1)]
            if not len(open_):
                self.passed = self.means.copy()
                return True
        return False

    def confirmed(self, scale: float) -> bool:
        """Return whether balls prove the last test that was passed, from the bounds of doubles.

        The first scale has none. Of each pair the first one is taken for the likelier one.
        """
        if self.passed is None:
            return True
        claim, rate = self.claim, self.claim.lattice.step / Fraction(scale)
        with precision(_BITS):
            power, most = cache(lambda d: exp_minus(rate * d)), ball(claim.epsilon).exp()
            apart = np.abs(self.places[:, None] - self.places).tolist()
            for y, distance in enumerate(apart):
                far = max(distance)
                low, ends = power(far), {far: arb(0), 0: arb(1)}  # numbers, not balls around them
                h = [ends[d] if d in ends else (power(d) - low) / (1 - low) for d in distance]
                for side, own in enumerate((h, [1 - each for each in h])):
                    means = self.passed[side, y].tolist()
                    for belief, m in zip(claim.beliefs, means, strict=True):
                        share = belief.is_share and m >= belief.upper_share(y ^ side)
                        if not (m >= 1 or share or is_bound(belief, own, m)):
                            return False
                tops, rests = (list(map(arb, own[y].tolist())) for own in self.passed)
                for first, second in zip(self.firsts, self.seconds, strict=True):
                    top, bottom = (low + (1 - low) * m for m in (tops[first], 1 - rests[second]))
                    if not top <= most * bottom:
                        return False
        return True

    def _losses(self, rate: float, outputs: IntArray, close: bool) -> FloatArray:
        """Return bounds of ln <P_i, k_y> / <P_j, k_y> by output and pair."""
        if not self.shares:
            h = rescaled(self.places, rate, outputs)
            for side, own in enumerate((h, 1 - h)):
                start = self.means[side, outputs]
                self.means[side, outputs] = Wealth(self.claim.beliefs, own).upper(start, close)
        upper, other = self.means[:, outputs]
        lower = np.nextafter(1 - other, 0)
        places = self.places[outputs]
        farthest = np.maximum(places, self.places[-1] - places)[:, None] * -rate
        gap = upper[:, self.firsts] - lower[:, self.seconds]
        with np.errstate(all="ignore"):
            below = np.exp(farthest) - np.expm1(farthest) * lower[:, self.seconds]
            losses = np.log1p(-np.expm1(farthest) * gap / below) * (1 + _ERROR)
        return np.where(np.isnan(losses), np.inf, losses)
