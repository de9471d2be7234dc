# SPDX-License-Identifier: Apache-2.0
"""The paper's first figure as numbers: where the strict and the relaxed condition hold.

The figure shows I(x, x'; theta) = (e^{|x - x'| / theta} - e^eps) pi*(x, x'). At the wasserstein
scale no cell is positive; at the relaxed scale some are, while no column x' sums to more than 0.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.relaxed import relaxed
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError, PufferfishError
from pufferfish.numbers import Number, parse_epsilon, parse_number, precision, show
from pufferfish.priors.betting import ball
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels
from pufferfish.tables.count import count_table
from pufferfish.tables.rules import make_rules

BINS = 100
#: Bits of the balls that decide the signs: powers e^r with rational r that differ at all, as those
#: of scales that are doubles do, differ far above the last of them.
_BITS = 512


@dataclass(frozen=True)
class Condition:
    """I(x, x'; theta) of all cells and its sums over x for every x'."""

    scale: float  # theta, in bins
    cells: tuple[float, ...]
    sums: tuple[float, ...]


@dataclass(frozen=True)
class Claim:
    """A claim that the figure makes, and what was counted."""

    text: str
    holds: bool
    found: str


@dataclass(frozen=True, eq=False)
class FigureOne:
    """The figure's numbers; positions and scales are in bins, numbered from 0."""

    source: str
    epsilon: Fraction
    age: Fraction
    range: tuple[Fraction, Fraction]
    rows_used: int
    rows_set_aside: int
    counts: list[list[int]]  # rows of each bin: at most the age, above it
    x: list[int]  # the cells of the comonotone coupling
    x_prime: list[int]
    mass: list[float]
    strict: Condition
    relaxed: Condition
    claims: tuple[Claim, Claim]


def figure_one(path: Any, epsilon: Number = 1, age: Number = 29) -> FigureOne:
    """Compute the paper's first figure from the Pima Indians Diabetes table.

    The public value is Glucose in 100 bins of equal width over the observed range, the secret
    whether Age is above a limit. The paper does not give its limit; 29 divides the table into about
    equal parts.
    """
    exact, limit = parse_epsilon(epsilon), parse_number(age, "the age")
    counted = count_table(path, make_rules(secret="Age", public="Glucose"))
    support, report = counted.product.only, counted.report
    if isinstance(support, Levels) or support.size == 1:
        raise InputError("Glucose needs numbers, and not all of them equal: there are no bins")
    low, high = support.values[0], support.values[-1]
    bins = [min(BINS - 1, (value - low) * BINS // (high - low)) for value in support.values]
    older = [int(parse_number(age, "Age") > limit) for age in counted.secrets]
    counts = np.zeros((2, BINS), dtype=np.int64)
    np.add.at(counts, np.ix_(older, bins), counted.counts)
    groups = {f"Age <= {show(limit)}": counts[0], f"Age > {show(limit)}": counts[1]}
    for name, group in groups.items():
        if not group.any():
            raise InputError(f"there is no row with {name}; choose another age")
    scenario = Scenario(Prior.from_counts(groups, support=range(BINS)))
    (view,) = scenario.views()
    coupling = comonotone(view)
    scales = (calibrated(scenario, exact).scale for calibrated in (wasserstein, relaxed))
    at_strict, at_relaxed = (condition(coupling, scale, exact) for scale in scales)
    x, x_prime = (view.index[own].tolist() for own in (coupling.first, coupling.second))
    return FigureOne(
        source=report.source, epsilon=exact, age=limit, range=(low, high),
        rows_used=report.rows_used, rows_set_aside=report.rows_set_aside, counts=counts.tolist(),
        x=x, x_prime=x_prime, mass=[int(m) / coupling.total for m in coupling.mass.tolist()],
        strict=at_strict, relaxed=at_relaxed, claims=_claims(at_strict, at_relaxed),
    )  # fmt: skip


def condition(coupling: Coupling, scale: float, epsilon: Fraction) -> Condition:
    """Return I(x, x'; theta) of a coupling on a lattice of step 1, at one scale."""
    second = coupling.second.tolist()
    sums = dict.fromkeys(sorted(set(second)), arb(0))
    cells = []
    with precision(_BITS):
        bound = ball(epsilon).exp()
        for d, column, mass in zip(coupling.distance.tolist(), second, coupling.mass, strict=True):
            # Taken in rationals, so that a cell at the very edge is seen to be 0.
            exponent = (d / Fraction(scale) if d else 0) - epsilon
            cells.append(bound * ball(exponent).expm1() * int(mass) / coupling.total)
            sums[column] += cells[-1]
        if not all(ball > 0 or ball < 0 or ball == 0 for ball in (*cells, *sums.values())):
            raise PufferfishError("a sign of the figure could not be decided; please report this")
        return Condition(scale, tuple(map(float, cells)), tuple(map(float, sums.values())))


def _claims(strict: Condition, relaxed: Condition) -> tuple[Claim, Claim]:
    c, k = len(strict.cells), len(strict.sums)
    each = (strict.cells, relaxed.cells, relaxed.sums)
    none, cells, sums = (sum(value > 0 for value in values) for values in each)
    one = f"at the wasserstein scale {strict.scale!r} no I(x, x') is above 0"
    two = f"at the relaxed scale {relaxed.scale!r} some I(x, x') is above 0, but no sum over x is"
    some = f"{cells} of {c} cells and {sums} of {k} sums are above 0"
    return (
        Claim(one, none == 0, f"{none} of {c} cells are above 0"),
        Claim(two, cells > 0 and sums == 0, some),
    )
