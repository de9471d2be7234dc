# SPDX-License-Identifier: Apache-2.0
"""The channel: exact integers, draws that fit them, and what it says of itself."""

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from noise_checks import DRAWS, LEAST_P, OFF, fit_row, scripted
from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.support import Lattice, Levels


def numbers(size: int) -> Levels:
    return Levels(tuple(f"level {k:04d}" for k in range(size)))


def channel_of(rows: Sequence[Sequence[int]]) -> Channel:
    return Channel(numbers(len(rows)), numbers(len(rows[0])), rows)


# --- The law ------------------------------------------------------------------------------------

LAW = [
    [2**63, 2**62, 2**62],
    [10**20, 5 * 10**20, 4 * 10**20],
    [0, 1, 1],
    [1, 0, 2],
    [0, 7, 0],
    [300, 300, 301],
]


def off_by(row: Sequence[int], factor: float, own: int) -> list[int]:
    """The row with everything but one entry scaled by a factor."""
    other = [0 if y == own else int(v * 10 * Fraction(str(factor))) for y, v in enumerate(row)]
    other[own] = 10 * sum(row) - sum(other)
    return other


def test_draws_fit_their_rows_and_no_others() -> None:
    channel = channel_of(LAW)
    atoms = np.tile(np.arange(len(LAW)), DRAWS)
    np.random.default_rng(0).shuffle(atoms)
    drawn = channel.draw(atoms)
    assert drawn.dtype == np.int64
    assert drawn.shape == atoms.shape
    for x, row in enumerate(LAW):
        assert fit_row(drawn[atoms == x], row) > LEAST_P
        if sum(v > 0 for v in row) == 1:
            continue
        own = max(range(3), key=lambda y, row=row: row[y])
        for factor in OFF:
            wrong = channel_of([off_by(row, factor, own)])
            assert fit_row(wrong.draw(np.zeros(DRAWS, dtype=np.int64)), row) < LEAST_P


def test_large_channels_fit_too() -> None:
    rng = random.Random(3)
    rows = [[rng.randrange(1, 2**57) for _ in range(100)] for _ in range(100)]
    at = np.repeat([0, 57, 99], DRAWS)
    drawn = channel_of(rows).draw(at)
    for x in (0, 57, 99):
        own = drawn[at == x]
        assert fit_row(own, rows[x]) > LEAST_P
        assert fit_row(own, rows[x - 1]) < LEAST_P
        # Neighbours are independent.
        even = sum(rows[x][::2]) / sum(rows[x])
        joint = np.bincount(own[::2] % 2 * 2 + own[1::2] % 2, minlength=4)
        chances = np.outer([even, 1 - even], [even, 1 - even]).ravel()
        assert stats.chisquare(joint, chances * DRAWS / 2).pvalue > LEAST_P


def test_nothing_is_drawn_that_has_no_mass() -> None:
    channel = channel_of([[0, 1, 0, 2**200, 0], [1, 0, 0, 0, 0]])
    for byte in (b"\0", b"\xff", b"\x80"):
        assert set(channel.draw(np.array([0, 0, 1]), lambda n, b=byte: b * n)) <= {0, 1, 3}
    assert channel.draw(np.array([1]), lambda n: b"\xff" * n) == [0]


def test_certain_outputs_need_no_entropy() -> None:
    channel = channel_of([[0, 3], [5, 0]])
    assert channel.draw(np.array([0, 1, 1, 0]), scripted()).tolist() == [1, 0, 0, 1]
    assert channel_of([[1, 2]]).draw(np.array([], dtype=np.int64), scripted()).size == 0


# --- The mechanism ------------------------------------------------------------------------------


def test_probabilities_are_the_integers() -> None:
    channel = channel_of([[1, 2, 4], [10**40, 0, 10**40]])
    assert channel.denominators == (7, 2 * 10**40)
    assert channel.probability(0, 2) == Fraction(4, 7)
    assert channel.probability(1, 1) == 0
    assert np.array_equal(channel.matrix, [[1 / 7, 2 / 7, 4 / 7], [0.5, 0, 0.5]])
    with pytest.raises(ValueError, match="read-only"):
        channel.rows[0, 0] = 2


@pytest.mark.parametrize(
    "rows, message",
    [
        ([[0.5, 0.5]], "whole numbers: .*float"),
        ([[1.0, 2.0]], "whole numbers: .*float"),
        ([["1", 2]], "whole numbers: .*str"),
        ([[-1, 4]], "negative"),
        ([[0, 0]], "all of a row 0"),
        ([[1, 2, 3]], r"rows of shape \(1, 3\)"),
        ([[1, 2], [1, 2]], r"rows of shape \(2, 2\)"),
        ([1, 2], r"rows of shape \(2,\)"),
    ],
)
def test_wrong_channels_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Channel(numbers(1), numbers(2), rows)


@pytest.mark.parametrize("atoms", [[0, 2], [-1], [[0, 1]], [0.0], ["0"], [True]])
def test_wrong_positions_are_refused(atoms: Any) -> None:
    with pytest.raises(InputError, match="positions"):
        channel_of([[1, 2], [2, 1]]).draw(np.array(atoms))


# --- Its error ----------------------------------------------------------------------------------


def half_lattice(*places: int) -> Lattice:
    return Lattice(Fraction(1, 2), places[0], np.array(places) - places[0])


@given(st.randoms(use_true_random=False))
def test_errors_against_the_definition(rng: random.Random) -> None:
    n, m = rng.randint(1, 4), rng.randint(1, 7)
    rows = [[rng.choice([0, 1, rng.randint(0, 7**40)]) for _ in range(m)] for _ in range(n)]
    for row in rows:
        row[rng.randrange(m)] += 1
    inputs = half_lattice(*sorted(rng.sample(range(-9, 9), n)))
    places = sorted(rng.sample(range(20), m))
    outputs = Lattice(Fraction(1, 3), places[0] - 5, np.array(places) - places[0])
    channel = Channel(inputs, outputs, rows)
    weights = [rng.choice([0, 1, 5, 10**20, 0.25, "1/3"]) for _ in range(n)]
    weights[rng.randrange(n)] = 2
    masses = [Fraction(str(w)) for w in weights]
    mse, kept = Fraction(0), Fraction(0)
    for x, mass in enumerate(masses):
        for y in range(m):
            chance = mass * channel.probability(x, y) / sum(masses)
            mse += chance * (inputs.value(x) - outputs.value(y)) ** 2
            kept += chance * (inputs.value(x) == outputs.value(y))
    assert channel.mse(weights) == pytest.approx(float(mse), rel=1e-15, abs=1e-70)
    assert channel.keep_rate(weights) == pytest.approx(float(kept), rel=1e-15, abs=1e-70)
    # The error is rounded up to a double, what is kept down.
    assert channel.mse(weights) >= mse
    assert channel.keep_rate(weights) <= kept


def test_levels_and_codes() -> None:
    ordered = Levels(("low", "mid", "high"), ordered=True)
    rows = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    channel = Channel(ordered, ordered, rows)
    assert not channel.unchanged
    assert channel.mse([1, 1, 1]) == pytest.approx((1 / 2 + 0 + 4 / 2) / 3)
    assert channel.keep_rate([1, 0, 0]) == 0.5
    codes = Channel(ordered, Lattice(Fraction(1), 0, np.arange(3)), rows)
    assert codes.mse([1, 1, 1]) == channel.mse([1, 1, 1])
    assert codes.keep_rate([1, 1, 1]) == channel.keep_rate([1, 1, 1])
    some = Channel(ordered, Levels(("high", "low"), ordered=True), [[1, 3], [1, 1], [1, 0]])
    assert some.same == (1, None, 0)
    assert some.keep_rate([1, 1, 2]) == pytest.approx((3 / 4 + 2) / 4)
    for wrong in (some, Channel(numbers(3), numbers(2), [[1, 1]] * 3)):
        with pytest.raises(InputError, match="the same levels in an order"):
            wrong.mse([1, 1, 1])


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [-1, 2], [0, 0], ["x", 1]])
def test_wrong_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InputError, match="weight"):
        channel_of([[1, 2], [2, 1]]).keep_rate(weights)


# --- One channel after another ------------------------------------------------------------------

ENTRIES = st.integers(0, 2**70) | st.integers(0, 3)


@given(st.data())
def test_then_is_the_product_exactly(data: st.DataObject) -> None:
    n, m, k = (data.draw(st.integers(1, 4)) for _ in range(3))

    def some(rows: int, columns: int) -> Channel:
        row = st.lists(ENTRIES, min_size=columns, max_size=columns).filter(any)
        return channel_of(data.draw(st.lists(row, min_size=rows, max_size=rows)))

    first, second = some(n, m), some(m, k)
    both = first.then(second)
    assert (both.inputs, both.outputs) == (first.inputs, second.outputs)
    for x in range(n):
        for y in range(k):
            through = (first.probability(x, s) * second.probability(s, y) for s in range(m))
            assert both.probability(x, y) == sum(through)
    with pytest.raises(InputError, match="not the outputs of the first"):
        first.then(channel_of([[1]] * (m + 1)))
