# SPDX-License-Identifier: Apache-2.0
"""The loss without noise (scale 0): ratios of the exact masses themselves, compared as integers.

Without noise the output is the value, so the loss is the largest |ln P_i(x) / P_j(x)|; 0/0 is
skipped and x/0 is infinite (theory, sections 1 and 2). The ratio is found exactly; a ball is only
needed for its logarithm.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.certificate.arbs import ball, exp_minus, log_bounds
from pufferfish.certificate.record import Case, Finding
from pufferfish.precision import precision
from pufferfish.prior import Prior
from pufferfish.scenario import Scenario

#: Whole numbers below this stay in 64 bits.
_FITS = 2**62

#: A quotient of two 64-bit integers in doubles is within 3 * 2**-53 of the true one.
_NEAR = 1 - 2.0**-50


@dataclass(frozen=True)
class _Peak:
    """The largest ratio at one atom; None: infinite."""

    ratio: Fraction | None
    case: Case
    atom: int

    def above(self, other: "_Peak") -> bool:
        return other.ratio is not None and (self.ratio is None or self.ratio > other.ratio)


def unchanged_finding(scenario: Scenario, epsilon: Fraction | None, bits: int) -> Finding:
    """Return the loss without noise, compared with epsilon.

    Parameters
    ----------
    scenario : Scenario
        Exact priors on a lattice.
    epsilon : Fraction or None
        The exact bound to compare with.
    bits : int
        Precision of the ball around the logarithm and e^epsilon.

    Returns
    -------
    Finding
        ``refuted`` unless proved, but for a ball too wide to tell.
    """
    worst: _Peak | None = None
    cases: set[Case] = set()
    with precision(bits):
        limit = None if epsilon is None else 1 / exp_minus(epsilon)
        for peak in _peaks(scenario):
            if worst is None or peak.above(worst):
                worst = peak
            if limit is not None and (peak.ratio is None or not ball(peak.ratio) <= limit):
                cases.add(peak.case)
        if worst is None:  # pragma: no cover - a scenario has at least one pair
            raise ValueError("no pairs")
        if worst.ratio is None:
            return Finding(
                math.inf, math.inf, worst.case, worst.atom, epsilon is not None, frozenset(cases)
            )
        ratio = ball(worst.ratio)
        lower, upper = log_bounds(ratio)
        refuted = limit is not None and bool(ratio > limit)
    return Finding(lower, upper, worst.case, worst.atom, refuted, frozenset(cases))


def _peaks(scenario: Scenario) -> Iterator[_Peak]:
    """Yield the largest ratio of every pair, or over all pairs at once, for every adversary."""
    for rho, prior in enumerate(scenario.priors):
        masses = _whole(prior, scenario.protected)
        if scenario.is_all_pairs:
            high, low = masses.max(axis=0), masses.min(axis=0)
            ratio, atom = _largest_ratio(high, low)
            column = masses[:, atom]
            # argmin looks from the end, so that equal masses still give two secrets.
            ends = int(column.argmax()), len(column) - 1 - int(column[::-1].argmin())
            first, second = (scenario.protected[s] for s in sorted(ends))
            yield _Peak(ratio, (rho, (first, second)), atom)
        else:
            for pair in scenario.pairs:
                two = masses[[scenario.protected.index(secret) for secret in pair]]
                ratio, atom = _largest_ratio(two.max(axis=0), two.min(axis=0))
                yield _Peak(ratio, (rho, pair), atom)


def _whole(prior: Prior, secrets: tuple[str, ...]) -> npt.NDArray[Any]:
    """Return all masses as whole numbers over one denominator, shape (m, n)."""
    at = [prior.row(secret) for secret in secrets]
    common = math.lcm(*(prior.totals[row] for row in at))
    factors = [common // prior.totals[row] for row in at]
    counts = prior.counts[at]
    if common >= _FITS:
        counts = counts.astype(object)
    weights: npt.NDArray[Any] = np.array(factors, dtype=counts.dtype)
    whole: npt.NDArray[Any] = counts * weights[:, None]
    return whole


def _largest_ratio(high: npt.NDArray[Any], low: npt.NDArray[Any]) -> tuple[Fraction | None, int]:
    """Return the exact largest high/low and its atom; None where a mass stands against none."""
    alone = np.flatnonzero((high > 0) & (low == 0))
    if len(alone):
        return None, int(alone[0])
    atoms = np.flatnonzero(high > 0)
    if high.dtype != object:
        rough = high[atoms] / low[atoms]
        atoms = atoms[rough >= rough.max() * _NEAR]
    seen: dict[tuple[int, int], int] = {}
    for k, a, b in zip(atoms.tolist(), high[atoms].tolist(), low[atoms].tolist(), strict=True):
        seen.setdefault((a, b), k)
    (best_a, best_b), best = next(iter(seen.items()))
    for (a, b), k in seen.items():
        if a * best_b > best_a * b:
            best_a, best_b, best = a, b, k
    return Fraction(best_a, best_b), best
