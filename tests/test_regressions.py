# SPDX-License-Identifier: Apache-2.0
"""Mistakes that were made once, each with the smallest input that shows it."""

import itertools
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.calibration import NOISE
from pufferfish.errors import CheckFailed, InputError
from pufferfish.rationals import parse_number


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
def test_small_integers_do_not_wrap_round_in_the_support(kind: type) -> None:
    """The range of an int8 support may not fit in int8."""
    low, high = max(np.iinfo(kind).min, -(2**40)), min(np.iinfo(kind).max, 2**40)
    values = np.array([low, 0, high], dtype=kind)
    prior = pf.Prior.from_counts({"a": [5, 1, 0], "b": [0, 1, 5]}, support=values)
    assert [int(v) for v in prior.support.values] == [low, 0, high]
    assert pf.calibrate(prior, 1, "l1").scale == high - low


def test_a_small_probability_is_not_read_as_zero() -> None:
    """Digits may be read as small fractions, but a value that can occur still can."""
    prior = pf.Prior.from_mapping(
        {"a": {0: "1e-7", 1: "0.3333333", 2: "0.6666667"}, "b": {1: "1/3", 2: "2/3"}}
    )
    assert prior.probability("a", 0) > 0
    assert pf.calibrate(prior, 0.5).scale > 0


def test_only_what_rounds_to_the_printed_digits_is_a_fraction() -> None:
    """0.249 is not 1/4; the double 0.5 is 1/2 to all its digits."""
    row = {0: "0.249", 1: "0.251", 2: "0.4999999"}
    assert pf.Prior.from_mapping({"a": row}).probability("a", 0) != Fraction(1, 4)
    floats = pf.Prior.from_mapping({"a": {0: 1 / 2, 1: 1 / 6, 2: 1 / 3}})
    assert floats.counts.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize("mass", ["1e-310", "1e-400"])
@pytest.mark.parametrize("epsilon", ["1e-305", "1e-100", "1", "800", "1e300"])
def test_masses_below_every_double(mass: str, epsilon: str) -> None:
    """All mechanisms are certified, in order, without a warning."""
    tiny = parse_number(mass, "mass") if mass == "1e-310" else Fraction(1, 10**400)
    scenario = pf.Scenario(
        pf.Prior.from_mapping({"a": {0: tiny, 1: 1 - tiny}, "b": {0: "1/2", 1: "1/2"}})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scales = [pf.calibrate(scenario, epsilon, name).scale for name in NOISE]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(scales))


def test_lines_of_a_coupling_at_a_tiny_epsilon() -> None:
    """Newton's steps from far above cancelled to nothing at tiny epsilons."""
    rows = {"a": {0: "1/2", 1: "1/4", 5: "1/4"}, "b": {0: "1/4", 1: "1/2", 5: "1/4"}}
    scenario = pf.Scenario(pf.Prior.from_mapping(rows))
    for name in ("relaxed", "one-sided"):
        plan = pf.calibrate(scenario, "1e-100", name)
        assert plan.loss <= plan.epsilon


@pytest.mark.parametrize(
    "gap, atoms", [("1e-12", 4), ("1e-30", 4), ("1e-30", 300), ("1e-12", 10_002)]
)
def test_epsilon_just_beside_the_loss_without_noise(gap: str, atoms: int) -> None:
    """The loss is all but flat there: above it no noise, below it the least scale all the same."""
    counts = {"a": np.full(atoms, 3), "b": np.where(np.arange(atoms) % 2 == 0, 2, 4)}
    scenario = pf.Scenario(pf.Prior.from_counts(counts, support=np.arange(atoms)))
    limit = Fraction(Decimal("0.405465108108164381978013115464349136571990423462494197614014"))
    assert pf.calibrate(scenario, limit + Fraction(gap)).scale == 0
    scale = pf.calibrate(scenario, limit - Fraction(gap)).scale
    # loss(0) - loss(theta) is 4/3 exp(-1/theta) or so: the scale is known to a few per cent.
    assert scale == pytest.approx(1 / -np.log(float(gap)), rel=0.15)


def test_a_chosen_step_stays_where_supports_differ() -> None:
    """Two adversaries on steps of 5 share a lattice of step 5."""
    priors = [
        pf.Prior.from_mapping({"a": {0: ".5", k: ".5"}, "b": {0: ".4", k: ".6"}}, step=5)
        for k in (5, 10)
    ]
    assert pf.Scenario(priors).lattice.step == 5


@pytest.mark.parametrize(
    "value",
    [Decimal("1e999999999"), Decimal("1e-1000000"), 10**5000, "1" * 5000, np.complex128(1)],
    ids=["large", "small", "integer", "text", "complex"],
)
def test_numbers_that_no_table_holds(value: object) -> None:
    """They are refused in one line, at once."""
    with pytest.raises(InputError):
        parse_number(value, "epsilon")


@pytest.mark.parametrize("pairs", [None, 5, [5], [None], [{"a", "b"}]])
def test_pairs_that_are_none(pairs: object) -> None:
    """A wrong kind is wrong input, not a traceback."""
    prior = pf.Prior.from_mapping({"a": {0: 1}, "b": {1: 1}})
    with pytest.raises(InputError):
        pf.Scenario(prior, pairs)  # type: ignore[arg-type]


@pytest.mark.parametrize("support", [None, 3, [[0], [1]], [[0], [1, 2]]])
def test_supports_that_are_none(support: object) -> None:
    """A wrong kind is wrong input, not a traceback."""
    with pytest.raises(InputError):
        pf.Prior.from_counts({"a": [1, 2], "b": [2, 1]}, support=support)  # type: ignore[arg-type]


@pytest.mark.parametrize("other_prior", [False, True])
def test_verify_judges_the_codes_that_a_release_uses(other_prior: bool) -> None:
    """A plan whose levels are in another order releases other codes than those it was made for."""
    rows = {"a": {"x": ".5", "y": ".5"}, "b": {"z": ".5", "y": ".5"}}
    prior = pf.Prior.from_mapping(rows, order=["x", "z", "y"])
    data = pf.calibrate(prior, 1).to_dict()
    pf.Plan.from_dict(data).verify(prior, other_prior=other_prior)
    data["support"]["names"] = ["x", "y", "z"]
    with pytest.raises(CheckFailed, match="support"):
        pf.Plan.from_dict(data).verify(prior, other_prior=other_prior)
