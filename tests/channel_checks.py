# SPDX-License-Identifier: Apache-2.0
"""Channels by their definitions: losses in fractions, least costs by another front end.

Nothing here is shared with the calibration: regions are taken apart into their vertices, programs
are built pair by pair, and costs are summed entry by entry.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from definitions import ball_corners, box_corners
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

Distribution = list[Fraction]

HALF = Fraction(1, 2)
BIT = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
#: Value 1 occurs under c alone, which is in no pair.
UNSEEN = {"a": [40, 0, 20, 5, 9], "b": [10, 0, 30, 20, 3], "c": [1, 50, 1, 1, 1]}
PAIR = Scenario(Prior.from_counts(UNSEEN, support=range(5)), [("a", "b")])


def vertices(belief: Point | Region) -> list[Distribution]:
    """The extreme points of what is held possible under one secret."""
    if isinstance(belief, Point):
        return [[Fraction(int(m), belief.total) for m in belief.masses.reshape(-1)]]
    if belief.free:
        centre = [Fraction(r, sum(belief.room)) for r in belief.room]
        found = ball_corners(centre, Fraction(belief.free, belief.unit))
    else:
        least = [Fraction(a, belief.unit) for a in belief.least]
        room = [Fraction(b, belief.unit) for b in belief.room]
        found = box_corners(least, [a + b for a, b in zip(least, room, strict=True)])
    return [list(p) for p in {tuple(p) for p in found}]


def beliefs(scenario: Scenario) -> list[dict[str, list[Distribution]]]:
    """By adversary and secret, all extreme distributions."""
    return [
        {s: vertices(b) for s, b in zip(scenario.protected, own, strict=True)}
        for own in scenario.sets
    ]


def entries(channel: Channel) -> list[Distribution]:
    """M(y|x) in fractions."""
    rows, columns = channel.rows.shape
    return [[channel.probability(x, y) for y in range(columns)] for x in range(rows)]


def channel_of(found: Any) -> Any:
    """Return the channel of a plan or a proposal."""
    made = found.applied if isinstance(found, Plan) else found.mechanism
    assert isinstance(made, Channel)
    return made


def claims(found: Any) -> Any:
    """Return what a plan or a proposal says of its channel."""
    assert found.distortion is not None
    return found.distortion


def worst_ratio(scenario: Scenario, channel: Channel) -> Fraction | None:
    """The largest ratio of likelihoods, over everything; None where it is infinite."""
    matrix = entries(channel)
    worst = Fraction(1)
    for own in beliefs(scenario):
        for y in range(channel.outputs.size):
            column = [row[y] for row in matrix]
            likelihoods = {
                s: [sum(p * k for p, k in zip(v, column, strict=True)) for v in found]
                for s, found in own.items()
            }
            for pair in scenario.pairs:
                for i, j in permutations(pair):
                    high, low = max(likelihoods[i]), min(likelihoods[j])
                    if high and not low:
                        return None
                    if high:
                        worst = max(worst, Fraction(high) / low)
    return worst


def phi(matrix: Any, mu: Any, statistics: Any = None) -> float:
    """tr(F^T J^-1 F) of M(y|x) by its definition; inf where something cannot be estimated."""
    m, mass = np.array(matrix, dtype=float), np.array(mu, dtype=float)
    f = np.eye(len(m)) if statistics is None else np.array(statistics, dtype=float)
    information = sum(np.outer(c, c) / (mass @ c) for c in m.T if mass @ c > 0)
    if np.linalg.cond(information) > 1e13:
        return math.inf
    return float(np.trace(f.T @ np.linalg.solve(information, f)))


def is_private(scenario: Scenario, channel: Channel, epsilon: Fraction) -> bool:
    """Whether the loss is at most epsilon, by its definition."""
    ratio = worst_ratio(scenario, channel)
    if ratio is None:
        return False
    with mpmath.workdps(80):
        loss = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return bool(loss <= mpmath.mpf(epsilon.numerator) / epsilon.denominator)


def pooled(scenario: Scenario) -> list[Fraction]:
    """How much each value counts: pooled rows of the protected secrets, or the mean of the P_s."""
    rows = all(prior.from_rows for prior in scenario.priors)
    found = [
        sum(
            Fraction(int(prior.counts[prior.row(s), x])) if rows else prior.probability(s, x)
            for prior in scenario.priors
            for s in scenario.protected
        )
        for x in range(scenario.support.size)
    ]
    return [mass / sum(found) for mass in found]


def spent(channel: Channel, weights: Sequence[Fraction], costs: Any) -> Fraction:
    """The expected cost."""
    return sum(
        (
            w * sum(Fraction(c) * p for c, p in zip(prices, row, strict=True))
            for w, prices, row in zip(weights, costs, entries(channel), strict=True)
        ),
        Fraction(0),
    )


def costs_of(scenario: Scenario, name: str) -> list[list[Fraction]]:
    """c(x, y) of a scenario on numbers, outputs the values."""
    values = scenario.lattice.values
    power = {"hamming": 0, "absolute": 1, "squared": 2}[name]
    return [[abs(x - y) ** power if x != y else Fraction(0) for y in values] for x in values]


def least_cost(
    scenario: Scenario,
    epsilon: Fraction,
    costs: Any,
    weights: Sequence[Fraction],
    equal: Sequence[tuple[np.ndarray, float]] = (),
    least_kept: float = 0.0,
) -> float:
    """The optimum of the program, one row for each pair of extreme distributions."""
    shape = np.array(costs).shape
    rows = []
    for own in beliefs(scenario):
        ends = {s: np.array(found, dtype=float) for s, found in own.items()}
        for i, j in chain.from_iterable(map(permutations, scenario.pairs)):
            for p, q in product(ends[i], ends[j]):
                rows += [
                    np.outer(p - math.exp(epsilon) * q, one).ravel() for one in np.eye(shape[1])
                ]
    mu = np.array([float(w) for w in weights])
    objective = (mu[:, None] * np.array(costs, dtype=float)).ravel()
    sums = [(np.kron(np.eye(shape[0])[x], np.ones(shape[1])), 1.0) for x in range(shape[0])]
    every = [*sums, *equal]
    bounds = [
        (least_kept if x == y else 0.0, 1.0) for x in range(shape[0]) for y in range(shape[1])
    ]
    found = linprog(
        objective, np.array(rows), np.zeros(len(rows)),
        np.array([row for row, _ in every]), np.array([end for _, end in every]), bounds,
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun)


@st.composite
def scenarios(
    draw: st.DrawFn, values: int = 8, secrets: int = 5, rules: Sequence[dict[str, str]] = ({},)
) -> tuple[Scenario, Fraction]:
    """Counts with zeros, several adversaries, all or some of the pairs; and an epsilon."""
    n, m = draw(st.integers(2, values)), draw(st.integers(2, secrets))
    largest = draw(st.sampled_from((2, 10, 1000)))
    row = st.lists(st.integers(0, largest), min_size=n, max_size=n).filter(any)
    priors = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        prior = Prior.from_counts({f"s{k}": draw(row) for k in range(m)}, support=range(n))
        rule = draw(st.sampled_from(rules))
        priors.append(prior.with_region(**rule) if rule else prior)
    every = list(combinations([f"s{k}" for k in range(m)], 2))
    pairs = draw(
        st.one_of(st.just(every), st.lists(st.sampled_from(every), min_size=1, unique=True))
    )
    epsilon = draw(st.sampled_from(("0.01", "0.1", "0.5", "1", "3")))
    return Scenario(priors, pairs), Fraction(epsilon)
