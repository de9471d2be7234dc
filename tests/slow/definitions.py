# SPDX-License-Identifier: Apache-2.0
"""The definitions of theory, sections 1 to 3, by brute force: exact rationals and 50 digits.

Nothing here is clever, and nothing here comes from the package. A prior is a plain dictionary
``secret -> value -> probability`` of exact fractions, a pair is two names of secrets. Couplings,
diameters and cumulative sums are exact; exponentials and logarithms have 50 digits, and no
exponential underflows because the exponent range of mpmath is unbounded.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from math import gcd, lcm
from typing import Any

from .digits import ROUNDING, M, Real, real, rising_root

Distribution = Mapping[Fraction, Fraction]
Prior = Mapping[str, Distribution]
Priors = Prior | Sequence[Prior]
Pair = tuple[str, str]
Cell = tuple[Fraction, Fraction, Fraction]  # x (first secret), x' (second secret), mass

# --- Input


def as_prior(secrets: Mapping[str, Mapping[Any, Any]]) -> dict[str, dict[Fraction, Fraction]]:
    """Read a prior written with integers, fractions, or texts of decimals or fractions."""
    return {
        secret: {Fraction(value): Fraction(p) for value, p in distribution.items()}
        for secret, distribution in secrets.items()
    }


def from_counts(
    counts: Mapping[str, Sequence[int]], support: Sequence[Any] | None = None
) -> dict[str, dict[Fraction, Fraction]]:
    """Turn integer counts per secret into a prior; the support defaults to 0, 1, 2, ..."""
    prior = {}
    for secret, row in counts.items():
        values = range(len(row)) if support is None else support
        total = sum(row)
        prior[secret] = {Fraction(v): Fraction(c, total) for v, c in zip(values, row, strict=True)}
    return prior


def all_pairs(prior: Prior) -> list[Pair]:
    """Every unordered pair of secrets, in the order in which the secrets are named."""
    return list(combinations(prior, 2))


def atoms(prior: Prior, pair: Pair) -> list[Fraction]:
    """The sorted values with positive mass under at least one secret of the pair."""
    return sorted({x for secret in pair for x, p in prior[secret].items() if p > 0})


def lattice_step(prior: Prior) -> Fraction:
    """The largest number that divides 1 and every value of the prior."""
    values = {x for distribution in prior.values() for x in distribution} | {Fraction(1)}
    denominator = lcm(*(x.denominator for x in values))
    return Fraction(gcd(*(int(x * denominator) for x in values)), denominator)


def _each(priors: Priors, pairs: Iterable[Pair] | None) -> list[tuple[Prior, Pair]]:
    """Every prior with every pair; no pairs given means all."""
    several: Sequence[Prior] = [priors] if isinstance(priors, Mapping) else priors
    chosen = None if pairs is None else list(pairs)
    return [
        (prior, pair)
        for prior in several
        for pair in (all_pairs(prior) if chosen is None else chosen)
    ]


# --- Privacy loss (theory, sections 1 and 2)


def _absolute_log_ratio(first: Real, second: Real) -> Real:
    """|ln first/second|: both signs; 0/0 is skipped (counts as 0), x/0 is infinite."""
    if first == 0 and second == 0:
        return M.mpf(0)
    if first == 0 or second == 0:
        return M.inf
    return abs(M.log(first / second))


def loss_at(prior: Prior, pair: Pair, theta: Any, outputs: Iterable[Fraction]) -> Real:
    """The largest |ln L_i(y)/L_j(y)| over the given outputs y.

    L_s(y) = sum_x P_s(x) e^{-|y-x|/theta}; the normalising constant cancels in the ratio.
    At theta = 0 the value is published unchanged: L_s(y) = P_s(y).
    """
    scale = real(theta)
    points = atoms(prior, pair)
    kernels: dict[Fraction, Real] = {}

    def kernel(distance: Fraction) -> Real:
        if scale == 0:
            return M.mpf(distance == 0)
        if distance not in kernels:
            kernels[distance] = M.exp(-real(distance) / scale)
        return kernels[distance]

    first, second = ([real(prior[s].get(x, Fraction(0))) for x in points] for s in pair)
    largest = M.mpf(0)
    for y in outputs:
        noise = [kernel(abs(y - x)) for x in points]
        ratio = _absolute_log_ratio(M.fdot(first, noise), M.fdot(second, noise))
        largest = max(largest, ratio)
    return largest


def loss(priors: Priors, pairs: Iterable[Pair] | None, theta: Any) -> Real:
    """Privacy loss of Laplace noise of scale `theta`: every prior, pair and atom of the pair."""
    losses = (loss_at(p, pair, theta, atoms(p, pair)) for p, pair in _each(priors, pairs))
    return max(losses, default=M.mpf(0))


def dense_outputs(prior: Prior, pair: Pair, between: int = 9) -> list[Fraction]:
    """The atoms, `between` outputs in every gap, and outputs near to and far from both ends."""
    points = atoms(prior, pair)
    outputs = set(points)
    for left, right in pairwise(points):
        outputs |= {left + (right - left) * Fraction(k, between + 1) for k in range(between + 1)}
    span = max(points[-1] - points[0], Fraction(1))
    for far in (Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(40)):
        outputs |= {points[0] - far * span, points[-1] + far * span}
    return sorted(outputs)


def dense_loss(priors: Priors, pairs: Iterable[Pair] | None, theta: Any, between: int = 9) -> Real:
    """As `loss`, but over a dense set of outputs; by the witness theorem it is the same number."""
    return max(
        (loss_at(p, q, theta, dense_outputs(p, q, between)) for p, q in _each(priors, pairs)),
        default=M.mpf(0),
    )


def discrete_loss(
    priors: Priors, pairs: Iterable[Pair] | None, theta: Any, step: Fraction, beyond: int = 5
) -> Real:
    """Privacy loss of discrete Laplace noise on `step` times the integers.

    Every lattice point between the atoms and `beyond` points outside on either side is an output;
    the probability mass is written out in full, with its normalising constant.
    """
    a = M.exp(-real(step) / real(theta))
    constant = (1 - a) / (1 + a)
    largest = M.mpf(0)
    for prior, pair in _each(priors, pairs):
        points = atoms(prior, pair)
        cells = [(x - points[0]) / step for x in points]
        if any(cell.denominator != 1 for cell in cells):
            raise ValueError(f"step {step} does not divide the gaps between the atoms")
        index = [int(cell) for cell in cells]
        first, second = ([real(prior[s].get(x, Fraction(0))) for x in points] for s in pair)
        for y in range(-beyond, index[-1] + beyond + 1):
            noise = [constant * a ** abs(y - k) for k in index]
            ratio = _absolute_log_ratio(M.fdot(first, noise), M.fdot(second, noise))
            largest = max(largest, ratio)
    return largest


def discrete_mse(theta: Any, step: Fraction) -> Real:
    """Mean squared discrete Laplace noise, by summing k^2 P(k) until nothing is left."""
    a = M.exp(-real(step) / real(theta))
    constant = (1 - a) / (1 + a)
    total, k, term = M.mpf(0), 1, M.mpf(1)
    while term > total * M.mpf(10) ** -40:
        term = 2 * constant * a**k * k * k
        total += term
        k += 1
    return total * real(step) ** 2


# --- Mechanisms (theory, section 3)


def comonotone(first: Distribution, second: Distribution) -> list[Cell]:
    """The sorted (quantile) coupling: both quantile functions on the merged cumulative sums."""

    def steps(distribution: Distribution) -> tuple[list[Fraction], list[Fraction]]:
        values = sorted(x for x, p in distribution.items() if p > 0)
        return values, list(accumulate(distribution[x] for x in values))

    (values, levels), (others, other_levels) = steps(first), steps(second)
    cells, below = [], Fraction(0)
    for level in sorted({*levels, *other_levels}):
        x = values[bisect_left(levels, level)]
        other = others[bisect_left(other_levels, level)]
        cells.append((x, other, level - below))
        below = level
    return cells


def _line_scale(line: Sequence[tuple[Fraction, Fraction]], epsilon: Fraction) -> Real:
    """Least theta of one column or row, given as (distance, mass): E[e^{d/theta}] <= e^epsilon."""
    total = sum(mass for _, mass in line)
    farthest = max(d for d, _ in line)
    at_farthest = sum(mass for d, mass in line if d == farthest)
    if farthest == 0:
        return M.mpf(0)
    if at_farthest == total:
        return real(farthest / epsilon)
    weights = [(real(d), real(mass / total)) for d, mass in line]

    def h(u: Real) -> Real:
        return M.log(M.fsum(w * M.exp(d * u) for d, w in weights)) - real(epsilon)

    # All mass at the farthest distance at worst; only the mass that is there at best.
    low = real(epsilon / farthest)
    high = (real(epsilon) - M.log(real(at_farthest / total))) / real(farthest)
    return 1 / rising_root(h, low, high)


def sides(cells: Sequence[Cell], epsilon: Fraction) -> tuple[Real, Real]:
    """The scales of the two sides of a coupling: rows (given x), columns (given x')."""
    scales = []
    for side in (0, 1):
        lines: dict[Fraction, list[tuple[Fraction, Fraction]]] = {}
        for cell in cells:
            lines.setdefault(cell[side], []).append((abs(cell[0] - cell[1]), cell[2]))
        scales.append(max(_line_scale(line, epsilon) for line in lines.values()))
    return scales[0], scales[1]


def pair_sides(prior: Prior, pair: Pair, epsilon: Fraction) -> tuple[Real, Real]:
    """`sides` of a pair's comonotone coupling: given the first secret's value, the second's."""
    return sides(comonotone(prior[pair[0]], prior[pair[1]]), epsilon)


def diameter(priors: Priors, pairs: Iterable[Pair] | None) -> Fraction:
    """The largest distance between two atoms of one pair."""
    points = [atoms(prior, pair) for prior, pair in _each(priors, pairs)]
    return max((p[-1] - p[0] for p in points), default=Fraction(0))


def transport_distance(priors: Priors, pairs: Iterable[Pair] | None) -> Fraction:
    """The largest |x - x'| in the support of a comonotone coupling (W-infinity)."""
    return max(
        (
            abs(x - other)
            for prior, pair in _each(priors, pairs)
            for x, other, _ in comonotone(prior[pair[0]], prior[pair[1]])
        ),
        default=Fraction(0),
    )


def l1(priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction) -> Fraction:
    """The l1 scale, exact."""
    return diameter(priors, pairs) / epsilon


def wasserstein(priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction) -> Fraction:
    """The wasserstein scale, exact."""
    return transport_distance(priors, pairs) / epsilon


def relaxed(priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction) -> Real:
    """The larger of the two sides, the largest over every prior and pair."""
    scales = (max(pair_sides(prior, pair, epsilon)) for prior, pair in _each(priors, pairs))
    return max(scales, default=M.mpf(0))


def one_sided(priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction) -> Real:
    """The smaller side of each prior and pair, and then the largest of those."""
    scales = (min(pair_sides(prior, pair, epsilon)) for prior, pair in _each(priors, pairs))
    return max(scales, default=M.mpf(0))


def exact(priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction) -> Real:
    """The least scale whose loss is at most epsilon, to 1e-26; 0 when no noise is needed.

    The loss never rises with theta, so the least scale of several priors and pairs is the
    largest of theirs.
    """
    largest = M.mpf(0)
    for prior, pair in _each(priors, pairs):
        if loss(prior, [pair], 0) > real(epsilon):
            largest = max(largest, _exact_of_one(prior, pair, epsilon))
    return largest


def _exact_of_one(prior: Prior, pair: Pair, epsilon: Fraction) -> Real:
    def excess(u: Real) -> Real:
        return loss(prior, [pair], 1 / u) - real(epsilon)

    # At diameter/epsilon no two atoms are told apart by more than epsilon at any output.
    low = high = real(epsilon / diameter(prior, [pair]))
    at_low = excess(low)
    if at_low > ROUNDING:
        raise ArithmeticError(f"the l1 scale is not private: loss exceeds epsilon by {at_low}")
    while abs(at_low) > ROUNDING and excess(high) <= 0:
        low, high = high, 2 * high
    return 1 / rising_root(excess, low, high) if high > low else 1 / low


def scales(
    priors: Priors, pairs: Iterable[Pair] | None, epsilon: Fraction
) -> dict[str, Fraction | Real]:
    """The scale of every mechanism, by the name it is chosen with, from the largest down."""
    chosen = None if pairs is None else list(pairs)
    return {
        "l1": l1(priors, chosen, epsilon),
        "wasserstein": wasserstein(priors, chosen, epsilon),
        "relaxed": relaxed(priors, chosen, epsilon),
        "one-sided": one_sided(priors, chosen, epsilon),
        "exact": exact(priors, chosen, epsilon),
    }
