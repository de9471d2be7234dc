# SPDX-License-Identifier: Apache-2.0
"""Estimates are unbiased, their intervals cover, and what cannot be estimated is not printed."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from estimate_cases import expectation, misses, partitions, solvable
from pufferfish.errors import InputError
from pufferfish.estimate import (
    CONDITION_LIMIT,
    Estimate,
    Frequency,
    estimate_channel,
    estimate_laplace,
    figures,
)
from pufferfish.estimate.filter import Filter
from pufferfish.estimate.groups import structure_of
from pufferfish.estimate.weights import least_variance
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.sampling import seeded_entropy
from pufferfish.support import Lattice, Levels, Support

ONE = Fraction(1)


def levels(size: int, ordered: bool = True) -> Levels:
    return Levels(tuple("abcdefghijklmnopqrstuvwxyz"[:size]), ordered)


def lattice(*index: int, step: Fraction = ONE, origin: int = 0) -> Lattice:
    return Lattice(step, origin, np.array(index, dtype=np.int64))


def of(rows: Sequence[Sequence[int]], inputs: Support | None = None) -> Channel:
    return Channel.of(inputs or levels(len(rows)), levels(len(rows[0])), rows)


def exact(rows: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    return [[Fraction(entry, sum(row)) for entry in row] for row in rows]


@st.composite
def channels(draw: Any, most: int = 4, largest: int = 4) -> list[list[int]]:
    """Small entries, so that rows often are equal, dependent or the like; no empty output."""
    n_x, n_y = draw(st.integers(2, most)), draw(st.integers(1, most))
    entry = st.integers(0, largest)
    rows = draw(st.lists(st.lists(entry, min_size=n_y, max_size=n_y), min_size=n_x, max_size=n_x))
    assume(all(map(any, rows)) and all(map(any, zip(*rows, strict=True))))
    return rows


# --- what is estimable: exact linear algebra ---


@given(channels(most=6), st.data())
def test_estimable_is_solvable(rows: list[list[int]], data: Any) -> None:
    structure = structure_of(rows)
    values = data.draw(st.lists(st.integers(-2, 2), min_size=len(rows), max_size=len(rows)))
    assert structure.estimable(values) == solvable(exact(rows), values)
    w = data.draw(st.lists(st.integers(-3, 3), min_size=len(rows[0]), max_size=len(rows[0])))
    inside = [sum(m * v for m, v in zip(row, w, strict=True)) for row in exact(rows)]
    assert structure.estimable(inside)


@given(channels(most=5, largest=3))
def test_groups_are_estimable_and_as_many_as_can_be(rows: list[list[int]]) -> None:
    structure, matrix = structure_of(rows), exact(rows)
    every = list(range(len(rows)))

    def possible(groups: Sequence[Sequence[int]]) -> bool:
        return all(solvable(matrix, [int(x in g) for x in every]) for g in groups)

    assert sorted(x for group in structure.groups for x in group) == every
    assert possible(structure.groups)
    assert len(structure.groups) == max(len(p) for p in partitions(every) if possible(p))


def test_a_partition_beyond_single_levels_and_pairs() -> None:
    # Row 3 is row 1 + row 2 - row 0, and so are rows 4 to 7 among themselves: v = (1, -1, -1, 1).
    rows = [
        [4, 0, 2, 2, 0, 0, 0, 0],
        [2, 2, 2, 2, 0, 0, 0, 0],
        [4, 0, 1, 3, 0, 0, 0, 0],
        [2, 2, 1, 3, 0, 0, 0, 0],
    ]
    rows += [row[4:] + row[:4] for row in rows]
    groups = structure_of(rows).groups
    assert len(groups) == 4
    assert all(len(group) == 2 for group in groups)


def test_a_wide_merger_is_one_group_and_says_that_it_was_not_searched() -> None:
    rows = [[k * k + 1, 2000 - k * k] for k in range(20)]
    structure = structure_of(rows)
    assert structure.groups == (tuple(range(20)),)
    assert not structure.searched
    estimate = estimate_channel([5, 7], of(rows))
    assert estimate.entries == ()
    assert len(estimate.not_estimable) == 20
    assert any("not every grouping" in note for note in estimate.notes)


@given(channels(most=5))
def test_weights_solve_the_system(rows: list[list[int]]) -> None:
    structure, matrix = structure_of(rows), exact(rows)
    sides = [[int(x in group) for x in range(len(rows))] for group in structure.groups]
    basis = [structure.classes[k][0] for k in structure.pivots]
    weights = least_variance(rows, basis, sides)
    for w, side in zip(weights, sides, strict=True):
        for row, a in zip(matrix, side, strict=True):
            terms = [m * Fraction(float(v)) for m, v in zip(row, w, strict=True)]
            assert abs(sum(terms) - a) <= Fraction(2) ** -51 * sum(map(abs, terms))


def test_weights_have_the_least_variance() -> None:
    # Four outputs for two levels: any other solution of M w = a has a larger variance.
    rows = [[5, 3, 1, 1], [1, 2, 3, 4]]
    w = least_variance(rows, [0, 1], [[1, 0]])[0]
    matrix = of(rows).matrix
    null = np.linalg.svd(matrix)[2][2:]
    mass = matrix.mean(axis=0)
    for direction in null:
        assert abs((mass * w) @ direction) < 1e-14


def test_weights_of_a_nearly_singular_channel() -> None:
    big = 2**200
    rows = [[big, big], [big - 1, big + 1]]
    w = least_variance(rows, [0, 1], [[1, 0]])[0]
    assert w == pytest.approx([big + 1 - 1, -float(big)], rel=1e-15)


# --- unbiased, by the expectation over every released table ---


def numbers(estimate: Estimate) -> list[float]:
    figure = [estimate.mean, estimate.variance]
    return [e.estimate for e in estimate.entries] + [f.estimate for f in figure if f is not None]


def truth(estimate: Estimate, xs: Sequence[int], support: Support) -> list[float]:
    """What the numbers of an estimate are of the original rows."""
    found = []
    for entry in estimate.entries:
        inside = [support.name(x) in entry.labels for x in xs]
        found.append(sum(inside) / len(xs))
    values = [float(support.value(x)) if isinstance(support, Lattice) else x for x in xs]
    if estimate.mean is not None:
        found.append(np.mean(values))
    if estimate.variance is not None:
        found.append(np.var(values))
    return found


def biased(
    estimator: Callable[[list[int]], Estimate], ch: Channel, xs: Sequence[int], size: float = 1
) -> bool:
    example = np.bincount([int(np.argmax(ch.matrix[x])) for x in xs], minlength=ch.outputs.size)
    aim = truth(estimator(example.tolist()), xs, ch.inputs)
    mean = expectation(lambda c: numbers(estimator(c)), ch.matrix, xs)
    return not np.allclose(mean, aim, atol=1e-11 * size)


@settings(max_examples=40)
@given(channels(most=4, largest=6), st.lists(st.integers(0, 1), min_size=3, max_size=3))
def test_channel_estimates_are_unbiased(rows: list[list[int]], xs: list[int]) -> None:
    ch = of(rows)
    condition = np.linalg.svd(ch.matrix, compute_uv=False)
    size = (condition[0] / condition[condition > 1e-9].min()) ** 4
    assert not biased(lambda c: estimate_channel(c, ch), ch, xs, size)


def naive(counts: list[int], ch: Channel) -> Estimate:
    """The mutant: released frequencies as they are."""
    inverted = estimate_channel(counts, ch)
    shown = [
        dataclasses.replace(e, estimate=c / sum(counts))
        for e, c in zip(inverted.entries, counts, strict=True)
    ]
    return dataclasses.replace(inverted, entries=tuple(shown))


def test_mutant_without_inversion_is_biased() -> None:
    ch = of([[8, 1, 1], [2, 6, 2], [1, 1, 8]])
    assert not biased(lambda c: estimate_channel(c, ch), ch, [0, 0, 1])
    assert biased(lambda c: naive(c, ch), ch, [0, 0, 1])


def test_variances_are_unbiased_before_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "floored", lambda raw, *_: raw)
    monkeypatch.setattr(figures.np, "sqrt", lambda value: value)
    rows = [[8, 1, 1], [2, 6, 2], [1, 1, 8]]
    ch, xs = of(rows, levels(3, ordered=False)), [0, 0, 1, 2]

    def squared_errors(counts: list[int]) -> list[float]:
        entries = estimate_channel(counts, ch).entries
        aim = [0.5, 0.25, 0.25]
        raw = [e.standard_error for e in entries]  # the variance itself, by the patches
        return raw + [(e.estimate - t) ** 2 for e, t in zip(entries, aim, strict=True)]

    mean = expectation(squared_errors, ch.matrix, xs)
    assert mean[:3] == pytest.approx(mean[3:], rel=1e-12)


def laplace_channel(scale: float, index: Sequence[int], reach: int) -> tuple[np.ndarray, list[int]]:
    """Discrete Laplace noise as a finite channel from the atoms, by its definition."""
    ys = list(range(index[0] - reach, index[-1] + reach + 1))
    matrix = np.array([[np.exp(-abs(y - x) / scale) for y in ys] for x in index])
    return matrix / matrix.sum(axis=1, keepdims=True), ys


ATOMS = [(0, 1), (0, 1, 2, 3), (0, 5), (0, 1, 4, 9), (0, 2, 3, 11, 12)]


@pytest.mark.parametrize("index", ATOMS)
@pytest.mark.parametrize("scale", [0.4, 1.5, 7.0])
def test_laplace_weights_are_unbiased(index: tuple[int, ...], scale: float) -> None:
    matrix, ys = laplace_channel(scale, index, reach=int(45 * scale) + 2)
    noise, support = DiscreteLaplace(scale, ONE), lattice(*index, origin=-3)
    # One row alone: the estimate is the weight.
    each = [estimate_laplace([y - 3], [1], noise, support) for y in ys]
    weights = np.array([[e.estimate for e in estimate.entries] for estimate in each])
    assert np.allclose(matrix @ weights, np.eye(len(index)), atol=1e-11 * np.abs(weights).max())


@pytest.mark.parametrize("index", ATOMS)
@pytest.mark.parametrize("scale", [0.4, 3.0])
def test_laplace_weights_have_the_least_variance(index: tuple[int, ...], scale: float) -> None:
    matrix, ys = laplace_channel(scale, index, reach=int(45 * scale) + 2)
    noise, support = DiscreteLaplace(scale, ONE), lattice(*index)
    each = [estimate_laplace([y], [1], noise, support) for y in ys]
    weights = np.array([[e.estimate for e in estimate.entries] for estimate in each])
    mass = matrix.mean(axis=0)
    best = (matrix / mass).T @ np.linalg.inv((matrix / mass) @ matrix.T)
    assert np.allclose(weights, best, rtol=1e-8, atol=1e-8 * np.abs(best).max())


def test_the_inverse_filter_of_the_whole_lattice() -> None:
    """In rationals for the kernel, and in doubles for the weights inside the range."""
    a = Fraction(1, 3)
    kernel = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-12, 13)}
    c = a / (1 - a) ** 2
    for k in range(-10, 11):
        assert kernel[k] - c * (kernel[k + 1] - 2 * kernel[k] + kernel[k - 1]) == (k == 0)
    scale = float(1 / np.log(3))
    u = Filter.of(np.arange(7), DiscreteLaplace(scale, ONE)).weights(np.eye(7))
    assert u[2:5, 3] == pytest.approx([-0.75, 2.5, -0.75], rel=1e-12)


@pytest.mark.parametrize("bounds", [None, (Fraction(0), Fraction(3)), (Fraction(-1), Fraction(9))])
def test_laplace_estimates_are_unbiased(bounds: tuple[Fraction, Fraction] | None) -> None:
    index, scale = (0, 1, 3), 0.25
    matrix, ys = laplace_channel(scale, index, reach=5)
    low, high = (-99, 99) if bounds is None else map(int, bounds)
    clamped = [min(max(y, low), high) for y in ys]
    distinct = sorted(set(clamped))
    folded = np.array(
        [[sum(row[k] for k, y in enumerate(clamped) if y == d) for d in distinct] for row in matrix]
    )
    noise, support = DiscreteLaplace(scale, ONE), lattice(*index)

    def estimator(counts: list[int]) -> Estimate:
        return estimate_laplace(distinct, counts, noise, support, bounds=bounds)

    xs = [0, 0, 2]
    aim = truth(estimator([3] + [0] * (len(distinct) - 1)), xs, support)
    mean = expectation(lambda c: numbers(estimator(c)), folded, xs)
    assert mean == pytest.approx(aim, abs=1e-7)  # what is beyond the reach has a chance of e^-20


def test_rounded_values_are_a_finite_channel() -> None:
    half, scale = Fraction(1, 2), 0.6
    index = (0, 3, 5)  # 0, 1.5, 2.5
    matrix, ys = laplace_channel(scale * 2, index, reach=70)
    shown = [round(Fraction(y, 2)) for y in ys]
    noise, support = DiscreteLaplace(scale, half), lattice(*index, step=half)
    weights = []
    for j in shown:
        estimate = estimate_laplace([j], [1], noise, support, rounded=True)
        weights.append([*(e.estimate for e in estimate.entries), estimate.mean.estimate])
    assert np.allclose(matrix @ np.array(weights)[:, :3], np.eye(3), atol=1e-10)
    assert np.allclose(matrix @ np.array(weights)[:, 3], [0, 1.5, 2.5], atol=1e-10)


def test_bounds_inside_the_values_are_estimated_or_refused() -> None:
    noise, support = DiscreteLaplace(1.0, ONE), lattice(0, 3)
    inside = estimate_laplace([1, 2], [30, 20], noise, support, bounds=(ONE, Fraction(2)))
    a = np.exp(-1)
    p = 1 - a**2 / (1 + a), a**2 / (1 + a)  # 1 is shown for atom 0, and for atom 3
    assert inside.entries[0].estimate == pytest.approx((0.6 - p[1]) / (p[0] - p[1]), rel=1e-12)
    lost = estimate_laplace([1, 2], [30, 20], noise, lattice(0, 1, 2, 3), bounds=(ONE, Fraction(2)))
    assert (lost.entries, lost.mean, lost.variance) == ((), None, None)
    assert lost.not_estimable == ("0", "1", "2", "3")
    assert "cannot be told apart" in lost.notes[0]


# --- standard errors: the intervals cover ---

RELEASES, ROWS = 2000, 600


def covers(missed: np.ndarray) -> bool:
    """95 % +- 1.5 % of the intervals cover the truth, for each figure."""
    return bool((np.abs((1 - missed) - 0.95) <= 0.015).all())


def channel_coverage(
    ch: Channel, counts: Sequence[int], estimator: Callable[[Any, Channel], Estimate], seed: int
) -> np.ndarray:
    atoms = np.repeat(np.arange(ch.inputs.size), counts)
    entropy = seeded_entropy(seed)
    found = []
    for _ in range(RELEASES):
        released = np.bincount(ch.draw(atoms, entropy), minlength=ch.outputs.size)
        found.append(estimator(released, ch))
    return misses(truth(found[0], atoms.tolist(), ch.inputs), found)


CHANNELS = {
    "randomised response": ([[8, 1, 1], [1, 8, 1], [1, 1, 8]], [300, 200, 100]),
    "skewed": ([[9, 1, 0, 0], [2, 6, 2, 0], [0, 3, 6, 1], [0, 0, 3, 7]], [250, 150, 150, 50]),
    "more outputs": ([[5, 3, 1, 1], [1, 3, 5, 1], [1, 1, 3, 5]], [100, 300, 200]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANNELS)
def test_intervals_of_channels_cover(name: str) -> None:
    rows, counts = CHANNELS[name]
    assert covers(channel_coverage(of(rows), counts, estimate_channel, seed=11))


@pytest.mark.slow
def test_intervals_of_merged_levels_cover() -> None:
    ch = of([[8, 2], [8, 2], [1, 9]], levels(3, ordered=False))
    missed = []
    atoms = np.repeat(np.arange(3), [250, 150, 200])
    entropy = seeded_entropy(5)
    for _ in range(RELEASES):
        estimate = estimate_channel(np.bincount(ch.draw(atoms, entropy), minlength=2), ch)
        low, high = estimate.entries[0].interval
        missed.append(not low <= 400 / 600 <= high)
    assert covers(np.array([np.mean(missed)]))


def multinomial(counts: Any, ch: Channel) -> Estimate:
    """The mutant: the error of a frequency that was not noisy, f (1 - f) / n."""
    right, n = estimate_channel(counts, ch), sum(counts)
    wrong = [
        dataclasses.replace(e, standard_error=(c / n * (1 - c / n) / n) ** 0.5)
        for e, c in zip(right.entries, counts, strict=True)
    ]
    return dataclasses.replace(right, entries=tuple(wrong))


@pytest.mark.slow
def test_mutant_variance_does_not_cover() -> None:
    rows, counts = CHANNELS["randomised response"]
    assert not covers(channel_coverage(of(rows), counts, multinomial, seed=11))
    assert not covers(channel_coverage(of(rows), counts, naive, seed=11))


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("index", [(0, 1), (0, 1, 2, 3), (0, 1, 4, 9)])
def test_intervals_of_laplace_noise_cover(index: tuple[int, ...], bounded: bool) -> None:
    noise, support = DiscreteLaplace(1.3, ONE), lattice(*index)
    counts = [150, 450] if len(index) == 2 else [250, 150, 120, 80]
    bounds = (ONE * index[0], ONE * index[-1]) if bounded else None
    atoms = np.repeat(np.arange(len(index)), counts)
    entropy = seeded_entropy(23)
    found = []
    for _ in range(RELEASES):
        released = support.index[atoms] + noise.noise(len(atoms), entropy)
        if bounded:
            released = np.clip(released, index[0], index[-1])
        values, shown = np.unique(released, return_counts=True)
        found.append(estimate_laplace(values, shown, noise, support, bounds=bounds))
    assert covers(misses(truth(found[0], atoms.tolist(), support), found))


@pytest.mark.slow
def test_the_variance_of_two_equally_frequent_values_is_covered_more_often() -> None:
    """p (1 - p) is flat at 1/2: its interval is the image of that of p, which p and 1 - p hit."""
    ch = of([[7, 3], [3, 7]])
    missed = channel_coverage(ch, [250, 350], estimate_channel, seed=3)
    assert covers(missed[:3])
    assert missed[3] <= 0.065


@pytest.mark.parametrize("shown", [300, 290, 260])
def test_the_interval_of_a_variance_holds_the_estimate(shown: int) -> None:
    """Two values have the variance 1/4 at most, but unbiased estimates are above it at times."""
    ch = of([[7, 3], [3, 7]])
    estimate = estimate_channel([shown, 600 - shown], ch)
    assert estimate.variance is not None
    low, high = estimate.variance.interval
    assert low < estimate.variance.estimate <= high
    assert (shown == 260) == (estimate.variance.estimate < 0.25)
    noise, support = DiscreteLaplace(3.0, ONE), lattice(0, 1)
    bounded = estimate_laplace([0, 1], [shown, 600 - shown], noise, support, bounds=(0 * ONE, ONE))
    assert bounded.variance is not None
    low, high = bounded.variance.interval
    assert low < bounded.variance.estimate <= high


def laplace_coverage(
    scale: float,
    counts: Sequence[int],
    bounded: bool,
    monkeypatch: pytest.MonkeyPatch | None = None,
) -> tuple[np.ndarray, list[Estimate]]:
    """How often intervals miss where few rows of neighbouring atoms change."""
    if monkeypatch is not None:
        monkeypatch.setattr(figures, "FEW_CHANGES", 0)
    last = len(counts) - 1
    noise, support = DiscreteLaplace(scale, ONE), lattice(*range(last + 1))
    atoms = np.repeat(np.arange(last + 1), counts)
    entropy = seeded_entropy(41)
    found = []
    for _ in range(RELEASES):
        released = atoms + noise.noise(len(atoms), entropy)
        if bounded:
            released = np.clip(released, 0, last)
        values, shown = np.unique(released, return_counts=True)
        bounds = (0 * ONE, ONE * last) if bounded else None
        found.append(estimate_laplace(values, shown, noise, support, bounds=bounds))
    return misses(truth(found[0], atoms.tolist(), support), found), found


FEW = [(0.2, (300, 300)), (0.25, (300, 300)), (0.2, (570, 30)), (0.2, (100, 200, 200, 100))]


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("scale, counts", FEW)
def test_intervals_cover_where_few_rows_change(
    scale: float, counts: tuple[int, ...], bounded: bool
) -> None:
    missed, found = laplace_coverage(scale, counts, bounded)
    assert (missed <= 0.065).all()
    assert all(any("changed rows" in note for note in e.notes) for e in found)


@pytest.mark.slow
def test_mutant_without_one_more_row_does_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    missed, _ = laplace_coverage(0.2, (300, 300), False, monkeypatch)
    assert missed[0] > 0.065


@pytest.mark.slow
@pytest.mark.parametrize("odds", [99, 300, 6000])
def test_intervals_of_channels_cover_where_few_rows_change(odds: int) -> None:
    ch = of([[odds, 1, 0], [1, odds, 1], [0, 1, odds]])
    missed = channel_coverage(ch, [300, 200, 100], estimate_channel, seed=13)
    assert (missed <= 0.065).all()


def test_few_changed_rows_are_said_so() -> None:
    few = of([[99, 1], [1, 99]])
    noted = estimate_channel([200, 400], few)
    assert [n for n in noted.notes if "fewer than some 20 changed rows" in n] == [*noted.notes]
    for figure in (*noted.entries, noted.mean):
        assert figure is not None
        low, high = figure.interval
        # The frequencies and the mean are one figure; about 6 rows change, and one more counts.
        assert (high - low) / figure.standard_error / 2 == pytest.approx(
            1.96 * (7 / 6) ** 0.5, 0.01
        )
        assert (low + high) / 2 == pytest.approx(figure.estimate)
    assert estimate_channel([2000, 4000], few).notes == ()
    # Hardly ever is any row changed, and nothing needs to be longer.
    none = estimate_channel([200, 400], of([[10**8 - 1, 1], [1, 10**8 - 1]]))
    assert none.notes == ()
    assert none.entries[0].ends is None
    assert none.entries[0].standard_error < 1e-5
    rounded = estimate_laplace(
        [0, 1], [300, 300], DiscreteLaplace(0.1, ONE / 2), lattice(0, 2, step=ONE / 2), rounded=True
    )
    assert any("changed rows" in note for note in rounded.notes)
    assert all(entry.ends is not None for entry in rounded.entries)


def test_one_row_more_is_no_move_over_the_whole_range() -> None:
    """With thirty atoms noise moves a row to a neighbour; bounds do not change that."""
    noise, support = DiscreteLaplace(0.3, ONE), lattice(*range(30))
    kinds = (None, (0 * ONE, 29 * ONE))
    means = [
        estimate_laplace(range(30), [20] * 30, noise, support, bounds=bounds).mean
        for bounds in kinds
    ]
    lengths = [mean.interval[1] - mean.interval[0] for mean in means if mean is not None]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.1)


def test_a_jump_is_that_of_one_row() -> None:
    rows = [[98, 2, 0, 0], [1, 98, 1, 0], [0, 1, 98, 1], [0, 0, 2, 98]]
    matrix = of(rows).matrix
    mean = figures.Weighted.on(np.array([0.0, 1.0, 2.0, 3.0]), matrix)
    assert mean.jump == pytest.approx(1, abs=0.03)  # and not the range of 3
    assert figures.Weighted.on(np.array([5.0, 6.0, 7.0, 8.0]), matrix).jump == pytest.approx(
        mean.jump
    )
    assert figures.Weighted.on(np.array([0.1, 0.7]), np.eye(2)).jump == 0


# --- what is said ---


def test_an_identity_channel_gives_the_column_itself() -> None:
    estimate = estimate_channel([5, 3, 2], of([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    assert [e.estimate for e in estimate.entries] == [0.5, 0.3, 0.2]
    assert [e.standard_error for e in estimate.entries] == [0, 0, 0]
    assert (estimate.mean.estimate, estimate.condition_number) == (pytest.approx(0.7), 1.0)
    assert estimate.notes == ()


def test_merged_levels_are_named() -> None:
    estimate = estimate_channel([50, 30, 0], of([[8, 2, 0], [8, 2, 0], [2, 8, 0]]))
    assert [entry.labels for entry in estimate.entries] == [("a", "b"), ("c",)]
    assert estimate.entries[0].estimate == pytest.approx((50 / 80 - 0.2) / 0.6)
    assert estimate.not_estimable == ("a", "b")
    assert (estimate.mean, estimate.variance, estimate.condition_number) == (None, None, None)
    assert (
        "the frequencies of a, b cannot be estimated one by one; only their sum can; a channel "
        in estimate.notes[0]
    )
    assert "but at a small epsilon there may be none" in estimate.notes[0]


def test_what_is_merged_is_named_once() -> None:
    rows = [[8, 1, 1], [8, 1, 1], [1, 8, 1], [1, 8, 1], [1, 1, 8]]
    merged = estimate_channel([5000, 3000, 2000], of(rows)).notes[0]
    assert "one by one, only their sums over these: a, b; c, d; a channel" in merged
    lone = estimate_channel([5000, 3000], of([[8, 2], [8, 2], [8, 2], [1, 9]])).notes[0]
    assert "the frequencies of a, b, c cannot be estimated one by one; only their sum can;" in lone
    assert lone.count("a, b, c") == 1
    nothing = estimate_channel([4, 4], of([[1, 3], [1, 3], [2, 6]])).notes[0]
    assert nothing.count("a, b, c") == 1
    assert "only" not in nothing


def test_a_mean_can_be_estimable_where_no_frequency_is() -> None:
    ch = of([[8, 2], [5, 5], [2, 8]])
    estimate = estimate_channel([50, 30], ch)
    assert estimate.entries == ()
    assert estimate.mean is not None
    assert estimate.mean.estimate == pytest.approx((30 / 80 - 0.2) / 0.3)
    assert estimate.variance is None
    assert any("upper estimate" in note for note in estimate.notes)
    assert not biased(lambda c: estimate_channel(c, ch), ch, [0, 1, 1])


def test_a_constant_channel_gives_nothing() -> None:
    estimate = estimate_channel([4, 4], of([[1, 3], [1, 3], [2, 6]]))
    assert (estimate.entries, estimate.mean) == ((), None)
    assert "nor any sum of some of them" in estimate.notes[0]


def test_an_ill_conditioned_channel_is_said_so() -> None:
    good = estimate_channel([40, 60], of([[8, 2], [2, 8]]))
    assert good.condition_number == pytest.approx(1 / 0.6)
    poor = estimate_channel([40, 60], of([[501, 499], [499, 501]]))
    assert poor.condition_number == pytest.approx(500)
    assert poor.condition_number > CONDITION_LIMIT
    assert "condition number 500" in poor.notes[0]


def test_levels_that_only_rounding_tells_apart_are_merged() -> None:
    top = 2**64
    rows = [[top - 2**60, 2**60, 0], [top - 2**60 - 1, 2**60, 1], [2**60, top - 2**60, 0]]
    estimate = estimate_channel([50, 30, 0], of(rows))
    assert [entry.labels for entry in estimate.entries] == [("a", "b"), ("c",)]
    assert all(abs(e.estimate) < 2 and e.standard_error < 1 for e in estimate.entries)
    assert estimate.not_estimable == ("a", "b")
    assert "no table has enough rows" in estimate.notes[1]
    assert estimate.condition_number is None


def test_no_interval_has_zero_width_by_chance() -> None:
    estimate = estimate_channel([10, 0], of([[1, 0], [1, 1]]))
    assert estimate.entries[1].estimate == 0
    assert estimate.entries[1].standard_error == pytest.approx(0.2)


def test_a_column_that_was_released_unchanged() -> None:
    noise, support = DiscreteLaplace(0.0, ONE), lattice(0, 2, 5)
    estimate = estimate_laplace([0, 5], [3, 1], noise, support)
    assert estimate.entries == (
        Frequency(0.75, 0.0, labels=("0",)),
        Frequency(0.0, 0.0, labels=("2",)),
        Frequency(0.25, 0.0, labels=("5",)),
    )
    assert (estimate.mean.estimate, estimate.mean.standard_error) == (1.25, 0.0)
    assert estimate.variance.estimate == pytest.approx(np.var([0, 0, 0, 5]))
    with pytest.raises(InputError, match="not in the support"):
        estimate_laplace([0, 3], [3, 1], noise, support)


def test_far_atoms_and_huge_integers() -> None:
    origin = 2**60
    support = lattice(0, 10**12, origin=origin)
    noise = DiscreteLaplace(10.0, ONE)
    many = estimate_laplace([origin - 3, origin + 10**12], [30, 10], noise, support)
    assert many.entries == ()
    assert "too many points" in many.notes[0]
    assert many.mean.estimate == pytest.approx(origin + 10**12 / 4)
    near = lattice(0, 10**6, origin=origin)
    estimate = estimate_laplace([origin - 3, origin + 10**6 - 7], [30, 10], noise, near)
    assert [e.estimate for e in estimate.entries] == pytest.approx([0.75, 0.25], rel=1e-14)


def test_many_atoms_in_a_row_take_linear_time() -> None:
    support = lattice(*range(100_000))
    estimate = estimate_laplace([7, 99_999], [1, 1], DiscreteLaplace(3.0, ONE), support)
    assert len(estimate.entries) == 100_000
    assert sum(e.estimate for e in estimate.entries) == pytest.approx(1)


@given(st.sampled_from(ATOMS), st.floats(1e-3, 1e3), st.lists(st.integers(-30, 40), min_size=1))
def test_frequencies_of_laplace_noise_sum_to_one(
    index: tuple[int, ...], scale: float, values: list[int]
) -> None:
    distinct, counts = np.unique(values, return_counts=True)
    estimate = estimate_laplace(distinct, counts, DiscreteLaplace(scale, ONE), lattice(*index))
    size = max(abs(e.estimate) for e in estimate.entries)
    assert sum(e.estimate for e in estimate.entries) == pytest.approx(1, abs=1e-10 * (1 + size))


def test_json() -> None:
    estimate = estimate_channel([500, 300, 200], of([[8, 1, 1], [1, 8, 1], [1, 1, 8]]))
    written = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert written["rows"] == 1000
    first = written["frequencies"][0]
    assert first["labels"] == ["a"]
    assert first["low"] < first["estimate"] < first["high"]
    reach = first["high"] - first["estimate"]
    assert reach / first["standard_error"] == pytest.approx(1.959964, abs=1e-6)
    unordered = estimate_channel([5, 3], of([[2, 1], [1, 2]], levels(2, ordered=False)))
    assert unordered.to_dict()["mean"] is None


@pytest.mark.parametrize(
    "counts, message",
    [
        ([1, 2], "there must be 3 counts"),
        ([0, 0, 0], "is empty"),
        ([1, -1, 0], "none negative"),
        ([1.0, 2.0, 0.0], "whole numbers"),
        ([[1, 2, 3]], "one list"),
        ([1, 2, 3], "never publishes 'c'"),
    ],
)
def test_wrong_counts_are_refused(counts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_channel(counts, of([[2, 1, 0], [1, 2, 0], [1, 1, 0]]))


def test_wrong_laplace_input_is_refused() -> None:
    noise, support = DiscreteLaplace(1.0, ONE), lattice(0, 1)
    with pytest.raises(InputError, match="additive noise needs"):
        estimate_laplace([0], [1], noise, levels(2, ordered=False))
    with pytest.raises(InputError, match="listed twice"):
        estimate_laplace([0, 0], [1, 2], noise, support)
    with pytest.raises(InputError, match="as many as there are counts"):
        estimate_laplace([0, 1], [1], noise, support)
    with pytest.raises(InputError, match="has the step"):
        estimate_laplace([0], [1], DiscreteLaplace(1.0, ONE / 2), support)
    with pytest.raises(InputError, match="outside the bounds"):
        estimate_laplace([0, 5], [1, 1], noise, support, bounds=(Fraction(0), ONE))
    with pytest.raises(InputError, match="the lesser first"):
        estimate_laplace([0], [1], noise, support, bounds=(ONE, Fraction(0)))
