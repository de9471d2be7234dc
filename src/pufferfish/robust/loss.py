# SPDX-License-Identifier: Apache-2.0
"""The robust loss of additive Laplace noise: the largest over all priors of the regions.

It separates: for an output and an ordered pair it is ln of the largest likelihood over the one
secret's region over the smallest of the other's. For every output the extreme priors are the same
at every scale (they only depend on distances), so the robust loss is again a maximum of finitely
many smooth functions of the scale, one per witness, attained at an atom, and never rises with the
scale (theory, sections 2 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.loss import Attained
from pufferfish.precision import precision
from pufferfish.rationals import parse_number
from pufferfish.regions import Ball, Box, Concrete, regions_of
from pufferfish.robust.columns import ordered_pairs
from pufferfish.robust.windows import Extreme, extremes
from pufferfish.scenario import Scenario

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RobustWitness:
    """Where the robust loss is attained, and by which priors of the region.

    Attributes
    ----------
    adversary : int
        Position of the prior in the scenario.
    numerator, denominator : str
        The two secrets: the output is likelier under the first.
    atom : int
        Position of the output on the support.
    first, second : float64 arrays, shape (n,)
        The extreme P(X | S) of the two.
    """

    adversary: int
    numerator: str
    denominator: str
    atom: int
    first: FloatArray
    second: FloatArray


class RobustLoss:
    """Robust loss as a function of u = step / theta: linear in the support.

    Parameters
    ----------
    scenario : Scenario
        Numbers or ordered levels; m protected secrets, n atoms. All atoms are witnesses, those
        that no row has too.
    regions : sequence of Box or Ball
        One per adversary.
    """

    def __init__(self, scenario: Scenario, regions: Sequence[Concrete]) -> None:
        self.scenario = scenario
        self.regions = tuple(regions)
        self.index = scenario.lattice.index
        self.pairs = ordered_pairs(scenario)
        self.all_pairs = scenario.is_all_pairs
        self.extremes: list[list[tuple[Extreme, Extreme]]] = [
            [extremes(region, row, self.index) for row in range(len(scenario.protected))]
            for region in self.regions
        ]
        self._priors: dict[Attained, tuple[FloatArray, FloatArray]] = {}

    def worst(self, u: float) -> tuple[float, Attained]:
        """Return the robust loss at u > 0, and where it is attained."""
        found = [self._largest(rows, rho, u) for rho, rows in enumerate(self.extremes)]
        return max(found, key=lambda pair: pair[0])

    def _largest(
        self, rows: list[tuple[Extreme, Extreme]], rho: int, u: float
    ) -> tuple[float, Attained]:
        top = np.vstack([high.logs(u) for high, _ in rows])
        bottom = np.vstack([low.logs(u) for _, low in rows])
        if self.all_pairs and len(rows) > 2:
            return best_of_two(top, bottom, rho)
        best = (-math.inf, Attained(rho, *self.pairs[0], 0))
        for i, j in self.pairs:
            gap = top[i] - bottom[j]
            atom = int(np.argmax(gap))
            if gap[atom] > best[0]:
                best = (float(gap[atom]), Attained(rho, i, j, atom))
        return best

    def extremes_of(self, witness: Attained) -> tuple[Extreme, Extreme]:
        """Return the extreme likelihoods of a witness's two secrets: largest, and smallest."""
        rows = self.extremes[witness.adversary]
        return rows[witness.numerator][0], rows[witness.denominator][1]

    def priors_at(self, witness: Attained) -> tuple[FloatArray, FloatArray]:
        """Return the two extreme priors of a witness, shape (n,) each."""
        if witness not in self._priors:
            high, low = self.extremes_of(witness)
            self._priors[witness] = high.prior_at(witness.atom), low.prior_at(witness.atom)
        return self._priors[witness]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the log-ratio at a witness and its slope in u."""
        distance = np.abs(self.index - self.index[witness.atom]).astype(np.float64)
        logs, slopes = [], []
        for p in self.priors_at(witness):
            nearest = float(distance[p > 0].min())
            weights = p * np.exp(-np.maximum(distance - nearest, 0.0) * u)
            total = float(weights.sum())
            logs.append(math.log(total) - nearest * u)
            slopes.append(-float((weights * distance).sum()) / total)
        return logs[0] - logs[1], slopes[0] - slopes[1]

    def named(self, witness: Attained) -> RobustWitness:
        """Return a witness with its secrets' names and its priors."""
        names = self.scenario.protected
        first, second = self.priors_at(witness)
        return RobustWitness(
            witness.adversary, names[witness.numerator], names[witness.denominator],
            witness.atom, first, second,
        )  # fmt: skip

    def unchanged(self) -> tuple[Fraction | None, Attained]:
        """Return e^loss without noise, exactly (None: infinite), and where it is attained."""
        best: tuple[Fraction | None, Attained] = (Fraction(1), Attained(0, *self.pairs[0], 0))
        for rho, region in enumerate(self.regions):
            top, bottom = _masses(region)
            for i, j in self.pairs:
                for k, (a, b) in enumerate(zip(top[i], bottom[j], strict=True)):
                    if a == 0:
                        continue
                    if b == 0:
                        return None, Attained(rho, i, j, k)
                    if best[0] is not None and a * best[0].denominator > best[0].numerator * b:
                        best = (Fraction(a, b), Attained(rho, i, j, k))
        return best


def best_of_two(top: FloatArray, bottom: FloatArray, rho: int) -> tuple[float, Attained]:
    """Return the largest top[i] - bottom[j] over all i != j and outputs.

    The best two of each are enough: a secret is not compared with itself, for its own region may
    hold two very different priors.
    """
    atoms = np.arange(top.shape[1])
    high = np.argpartition(-top, 1, axis=0)[:2]
    low = np.argpartition(bottom, 1, axis=0)[:2]
    best = (-math.inf, Attained(rho, 0, 1, 0))
    for i in high:
        for j in low:
            gap = np.where(i != j, top[i, atoms] - bottom[j, atoms], -math.inf)
            atom = int(np.argmax(gap))
            if gap[atom] > best[0]:
                best = (float(gap[atom]), Attained(rho, int(i[atom]), int(j[atom]), atom))
    return best


def _masses(region: Concrete) -> tuple[list[list[int]], list[list[int]]]:
    """Return the largest and smallest P(x) of every cell, over one common denominator."""
    if isinstance(region, Box):
        one = region.denominator
        top, bottom = [], []
        for lower, upper in zip(region.lower.tolist(), region.upper.tolist(), strict=True):
            rest, excess = one - sum(lower), sum(upper) - one
            top.append([min(b, a + rest) for a, b in zip(lower, upper, strict=True)])
            bottom.append([max(a, b - excess) for a, b in zip(lower, upper, strict=True)])
        return top, bottom
    one = math.lcm(*region.totals) * region.radius.denominator
    moved = int(region.radius * one)
    factors = [one // total for total in region.totals]
    masses = [
        [int(c) * f for c in row] for row, f in zip(region.centre.tolist(), factors, strict=True)
    ]
    if len(masses[0]) == 1:
        return masses, masses  # there is one distribution on a single value, whatever the radius
    top = [[min(c + moved, one) for c in row] for row in masses]
    return top, [[max(c - moved, 0) for c in row] for row in masses]


def robust_loss(
    scenario: Scenario, scale: object, regions: Sequence[Concrete] | None = None
) -> float:
    """Return the loss of Laplace noise for the worst priors of the regions.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    scale : number
        theta, not negative; 0 publishes the column unchanged.
    regions : sequence of Box or Ball, optional
        One per adversary; by default the priors' own regions.

    Returns
    -------
    float
        ``inf`` where it is infinite. Not rounded up: a proven bound is what the certificate
        gives.

    Raises
    ------
    InputError
        If the scale is negative or no number, or the levels have no order.

    Notes
    -----
    Theory, section 5.
    """
    theta = parse_number(scale, "the scale")
    if theta < 0:
        raise InputError(f"the scale must not be negative, but {scale} was given")
    loss = RobustLoss(scenario, regions_of(scenario) if regions is None else regions)
    if theta == 0:
        ratio, _ = loss.unchanged()
        return math.inf if ratio is None else log_of(ratio)
    return max(0.0, loss.worst(float(scenario.lattice.step / theta))[0])


def log_of(ratio: Fraction) -> float:
    """Return ln of an exact number to the nearest double or the next."""
    with precision(128 + ratio.denominator.bit_length()):
        return float((flint.arb(ratio.numerator) / ratio.denominator).log())


def ball_around(scenario: Scenario, radius: Fraction) -> tuple[Ball, ...]:
    """Return balls of one radius around every adversary's prior."""
    regions = regions_of(scenario, tv_radius=radius)
    return tuple(region for region in regions if isinstance(region, Ball))
