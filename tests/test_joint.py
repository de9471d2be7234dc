# SPDX-License-Identifier: Apache-2.0
"""The joint loss of several releases: against brute force, against theory, against mutants."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from joint_cases import Case, cases
from pufferfish.calibration.exact import exact
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError
from pufferfish.joint import (
    Axis,
    DoesNotFit,
    GridTooLarge,
    Known,
    Reach,
    balls,
    common_scale,
    fast,
    fit,
    floatproof,
    grid_size,
    joint_loss_of,
    least_scales,
    next_scale,
    problem,
    scaled,
    smallest_bound,
    worst_case,
)
from pufferfish.joint import axes as axes_module
from pufferfish.joint import loss as loss_module
from pufferfish.joint.fast import FastLoss
from pufferfish.joint.problem import make_problem
from pufferfish.joint.scaled import enclose_scaled
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.support import Lattice, make_lattice, make_levels
from slow.digits import M

ONE = Fraction(1)
PAIR = [(0, 1)]
#: The two columns of theory, section 6: rows (0,0), (1,1) under A, and (0,1), (1,0) under B.
CROSSED = [np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])]
#: A = {0: 1}, B = {0: .99, 10: .01}.
LONELY = [np.array([[100, 0], [99, 1]])]


def numbers(*values: int) -> Lattice:
    return make_lattice(map(Fraction, values), ONE)


BIT = numbers(0, 1)
TEN = numbers(0, 10)


def noise(scale: float) -> DiscreteLaplace:
    return DiscreteLaplace(scale, ONE)


def flip(keep: int, of: int) -> Channel:
    return Channel.of(BIT, BIT, [[keep, of - keep], [of - keep, keep]])


# --- Theory's numbers


@pytest.mark.parametrize(
    "scale, times, loss",
    [
        (4.0919340115, 1, 0.1),
        (4.0919340115, 2, 0.840),
        (4.0919340115, 5, 7.61),
        (6.36623, 2, 0.2),
    ],
)
def test_releases_of_one_column(scale: float, times: int, loss: float) -> None:
    found = joint_loss_of(LONELY, [Axis(TEN, (noise(scale),) * times)], PAIR, [[100, 100]])
    assert float(found) == pytest.approx(loss, abs=5 * 10.0 ** -len(f"{loss}".split(".")[1]) / 10)
    assert found.lower <= found.value <= found.lower * (1 + 4e-16)
    assert found.method == "ball"
    assert found.exact


def test_scales_for_several_releases_of_one_column() -> None:
    prior = pf.Prior.from_counts({"A": [100, 0], "B": [99, 1]}, support=[0, 10])
    star = exact(pf.Scenario(prior), Fraction(1, 10)).scale
    assert star == pytest.approx(4.0919340115, abs=5e-11)
    both = common_scale(exact(pf.Scenario(prior), Fraction(1, 5)).scale, 2)
    assert both == pytest.approx(6.36623, abs=5e-6)
    axis = Axis(TEN, (noise(both), noise(both)))
    assert joint_loss_of(LONELY, [axis], PAIR).at_most(Fraction(1, 5))
    less = noise(both * (1 - 1e-12))
    assert not joint_loss_of(LONELY, [Axis(TEN, (less, less))], PAIR).at_most(Fraction(1, 5))


def test_two_columns_that_are_nothing_alone() -> None:
    out, silent = Axis(BIT, (noise(0.0),)), Axis(BIT)
    for axes in ([out, silent], [silent, out]):
        alone = joint_loss_of(CROSSED, axes, PAIR)
        assert (alone.value, alone.lower, alone.exact) == (0.0, 0.0, True)
    together = joint_loss_of(CROSSED, [out, out], PAIR)
    assert together.value == math.inf
    assert together.witness is not None
    assert together.witness.outputs in {(("0",), ("0",)), (("1",), ("1",))}
    assert together.witness.pair == (0, 1)
    with pytest.raises(DoesNotFit):
        least_scales(CROSSED, [out, out], PAIR, [(0, ONE)], Fraction(5))


def test_nothing_released() -> None:
    nothing = joint_loss_of(CROSSED, [Axis(BIT), Axis(BIT)], PAIR)
    assert (nothing.value, nothing.lower, nothing.method) == (0.0, 0.0, "none")
    assert smallest_bound([Axis(BIT), Axis(BIT)]).value == 0.0


def test_equal_secrets_lose_exactly_nothing() -> None:
    masses = [np.array([[[1, 2], [3, 4]], [[2, 4], [6, 8]]])]
    axes = [Axis(BIT, (noise(1.0), flip(2, 3))), Axis(BIT, (flip(3, 4),))]
    assert joint_loss_of(masses, axes, PAIR).upper == 0
    # Unequal masses that a channel makes equal, but not if the other column is seen as well.
    blind = Channel.of(BIT, BIT, [[1, 1], [1, 1]])
    masses = [np.array([[[1, 2], [3, 4]], [[3, 4], [1, 2]]])]
    assert joint_loss_of(masses, [Axis(BIT, (blind,)), Axis(BIT, (noise(1.0),))], PAIR).upper == 0
    assert (
        joint_loss_of(masses, [Axis(BIT, (flip(2, 3),)), Axis(BIT, (noise(1.0),))], PAIR).lower > 0
    )


# --- Brute force


def mismatches(examples: Iterable[Case], tolerance: float = 1e-12) -> list[str]:
    """What is wrong with the joint loss and its bounds, against brute force."""
    wrong = []
    for number, case in enumerate(examples):
        truth = case.loss()
        found = joint_loss_of(case.masses, case.axes, case.pairs)
        slack = M.mpf(tolerance) * max(1, truth) if truth != M.inf else 0
        if truth == M.inf or truth == 0:
            if not found.value == truth == found.lower:
                wrong.append(f"{number}: {found.value} for {truth}")
            if truth == M.inf:
                continue
        if not (abs(found.value - truth) <= slack and abs(found.lower - truth) <= slack):
            wrong.append(f"{number}: [{found.lower}, {found.value}] for {truth}")
        if found.witness is None and truth != 0:
            wrong.append(f"{number}: no witness")
    return wrong


FEW = list(cases(60))


def test_equals_brute_force() -> None:
    examples = list(cases(500))
    assert mismatches(examples) == []
    losses = [case.loss() for case in examples]
    # The scenarios are varied enough to mean something.
    assert sum(loss == M.inf for loss in losses) > 40
    assert sum(loss == 0 for loss in losses) > 10
    assert sum(0 < loss < M.inf for loss in losses) > 250
    kinds = [{scale is None for scale in case.scales} for case in examples]
    assert min(kinds.count({True}), kinds.count({False}), kinds.count({True, False})) > 30
    assert sum(any(len(axis.releases) > 1 for axis in case.axes) for case in examples) > 200


def test_bounds_hold_the_loss_to_the_last_digit() -> None:
    for case in cases(80, seed=9):
        truth = case.loss_at_the_doubles()
        for method in ("ball", "float-bound"):
            found = joint_loss_of(case.masses, case.axes, case.pairs, method=method)
            # Equal but for the 50 digits.
            assert found.lower <= truth + M.mpf(10) ** -40
            assert truth - M.mpf(10) ** -40 <= found.value
            if truth != M.inf:
                assert found.value - found.lower <= (1e-15 if method == "ball" else 1e-12) * max(
                    1, found.value
                )
            assert found.method.startswith((method, "exact", "none"))
        if truth != M.inf:
            own = enclose_scaled(make_problem(case.masses, case.axes, case.pairs))
            assert own.lower <= truth + M.mpf(10) ** -40
            assert truth - M.mpf(10) ** -40 <= own.upper
            assert own.upper - own.lower <= 1e-13 * max(1, own.upper)


def test_doubles_agree_with_balls() -> None:
    for case in FEW:
        found = joint_loss_of(case.masses, case.axes, case.pairs)
        peak = FastLoss(make_problem(case.masses, case.axes, case.pairs)).at()
        assert peak.value == pytest.approx(found.value, rel=1e-12, abs=1e-13)


def test_bounds_are_never_below_the_loss() -> None:
    rng = np.random.default_rng(5)
    mixed = worst = 0
    for case in cases(500, seed=6):
        truth = case.loss()
        columns = range(len(case.axes))
        whole = Known(tuple(columns), case.masses, case.pairs)
        some = sorted(rng.choice(len(case.axes), int(rng.integers(1, len(case.axes) + 1)), False))
        others = tuple(c + 1 for c in columns if c not in some)
        part = Known(
            tuple(int(c) for c in some), [m.sum(axis=others) for m in case.masses], case.pairs
        )
        sizes = [grid_size(case.axes)]
        for knowns in ([], [part], [whole], [part, whole]):
            for limit in (*sizes, int(rng.integers(1, sizes[0] + 1))):
                bound = smallest_bound(case.axes, knowns, limit=limit)
                assert bound.value >= truth * (1 - M.mpf(10) ** -14)
                mixed += bound.name == "joint loss + worst cases" and bound.value < math.inf
                worst += bound.name == "worst-case sum" and bound.value < math.inf
                if whole in knowns and limit == sizes[0] and truth != M.inf:
                    assert bound.value <= truth * (1 + M.mpf(10) ** -12) + M.mpf(10) ** -13
    assert mixed > 50
    assert worst > 50


def test_pairs_are_one_adversary_s_own() -> None:
    # Never the largest of one adversary over the smallest of another.
    masses = [np.array([[3, 1], [2, 1]]), np.array([[1, 1], [1, 2]])]
    axis = Axis(BIT, (noise(2.0),))
    both = joint_loss_of(masses, [axis], PAIR)
    alone = [joint_loss_of([m], [axis], PAIR) for m in masses]
    assert both.value == max(a.value for a in alone)
    assert both.witness is not None
    assert both.witness.adversary == max((0, 1), key=lambda k: alone[k].value)


def test_many_secrets_take_the_largest_over_the_smallest() -> None:
    rng = np.random.default_rng(8)
    masses = [rng.integers(0, 20, (5, 4, 3)) for _ in range(2)]
    axes = [Axis(numbers(0, 1, 3, 7), (noise(2.0),)), Axis(numbers(0, 1, 2), (noise(1.5),))]
    every = list(combinations(range(5), 2))
    found = joint_loss_of(masses, axes, every)
    each = [joint_loss_of(masses, axes, [pair]) for pair in every]
    assert found.value == pytest.approx(max(e.value for e in each), rel=1e-15)
    best = max(each, key=lambda e: e.value)
    assert found.witness == best.witness
    doubles = FastLoss(make_problem(masses, axes, every)).at()
    assert doubles.value == pytest.approx(found.value, rel=1e-13)
    bound = joint_loss_of(masses, axes, every, method="float-bound")
    assert bound.lower <= found.lower <= found.value <= bound.value
    assert bound.witness == found.witness


# --- Mutants


def drop_last_axis(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(masses: Any, axes: list[Axis], *rest: Any) -> Any:
        released = [k for k, axis in enumerate(axes) if axis.releases]
        if len(released) > 1:
            axes = [
                Axis(a.support, () if k == released[-1] else a.releases) for k, a in enumerate(axes)
            ]
        return original(masses, axes, *rest)

    return mutant


def add_scales(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(axis: Axis, atoms: Any) -> Any:
        found = original(axis, atoms)
        scales = [Fraction(r.scale) for r in axis.releases if isinstance(r, DiscreteLaplace)]
        return replace(found, rate=1 / sum(scales)) if found.noisy else found

    return mutant


def largest_scale_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(axis: Axis, atoms: Any) -> Any:
        found = original(axis, atoms)
        scales = [Fraction(r.scale) for r in axis.releases if isinstance(r, DiscreteLaplace)]
        return replace(found, rate=1 / max(scales)) if found.noisy else found

    return mutant


def one_way_noise(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(values: Any, index: Any, rate: Fraction) -> Any:
        inner = len(values) // len(index)
        halved = list(values)
        for k in range(1, len(index)):
            factor = balls.exp_minus(int(index[k] - index[k - 1]) * rate)
            for r in range(inner):
                halved[k * inner + r] += halved[(k - 1) * inner + r] * factor
        return halved

    return mutant


def one_sign(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(one: Any, other: Any, pair: Any, rho: int) -> Any:
        ratios = [
            a / b if not a.is_zero() else balls.arb(1) for a, b in zip(one, other, strict=True)
        ]
        lower, upper, at = balls._largest(ratios)
        return balls.Enclosure(lower, upper, at, pair, rho)

    return mutant


def first_channel_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def mutant(channels: Any, places: Any) -> Any:
        columns, outputs = original(channels[:1], places[:1])
        return columns, [output + (0,) * (len(channels) - 1) for output in outputs]

    return mutant


def weights_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda channels, places: [1] * len(places[0])


MUTANTS = [
    (loss_module, "make_problem", drop_last_axis),
    (problem, "merged", add_scales),
    (problem, "merged", largest_scale_only),
    (balls, "_noise", one_way_noise),
    (balls, "_pair", one_sign),
    (axes_module, "_product", first_channel_only),
]


@pytest.mark.parametrize("module, name, mutate", MUTANTS)
def test_mutants_are_caught(
    module: Any, name: str, mutate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mismatches(FEW) == []
    monkeypatch.setattr(module, name, mutate(getattr(module, name)))
    monkeypatch.setattr(loss_module, "distance_bound", lambda problem: None)
    assert mismatches(FEW) != []


@pytest.mark.parametrize(
    "module, name, wrong",
    [
        (floatproof, "_noise", lambda array, at, axis: array),
        (floatproof, "_error", lambda problem: 0.0),
        (scaled, "_noise", lambda masses, index, rate: masses),
        (scaled, "rounded_before_noise", lambda problem: -100.0),
    ],
)
def test_a_wrong_float_bound_is_caught(
    module: Any, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        test_bounds_hold_the_loss_to_the_last_digit()


def test_channels_with_different_denominators(monkeypatch: pytest.MonkeyPatch) -> None:
    uneven = Channel.of(BIT, BIT, [[1, 2], [5, 2]])
    twice = [Axis(BIT, (uneven, uneven))]
    masses = [np.array([[3, 1], [1, 2]])]

    def truth() -> Fraction:
        best = ONE
        for y in range(2):
            for z in range(2):
                a, b = (
                    sum(
                        Fraction(int(masses[0][s, x]), int(masses[0][s].sum()))
                        * uneven.probability(x, y)
                        * uneven.probability(x, z)
                        for x in range(2)
                    )
                    for s in range(2)
                )
                best = max(best, a / b, b / a)
        return best

    for axes in (twice, [Axis(BIT, (uneven, uneven, noise(1e9)))]):
        found = joint_loss_of(masses, axes, PAIR)
        assert found.value == pytest.approx(math.log(truth()), rel=1e-8)
        assert FastLoss(make_problem(masses, axes, PAIR)).at().value == pytest.approx(found.value)
        bound = joint_loss_of(masses, axes, PAIR, method="float-bound")
        assert bound.lower <= found.lower <= found.value <= bound.value
    assert joint_loss_of(masses, twice, PAIR).method == "exact"
    monkeypatch.setattr(axes_module, "_weights", weights_forgotten(axes_module._weights))
    mutated = joint_loss_of(masses, twice, PAIR)
    assert mutated.value != pytest.approx(math.log(truth()), rel=1e-3)


# --- Merging


def test_merging_equals_all_outputs_by_definition() -> None:
    # Three noises merged are one; a zero among them publishes the value, whatever else there is.
    masses = [np.array([[5, 1, 0, 2], [1, 4, 1, 1]])]
    support = numbers(0, 1, 4, 9)
    three = joint_loss_of(masses, [Axis(support, (noise(2.0), noise(4.0), noise(4.0)))], PAIR)
    one = joint_loss_of(masses, [Axis(support, (noise(1.0),))], PAIR)
    assert three.upper == one.upper
    zero = joint_loss_of(masses, [Axis(support, (noise(2.0), noise(0.0)))], PAIR)
    assert zero.value == math.inf
    assert zero.witness is not None
    assert zero.witness.outputs == (("4", "4"),)


def test_proportional_outputs_are_one() -> None:
    lattice = numbers(0, 1, 2)
    rows = [[4, 2, 2, 0], [2, 1, 5, 0], [2, 1, 5, 0]]
    doubled = Channel.of(lattice, numbers(0, 1, 2, 3), rows)
    merged = axes_module.merged(Axis(lattice, (doubled,)), np.arange(3))
    assert merged.columns == [(2, 1, 1), (2, 5, 5)]
    assert merged.outputs == [(0,), (2,)]
    many = axes_module.merged(Axis(BIT, (flip(2, 3),) * 10), np.arange(2))
    assert many.columns is not None
    assert len(many.columns) == 11  # not 1,024


def test_a_lattice_that_misses_values_counts_as_the_value_itself() -> None:
    halves = make_lattice([Fraction(0), Fraction(1, 2)], Fraction(1, 2))
    masses = [np.array([[2, 1], [1, 2]])]
    found = joint_loss_of(masses, [Axis(halves, (noise(50.0),))], PAIR)
    assert found.value == pytest.approx(math.log(2), rel=1e-15)
    assert not found.exact
    assert found.lower == 0
    assert found.witness is None
    fine = joint_loss_of(masses, [Axis(halves, (DiscreteLaplace(50.0, Fraction(1, 4)),))], PAIR)
    assert fine.exact
    assert fine.value < 0.01


# --- Extremes


@pytest.mark.parametrize("power", [1, 2, 3, 5, 10, 100, 300])
def test_far_from_the_mass(power: int) -> None:
    scale = 10.0**-power
    masses = [np.zeros((2, 5, 5), dtype=np.int64)]
    masses[0][0, 0, 0] = 3
    masses[0][1, 2, 1] = masses[0][1, 1, 2] = 1
    lattice = numbers(0, 1, 2, 900, 100_000)
    axes = [Axis(lattice, (noise(scale),)), Axis(lattice, (noise(scale),))]
    found = joint_loss_of(masses, axes, PAIR)
    # The largest loss is at (2, 2), which nobody can have: 3 / theta.
    with_mp = 3 / M.mpf(scale) - M.log(1 + M.exp(-2 / M.mpf(scale)))
    assert found.lower <= found.value
    assert abs(found.value / with_mp - 1) < 0.4
    doubles = FastLoss(make_problem(masses, axes, PAIR)).at()
    assert doubles.value == pytest.approx(found.value, rel=1e-12)
    bound = joint_loss_of(masses, axes, PAIR, method="float-bound")
    assert bound.lower <= found.lower <= found.value <= bound.value
    # Exponents of 64 bits do not go as far as balls.
    assert bound.method == ("float-bound" if power <= 10 else "ball")


def test_the_largest_distance_over_theta() -> None:
    masses = [np.array([[1, 0], [0, 1]])]
    axes = [Axis(BIT, (noise(1e-306),))]
    found = joint_loss_of(masses, axes, PAIR)
    assert found.upper == 1 / Fraction(1e-306)
    assert FastLoss(make_problem(masses, [Axis(BIT, (noise(1.1e-306),))], PAIR)).at().value < 1e306
    with pytest.raises(fast.BeyondDoubles):
        FastLoss(make_problem(masses, [Axis(BIT, (noise(1e-307),))], PAIR)).at()
    with pytest.raises(floatproof.TooExtreme):
        floatproof.enclose_in_doubles(make_problem(masses, axes, PAIR))


@given(
    st.lists(st.floats(-6, 6), min_size=2, max_size=2),
    st.integers(0, 2**32),
    st.integers(2, 40),
)
def test_doubles_agree_with_balls_at_all_scales(powers: list[float], seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    index = np.cumsum(rng.choice([1, 1, 1, 2, 50, 10_000], size))
    masses = [rng.integers(0, 10**6, (3, size, 3)) * (rng.random((3, size, 3)) < 0.3)]
    masses[0][:, 0, 0] += 1
    axes = [
        Axis(numbers(*index.tolist()), (noise(10.0 ** powers[0]),)),
        Axis(numbers(0, 1, 1000), (noise(10.0 ** powers[1]),)),
    ]
    pairs = list(combinations(range(3), 2))
    found = joint_loss_of(masses, axes, pairs)
    doubles = FastLoss(make_problem(masses, axes, pairs)).at()
    spread = max(1.0, float(index[-1]) / 10.0 ** powers[0] + 1000 / 10.0 ** powers[1])
    # A logarithm of size `spread` is rounded; the difference is known no better.
    assert doubles.value == pytest.approx(found.value, rel=1e-12, abs=1e-13 + 1e-15 * spread)
    bound = joint_loss_of(masses, axes, pairs, method="float-bound")
    assert bound.method == "float-bound"
    own = enclose_scaled(make_problem(masses, axes, pairs))
    for lower, upper in ((bound.lower, bound.value), (own.lower, own.upper)):
        assert lower <= found.value
        assert found.lower <= upper
        assert upper - lower <= 1e-11 * max(1.0, upper)


def test_tiny_masses_are_left_to_balls() -> None:
    tiny = [np.array([[10**400, 1], [10**400, 2]], dtype=object)]
    axes = [Axis(BIT, (noise(0.001),))]
    with pytest.raises(fast.BeyondDoubles):
        FastLoss(make_problem(tiny, axes, PAIR))
    found = joint_loss_of(tiny, axes, PAIR, method="float-bound")
    assert found.method == "ball"
    assert found.value == pytest.approx(math.log(2), abs=1e-12)


# --- Bounds


@pytest.mark.parametrize("many", [10, 11, 3, 7])
def test_budgets_of_worst_cases_add_exactly(many: int) -> None:
    part = Fraction(1, many)
    prior = pf.Prior.from_counts({"A": [5, 1, 0, 2], "B": [1, 4, 1, 1]}, support=[0, 1, 4, 9])
    scenario = pf.Scenario(prior)
    l1 = pf.calibrate(scenario, part, "l1").applied
    transport = wasserstein(scenario, part)
    masses = [prior.counts]
    for mechanism in (l1, transport):
        axes = [Axis(prior.support, (mechanism,) * many)]
        more = [Axis(prior.support, (mechanism,) * (many + 1))]
        known = [Known((0,), masses, PAIR)]
        assert smallest_bound(axes, known).at_most(ONE)
        assert worst_case(mechanism, prior.support).upper is not None
        if mechanism is l1:
            bound = smallest_bound(axes)
            assert bound.at_most(ONE)
            assert bound.name == "worst-case sum"
            assert not smallest_bound(more).at_most(ONE)
    # One that loses all that the bound says: two values, one each.
    single = [np.array([[1, 0], [0, 1]])]
    once = noise(float(many))
    found = joint_loss_of(single, [Axis(BIT, (once,) * many)], PAIR)
    assert found.upper == 1
    assert found.method == "ball+rational"
    assert not joint_loss_of(single, [Axis(BIT, (once,) * (many + 1))], PAIR).at_most(ONE)


def test_worst_cases() -> None:
    support = numbers(0, 3, 10)
    assert worst_case(noise(4.0), support).upper == Fraction(10, 4)
    assert worst_case(noise(0.0), support).upper is None
    assert worst_case(noise(0.0), numbers(7)).upper == 0
    off = make_lattice([Fraction(0), Fraction(1, 2)], Fraction(1, 2))
    assert worst_case(noise(4.0), off).upper is None
    three = worst_case(flip(3, 4), BIT)
    assert three.ratio == 3
    assert three.upper is not None
    assert M.log(3) <= M.mpf(three.upper.numerator) / three.upper.denominator <= M.log(3) + 1e-15
    assert worst_case(flip(4, 4), BIT).upper is None
    levels = make_levels(["a", "b"])
    with pytest.raises(InputError, match="order"):
        worst_case(noise(1.0), levels)
    with pytest.raises(InputError, match="no row for '2'"):
        worst_case(flip(3, 4), numbers(0, 1, 2))


def test_only_what_a_pair_can_have_counts() -> None:
    # The third secret is in no pair, and its value 50 in nobody's reach.
    support = numbers(0, 1, 3, 50)
    masses = [np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])]
    bound = smallest_bound([Axis(support, (noise(2.0),))], [Known((0,), masses, PAIR)])
    assert bound.upper is not None
    assert bound.upper <= Fraction(3, 2)
    far = joint_loss_of(masses, [Axis(support, (noise(2.0),))], [(0, 1), (1, 2)])
    assert far.value > 20


def test_many_pairs_take_all_values_together() -> None:
    rng = np.random.default_rng(13)
    support = numbers(*range(8))
    masses = [np.zeros((25, 8), dtype=np.int64)]
    for s in range(25):
        masses[0][s, rng.choice(8, 3, False)] = 1
    rows = np.add.outer(np.arange(8), np.arange(3)) ** 2 % 7 + 1
    channel = Channel.of(support, numbers(0, 1, 2), rows)
    chosen = list(combinations(range(25), 2))
    few, many = Reach.of(masses, 0, chosen[:5]), Reach.of(masses, 0, chosen)
    assert len(few.sets) == 5
    assert len(many.sets) == 1
    worst = worst_case(channel, support, many)
    assert worst.ratio == worst_case(channel, support).ratio
    assert worst_case(channel, support, few).ratio <= worst.ratio
    axes = [Axis(support, (channel,))]
    loss = joint_loss_of(masses, axes, chosen)
    assert loss.value <= smallest_bound(axes, [Known((0,), masses, chosen)]).value
    assert worst.upper is not None
    assert loss.value <= worst.upper


def test_a_mixture_says_what_it_is_made_of() -> None:
    rng = np.random.default_rng(3)
    known = Known((0, 2), [rng.integers(1, 9, (2, 3, 4))], PAIR)
    axes = [
        Axis(numbers(0, 1, 2), (noise(0.5), noise(1.0))),
        Axis(BIT, (noise(4.0), flip(3, 4))),
        Axis(numbers(0, 1, 2, 3), (noise(0.25),)),
    ]
    labels = [["a", "b"], ["c", "d"], ["e"]]
    bound = smallest_bound(axes, [known], labels)
    assert bound.name == "joint loss + worst cases"
    assert bound.within == ("a", "b", "e")
    assert [term.label for term in bound.terms] == ["c", "d"]
    joint = joint_loss_of(known.masses, [axes[0], axes[2]], PAIR)
    assert bound.joint == joint
    assert bound.value == pytest.approx(joint.value + 1 / 4 + math.log(3), rel=1e-15)
    # With room for four cells, the smaller worst case goes: 2 / (1/3) = 6 against 3 / .25 = 12.
    small = smallest_bound(axes, [known], labels, limit=4)
    assert small.within == ("e",)
    assert [term.label for term in small.terms] == ["a", "b", "c", "d"]
    assert small.value >= bound.value


# --- Scales


def test_the_next_release_of_one_column() -> None:
    star = 4.0
    out: list[float] = []
    for _ in range(5):
        out.append(next_scale(star, out, 5 - len(out)))
        assert sum(1 / Fraction(scale) for scale in out) <= 1 / Fraction(star)
    assert out == [20.0] * 5
    with pytest.raises(DoesNotFit):
        next_scale(star, out)
    with pytest.raises(DoesNotFit):
        next_scale(star, [0.0])
    assert next_scale(0.0, [3.0]) == 0.0
    assert next_scale(star, [8.0]) == 8.0
    assert common_scale(star, 3) == 12.0
    with pytest.raises(InputError):
        common_scale(star, 0)
    # Rounded up, never down.
    third = next_scale(1 / 3, [0.7])
    assert 1 / Fraction(third) + 1 / Fraction(0.7) <= 1 / Fraction(1 / 3)
    below = math.nextafter(third, 0)
    assert 1 / Fraction(below) + 1 / Fraction(0.7) > 1 / Fraction(1 / 3)


def test_the_search_agrees_with_the_closed_form() -> None:
    prior = pf.Prior.from_counts({"A": [5, 1, 0, 2], "B": [1, 4, 1, 1]}, support=[0, 1, 4, 9])
    epsilon = Fraction(1, 2)
    star = exact(pf.Scenario(prior), epsilon).scale
    for out in ([], [100.0], [60.0, 70.0]):
        axes = [Axis(prior.support, tuple(map(noise, out)))]
        found = least_scales([prior.counts], axes, PAIR, [(0, ONE), (0, Fraction(2))], epsilon)
        first, second = (m.scale for m in found.mechanisms)
        assert second == pytest.approx(2 * first, rel=1e-15)
        together = 1 / (1 / first + 1 / second)
        assert together == pytest.approx(next_scale(star, out), rel=1e-12)
        assert found.least


def test_several_columns_at_once() -> None:
    rng = np.random.default_rng(11)
    for trial in range(12):
        masses = [rng.integers(0, 9, (2, 4, 3, 2)) for _ in range(1 + trial % 2)]
        for m in masses:
            m[:, 0, 0, 0] += 1
        axes = [
            Axis(numbers(0, 1, 4, 6), (noise(300.0),) if trial % 3 else ()),
            Axis(numbers(0, 2, 5)),
            Axis(BIT, (flip(101, 200),) if trial % 4 else ()),
        ]
        epsilon = Fraction(1, 2)
        further = [(0, ONE), (1, Fraction(1, 3)), (2, Fraction(5))]
        found = least_scales(masses, axes, PAIR, further, epsilon)
        assert found.loss.at_most(epsilon)
        scales = [m.scale for m in found.mechanisms]
        assert scales == pytest.approx([scales[0], scales[0] / 3, scales[0] * 5], rel=1e-15)

        same, less, more = (
            joint_loss_of(
                masses,
                [
                    Axis(axis.support, (*axis.releases, noise(scale * factor)))
                    for axis, scale in zip(axes, scales, strict=True)
                ],
                PAIR,
            )
            for factor in (1.0, 1 - 1e-11, 1.5)
        )
        assert same.upper == found.loss.upper
        assert less.lower > epsilon  # no smaller scale will do
        assert more.value <= float(epsilon)  # and the loss falls


def test_one_after_another_within_a_budget() -> None:
    rng = np.random.default_rng(12)
    masses = [rng.integers(1, 30, (2, 5, 4))]
    axes = [Axis(numbers(0, 1, 2, 3, 4)), Axis(numbers(0, 1, 2, 3))]
    budget = Fraction(1)
    for number in range(1, 6):
        part = budget * number / 5
        found = least_scales(masses, axes, PAIR, [(number % 2, ONE)], part)
        axes = [
            Axis(axis.support, (*axis.releases, *(found.mechanisms if k == number % 2 else ())))
            for k, axis in enumerate(axes)
        ]
        assert joint_loss_of(masses, axes, PAIR).at_most(part)
    with pytest.raises(DoesNotFit):
        least_scales(
            masses, axes, PAIR, [(0, ONE)], Fraction(joint_loss_of(masses, axes, PAIR).lower)
        )


def test_a_channel_beside_what_is_out() -> None:
    prior = pf.Prior.from_counts({"A": [5, 1, 2], "B": [1, 4, 1]}, support=[0, 1, 2])
    scenario = pf.Scenario(prior)
    epsilon = Fraction(1)

    def calibrate(own: Fraction) -> Channel:
        return pf.calibrate(scenario, own, "channel").applied

    out = noise(exact(scenario, Fraction(2, 5)).scale)
    axes = [Axis(prior.support, (out,))]
    found = fit([prior.counts], axes, PAIR, 0, epsilon, calibrate, tries=6)
    assert found.loss.at_most(epsilon)
    assert Fraction(1, 4) < found.own < epsilon
    beside = [Axis(prior.support, (out, calibrate(found.own + epsilon / 32)))]
    assert not joint_loss_of([prior.counts], beside, PAIR).at_most(epsilon)
    with pytest.raises(DoesNotFit):
        fit([prior.counts], axes, PAIR, 0, Fraction(1, 5), calibrate)
    first = fit([prior.counts], [Axis(prior.support)], PAIR, 0, epsilon, calibrate)
    assert first.own == epsilon


def test_unchanged_columns_that_fit() -> None:
    masses = [np.array([[[2, 1], [1, 2]], [[1, 2], [2, 1]]])]
    found = least_scales(masses, [Axis(BIT), Axis(BIT)], PAIR, [(0, ONE)], Fraction(1, 100))
    assert [m.scale for m in found.mechanisms] == [0.0]
    assert found.loss.value == 0.0


def test_a_scale_where_doubles_give_up() -> None:
    tiny = [np.array([[10**400, 1], [10**400, 2]], dtype=object)]
    found = least_scales(tiny, [Axis(BIT)], PAIR, [(0, ONE)], Fraction(1, 10))
    assert not found.least
    assert found.loss.at_most(Fraction(1, 10))


# --- Input


def test_large_grids_are_refused_and_bounded() -> None:
    wide = numbers(*range(300))
    axes = [Axis(wide, (noise(1000.0),)), Axis(wide, (noise(2000.0),))]
    rng = np.random.default_rng(2)
    masses = [rng.integers(1, 9, (2, 300, 300))]
    with pytest.raises(GridTooLarge) as refused:
        joint_loss_of(masses, axes, PAIR, limit=10_000)
    assert refused.value.cells == 90_000 == grid_size(axes)
    assert "90,000" in str(refused.value)
    bound = smallest_bound(axes, [Known((0, 1), masses, PAIR)], limit=10_000)
    assert bound.within == ("1.1",)
    assert joint_loss_of(masses, axes, PAIR, method="float-bound").value <= bound.value
    many = Channel.of(BIT, wide, np.add.outer([300, 1], np.arange(300)) ** 2 % 1009 + 1)
    with pytest.raises(GridTooLarge):
        grid_size([Axis(BIT, (many,) * 3)])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"masses": [np.array([[1.0, 0], [0, 1]])]}, "whole numbers"),
        ({"masses": [np.array([[1, -1], [0, 1]])]}, "negative"),
        ({"masses": [np.array([[1, 1, 1], [0, 1, 1]])]}, "shape"),
        ({"masses": [np.array([[1, 1], [0, 0]])]}, "no mass"),
        ({"masses": []}, "needs joint masses"),
        ({"pairs": []}, "needs joint masses"),
        ({"pairs": [(0, 0)]}, "two rows"),
        ({"pairs": [(0, 2)]}, "two rows"),
        ({"totals": [[2, 2]]}, "sum"),
        ({"method": "balls"}, "did you mean 'ball'"),
        ({"axes": [Axis(make_levels(["a", "b"]), (noise(1.0),))]}, "order"),
        ({"axes": [Axis(numbers(0, 2), (flip(3, 4),))]}, "no row for '2'"),
        ({"axes": [Axis(make_levels(["a", "b"]), (flip(3, 4),))]}, "both be for numbers"),
    ],
)
def test_wrong_input(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "masses": [np.array([[1, 0], [0, 1]])],
        "axes": [Axis(BIT, (noise(1.0),))],
        "pairs": PAIR,
    }
    with pytest.raises(InputError, match=message):
        joint_loss_of(**{**given, **change})


def test_what_was_given_is_left_alone() -> None:
    masses = np.array([[[1, 2], [3, 4]], [[4, 3], [2, 1]]])
    masses.setflags(write=False)
    axes = [Axis(BIT, (noise(1.0),)), Axis(BIT, (noise(2.0), flip(2, 3)))]
    for method in ("ball", "float-bound"):
        joint_loss_of([masses], axes, PAIR, method=method)
    FastLoss(make_problem([masses], axes, PAIR)).at()


def test_levels_without_an_order_go_through_channels() -> None:
    levels, seen = make_levels(["b", "a", "c"]), make_levels(["x", "y"])
    channel = Channel.of(levels, seen, [[3, 1], [1, 3], [2, 2]])
    masses = [np.array([[3, 1, 0], [0, 1, 4]])]
    axes = [Axis(levels, (channel, channel))]
    found = joint_loss_of(masses, axes, PAIR)
    assert found.method == "exact"
    # Twice x: 9/16, 1/16 and 1/4 for a, b and c.
    first = Fraction(3, 4) * Fraction(9, 16) + Fraction(1, 4) * Fraction(1, 16)
    second = Fraction(1, 5) * Fraction(1, 16) + Fraction(4, 5) * Fraction(1, 4)
    assert found.value == pytest.approx(math.log(first / second), rel=1e-15)
    assert found.witness is not None
    assert found.witness.outputs == (("x", "x"),)
    assert smallest_bound(axes, [Known((0,), masses, PAIR)]).value == found.value


def test_equality_in_two_columns_is_met_by_the_worst_case() -> None:
    masses = [np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]])]
    epsilon = Fraction(1, 3)
    found = least_scales(masses, [Axis(BIT), Axis(BIT)], PAIR, [(0, ONE), (1, ONE)], epsilon)
    assert [m.scale for m in found.mechanisms] == pytest.approx([6.0, 6.0], rel=1e-14)
    axes = [Axis(BIT, (noise(6.0),)), Axis(BIT, (noise(6.0),))]
    bound = smallest_bound(axes, [Known((0, 1), masses, PAIR)])
    assert bound.upper == epsilon
    assert bound.name == "worst-case sum"
