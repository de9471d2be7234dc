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
from pufferfish.errors import InputError
from pufferfish.joint import DoesNotFit
from pufferfish.ledger import adversaries, pricing, records
from pufferfish.ledger import ledger as module
from pufferfish.ledger.calibrating import calibrate_beside
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.state import read_state
from pufferfish.mechanisms import Channel, DiscreteLaplace
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
    from pufferfish.ledger.readings import Reading
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
    assert any("raised" in note for note in plan.notes)


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


def test_a_channel_keeps_the_rows_of_the_values_that_occur() -> None:
    levels = pf.Prior.from_counts({"a": [3, 2, 1], "b": [1, 2, 3]}, support=["p", "q", "r"])
    channel = pf.calibrate(levels, 0.5, "channel").applied
    assert isinstance(channel, Channel)
    few = replace(channel.inputs, names=("p", "r"))
    suited = pricing.suited(channel, few)
    assert isinstance(suited, Channel)
    assert suited.inputs == few
    assert (suited.rows == channel.rows[[0, 2]]).all()
    with pytest.raises(InputError, match="no row for"):
        pricing.suited(channel, replace(few, names=("p", "t")))


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
    table = by_persons(21)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 10**6)
    prior = pf.Prior.from_table(table, secret="s", public="x", unit="person")
    plan = pf.calibrate(prior, 1)
    assert plan.units is not None
    assert spend(ledger, table, plan) == pytest.approx(plan.units.loss, rel=1e-9)
    loss = spend(ledger, table, plan)
    halved = DiscreteLaplace((plan.scale or 0) / 2, Fraction(1))
    merged = units_loss(pf.Scenario(prior), halved)
    assert loss == pytest.approx(merged.value, rel=1e-9)
    # Other columns are not counted by persons: worst cases, twice.
    price = ledger.price(table, at_scale(plan_for(table, "z"), 1.0))
    worst = 2 * Fraction(int(table["x"].max() - table["x"].min())) / Fraction(plan.scale or 1) + 1
    assert price.bound.value == 2 * worst
    assert "2 rows that one person may have" in price.bound.how
    assert ledger.verify().differences == ()
    with pytest.raises(InputError, match="unit"):
        calibrate_beside(ledger, table, pf.Scenario(prior))


def test_persons_of_another_table_are_bounded_by_worst_cases(ledger: Ledger) -> None:
    plan = plan_for(by_persons(21), "x", 5, "l1", unit="person")
    table = by_persons(24)
    price = ledger.price(table, plan)
    assert price.bound.value == 2 * plan.support.values[-1] / Fraction(plan.scale or 1)  # type: ignore[union-attr]


def test_a_plan_for_a_region_is_charged_under_the_counts_and_says_so(ledger: Ledger) -> None:
    table = random_frame(22, rows=300)
    plan = pf.calibrate(pf.Prior.from_table(table, secret="s", public="x", confidence="0.9"), 0.5)
    price = ledger.price(table, plan)
    assert price.own
    assert price.loss < 0.5
    assert any("region of priors" in note for note in price.notes)
    assert not any("region" in note for note in ledger.price(table, plan_for(table, "x")).notes)


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
