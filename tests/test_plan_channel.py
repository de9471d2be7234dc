# SPDX-License-Identifier: Apache-2.0
"""Plans with a channel, and plans for regions: made, saved, read strictly, judged, released."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.calibration import NOISE, REGISTRY, applicable, default_for, method_named, why_not
from pufferfish.errors import CheckFailed, InputError, PufferfishError
from pufferfish.mechanisms import Channel
from pufferfish.regions import Confidence, TVBall

COUNTS = {"ill": [50, 40, 10], "well": [20, 50, 30]}
NUMBERS = pf.Prior.from_counts(COUNTS, support=[0, 1, 2])
NAMES = ["blue", "green", "red"]
LEVELS = pf.Prior.from_counts(COUNTS, support=NAMES)


def levels(*, ordered: bool = False, **region: Any) -> pf.Scenario:
    table = pf.Prior.from_counts(COUNTS, support=NAMES, **({"order": NAMES} if ordered else {}))
    return pf.Scenario(table.with_region(**region))


def through_file(plan: pf.Plan, path: Path, **changes: Any) -> pf.Plan:
    plan.save(path, force=True)
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | changes))
    return pf.Plan.load(path)


def test_levels_without_an_order_get_a_channel_and_numbers_get_noise() -> None:
    assert default_for(levels()) == "channel"
    assert default_for(levels(ordered=True)) == default_for(pf.Scenario(NUMBERS)) == "exact"
    plan = pf.calibrate(levels(), "0.5")
    assert plan.mechanism == "channel"
    assert plan.scale is None
    assert plan.std is None
    assert plan.mse is None
    assert plan.noise is None
    assert plan.distortion is not None
    assert plan.distortion.name == "hamming"
    assert plan.cost == pytest.approx(1 - (plan.keep_rate or 0), abs=1e-12)
    assert "cost=" in repr(plan)
    assert pf.calibrate(NUMBERS, "0.5").mechanism == "exact"
    on_numbers = pf.calibrate(NUMBERS, "0.5", "channel")
    assert on_numbers.distortion is not None
    assert on_numbers.distortion.name == "squared"
    assert on_numbers.mse == pytest.approx(on_numbers.cost, rel=1e-12)
    assert on_numbers.mse < (pf.calibrate(NUMBERS, "0.5").mse or 0)


@pytest.mark.parametrize("name", NOISE)
def test_noise_on_levels_without_an_order_says_why_not_and_what_to_do(name: str) -> None:
    with pytest.raises(InputError, match=r"no order.*mechanism channel.*--order"):
        pf.calibrate(levels(), 1, name)


def test_all_means_what_applies() -> None:
    assert applicable(levels())[0] == ("channel",)
    assert set(applicable(levels())[1]) == set(NOISE)
    assert applicable(pf.Scenario(NUMBERS)) == (tuple(REGISTRY), {})
    names, left_out = applicable(pf.Scenario(NUMBERS.with_region(tv_radius=".1")))
    assert names == ("exact", "channel")
    assert all("region" in reason for reason in left_out.values())
    wide = pf.Prior.from_counts({"a": [1] * 500, "b": [2] * 500}, support=range(500))
    names, left_out = applicable(pf.Scenario(wide))
    assert names == tuple(NOISE)
    assert "500 values" in left_out["channel"]
    some = pf.Prior.from_counts({"a": [1] * 31, "b": [2] * 31}, support=range(31), tv_radius=".1")
    assert applicable(pf.Scenario(some))[0] == ("exact",)
    assert "channel" in applicable(pf.Scenario(some.with_region()))[0]
    assert why_not(method_named("channel"), pf.Scenario(wide)) is None


@pytest.mark.parametrize(
    "options",
    [
        {"cost": "hamming"}, {"outputs": 2}, {"invariant": True}, {"unbiased": True},
        {"min_keep": ".5"}, {"weights": [1, 1, 1]},
    ],
    ids=str,
)  # fmt: skip
def test_options_of_a_channel_are_refused_for_noise(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))} is for the mechanism channel"):
        pf.calibrate(NUMBERS, 1, "exact", **options)
    pf.calibrate(NUMBERS, 1, "channel", **options)


def test_a_plan_with_a_channel_comes_back_whole(tmp_path: Path) -> None:
    plan = pf.calibrate(levels(), "1/3", min_keep=".6")
    back = through_file(plan, tmp_path / "plan.json")
    assert back.to_dict() == plan.to_dict()
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["scale"] is None
    assert back.distortion == plan.distortion
    assert back.distortion is not None
    assert back.distortion.conditions == ("min_keep 0.6",)
    certificate = back.verify(levels())
    assert certificate.holds
    assert certificate.method == "exact"


def test_an_edited_channel_is_judged_on_its_merits(tmp_path: Path) -> None:
    """The identity is a channel, but not a private one, whatever the file claims of it."""
    plan = pf.calibrate(levels(), "0.5")
    path = tmp_path / "plan.json"
    assert plan.channel is not None
    identity = Channel.of(plan.support, plan.support, np.eye(3, dtype=int).astype(object))
    edited = through_file(plan, path, channel=identity.to_dict(), loss=0.1)
    assert edited.unchanged
    with pytest.raises(CheckFailed, match=r"the loss of the channel is 1\.0987, above epsilon 0.5"):
        edited.verify(levels())
    constant = Channel.of(plan.support, plan.support, [[1, 0, 0]] * 3)
    assert through_file(plan, path, channel=constant.to_dict()).verify(levels()).loss == 0


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"scale": 1.0}, "both a scale and a channel"),
        ({"channel": 3}, "'channel' is not of the right kind"),
        ({"channel": {}}, "'inputs' is missing"),
        ({"channel": None}, "scale must be one JSON number"),
        ({"regions": None}, "'regions'"),
        ({"regions": [None]}, "empty list"),
        ({"regions": [{"confidence": 0.95}]}, "its regions must be"),
        ({"regions": [{"confidence": "1.5"}]}, "above 0 and below 1"),
        ({"regions": [{"tv": "0.5"}]}, "its regions must be"),
    ],
    ids=str,
)
def test_nonsense_in_the_file_is_refused(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        through_file(pf.calibrate(levels(), 1), tmp_path / "plan.json", **changes)


@pytest.mark.parametrize("claim", [None, 3, {}, {"name": "hamming", "cost": "x"}], ids=repr)
def test_claims_make_no_plan_unreadable(claim: Any, tmp_path: Path) -> None:
    plan = pf.calibrate(levels(), 1).with_sensitivity(levels())
    path = tmp_path / "plan.json"
    back = through_file(plan, path, distortion=claim, sensitivity=claim, certificate=claim)
    assert back.distortion is None
    assert back.sensitivity is None
    assert back.verify(levels()).holds
    whole = through_file(plan, path)
    assert whole.sensitivity == plan.sensitivity
    assert whole.sensitivity is not None


def test_the_channel_of_other_values_is_refused(tmp_path: Path) -> None:
    plan = pf.calibrate(levels(), 1)
    other = pf.calibrate(NUMBERS, 1, "channel").channel
    assert other is not None
    with pytest.raises(InputError, match="not its support"):
        through_file(plan, tmp_path / "plan.json", channel=other.to_dict())


def test_verify_knows_levels_by_their_places() -> None:
    """The same counts under other names are another prior, and one that no release could code."""
    plan = pf.calibrate(levels(), 1)
    renamed = pf.Prior.from_counts(COUNTS, support=["a", "b", "c"])
    with pytest.raises(CheckFailed, match="not those that the plan"):
        plan.verify(renamed)
    with pytest.raises(CheckFailed, match="support of the plan"):
        plan.verify(renamed, other_prior=True)
    other = pf.Prior.from_counts({"ill": [60, 30, 10], "well": [20, 50, 30]}, support=NAMES)
    with pytest.raises(CheckFailed, match="above epsilon 1"):
        pf.calibrate(levels(), 1).verify(
            pf.Prior.from_counts({"ill": [90, 9, 1], "well": [1, 9, 90]}, support=NAMES),
            other_prior=True,
        )
    assert pf.calibrate(other, "0.2").verify(other).holds


@pytest.mark.parametrize("region", [{"confidence": ".95"}, {"tv_radius": ".05"}], ids=str)
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_a_robust_plan_keeps_its_promise_in_the_file(
    mechanism: str, region: dict[str, str], tmp_path: Path
) -> None:
    cost = {"cost": "hamming"} if mechanism == "channel" else {}
    plain = pf.calibrate(NUMBERS, "0.8", mechanism, **cost)
    robust = pf.calibrate(NUMBERS.with_region(**region), "0.8", mechanism, **cost)
    assert robust.robust
    assert not plain.robust
    assert (robust.cost or robust.scale) > (plain.cost or plain.scale)
    assert (robust.digest == plain.digest) == ("tv_radius" in region)
    assert robust.is_for(pf.Scenario(NUMBERS))
    back = through_file(robust, tmp_path / "plan.json")
    assert back.regions == robust.regions
    assert back.verify(NUMBERS).holds  # the plan itself says for which priors
    assert "every prior of the region" in back.verify(NUMBERS).statement
    # Mutant: the plain mechanism under the robust promise.
    broken = replace(back, applied=plain.applied)
    with pytest.raises(CheckFailed, match=r"for some prior of the region, above epsilon 0\.8"):
        broken.verify(NUMBERS)
    with pytest.raises(CheckFailed, match="for some prior of the region"):
        plain.verify(NUMBERS.with_region(**region))
    assert plain.verify(NUMBERS).holds


def test_one_rule_for_each_adversary() -> None:
    given = pf.Prior.from_mapping(
        {"ill": {0: ".5", 1: ".5"}, "well": {0: ".4", 2: ".6"}}, tv_radius=".01"
    )
    both = pf.Scenario([NUMBERS.with_region(confidence=".9"), given])
    plan = pf.calibrate(both, 1)
    assert set(plan.regions) == {Confidence(Fraction(9, 10)), TVBall(Fraction(1, 100))}
    assert plan.verify(both).holds
    with pytest.raises(CheckFailed, match=r"2 adversaries.*cannot be told"):
        plan.verify(NUMBERS, other_prior=True)
    mixed = pf.calibrate(pf.Scenario([NUMBERS, given]), 1)
    assert set(mixed.regions) == {None, TVBall(Fraction(1, 100))}
    with pytest.raises(InputError, match="confidence needs counts"):
        pf.calibrate(NUMBERS.with_region(confidence=".9"), 1).verify(
            pf.Prior.from_mapping({"ill": {0: 1}, "well": {1: ".5", 2: ".5"}}), other_prior=True
        )


@pytest.mark.parametrize("name", [n for n in NOISE if n != "exact"])
def test_who_cannot_honour_a_region_says_so(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} cannot honour a region.*exact, channel"):
        pf.calibrate(NUMBERS.with_region(tv_radius=".1"), 1, name)


def test_a_channel_that_fails_its_certificate_is_never_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = REGISTRY["channel"]

    def careless(scenario: pf.Scenario, epsilon: Fraction, **options: Any) -> Any:
        found = honest.calibrate(scenario, epsilon, **options)
        rows = np.eye(3, dtype=int).astype(object)
        return replace(found, channel=Channel.of(scenario.support, scenario.support, rows))

    monkeypatch.setitem(REGISTRY, "channel", replace(honest, calibrate=careless))
    with pytest.raises(PufferfishError, match="could not be certified"):
        pf.calibrate(levels(), "0.5")


def test_sensitivity_is_found_on_demand() -> None:
    plan = pf.calibrate(levels(), "0.5")
    assert plan.sensitivity is None
    found = plan.with_sensitivity(levels()).sensitivity
    assert found is not None
    assert found.loss_at_95 is not None
    assert found.loss_at_95 > 0.5
    assert found.radius == pytest.approx(0, abs=1e-9)
    assert 0 < (found.radius_at_double or 0) < 1
    given = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".4", 1: ".6"}})
    of_given = pf.calibrate(given, 1).with_sensitivity(pf.Scenario(given)).sensitivity
    assert of_given is not None
    assert of_given.loss_at_95 is None


HAMMING = {"cost": "hamming"}
SKEW = {"a": {0: ".6", 1: ".3", 2: ".1"}, "b": {0: ".3", 1: ".3", 2: ".4"}}
FLAT = pf.Prior.from_mapping({"a": {0: ".5", 1: ".3", 2: ".2"}, "b": {0: ".45", 1: ".35", 2: ".2"}})


def test_a_region_belongs_to_its_prior_in_whatever_order_they_come() -> None:
    loose = pf.Prior.from_mapping(SKEW, tv_radius=".05")
    plan = pf.calibrate(pf.Scenario([loose, FLAT]), ".5")
    low = replace(plan, applied=pf.calibrate(loose.with_region(), ".5").applied)
    for order in ([loose, FLAT], [FLAT, loose]):
        bare = [prior.with_region() for prior in order]
        for priors in (order, bare):
            assert plan.verify(pf.Scenario(priors)).holds
            with pytest.raises(CheckFailed, match="for some prior of the region"):
                low.verify(pf.Scenario(priors))
    with pytest.raises(CheckFailed, match="cannot be told which"):
        plan.verify(pf.Scenario([FLAT, FLAT]), other_prior=True)


def test_a_robust_plan_is_judged_for_its_region_under_any_number_of_priors() -> None:
    loose = pf.Prior.from_mapping(SKEW, tv_radius=".05")
    plan = pf.calibrate(loose, ".5")
    low = replace(plan, applied=pf.calibrate(loose.with_region(), ".5").applied)
    twice = pf.Scenario([loose.with_region(), FLAT])
    assert plan.verify(twice, other_prior=True).holds
    with pytest.raises(CheckFailed, match="for some prior of the region"):
        low.verify(twice, other_prior=True)


def test_a_wider_region_that_is_asked_for_is_not_left_out() -> None:
    loose = pf.Prior.from_mapping(SKEW, tv_radius=".01")
    plan = pf.calibrate(loose, ".5")
    assert plan.verify(loose).holds
    with pytest.raises(CheckFailed, match="for some prior of the region"):
        plan.verify(loose.with_region(tv_radius=".3"))


def test_a_radius_of_0_is_an_exact_prior() -> None:
    plan = pf.calibrate(pf.Prior.from_mapping(SKEW, tv_radius=0), ".5", "relaxed")
    assert not plan.robust
    assert plan.regions == ()


def test_certify_and_privacy_loss_know_regions_and_channels() -> None:
    loose = pf.Scenario(pf.Prior.from_mapping(SKEW, tv_radius=".05"))
    exact = loose.with_regions([None])
    for mechanism in ("exact", "channel"):
        plan = pf.calibrate(exact, ".5", mechanism, **({} if mechanism == "exact" else HAMMING))
        assert pf.certify(exact, plan.applied, ".5").holds
        certificate = pf.certify(loose, plan.applied, ".5")
        assert not certificate.holds
        assert certificate.loss > 0.6
    scale = pf.calibrate(exact, ".5").scale
    assert pf.privacy_loss(loose, scale) == pytest.approx(pf.certify(loose, scale).loss, rel=1e-12)
    assert pf.privacy_loss(loose, scale) > 0.6
    with pytest.raises(InputError, match="the joint loss is that of exact priors"):
        pf.joint_loss(loose, [pf.calibrate(exact, ".5")])
    with pytest.raises(InputError, match="the joint loss is that of exact priors"):
        pf.calibrate_together(loose, ".5", 1)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_channel_costs_is_rounded_to_the_worse_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = {s: rng.integers(1, 1000, 4).tolist() for s in "abc"}
    plan = pf.calibrate(pf.Prior.from_counts(counts, support=range(4)), ".4", "channel")
    made = plan.channel
    assert made is not None
    pooled = [sum(row[x] for row in counts.values()) for x in range(4)]
    total = sum(pooled)
    cells = [(x, y) for x in range(4) for y in range(4)]
    mu = [Fraction(c, total) for c in pooled]
    cost = sum(mu[x] * (x - y) ** 2 * made.probability(x, y) for x, y in cells)
    kept = sum(mu[x] * made.probability(x, x) for x in range(4))
    assert Fraction(plan.cost) >= cost
    assert Fraction(plan.mse) >= cost
    assert Fraction(plan.keep_rate) <= kept
    assert plan.cost == pytest.approx(float(cost), rel=1e-14)
    assert plan.keep_rate == pytest.approx(float(kept), rel=1e-14)


@pytest.mark.parametrize("name", ["", "\ud800"], ids=ascii)
def test_no_level_without_a_name_that_can_be_written(name: str) -> None:
    with pytest.raises(InputError, match="a level"):
        pf.Prior.from_mapping({"a": {name: ".5", "q": ".5"}, "b": {name: ".2", "q": ".8"}})


def test_a_small_file_cannot_ask_for_all_of_the_memory(tmp_path: Path) -> None:
    plan = pf.calibrate(levels(), 1)
    assert plan.channel is not None
    outputs = {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 33554432]]}
    channel = plan.channel.to_dict() | {"outputs": outputs}
    with pytest.raises(InputError, match="more entries than"):
        through_file(plan, tmp_path / "plan.json", channel=channel)


@pytest.mark.parametrize("name", ["exact \x1b[31mCERTIFIED", "", "Exact"], ids=ascii)
def test_the_name_of_a_mechanism_is_a_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="impossible name"):
        through_file(pf.calibrate(levels(), 1), tmp_path / "plan.json", mechanism=name)


def test_flags_are_flags() -> None:
    with pytest.raises(InputError, match="invariant must be True or False, but 'no'"):
        pf.calibrate(levels(), 1, invariant="no")  # type: ignore[arg-type]


def test_a_level_that_never_occurs_makes_nothing_changed() -> None:
    declared = pf.Prior.from_counts({"a": [5, 5, 0], "b": [5, 5, 0]}, support=NAMES)
    plan = pf.calibrate(declared, 1)
    assert plan.keep_rate == 1
    assert plan.unchanged


def test_with_a_confidence_the_numbers_of_rows_belong_to_the_prior() -> None:
    """Twice the table has the same frequencies, but narrower intervals: another prior."""
    doubled = {secret: [2 * c for c in row] for secret, row in COUNTS.items()}
    twice = pf.Prior.from_counts(doubled, support=[0, 1, 2])
    plan = pf.calibrate(NUMBERS.with_region(confidence=".9"), "0.8")
    assert plan.verify(NUMBERS).holds
    with pytest.raises(CheckFailed, match="not those that the plan was computed from"):
        plan.verify(twice)
    assert plan.verify(twice, other_prior=True).holds
    assert pf.calibrate(NUMBERS, "0.8").verify(twice).holds  # the same frequencies
    assert pf.calibrate(NUMBERS, "0.8").verify(NUMBERS.with_region(tv_radius=0)).holds
