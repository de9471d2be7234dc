# SPDX-License-Identifier: Apache-2.0
"""The loss in ball arithmetic: exact integer masses, and balls for everything that is rounded.

By the witness theorem (theory, section 2) the loss is a maximum over the atoms of the ratios of two
secrets' L_s(y). The upper end of its ball is a proven upper bound of the loss, the lower end a
proven lower bound, at every precision. No comparison below is made on midpoints: Python's ``<``
between balls is true only if it holds for all their points.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from pufferfish.certificate.arbs import exp_minus, log_bounds
from pufferfish.certificate.likelihoods import PLACES_PER_ATOM, Likelihoods, Row
from pufferfish.certificate.record import Case, Finding
from pufferfish.precision import precision
from pufferfish.scenario import Pair, Scenario


@dataclass(frozen=True)
class _Peak:
    """The largest ratio of one adversary, where it is, and the pairs that may exceed e^epsilon."""

    ratio: arb
    case: Case
    atom: int
    undecided: frozenset[Case]


def ball_finding(scenario: Scenario, scale: float, epsilon: Fraction | None, bits: int) -> Finding:
    """Enclose the loss in a ball, and compare it with epsilon.

    Parameters
    ----------
    scenario : Scenario
        Exact priors on a lattice; m protected secrets, n atoms.
    scale : float
        theta > 0, taken as the exact rational of the double.
    epsilon : Fraction or None
        The exact bound to compare with.
    bits : int
        Precision of the ball arithmetic.

    Returns
    -------
    Finding
        Its ``undecided`` cases are those whose ball does not lie below epsilon. O(m n) for all
        pairs, O(n) for each pair otherwise.
    """
    with precision(bits, terms=PLACES_PER_ATOM * scenario.lattice.size):
        limit = None if epsilon is None else 1 / exp_minus(epsilon)
        kernel = Likelihoods(scenario.lattice.index, scenario.lattice.step / Fraction(scale))
        # Each adversary by itself: only finished ratios are compared, never one adversary's
        # maximum with another's minimum.
        peaks = [_adversary(scenario, rho, kernel, limit) for rho in range(len(scenario.priors))]
        worst, at = peaks[0].ratio, peaks[0]
        for peak in peaks[1:]:
            at = peak if peak.ratio.mid() > at.ratio.mid() else at
            worst = worst.max(peak.ratio)
        lower, upper = log_bounds(worst)
        undecided = frozenset(case for peak in peaks for case in peak.undecided)
        refuted = limit is not None and bool(worst > limit)
        return Finding(lower, upper, at.case, at.atom, refuted, undecided)


def _adversary(scenario: Scenario, rho: int, kernel: Likelihoods, limit: arb | None) -> _Peak:
    prior = scenario.priors[rho]
    rows = {}
    for secret in scenario.protected:
        at = prior.row(secret)
        rows[secret] = kernel.row(prior.counts[at], prior.totals[at])
    if scenario.is_all_pairs and len(rows) > 2:
        return _all_pairs(rho, rows, limit)
    return _chosen_pairs(rho, rows, scenario.pairs, limit)


def _chosen_pairs(
    rho: int, rows: dict[str, Row], pairs: Iterable[Pair], limit: arb | None
) -> _Peak:
    """Both directions of every pair, over all atoms (those outside the pair change nothing)."""
    worst: _Peak | None = None
    undecided: set[Case] = set()
    for pair in pairs:
        ratios = [a / b for a, b in zip(rows[pair[0]], rows[pair[1]], strict=True)]
        high, low, high_at, low_at = _extremes(ratios)
        inverse = 1 / low
        ratio, atom = high.max(inverse), high_at if high.mid() >= inverse.mid() else low_at
        if limit is not None and not ratio <= limit:
            undecided.add((rho, pair))
        if worst is None:
            worst = _Peak(ratio, (rho, pair), atom, frozenset())
        elif not ratio < worst.ratio:
            larger = ratio.mid() > worst.ratio.mid()
            case, atom = ((rho, pair), atom) if larger else (worst.case, worst.atom)
            worst = _Peak(worst.ratio.max(ratio), case, atom, frozenset())
    if worst is None:  # pragma: no cover - a scenario has at least one pair
        raise ValueError("no pairs")
    return _Peak(worst.ratio, worst.case, worst.atom, frozenset(undecided))


def _all_pairs(rho: int, rows: dict[str, Row], limit: arb | None) -> _Peak:
    """The largest over the smallest secret at every atom: linear in the number of secrets."""
    secrets, columns = list(rows), list(rows.values())
    top, bottom = list(columns[0]), list(columns[0])
    for row in columns[1:]:
        for k, value in enumerate(row):
            if not value < top[k]:
                top[k] = value if value > top[k] else top[k].max(value)
            if not value > bottom[k]:
                bottom[k] = value if value < bottom[k] else bottom[k].min(value)
    ratios = [a / b for a, b in zip(top, bottom, strict=True)]
    ratio, _, atom, _ = _extremes(ratios)
    order = sorted(range(len(columns)), key=lambda s: columns[s][atom].mid())
    case = _named(rho, secrets, order[0], order[-1])
    undecided: set[Case] = set()
    if limit is not None and not ratio <= limit:
        for k, value in enumerate(ratios):
            if value <= limit:
                continue
            # Only secrets near the top against secrets near the bottom can exceed the limit here.
            floor, ceiling = bottom[k] * limit, top[k] / limit
            above = [s for s, row in enumerate(columns) if not row[k] <= floor]
            below = [s for s, row in enumerate(columns) if not row[k] >= ceiling]
            undecided.update(
                _named(rho, secrets, i, j)
                for i in above
                for j in below
                if i != j and not columns[i][k] <= columns[j][k] * limit
            )
    return _Peak(ratio, case, atom, frozenset(undecided))


def _named(rho: int, secrets: list[str], i: int, j: int) -> Case:
    return rho, (secrets[min(i, j)], secrets[max(i, j)])


def _extremes(values: Row) -> tuple[arb, arb, int, int]:
    """Return balls around the largest and the smallest value, and where these are.

    Where balls overlap nobody can tell which is larger; then the result is widened to hold both.
    """
    high = low = values[0]
    high_at = low_at = 0
    for k, value in enumerate(values):
        if low < value < high:
            continue
        if value > high:
            high, high_at = value, k
        elif not value < high:
            high = high.max(value)
        if value < low:
            low, low_at = value, k
        elif not value > low:
            low = low.min(value)
    return high, low, high_at, low_at
