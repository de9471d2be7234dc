# SPDX-License-Identifier: Apache-2.0
"""What releases cost together: prices, charges, tables known again, and what is never overspent."""

import itertools
import json
import math
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pufferfish as pf
from pufferfish.errors import InputError, OutsidePromiseWarning
from pufferfish.joint import DoesNotFit, worst_case
from pufferfish.ledger import adversaries, pricing, records, subject, suited
from pufferfish.ledger import ledger as module
from pufferfish.ledger.calibrating import calibrate_beside
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.readings import Reading
from pufferfish.ledger.state import out_of, read_state
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.release import check_release
from pufferfish.tables.identity import identity_of
from pufferfish.unitloss import units_loss

Frame = Any


def frame(rows: Sequence[tuple[Any, ...]], columns: Sequence[str] = ("s", "x", "z")) -> Frame:
    return pd.DataFrame(list(rows), columns=list(columns))


def random_frame(seed: int, rows: int = 60, missing: float = 0.0) -> Frame:
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, rows)
    x = rng.integers(0, 3, rows) + s * (rng.random(rows) < 0.4)
    z = np.where(rng.random(rows) < 0.6, x % 2, rng.integers(0, 2, rows)).astype(float)
    z[rng.random(rows) < missing] = np.nan
    return pd.DataFrame({"s": np.where(s, "yes", "no"), "x": x, "z": z})


def plan_for(
    table: Frame, public: str, epsilon: Any = 0.2, mechanism: str = "exact", **options: Any
) -> pf.Plan:
    prior = pf.Prior.from_table(table, secret="s", public=public, **options)
    return pf.calibrate(prior, epsilon, mechanism)


def at_scale(plan: pf.Plan, scale: float) -> pf.Plan:
    assert plan.noise is not None
    return replace(plan, applied=DiscreteLaplace(scale, plan.noise.step))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "books.db")
    made.open_account("s", "1")
    return made


def spend(ledger: Ledger, table: Any, plan: pf.Plan, **options: Any) -> float:
    with ledger.charge(table, plan, **options) as charged:
        pass
    return charged.price.loss


# ---- what a release costs ---------------------------------------------------------------------


def test_one_release_costs_the_loss_of_its_plan(ledger: Ledger) -> None:
    table = random_frame(1)
    plan = plan_for(table, "x")
    price = ledger.price(table, plan)
    assert price.fits
    assert price.own
    assert price.releases == 0
    assert not price.needs_new_table
    assert price.loss == pytest.approx(plan.loss, rel=1e-9)
    assert ledger.entries() == []


def test_the_same_column_twice_costs_its_joint_loss_and_not_a_sum(tmp_path: Path) -> None:
    """Theory, section 6: 0.840 twice, 7.61 five times, where one costs 0.1."""
    prior = pf.Prior.from_counts({"a": [100, 0], "b": [99, 1]}, support=[0, 10])
    table = frame([("a", 0)] * 100 + [("b", 0)] * 99 + [("b", 10)], ["s", "x"])
    plan = plan_for(table, "x", "0.1")
    assert plan.scale == pytest.approx(4.0919340115)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    costs = [spend(ledger, table, plan) for _ in range(5)]
    assert costs[0] == pytest.approx(0.1)
    assert costs[1] == pytest.approx(0.840, abs=5e-4)
    assert costs[4] == pytest.approx(7.61, abs=5e-3)
    assert costs == [float(pf.joint_loss(prior, [("x", plan.applied)] * k)) for k in range(1, 6)]


def test_two_columns_that_tell_nothing_alone_and_everything_together(ledger: Ledger) -> None:
    table = frame([("a", 0, 0), ("a", 1, 1), ("b", 0, 1), ("b", 1, 0)] * 5)
    x, z = plan_for(table, "x"), plan_for(table, "z")
    assert x.scale == 0
    assert z.scale == 0
    assert spend(ledger, table, x) == 0
    price = ledger.price(table, z)
    assert price.loss == math.inf
    assert not price.fits
    assert price.left == 0
    with pytest.raises(DoesNotFit, match="infinity") as refused, ledger.charge(table, z):
        pytest.fail("it was charged")
    assert refused.value.exit_status == 1
    assert [record.columns for record in ledger.entries()] == [("x",)]


@given(seed=st.integers(0, 10**6), scales=st.lists(st.floats(0.5, 20), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_prices_are_joint_losses(
    tmp_path_factory: pytest.TempPathFactory, seed: int, scales: list[float]
) -> None:
    table = random_frame(seed)
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "books.db")
    ledger.open_account("s", 10**6)
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"])
    plans = [at_scale(plan_for(table, "xz"[k % 2]), scale) for k, scale in enumerate(scales)]
    for k, plan in enumerate(plans, 1):
        loss = spend(ledger, table, plan)
        assert loss == pytest.approx(float(pf.joint_loss(joint, plans[:k])), rel=1e-9)
    assert ledger.verify().differences == ()


@pytest.mark.parametrize("times, share", [(10, Fraction(1, 10)), (11, Fraction(1, 11))])
@pytest.mark.parametrize("mechanism", ["l1", "wasserstein"])
def test_rational_bounds_of_one_column_add_exactly(
    ledger: Ledger, times: int, share: Fraction, mechanism: str
) -> None:
    """Where the secret decides the value the loss is diameter / theta, and it adds."""
    table = frame([("a", 0), ("b", 5)] * 10, ["s", "x"])
    plan = plan_for(table, "x", share, mechanism)
    for _ in range(times):
        assert spend(ledger, table, plan) <= 1
    assert float(ledger.price(table, plan).before) == pytest.approx(1)
    assert not ledger.price(table, plan).fits
    with pytest.raises(DoesNotFit), ledger.charge(table, plan):
        pytest.fail("it was charged")
    assert len(ledger.entries()) == times


def test_as_many_thirds_as_fit(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", "1/3")
    table = frame([("a", 0), ("b", 9)] * 10, ["s", "x"])
    for _ in range(3):
        spend(ledger, table, plan_for(table, "x", "1/9", "l1"))
    assert not ledger.price(table, plan_for(table, "x", "1/1000000", "l1")).fits


def test_pairs_of_all_plans_count(ledger: Ledger) -> None:
    """A release that protects one pair tells of another pair that an earlier plan protects."""
    rows = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 0), ("c", 1)] * 9
    table = frame(rows, ["s", "x"])
    prior = pf.Prior.from_table(table, secret="s", public="x")
    free = pf.calibrate(pf.Scenario(prior, [("a", "b")]), 0.1)
    assert free.scale == 0
    assert ledger.price(table, free).loss == 0
    spend(ledger, table, pf.calibrate(pf.Scenario(prior, [("a", "c")]), 0.1))
    assert ledger.price(table, free).loss == math.inf or ledger.price(table, free).loss > 0.1


def test_channels_and_noise_together(ledger: Ledger) -> None:
    table = random_frame(3)
    table["z"] = np.where(table["z"] == 1, "p", "q")
    x = plan_for(table, "x")
    z = pf.calibrate(
        pf.Prior.from_table(table, secret="s", public="z"), 0.1, "channel", min_keep=0.6
    )
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"])
    assert spend(ledger, table, x) <= 0.2
    loss = spend(ledger, table, z)
    assert loss == pytest.approx(float(pf.joint_loss(joint, [x, z])), rel=1e-9)


# ---- charged before, whatever happens after ---------------------------------------------------


def test_it_is_charged_before_the_block_and_released_after(ledger: Ledger) -> None:
    table = random_frame(1)
    plan = plan_for(table, "x")
    with ledger.charge(table, plan) as charged:
        [entry] = Ledger.open(ledger.path).entries()
        assert (entry.id, entry.state) == (charged.id, "charged")
        plan.release(table)
    [entry] = ledger.entries()
    assert entry.state == "released"
    assert entry.mechanism == "exact"
    assert entry.epsilon == "0.2"
    assert json.loads(entry.plan)["scale"] == plan.scale


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_what_fails_stays_charged(ledger: Ledger, error: BaseException) -> None:
    table = random_frame(1)
    plan = plan_for(table, "x")
    with pytest.raises(type(error)) as raised, ledger.charge(table, plan) as charged:
        raise error
    assert any(charged.id in note and "ledger show" in note for note in raised.value.__notes__)
    [entry] = ledger.entries()
    assert entry.state == "charged"
    assert ledger.price(table, plan).releases == 1


def test_a_release_that_cannot_be_noted_as_released_is_one_all_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, id: str) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(module.Store, "mark_released", full)
    table = random_frame(1)
    with (
        pytest.warns(pf.errors.PufferfishWarning, match="the disk is full"),
        ledger.charge(table, plan_for(table, "x")),
    ):
        pass
    assert [entry.state for entry in ledger.entries()] == ["charged"]


def test_somebody_who_charges_meanwhile_is_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frame([("a", 0), ("b", 5)] * 10, ["s", "x"])
    plan = plan_for(table, "x", "0.6", "l1")
    overtake(monkeypatch, lambda: spend(Ledger.open(ledger.path), table, plan))
    with pytest.raises(DoesNotFit), ledger.charge(table, plan):
        pytest.fail("it was charged")
    assert len(ledger.entries()) == 1


def test_without_a_look_at_the_version_it_would_not_be_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    table = frame([("a", 0), ("b", 5)] * 10, ["s", "x"])
    plan = plan_for(table, "x", "0.6", "l1")
    real = module.read_state

    def blind(*arguments: Any) -> Any:
        state = real(*arguments)
        return replace(state, account=replace(state.account, version=Same()))

    overtake(monkeypatch, lambda: spend(Ledger.open(ledger.path), table, plan))
    monkeypatch.setattr(module, "read_state", blind)
    spend(ledger, table, plan)
    assert len(ledger.entries()) == 2  # overspent
    assert any("too little" in d.what for d in ledger.verify().differences)


def test_who_is_overtaken_again_and_again_computes_while_others_wait(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_frame(1)
    plan = at_scale(plan_for(table, "x"), 1000.0)
    other = frame([("a", 0, 0), ("b", 5, 1)] * 10)
    small = at_scale(plan_for(other, "x"), 10.0**6)
    times: list[float] = []

    def charge() -> None:
        if len(times) < 5:
            times.append(spend(Ledger.open(ledger.path), other, small, new_table=True))

    overtake(monkeypatch, charge, once=False)
    spend(ledger, table, plan, new_table=True)
    assert len(times) == 5
    assert len(ledger.entries()) == 6


def overtake(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any], once: bool = True) -> None:
    """Do something right before the right to write is taken, as another process might."""
    real = module.Store.begin_charge
    busy: list[bool] = []

    def begin(self: Any) -> Any:
        if not busy:
            busy.append(True)
            work()
            if not once:
                busy.clear()
        return real(self)

    monkeypatch.setattr(module.Store, "begin_charge", begin)


def test_turned_back_clocks_and_copied_plans_change_nothing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_frame(2)
    plan_for(table, "x").save(tmp_path / "one.json")
    (tmp_path / "two.json").write_bytes((tmp_path / "one.json").read_bytes())
    first = spend(ledger, table, pf.Plan.load(tmp_path / "one.json"))
    monkeypatch.setattr("pufferfish.ledger.store.now", lambda: "1970-01-01T00:00:00Z")
    second = spend(ledger, table, pf.Plan.load(tmp_path / "two.json"))
    assert second > first
    times = [entry.time for entry in ledger.entries()]
    assert times[0] > times[1]
    assert records.now() > times[1]
    assert ledger.price(table, plan_for(table, "x")).releases == 2


# ---- which table it is ------------------------------------------------------------------------


def test_copies_of_a_table_are_that_table(ledger: Ledger, tmp_path: Path) -> None:
    table = random_frame(4)
    plan = plan_for(table, "x", 0.05)
    table.to_csv(tmp_path / "one.csv", index=False)
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "renamed.csv", index=False)
    table[["z", "s", "x"]].to_parquet(tmp_path / "other.parquet")
    copies = [tmp_path / "one.csv", tmp_path / "renamed.csv", tmp_path / "other.parquet", table]
    prices = [ledger.price(copy, plan) for copy in copies]
    assert len({price.digest for price in prices}) == 1
    for number, copy in enumerate(copies):
        assert ledger.price(copy, plan).releases == number
        spend(ledger, copy, plan)


def test_an_edited_table_is_refused_unless_it_is_about_other_people(ledger: Ledger) -> None:
    table = random_frame(4)
    plan = plan_for(table, "x", 0.05)
    spend(ledger, table, plan)
    edited = table.copy()
    edited.loc[0, "z"] = 1 - edited.loc[0, "z"]
    for other in (edited, table.iloc[1:], table.drop(columns="z")):
        assert ledger.price(other, plan).needs_new_table
        with pytest.raises(InputError, match="--new-table"), ledger.charge(other, plan):
            pytest.fail("it was charged")
    assert spend(ledger, edited, plan, new_table=True) == pytest.approx(0.05)
    assert len(ledger.entries()) == 2
    # From now on it is known, and so it remains.
    assert not ledger.price(edited, plan).needs_new_table
    assert ledger.price(edited, plan).releases == 1


def test_a_file_that_changes_is_refused(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    random_frame(4).to_csv(path, index=False)
    plan = plan_for(path, "x")

    def touched() -> None:
        os.utime(path, (1, 1))

    overtake(monkeypatch, touched)
    with pytest.raises(InputError, match="changed while"), ledger.charge(path, plan):
        pytest.fail("it was charged")
    assert ledger.entries() == []


# ---- rows that lack values --------------------------------------------------------------------


def conditional_losses(table: Frame, plans: dict[str, pf.Plan]) -> list[float]:
    """Return the joint loss of what is released of each kind of rows, from the rows themselves."""
    losses = []
    columns = list(plans)
    for size in range(1, len(columns) + 1):
        for chosen in itertools.combinations(columns, size):
            rest = [c for c in columns if c not in chosen]
            here = table[list(chosen)].notna().all(axis=1)
            alone = here & table[rest].isna().all(axis=1)
            for rows in (table[alone], table[here]):
                if alone.any() and set(rows["s"]) == set(table["s"]):
                    prior = pf.Prior.from_table(rows, secret="s", public=list(chosen))
                    items = [(c, plans[c].applied) for c in chosen]
                    losses.append(float(pf.joint_loss(prior, items)))
    return losses


def lacking(seed: int) -> Frame:
    return random_frame(seed, rows=200, missing=0.3)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_for_rows_that_lack_a_value(tmp_path: Path, seed: int) -> None:
    table = lacking(seed)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    z = plan_for(table, "z", 0.5)
    # With less noise the rows that lack nothing decide, and with more those that do.
    plans = {"x": plan_for(table, "x", 0.5), "z": at_scale(z, 30.0) if seed % 2 else z}
    losses = [spend(ledger, table, plan) for plan in plans.values()]
    assert losses[0] == pytest.approx(0.5)
    assert losses[1] == pytest.approx(max(conditional_losses(table, plans)), rel=1e-9)
    price = ledger.price(table, plans["x"])
    assert price.incomplete == int(table["z"].isna().sum())
    assert any("lack a value" in note for note in price.notes)
    assert ledger.verify().differences == ()


def test_counts_of_complete_rows_alone_would_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete_only(present: Any) -> Any:
        bits = int(present.max())
        return [(np.flatnonzero(present == bits), bits)]

    monkeypatch.setattr(adversaries, "_row_sets", complete_only)
    failed = 0
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            test_the_bound_holds_for_rows_that_lack_a_value(folder, seed)
        except AssertionError:
            failed += 1
    assert failed


def test_a_secret_that_no_row_of_a_kind_has(tmp_path: Path) -> None:
    """Then the blank gives it away, and the other secrets are compared all the same."""
    rows = [("a", 0, 0), ("a", 1, 1), ("b", 1, 0), ("b", 0, 1), ("c", 0, 0), ("c", 1, 1)] * 4
    rows += [("a", 0, None), ("b", 0, None), ("b", 1, None), ("b", 1, None)]
    table = frame(rows)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    plans = {c: at_scale(plan_for(table, c), 2.0) for c in "xz"}
    spend(ledger, table, plans["z"])
    loss = spend(ledger, table, plans["x"])
    # The rows of a and b that lack z: x is 0 under a, and mostly 1 under b.
    few = pf.Prior.from_counts({"a": [1, 0], "b": [1, 2]}, support=[0, 1])
    assert loss >= float(pf.joint_loss(few, [("x", plans["x"].applied)]))
    assert ledger.verify().differences == ()


def test_rows_without_a_secret_are_counted_and_promised_nothing(ledger: Ledger) -> None:
    table = random_frame(5)
    table.loc[:4, "s"] = None
    spend(ledger, table, plan_for(table, "x"))
    assert json.loads(ledger.entries()[0].detail)["without_secret"] == 5


# ---- plans that read one column in several ways -----------------------------------------------


def test_what_reads_the_same_values_is_one_axis(ledger: Ledger) -> None:
    """Other rules, other supports, other steps: as long as the values are the same ones."""
    table = random_frame(6)
    one = plan_for(table, "x", 0.05)
    wider = plan_for(table, "x", 0.05, support=[0, 1, 2, 3, "3.5", 40], missing=["?"])
    assert wider.noise is not None
    assert wider.noise.step == Fraction(1, 2)
    spend(ledger, table, one)
    loss = spend(ledger, table, wider)
    prior = pf.Prior.from_table(table, secret="s", public="x")
    items = [("x", one.applied), ("x", wider.applied)]
    assert loss == pytest.approx(float(pf.joint_loss(prior, items)))
    assert {json.loads(e.detail)["axis"] for e in ledger.entries()} == {"x"}


def test_other_values_of_one_column_are_another_axis(tmp_path: Path) -> None:
    table = random_frame(6)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    fine = at_scale(plan_for(table, "x"), 2.0)
    coarse = at_scale(plan_for(table, "x", step=2), 2.0)
    spend(ledger, table, fine)
    loss = spend(ledger, table, coarse)
    assert {json.loads(e.detail)["axis"] for e in ledger.entries()} == {"x", "x (2)"}
    both = table.assign(z=[round(v / 2) * 2 for v in table["x"]])
    joint = pf.Prior.from_table(both, secret="s", public=["x", "z"])
    expected = pf.joint_loss(joint, [("x", fine.applied), ("z", DiscreteLaplace(2.0, Fraction(1)))])
    assert loss == pytest.approx(float(expected), rel=1e-9)
    assert ledger.verify().differences == ()


def test_levels_in_another_order_are_another_axis(tmp_path: Path) -> None:
    table = random_frame(7)
    table["x"] = [("low", "mid", "high", "top")[v] for v in table["x"]]
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 1000)
    orders = [["low", "mid", "high", "top"], ["top", "low", "mid", "high"]]
    for order in orders:
        spend(ledger, table, at_scale(plan_for(table, "x", order=order), 1.0))
    coded = frame(
        [
            (s, orders[0].index(v), orders[1].index(v))
            for s, v in zip(table["s"], table["x"], strict=True)
        ]
    )
    joint = pf.Prior.from_table(coded, secret="s", public=["x", "z"])
    noise = DiscreteLaplace(1.0, Fraction(1))
    expected = float(pf.joint_loss(joint, [("x", noise), ("z", noise)]))
    assert float(ledger.entries()[1].bound) == pytest.approx(expected, rel=1e-9)


def test_clamped_values_are_charged_as_they_are_released(tmp_path: Path) -> None:
    table = random_frame(8)
    narrow = table.assign(x=table["x"].clip(upper=1))
    plan = at_scale(plan_for(narrow, "x"), 1.0)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    with pytest.raises(InputError, match=r"data row \d+ of .*clamp"):
        ledger.price(table, plan)
    price = ledger.price(table, plan, out_of_support="clamp")
    # The plan's own prior is that of the clamped values, and no other.
    assert price.own
    prior = pf.Prior.from_table(narrow, secret="s", public="x")
    assert price.loss == pytest.approx(pf.privacy_loss(pf.Scenario(prior), scale=1.0))
    # Values that are clamped and values that are not are two axes.
    spend(ledger, table, plan, out_of_support="clamp")
    spend(ledger, table, plan_for(table, "x"))
    assert {json.loads(e.detail)["axis"] for e in ledger.entries()} == {"x", "x (2)"}


# ---- plans that are not from this table -------------------------------------------------------


def given_prior() -> pf.Prior:
    return pf.Prior.from_mapping(
        {
            "no": {"0": ".4", "1": ".3", "2": ".2", "3": ".1"},
            "yes": {"0": ".1", "1": ".2", "2": ".3", "3": ".4"},
        }
    )


def test_a_plan_without_a_secret_column_cannot_be_charged(ledger: Ledger) -> None:
    plan = pf.calibrate(given_prior(), 0.5)
    table = random_frame(9)
    for nameless in (plan, plan.with_columns("x")):
        with pytest.raises(InputError, match="column of the secret"):
            ledger.price(table, nameless)


def test_a_plan_from_a_given_prior_is_charged_for_both_adversaries(ledger: Ledger) -> None:
    prior, table = given_prior(), random_frame(9)
    plan = pf.calibrate(prior, 0.3).with_columns("x", "s")
    own = pf.Prior.from_table(table, secret="s", public="x")
    under_table = pf.privacy_loss(pf.Scenario(own), scale=plan.scale)
    worst = 3 / Fraction(plan.scale or 1)
    unknown = ledger.price(table, plan)
    assert not unknown.own
    assert unknown.bound.value == worst
    told = ledger.price(table, plan, prior=prior)
    assert told.loss == pytest.approx(max(0.3, under_table), rel=1e-9)
    with pytest.raises(InputError, match="another one"):
        ledger.price(table, plan, prior=own)
    # Once it was told, it is remembered for those that follow.
    spend(ledger, table, plan, prior=prior)
    again = ledger.price(table, plan)
    both = max(float(pf.joint_loss(p, [("x", plan.applied)] * 2)) for p in (prior, own))
    assert again.loss == pytest.approx(both, rel=1e-9)
    assert ledger.verify().differences == ()


def test_a_plan_from_another_table_is_no_plan_of_this_one(ledger: Ledger) -> None:
    other, table = random_frame(10, rows=200), random_frame(11)
    plan = plan_for(other, "x", 0.3)
    price = ledger.price(table, plan)
    assert not price.own
    assert any("another prior" in note for note in price.notes)
    prior = pf.Prior.from_table(other, secret="s", public="x")
    assert ledger.price(table, plan, prior=prior).loss < price.loss


def test_a_secret_that_the_table_lacks_is_bounded_by_the_worst_case(ledger: Ledger) -> None:
    table = random_frame(12)
    prior = pf.Prior.from_mapping(
        {"no": {"0": "1"}, "yes": {"0": ".9", "3": ".1"}, "maybe": {"0": ".5", "3": ".5"}}
    )
    plan = pf.calibrate(prior, 5, "l1").with_columns("x", "s")
    numbers = table.assign(x=table["x"].clip(upper=1) * 3)
    price = ledger.price(numbers, plan, prior=prior)
    assert price.bound.value == 3 / Fraction(plan.scale or 1)
    assert "no values for a secret" in price.bound.how


# ---- the file ---------------------------------------------------------------------------------


def test_the_file_is_private_and_accounts_are_checked(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "books.db")
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    for budget in (0, -1, "x", math.nan, math.inf):
        with pytest.raises(InputError):
            ledger.open_account("s", budget)
    with pytest.raises(InputError):
        ledger.open_account(" ", 1)
    ledger.open_account(" s ", "1/3")
    with pytest.raises(InputError, match="never changed"):
        ledger.open_account("s", 1)
    assert [(a.secret, a.budget) for a in ledger.accounts()] == [("s", Fraction(1, 3))]
    with pytest.raises(InputError, match="no account"):
        ledger.price(random_frame(1).rename(columns={"s": "t"}), renamed_plan())
    with pytest.raises(InputError, match="no account"):
        ledger.entries("t")
    with pytest.raises(InputError, match="a Plan is needed"):
        ledger.price(random_frame(1), "plan.json")  # type: ignore[arg-type]


def renamed_plan() -> pf.Plan:
    table = random_frame(1).rename(columns={"s": "t"})
    return pf.calibrate(pf.Prior.from_table(table, secret="t", public="x"), 0.1)


@pytest.mark.parametrize(
    "change, what",
    [
        ("bound = '0.001'", "too little was charged"),
        ("plan = replace(plan, '\"scale\": ', '\"scale\": 9')", "recorded as"),
        ("plan = '{}'", "cannot be read"),
        ("detail = '{}'", "damaged"),
    ],
)
def test_verify_finds_what_was_changed(ledger: Ledger, change: str, what: str) -> None:
    table = random_frame(13)
    for _ in range(3):
        spend(ledger, table, plan_for(table, "x", 0.05))
    spend(ledger, table, at_scale(plan_for(table, "z"), 50.0))
    assert ledger.verify() == type(ledger.verify())(4, ())
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER release_is_final")
        connection.execute(f"UPDATE release SET {change} WHERE sequence = 2")
        connection.commit()
    found = ledger.verify().differences
    assert found
    assert any(what in difference.what for difference in found)


def test_verify_finds_changed_counts(ledger: Ledger) -> None:
    table = random_frame(13)
    spend(ledger, table, plan_for(table, "x", 0.05))
    spend(ledger, table, at_scale(plan_for(table, "z"), 50.0))
    with ledger.store.reading() as view:
        state = read_state(view, "s", ledger.entries()[0].digest)
    assert state.joint is not None
    counts = state.joint.counts.copy()
    counts[0] += 7
    wrong = replace(state.joint, counts=counts).to_bytes()
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("DROP TRIGGER counts_stay")
        connection.execute("UPDATE joint_counts SET counts = ? WHERE columns LIKE '%z%'", [wrong])
        connection.commit()
    assert any("not those of all columns" in d.what for d in ledger.verify().differences)


def test_counts_come_back_from_bytes() -> None:
    table = lacking(1)
    counted = _count(table)
    again = JointTable.from_bytes(counted.to_bytes())
    assert again.to_bytes() == counted.to_bytes()
    assert again.secrets == counted.secrets
    assert (again.cells == counted.cells).all()
    assert (again.counts == counted.counts).all()
    shuffled = _count(table.sample(frac=1, random_state=3)[["z", "x", "s"]])
    assert shuffled.to_bytes() == counted.to_bytes()
    for wrong in (b"", b"12345678", counted.to_bytes()[:-9], counted.to_bytes()[8:]):
        with pytest.raises(InputError):
            JointTable.from_bytes(wrong)


def _count(table: Frame) -> JointTable:
    from pufferfish.ledger.jointtable import count
    from pufferfish.tables import open_table

    readings = [(None, Reading(plan_for(table, column))) for column in "xz"]
    return count(open_table(table), "s", readings).joint


def test_too_many_combinations_fall_back_to_worst_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_frame(14)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    x, z = plan_for(table, "x"), plan_for(table, "z")
    exact = [ledger.price(table, x).loss]
    spend(ledger, table, x)
    exact.append(ledger.price(table, z).loss)

    def one_column(part: JointTable, pairs: Any) -> Any:
        return None if len(part.axes) > 1 else adversaries.masses_of(part, pairs)

    monkeypatch.setattr(pricing, "masses_of", one_column)
    mixed = ledger.price(table, z)
    assert mixed.loss >= exact[1]
    assert "worst cases" in mixed.bound.how
    monkeypatch.setattr(pricing, "masses_of", lambda part, pairs: None)
    worst = ledger.price(table, z)
    assert worst.bound.how == "worst cases"
    assert worst.loss >= mixed.loss
    assert worst.bound.value == 3 / Fraction(x.scale or 1) + 1 / Fraction(z.scale or 1)


# ---- calibrating beside what is out -----------------------------------------------------------


def test_five_releases_one_after_another_stay_within_the_budget(ledger: Ledger) -> None:
    table = random_frame(15, rows=200)
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"])
    plans: list[pf.Plan] = []
    for k, epsilon in enumerate(["0.2", "0.4", "0.6", "0.8", "1"]):
        prior = pf.Prior.from_table(table, secret="s", public="xz"[k % 2])
        plan = calibrate_beside(ledger, table, pf.Scenario(prior), epsilon)
        assert spend(ledger, table, plan) <= float(epsilon)
        plans.append(plan)
        assert float(pf.joint_loss(joint, plans)) <= float(epsilon) * (1 + 1e-12)
        assert plan.beside is None if k == 0 else plan.beside is not None
    assert float(pf.joint_loss(joint, plans)) == pytest.approx(1)
    prior = pf.Prior.from_table(table, secret="s", public="x")
    with pytest.raises(DoesNotFit):
        calibrate_beside(ledger, table, pf.Scenario(prior))
    assert not ledger.price(table, plans[0]).fits
    assert ledger.verify().differences == ()


def test_calibrating_for_rows_that_lack_values(ledger: Ledger) -> None:
    table = lacking(2)
    spend(ledger, table, at_scale(plan_for(table, "x"), 20.0))
    prior = pf.Prior.from_table(table, secret="s", public="z")
    plan = calibrate_beside(ledger, table, pf.Scenario(prior), "0.5")
    assert ledger.price(table, plan).loss == pytest.approx(0.5)
    assert ledger.price(table, at_scale(plan, (plan.scale or 0) * 0.99)).loss > 0.5


def test_calibrating_a_channel_beside_noise(ledger: Ledger) -> None:
    table = random_frame(16, rows=200)
    table["z"] = np.where(table["z"] == 1, "p", "q")
    spend(ledger, table, plan_for(table, "x", 0.3))
    prior = pf.Prior.from_table(table, secret="s", public="z")
    plan = calibrate_beside(ledger, table, pf.Scenario(prior), "0.6")
    assert plan.mechanism == "channel"
    assert plan.rules is not None
    assert ledger.price(table, plan).loss <= 0.6
    plan.verify(pf.Scenario(prior))


def test_calibrating_beside_a_given_prior(ledger: Ledger) -> None:
    """The adversary of an earlier plan, whose prior is not known here, gets the worst case."""
    table = random_frame(17)
    given_plan = at_scale(pf.calibrate(given_prior(), 0.3).with_columns("x", "s"), 30.0)
    assert spend(ledger, table, given_plan) == pytest.approx(0.1)
    prior = pf.Prior.from_table(table, secret="s", public="x")
    plan = calibrate_beside(ledger, table, pf.Scenario(prior), "0.2")
    price = ledger.price(table, plan)
    assert 0.19 < price.loss <= 0.2
    [note] = [note for note in plan.notes if "raised" in note]
    assert note.endswith("fits also for the other priors that plans were calibrated for")


def test_what_cannot_be_calibrated_beside_a_ledger(ledger: Ledger) -> None:
    table = random_frame(18)
    own = pf.Scenario(pf.Prior.from_table(table, secret="s", public="x"))
    with pytest.raises(InputError, match="above the budget"):
        calibrate_beside(ledger, table, own, "1.5")
    with pytest.raises(InputError, match="take the prior from the table"):
        calibrate_beside(ledger, table, pf.Scenario(given_prior()))
    with pytest.raises(InputError, match="not that of the table"):
        calibrate_beside(ledger, random_frame(19), own)
    spend(ledger, random_frame(19), plan_for(random_frame(19), "x"))
    with pytest.raises(InputError, match="--new-table"):
        calibrate_beside(ledger, table, own)
    assert calibrate_beside(ledger, table, own, new_table=True).epsilon == 1


def by_persons_with_levels() -> Frame:
    rng = np.random.default_rng(3)
    persons = np.arange(400) // 2
    s = np.where(persons % 2, "yes", "no")
    x = rng.integers(0, 4, 400) + ((s == "yes") & (rng.random(400) < 0.3))
    z = np.where(rng.random(400) < 0.5, np.where(s == "yes", "u", "v"), "w")
    return pd.DataFrame({"person": persons, "s": s, "x": x, "z": z, "w": x % 2})


@pytest.mark.parametrize("public, epsilon", [("x", "0.3"), ("x", "8"), ("w", "0.9"), ("w", "3")])
def test_more_noise_is_tried_until_something_fits(
    tmp_path: Path, public: str, epsilon: str
) -> None:
    """Also where the search by the joint counts, which knows no persons, begins with no noise."""
    # In another order the rows of persons are bounded by worst cases.
    table = by_persons_with_levels()
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 8)
    spend(ledger, table[::-1], at_scale(plan_for(table, "x", 0.2, unit="person"), 40.0))
    prior = pf.Prior.from_table(table, secret="s", public=public)
    plan = calibrate_beside(ledger, table, pf.Scenario(prior), epsilon)
    price = ledger.price(table, plan)
    assert 0.9 * float(epsilon) < price.loss <= float(epsilon)
    assert plan.beside is not None
    assert plan.beside.loss == price.loss
    assert plan.beside.how == price.bound.how
    less = at_scale(plan, (plan.scale or 0) * 0.99)
    assert ledger.price(table, less).loss > float(epsilon) * (1 - 1e-3)


def test_a_channel_without_zeros_is_found_where_worst_cases_count(tmp_path: Path) -> None:
    table = by_persons_with_levels()
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 8)
    spend(ledger, table[::-1], at_scale(plan_for(table, "x", 0.2, unit="person"), 40.0))
    scenario = pf.Scenario(pf.Prior.from_table(table, secret="s", public="z"))
    plan = calibrate_beside(ledger, table, scenario)
    assert plan.channel is not None
    assert 7 < ledger.price(table, plan).loss <= 8
    assert (plan.channel.rows > 0).all()
    plan.verify(scenario)
    assert any("hides every value" in note for note in plan.notes)
    kept = calibrate_beside(ledger, table, scenario, min_keep="0.6")
    assert kept.distortion is not None
    assert kept.distortion.conditions == ("min_keep 0.6",)
    with pytest.raises(DoesNotFit, match=r"found nothing .*worst cases"):
        calibrate_beside(ledger, table, scenario, min_keep="0.999")


def test_what_rounding_leaves_of_a_budget_is_none(ledger: Ledger) -> None:
    table = random_frame(15, rows=200)
    scenario = pf.Scenario(pf.Prior.from_table(table, secret="s", public="x"))
    plan = calibrate_beside(ledger, table, scenario)
    spend(ledger, table, plan)
    for attempt in (
        lambda: calibrate_beside(ledger, table, scenario),
        lambda: spend(ledger, table, plan),
    ):
        with pytest.raises(DoesNotFit, match="nothing more of this table about 's'") as refused:
            attempt()
        assert "lack a value" not in str(refused.value)


def test_a_channel_keeps_the_rows_of_the_values_that_occur() -> None:
    levels = pf.Prior.from_counts({"a": [3, 2, 1], "b": [1, 2, 3]}, support=["p", "q", "r"])
    channel = pf.calibrate(levels, 0.5, "channel").applied
    assert isinstance(channel, Channel)
    few = replace(channel.inputs, names=("p", "r"))
    own = suited.suited(channel, few)
    assert isinstance(own, Channel)
    assert own.inputs == few
    assert (own.rows == channel.rows[[0, 2]]).all()
    with pytest.raises(InputError, match="no row for"):
        suited.suited(channel, replace(few, names=("p", "t")))


def test_a_pair_that_no_rows_compare_is_bounded_by_the_worst_case(ledger: Ledger) -> None:
    """Rows of `yes` have no value here: counts tell nothing of what they might have released."""
    table = random_frame(20)
    table.loc[table["s"] == "yes", "x"] = None
    plan = pf.calibrate(given_prior(), 1, "l1").with_columns("x", "s")
    price = ledger.price(table, plan, prior=given_prior())
    assert price.bound.value == 3 / Fraction(plan.scale or 1)
    assert "no values for a secret" in price.bound.how


def by_persons(seed: int) -> Frame:
    table = random_frame(seed)
    table["person"] = np.arange(len(table)) // 2
    table["s"] = np.where(table["person"] % 2, "yes", "no")
    return table


def test_all_rows_of_one_person_count_together(tmp_path: Path) -> None:
    """By their exact joint loss, also of a column whose own plan knows no persons."""
    table = by_persons(21)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    prior = pf.Prior.from_table(table, secret="s", public="x", unit="person")
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"], unit="person")
    single = pf.Prior.from_table(table, secret="s", public=["x", "z"])
    plan, other = pf.calibrate(prior, 1), at_scale(plan_for(table, "z"), 1.0)
    assert plan.units is not None
    price = ledger.price(table, plan)
    assert price.own
    assert price.person_rows == 2
    assert price.loss == plan.units.loss
    assert price.bound.how == "joint loss of all 2 rows of one person"
    assert [note for note in price.notes if "2 rows" in note]
    assert not any("another prior" in note or "not given" in note for note in price.notes)
    out = []
    for own in (plan, plan, other, plan):
        out.append(own)
        loss = spend(ledger, table, own)
        assert loss == pytest.approx(float(pf.joint_loss(joint, out)), rel=1e-12)
        alone = [("xz"[p is other], p.applied) for p in out]
        assert loss > 1.2 * float(pf.joint_loss(single, alone))
    assert ledger.verify().differences == ()
    assert ledger.verify().releases == 4


def test_a_first_plan_without_a_unit_counts_for_all_rows_later(tmp_path: Path) -> None:
    """As soon as a plan says whose rows they are, everything that is out is of all of them."""
    table = by_persons(21)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    other, plan = at_scale(plan_for(table, "z"), 1.0), plan_for(table, "x", unit="person")
    spend(ledger, table, other)
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"], unit="person")
    loss = spend(ledger, table, plan)
    assert loss == pytest.approx(float(pf.joint_loss(joint, [other, plan])), rel=1e-12)
    assert ledger.verify().differences == ()


def test_in_another_order_the_rows_of_a_person_are_worst_cases(ledger: Ledger) -> None:
    """For the ledger it is the same table, while the loss of two rows depends on their order."""
    table = by_persons(21)
    shuffled = table.sample(frac=1, random_state=2).reset_index(drop=True)
    plan = at_scale(plan_for(table, "x", unit="person"), 20.0)
    span = Fraction(int(table["x"].max() - table["x"].min()), 20)
    first = ledger.price(table, plan)
    assert first.bound.value is not None
    assert first.bound.value < 2 * span
    # The plan was made for another order, though it is the same table.
    turned = ledger.price(shuffled, plan)
    assert turned.digest == first.digest
    assert not turned.own
    assert turned.bound.value == 2 * span
    assert any("in this order" in note for note in turned.notes)
    spend(ledger, table, plan)
    again = ledger.price(shuffled, plan)
    assert (again.digest, again.releases) == (first.digest, 1)
    assert again.bound.value == 4 * span
    assert any("in another order" in note for note in again.notes)
    own = pf.Prior.from_table(shuffled, secret="s", public="x", unit="person")
    assert units_loss(pf.Scenario(own), plan.applied).value <= 2 * span
    spend(ledger, shuffled, plan)
    # And from then on, whatever the order.
    assert ledger.price(table, plan).bound.value == 6 * span
    assert ledger.verify().differences == ()


def test_a_lazy_frame_has_no_order(ledger: Ledger) -> None:
    pl = pytest.importorskip("polars")
    table = by_persons(21)
    plan = at_scale(plan_for(table, "x", unit="person"), 20.0)
    frame = pl.from_pandas(table)
    assert ledger.price(frame, plan).bound.value == ledger.price(table, plan).bound.value
    lazy = ledger.price(frame.lazy(), plan)
    assert not lazy.own
    assert lazy.bound.how == "worst cases of the 2 rows that one person may have"


def test_an_order_that_hides_in_equal_sequences_is_seen(ledger: Ledger) -> None:
    """Two persons turned round: the same sequences as before, of others."""
    rows = [("a", 1, 0), ("a", 1, 1), ("b", 1, 1), ("b", 1, 0), ("c", 0, 0), ("c", 0, 1),
            ("d", 0, 1), ("d", 0, 0)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["person", "s", "x"])
    turned = table.iloc[[1, 0, 3, 2, 4, 5, 6, 7]]
    plan = at_scale(plan_for(table, "x", unit="person"), 2.0)
    spend(ledger, table, plan)
    price = ledger.price(turned, plan)
    assert price.own  # the same sequences
    assert price.order == "other"
    assert "worst cases" in price.bound.how


def test_several_orders_are_never_one_again(tmp_path: Path) -> None:
    table = by_persons(21)
    turned = table.sort_values("person", ascending=False, kind="stable")
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    plans = [plan_for(table, "x", unit="person"), plan_for(table, "z", unit="person")]
    spend(ledger, table, plans[0])
    assert ledger.price(table, plans[1]).order == "same"
    assert ledger.price(turned, plans[1]).order == "other"
    spend(ledger, turned, plans[1])
    for order in (table, turned):
        price = ledger.price(order, plans[0])
        assert price.order == "mixed"
        assert any("several orders" in note for note in price.notes)
        assert "worst cases" in price.bound.how
    # There is no order to go back to.
    scenario = pf.Scenario(pf.Prior.from_table(table, secret="s", public="x", unit="person"))
    with pytest.raises(DoesNotFit, match="has a joint loss of up to"):
        calibrate_beside(ledger, table, scenario, "0.1")
    spend(ledger, table, plans[0])
    assert ledger.verify().differences == ()


@pytest.mark.parametrize("order", ["11", "12", "21", "212111", "1211"])
def test_blanks_show_the_order_of_rows(tmp_path: Path, order: str) -> None:
    """One of two rows lacks x: in the second file its place tells the secret."""
    files: list[list[Any]] = [[], []]
    for k in range(20):
        s, v = "ab"[k % 2], k // 2 % 2
        both = [(k, s, v, 0), (k, s, None, 0)]
        files[0] += both
        files[1] += both[::-1] if (s == "a") == (v == 1) else both
    tables = [pd.DataFrame(rows, columns=["person", "s", "x", "z"]) for rows in files]
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    prices = []
    for k, name in enumerate(order):
        table = tables[int(name) - 1]
        plan = at_scale(plan_for(table, "xz"[k % 2], "20", "l1", unit="person"), 1.0)
        prices.append(spend(ledger, table, plan))
    assert prices == sorted(prices)
    if "2" in order:
        assert prices[-1] >= 1
    assert ledger.verify().differences == ()


def test_a_release_without_a_unit_from_another_order(tmp_path: Path) -> None:
    """What the order was before anybody spoke of persons counts too."""
    rows = [(k, "ab"[k % 2], (k // 2 + r) % 2, (k // 4 + r) % 2) for k in range(12) for r in (0, 1)]
    table = pd.DataFrame(rows, columns=["person", "s", "x", "z"])
    turned = table.sort_values("person", ascending=False, kind="stable")
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    spend(ledger, turned, at_scale(plan_for(table, "z"), 1.0))
    spend(ledger, table, at_scale(plan_for(table, "x", unit="person"), 1.0))
    spend(ledger, turned, at_scale(plan_for(table, "z", unit="person"), 1.0))
    assert ledger.verify().differences == ()


def test_a_table_that_was_sorted_again_is_told_so(tmp_path: Path) -> None:
    table = by_persons(21)
    turned = table[::-1]
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", "1")
    plan = plan_for(table, "x", "0.5", unit="person")
    spend(ledger, table, plan)
    scenario = pf.Scenario(pf.Prior.from_table(turned, secret="s", public="z", unit="person"))
    with pytest.raises(DoesNotFit, match=r"charged 0\.5, but counts .* in another order"):
        calibrate_beside(ledger, turned, scenario)
    with pytest.raises(DoesNotFit, match="release from the table in its first order"):
        spend(ledger, turned, at_scale(plan, 3.0))
    own = pf.Scenario(pf.Prior.from_table(table, secret="s", public="z", unit="person"))
    with pytest.raises(DoesNotFit, match=r"epsilon is what everything .* the budget is 1\)"):
        calibrate_beside(ledger, table, own, "0.4")
    assert calibrate_beside(ledger, table, own).beside is not None


def test_people_that_only_one_secret_has_are_worst_cases(tmp_path: Path) -> None:
    """Nothing is known of three rows of anybody with the other secret."""
    rows = [(k, "ab"[k % 2], v, v) for k in range(12) for v in (0, 1)]
    rows += [(k, "a", v, 0) for k in range(20, 24) for v in (0, 0, 0)]
    table = pd.DataFrame(rows, columns=["person", "s", "x", "z"])
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    x = at_scale(plan_for(table, "x", unit="person"), 4.0)
    price = ledger.price(table, x)
    assert price.own
    assert price.bound.value == Fraction(3, 4)
    assert price.bound.how == "worst cases of all 3 rows of one person"
    spend(ledger, table, x)
    assert spend(ledger, table, at_scale(plan_for(table, "z"), 2.0)) == 3 / 4 + 3 / 2
    assert ledger.verify().differences == ()


def test_mutant_that_overlooks_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two releases in two orders tell is more than the joint loss of either order."""
    people = [("a", 1, (0, 1)), ("b", 1, (1, 0)), ("c", 0, (0, 1)), ("d", 0, (1, 0))]
    rows = [(who, s, x) for who, s, values in people for x in values]
    table = pd.DataFrame(rows, columns=["person", "s", "x"])
    turned = table.iloc[[0, 1, 2, 3, 5, 4, 7, 6]]  # c and d change places
    plan = at_scale(plan_for(table, "x", unit="person"), 1.0)
    # Persons as they were released: first in the one order, then in the other.
    released = {
        who: [v for t in (table, turned) for v in t["x"][t["person"] == who].tolist()]
        for who in "abcd"
    }
    truth = 0.0
    for output in itertools.product((0, 1), repeat=4):
        chances = {
            who: math.exp(-sum(abs(y - v) for y, v in zip(output, values, strict=True)))
            for who, values in released.items()
        }
        ratio = (chances["a"] + chances["b"]) / (chances["c"] + chances["d"])
        truth = max(truth, abs(math.log(ratio)))

    def both(name: str) -> float:
        ledger = Ledger.create(tmp_path / name)
        ledger.open_account("s", 10**6)
        spend(ledger, table, plan)
        return ledger.price(turned, plan).loss

    assert both("safe.db") == 4 >= truth
    identity = subject.identity_of
    monkeypatch.setattr(subject, "identity_of", lambda t: replace(identity(t), order="one"))
    assert both("mutant.db") < 1e-9 < truth


def test_blanks_in_the_rows_of_a_person(tmp_path: Path) -> None:
    """What lacks values is a pattern of its own; whoever sees one column sees its rows only."""
    table = by_persons(21)
    table.loc[table.index % 7 == 0, "z"] = None
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    plan = at_scale(plan_for(table, "x", unit="person"), 8.0)
    other = at_scale(plan_for(table, "z"), 9.0)
    first, second = spend(ledger, table, plan), spend(ledger, table, other)
    assert second > first
    # By hand: every set of columns, number of rows and pattern of blanks that both secrets have.
    worst = 0.0
    for columns in (["x"], ["z"], ["x", "z"]):
        people: dict[Any, dict[str, dict[Any, int]]] = {}
        for _, own in table.groupby("person", sort=False):
            rows = [row for row in own[columns].itertuples(index=False)
                    if not all(v is None or v != v for v in row)]  # fmt: skip
            values = tuple(None if v is None or v != v else int(v) for row in rows for v in row)
            pattern = tuple(v is None for v in values)
            counts = people.setdefault(pattern, {}).setdefault(own["s"].iloc[0], {})
            counts[values] = counts.get(values, 0) + 1
        for pattern, by_secret in people.items():
            if len(by_secret) == 2 and pattern:
                worst = max(worst, slow_ratio(by_secret, columns * (len(pattern) // len(columns))))
    assert second >= worst
    assert second == pytest.approx(worst, rel=1e-9)
    assert ledger.verify().differences == ()


def test_who_sees_one_column_only_is_no_less_dangerous(tmp_path: Path) -> None:
    """Given the blanks of z nothing is told; whoever does not see z learns of x what goes along."""
    people = [(s, v) for s, counts in (("yes", (9, 1)), ("no", (1, 9)))
              for v, count in enumerate(counts) for _ in range(count)]  # fmt: skip
    rows = [(k, s, v, None if v else w) for k, (s, v) in enumerate(people) for w in (0, 1)]
    table = pd.DataFrame(rows, columns=["person", "s", "x", "z"])
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    plan = at_scale(plan_for(table, "x", unit="person"), 2.0)
    first = spend(ledger, table, plan)
    assert first > 0.5
    other = at_scale(plan_for(table, "z"), 5.0)
    # Single rows say the same, but less.
    assert spend(ledger, table, other) >= first
    [record] = ledger.entries()[1:]
    assert "of all 2 rows" in record.how


def test_who_takes_complete_rows_only_is_another_adversary(tmp_path: Path) -> None:
    """The joint loss of complete rows is never above the price."""
    rows, number = [], itertools.count()
    for s, same, other in (("A", 9, 1), ("B", 1, 9)):
        for values in ((0, 0), (1, 1)) * same:
            k = next(number)
            rows += [(k, s, values[0], 0), (k, s, values[1], 1)]
        for values in ((0, 1), (1, 0)) * other:
            k = next(number)
            rows += [(k, s, values[0], 0), (k, s, values[1], 1), (k, s, 0, None), (k, s, 1, None)]
    table = pd.DataFrame(rows, columns=["person", "s", "x", "z"])
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    plans = [
        at_scale(plan_for(table, "x", unit="person"), 1.0),
        at_scale(plan_for(table, "z", unit="person"), 4.0),
    ]
    price = [spend(ledger, table, plan) for plan in plans][-1]
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"], unit="person")
    with pytest.warns(OutsidePromiseWarning, match="without a value"):
        complete = pf.joint_loss(joint, [("xz"[k], plan.applied) for k, plan in enumerate(plans)])
    assert 0.3 < float(complete) <= price
    assert ledger.verify().differences == ()


@pytest.mark.parametrize("given", [True, False])
def test_who_has_another_prior_may_know_anything_of_the_rows_of_a_person(
    tmp_path: Path, given: bool
) -> None:
    rows = [(f"u{i}", "AB"[i % 2], (i // 2 + k) % 2 * 10) for i in range(40) for k in (0, 1)]
    table = pd.DataFrame(rows, columns=["person", "s", "x"])
    own = at_scale(plan_for(table, "x", "0.1", unit="person"), 100.0)
    rare = pf.Prior.from_mapping({"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}})
    other = pf.calibrate(rare, "0.1").with_columns("x", "s")
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    spend(ledger, table, own)
    price = ledger.price(table, other, prior=rare if given else None)
    # Whoever has that prior, and knows that both rows have the same value.
    truth = pf.joint_loss(rare, [("x", own.applied)] * 2 + [("x", other.applied)] * 2)
    assert price.loss >= float(truth) > 0.9
    assert price.bound.how == "worst cases of the 2 rows that one person may have"


def slow_ratio(by_secret: Any, columns: list[str]) -> float:
    """The largest log-ratio over all outputs of x and z with noise of scales 8 and 9."""
    scales = {"x": 8.0, "z": 9.0}
    spans = {"x": range(4), "z": range(3)}
    places = [
        k for k in range(len(columns)) if next(iter(next(iter(by_secret.values()))))[k] is not None
    ]
    worst = 0.0
    for output in itertools.product(*(spans[columns[k]] for k in places)):
        likelihoods = []
        for counts in by_secret.values():
            total = sum(counts.values())
            likelihoods.append(sum(
                n / total * math.exp(-sum(
                    abs(y - values[k]) / scales[columns[k]]
                    for y, k in zip(output, places, strict=True)))
                for values, n in counts.items()))  # fmt: skip
        worst = max(worst, abs(math.log(likelihoods[0] / likelihoods[1])))
    return worst


def test_calibrating_beside_a_ledger_for_all_rows_of_a_person(tmp_path: Path) -> None:
    table = by_persons(21)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 2)
    scenarios = {
        column: pf.Scenario(pf.Prior.from_table(table, secret="s", public=column, unit="person"))
        for column in "xz"
    }
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"], unit="person")
    out: list[Any] = []
    for column, epsilon in (("x", "0.5"), ("z", "1"), ("x", "1.4"), ("z", "2")):
        plan = calibrate_beside(ledger, table, scenarios[column], epsilon)
        plan.verify(scenarios[column])
        assert plan.units is not None
        assert plan.units.rows == (2,)
        out.append(plan)
        loss = spend(ledger, table, plan)
        assert 0.999 * float(epsilon) < loss <= float(epsilon)
        assert float(pf.joint_loss(joint, out)) <= float(epsilon)
    with pytest.raises(DoesNotFit, match="uses up the budget"):
        calibrate_beside(ledger, table, scenarios["x"])
    assert ledger.verify().differences == ()


def test_rows_of_a_person_need_the_unit_in_every_released_row(ledger: Ledger) -> None:
    """A row without a value of the plan's own column may have one in another that is out."""
    table = by_persons(21)
    table["person"] = table["person"].astype(object)
    table.loc[0, ["x", "person"]] = None
    spend(ledger, table, at_scale(plan_for(table, "z"), 1.0))
    plan = at_scale(plan_for(table, "x", unit="person"), 5.0)
    with pytest.raises(InputError, match="nothing in the unit column 'person'"):
        ledger.price(table, plan)
    assert len(ledger.entries()) == 1


def test_persons_of_another_table_are_bounded_by_worst_cases(ledger: Ledger) -> None:
    plan = plan_for(by_persons(21), "x", 5, "l1", unit="person")
    table = by_persons(24)
    price = ledger.price(table, plan)
    assert price.bound.value == 2 * plan.support.values[-1] / Fraction(plan.scale or 1)  # type: ignore[union-attr]


def robust_prior(table: Frame, public: str = "x", **options: Any) -> pf.Scenario:
    given = options or {"confidence": "0.9"}
    return pf.Scenario(pf.Prior.from_table(table, secret="s", public=public, **given))


@pytest.mark.parametrize("options", [{"confidence": "0.9"}, {"tv_radius": "0.05"}])
def test_a_plan_for_a_region_is_charged_for_every_prior_of_it(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    table = random_frame(22, rows=300)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    scenario = robust_prior(table, **options)
    plan = pf.calibrate(scenario, 0.5)
    price = ledger.price(table, plan)
    span = Fraction(int(table["x"].max() - table["x"].min()))
    assert price.own
    assert price.loss == plan.loss <= 0.5 < span / Fraction(plan.scale or 1)
    assert price.bound.how == "robust loss, for any prior of the region that a plan is for"
    assert any("region of priors" in note for note in price.notes)
    spend(ledger, table, plan)
    # Twice is once with half the scale, for every prior of the region.
    twice = ledger.price(table, plan)
    half = DiscreteLaplace((plan.scale or 0) / 2, Fraction(1))
    assert twice.loss == pytest.approx(pf.certify(scenario, half).loss, rel=1e-12)
    # How another column goes together with this one no prior of the region says.
    z = at_scale(plan_for(table, "z"), 2.0)
    other = ledger.price(table, z)
    assert not any("region" in note for note in other.notes)
    assert other.loss == pytest.approx(plan.loss + 1 / 2, rel=1e-12)
    assert "robust loss of 1 and worst cases of 1" in other.bound.how
    spend(ledger, table, z)
    assert ledger.verify().differences == ()
    # Where the region is around another prior.
    elsewhere = random_frame(26, rows=300)
    worst = span / Fraction(plan.scale or 1)
    assert ledger.price(elsewhere, plan, prior=scenario).bound.value == worst


@pytest.mark.parametrize("seed", range(4))
def test_no_prior_of_a_region_beats_the_price(tmp_path: Path, seed: int) -> None:
    """Random priors of the region, with random joint priors of both columns."""
    rng = np.random.default_rng(seed)
    table = random_frame(seed, rows=200)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    radius = Fraction(1, 20)
    scenario = robust_prior(table, tv_radius=radius)
    plan = pf.calibrate(scenario, "0.7", "channel" if seed % 2 else "exact")
    z = at_scale(plan_for(table, "z"), 3.0)
    out = [("x", plan.applied), ("x", plan.applied), ("z", z.applied)]
    for own in (plan, plan, z):
        price = spend(ledger, table, own)
    prior = scenario.priors[0]
    support = prior.support
    assert not isinstance(support, pf.support.Product)
    for _ in range(60):
        counts = {}
        for secret in prior.secrets:
            row = [Fraction(int(c), prior.totals[0]) for c in prior.counts[prior.row(secret)]]
            row = [p / sum(row) for p in row]
            high, low = rng.permutation(len(row))[:2]
            moved = min(radius, row[low])
            row[low], row[high] = row[low] - moved, row[high] + moved
            split = rng.integers(0, 6, (len(row), 2)) + 0
            split[split.sum(axis=1) == 0] = 1
            joint = [[p * int(a) / int(sum(both)) for a in both]
                     for p, both in zip(row, split, strict=True)]  # fmt: skip
            common = math.lcm(*(v.denominator for line in joint for v in line))
            counts[secret] = [[int(v * common) for v in line] for line in joint]
        names = {"x": [support.value(k) for k in range(support.size)], "z": [0, 1]}  # type: ignore[union-attr]
        truth = pf.joint_loss(pf.Prior.from_counts(counts, support=names), out)
        assert float(truth) <= price * (1 + 1e-12)


def test_noise_and_a_channel_of_a_column_for_a_region(tmp_path: Path) -> None:
    """The robust loss of both is not computed: one of them counts with its worst case."""
    table = random_frame(22, rows=300)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    scenario = robust_prior(table)
    noise, channel = pf.calibrate(scenario, 0.5), pf.calibrate(scenario, 0.4, "channel")
    spend(ledger, table, noise)
    price = ledger.price(table, channel)
    worst = worst_case(noise.applied, noise.support).upper
    assert worst_case(channel.applied, channel.support).upper is None
    assert price.loss == pytest.approx(float(worst or 0) + channel.loss, rel=1e-9)
    # Two channels are one channel of pairs.
    only = Ledger.create(tmp_path / "only.db")
    only.open_account("s", 100)
    spend(only, table, channel)
    twice = only.price(table, channel)
    assert channel.loss < twice.loss < 2 * channel.loss + 0.2
    assert twice.bound.how.startswith("robust loss, for")


def test_calibrating_for_a_region_beside_what_is_out(tmp_path: Path) -> None:
    table = random_frame(25, rows=300)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 2)
    scenario = robust_prior(table)
    first = calibrate_beside(ledger, table, scenario, "0.5")
    assert first.scale == pf.calibrate(scenario, "0.5").scale
    spend(ledger, table, first)
    second = calibrate_beside(ledger, table, scenario, "1")
    second.verify(scenario)
    assert 0.999999 < spend(ledger, table, second) <= 1
    plain = calibrate_beside(ledger, table, pf.Scenario(pf.Prior.from_table(
        table, secret="s", public="z")), "1.5")  # fmt: skip
    assert 1.499999 < spend(ledger, table, plain) <= 1.5
    # Whoever has a prior of a region of z knows nothing of x: its releases are worst cases.
    with pytest.raises(DoesNotFit, match=r"all together would cost up to 3\.\d+ \(robust loss"):
        calibrate_beside(ledger, table, robust_prior(table, "z"), "2")
    assert ledger.verify().differences == ()


# ---- never less than the truth ----------------------------------------------------------------


def skewed() -> pf.Prior:
    a = {"0": ".9", "1": ".05", "2": ".03", "3": ".02"}
    return pf.Prior.from_mapping({"a": a, "b": dict(zip(a, reversed(a.values()), strict=True))})


def telling_nothing() -> Frame:
    return frame([(s, x, z) for s in "ab" for x in range(4) for z in range(4)])


def loss_of_independent(prior: pf.Prior, plans: Sequence[pf.Plan]) -> float:
    """The loss for who thinks that the columns are independent given the secret."""
    return sum(pf.privacy_loss(pf.Scenario(prior), scale=plan.scale or 0) for plan in plans)


@pytest.mark.parametrize("order", ["xz", "zx"])
def test_one_prior_of_two_columns_is_two_adversaries(tmp_path: Path, order: str) -> None:
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    plans = {
        "x": pf.calibrate(skewed(), 1).with_columns("x", "s"),
        "z": at_scale(pf.calibrate(skewed(), 1).with_columns("z", "s"), 1000.0),
    }
    assert plans["x"].digest == plans["z"].digest
    losses = [spend(ledger, telling_nothing(), plans[c], prior=skewed()) for c in order]
    assert losses[-1] >= loss_of_independent(skewed(), list(plans.values()))
    # One of them knows the prior of x, and the other one that of z, whatever came first.
    knows_z = Fraction(3) / Fraction(plans["x"].scale or 1)
    expected = float(knows_z) + loss_of_independent(skewed(), [plans["z"]])
    assert losses[-1] == pytest.approx(expected)
    assert ledger.verify().differences == ()


def test_priors_that_are_wider_than_the_table(tmp_path: Path) -> None:
    """Two columns, of which the table has the values 0 and 1, and others up to 3 are thought of."""
    table = frame([(s, x, z) for s in "ab" for x in range(2) for z in range(2)] * 5)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    x, z = (at_scale(pf.calibrate(skewed(), 1).with_columns(c, "s"), 2.0) for c in "xz")
    spend(ledger, table, x, prior=skewed())
    told = ledger.price(table, z, prior=skewed())
    assert told.loss >= loss_of_independent(skewed(), [x, z])
    assert told.loss == pytest.approx(loss_of_independent(skewed(), [x]) + 3 / 2)
    # Noise on this table's own values of x is noise on all that anybody thinks of.
    one = pf.Prior.from_mapping({"a": {"0": ".8", "3": ".2"}, "b": {"0": ".2", "3": ".8"}})
    unknown = ledger.price(table, at_scale(plan_for(table, "x"), 2.0))
    assert unknown.loss == pytest.approx(loss_of_independent(skewed(), [x]) + 3 / 2)
    foreign = at_scale(pf.calibrate(one, 1).with_columns("z", "s"), 2.0)
    with pytest.raises(InputError, match="clamp"):
        ledger.price(table, foreign)
    clamped = ledger.price(table, foreign, out_of_support="clamp")
    assert clamped.bound.value == 3
    # Where a prior is not told: the worst cases of all that the plans allow.
    wide = ledger.price(table, replace(x, digest="sha256:" + "0" * 64))
    assert wide.bound.value == 3


def test_noise_on_the_tables_own_values_is_worst_on_those_of_other_plans(tmp_path: Path) -> None:
    table = frame([(s, x, z) for s in "ab" for x in range(2) for z in range(2)] * 5)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    own = at_scale(plan_for(table, "x"), 2.0)
    spend(ledger, table, own)
    foreign = at_scale(pf.calibrate(skewed(), 1).with_columns("x", "s"), 2.0)
    price = ledger.price(table, foreign)
    assert price.bound.value == 3  # both from 0 to 3, and not the first from 0 to 1


def test_clamped_values_are_not_noise_on_what_a_prior_knows(tmp_path: Path) -> None:
    """On this table a release clamps nothing, but on the values of the other prior it does."""
    table = frame([(s, v) for s in "ab" for v in (0, 1, 2)] * 5, ["s", "x"])
    masses = {"a": [0, 0, 8, 0], "b": [7, 8, 2, 7]}
    prior = pf.Prior.from_counts(masses, support=[0, 1, 2, 3])
    first = pf.calibrate(prior, "0.01").with_columns("x", "s")
    second = at_scale(plan_for(table, "x", 1), 1.0)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    spend(ledger, table, first, prior=prior)
    price = ledger.price(table, second, out_of_support="clamp")

    def chance(secret: str, y: int, clamped: int) -> float:
        row = masses[secret]
        return sum(
            n / sum(row) * math.exp(-abs(k - y) / (first.scale or 0) - abs(min(k, 2) - clamped))
            for k, n in enumerate(row)
        )

    truth = max(
        abs(math.log(chance("a", y, c) / chance("b", y, c))) for y in range(4) for c in range(3)
    )
    assert price.loss >= truth
    # Where 3 would be refused: noise on all that the prior knows. Where not, all merges.
    assert ledger.price(table, second).loss == pytest.approx(3.01)
    wider = at_scale(plan_for(table, "x", 1, support=[0, 1, 2, 3]), 1.0)
    merged = pf.joint_loss(prior, [("x", first.applied), ("x", wider.applied)])
    assert ledger.price(table, wider).loss == pytest.approx(float(merged))
    assert float(merged) < 2
    spend(ledger, table, second, out_of_support="clamp")
    assert ledger.verify().differences == ()


def test_too_many_kinds_of_rows_are_no_reason_to_leave_some_out() -> None:
    """None, so that the worst case is charged, and not some of the adversaries."""
    rows = [bits for bits in range(1, 1 << 9) if bits.bit_count() in (5, 6, 7)]
    assert adversaries._row_sets(np.array(rows)) is None
    few = adversaries._row_sets(np.array([0b011, 0b101]))
    assert few is not None
    # Who looks at the common column alone has all rows.
    assert [(list(at), bits) for at, bits in few if bits == 1] == [([0, 1], 1)]


def test_many_kinds_of_rows_end_to_end(tmp_path: Path) -> None:
    """Rows of b that lack much, each kind in its own way: x alone still tells a and b apart."""
    names = [f"c{k}" for k in range(14)]
    kinds = [kind for size in (8, 7, 6) for kind in itertools.combinations(range(3, 12), size)]
    rows = [("a", {0: 0, 1: 0}), ("a", {0: 0, 2: 0})] * 50
    rows += [("b", {0: 1, 12: 0, **dict.fromkeys(kind, 0)}) for kind in kinds]
    for k in range(1, 14):
        rows += [("a", {k: 0}), ("b", {k: 0})] * 50
    rows += [("u", dict.fromkeys(range(14), v)) for v in (0, 1)]
    table = pd.DataFrame(
        [{"s": s, **{n: cells.get(k) for k, n in enumerate(names)}} for s, cells in rows]
    )
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 1000)

    def plan(name: str) -> pf.Plan:
        prior = pf.Prior.from_table(table, secret="s", public=name)
        return at_scale(pf.calibrate(pf.Scenario(prior, [("a", "b")]), 1), 1.0)

    assert spend(ledger, table, plan("c0")) == pytest.approx(1)
    losses = [spend(ledger, table, plan(name)) for name in names[1:]]
    assert min(losses) >= 1


def written(path: Path, texts: Callable[[int], str]) -> Path:
    lines = [f"{'ab'[k % 2]},{texts(k)}" for k in range(40)]
    path.write_text("s,code\n" + "\n".join(lines) + "\n")
    return path


def test_levels_that_a_copy_could_exchange_are_refused(tmp_path: Path) -> None:
    """250.0 and 250.00 are one number to the identity of a table, but would be two levels."""
    one = written(tmp_path / "1.csv", lambda k: "V58" if k < 8 else ("250.0", "250.00")[k // 2 % 2])
    two = written(tmp_path / "2.csv", lambda k: "V58" if k < 8 else ("250.0", "250.00")[k % 2])
    assert identity_of(one) == identity_of(two)
    levels = ["V58", "250.0", "250.00"]
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    for path in (one, two):
        prior = pf.Prior.from_table(path, secret="s", public="code", levels=levels)
        plan = pf.calibrate(prior, 1, "channel")
        with pytest.raises(InputError, match=r"'250.0' and '250.00'.* write each value in one way"):
            ledger.price(path, plan)
    # The same of the secrets themselves.
    table = frame([("1", 0), ("1.0", 1), ("1", 1), ("1.0", 0)] * 5, ["s", "x"])
    with pytest.raises(InputError, match=r"the column 's' holds '1' and '1.0'"):
        ledger.price(table, plan_for(table, "x"))


def test_a_table_whose_levels_are_others_than_those_that_were_charged(tmp_path: Path) -> None:
    """All in another way: the same table, but the levels of the plan are not its own."""
    one = written(tmp_path / "1.csv", lambda k: "V58" if k % 3 else "250.0")
    two = written(tmp_path / "2.csv", lambda k: "V58" if k % 3 else "250.00")
    assert identity_of(one) == identity_of(two)
    levels = ["V58", "250.0", "250.00"]
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)

    def plan(path: Path) -> pf.Plan:
        prior = pf.Prior.from_table(path, secret="s", public="code", levels=levels)
        return pf.calibrate(prior, 1, "channel")

    spend(ledger, one, plan(one))
    assert ledger.price(one, plan(one)).releases == 1
    for attempt in (plan(two), plan(one)):
        with pytest.raises(InputError, match=r"others than those that were charged"):
            ledger.price(two, attempt)
    assert len(ledger.entries()) == 1


def test_numbers_written_in_another_way_are_the_same_counts(ledger: Ledger, tmp_path: Path) -> None:
    one = written(tmp_path / "1.csv", lambda k: str(k % 3))
    two = written(tmp_path / "2.csv", lambda k: f"{k % 3}.0")
    plan = at_scale(plan_for(one, "code"), 30.0)
    spend(ledger, one, plan)
    assert ledger.price(two, plan).releases == 1


def test_what_a_release_would_refuse_is_not_charged(ledger: Ledger, tmp_path: Path) -> None:
    """Persons with another number of rows than the plan knows."""
    table = by_persons(21)
    plan = at_scale(plan_for(table, "x", unit="person"), 100.0)
    three = pd.concat([table, table.iloc[:1]])
    for attempt in (
        lambda: ledger.price(three, plan),
        lambda: spend(ledger, three, plan),
        lambda: check_release(three, plan.release_spec()),
    ):
        with pytest.raises(InputError, match="number of rows that the plan knows nothing of"):
            attempt()
    assert ledger.entries() == []
    assert check_release(table, plan.release_spec()).released == len(table)
    # A channel that keeps everything that occurs here.
    levels = pf.Prior.from_mapping(
        {"no": {"p": ".5", "q": ".5", "r": "0"}, "yes": {"p": ".5", "q": ".5", "r": "0"}}
    )
    kept = pf.calibrate(levels, 1, "channel").with_columns("z", "s")
    some = table.assign(z=np.where(table["x"] > 1, "p", "q"))
    with pytest.raises(InputError, match="unchanged"):
        check_release(some, kept.release_spec())
    allowed = check_release(some, kept.release_spec(allow_unchanged=True))
    assert allowed.rows == len(some)


def test_a_lock_at_the_end_does_not_say_that_nothing_was_charged(tmp_path: Path) -> None:
    table = random_frame(1)
    Ledger.create(tmp_path / "books.db").open_account("s", 1)
    ledger = Ledger.open(tmp_path / "books.db", patience=0.1)
    with (
        closing(sqlite3.connect(ledger.path, isolation_level=None)) as other,
        pytest.warns(pf.errors.PufferfishWarning, match="is charged and done") as said,
        ledger.charge(table, plan_for(table, "x")),
    ):
        other.execute("BEGIN IMMEDIATE")
    assert not any("nothing was charged" in str(w.message) for w in said)
    assert [entry.state for entry in ledger.entries()] == ["charged"]


def test_a_missing_level_is_another_way_to_read(tmp_path: Path) -> None:
    table = random_frame(27)
    table["x"] = table["x"].map({0: "p", 1: "q", 2: "r", 3: "r"})
    prior = pf.Prior.from_table(table, secret="s", public="x", missing_as_level=True)
    plan = pf.calibrate(prior, 1, "channel")
    assert plan.rules is not None
    other = replace(plan, rules=replace(plan.rules, missing_level=None))
    assert Reading(plan).key != Reading(other).key
    assert Reading(plan).manner != Reading(other).manner
    # What another release reads in another way does not merge under a prior.
    one, two = (out_of(p, "x", False) for p in (plan, other))
    assert suited.read_alike(one, one, plan.support)
    assert not suited.read_alike(two, one, plan.support)


def test_several_columns_at_once(tmp_path: Path) -> None:
    """Whoever counts a new column while others charge counts again, with theirs."""
    table = random_frame(23)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 100)
    table["w"] = table["x"] % 2
    plans = [at_scale(plan_for(table, column), 9.0) for column in "xzwxzw"]
    with ThreadPoolExecutor(6) as pool:
        losses = list(pool.map(lambda plan: spend(ledger, table, plan), plans))
    assert len(set(losses)) == 6
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z", "w"])
    assert max(losses) == pytest.approx(float(pf.joint_loss(joint, plans)), rel=1e-9)
    assert ledger.verify().differences == ()
