# SPDX-License-Identifier: Apache-2.0
"""Rows of one person: counted together, bounded together, proved again, and never more released."""

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from pufferfish import judge as judge_module
from pufferfish import unitloss
from pufferfish.calibration import hiding
from pufferfish.calibration import units as calibration
from pufferfish.errors import CheckFailed, InputError, OutsidePromiseWarning, PriorWarning
from pufferfish.joint import Axis, Bound, DoesNotFit, joint_loss_of, unitrows
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.release import release_file
from pufferfish.release.units import UnitCounter
from pufferfish.scenario import Scenario
from pufferfish.support import make_lattice
from pufferfish.unitloss import cases, units_loss
from slow import joint_brute as brute
from slow.digits import M, real

COLUMNS = ["id", "s", "x"]


def frame(*persons: tuple[str, tuple[Any, ...]]) -> pd.DataFrame:
    """A table of persons: the secret of each, and its values in the order of its rows."""
    rows = [(f"p{at}", s, x) for at, (s, values) in enumerate(persons) for x in values]
    return pd.DataFrame(rows, columns=COLUMNS)


def counted(table: Any, **options: Any) -> pf.Prior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return pf.Prior.from_table(table, secret="s", public="x", unit="id", **options)


#: Each row alone tells nothing, two rows tell everything.
XOR = frame(*[("a", (v, v)) for v in (0, 1)] * 4, *[("b", (v, 1 - v)) for v in (0, 1)] * 4)


def persons(rng: np.random.Generator, numbers: tuple[int, ...], values: int = 3) -> pd.DataFrame:
    """Random persons, every secret with every number of rows."""
    made = [
        (s, tuple(int(v) for v in rng.integers(0, values, k)))
        for s in ("a", "b", "c")
        for k in numbers
        for _ in range(int(rng.integers(1, 4)))
    ]
    order = rng.permutation(len(made))
    return frame(*(made[at] for at in order), ("a", (0,)), ("b", (values - 1,)), ("c", (0,)))


def slow_loss(table: pd.DataFrame, kernel: Any) -> Any:
    """The loss of all rows of a person, for every number of rows, by its definition.

    ``kernel`` holds one dictionary ``value -> weight`` for each output.
    """
    joints: dict[int, dict[str, dict[tuple[int, ...], int]]] = {}
    for _, own in table.groupby("id", sort=False):
        values = tuple(own["x"].tolist())
        counts = joints.setdefault(len(values), {}).setdefault(own["s"].iloc[0], {})
        counts[values] = counts.get(values, 0) + 1
    worst = M.mpf(0)
    for k, by_secret in joints.items():
        assert len(by_secret) == 3
        adversary = list(by_secret.values())
        ratio = brute.largest_ratio(
            [adversary], [(0, 1), (0, 2), (1, 2)], [(at, kernel) for at in range(k)]
        )
        worst = max(worst, M.inf if ratio is None else M.log(real(ratio)))
    return worst


def noise_kernel(scale: float, values: int = 3) -> list[dict[int, Any]]:
    decay = M.exp(-1 / M.mpf(scale))
    return [{x: decay ** abs(y - x) for x in range(values)} for y in range(-1, values + 1)]


def channel_kernel(made: Channel) -> list[dict[int, Any]]:
    common = math.lcm(*made.denominators)
    rows = [[int(v) * (common // d) for v in row] for row, d in zip(made.rows, made.denominators)]  # noqa: B905
    return [{x: row[y] for x, row in enumerate(rows)} for y in range(len(rows[0]))]


def random_channel(rng: np.random.Generator, zeros: bool) -> Channel:
    support = make_lattice([Fraction(v) for v in range(3)])
    rows = [[int(v) for v in rng.integers(0 if zeros else 1, 6, 3)] for _ in range(3)]
    rows = [[*row[:2], 20 - row[0] - row[1]] for row in rows]
    return Channel.of(support, support, rows)


@pytest.mark.parametrize("seed", range(12))
def test_the_loss_is_that_of_all_outputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = persons(rng, ((1, 2), (1, 2, 3), (3,))[seed % 3])
    scenario = Scenario(counted(table))
    mechanisms: list[tuple[Mechanism, Any]] = []
    for scale in (0.4, 2.5):
        mechanisms.append((DiscreteLaplace(scale, Fraction(1)), noise_kernel(scale)))
    for zeros in (False, True):
        made = random_channel(rng, zeros)
        mechanisms.append((made, channel_kernel(made)))
    for mechanism, kernel in mechanisms:
        found, slow = units_loss(scenario, mechanism), slow_loss(table, kernel)
        assert found.numbers[0] == 1
        if found.upper is None:
            assert slow == M.inf
        else:
            assert slow * (1 - M.mpf("1e-13")) <= real(found.upper) * (1 + M.mpf("1e-30"))
            assert real(found.upper) <= slow * (1 + M.mpf("1e-9")) + M.mpf("1e-12")
            assert real(found.upper) >= slow - M.mpf("1e-30")


def check_calibrated(table: pd.DataFrame, epsilon: str, mechanism: str) -> None:
    """The check that mutants have to fail: all rows of everybody are within epsilon."""
    plan = pf.calibrate(counted(table), epsilon, mechanism)
    kernel = channel_kernel(plan.channel) if plan.channel else noise_kernel(plan.scale or 1e-3)
    loss = slow_loss(table, kernel)
    assert loss <= real(Fraction(epsilon)) * (1 + M.mpf("1e-30")), (loss, epsilon)


CALIBRATED = persons(np.random.default_rng(3), (1, 2, 3))


@pytest.mark.parametrize("mechanism", ["l1", "wasserstein", "relaxed", "exact", "channel"])
@pytest.mark.parametrize("epsilon", ["1/3", "2"])
def test_what_is_calibrated_keeps_all_rows_within_epsilon(epsilon: str, mechanism: str) -> None:
    check_calibrated(CALIBRATED, epsilon, mechanism)


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_the_least_that_does(seed: int) -> None:
    table = persons(np.random.default_rng(seed + 50), (1, 2, 3))
    plan = pf.calibrate(counted(table), 1)
    assert plan.scale
    assert slow_loss(table, noise_kernel(plan.scale)) > 1 - M.mpf("1e-9")
    assert plan.loss <= 1


@pytest.mark.parametrize("looked_at", [(1,), (1, 2)], ids=["rows alone", "two rows at most"])
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_mutant_that_leaves_out_numbers_of_rows(
    looked_at: tuple[int, ...], mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks at single rows, or at two of them only, calibrates too little."""
    table = frame(
        *[(s, (v, v, v)) for s, v in (("a", 0), ("b", 0), ("b", 2), ("c", 0), ("c", 1))] * 2,
        *[(s, (v, 0)) for s in "abc" for v in (0, 1, 2)],
        *[(s, (v,)) for s in "abc" for v in (0, 1, 2)],
    )
    check_calibrated(table, "1", mechanism)

    def some(scenario: Scenario, numbers: Any = ()) -> Iterator[unitloss.Case]:
        return (case for case in cases(scenario, numbers) if case.rows in looked_at)

    monkeypatch.setattr(unitloss, "cases", some)
    monkeypatch.setattr(calibration, "cases", some)
    with pytest.raises(AssertionError):
        check_calibrated(table, "1", mechanism)


def test_mutant_that_adds_the_losses_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """k times the loss of one row is no bound."""

    def added(self: unitloss.Case, released: Any, labels: Any, limit: Any = None) -> Bound:
        single = Scenario(PRIOR_OF_XOR)
        loss = self.rows * Fraction(pf.privacy_loss(single, scale=released[0].releases[0].scale))
        return Bound(loss, "sum", None, (), ())

    monkeypatch.setattr(unitloss.Case, "bound", added)
    plan = pf.calibrate(counted(XOR), 1)
    assert plan.scale == 0  # and everything is told


PRIOR_OF_XOR = pf.Prior.from_table(XOR, secret="s", public="x")


def test_single_rows_tell_nothing_and_two_tell_everything() -> None:
    assert pf.calibrate(PRIOR_OF_XOR, 1).scale == 0
    prior = counted(XOR)
    untouched = units_loss(Scenario(prior), DiscreteLaplace(0.0, Fraction(1)))
    assert untouched.upper is None
    assert untouched.rows == 2
    assert math.isinf(untouched.value)
    assert not untouched.at_most(Fraction(100))
    plan = pf.calibrate(prior, 1)
    # ln (1 + q^2) / (2 q) with q = exp(-1 / theta)
    q = math.exp(-1 / (plan.scale or 0))
    assert math.log((1 + q * q) / (2 * q)) == pytest.approx(1)
    assert plan.units is not None
    assert plan.units.rows == (2,)
    assert "above what single rows need" in " ".join(plan.notes)
    channel = pf.calibrate(prior, 1, "channel")
    assert channel.channel is not None
    assert not channel.unchanged
    assert units_loss(Scenario(prior), channel.channel).at_most(Fraction(1))
    assert "hides every value from every other" in " ".join(channel.notes)


def test_a_channel_that_cannot_be_had_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiding, "MOST_VALUES", 1)
    refusal = r"the loss of 2 rows is infinite.*cannot be had with invariant.*noise"
    with pytest.raises(DoesNotFit, match=refusal):
        pf.calibrate(counted(XOR), 1, "channel", invariant=True)
    assert pf.calibrate(counted(XOR), 1, "channel").verify(counted(XOR)).holds
    monkeypatch.undo()
    # Both values have to stay what they are for the most part: not at so small an epsilon.
    with pytest.raises(DoesNotFit, match="under these conditions"):
        pf.calibrate(counted(XOR), "0.1", "channel", min_keep="0.9")


def test_a_number_of_rows_that_only_one_secret_has_counts_with_its_worst_case() -> None:
    table = frame(("a", (0,)), ("a", (4,)), ("b", (0,)), ("b", (4,)), ("a", (1, 1, 1)))
    prior = counted(table)
    plan = pf.calibrate(prior, "1/3")
    assert plan.scale == 3 * 4 * 3  # rows, diameter, 1 / epsilon
    assert plan.units is not None
    assert plan.units.rows == (1, 3)
    assert "worst-case sum of 3 rows" in plan.units.how
    assert prior.report is not None
    assert any("may tell the secret" in note for note in prior.report.notes)
    assert plan.verify(prior).holds
    below = DiscreteLaplace(math.nextafter(36, 0), Fraction(1))
    with pytest.raises(CheckFailed, match=r"3 rows \(worst-case sum\)"):
        replace(plan, applied=below).verify(prior)


def test_a_grid_that_is_too_large_counts_with_its_worst_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = frame(*[(s, (v, v + 1)) for s in "ab" for v in (0, 2)], ("a", (3, 3)), ("b", (0, 1)))
    exact = pf.calibrate(counted(table), 1)
    monkeypatch.setattr(unitrows, "MOST_CELLS", 3)
    plan = pf.calibrate(counted(table), 1)
    assert plan.scale == 3 + 2  # the reach of the first row and of the second
    assert (exact.scale or 0) < 5
    assert plan.units is not None
    assert plan.units.how == "worst-case sum of 2 rows of one person"
    channel = pf.calibrate(counted(table), 1, "channel")
    assert channel.units is not None
    assert channel.units.loss <= 1
    assert "hides every value" in channel.notes[-1]


def test_equality_with_epsilon_is_decided_exactly() -> None:
    prior = counted(frame(("a", (0, 0)), ("b", (1, 1))))
    plan = pf.calibrate(prior, "1/3")
    assert plan.scale == 6
    assert plan.verify(prior).holds
    assert plan.loss == 1 / 3


def test_the_order_of_rows_never_makes_the_loss_smaller() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        table = persons(rng, (1, 3))
        noise = DiscreteLaplace(0.7, Fraction(1))
        ordered = units_loss(Scenario(counted(table)), noise).value
        shuffles = []
        for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
            part = table.groupby("id", sort=False)["x"].transform(
                lambda x, order=order: x.to_numpy()[list(order)[: len(x)]] if len(x) == 3 else x
            )
            shuffles.append(table.assign(x=part, id=table["id"] + f"/{order}"))
        symmetric = units_loss(Scenario(counted(pd.concat(shuffles))), noise).value
        assert symmetric <= ordered * (1 + 1e-12)


@given(st.integers(0, 10**6), st.floats(0.1, 5))
def test_more_noise_never_costs_more(seed: int, scale: float) -> None:
    table = persons(np.random.default_rng(seed), (1, 2))
    scenario = Scenario(counted(table))
    first, second = (
        units_loss(scenario, DiscreteLaplace(t, Fraction(1))).value for t in (scale, 1.5 * scale)
    )
    assert second <= first * (1 + 1e-12)
    assert second >= 0


# Counting


def test_rows_are_counted_in_the_order_of_the_table() -> None:
    table = pd.DataFrame(
        [("u", "a", 1), ("v", "b", 0), ("u", "a", 0), ("w", "a", 1), ("v", "b", 0), ("t", "b", 1)],
        columns=COLUMNS,
    )
    prior = counted(table)
    assert prior.units is not None
    assert prior.units.column == "id"
    one, two = prior.units.groups
    assert (one.rows, one.sequences.tolist(), one.counts.tolist()) == (1, [[1]], [[1], [1]])
    assert two.sequences.tolist() == [[0, 0], [1, 0]]
    assert two.counts.tolist() == [[0, 1], [1, 0]]
    assert prior.report is not None
    assert "4 units, 2 of 1 row, 2 of 2 rows" in prior.report.notes[0]


def test_every_kind_of_table_gives_the_same_plan(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = CALIBRATED.assign(id=CALIBRATED["id"].str.removeprefix("p").astype(int))
    table.to_csv(path, index=False)
    table.to_parquet(tmp_path / "t.parquet")
    plans = [
        pf.calibrate(counted(source), "0.7")
        for source in (
            path,
            tmp_path / "t.parquet",
            table,
            pl.from_pandas(table),
            pl.from_pandas(table).lazy(),
        )
    ]
    assert len({(p.scale, p.digest, p.units) for p in plans}) == 1


def test_rows_without_a_value_and_others_secrets_are_left_out() -> None:
    table = pd.DataFrame(
        [
            ("u", "a", "1"), ("u", "a", ""), ("u", "", ""), ("v", "b", "0"), ("v", "b", "1"),
            ("w", "a", "0"), ("w", "a", "1"), ("x", "", "1"), ("x", "", "0"), ("x", "", "0"),
            ("y", "c", "1"), ("y", "c", "1"), ("y", "c", "1"), ("", "a", ""), ("z", "b", "1"),
        ],
        columns=COLUMNS,
    )  # fmt: skip
    prior = counted(table, exclude_secrets=["c"])
    assert prior.units is not None
    assert [(g.rows, g.counts.sum(axis=1).tolist()) for g in prior.units.groups] == [
        (1, [1, 1]),
        (2, [1, 1]),
    ]
    level = counted(table.assign(x=table["x"].replace({"0": "no", "1": "yes"})).drop(index=[2, 13]),
                    exclude_secrets=["c"], missing_as_level=True)  # fmt: skip
    assert level.units is not None
    two = level.units.group(2)
    assert two is not None
    assert two.counts.sum(axis=1).tolist() == [2, 1]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([("u", "a", 1), ("u", "b", 0)], "1 unit .* has rows with different secrets .* rows 6, 7"),
        ([("u", "a", 1), ("u", "b", None)], "different secrets"),
        ([("u", "a", 1), ("u", None, 0)], "a secret in one row and none in another"),
        ([(None, "a", 1)], r"1 row .* nothing in the unit column 'id' \(the first is data row 6\)"),
        ([("", "a", 1), (" ", None, 0)], "2 rows .* data row 6"),
        ([("?", "a", 1)], "1 row .* nothing in the unit column"),
    ],
)
def test_what_says_nothing_of_persons_is_refused(rows: list[Any], message: str) -> None:
    base = [("p", "a", 0), ("q", "b", 1), ("q", "b", 1), ("r", "a", 1), ("r", "a", 1)]
    table = pd.DataFrame([*base, *rows], columns=COLUMNS)
    with pytest.raises(InputError, match=message):
        counted(table, missing=["?"])


def test_where_not_all_rows_can_be_counted_the_bound_decides() -> None:
    """Not the worst case: the scale is the least by which what is proved fits."""
    rng = np.random.default_rng(0)
    rows = [1 if k % 4 < 2 else 20 for k in range(400)]
    table = frame(
        *(("ab"[k % 2], tuple(rng.integers(0, 3, n).tolist())) for k, n in enumerate(rows))
    )
    plan = pf.calibrate(counted(table), 1)
    worst = 20 * 2
    assert plan.units is not None
    assert plan.units.how == "joint loss + worst cases of 20 rows of one person"
    assert (plan.scale or 0) < 0.9 * worst
    assert 1 - 1e-9 < plan.loss <= 1
    beside = pf.calibrate(counted(table), 1, already=[])
    assert beside.scale == pytest.approx(plan.scale, rel=1e-6)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    for options, message in (
        ({"unit": "x"}, "the unit and the public column must differ"),
        ({"unit": "s"}, "the unit and the secret column must differ"),
        ({"unit": "idd"}, "no column 'idd'.*did you mean 'id'"),
        ({"unit": ""}, "unit must be the name of a column"),
        ({"unit": "id", "confidence": 0.9}, "region .* not supported together with a unit"),
        ({"unit": "id", "tv_radius": 0.1}, "region .* not supported together with a unit"),
    ):
        with pytest.raises(InputError, match=message):
            pf.Prior.from_table(XOR, **{"secret": "s", "public": "x", **options})  # type: ignore[arg-type]
    prior = counted(XOR)
    with pytest.raises(InputError, match="region"):
        prior.with_region(tv_radius="0.1")
    with pytest.raises(InputError, match="in the priors of all"):
        pf.calibrate(Scenario([prior, PRIOR_OF_XOR]), 1)
    with pytest.raises(InputError, match="in the priors of all"):
        pf.calibrate(Scenario(replace(prior, units=None)), 1)


def test_several_adversaries_on_different_supports() -> None:
    first = persons(np.random.default_rng(1), (1, 2), values=2)
    second = persons(np.random.default_rng(2), (1, 2), values=3).assign(
        s=lambda t: t["s"].map({"a": "c", "b": "b", "c": "a"})
    )
    one, two = counted(first), counted(second)
    both = pf.calibrate(Scenario([one, two]), 1)
    alone = [pf.calibrate(prior, 1).scale or 0 for prior in (one, two)]
    assert both.scale == pytest.approx(max(alone), rel=1e-12)
    assert both.verify(Scenario([two, one])).holds
    # A number of rows that one adversary knows nothing of counts with its worst case there.
    third = counted(persons(np.random.default_rng(2), (1, 2, 3)))
    wider = pf.calibrate(Scenario([two, third]), 1)
    assert wider.scale == 3 * 2


# Plans


def test_a_plan_knows_what_it_says_of_persons(tmp_path: Path) -> None:
    prior = counted(CALIBRATED)
    plan = pf.calibrate(prior, 1)
    assert plan.rules is not None
    assert plan.rules.unit == "id"
    assert "The rows with the same 'id' are taken as one person's" in plan.assumption
    assert "Each row is taken as a person" not in plan.assumption
    assert "how many rows a person has is not protected" in plan.assumption
    assert plan.loss == plan.verify(prior).loss
    assert "All rows of one person together, 1 or 2 or 3 of them" in plan.certificate.statement
    assert plan.with_sensitivity(Scenario(prior)) is plan
    plan.save(tmp_path / "plan.json")
    back = pf.Plan.load(tmp_path / "plan.json")
    assert (back.units, back.rules, back.assumption) == (plan.units, plan.rules, plan.assumption)
    rows = pf.calibrate(pf.Prior.from_table(CALIBRATED, secret="s", public="x"), 1)
    assert rows.units is None
    assert rows.to_dict()["units"] is None
    assert rows.assumption.endswith("Each row is taken as a person of its own (--unit COL if not).")


def test_verify_proves_all_rows_again() -> None:
    prior = counted(CALIBRATED)
    plan = pf.calibrate(prior, 1)
    assert plan.verify(prior).holds
    single = pf.calibrate(pf.Prior.from_table(CALIBRATED, secret="s", public="x"), 1)
    # A plan for single rows, edited to speak of persons; or judged by somebody who knows these.
    data = single.to_dict()
    data["rules"]["unit"] = "id"
    for claim in (None, {"rows": "many"}, plan.to_dict()["units"]):
        edited = pf.Plan.from_dict({**data, "units": claim})
        with pytest.raises(CheckFailed, match="all rows of one person together"):
            edited.verify(prior)
    with pytest.raises(CheckFailed, match="all rows of one person together"):
        single.verify(prior)
    with pytest.raises(CheckFailed, match="does not say which rows these are"):
        plan.verify(pf.Prior.from_table(CALIBRATED, secret="s", public="x"))


def test_a_plan_that_lets_more_rows_pass_is_refused() -> None:
    prior = counted(CALIBRATED)
    data = pf.calibrate(prior, 1).to_dict()
    data["units"]["rows"] = [1, 2, 3, 50]
    with pytest.raises(CheckFailed, match=r"for 50 rows \(worst-case sum\)"):
        pf.Plan.from_dict(data).verify(prior)


def test_other_persons_or_another_order_are_another_prior() -> None:
    table = frame(("a", (0, 1)), ("a", (1, 1)), ("b", (0, 1)), ("b", (0, 0)))
    plan = pf.calibrate(counted(table), 1)
    turned = counted(table.iloc[::-1])
    with pytest.raises(CheckFailed, match="or their order, are not those"):
        plan.verify(turned)
    assert plan.verify(turned, other_prior=True).holds
    assert plan.verify(counted(table.iloc[[2, 3, 0, 1, 6, 7, 4, 5]])).holds
    others = counted(table.assign(id=["p", "q", "r", "r", "t", "t", "u", "u"]))
    with pytest.raises(CheckFailed):
        plan.verify(others)


def test_mutant_that_verifies_single_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = counted(XOR)
    told = replace(pf.calibrate(prior, 1), applied=DiscreteLaplace(0.0, Fraction(1)))
    with pytest.raises(CheckFailed, match="infinite for 2 rows"):
        told.verify(prior)
    monkeypatch.setattr(judge_module, "_by_units", lambda *_: False)
    assert told.verify(prior).holds


# Release


def test_a_release_reads_the_unit_and_never_writes_it(tmp_path: Path) -> None:
    plan = pf.calibrate(counted(CALIBRATED), 1)
    released = plan.release(CALIBRATED)
    assert list(released.columns) == ["x"]
    assert len(released) == len(CALIBRATED)
    lazy = plan.release(pl.from_pandas(CALIBRATED).lazy()).collect()
    assert lazy.columns == ["x"]
    wide = CALIBRATED.assign(ward="w")
    for name in ("id", "ID", "\uff49\uff44"):
        with pytest.raises(InputError, match="the unit column 'id' cannot be kept"):
            plan.release(wide, keep=["ward", name])
    with pytest.warns(OutsidePromiseWarning):
        assert list(plan.release(wide, keep=["ward"]).columns) == ["x", "ward"]


def test_a_release_refuses_what_the_plan_does_not_know() -> None:
    table = frame(*[(s, x) for s in "ab" for x in ((0,), (1,), (1, 0, 1), (0, 0, 1))], ("a", (0,)))
    plan = pf.calibrate(counted(table), "0.1")
    assert plan.units is not None
    assert plan.units.rows == (1, 3)
    four = pd.concat([table, pd.DataFrame([("p2", "a", 1)], columns=COLUMNS)])
    two = pd.concat([table, pd.DataFrame([("p0", "a", 1)], columns=COLUMNS)])
    for wrong, number, row in ((four, 4, 3), (two, 2, 1)):
        with pytest.raises(
            InputError, match=rf"such as {number} \(first in data row {row}\).*1 or 3 rows"
        ):
            plan.release(wrong)
    # A blank is no row of a release; whose row it is does not matter then.
    blank = pd.DataFrame([("p0", "a", None), (None, "b", None)], columns=COLUMNS)
    with pytest.warns(OutsidePromiseWarning, match="left out"):
        assert len(plan.release(pd.concat([table, blank]))) == len(table)
    with pytest.raises(InputError, match="nothing in the unit column"):
        plan.release(pd.concat([table, pd.DataFrame([(None, "a", 1)], columns=COLUMNS)]))
    with pytest.raises(InputError, match="no column 'id'"):
        plan.release(table.drop(columns="id"))
    for values in (table["x"], table["x"].to_numpy(), [0, 1]):
        with pytest.raises(InputError, match="an array does not say which rows are one person's"):
            plan.release(values)
    lost = pf.Plan.from_dict({**plan.to_dict(), "units": None})
    with pytest.raises(InputError, match="does not say how many rows"):
        lost.release(table)


def test_a_release_counts_those_who_may_be_protected() -> None:
    table = frame(("a", (0,)), ("b", (1,)), ("a", (1,)), ("c", (1, 1, 1)), ("", (0, 0)))
    plan = pf.calibrate(Scenario(counted(table), [("a", "b")]), 1)
    assert plan.units is not None
    assert plan.units.rows == (1,)
    with pytest.warns(OutsidePromiseWarning, match="5 released rows are outside the promise"):
        assert len(plan.release(table)) == 8
    # Where nobody knows the secret everybody counts.
    with pytest.raises(InputError, match="2 units"):
        plan.release(table.drop(columns="s"))


def test_mutant_that_does_not_check_the_released_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame(("a", (0,)), ("b", (1,)), ("a", (1,)))
    plan = pf.calibrate(counted(table), 1)
    more = pd.concat([table, table])
    with pytest.raises(InputError, match="knows nothing of"):
        plan.release(more)
    monkeypatch.setattr(UnitCounter, "check", lambda self: None)
    assert len(plan.release(more)) == 6


def test_the_order_of_batches_does_not_matter(tmp_path: Path) -> None:
    """Rows of one person that lie far apart are one person's."""
    rng = np.random.default_rng(5)
    many = 70_000
    table = pd.DataFrame(
        {"id": np.arange(many), "s": np.where(np.arange(many) % 2, "a", "b"),
         "x": rng.integers(0, 2, many)}
    )  # fmt: skip
    table = pd.concat([table, table.iloc[:100]])
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    prior = counted(path)
    assert prior.units is not None
    assert [(g.rows, int(g.counts.sum())) for g in prior.units.groups] == [(1, 69_900), (2, 100)]
    spec = pf.calibrate(prior, 1).release_spec(min_scale=1)
    assert release_file(path, tmp_path / "o.csv", spec).rows_released == 70_100
    table = pd.concat([table, table.iloc[:1]])
    table.to_csv(path, index=False)
    with pytest.raises(InputError, match=r"such as 3 \(first in data row 1\)"):
        release_file(path, tmp_path / "p.csv", spec)
    assert not (tmp_path / "p.csv").exists()


def test_a_plan_file_is_json_with_the_claim(tmp_path: Path) -> None:
    plan = pf.calibrate(counted(XOR), 1)
    plan.save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["units"]["rows"] == [2]
    assert data["rules"]["unit"] == "id"
    assert data["units"]["how"] == "joint loss of 2 rows of one person"


def test_a_plan_file_with_a_claim_and_no_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    pf.calibrate(counted(XOR), 1).save(path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"rules": data["rules"] | {"unit": None}}))
    with pytest.raises(InputError, match="its rules name no unit"):
        pf.Plan.load(path)


def test_the_joint_loss_is_that_of_the_engine() -> None:
    """The same number as rows taken for columns by hand."""
    prior = counted(XOR)
    noise = DiscreteLaplace(0.9, Fraction(1))
    [case] = cases(Scenario(prior))
    released = [Axis(prior.support, (noise,))]  # type: ignore[arg-type]
    places = case.places(released, ())
    assert places.masses.tolist() == [[[4, 0], [0, 4]], [[0, 4], [4, 0]]]
    assert (places.columns, places.rows, places.counted) == ([0, 0], [0, 1], [0, 1])
    loss = joint_loss_of([places.masses], places.axes, [(0, 1)])
    assert case.bound(released, [["1"]]).upper == loss.upper


def test_a_person_is_the_same_however_the_number_is_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who,s,x\n7,a,0\n7.0,a,1\n8,b,1\n8,b,0\n9,a,0\n9e0,a,0\n10,b,1\n1e1,b,1\n")
    prior = pf.Prior.from_table(path, secret="s", public="x", unit="who")
    assert prior.units is not None
    assert [group.rows for group in prior.units.groups] == [2]
