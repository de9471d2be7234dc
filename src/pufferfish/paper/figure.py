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
from pufferfish.errors import InputError, PufferfishError
from pufferfish.numbers import NotFinite, parse_epsilon, parse_number, parse_text, show, text_of
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.tables.source import open_table

_PUBLIC, _SPLIT = "Glucose", "Age"
_MOST_BITS = 1 << 17


@dataclass(frozen=True)
class Condition:
    """I(x, x'; theta) of all cells and its sums over x for every x', with decided signs."""

    scale: float  # theta, in bins
    cells: tuple[float, ...]
    cell_signs: tuple[int, ...]  # that of |x - x'| / theta - eps, in rationals
    sums: tuple[float, ...]
    sum_signs: tuple[int, ...]  # by ball arithmetic, with as many digits as it takes

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
    exact = parse_epsilon(epsilon)
    if exact > 700:
        raise InputError(f"epsilon must be at most 700 for the figure, but {epsilon} was given")
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 1_000_000:
        raise InputError(f"bins must be an integer from 2 to 1000000, but {bins!r} was given")
    limit = parse_number(age, "the age")
    name, used, aside = _rows(path)
    ends = (min(v for v, _, _ in used), max(v for v, _, _ in used))
    scenario = _binned(name, used, ends, bins, limit)
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
    if theta <= 0 < coupling.largest_distance:
        raise InputError(f"the scale must be above 0, but {show(theta)} was given")
    distances = coupling.distance.tolist()
    # Taken in rationals, so that a cell at the very edge is seen to be 0.
    exponents = {d: d / theta - epsilon if d else -epsilon for d in set(distances)}
    masses = [int(m) for m in coupling.mass.tolist()]
    cells = list(zip(distances, masses, strict=True))
    columns: dict[int, list[tuple[int, int]]] = {}
    for k, cell in zip(coupling.second.tolist(), cells, strict=True):
        columns.setdefault(k, []).append(cell)
    each = _sums([[cell] for cell in cells], exponents, epsilon, coupling.total)
    sums = _sums(list(columns.values()), exponents, epsilon, coupling.total)
    signs = tuple((exponents[d] > 0) - (exponents[d] < 0) for d in distances)
    return Condition(
        scale,
        tuple(value for value, _ in each),
        signs,
        tuple(value for value, _ in sums),
        tuple(sign for _, sign in sums),
    )


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
        if bits > _MOST_BITS:
            raise PufferfishError(f"a sign was not decided with {_MOST_BITS} bits")
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
    columns = [table.column(_PUBLIC), table.column(_SPLIT)]
    groups = table.groups(columns)
    used: list[tuple[Fraction, Fraction, int]] = []
    aside = 0
    for *cells, rows in zip(*(groups.column(k).to_pylist() for k in range(3)), strict=True):
        texts = ["" if cell is None else text_of(cell).strip() for cell in cells]
        if not all(texts):
            aside += rows
            continue
        value, years = (_number(t, c, table.name) for t, c in zip(texts, columns, strict=True))
        used.append((value, years, rows))
    if not used:
        raise InputError(f"{table.name} has no row with both {_PUBLIC} and {_SPLIT}")
    return table.name, used, aside


def _number(text: str, column: str, name: str) -> Fraction:
    try:
        number = parse_text(text)
    except NotFinite:
        number = None
    if number is None:
        raise InputError(f"{name}: a cell of {column} is no finite number")
    return number


def _binned(
    name: str,
    used: Sequence[tuple[Fraction, Fraction, int]],
    ends: tuple[Fraction, Fraction],
    bins: int,
    limit: Fraction,
) -> Scenario:
    """Return the scenario of both age groups on the bins; the last one includes the highest."""
    if ends[0] == ends[1]:
        raise InputError(f"all values of {_PUBLIC} in {name} are equal: there are no bins")
    counts = [[0] * bins, [0] * bins]
    for value, years, rows in used:
        place = math.floor((value - ends[0]) * bins / (ends[1] - ends[0]))
        counts[years > limit][min(bins - 1, place)] += rows
    secrets = (f"{_SPLIT} <= {show(limit)}", f"{_SPLIT} > {show(limit)}")
    for secret, row in zip(secrets, counts, strict=True):
        if not any(row):
            raise InputError(f"{name} has no row with {secret}; choose another age")
    prior = Prior.from_counts(dict(zip(secrets, counts, strict=True)), support=range(bins))
    return Scenario(prior, pairs=[secrets])
