# SPDX-License-Identifier: Apache-2.0
"""The five mechanisms: reference values, their order, and that every scale is private."""

import itertools
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import pufferfish as pf
import pufferfish.calibration.l1
import pufferfish.calibration.one_sided
import pufferfish.calibration.relaxed
import pufferfish.calibration.roots
import pufferfish.calibration.wasserstein
from pufferfish.calibration import NOISE, REGISTRY, method_named
from pufferfish.calibration.certified import certified
from pufferfish.calibration.exact import exact
from pufferfish.calibration.registry import NoiseMethod
from pufferfish.calibration.roots import scale_of_sides, sides
from pufferfish.coupling import comonotone
from pufferfish.errors import InputError, PufferfishError
from pufferfish.loss import Attained
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.prior import Prior
from pufferfish.privacy import privacy_loss
from pufferfish.rationals import float_down
from pufferfish.scenario import Scenario
from slow import definitions, literal, strategies, values
from slow.digits import real

NAMES = ("exact", "one-sided", "relaxed", "wasserstein", "l1")
#: The references are rounded; see tests/slow/values.py.
BELOW, ABOVE = 2e-12, 1e-9


def scenario_of(case: strategies.Case) -> Scenario:
    return Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs)


REFERENCES = [
    pytest.param(reference, row, id=f"{reference.name}-{row.epsilon}")
    for reference in (*values.SMALL, *values.BLOCKS)
    for row in reference.rows
]


@pytest.mark.parametrize("reference, row", REFERENCES)
def test_reference_values(reference: values.Reference, row: values.Row) -> None:
    scenario = Scenario(Prior.from_mapping(reference.secrets), [reference.pair])
    for name, expected in values.scales(reference, row).items():
        plan = pf.calibrate(scenario, row.epsilon, name)
        assert plan.certificate.holds
        assert plan.loss <= float(Fraction(row.epsilon))
        if expected == 0:
            assert plan.scale == 0
        else:
            assert -BELOW <= plan.scale / expected - 1 <= ABOVE
    if row.loss_at_relaxed is not None:
        assert privacy_loss(scenario, values.scales(reference, row)["relaxed"]) == pytest.approx(
            row.loss_at_relaxed, rel=1e-10
        )
    assert privacy_loss(scenario, 0) == pytest.approx(reference.loss_unchanged, rel=1e-12)


def check_case(case: strategies.Case) -> None:
    """Order, privacy, and leastness of one scenario: the issue of everything here."""
    scenario = scenario_of(case)
    plans = {name: pf.calibrate(scenario, case.epsilon, name) for name in NAMES}
    scales = [plans[name].scale for name in NAMES]
    for smaller, larger in itertools.pairwise(scales):
        assert smaller <= larger * (1 + 1e-12)
    for plan in plans.values():
        assert plan.certificate.holds
        assert plan.loss <= plan.epsilon == float(case.epsilon)
    least = scales[0]
    if least > 0:
        shaved = DiscreteLaplace(least * (1 - 1e-6), scenario.lattice.step)
        certificate = pf.certify(scenario, shaved, case.epsilon)
        assert not certificate.holds
        assert certificate.decided


@given(strategies.cases())
def test_order_privacy_and_leastness(case: strategies.Case) -> None:
    check_case(case)


@given(strategies.large())
def test_order_privacy_and_leastness_on_larger_supports(case: strategies.Case) -> None:
    check_case(case)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(strategies.cases())
def test_order_privacy_and_leastness_ten_thousand_times(case: strategies.Case) -> None:
    check_case(case)


def check_definitions(case: strategies.Case) -> None:
    scenario = scenario_of(case)
    for name, expected in definitions.scales(case.priors, case.pairs, case.epsilon).items():
        scale = pf.calibrate(scenario, case.epsilon, name).scale
        if expected == 0:
            assert scale == 0
        else:
            assert -1e-13 <= scale / float(expected) - 1 <= 1e-9


@given(strategies.cases())
def test_scales_agree_with_the_definitions(case: strategies.Case) -> None:
    check_definitions(case)


def check_proposals(case: strategies.Case) -> None:
    """Each calibrator by itself, before the certificate mends anything: never below the truth."""
    scenario = scenario_of(case)
    for name, expected in definitions.scales(case.priors, case.pairs, case.epsilon).items():
        proposal = Fraction(method_named(name).calibrate(scenario, case.epsilon).scale)
        if isinstance(expected, Fraction):
            assert proposal >= expected
        else:
            assert real(proposal) >= expected


def check_sides(case: strategies.Case) -> None:
    """No side asks for less noise than its slow root."""
    scenario = scenario_of(case)
    below = float_down(case.epsilon)
    for view in scenario.views():
        prior = case.priors[view.adversary]
        given_x, given_other = definitions.pair_sides(
            prior, (view.first, view.second), case.epsilon
        )
        columns, rows = sides(comonotone(view), below)
        for u, expected in ((columns, given_other), (rows, given_x)):
            assert math.isinf(u) if expected == 0 else real(view.step / Fraction(u)) >= expected


@given(strategies.cases())
def test_proposals_are_never_below_the_definitions(case: strategies.Case) -> None:
    check_proposals(case)
    check_sides(case)


@settings(max_examples=10)
@given(strategies.large(max_atoms=60))
def test_proposals_on_larger_supports(case: strategies.Case) -> None:
    check_proposals(case)
    check_sides(case)


def some_cases(number: int = 25) -> list[strategies.Case]:
    """Two secrets with small counts, and an epsilon that is no double."""
    rng = random.Random(5)
    cases = []
    for _ in range(number):
        rows = [[rng.randint(1, 9) for _ in range(4)] for _ in "ab"]
        prior = definitions.from_counts({"a": rows[0], "b": rows[1]})
        cases.append(strategies.Case((prior,), (("a", "b"),), Fraction(rng.randint(1, 99), 997)))
    return cases


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, PufferfishError):
        return True
    return False


def test_mutant_sides_without_their_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = some_cases()
    for case in cases:
        check_sides(case)
    monkeypatch.setattr(pufferfish.calibration.roots, "_MARGIN", 0.0)
    assert any(fails(lambda case=case: check_sides(case)) for case in cases)


@pytest.mark.parametrize("name", ["l1", "wasserstein"])
def test_mutant_a_scale_rounded_to_the_nearest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = some_cases()
    for case in cases:
        check_proposals(case)
    module = getattr(pufferfish.calibration, name)
    monkeypatch.setattr(module, "scale_up", lambda scale, _epsilon: float(scale))
    assert any(fails(lambda case=case: check_proposals(case)) for case in cases)


@given(strategies.cases())
def test_many_pairs_need_what_the_worst_pair_needs(case: strategies.Case) -> None:
    scenario = scenario_of(case)
    for choose in (min, max):
        alone = [
            scale_of_sides(Scenario(prior, [pair]), case.epsilon, choose)
            for prior in scenario.priors
            for pair in scenario.pairs
        ]
        together = scale_of_sides(scenario, case.epsilon, choose)
        assert together == pytest.approx(max(alone), rel=1e-13)


@given(strategies.large())
def test_relaxed_agrees_with_a_literal_transcription(case: strategies.Case) -> None:
    scenario = scenario_of(case)
    # The transcription compares with e^epsilon in doubles: digits are lost as 1 / epsilon.
    epsilon = max(case.epsilon, Fraction(1, 100))
    expected = 0.0
    for view in scenario.views():
        common = math.lcm(view.total_first, view.total_second)
        first = view.counts_first.astype(np.int64) * (common // view.total_first)
        second = view.counts_second.astype(np.int64) * (common // view.total_second)
        points = view.index * float(scenario.lattice.step)
        expected = max(expected, literal.relaxed(points, first, second, float(epsilon)))
    found = pf.calibrate(scenario, epsilon, "relaxed").scale
    assert found == pytest.approx(expected, rel=1e-11)
    assert (found > 0) == (expected > 0)


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-9", "1", "1.01", "50", "1e6"])
def test_wasserstein_of_two_points_is_one_over_epsilon_rounded_up(epsilon: str) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    plan = pf.calibrate(scenario, epsilon, "wasserstein")
    exact_scale = 1 / Fraction(epsilon)
    assert Fraction(plan.scale) >= exact_scale
    assert Fraction(math.nextafter(plan.scale, 0)) < exact_scale
    least = pf.calibrate(scenario, epsilon, "exact")
    assert 0 <= Fraction(least.scale) / exact_scale - 1 <= 1e-14
    assert least.certificate.holds


@pytest.mark.parametrize("epsilon", [1, np.int64(1), np.float64(1), Decimal(1), "1", Fraction(1)])
def test_any_kind_of_epsilon(epsilon: object) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    assert pf.calibrate(scenario, epsilon, "wasserstein").scale == 1


def test_epsilon_one_third_is_exact() -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    assert pf.calibrate(scenario, "1/3", "wasserstein").scale == 3
    assert pf.calibrate(scenario, "1/3", "exact").scale == pytest.approx(3, rel=1e-14)


def test_all_pairs_unless_named() -> None:
    prior = Prior.from_mapping({"A": {0: 1}, "B": {1: 1}, "C": {2: 1}})
    assert pf.calibrate(Scenario(prior), 1, "wasserstein").scale == 2
    pairs = [("A", "B"), ("B", "C")]
    assert pf.calibrate(Scenario(prior, pairs), 1, "wasserstein").scale == 1
    assert pf.calibrate(prior, 1, "wasserstein").scale == 2


def test_several_adversaries_cost_what_the_worst_of_them_costs() -> None:
    one = Prior.from_mapping({"a": {0: ".5", 1: ".3", 2: ".2"}, "b": {0: ".2", 1: ".3", 2: ".5"}})
    other = Prior.from_mapping({"a": {0: 1}, "b": {0: ".99", 10: ".01"}})
    for name in NAMES:
        alone = [pf.calibrate(Scenario(p), ".5", name).scale for p in (one, other)]
        both = pf.calibrate(Scenario([one, other]), ".5", name).scale
        assert both == pytest.approx(max(alone), rel=1e-12)


def sides_chosen_last(scenario, epsilon, choose):  # type: ignore[no-untyped-def]
    """Mutant: the maximum over pairs of either side first, and the choice of a side last."""
    both = [sides(comonotone(view), float_down(epsilon)) for view in scenario.views()]
    step = scenario.lattice.step
    largest = [max(float(step) / u for u in side) for side in zip(*both, strict=True)]
    return choose(largest[0], largest[1])


def test_mutant_one_side_is_chosen_across_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": {0: 1}, "b": {0: ".99", 10: ".01"}, "c": {0: ".98", 10: ".02"}}
    prior = definitions.as_prior(rows)
    across_pairs = strategies.Case((prior,), (("a", "b"), ("c", "a")), Fraction(1))
    turned = {"a": prior["b"], "b": prior["a"]}
    alone = {secret: prior[secret] for secret in "ab"}
    across_adversaries = strategies.Case((alone, turned), (("a", "b"),), Fraction(1))
    for case in (across_pairs, across_adversaries):
        check_definitions(case)
        with monkeypatch.context() as patch:
            patch.setattr(pufferfish.calibration.one_sided, "scale_of_sides", sides_chosen_last)
            assert fails(lambda case=case: check_definitions(case))
            # Too much noise, but private: only the definitions tell.
            assert pf.calibrate(scenario_of(case), 1, "one-sided").certificate.holds


def test_a_dropped_direction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: only P_b / P_a counts. Its scale is smaller, and is not certified."""
    rare = Scenario(Prior.from_mapping({"a": {0: ".99", 10: ".01"}, "b": {0: 1}}), [("b", "a")])
    epsilon = Fraction(1, 200)
    honest = exact(rare, epsilon)

    def one_way(self, likelihoods):  # type: ignore[no-untyped-def]
        best, at = None, 0
        for k, (x, y) in enumerate(zip(*likelihoods[0], strict=True)):
            if best is None or (y / x) > best:
                best, at = y / x, k
        return best.log(), Attained(0, 1, 0, at)

    monkeypatch.setattr(pufferfish.precise.PreciseLoss, "_worst", one_way)
    monkeypatch.setattr(
        pufferfish.precise.PreciseLoss, "unchanged", lambda *_: (1.0, Attained(0, 1, 0, 0))
    )
    dropped = exact(rare, epsilon)
    monkeypatch.undo()
    assert dropped.scale < 0.7 * honest.scale
    assert not pf.certify(rare, dropped, epsilon).holds


def test_a_scale_rounded_down_is_raised_until_it_is_private() -> None:
    """Mutant: a calibrator that returns the double below 1 / epsilon."""
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    epsilon = Fraction(1, 3)
    down = DiscreteLaplace(math.nextafter(3.0, 0), Fraction(1))
    assert not pf.certify(scenario, down, epsilon).holds
    raised, certificate, notes = certified(scenario, down, epsilon, None)
    assert raised.scale >= 3.0
    assert certificate.holds
    assert notes == ()


def test_a_calibrator_that_is_far_off_is_an_error_and_never_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    broken = NoiseMethod("exact", "", "", lambda s, e: DiscreteLaplace(0.5, Fraction(1)))
    monkeypatch.setitem(REGISTRY, "exact", broken)
    with pytest.raises(PufferfishError, match="certified"):
        pf.calibrate(scenario, 1)
    unchanged = NoiseMethod("exact", "", "", lambda s, e: DiscreteLaplace(0.0, Fraction(1)))
    monkeypatch.setitem(REGISTRY, "exact", unchanged)
    with pytest.raises(PufferfishError, match="certified"):
        pf.calibrate(scenario, 1)


def test_a_slightly_raised_scale_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    low = NoiseMethod("exact", "", "", lambda s, e: DiscreteLaplace(1 - 1e-4, Fraction(1)))
    monkeypatch.setitem(REGISTRY, "exact", low)
    plan = pf.calibrate(scenario, 1)
    assert plan.scale >= 1
    assert any("raised" in note for note in plan.notes)


def test_identical_priors_need_no_noise() -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: ".5", 9: ".5"}, "b": {0: ".5", 9: ".5"}}))
    for name in ("wasserstein", "relaxed", "one-sided", "exact"):
        plan = pf.calibrate(scenario, ".1", name)
        assert plan.scale == 0
        assert plan.mse == 0
        assert plan.loss == 0
        assert plan.unchanged


def test_a_constant_column() -> None:
    scenario = Scenario(Prior.from_counts({"a": [3], "b": [4]}, support=[7]))
    for name in NAMES:
        assert pf.calibrate(scenario, "1e-9", name).scale == 0


def test_names_of_mechanisms() -> None:
    assert list(REGISTRY) == [*reversed(NAMES), "channel"]
    assert list(NOISE) == [*reversed(NAMES)]
    assert method_named("One_Sided").name == "one-sided"
    with pytest.raises(InputError, match="did you mean 'wasserstein'"):
        method_named("waserstein")
    with pytest.raises(InputError, match="by name"):
        method_named(3)  # type: ignore[arg-type]


def test_levels_without_an_order_are_refused() -> None:
    scenario = Scenario(Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}}))
    for name in NAMES:
        with pytest.raises(InputError, match="order"):
            pf.calibrate(scenario, 1, name)


def test_what_is_no_scenario_is_refused() -> None:
    with pytest.raises(InputError, match="dict was given"):
        pf.calibrate({"a": {0: 1}}, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_a_scale_that_overflows_is_refused(name: str) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {10**9: 1}}))
    with pytest.raises(InputError, match="the scale for epsilon 1e-303 overflows"):
        pf.calibrate(scenario, "1e-303", name)


def test_a_loss_never_reads_as_more_than_its_epsilon() -> None:
    """The double next to 7/10 lies below it, and the loss is 7/10 itself."""
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    for k in range(1, 100):
        epsilon = Fraction(k, 100)
        for name in ("wasserstein", "exact"):
            plan = pf.calibrate(scenario, epsilon, name)
            assert plan.certificate.holds
            assert plan.loss <= plan.epsilon


def uneven() -> Scenario:
    """Lines of many cells: Newton's method needs several steps."""
    rng = np.random.default_rng(6)
    alone = np.zeros(40, dtype=np.int64)
    alone[0] = 1
    return Scenario(
        Prior.from_counts({"a": alone, "b": rng.integers(1, 99, 40)}, support=np.arange(40))
    )


def test_a_root_that_is_not_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iterate of Newton's method from above is a scale that is not private."""
    scenario = uneven()
    monkeypatch.setattr(pufferfish.calibration.roots, "_MAX_STEPS", 1)
    with pytest.raises(PufferfishError, match="1 steps"):
        pf.calibrate(scenario, 1, "relaxed")


def test_a_condition_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(share, *_):  # type: ignore[no-untyped-def]
        return np.full(len(share), math.nan)

    scenario = uneven()
    monkeypatch.setattr(pufferfish.calibration.roots, "_logarithms", nowhere)
    with pytest.raises(PufferfishError, match="could not be evaluated"):
        pf.calibrate(scenario, 1, "relaxed")
