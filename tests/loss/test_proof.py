# SPDX-License-Identifier: Apache-2.0
"""What is proved of a loss, against the definitions; and mutants, on which the same checks fail."""

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import definitions
from channel_checks import beliefs
from definitions import M, real
from loss_cases import (
    EXTREME,
    kernel_of,
    known_people,
    noise,
    package_releases,
    package_scenario,
    scenario_of,
    scenario_of_case,
    scenario_of_region,
    true_joint_loss,
)
from pufferfish.errors import InputError
from pufferfish.loss import balls, certificate, kernel, problem, proof, rounding, support_function
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.proof import certify, loss_bound, privacy_loss, prove
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import make_lattice, make_levels
from strategies import Case, Released, Robust, cases, large, people, released, robust

ONE, HALF = Fraction(1), Fraction(1, 2)
THEORY = {"A": {0: ".5", 1: ".3", 2: ".2"}, "B": {0: ".2", 1: ".3", 2: ".5"}}
SCALES = st.sampled_from([1e-3, 0.1, 0.7, 1.0, 3.0, 50.0, 1e4, 1e9])


def assert_encloses(lower: object, upper: float, truth: object, digits: int = 40) -> None:
    """Both bounds hold; the truth is known to about 50 digits."""
    slack = M.mpf(10) ** -digits * (1 + abs(truth) if truth != M.inf else 1)
    assert (M.inf if lower is None else real(lower)) <= truth + slack
    assert truth <= real(upper) + slack


@pytest.fixture(params=["balls", "doubles"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything by balls, or everything in doubles that can be proved there."""
    monkeypatch.setattr(proof, "BALL_CELLS", 0 if request.param == "doubles" else 10**9)
    return request.param


# Reference values ---------------------------------------------------------------------------------

FILE = Path(__file__).parents[1] / "calibration" / "reference.json"
REFERENCE = [e for e in json.loads(FILE.read_text())["priors"] if "secrets" in e]


@pytest.mark.parametrize("entry", REFERENCE, ids=lambda entry: entry["name"])
def test_reference_scales_and_losses(entry: dict, arithmetic: str) -> None:
    """The references are rounded to 13 digits, to nearest."""
    scenario = scenario_of(entry["secrets"])
    for row in entry["results"]:
        scale, epsilon = float(row["exact"]), row["epsilon"]
        assert certify(scenario, scale * (1 + 1e-12), epsilon).holds
        if scale:
            refused = certify(scenario, scale * (1 - 1e-12), epsilon)
            assert refused.decided
            assert not refused.holds
        for scale, loss in ((row["relaxed"], "loss_at_relaxed"), (0, "loss_unchanged")):
            if row[loss] is not None:
                found = certify(scenario, float(scale))
                assert found.loss == pytest.approx(float(row[loss]), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("text", ["0.1", "1", "1/3", "1e6", "1e-9", "1e-300", "1e299"])
def test_loss_equal_to_epsilon_is_decided_by_exact_rationals(text: str, arithmetic: str) -> None:
    epsilon, scenario = Fraction(text), scenario_of({"A": {0: 1}, "B": {1: 1}})
    theta = float_up(1 / epsilon)
    certificate = certify(scenario, theta, epsilon)
    assert certificate.holds
    assert certificate.loss <= float(epsilon)
    if Fraction(theta) * epsilon == 1:  # the loss is epsilon, and no ball can tell
        assert certificate.method.endswith("+rational")
    below = certify(scenario, math.nextafter(theta, 0), epsilon)
    assert below.decided
    assert not below.holds


def test_one_pair_by_its_ball_another_one_by_the_distance(arithmetic: str) -> None:
    # (A, B) attains epsilon exactly, the other pairs stay below it but travel further.
    rows = {"A": {0: 1}, "B": {2: 1}, "C": {0: ".9", 2: ".09999", 4: ".00001"}}
    scenario = scenario_of(rows, pairs=[("A", "B"), ("A", "C")])
    assert certify(scenario, 2.0, 1).holds
    assert certify(scenario, 2.0, 1).loss == 1.0
    assert not certify(scenario, math.nextafter(2.0, 0), 1).holds
    rows = {"A": {0: 1}, "B": {2: 1}, "C": {0: ".5", 2: ".5"}, "D": {1: 1}}
    assert certify(scenario_of(rows), 2.0, 1).holds


NEAR_AND_FAR = (
    {"a": {0: ".6", 5: ".4"}, "b": {0: ".5", 5: ".5"}},
    {"a": {0: ".1", 5: ".9"}, "b": {0: ".2", 5: ".8"}},
)


def test_adversaries_are_not_mixed(arithmetic: str) -> None:
    # Both secrets look alike to either adversary, and different between the two of them.
    scenario = scenario_of({"a": {0: 1, 5: 0}, "b": {0: 1}}, {"a": {0: 0, 5: 1}, "b": {5: 1}})
    for scale in (0.0, 1.0):
        assert privacy_loss(scenario, scale=scale) == 0
    assert certify(scenario_of(*NEAR_AND_FAR), 2.0).witness.adversary == 1  # type: ignore[union-attr]  # there is one


def test_without_noise(arithmetic: str) -> None:
    scenario = scenario_of(THEORY)
    assert certify(scenario, 0, 1).holds
    leak = certify(scenario_of({"A": {0: 1}, "B": {0: ".5", 1: ".5"}}), 0, 10**6)
    assert leak.loss == leak.loss_at_least == math.inf
    assert leak.decided
    assert not leak.holds
    same = scenario_of({"A": THEORY["A"], "B": THEORY["A"]})
    assert certify(same, 0, "1e-300").loss == 0.0
    assert certify(same, 0, "1e-300").holds
    assert certify(same, 1.0, "1e-300").holds
    # ln 5/2 to 45 digits: only more bits tell it from the loss.
    digits = "0.916290731874155065183527211768011071450101220"
    assert certify(scenario, 0, Fraction(digits) + Fraction(1, 10**44)).holds
    assert not certify(scenario, 0, Fraction(digits) - Fraction(1, 10**44)).holds


def test_noise_on_another_lattice_is_no_better_than_the_value_itself() -> None:
    scenario = scenario_of({"A": {"0.25": 1}, "B": {"0.75": 1}})
    for step in (Fraction(1, 4), Fraction(1, 8)):
        assert certify(scenario, noise(10.0, step), 1).holds
    for step in (ONE, Fraction(1, 3)):
        refused = certify(scenario, noise(10.0, step), 1)
        assert not refused.holds
        assert not refused.decided  # what it tells may be less
        assert refused.loss == math.inf
    half = scenario_of({"A": {"0": ".5", ".5": ".5"}, "B": {"0": ".4", ".5": ".6"}})
    assert certify(half, noise(1.0), HALF).holds  # even the value itself is within epsilon


@pytest.mark.parametrize("exponent", [-300, -20, 20, 300])
def test_scales_of_every_size(exponent: int, arithmetic: str) -> None:
    theta = float(f"1e{exponent}")
    scenario = scenario_of({"a": {0: ".25", 3: ".75"}, "b": {0: ".5", 3: ".5"}, "c": {1: 1}})
    found = certify(scenario, theta)
    if exponent < 0:
        # At the output 3 all of c lies 2 away: the loss is 2 / theta + ln .75, and little more.
        assert found.loss_at_least == pytest.approx(2 / theta, rel=1e-12)
        assert found.loss == pytest.approx(2 / theta, rel=1e-12)
    else:
        assert 0 <= found.loss <= 4 / theta


def test_huge_whole_numbers() -> None:
    big = 10**400
    rows = {"a": [big, big + 1], "b": [2 * big, big]}
    scenario = Scenario(Prior.from_counts(rows, support=[2**70, 2**70 + 1]))
    for scale in (0.0, 1.0):
        found = certify(scenario, scale)
        truth = definitions.loss([definitions.from_counts(rows)], [("a", "b")], scale)
        assert_encloses(found.loss_at_least, found.loss, truth)
    assert certify(EXTREME, 1.0, "0.9").method == "ball"


def test_large_supports_are_proved_in_doubles_and_agree_with_balls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    counts = {s: rng.integers(0, 1000, 12_000) for s in "ab"}
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(12_000)))
    for scale in (0.2, 7.0, 300.0):
        fast = certify(scenario, scale)
        assert fast.method == "float-bound"
        assert fast.error_bound is not None
        assert fast.error_bound < 1e-11
        with monkeypatch.context() as patch:
            patch.setattr(proof, "BALL_CELLS", 10**9)
            slow = certify(scenario, scale)
        assert slow.method == "ball"
        assert fast.loss_at_least <= slow.loss_at_least <= slow.loss <= fast.loss
        # Where doubles cannot decide, balls do.
        near = Fraction(slow.loss)
        assert certify(scenario, scale, near + Fraction(1, 10**20)).method == "ball"
        assert certify(scenario, scale, near + Fraction(1, 10**20)).holds


# Definitions --------------------------------------------------------------------------------------


def check_loss(case: Case, scale: float) -> None:
    """Bounds hold the true loss and meet; epsilon is decided rightly."""
    scenario = scenario_of_case(case)
    truth = definitions.loss(case.priors, case.pairs, scale)
    found = certify(scenario, scale)
    assert_encloses(found.loss_at_least, found.loss, truth)
    reach = float(definitions.diameter(case.priors, case.pairs)) / scale if scale else 0
    slack = 1e-15 if found.method.startswith("ball") else 3e-12 + 1e-15 * reach
    assert found.loss - found.loss_at_least <= slack * (1 + found.loss) or truth == M.inf
    judged = certify(scenario, scale, case.epsilon)
    assert judged.decided
    assert judged.holds == (truth <= real(case.epsilon) + M.mpf(10) ** -45)
    assert judged.loss <= float(case.epsilon) or not judged.holds


def in_doubles(case: Case, scale: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "BALL_CELLS", 0)
        check_loss(case, scale)


@given(cases(), SCALES | st.just(0.0))
def test_balls_enclose_the_definition(case: Case, scale: float) -> None:
    check_loss(case, scale)


@given(cases(), SCALES)
def test_doubles_enclose_the_definition(case: Case, scale: float) -> None:
    in_doubles(case, scale)


@given(large(max_atoms=60), SCALES)
@settings(max_examples=10)
def test_larger_supports_enclose_the_definition(case: Case, scale: float) -> None:
    check_loss(case, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "WIDTH", 4)
        in_doubles(case, scale)


@pytest.mark.slow
@given(cases(), SCALES)
@settings(max_examples=600)
def test_losses_often(case: Case, scale: float) -> None:
    check_loss(case, scale)


@given(cases(max_atoms=4, max_secrets=3), st.sampled_from([0.3, 1.0, 5.0]))
@settings(max_examples=20)
def test_no_output_tells_more_than_an_atom(case: Case, scale: float) -> None:
    assert (
        definitions.dense_loss(case.priors, case.pairs, scale, 3)
        <= M.mpf(privacy_loss(scenario_of_case(case), scale=scale)) + M.mpf(10) ** -40
    )


@given(cases(), SCALES, st.floats(1.0001, 3))
def test_the_loss_never_rises_with_the_scale(case: Case, scale: float, factor: float) -> None:
    scenario = scenario_of_case(case)
    assert certify(scenario, scale * factor).loss_at_least <= certify(scenario, scale).loss


@given(cases(), SCALES, st.permutations("vwxyz"), st.integers(-50, 50))
def test_relabelling_and_shifting_change_nothing(
    case: Case, scale: float, names: list[str], shift: int
) -> None:
    new = dict(zip("abcde", names, strict=True))
    moved = tuple(
        {new[s]: {x + shift: p for x, p in row.items()} for s, row in prior.items()}
        for prior in case.priors
    )
    pairs = tuple((new[b], new[a]) for a, b in case.pairs)
    one = certify(scenario_of_case(case), scale)
    other = certify(scenario_of_case(Case(moved, pairs, case.epsilon)), scale)
    assert (one.loss_at_least, one.loss) == (other.loss_at_least, other.loss)


# Several releases ---------------------------------------------------------------------------------


def check_released(case: Released) -> None:
    scenario, applied, truth = package_scenario(case), package_releases(case), true_joint_loss(case)
    for cells in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(proof, "BALL_CELLS", cells)
            found = loss_bound(scenario, applied)
        assert_encloses(found.lower, found.value, truth)
        assert truth == M.inf or found.value - found.lower <= 1e-11 * (1 + found.value)
    searched = RateLoss(scenario, {}, applied).worst(1.0)[0]
    assert searched == pytest.approx(float(truth), rel=1e-12, abs=1e-13)


@given(released())
@settings(max_examples=40)
def test_several_releases_enclose_the_definition(case: Released) -> None:
    check_released(case)


@pytest.mark.slow
@given(released(max_columns=3))
@settings(max_examples=200)
def test_several_releases_often(case: Released) -> None:
    check_released(case)


def test_outputs_that_nobody_causes_do_not_count(arithmetic: str) -> None:
    rows = {"A": [[1, 0], [0, 2]], "B": [[2, 0], [0, 1]]}
    scenario = Scenario(Prior.from_counts(rows, support={"x": [0, 1], "z": [0, 1]}))
    both = {0: [noise(0.0)], 1: [noise(0.0)]}
    assert loss_bound(scenario, both).value == pytest.approx(math.log(2), rel=1e-12)


def test_outputs_of_all_releases_are_named() -> None:
    scenario = scenario_of({"a": {"x": ".9", "y": ".1"}, "b": {"x": ".1", "y": ".9"}})
    channel = Channel(scenario.support, make_levels(["p", "q"]), [[3, 1], [1, 3]])
    found = prove(scenario, {0: [channel, channel]}, None)
    assert found.witness is not None
    assert found.witness.outputs in {("p", "p"), ("q", "q")}
    assert found.method == "exact"
    witness = certify(scenario_of(THEORY), 1.06).witness
    assert witness is not None
    assert (witness.outputs, witness.pair) == (("0",), ("A", "B"))


def test_a_channel_needs_a_row_for_every_value() -> None:
    scenario = scenario_of({"a": {0: ".5", 1: ".5"}, "b": {0: ".5", 2: ".5"}})
    short = Channel(make_lattice([Fraction(0), Fraction(1)]), make_levels(["p"]), [[1], [1]])
    with pytest.raises(InputError, match="no row for '2'"):
        certify(scenario, short)
    levels = Channel(make_levels(["0", "1", "2"]), make_levels(["p"]), [[1], [1], [1]])
    with pytest.raises(InputError, match="both be for numbers"):
        certify(scenario, levels)
    with pytest.raises(InputError, match="order"):
        certify(scenario_of({"a": {"x": 1}, "b": {"y": 1}}), noise(1.0))


@pytest.mark.parametrize("scale", [-1, "x", math.nan, None])
def test_wrong_scales(scale: object) -> None:
    with pytest.raises(InputError, match="scale"):
        privacy_loss(scenario_of(THEORY), scale=scale)  # type: ignore[arg-type]  # wrong on purpose


def test_grids_that_are_too_large_take_worst_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_of(THEORY)
    with monkeypatch.context() as patch:
        patch.setattr(problem, "LARGEST_GRID", 2)
        found = prove(scenario, {0: [noise(4.0)]}, HALF)
        assert found.method == "none"
        assert found.holds
        assert found.loss == 0.5
        assert not prove(scenario, {0: [noise(3.9)]}, HALF).decided
        with pytest.raises(kernel.GridTooLarge):
            loss_bound(scenario, {0: [noise(4.0)]})
    # Noise and a channel of one column are not proved together for a region.
    robust = Scenario(EXTREME.priors[0].with_region(tv_radius=".1"))
    channel = Channel(robust.support, robust.support, [[3, 1, 1], [1, 3, 1], [1, 1, 3]])
    assert prove(robust, {0: [noise(1.0), channel]}, None).method == "none"
    # Small enough to be worked out, but not to be proved: for doubles the masses are too extreme.
    monkeypatch.setattr(proof, "_LAST_BALL_CELLS", 10)
    assert prove(EXTREME, {0: [noise(4.0)]}, HALF).method == "ball"
    monkeypatch.setattr(proof, "BALL_CELLS", 0)
    monkeypatch.setattr(proof, "_LAST_BALL_CELLS", 0)
    assert prove(EXTREME, {0: [noise(4.0)]}, HALF).loss == 0.5
    assert prove(EXTREME, {0: [noise(4.0)]}, HALF).method == "none"


# Regions ------------------------------------------------------------------------------------------


def check_region(case: Robust, scale: float | list[list[int]]) -> None:
    scenario = scenario_of_region(case)
    values = [Fraction(x) for x in case.support]
    if isinstance(scale, list):
        outputs = make_lattice(map(Fraction, range(len(scale[0]))))
        mechanism: Any = Channel(scenario.support, outputs, scale[: len(values)])
    else:
        mechanism = noise(scale)
    kernel_ = kernel_of(mechanism, values)
    truth = definitions.region_loss(beliefs(scenario), case.pairs, kernel_, values)
    found = certify(scenario, mechanism)
    assert_encloses(found.loss_at_least, found.loss, truth)
    assert found.loss - found.loss_at_least <= 1e-15 * found.loss + 1e-30 or truth == M.inf
    loss = RateLoss(scenario, {}, {0: [mechanism]})
    value, witness = loss.worst(1.0)
    assert value == pytest.approx(float(truth), rel=1e-11, abs=1e-12)
    if witness and math.isfinite(value):
        assert loss.at(witness, 1.0)[0] == pytest.approx(value, rel=1e-10, abs=1e-12)


ROW = st.tuples(st.sampled_from([1, 5]), *[st.sampled_from([0, 1, 4, 30])] * 2).map(list)
HOW = st.sampled_from([0.0, 0.3, 1.0, 4.0, 30.0]) | st.lists(ROW, min_size=5, max_size=5)


@given(robust(), HOW)
@settings(max_examples=40)
def test_regions_enclose_every_extreme_distribution(case: Robust, how: object) -> None:
    check_region(case, how)  # type: ignore[arg-type]  # mixed kinds


@pytest.mark.slow
@given(robust(most=5), HOW)
@settings(max_examples=100)
def test_regions_often(case: Robust, how: object) -> None:
    check_region(case, how)  # type: ignore[arg-type]  # mixed kinds


def test_a_robust_loss_that_equals_epsilon_is_decided_in_rationals() -> None:
    prior = Prior.from_counts({"a": [3, 0, 1], "b": [1, 1, 4]}, support=[0, 1, 3])
    anything = Scenario(prior.with_region(tv_radius=1))
    equal = certify(anything, 6.0, HALF)
    assert equal.holds
    assert equal.method == "ball+rational"
    short = certify(anything, math.nextafter(6.0, 0), HALF)
    assert short.decided
    assert not short.holds


# Rows of one person -------------------------------------------------------------------------------

VALUES = (0, 1, 3)


def one_column(everybody: Mapping[str, Sequence[tuple[int, ...]]]) -> definitions.People:
    return {s: [[(x,) for x in own] for own in each] for s, each in everybody.items()}


def check_people(everybody: Mapping[str, Sequence[tuple[int, ...]]], scale: float) -> None:
    scenario = known_people(one_column(everybody), VALUES)
    kernel_ = kernel_of(noise(scale), [Fraction(x) for x in VALUES])
    truth = definitions.people_loss(one_column(everybody), [(0, kernel_)])
    found = loss_bound(scenario, {0: [noise(scale)]})
    assert_encloses(found.lower, found.value, truth)
    assert truth == M.inf or found.value - found.lower <= 1e-14 * (1 + found.value)
    judged = prove(scenario, {0: [noise(scale)]}, Fraction(2))
    if abs(truth - 2) > M.mpf(10) ** -45:  # several axes: no ball can tell a tie
        assert judged.holds == (truth < 2)
    assert judged.rows == tuple(sorted({len(own) for each in everybody.values() for own in each}))
    if scale:
        loss = RateLoss(scenario, {0: ONE})
        assert loss.worst(1 / scale)[0] == pytest.approx(float(truth), rel=1e-12, abs=1e-13)


@given(people(), st.sampled_from([0.0, 0.5, 2.0, 10.0]))
@settings(max_examples=25)
def test_rows_of_one_person_enclose_the_definition(
    everybody: dict[str, list[tuple[int, ...]]], scale: float
) -> None:
    check_people(everybody, scale)


def test_very_many_people_of_one_row_are_single_rows() -> None:
    values = range(9_000)  # NumPy's own unravel_index is wrong beyond 8,192
    each = {"a": [[(x,)] for x in values], "b": [[(x,)] for x in values] + [[(8_999,)]] * 9}
    scenario = known_people(each, values)
    found = [own.points[1].masses for own in problem.problems_of(scenario, {0: [noise(1.0)]})[0]]
    assert len(found) == 2
    assert all(own.tolist() == [1] * 8_999 + [10] for own in found)


def test_people_that_only_one_secret_has_count_with_the_worst_case() -> None:
    everybody = {"a": [(0,), (1,), (0, 1, 1)], "b": [(0,), (1,)]}
    scenario = known_people(one_column(everybody), VALUES)
    found = loss_bound(scenario, {0: [noise(6.0)]})
    assert found.upper == 3 * Fraction(3, 6)
    assert (found.kind, found.rows) == ("worst-case sum", 3)
    assert RateLoss(scenario, {0: ONE}).unknown == 3
    assert prove(scenario, {0: [noise(6.0)]}, Fraction(3, 2)).holds


def test_people_whose_grid_is_too_large_count_with_the_worst_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everybody = {"a": [(0,), (0, 1), (1, 3)], "b": [(1,), (3, 1), (1, 1)]}
    scenario = known_people(one_column(everybody), VALUES)
    assert loss_bound(scenario, {0: [noise(6.0)]}).upper < 1  # type: ignore[operator]  # finite here
    for owner, name, cells in ((problem, "LARGEST_STRATUM", 6), (proof, "_LAST_BALL_CELLS", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, cells)
            assert loss_bound(scenario, {0: [noise(6.0)]}).upper == 1


# Mutants ------------------------------------------------------------------------------------------


def case_of(*priors: Mapping[str, Mapping[Any, Any]]) -> Case:
    return Case(tuple(map(definitions.as_prior, priors)), (("a", "b"),), HALF)


LEFT_HEAVY, UNEVEN = (
    case_of({"a": {0: ".7", 1: ".1", far: ".2"}, "b": {0: ".1", 1: ".2", far: ".7"}})
    for far in (4, 99)
)
ONE_WAY = case_of({"a": {0: ".999", 1: ".001"}, "b": {0: ".5", 1: ".5"}})


def caught(check: Callable[[], None], name: str, owner: object, mutant: object) -> None:
    """The check passes, and fails with the mutant in the place of the honest one."""
    check()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, mutant)
        with pytest.raises(AssertionError):
            check()


def test_mutant_a_pass_that_drops_one_direction() -> None:
    def left_only(self: balls._Pass, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left, right = honest(self, masses)
        return left, right * 0

    honest = balls._Pass.sides
    caught(lambda: check_loss(UNEVEN, 2.0), "sides", balls._Pass, left_only)
    scan = rounding.scan

    def forwards(*args: object, inclusive: bool) -> np.ndarray:
        passed = scan(*args, inclusive=inclusive)  # type: ignore[arg-type]  # mixed kinds
        return passed if inclusive else passed * 0

    caught(lambda: in_doubles(LEFT_HEAVY, 2.0), "scan", rounding, forwards)


def test_mutant_one_direction_of_a_pair() -> None:
    one_way = property(lambda self: [([0], [1])])
    for check in (check_loss, in_doubles):
        caught(partial(check, ONE_WAY, 1.0), "comparisons", problem.Problem, one_way)


def test_mutant_adversaries_mixed() -> None:
    def mixed(self: Scenario) -> tuple:
        sets = honest.func(self)
        return tuple((one[0], other[1]) for one, other in zip(sets, sets[::-1], strict=True))

    honest = vars(Scenario)["sets"]
    lie = property(mixed)
    caught(lambda: check_loss(case_of(*NEAR_AND_FAR), 1.0), "sets", Scenario, lie)


def test_mutant_a_region_on_the_atoms_of_the_pair_only() -> None:
    rule = ("tv_radius", ".1")
    case = Robust((0, 1, 9), ({"a": [5, 4, 0], "b": [4, 5, 0]},), (("a", "b"),), rule)

    def cut(scenario: Scenario, releases: object) -> tuple[list, int]:
        prior = scenario.priors[0]
        used = prior.counts.any(axis=0)
        rows = {s: prior.counts[prior.row(s)][used] for s in prior.secrets}
        near = Prior.from_counts(
            rows, support=[x for x, k in zip(case.support, used, strict=True) if k]
        )
        return honest(Scenario(near.with_region(tv_radius=".1")), releases)  # type: ignore[arg-type]  # mixed kinds

    honest = problem.problems_of
    caught(lambda: check_region(case, 1.0), "problems_of", proof, cut)


def test_mutant_the_other_way_round_in_a_region() -> None:
    case = Robust(
        (0, 1, 3), ({"a": [5, 4, 3], "b": [4, 5, 1]},), (("a", "b"),), ("confidence", ".5")
    )

    def swapped(region: support_function.Region, places: np.ndarray) -> tuple:
        return honest(region, places)[::-1]

    honest = support_function.extremes
    caught(lambda: check_region(case, 1.0), "extremes", balls, swapped)
    columns = support_function.column_extremes
    rows = [[1, 4, 1], [5, 1, 1], [2, 2, 1]]
    caught(
        lambda: check_region(case, rows),
        "column_extremes",
        support_function,
        lambda region, column: columns(region, column)[::-1],
    )


def test_mutant_rounded_down() -> None:
    caught(lambda: check_loss(LEFT_HEAVY, 2.0), "float_up", certificate, proof.float_down)

    def down(ratio: arb) -> tuple[Fraction, Fraction | None]:
        lower, upper = honest(ratio)
        return lower, upper if upper is None else lower * (1 - Fraction(1, 2**50))

    honest = balls.log_ends
    caught(lambda: check_loss(LEFT_HEAVY, 2.0), "log_ends", proof, down)


def test_mutant_a_float_bound_without_its_error() -> None:
    def none(problem_: object, any_rate: bool = False) -> float:
        return 0.0

    rng = np.random.default_rng(5)
    made = []
    for _ in range(20):
        rows = {s: rng.integers(10_000, 10_003, 40).tolist() for s in "ab"}
        made.append(Case((definitions.from_counts(rows),), (("a", "b"),), HALF))

    def check() -> None:
        for case in made:
            in_doubles(case, 1.7)

    caught(check, "error_bound", rounding, none)


def test_mutant_merged_by_the_smallest_noise_alone() -> None:
    case = Released(
        ((Fraction(0), Fraction(1)),),
        ({"a": {(Fraction(0),): 1}, "b": {(Fraction(0),): 1, (Fraction(1),): 1}},),
        (("a", "b"),),
        ((0, 1.0), (0, 2.5)),
    )

    def least(*args: object) -> kernel.Axis:
        axis = honest(*args)  # type: ignore[arg-type]  # mixed kinds
        rates = [1 / Fraction(m.scale) for m in axis.mechanisms if isinstance(m, DiscreteLaplace)]
        return replace(axis, rate=max(rates))

    honest = problem.axis_of
    caught(lambda: check_released(case), "axis_of", problem, least)


def test_mutant_rows_of_one_person_taken_one_by_one() -> None:
    everybody = {"a": [(0, 1), (1, 0)], "b": [(0, 0), (1, 1)]}

    def rows_only(scenario: Scenario, releases: object) -> tuple[list, int]:
        problems, _ = honest(scenario, releases)  # type: ignore[arg-type]  # mixed kinds
        return problems[:1], 0

    honest = problem.problems_of
    caught(lambda: check_people(everybody, 2.0), "problems_of", proof, rows_only)


# Threads ------------------------------------------------------------------------------------------


def test_all_threads_at_once() -> None:
    scenario = scenario_of(THEORY)
    epsilons = [Fraction(1, 10**k) for k in (0, 3, 12, 40)]

    def work() -> list[Certificate]:
        return [certify(scenario, float_up(2 / epsilon), epsilon) for epsilon in epsilons]

    before, alone, answers = (ctx.prec, ctx.cap), work(), []
    threads = [threading.Thread(target=lambda: answers.append(work())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone] * 6
    assert (ctx.prec, ctx.cap) == before


@pytest.mark.parametrize("t", [10**6, 10**19, 10**21, 10**700])
def test_exponentials_at_every_distance(t: int) -> None:
    with balls.precision(128):
        value = balls.exp_minus(Fraction(t, 7))
        assert value.rel_accuracy_bits() > 110
        assert (-value.log()).overlaps(arb(t) / 7)
