# SPDX-License-Identifier: Apache-2.0
"""The paper's first figure as numbers: where the strict and the relaxed condition hold.

The figure shows I(x, x'; theta) = (e^{|x - x'| / theta} - e^eps) pi*(x, x'). At the wasserstein
scale no cell is positive; at the relaxed scale some are, while no column x' sums to more than 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.registry import MechanismName
from pufferfish.errors import InputError
from pufferfish.numbers import parse_epsilon, parse_number, show, text_of
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.tables.source import open_table


@dataclass(frozen=True)
class Condition:
    """I(x, x'; theta) of all cells and its sums over x for every x', with decided signs."""

    scale: float  # theta, in bins
    cells: tuple[float, ...]
    cell_signs: tuple[int, ...]
    sums: tuple[float, ...]
    sum_signs: tuple[int, ...]

    @property
    def positive_cells(self) -> int:
        """The number of cells that are positive."""
        return sum(sign > 0 for sign in self.cell_signs)

    @property
    def positive_sums(self) -> int:
        """The number of columns whose sum is positive."""
        return sum(sign > 0 for sign in self.sum_signs)


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
    scenario: Scenario
    side_columns: float  # the scale that the side given x' needs
    side_rows: float
    x: tuple[int, ...]  # the cells of the comonotone coupling
    x_prime: tuple[int, ...]
    mass: tuple[float, ...]
    columns: tuple[int, ...]  # the x' that have mass
    strict: Condition
    relaxed: Condition

    @property
    def claims(self) -> tuple[Claim, Claim]:
        """The two claims of the figure, checked."""
        strict, relaxed = self.strict, self.relaxed
        c, k = len(self.x), len(self.columns)
        return (
            Claim(
                "strict",
                f"at the wasserstein scale {strict.scale!r} no I(x, x') is above 0",
                strict.positive_cells == 0,
                f"{strict.positive_cells} of {c} cells are above 0",
            ),
            Claim(
                "relaxed",
                f"at the relaxed scale {relaxed.scale!r} some I(x, x') is above 0, "
                "but no sum over x is",
                relaxed.positive_cells > 0 and relaxed.positive_sums == 0,
                f"{relaxed.positive_cells} of {c} cells and {relaxed.positive_sums} of {k} sums "
                "are above 0",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        data = {key: value for key, value in vars(self).items() if key != "scenario"}
        data |= {
            "epsilon": float(self.epsilon),
            "age": float(self.age),
            "range": [float(end) for end in self.range],
            "strict": vars(self.strict),
            "relaxed": vars(self.relaxed),
            "claims": [vars(claim) for claim in self.claims],
        }
        return data


def figure_one(path: Any, epsilon: Any = 1, bins: int = 100, age: Any = 29) -> FigureOne:
    """Compute the paper's first figure from the Pima Indians Diabetes table.

    The public value is Glucose in bins of equal width over the observed range, the secret whether
    Age is above a limit. The paper does not give its limit; 29 divides the table into about equal
    parts.
    """
    exact, limit = parse_epsilon(epsilon), parse_number(age, "the age")
    if exact > 700:
        raise InputError(f"epsilon must be at most 700 for the figure, but {epsilon} was given")
    if type(bins) is not int or not 2 <= bins <= 1_000_000:
        raise InputError(f"bins must be an integer from 2 to 1000000, but {bins!r} was given")
    name, used, aside = _rows(path)
    ends = (min(v for v, _, _ in used), max(v for v, _, _ in used))
    scenario = _binned(used, ends, bins, limit)
    view = next(iter(scenario.views()))
    coupling = comonotone(view)
    methods: tuple[MechanismName, ...] = ("wasserstein", "relaxed", "one-sided")
    strict, larger, smaller = (calibrate(scenario, exact, m).scale or 0.0 for m in methods)
    # The relaxed scale is the larger of two sides, and one-sided the smaller: the side given x'
    # is the smaller one where no sum over x is positive there.
    by_columns = smaller == 0 or condition(coupling, smaller, exact).positive_sums == 0
    sides = (smaller, larger) if by_columns else (larger, smaller)
    index = view.index.tolist()
    second = coupling.second.tolist()
    return FigureOne(
        source=name,
        epsilon=exact,
        age=limit,
        bins=bins,
        range=ends,
        rows_used=sum(rows for _, _, rows in used),
        rows_set_aside=aside,
        scenario=scenario,
        side_columns=sides[0],
        side_rows=sides[1],
        x=tuple(index[k] for k in coupling.first.tolist()),
        x_prime=tuple(index[k] for k in second),
        mass=tuple(int(m) / coupling.total for m in coupling.mass.tolist()),
        columns=tuple(index[k] for k in sorted(set(second))),
        strict=condition(coupling, strict, exact),
        relaxed=condition(coupling, larger, exact),
    )


def condition(coupling: Coupling, scale: float, epsilon: Fraction) -> Condition:
    """Return I(x, x'; theta) of a coupling on a lattice of step 1, at one scale."""
    theta = Fraction(scale)
    distances = coupling.distance.tolist()
    # Taken in rationals, so that a cell at the very edge is seen to be 0.
    exponents = {d: d / theta - epsilon if d else -epsilon for d in set(distances)}
    masses = [int(m) for m in coupling.mass.tolist()]
    cells = list(zip(distances, masses, strict=True))
    columns: dict[int, list[tuple[int, int]]] = {}
    for k, cell in zip(coupling.second.tolist(), cells, strict=True):
        columns.setdefault(k, []).append(cell)
    groups = [*([cell] for cell in cells), *columns.values()]
    values, signs = zip(*_sums(groups, exponents, epsilon, coupling.total), strict=True)
    c = len(cells)
    return Condition(scale, values[:c], signs[:c], values[c:], signs[c:])


def _sums(
    groups: Sequence[Sequence[tuple[int, int]]],
    exponents: dict[int, Fraction],
    epsilon: Fraction,
    total: int,
) -> list[tuple[float, int]]:
    """Return the sum of I over each group of cells (distance, mass), and its sign.

    More digits always decide: the exponents are rational, and powers e^r with different rational r
    are linearly independent over the rationals (Lindemann and Weierstrass), so that a sum is 0 only
    where every cell is, and those are seen to be 0.
    """
    from flint import arb, ctx, fmpq

    found: dict[int, tuple[float, int]] = {}
    bits = 128
    while len(found) < len(groups):
        with ctx.workprec(bits):
            grown = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
            balls = {
                d: grown * arb(fmpq(r.numerator, r.denominator)).expm1()
                for d, r in exponents.items()
            }
            for k, group in enumerate(groups):
                ball = sum((balls[d] * m for d, m in group), arb(0)) / total
                if k not in found and (ball > 0 or ball < 0 or ball == 0):
                    found[k] = float(ball), int(ball > 0) - int(ball < 0)
        bits *= 2
    return [found[k] for k in range(len(groups))]


def _rows(path: Any) -> tuple[str, list[tuple[Fraction, Fraction, int]], int]:
    """Return the table's name, its (Glucose, Age, rows), and the rows where one is missing."""
    table = open_table(path)
    groups = table.groups([table.column("Glucose"), table.column("Age")])
    used: list[tuple[Fraction, Fraction, int]] = []
    aside = 0
    for *cells, rows in zip(*(groups.column(k).to_pylist() for k in range(3)), strict=True):
        value, years = ("" if cell is None else text_of(cell).strip() for cell in cells)
        if value and years:
            used.append((_number(value, "Glucose"), _number(years, "Age"), rows))
        else:
            aside += rows
    if not used:
        raise InputError(f"{table.name} has no row with both Glucose and Age")
    return table.name, used, aside


def _number(text: str, column: str) -> Fraction:
    try:
        return parse_number(text, column)
    except InputError:  # cells are not shown
        raise InputError(f"a cell of {column} is no finite number") from None


def _binned(
    used: Sequence[tuple[Fraction, Fraction, int]],
    ends: tuple[Fraction, Fraction],
    bins: int,
    limit: Fraction,
) -> Scenario:
    """Return the scenario of both age groups on the bins; the last one includes the highest."""
    low, high = ends
    if low == high:
        raise InputError("all values of Glucose are equal: there are no bins")
    counts = [[0] * bins, [0] * bins]
    for value, years, rows in used:
        place = min(bins - 1, math.floor((value - low) * bins / (high - low)))
        counts[years > limit][place] += rows
    groups = {f"Age <= {show(limit)}": counts[0], f"Age > {show(limit)}": counts[1]}
    for name, group in groups.items():
        if not any(group):
            raise InputError(f"there is no row with {name}; choose another age")
    return Scenario(Prior.from_counts(groups, support=range(bins)), pairs=[tuple(groups)])
