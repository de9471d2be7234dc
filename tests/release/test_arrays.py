# SPDX-License-Identifier: Apache-2.0
"""Releasing arrays: what comes out, from which law, and what is refused."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noise_checks import LEAST_P, law_p
from pufferfish.errors import InputError, OutsidePromiseWarning, SeededWarning
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.release.pipeline import release_any
from pufferfish.release.postprocess import Postprocess
from release_cases import exact_law, job, level_job, one_by_one

QUARTER, THREE = Fraction(1, 4), Fraction(3, 4)


def test_integers_above_2_to_53_stay_integers() -> None:
    least = 2**53
    values = np.tile([least, least + 1], 5000)
    released = release_any(values, job([least, least + 1]))
    assert released.dtype == np.int64
    assert {int(v) % 2 for v in released} == {0, 1}
    for value in (least, least + 1):
        noise = released[values == value] - value
        assert abs(noise.mean()) < 0.2
    # As doubles both would be the same number: a float cannot say which one was meant.
    with pytest.raises(InputError, match="outside the support"):
        release_any(np.array([least + 1.0]), job([least + 1, least + 3]))


def test_mutant_noise_in_floats_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, lattice = job([".1", ".3"], 0.05), {k / 10 for k in range(-500, 501)}

    def on_lattice() -> bool:
        """Whether outputs are those of a public lattice, and common ones possible for both."""
        one, two = (set(release_any(np.full(20_000, v), spec).tolist()) for v in (0.1, 0.3))
        return (one | two) <= lattice and {0.1, 0.2, 0.3} <= one & two

    assert on_lattice()

    def draw(self: Any, atoms: Any, entropy: Any = None) -> Any:
        return (np.array([0.1, 0.3])[atoms] + 0.1 * self.mechanism.noise(len(atoms), entropy),) * 2

    monkeypatch.setattr(Postprocess, "draw", draw)
    monkeypatch.setattr(Postprocess, "numpy", lambda self, values: values)
    assert not on_lattice()  # .1 + .1 + .1 is not .3 there


def right(spec: Any, values: Any, finish: Callable[[Fraction], Fraction]) -> bool:
    """Whether the outputs for some values come from the law of what is finished after the sum."""
    for value in values:
        outputs = map(Fraction, release_any(np.full(20_000, float(value)), spec).tolist())
        if law_p(outputs, exact_law(value, spec, finish)) < LEAST_P:
            return False
    return True


def rounded_right() -> bool:
    spec = job([".25", ".75"], 0.6, round=True)
    return right(spec, (QUARTER, THREE), lambda total: Fraction(round(total)))


def bounded_right() -> bool:
    """The mass beyond lies on the bounds."""
    spec, low, high = job([0, 1, 5], 2.0, bounds=(0, 3)), Fraction(0), Fraction(3)
    return right(spec, map(Fraction, (0, 1, 5)), lambda total: min(max(total, low), high))


def test_the_sum_is_rounded_and_bounds_clamp_after_the_noise() -> None:
    assert rounded_right()
    assert bounded_right()
    assert release_any([0.25], job([".25", ".75"], round=True)).dtype == np.int64


def test_mutants_of_rounding_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded_noise(self: Any, atoms: Any, entropy: Any = None) -> Any:
        noise = self.mechanism.noise(len(atoms), entropy)
        return (np.array([0.25, 0.75])[atoms] + np.round(noise * 0.25),) * 2

    monkeypatch.setattr(Postprocess, "numpy", lambda self, values: values)
    monkeypatch.setattr(Postprocess, "draw", rounded_noise)
    assert not rounded_right()


def test_mutants_of_bounds_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    once = Postprocess.draw

    def until_it_fits(self: Any, atoms: Any, entropy: Any = None) -> Any:
        self.bounds = None
        values, _ = once(self, atoms, entropy)
        while (wrong := (values < 0) | (values > 3)).any():
            values[wrong], _ = once(self, atoms[wrong], entropy)
        return values, values

    def before_the_noise(self: Any, atoms: Any, entropy: Any = None) -> Any:
        moved = np.minimum(np.array([0, 1, 5])[atoms], 3)
        return (moved + self.mechanism.noise(len(atoms), entropy),) * 2

    for mutant in (until_it_fits, before_the_noise):
        monkeypatch.setattr(Postprocess, "draw", mutant)
        assert not bounded_right()


@given(
    st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=8, unique=True),
    st.sampled_from(["1", "0.25", "0.1", "2.5", "3"]),
    st.booleans(),
    st.one_of(st.none(), st.tuples(st.integers(-9, 9), st.integers(1, 12))),
    st.integers(0, 2**32),
    st.data(),
)
def test_arrays_equal_a_release_row_by_row(
    units: list[int],
    step: str,
    rounding: bool,
    limits: tuple[int, int] | None,
    seed: int,
    data: st.DataObject,
) -> None:
    # The cells between least and greatest must be countable.
    units = [u for u in units if abs(u - units[0]) < 2**52]
    exact_step = Fraction(step)
    # Rounded outputs are integers, unless the step is one already.
    grid = Fraction(1) if rounding and exact_step.denominator > 1 else exact_step
    bounds = None
    if limits is not None:
        low = round(units[0] * exact_step / grid) + limits[0]
        bounds = (low * grid, (low + limits[1]) * grid)
    spec = job([u * exact_step for u in units], 3.0, step=step, round=rounding, bounds=bounds)
    rows = data.draw(st.lists(st.sampled_from(units), min_size=1, max_size=20))
    # The decimals that the support was made from.
    texts = [str(Decimal(u) * Decimal(step)) for u in rows]
    with pytest.warns(SeededWarning):
        released = release_any(texts, spec, seed=seed)
    noise = spec.mechanism.noise(len(rows), seeded_entropy(seed)).tolist()
    slow = [
        one_by_one(u * exact_step, z, exact_step, rounding=rounding, bounds=bounds)
        for u, z in zip(rows, noise, strict=True)
    ]
    assert released.tolist() == [int(v) if grid.denominator == 1 else float(v) for v in slow]


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 5],
        np.array([0, 1, 5]),
        np.array([0, 1, 5], dtype=">i4"),
        np.array([0.0, 1.0, 5.0], dtype=np.float32),
        np.array(["0", "1", " 5.0 "]),
        np.array([Decimal(0), 1, Fraction(5)], dtype=object),
        [Decimal("0.0"), 1, "5e0"],
        pa.array([0, 1, 5]),
        np.ma.array([0, 1, 5]),
        range(0),
    ],
    ids=lambda v: f"{type(v).__name__}-{getattr(v, 'dtype', '')}",
)
def test_every_kind_of_array(values: Any) -> None:
    released = release_any(values, job([0, 1, 5], 1e-3))  # so little noise that none comes
    assert released.dtype == np.int64
    assert released.tolist() == ([0, 1, 5] if len(values) else [])


def test_floats_are_the_decimals_they_print_as() -> None:
    spec = job([".1", ".2", ".3"], 1e-4)
    for values in ([0.1, 0.2, 0.3], np.float32([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])):
        assert release_any(values, spec).tolist() == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match=r"row 1 of the array.* outside the support"):
        release_any([0.1 + 0.2], spec)


@pytest.mark.parametrize(
    "values, message",
    [
        ([0, 1, 2], r"row 3 of the array, column 'x', is outside .*, which goes from 0 to 5; cl"),
        ([0, None], "data row 2 of the array, column 'x', is missing, and an array keeps its len"),
        (np.ma.array([0, 1], mask=[False, True]), r"row 2 of .* is missing"),
        ([0.0, float("nan")], "row 2 of .* no finite number$"),
        (["0", "secret text"], "row 2 of .* no finite number"),
        (["0", "1e999"], "row 2 of .* no finite number"),
        ([[0, 1]], "list"),
        (np.zeros((2, 2)), "one dimension"),
        (5, "int was given"),
        ("in.csv", "output="),
    ],
)
def test_refused_values(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        release_any(values, job([0, 1, 5]))
    assert "secret text" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_clamping_to_the_nearest_atom() -> None:
    spec = job([0, 1, 5], 1e-3, out_of_support="clamp")
    with pytest.warns(OutsidePromiseWarning, match="6 released values moved to the nearest"):
        assert release_any([-9, 2, 3, 3.5, 4, 99, 0], spec).tolist() == [0, 1, 1, 5, 5, 5, 0]
    with pytest.raises(InputError, match=r"row 2 of .* no finite number$"):
        release_any(["0", "?"], spec)


def test_levels() -> None:
    names = ["low", "mid", "high"]
    assert release_any(names, level_job(names, 1e-3)).tolist() == [0, 1, 2]
    spec = level_job(names, 5.0, round=True, bounds=(0, 2))
    assert set(release_any(names * 100, spec).tolist()) == set(names)
    for choice in ("refuse", "clamp"):
        with pytest.raises(InputError, match=r"row 2 of .* none of the levels$"):
            release_any(["low", "other"], level_job(names, out_of_support=choice))


def test_a_seed_repeats_and_warns() -> None:
    spec = job([0, 1], 50.0)
    answers = []
    for seed in (1, 1, 2):
        with pytest.warns(SeededWarning, match="for tests only"):
            answers.append(release_any([0] * 20, spec, seed=seed).tolist())
    assert answers[0] == answers[1] != answers[2]
    assert release_any([0] * 20, spec).tolist() != release_any([0] * 20, spec).tolist()


def test_series_come_back_without_their_index() -> None:
    spec = job([0, 1], 1e-3)
    # Whatever the index was, it does not come back: it may be the secret column itself.
    for index in ([7, 9, 8], ["yes", "no", "no"], pd.MultiIndex.from_product([["a"], [1, 2, 3]])):
        series = release_any(pd.Series([0, 1, 1], index=index, name="x"), spec)
        pd.testing.assert_series_equal(series, pd.Series([0, 1, 1], name="x"))
    assert release_any(pl.Series("x", [0, 1]), spec).equals(pl.Series("x", [0, 1]))
    chunks = release_any(pa.chunked_array([[0, 1], [1]]), spec)
    assert isinstance(chunks, pa.ChunkedArray)
    assert chunks.to_pylist() == [0, 1, 1]
    levels = release_any(pd.Series(["a", "b"]), level_job("ab", 1e-3, round=True, bounds=(0, 1)))
    assert levels.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: release_any([0, 1], job([0, 1]), keep=["k"]), "kept of a dataframe"),
        (lambda: release_any([0], job([0, 1], unit="id")), "which rows are one person's"),
        (lambda: release_any([0], job([0, 1], 0.0)), "the scale is 0.*--min-scale T"),
    ],
)
def test_refused_options(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
