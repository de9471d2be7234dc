# SPDX-License-Identifier: Apache-2.0
"""The paper's first figure as numbers: where the strict and the relaxed condition hold.

The figure shows I(x, x'; theta) = (e^{|x - x'| / theta} - e^eps) pi*(x, x'). At the wasserstein
scale no cell is positive; at the relaxed scale some are, while no column x' sums to more than 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.registry import MechanismName
from pufferfish.errors import InputError, PufferfishError
from pufferfish.numbers import Number, parse_epsilon, parse_number, precision, show
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels
from pufferfish.tables.count import count_table
from pufferfish.tables.rules import make_rules

#: Bits of the balls that decide the signs: powers e^r with rational r that differ at all, as those
#: of scales that are doubles do, differ far above the last of them.
_BITS = 512


@dataclass(frozen=True)
class Condition:
    """I(x, x'; theta) of all cells and its sums over x for every x'."""

    scale: float  # theta, in bins
    cells: tuple[float, ...]
    sums: tuple[float, ...]
    positive_cells: int
    positive_sums: int


@dataclass(frozen=True)
class Claim:
    """A claim that the figure makes, and what was counted."""

    name: str
    text: str
    holds: bool
    found: str


@dataclass(frozen=True, eq=False)
class FigureOne:
    """The figure's numbers; positions and scales are in bins, numbered from 0."""

    source: str
    epsilon: Fraction
    age: Fraction
    bins: int
    range: tuple[Fraction, Fraction]
    rows_used: int
    rows_set_aside: int
    counts: list[list[int]]  # rows of each bin: at most the age, above it
    side_columns: float  # the scale that the side given x' needs
    side_rows: float
    x: tuple[int, ...]  # the cells of the comonotone coupling
    x_prime: tuple[int, ...]
    mass: tuple[float, ...]
    columns: tuple[int, ...]  # the x' that have mass
    strict: Condition
    relaxed: Condition
    claims: tuple[Claim, Claim]


def figure_one(path: Any, epsilon: Number = 1, bins: int = 100, age: Number = 29) -> FigureOne:
    """Compute the paper's first figure from the Pima Indians Diabetes table.

    The public value is Glucose in bins of equal width over the observed range, the secret whether
    Age is above a limit. The paper does not give its limit; 29 divides the table into about equal
    parts.
    """
    exact, limit = parse_epsilon(epsilon), parse_number(age, "the age")
    if exact > 700 or type(bins) is not int or not 2 <= bins <= 1_000_000:
        raise InputError(
            "epsilon must be at most 700 and bins an integer from 2 to 1000000, but "
            f"{show(exact)} and {bins!r} were given"
        )
    counted = count_table(path, make_rules(secret="Age", public="Glucose"), warn=False)
    support, report = counted.product.only, counted.report
    if isinstance(support, Levels) or support.size == 1:
        raise InputError("Glucose needs numbers, and not all of them equal: there are no bins")
    scenario = binned(counted.secrets, support.values, counted.counts.tolist(), bins, limit)
    view = next(iter(scenario.views()))
    coupling = comonotone(view)
    methods: tuple[MechanismName, ...] = ("wasserstein", "relaxed", "one-sided")
    strict, larger, smaller = (
        condition(coupling, calibrate(scenario, exact, m).scale or 0.0, exact) for m in methods
    )
    # The relaxed scale is the larger of two sides, and one-sided the smaller: the side given x'
    # is the smaller one where no sum over x is positive there.
    sides = (larger.scale, smaller.scale)
    if not (smaller.scale and smaller.positive_sums):
        sides = sides[::-1]
    index, second = view.index.tolist(), coupling.second.tolist()
    return FigureOne(
        report.source,
        exact,
        limit,
        bins,
        (support.values[0], support.values[-1]),
        report.rows_used,
        report.rows_set_aside,
        scenario.priors[0].counts.reshape(2, -1).tolist(),
        *sides,
        tuple(index[k] for k in coupling.first.tolist()),
        tuple(index[k] for k in second),
        tuple(int(m) / coupling.total for m in coupling.mass.tolist()),
        tuple(index[k] for k in sorted(set(second))),
        strict,
        larger,
        _claims(strict, larger),
    )


def binned(
    ages: tuple[str, ...],
    values: tuple[Fraction, ...],
    counts: list[list[int]],
    bins: int,
    limit: Fraction,
) -> Scenario:
    """Return the scenario of both age groups on the bins; the last one includes the highest."""
    low, high = values[0], values[-1]
    groups = {f"Age <= {show(limit)}": [0] * bins, f"Age > {show(limit)}": [0] * bins}
    younger, older = groups.values()
    for years, row in zip(ages, counts, strict=True):
        group = older if parse_number(years, "Age") > limit else younger
        for value, rows in zip(values, row, strict=True):
            group[min(bins - 1, (value - low) * bins // (high - low))] += rows
    for name, group in groups.items():
        if not any(group):
            raise InputError(f"there is no row with {name}; choose another age")
    return Scenario(Prior.from_counts(groups, support=range(bins)), pairs=[tuple(groups)])


def condition(coupling: Coupling, scale: float, epsilon: Fraction) -> Condition:
    """Return I(x, x'; theta) of a coupling on a lattice of step 1, at one scale."""
    from flint import arb, fmpq

    distances, second = coupling.distance.tolist(), coupling.second.tolist()
    with precision(_BITS):
        bound = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
        balls = {}
        for d in set(distances):
            # Taken in rationals, so that a cell at the very edge is seen to be 0.
            r = (d / Fraction(scale) if d else 0) - epsilon
            balls[d] = bound * arb(fmpq(r.numerator, r.denominator)).expm1()
        masses = [int(m) for m in coupling.mass.tolist()]
        cells = [balls[d] * m / coupling.total for d, m in zip(distances, masses, strict=True)]
        sums = dict.fromkeys(sorted(set(second)), arb(0))
        for column, cell in zip(second, cells, strict=True):
            sums[column] += cell
        both = (cells, list(sums.values()))
        if not all(ball > 0 or ball < 0 or ball == 0 for balls in both for ball in balls):
            raise PufferfishError("a sign of the figure could not be decided; please report this")
        positive = [sum(ball > 0 for ball in balls) for balls in both]
        values, summed = (tuple(map(float, balls)) for balls in both)
        return Condition(scale, values, summed, *positive)


def _claims(strict: Condition, relaxed: Condition) -> tuple[Claim, Claim]:
    """Return the two claims of the figure, checked."""
    c, k = len(strict.cells), len(strict.sums)
    found = f"{strict.positive_cells} of {c} cells are above 0"
    text = f"at the wasserstein scale {strict.scale!r} no I(x, x') is above 0"
    one = Claim("strict", text, strict.positive_cells == 0, found)
    cells, sums = relaxed.positive_cells, relaxed.positive_sums
    found = f"{cells} of {c} cells and {sums} of {k} sums are above 0"
    text = f"at the relaxed scale {relaxed.scale!r} some I(x, x') is above 0, but no sum over x is"
    return one, Claim("relaxed", text, cells > 0 and sums == 0, found)
