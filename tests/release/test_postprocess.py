# SPDX-License-Identifier: Apache-2.0
"""Postprocessing: the fast way against fractions, the options, and every edge of 64 bits."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.postprocess import Postprocess, rounded, to_doubles
from pufferfish.release.sinks import released_text
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Lattice, Levels, make_lattice
from release_cases import CHANNEL_ROWS, JOBS, ORDERED, channel_job, job, level_job, spec_of

INT64 = st.integers(-(2**63), 2**63 - 1)
UNITS = st.lists(st.one_of(st.integers(-1000, 1000), INT64), max_size=20)
STEPS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6).filter(bool),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 10), Fraction(5, 2), Fraction(3)]),
    st.sampled_from([Fraction(1, 3), Fraction(1, 10**18), Fraction(1, 10**25), Fraction(1, 2**62)]),
)
BIT = make_lattice([Fraction(0), Fraction(1)])


def array(units: list[int]) -> Any:
    return np.array(units, dtype=np.int64)


@given(UNITS, STEPS)
def test_numbers_are_those_of_fractions(units: list[int], step: Fraction) -> None:
    nearest = [round(u * step) for u in units]
    if all(-(2**63) <= v < 2**63 for v in nearest):
        assert rounded(array(units), step).tolist() == nearest
    assert to_doubles(array(units), step).tolist() == [float(u * step) for u in units]


@given(UNITS, STEPS)
def test_released_numbers_are_exact_text(units: list[int], step: Fraction) -> None:
    shown = released_text(array(units), step).to_pylist()
    rest = step.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:  # no decimal equals the step
        assert [float(t) for t in shown] == [float(u * step) for u in units]
        return
    assert [Fraction(t) for t in shown] == [u * step for u in units]
    assert all("e" not in t.lower() for t in shown)
    # The length after the point tells nothing.
    assert len({len(t.partition(".")[2]) for t in shown}) <= 1


@given(st.integers(-20, 20), STEPS)
def test_the_least_draw_of_a_rounded_value(value: int, step: Fraction) -> None:
    post = Postprocess(spec_of(make_lattice([Fraction(0)], step), DiscreteLaplace(0.0, step)))
    assert post.edge(value) == value
    if step.denominator > 1:
        spec = spec_of(make_lattice([Fraction(0)], step), DiscreteLaplace(0.0, step), round=True)
        edge = Postprocess(spec).edge(value)
        assert round(edge * step) >= value > round((edge - 1) * step)


def test_noise_belongs_on_the_lattice() -> None:
    with pytest.raises(InputError, match="noise belongs on the lattice of the support"):
        Postprocess(spec_of(BIT, DiscreteLaplace(1.0, Fraction(1, 2))))
    with pytest.raises(InputError, match="order"):
        Postprocess(spec_of(Levels(("a", "b")), DiscreteLaplace(1.0, Fraction(1))))


def test_the_least_scale() -> None:
    assert Postprocess(job([0, 1], 0.0, min_scale=2)).mechanism == DiscreteLaplace(2.0, Fraction(1))
    assert Postprocess(job([0, 1], 3.0, min_scale=2)).mechanism == DiscreteLaplace(3.0, Fraction(1))


@pytest.mark.parametrize("flag", ["round", "allow_unchanged"])
@pytest.mark.parametrize("wrong", ["no", 1, None])
def test_flags_are_true_or_false(flag: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"{flag} must be True or False"):
        job([0, 1], **{flag: wrong})


@pytest.mark.parametrize("wrong", [0, -1, "x", float("nan"), float("inf"), 10**400])
def test_min_scale_is_a_positive_number(wrong: Any) -> None:
    with pytest.raises(InputError):
        job([0, 1], min_scale=wrong)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9).filter(bool))
def test_min_scale_is_never_below_what_was_asked(asked: Fraction) -> None:
    for given_as in (asked, f"{asked.numerator}/{asked.denominator}"):
        scale = job([0, 1], min_scale=given_as).min_scale
        assert scale is not None
        assert scale >= asked > Fraction(math.nextafter(scale, 0))


@pytest.mark.parametrize(
    "bounds, message",
    [
        ((1, 1), "below the upper"),
        (3, "two numbers"),
        (("a", 1), "must be a number"),
        ((0, float("inf")), "finite"),
    ],
)
def test_bounds_are_two_numbers_in_order(bounds: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job([0, 1], bounds=bounds)


def test_bounds_must_be_possible_outputs() -> None:
    with pytest.raises(InputError, match="multiples of 1, as"):
        Postprocess(job([0, 1], bounds=("0.5", "9.5")))
    assert Postprocess(job(["0.5"], bounds=(Decimal("0.5"), 3))).bounds == (1, 6)
    # Rounded outputs are integers, and so must their bounds be.
    with pytest.raises(InputError, match="multiples of 1"):
        Postprocess(job(["0.5"], bounds=("0.5", "9.5"), round=True))
    tens = Postprocess(job([0, 10], step=10, bounds=(0, 2**63 - 8)))
    assert tens.numpy(tens.finish(array([2**62]))).tolist() == [2**63 - 8]
    for wide in ((0, 2**63), (-(10**30), 0)):
        with pytest.raises(InputError, match="beyond 64 bits"):
            Postprocess(job([0, 1], bounds=wide))


def test_levels_come_back_only_with_round_and_bounds_inside_the_codes() -> None:
    names = ["low", "mid", "high"]
    for bounds in ((0, 2), ("low", " high ")):
        inside = Postprocess(level_job(names, round=True, bounds=bounds))
        assert inside.numpy(inside.finish(array([-7, 1, 9]))).tolist() == names
    for options in ({}, {"round": True}, {"bounds": (0, 2)}, {"round": True, "bounds": (0, 3)}):
        codes = Postprocess(level_job(names, **options))
        assert codes.levels is None
        assert codes.numpy(array([0, 1])).tolist() == [0, 1]


def test_out_of_support_has_two_choices() -> None:
    with pytest.raises(InputError, match="'refuse' or 'clamp'"):
        job([0, 1], out_of_support="klamp")


# What does not fit 64 bits is refused before anything is drawn.


@pytest.mark.parametrize(
    "spec",
    [
        job([0, 1, 2], 1e20),
        job(["0.1", "0.2", "0.30000000000000004"], 87.5),
        job([2**63 - 1]),
        job([-(2**63)]),
        job([2**63], 0.0),
        job([10**19, 2 * 10**19], 1e18, step=10**19),
        job([0], 0.0, step=10**30),
        job([0, 10], step=10, bounds=(10**19, 2 * 10**19)),
        job([0, 10], bounds=(-(2 * 10**19), -(10**19))),
        spec_of(make_lattice([Fraction(10**300, 3)]), DiscreteLaplace(1e306, Fraction(1, 3))),
        channel_job(BIT, [[1, 1], [1, 1]], Lattice(Fraction(1), 2**63 - 1, array([0, 1]))),
    ],
    ids=[
        "1e20",
        "float noise",
        "top",
        "bottom",
        "beyond",
        "wide step",
        "0",
        "above",
        "below",
        "doubles",
        "channel",
    ],
)
def test_results_beyond_64_bits_are_refused(spec: ReleaseSpec) -> None:
    with pytest.raises(InputError, match="beyond 64 bits"):
        Postprocess(spec)


def test_what_fits_64_bits_is_released() -> None:
    Postprocess(job([2**63 - 1], 0.0))
    Postprocess(job([-(2**63)], 0.0))
    Postprocess(job([2**63 - 1 - 64], 1.0))
    Postprocess(job([0, 1], 2.0**56))
    # One draw in 6e27 is further away than 64 scales.
    post = Postprocess(job([2**63 - 1 - 64], 1.0))
    draws, _ = post.draw(np.zeros(100_000, dtype=np.int64))
    assert (np.abs(draws - (2**63 - 65)) <= 64).all()


def test_mutant_sums_that_wrap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if noise reached further than it ever does, a sum would be refused, not wrapped."""
    monkeypatch.setattr(DiscreteLaplace, "noise", lambda self, size, entropy: array([100] * size))
    with pytest.raises(InputError, match="refused, not wrapped"):
        Postprocess(job([2**63 - 1 - 64], 1.0)).draw(array([0]))


# Channels.


def _other(inputs: Levels) -> ReleaseSpec:
    return spec_of(JOBS, Channel(inputs, inputs, CHANNEL_ROWS))


@pytest.mark.parametrize(
    "spec, message",
    [
        (
            channel_job(JOBS, CHANNEL_ROWS, min_scale=2),
            "a channel has no scale; .* a smaller epsilon",
        ),
        (
            channel_job(JOBS, CHANNEL_ROWS, round=True),
            r"--round \(round\) is for numbers, but this chan",
        ),
        (
            channel_job(ORDERED, CHANNEL_ROWS, round=True, bounds=(0, 2)),
            "--round .* is one of them",
        ),
        (channel_job(JOBS, CHANNEL_ROWS, bounds=(0, 2)), r"--bounds \(bounds\) is for numbers"),
        (
            _other(Levels(("Private", "Self, not inc", "Unpaid"))),
            "its inputs are not those of the support",
        ),
        (_other(Levels(JOBS.names[::-1])), "only the values that it was made for"),
    ],
)
def test_channels_that_do_not_fit(spec: ReleaseSpec, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Postprocess(spec)
    assert "\n" not in str(caught.value)
