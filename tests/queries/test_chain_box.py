# SPDX-License-Identifier: Apache-2.0
"""Boxes of chains: their bounds hold for random members, by brute force."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError, PriorWarning
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox

ONES = [[1, 1], [1, 1]]


def box_of(alpha: Any, beta: Any, initial: str = "stationary") -> ChainBox:
    """Two states; alpha and beta are the bounds of leaving each."""
    lower = [[0, alpha[0]], [beta[0], 0]]
    return ChainBox(["0", "1"], lower, [[1, alpha[1]], [beta[1], 1]], initial)


def loss(chain: MarkovChain, length: int, u: float) -> float:
    """The largest loss of the count of state 1, at the integers, where it is (doubles)."""
    kernel = np.exp(-u * np.abs(np.subtract.outer(range(length + 1), range(length + 1))))
    found = 0.0
    for law in chain.laws([0, 1], (length,)):
        if None in law:
            continue
        rows = [np.array([int(c) for c in p.coeffs()], dtype=object) / int(p(1)) for p in law]
        seen = [kernel[:, : len(row)] @ row.astype(float) for row in rows]
        found = max(found, np.abs(np.log(seen[0] / seen[1])).max())
    return found


shares = st.integers(1, 20).map(lambda n: Fraction(n, 20))
ranges = st.lists(shares, min_size=2, max_size=2).map(sorted)


@given(ranges, ranges, st.data(), st.integers(1, 8), st.sampled_from((0.05, 0.5, 1.0, 4.0)))
def test_chains_bound_all_members(alpha: Any, beta: Any, data: Any, T: int, u: float) -> None:
    bound = max(loss(chain, T, u) for chain in box_of(alpha, beta).chains() or ())
    for a, b in [(alpha[0], beta[0]), (alpha[1], beta[1])] + [
        tuple(end[0] + data.draw(shares) * (end[1] - end[0]) for end in (alpha, beta))
        for _ in range(3)
    ]:
        member = MarkovChain(["0", "1"], [[1 - a, a], [b, 1 - b]])
        assert loss(member, T, u) <= bound + 1e-12


@given(shares, shares, shares, st.integers(1, 8), st.sampled_from((0.05, 0.5, 1.0, 4.0)))
def test_negative_correlation_costs_no_more_than_independence(
    alpha: Fraction, beta: Fraction, first: Fraction, T: int, u: float
) -> None:
    if alpha + beta < 1:
        alpha, beta = 1 - alpha, 1 - beta
    member = MarkovChain(["0", "1"], [[1 - alpha, alpha], [beta, 1 - beta]], [first, 1 - first])
    assert loss(member, T, u) <= u + 1e-12
    [fair] = box_of([alpha, 1], [beta, 1], "any").chains() or ()
    assert loss(fair, T, u) == pytest.approx(u)


def test_chains_of_which_there_is_no_list() -> None:
    assert box_of(["0.1", "0.3"], ["0.2", 1]).chains() == (
        MarkovChain(["0", "1"], [["0.9", "0.1"], ["0.2", "0.8"]]),
    )
    assert box_of(["0.1", "0.3"], ["0.2", "0.3"], "any").chains() is None
    assert box_of([0, "0.3"], ["0.2", "0.3"]).chains() is None
    assert ChainBox(["a", "b", "c"], [[0] * 3] * 3, [[1] * 3] * 3).chains() is None


@st.composite
def boxes(draw: st.DrawFn) -> tuple[ChainBox, list[Any]]:
    """A box around some rows of three states, and those rows."""
    count = st.sampled_from((0, 1, 1, 2, 5))
    members = []
    for _ in range(3):
        rows = [draw(st.lists(count, min_size=3, max_size=3).filter(any)) for _ in range(3)]
        members.append([[Fraction(c, sum(row)) for c in row] for row in rows])
    ends = [[[f(m[r][s] for m in members) for s in range(3)] for r in range(3)] for f in (min, max)]
    return ChainBox(["a", "b", "c"], *ends), members


@given(boxes())
def test_bounds_hold_and_cross_ratios_are_bounded(given: Any) -> None:
    box, members = given
    assert ChainBox(**box.to_json()) == box
    limit, k = box.k_squared, range(3)
    columns = [s for s in k if any(row[s] for row in box.upper)]
    for rows in members:
        assert all(box.lower[r][s] <= rows[r][s] <= box.upper[r][s] for r in k for s in k)
        for r, s, a, b in itertools.product(k, k, columns, columns):
            if limit is not None:
                assert rows[r][a] * rows[s][b] <= limit * rows[r][b] * rows[s][a]
    assert limit is not None or any(not row[s] for row in box.lower for s in columns)


def test_cross_ratios_by_hand() -> None:
    assert box_of(["0.1", "0.2"], ["0.2", "0.3"]).k_squared == 36
    assert box_of([0, "0.2"], ["0.2", "0.3"]).k_squared is None
    # No member enters c, so it is no column; a single column leaves nothing to be told.
    open_ended = [["1/2", "1/2", 0], ["1/4", "3/4", 0], ["1/3", "2/3", 0]]
    assert ChainBox(["a", "b", "c"], open_ended, open_ended).k_squared == 3
    assert ChainBox(["a", "b"], [[1, 0], [1, 0]], [[1, 0], [1, 0]]).k_squared == 1
    mixed = [[1, 0], ["1/2", "1/2"]]
    assert ChainBox(["a", "b"], mixed, mixed).k_squared is None


@pytest.mark.parametrize(
    "lower, upper, says",
    [
        ([["0.6", "0.6"], [0, 0]], ONES, "the row of state 'a'"),
        ([[0, 0], [0, 0]], [[1, 1], ["0.4", "0.4"]], "the row of state 'b'"),
        ([["0.5", 0], [0, 0]], [["0.4", 1], [1, 1]], "the row of state 'a'"),
        ([[0, 0]], ONES, "of 2 states needs a row for each"),
        ([{"a": 0}, {"b": 0}], ONES, "a row of bounds must be a list"),
        ([[0, 0], [0]], ONES, "a row of bounds needs 2 probabilities"),
        ([[0, float("nan")], [0, 0]], ONES, "not a finite number"),
    ],
)
def test_refusals(lower: Any, upper: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ChainBox(["a", "b"], lower, upper)


def test_a_box_has_no_scenario_and_starts_in_one_of_two_ways() -> None:
    with pytest.raises(InputError, match="no scenario"):
        box_of([0, 1], [0, 1]).laws([0, 1], (2,))
    with pytest.raises(InputError, match="must be 'stationary' or 'any'"):
        ChainBox(["a", "b"], ONES, ONES, [1, 0])


def test_fitted_boxes_hold_the_shares() -> None:
    table = pd.DataFrame({"s": [0, 1, 1, 0, 0, 1, 0, 0, 0], "t": range(9)})
    shares = [["3/5", "2/5"], ["2/3", "1/3"]]
    with pytest.warns(PriorWarning, match="an output of them"):
        box = ChainBox.from_sequences(table, state="s", time="t", states=[0, 1, 2])
    assert box.from_rows
    assert (box.lower[2], box.upper[2]) == ((0, 0, 0), (1, 1, 1))
    for r, s in np.ndindex(2, 2):
        assert 0 < box.lower[r][s] < Fraction(shares[r][s]) < box.upper[r][s] < 1
    # Two of three; by scipy.stats.beta.ppf(0.05 / 9 / 2, 2, 2).
    assert float(box.lower[1][0]) == pytest.approx(0.030745763052535093, rel=1e-12)
    with pytest.warns(PriorWarning):
        wider = ChainBox.from_sequences(table, state="s", time="t", confidence="0.99")
    assert wider.lower[0][0] < box.lower[0][0]
