# SPDX-License-Identifier: Apache-2.0
"""Releases beside previous ones, and several planned together: everything stays within epsilon."""

import itertools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pufferfish as pf
import pufferfish.calibration.exact
import pufferfish.calibration.further as module
from pufferfish.calibration.further import per_release_epsilon
from pufferfish.calibration.registry import REGISTRY, Method
from pufferfish.calibration.root import Proposal
from pufferfish.errors import CheckFailed, InputError, PriorWarning
from pufferfish.loss.composition import gather
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.mechanisms.laplace import DiscreteLaplace
from set_cases import set_plan, sets_and_labels

RARE = pf.Scenario(pf.Prior.from_mapping({"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}}))
XOR = pf.Prior.from_counts(
    {"A": [[1, 0], [0, 1]], "B": [[0, 1], [1, 0]]}, support={"x": [0, 1], "z": [0, 1]}
)
PAIR = pf.Prior.from_counts(
    {"A": [[5, 3], [2, 6]], "B": [[4, 4], [4, 3]]}, support={"x": [0, 1], "z": [0, 1]}
)
UNCHANGED = DiscreteLaplace(0.0, Fraction(1))


def noise(scale: float) -> DiscreteLaplace:
    return DiscreteLaplace(scale, Fraction(1))


def test_the_theorys_numbers() -> None:
    plan = pf.calibrate(RARE, "0.1")
    assert plan.scale == pytest.approx(4.0919340115, abs=1e-10)
    both = pf.calibrate_together(RARE, "0.2", 2)
    assert [round(p.scale or 0, 5) for p in both] == [6.36623, 6.36623]
    assert pf.joint_loss(RARE, both).at_most(Fraction(1, 5))
    assert float(pf.joint_loss(RARE, both)) == pytest.approx(0.2, abs=1e-12)


def test_nothing_alone_and_everything_together() -> None:
    first = pf.calibrate(XOR, 1, column="x")
    assert first.unchanged
    second = pf.calibrate(XOR, 1, column="z", already=[("x", first)])
    # ln (1 + q^2) / (2 q) is not it: x is out as it is, so z alone has to hide the secret.
    assert second.scale == pytest.approx(1, rel=1e-15)
    with pytest.raises(CheckFailed, match="beside"):
        pf.calibrate(XOR, 1, column="z", already=[("x", UNCHANGED), ("z", UNCHANGED)])


@pytest.mark.parametrize("name", ["l1", "wasserstein", "relaxed", "one-sided", "exact"])
def test_five_releases_one_after_another_stay_within_the_budget(name: Any) -> None:
    """Each is calibrated for a growing part of the budget; what does not fit is refused."""
    out: list[pf.Plan] = []
    for k in range(1, 6):
        plan = pf.calibrate(RARE, Fraction(k, 5), name, already=out)
        out.append(plan)
        total = pf.joint_loss(RARE, out)
        assert total.at_most(Fraction(k, 5))
        assert (plan.composition and plan.composition.upper) == (total.upper if k > 1 else None)
        assert plan.loss <= plan.epsilon
    if name == "exact":
        assert float(pf.joint_loss(RARE, out)) == pytest.approx(1, abs=1e-9)
        with pytest.raises(CheckFailed, match="within epsilon 1"):
            pf.calibrate(RARE, 1, name, already=out)
    with pytest.raises(CheckFailed, match="beside"):
        pf.calibrate(RARE, float(pf.joint_loss(RARE, out)) / 2, name, already=out)


def test_rates_of_one_column_add() -> None:
    """1 / theta of the next release is what is left of 1 / theta*; so says the search, too."""
    prior = pf.Prior.from_counts({"A": [5, 1, 0, 2], "B": [1, 4, 1, 1]}, support=[0, 1, 4, 9])
    alone = Fraction(pf.calibrate(prior, "1/2").scale or 0)
    for out in ([], [100.0], [60.0, 70.0]):
        plan = pf.calibrate(prior, "1/2", already=[("x", noise(s)) for s in out])
        left = 1 / alone - sum(1 / Fraction(scale) for scale in out)
        assert plan.scale == pytest.approx(float(1 / left), rel=1e-11)


def test_beside_the_column_itself_noise_costs_nothing_more() -> None:
    near = pf.Prior.from_counts({"A": [5, 4], "B": [4, 5]}, support=[0, 1])
    for name in ("exact", "relaxed", "channel"):
        plan = pf.calibrate(near, 1, name, already=[("x", UNCHANGED)])
        assert pf.joint_loss(near, [("x", UNCHANGED), ("x", plan)]).at_most(Fraction(1))


@pytest.mark.parametrize("mechanism", ["exact", "relaxed", "channel"])
@pytest.mark.parametrize("column", ["x", "z"])
def test_beside_other_columns(mechanism: Any, column: str) -> None:
    kept = pf.calibrate(PAIR, "0.1", "channel", column="z", cost="hamming")
    out: list[Any] = [("x", noise(2.0)), ("z", kept)]
    plan = pf.calibrate(PAIR, "0.3", mechanism, column=column, already=out)
    total = pf.joint_loss(PAIR, [*out, (column, plan)])
    assert total.at_most(Fraction(3, 10))
    assert plan.composition is not None
    assert float(plan.composition) == float(total)
    assert plan.verify(pf.Scenario(PAIR).of_column(column)).holds
    if mechanism == "exact":
        assert (plan.scale or 0) > 0
        smaller = noise((plan.scale or 0) * (1 - 1e-9))
        assert not pf.joint_loss(PAIR, [*out, (column, smaller)]).at_most(Fraction(3, 10))


def test_mutant_that_adds_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two halves of epsilon are no epsilon: what is private alone is refused together."""
    half = pf.calibrate(RARE, "0.1")
    monkeypatch.setattr(module, "least_factor", lambda *_: Fraction(half.scale or 0))
    with pytest.raises(pf.PufferfishError, match="could be proved"):
        pf.calibrate(RARE, "0.2", already=[half])


def test_several_columns_at_once() -> None:
    rng = np.random.default_rng(11)
    support = {"x": [0, 1, 4, 6], "y": [0, 2, 5], "z": [0, 1]}
    for trial in range(8):
        priors = []
        for _ in range(1 + trial % 2):
            counts = rng.integers(0, 9, (2, 4, 3, 2))
            counts[:, 0, 0, 0] += 1
            priors.append(
                pf.Prior.from_counts(dict(zip("ab", counts, strict=True)), support=support)
            )
        scenario = pf.Scenario(priors)
        out = [("x", noise(300.0))] if trial % 3 else []
        wanted = {"x": 1, "y": "1/3", "z": 5}
        plans = pf.calibrate_together(scenario, "1/2", wanted, already=out)
        scales = [plan.scale or 0 for plan in plans]
        assert scales == pytest.approx([scales[0], scales[0] / 3, scales[0] * 5], rel=1e-15)

        def loss(factor: float, scales: list[float] = scales) -> Any:
            items = [(c, noise(s * factor)) for c, s in zip("xyz", scales, strict=True)]
            return pf.joint_loss(scenario, [*out, *items])  # noqa: B023  # called in this round

        assert loss(1.0).at_most(Fraction(1, 2))
        assert not loss(1 - 1e-9).at_most(Fraction(1, 2))
        assert float(loss(1.5)) <= 0.5


def test_wrong_columns_are_refused_and_ratios_kept() -> None:
    x, z = pf.calibrate_together(PAIR, "0.2", {"x": 1, "z": 3})
    assert z.scale == pytest.approx(3 * (x.scale or 0), rel=1e-12)
    for wrong in ([], [("x", 0)], [3], "x", 2, {"y": 1}, 0, True, 1.5, [("x", -1)]):
        with pytest.raises(InputError):
            pf.calibrate_together(PAIR, 1, wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InputError, match="overflows"):
        pf.calibrate_together(PAIR, "1e-250", [("x", "1e-100")])


def test_a_worst_case_stands_in_for_a_column_nobody_counted() -> None:
    known = pf.Prior.from_counts({"A": [8, 8], "B": [8, 7]}, support={"x": [0, 1]})
    own = pf.Scenario(PAIR).of_column("z")
    noisy = pf.Plan.of(own, "exact", noise(4.0), Fraction(1), pf.certify(own, 4)).with_columns("z")
    plan = pf.calibrate(known, "0.5", already=[noisy], column="x")
    assert pf.joint_loss(known, [noisy, ("x", plan)]).at_most(Fraction(1, 2))
    assert pf.joint_loss(PAIR, [("x", plan), ("z", noisy)]).at_most(Fraction(1, 2))
    for mechanism in ("exact", "l1", "channel"):
        with pytest.raises(CheckFailed, match=r"1 previous release with a loss of up to 0\.25"):
            pf.calibrate(known, "0.2", mechanism, already=[noisy], column="x")


def test_a_crumb_that_rounding_left_is_nothing() -> None:
    first = pf.calibrate(PAIR, "0.05", column="x")
    assert (first.scale or 0) > 0
    for mechanism in ("exact", "relaxed", "channel"):
        with pytest.raises(CheckFailed, match="no further release"):
            pf.calibrate(PAIR, "0.05", mechanism, column="z", already=[("x", first)])
    # What costs nothing more still fits.
    alone = pf.Prior.from_counts(
        {"A": [[3, 3], [5, 5]], "B": [[5, 5], [3, 3]]}, support={"x": [0, 1], "z": [0, 1]}
    )
    spent = pf.calibrate(alone, "0.05", column="x")
    for mechanism in ("exact", "relaxed", "channel"):
        assert pf.calibrate(alone, "0.05", mechanism, column="z", already=[("x", spent)]).unchanged


def test_a_grid_that_is_too_large_takes_worst_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> None:
        raise GridTooLarge

    monkeypatch.setattr(pufferfish.calibration.exact, "RateLoss", refuse)
    plan = pf.calibrate(PAIR, "0.05", column="x", already=[("z", noise(10.0))])
    bound = pf.joint_loss(PAIR, [("z", noise(10.0))])
    assert plan.scale == pytest.approx(1 / (0.05 - float(bound)), rel=1e-12)


# The largest epsilon of its own ------------------------------------------------------------------


def test_halving_finds_the_largest_epsilon_that_fits() -> None:
    third, quarter = Fraction(1, 3), Fraction(1, 4)

    def attempt(own: Fraction) -> Fraction | None:
        return own if own <= third else None

    found = per_release_epsilon(Fraction(1), attempt, 12)
    assert found is not None
    assert third - Fraction(1, 2**11) <= found[1] <= third
    assert per_release_epsilon(quarter, attempt, 1) == (quarter, quarter)
    assert per_release_epsilon(Fraction(1), lambda _: None, 12) is None

    def refusing(own: Fraction) -> Fraction | None:
        if own < third:
            raise CheckFailed("too small")
        return attempt(own)

    assert per_release_epsilon(Fraction(1), refusing, 3) is None
    with pytest.raises(CheckFailed, match="too small"):
        per_release_epsilon(quarter, refusing, 3)


def test_a_channel_beside_noise() -> None:
    prior = pf.Prior.from_counts({"A": [5, 1, 2], "B": [1, 4, 1]}, support=[0, 1, 2])
    out = [pf.calibrate(prior, "2/5")]
    plan = pf.calibrate(prior, 1, "channel", already=out)
    assert pf.joint_loss(prior, [*out, plan]).at_most(Fraction(1))
    assert float(pf.joint_loss(prior, [*out, plan])) == pytest.approx(1, abs=1e-6)
    assert not plan.notes
    with pytest.raises(CheckFailed, match="beside"):
        pf.calibrate(prior, "1/5", "channel", already=out)
    free = pf.calibrate(prior, 1, "channel", already=[])
    assert free.cost == pf.calibrate(prior, 1, "channel").cost


@pytest.mark.parametrize("best_for", ["kept", "frequencies", "mean"])
@pytest.mark.parametrize("seed", range(6))
def test_channels_are_fitted_to_previous_outputs(
    seed: int, best_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No channel for an epsilon of its own, nor one for any prior, does better beside others."""
    rng = np.random.default_rng(seed)
    counts = {s: rng.integers(1, 60, (4, 2)) for s in "abc"[: 2 + seed % 2]}
    prior = pf.Prior.from_counts(counts, support={"x": [0, 1, 2, 5], "z": ["p", "q"]})
    if seed < 2:
        prior = pf.Prior.from_counts({s: c[:, 0] for s, c in counts.items()}, support=[0, 1, 2, 5])
        out: list[Any] = [("x", noise(9.0)), ("x", pf.calibrate(prior, "0.1", "channel"))]
    else:
        out = [("x", noise(8.0)), ("z", pf.calibrate(prior, "0.1", column="z"))]
    out.append(("y", pf.calibrate(pf.Prior.from_counts(
        {"A": [5, 3], "B": [3, 5]}, support={"y": [0, 1]}), "0.01")))  # fmt: skip
    epsilon = float(pf.joint_loss(prior, out)) + 0.3
    how: Any = {"column": "x", "best_for": best_for, "already": out}
    fitted = pf.calibrate(prior, epsilon, "channel", **how)
    assert pf.joint_loss(prior, [*out, ("x", fitted)]).at_most(Fraction(epsilon))
    assert not fitted.notes
    monkeypatch.setattr(module, "_MOST_POSTERIORS", 0)
    other = pf.calibrate(prior, epsilon, "channel", **how)
    assert other.notes
    assert fitted.cost is not None
    assert other.cost is not None
    assert fitted.cost <= other.cost * (1 + 1e-6)
    assert seed > 1 or other.cost > fitted.cost * (1 + 1e-3)


@pytest.mark.parametrize("best_for", ["kept", "frequencies"])
def test_outputs_that_nobody_can_cause_do_not_count(best_for: Any) -> None:
    """A level that nobody has, published as itself: after it there are no masses at all."""
    counts = {"a": [20, 30, 50, 10, 0], "b": [40, 10, 35, 25, 0]}
    prior = pf.Prior.from_counts(counts, support=list("ABCDE"))
    first = pf.calibrate(prior, "0.1")
    plan = pf.calibrate(prior, "0.3", already=[first], best_for=best_for)
    assert pf.joint_loss(prior, [first, plan]).at_most(Fraction("0.3"))
    assert not plan.notes
    assert plan.cost is not None
    assert plan.cost < {"kept": 0.53, "frequencies": 16.1}[best_for]


def test_many_values_beside_a_channel_take_one_that_is_private_for_any_prior() -> None:
    rng = np.random.default_rng(1)
    counts = {s: rng.integers(5, 90, 12) for s in "ab"}
    prior = pf.Prior.from_counts(counts, support=[f"v{x}" for x in range(12)])
    first = pf.calibrate(prior, "0.1")
    plan = pf.calibrate(prior, "0.4", already=[first])
    assert pf.joint_loss(prior, [first, plan]).at_most(Fraction("0.4"))
    assert plan.notes == ("the mechanism is calibrated for an epsilon of its own, 0.3",)
    assert plan.channel is not None
    worst = plan.channel.matrix.max(axis=0) / plan.channel.matrix.min(axis=0)
    assert math.log(worst.max()) == pytest.approx(0.3)


# Rows of one person ------------------------------------------------------------------------------


def counted(*each: tuple[str, Sequence[tuple[int, int]]], public: Any = ("x", "z")) -> pf.Prior:
    """People: the secret of each, and the values of its rows."""
    rows = [(f"p{at}", secret, x, z) for at, (secret, own) in enumerate(each) for x, z in own]
    table = pa.table(dict(zip(("id", "s", "x", "z"), zip(*rows, strict=True), strict=True)))
    named = public if isinstance(public, str) else list(public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return pf.Prior.from_table(table, secret="s", public=named, unit="id")


#: One row or one column alone tells nothing; both rows, each in another column, tell everything.
BITS = list(itertools.product((0, 1), repeat=3))
ACROSS = [
    *[("a", [(u, v), (w, u)]) for u, v, w in BITS],
    *[("b", [(u, v), (w, 1 - u)]) for u, v, w in BITS],
]
#: Each row alone tells nothing, both tell everything.
TWICE = [("a", [(v, 0), (v, 0)]) for v in (0, 1)] + [("b", [(v, 0), (1 - v, 0)]) for v in (0, 1)]


def test_a_secret_that_only_two_rows_in_two_columns_tell() -> None:
    prior = counted(*ACROSS)
    alone = {c: pf.calibrate(counted(*ACROSS, public=c), 1) for c in "xz"}
    assert [alone[c].scale for c in "xz"] == [0, 0]
    with pytest.raises(CheckFailed):
        pf.calibrate(prior, 1, "l1", already=[alone["x"], alone["z"]], column="x")
    plan = pf.calibrate(prior, 1, column="z", already=[alone["x"]])
    assert plan.scale == pytest.approx(1, rel=1e-12)
    x, z = pf.calibrate_together(prior, 1, ["x", "z"])
    q = math.exp(-1 / (x.scale or 0))
    assert x.scale == z.scale
    assert math.log((1 + q * q) / (2 * q)) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("mechanism", ["wasserstein", "channel"])
def test_noise_and_channels_for_all_rows_of_one_person(mechanism: Any) -> None:
    prior = counted(*TWICE, public="x")
    plan = pf.calibrate(prior, 1, mechanism)
    assert not plan.unchanged
    assert plan.loss <= 1
    assert plan.rows_per_person == (2,)
    assert plan.verify(prior).holds
    assert gather(prior, [plan]).bound().at_most(Fraction(1))


def test_a_channel_that_is_private_for_any_prior() -> None:
    """For the secret alone every channel of single rows is free: only hiding every value helps."""
    prior = counted(*TWICE, public="x")
    plan = pf.calibrate(prior, 1, "channel", cost="hamming")
    assert plan.channel is not None
    ratio = plan.channel.probability(0, 0) / plan.channel.probability(1, 0)
    assert math.log(ratio) == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(CheckFailed, match="2 rows of one person"):
        pf.calibrate(prior, "0.1", "channel", min_keep="0.9")


def test_plans_for_other_numbers_of_rows_count() -> None:
    prior = counted(*TWICE, public="x")
    plan = pf.calibrate(prior, 1)
    thrice = counted(*[(s, [*own, own[0]]) for s, own in TWICE], public="x")
    other = pf.calibrate(thrice, 1)
    assert other.rows_per_person == (3,)
    for mechanism in ("exact", "l1", "channel"):
        beside = pf.calibrate(prior, 5, mechanism, already=[other])
        assert pf.joint_loss(prior, [other, beside]).at_most(Fraction(5))
    least = pf.calibrate(prior, 5, already=[other])
    worst = 3 / Fraction(other.scale or 0)
    assert least.scale == pytest.approx(float(3 / (5 - worst)), rel=1e-12)
    bare = pf.Prior.from_counts({"a": [2, 2], "b": [2, 2]}, support=[0, 1])
    with pytest.raises(InputError, match="one person"):
        pf.calibrate(bare, 1, already=[plan])


def test_a_channel_to_sets_keeps_its_labels_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = pf.Prior.from_counts({"A": [6, 3, 1], "B": [1, 3, 6]}, support=["p", "q", "r"])
    channel, labels = sets_and_labels(prior.support)
    proposal = Proposal(channel, labels=labels)
    sets = Method("channel", "sets by hand", lambda *given, **options: proposal, channel=True)
    monkeypatch.setitem(REGISTRY, "channel", sets)
    assert pf.calibrate(prior, "0.48", "channel").labels is labels
    beside = pf.calibrate(prior, 1, "channel", already=[set_plan(prior)])
    assert beside.labels is labels
    assert beside.composition is not None
    assert beside.composition.upper == pf.joint_loss(prior, [beside, beside]).upper
    with pytest.raises(CheckFailed, match="beside"):
        pf.calibrate(prior, "0.3", "channel", already=[beside])


def test_beside_others_nobody_knows_how_far_a_channel_is_from_the_best() -> None:
    prior = pf.Prior.from_counts({"a": [30, 20, 10], "b": [10, 20, 30]}, support=["p", "q", "r"])
    first = pf.calibrate(prior, "0.1")
    assert first.objective_bound is not None
    beside = pf.calibrate(prior, "0.5", already=[first])
    assert (beside.objective_bound, beside.distortion and beside.distortion.gap) == (None, math.inf)
