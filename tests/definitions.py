# SPDX-License-Identifier: Apache-2.0
"""The definitions of theory, sections 1 to 6, by brute force: exact rationals and 50 digits.

Nothing here is clever, and nothing here comes from the package. A prior is a plain dictionary
``secret -> value -> probability`` of exact fractions, a pair is two names of secrets. Couplings,
diameters and cumulative sums are exact; exponentials and logarithms have 50 digits, and no
exponential underflows because the exponent range of mpmath is unbounded.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, pairwise, permutations, product
from typing import Any

from mpmath import MPContext

# A context of our own: no test can change its precision by accident.
M = MPContext()
M.dps = 50

Real = Any  # a number of 50 digits, possibly M.inf

# A loss that should equal epsilon may exceed it by rounding in the last of the 50 digits.
ROUNDING = M.mpf(10) ** -45


def real(number: Any) -> Real:
    """Convert an exact fraction (or anything mpmath reads) to 50 digits."""
    if isinstance(number, Fraction):
        return M.mpf(number.numerator) / number.denominator
    return M.mpf(number)


def rising_root(f: Callable[[Real], Real], low: Real, high: Real) -> Real:
    """The root of a rising function in [low, high], to 1e-40 of `high`."""
    if abs(f(low)) <= ROUNDING:
        return low
    ends = (low / high, 1)
    return high * M.findroot(
        lambda t: f(t * high), ends, solver="illinois", tol=1e-40, maxsteps=300
    )


Distribution = Mapping[Fraction, Fraction]
Prior = Mapping[str, Distribution]
Priors = Sequence[Prior]
Pair = tuple[str, str]
Pairs = Sequence[Pair]
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


def atoms(prior: Prior, pair: Pair) -> list[Fraction]:
    """The sorted values with positive mass under at least one secret of the pair."""
    return sorted({x for secret in pair for x, p in prior[secret].items() if p > 0})


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

    @cache
    def kernel(distance: Fraction) -> Real:
        return M.exp(-real(distance) / scale) if scale else M.mpf(distance == 0)

    first, second = ([real(prior[s].get(x, Fraction(0))) for x in points] for s in pair)
    largest = M.mpf(0)
    for y in outputs:
        noise = [kernel(abs(y - x)) for x in points]
        ratio = _absolute_log_ratio(M.fdot(first, noise), M.fdot(second, noise))
        largest = max(largest, ratio)
    return largest


def loss(priors: Priors, pairs: Pairs, theta: Any) -> Real:
    """Privacy loss of Laplace noise of scale `theta`: every prior, pair and atom of the pair."""
    return max(loss_at(p, q, theta, atoms(p, q)) for p, q in product(priors, pairs))


def dense_outputs(prior: Prior, pair: Pair, between: int) -> list[Fraction]:
    """The atoms, `between` outputs in every gap, and outputs near to and far from both ends."""
    points = atoms(prior, pair)
    outputs = set(points)
    for left, right in pairwise(points):
        outputs |= {left + (right - left) * Fraction(k, between + 1) for k in range(between + 1)}
    span = max(points[-1] - points[0], Fraction(1))
    for far in (Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(40)):
        outputs |= {points[0] - far * span, points[-1] + far * span}
    return sorted(outputs)


def dense_loss(priors: Priors, pairs: Pairs, theta: Any, between: int) -> Real:
    """As `loss`, but over a dense set of outputs; by the witness theorem it is the same number."""
    return max(
        loss_at(p, q, theta, dense_outputs(p, q, between)) for p, q in product(priors, pairs)
    )


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


def diameter(priors: Priors, pairs: Pairs) -> Fraction:
    """The largest distance between two atoms of one pair."""
    points = [atoms(prior, pair) for prior, pair in product(priors, pairs)]
    return max(p[-1] - p[0] for p in points)


def exact(priors: Priors, pairs: Pairs, epsilon: Fraction) -> Real:
    """The least scale whose loss is at most epsilon; 0 when no noise is needed.

    The loss never rises with theta, so the least scale of several priors and pairs is the
    largest of theirs.
    """
    largest = M.mpf(0)
    for prior, pair in product(priors, pairs):
        if loss([prior], [pair], 0) > real(epsilon):
            largest = max(largest, _exact_of_one(prior, pair, epsilon))
    return largest


def _exact_of_one(prior: Prior, pair: Pair, epsilon: Fraction) -> Real:
    def excess(u: Real) -> Real:
        return loss([prior], [pair], 1 / u) - real(epsilon)

    # At diameter/epsilon no two atoms are told apart by more than epsilon at any output.
    low = high = real(epsilon / diameter([prior], [pair]))
    at_low = excess(low)
    if at_low > ROUNDING:
        raise ArithmeticError(f"the l1 scale is not private: loss exceeds epsilon by {at_low}")
    while abs(at_low) > ROUNDING and excess(high) <= 0:
        low, high = high, 2 * high
    return 1 / rising_root(excess, low, high) if high > low else 1 / low


def scales(priors: Priors, pairs: Pairs, epsilon: Fraction) -> dict[str, Fraction | Real]:
    """The scale of every mechanism, by the name it is chosen with, from the largest down."""
    couplings = [comonotone(prior[a], prior[b]) for prior, (a, b) in product(priors, pairs)]
    farthest = max(abs(x - other) for cells in couplings for x, other, _ in cells)
    both = [sides(cells, epsilon) for cells in couplings]
    return {
        "l1": diameter(priors, pairs) / epsilon,
        "wasserstein": farthest / epsilon,
        "relaxed": max(map(max, both)),
        "one-sided": max(map(min, both)),
        "exact": exact(priors, pairs, epsilon),
    }


# --- Several releases (theory, section 6): every output of every release, nothing merged

#: For each output of a release the likelihood of each value, up to a factor of that output.
Kernel = Sequence[Mapping[Fraction, Any]]
#: Joint masses of one secret: the values of all columns -> probability.
Joint = Mapping[tuple[Fraction, ...], Fraction]


def laplace(values: Sequence[Fraction], theta: Any, step: Fraction) -> Kernel:
    """Discrete Laplace noise on a lattice: all its points from below the least value to above the
    largest; further out every likelihood only shrinks by the same factor.
    """
    low, scale = min(values), real(theta)
    cells = int((max(values) - low) / step)
    outputs = [low + k * step for k in range(-1, cells + 2)]
    return [{x: M.exp(-real(abs(y - x)) / scale) for x in values} for y in outputs]


def unchanged(values: Sequence[Fraction]) -> Kernel:
    """The value itself."""
    return [{x: Fraction(x == y) for x in values} for y in values]


def channel(values: Sequence[Fraction], rows: Sequence[Sequence[int]]) -> Kernel:
    """A channel with one row of whole numbers per value."""
    chances = [[Fraction(v, sum(row)) for v in row] for row in rows]
    return [
        {x: row[y] for x, row in zip(values, chances, strict=True)} for y in range(len(rows[0]))
    ]


def joint_loss(
    adversaries: Sequence[Mapping[str, Joint]],
    pairs: Pairs,
    releases: Sequence[tuple[int, Kernel]],
) -> Real:
    """Joint loss of releases (column, kernel), over every combination of their outputs."""
    largest = M.mpf(0)
    for secrets in adversaries:
        for output in product(*(kernel for _, kernel in releases)):
            likelihoods = {}
            for secret, joint in secrets.items():
                likelihoods[secret] = M.mpf(0)
                for values, mass in joint.items():
                    term = real(mass)
                    for (column, _), weights in zip(releases, output, strict=True):
                        term *= real(weights[values[column]])
                    likelihoods[secret] += term
            for first, second in pairs:
                ratio = _absolute_log_ratio(likelihoods[first], likelihoods[second])
                largest = max(largest, ratio)
    return largest


#: For each secret its people, each a sequence of rows, and each row the values of all columns.
People = Mapping[str, Sequence[Sequence[tuple[Any, ...]]]]


def people_loss(people: People, releases: Sequence[tuple[int, Kernel]]) -> Real:
    """Loss of single rows, and of all rows of people who have equally many; for all pairs."""
    width = len(next(iter(people.values()))[0][0])
    kinds = [(1, {s: [[row] for own in each for row in own] for s, each in people.items()})]
    kinds += [
        (k, {s: [list(own) for own in each if len(own) == k] for s, each in people.items()})
        for k in {len(own) for each in people.values() for own in each}
    ]
    losses = []
    for rows, kind in kinds:
        joint = {
            s: {
                values: Fraction(count, len(each))
                for values, count in Counter(sum(own, ()) for own in each).items()
            }
            for s, each in kind.items()
        }
        every = [(row * width + at, kernel) for row in range(rows) for at, kernel in releases]
        losses.append(joint_loss([joint], list(combinations(people, 2)), every))
    return max(losses)


# --- Regions (theory, section 5): every extreme distribution


def box_corners(lower: Sequence[Fraction], upper: Sequence[Fraction]) -> Iterator[list[Fraction]]:
    """Every vertex of { lower <= P <= upper, sum P = 1 }: all cells but one at an end."""
    n = len(lower)
    for free in range(n):
        others = [k for k in range(n) if k != free]
        for ends in product((lower, upper), repeat=n - 1):
            p = [Fraction(0)] * n
            for k, end in zip(others, ends, strict=True):
                p[k] = end[k]
            p[free] = 1 - sum(p)
            if lower[free] <= p[free] <= upper[free]:
                yield p


def ball_corners(centre: Sequence[Fraction], radius: Fraction) -> Iterator[list[Fraction]]:
    """All vertices of a total-variation ball: one cell gains what others lose.

    They lose it in any order, each emptied before the next.
    """
    for gaining in range(len(centre)):
        for order in permutations(k for k in range(len(centre)) if k != gaining):
            p, left = list(centre), radius
            for k in order:
                taken = min(left, p[k])
                p[k] -= taken
                left -= taken
            p[gaining] += radius - left
            yield p


def region_loss(
    adversaries: Sequence[Mapping[str, Sequence[Sequence[Fraction]]]],
    pairs: Pairs,
    kernel: Kernel,
    values: Sequence[Fraction],
) -> Real:
    """Robust loss: for each secret any of some distributions over the values."""
    largest = M.mpf(0)
    ordered = [both for pair in pairs for both in (pair, pair[::-1])]
    for secrets in adversaries:
        for weights in kernel:
            k = [real(weights[x]) for x in values]
            sums = {s: [M.fdot(map(real, p), k) for p in own] for s, own in secrets.items()}
            for first, second in ordered:
                high, low = max(sums[first]), min(sums[second])
                if high > low:
                    largest = max(largest, M.inf if low == 0 else M.log(high / low))
    return largest
