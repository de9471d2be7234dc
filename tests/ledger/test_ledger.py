# SPDX-License-Identifier: Apache-2.0
"""What releases cost together: prices, charges, tables known again, and what is never overspent."""

import itertools
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from definitions import joint_loss, laplace
from ledger.workers import change_against, without_a_second_look
from pufferfish.errors import CheckFailed, InputError, PufferfishWarning
from pufferfish.ledger import pricing, store
from pufferfish.ledger.calibrate import calibrate_beside
from pufferfish.ledger.ledger import DoesNotFit, Ledger
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.report.page import page


def frame(
    rows: Sequence[tuple[Any, ...]], columns: Sequence[str] = ("s", "x", "z")
) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(columns))


def random_frame(seed: int, rows: int = 60, missing: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, rows)
    x = rng.integers(0, 3, rows) + s * (rng.random(rows) < 0.4)
    z = np.where(rng.random(rows) < 0.6, x % 2, rng.integers(0, 2, rows)).astype(float)
    z[rng.random(rows) < missing] = np.nan
    return pd.DataFrame({"s": np.where(s, "yes", "no"), "x": x, "z": z})


#: Where the secret decides the value: the loss is diameter / theta, and it adds.
APART = frame([("a", 0), ("b", 5)] * 10, ["s", "x"])


def plan_for(
    table: pd.DataFrame, public: str, epsilon: Any = 0.2, mechanism: Any = "exact", **options: Any
) -> pf.Plan:
    prior = pf.Prior.from_table(table, secret="s", public=public, **options)
    return pf.calibrate(prior, epsilon, mechanism)


def at_scale(plan: pf.Plan, scale: float) -> pf.Plan:
    assert isinstance(plan.applied, DiscreteLaplace)
    return replace(plan, applied=replace(plan.applied, scale=scale))


TABLE = random_frame(1)
PLAN = plan_for(TABLE, "x")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "books.db")


@pytest.fixture
def books(ledger: Ledger) -> Ledger:
    """A ledger with a dataset for the table."""
    return opened(ledger, TABLE)


def opened(ledger: Ledger, table: Any, budget: Any = 100, name: str = "t", **more: Any) -> Ledger:
    ledger.dataset(name, table, secret="s", budget=budget, **more)
    return ledger


def spend(ledger: Ledger, table: Any, plan: pf.Plan, **options: Any) -> float:
    with ledger.charge(table, plan, **options) as charged:
        pass
    return charged.price.loss


# ---- what a release costs ---------------------------------------------------------------------


def test_one_release_costs_the_loss_of_its_plan(books: Ledger) -> None:
    price = books.price(TABLE, PLAN)
    assert price.fits
    assert price.own
    assert (price.releases, price.before, price.column, price.rows) == (0, 0, "x", 1)
    assert price.loss == pytest.approx(PLAN.loss, rel=1e-9)
    assert price.left == 100 - (price.bound.upper or 0)
    assert books.show().releases == ()


def test_the_same_column_twice_costs_its_joint_loss_and_not_a_sum(ledger: Ledger) -> None:
    """Theory, section 6: 0.840 twice, 7.61 five times, where one costs 0.1."""
    table = frame([("a", 0)] * 100 + [("b", 0)] * 99 + [("b", 10)], ["s", "x"])
    plan = plan_for(table, "x", "0.1")
    assert plan.scale == pytest.approx(4.0919340115)
    opened(ledger, table)
    costs = [spend(ledger, table, plan) for _ in range(5)]
    assert costs[0] == pytest.approx(0.1)
    assert costs[1] == pytest.approx(0.840, abs=5e-4)
    assert costs[4] == pytest.approx(7.61, abs=5e-3)


def test_two_columns_that_tell_nothing_alone_and_everything_together(ledger: Ledger) -> None:
    table = frame([("a", 0, 0), ("a", 1, 1), ("b", 0, 1), ("b", 1, 0)] * 5)
    x, z = plan_for(table, "x"), plan_for(table, "z")
    assert spend(opened(ledger, table), table, x, allow_unchanged=True) == 0
    price = ledger.price(table, z)
    assert (price.loss, price.fits, price.left) == (math.inf, False, 0)
    with pytest.raises(DoesNotFit, match="infinite") as refused:
        ledger.charge(table, z, allow_unchanged=True)
    assert refused.value.exit_status == 1


@pytest.mark.parametrize("times, mechanism", [(10, "l1"), (11, "wasserstein")])
def test_parts_of_a_budget_add_exactly(ledger: Ledger, times: int, mechanism: str) -> None:
    plan = plan_for(APART, "x", Fraction(1, times), mechanism)
    opened(ledger, APART, 1)
    for _ in range(times):
        assert spend(ledger, APART, plan) <= 1
    assert not ledger.price(APART, at_scale(plan, 1e9)).fits
    with pytest.raises(DoesNotFit, match=f"over the budget 1; releases out: {times}; nothing"):
        ledger.charge(APART, plan)
    assert len(ledger.show().releases) == times
    assert ledger.verify(APART).differences == ()


def test_pairs_of_all_plans_count(ledger: Ledger) -> None:
    """A release that protects one pair tells of another pair that an earlier plan protects."""
    rows = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 0), ("c", 1)] * 9
    table = frame(rows, ["s", "x"])
    prior = pf.Prior.from_table(table, secret="s", public="x")
    free = pf.calibrate(pf.Scenario(prior, [("a", "b")]), 0.1)
    assert opened(ledger, table).price(table, free).loss == 0
    spend(ledger, table, pf.calibrate(pf.Scenario(prior, [("a", "c")]), 0.1))
    assert ledger.price(table, free).loss > 0.1


# ---- against brute force ----------------------------------------------------------------------


def table_losses(table: pd.DataFrame, plans: dict[str, list[pf.Plan]]) -> list[float]:
    """The loss for whoever sees some of the columns, from the rows that have a value in them."""
    losses = []
    for size in range(1, len(plans) + 1):
        for chosen in itertools.combinations(plans, size):
            rows = table[table[list(chosen)].notna().all(axis=1)]
            rest = [c for c in plans if c not in chosen]
            for seen in (rows, rows[rows[rest].isna().all(axis=1)]):
                if set(seen["s"]) == set(table["s"]):
                    losses.append(slow_loss(seen, {c: plans[c] for c in chosen}))
    return losses


def slow_loss(rows: pd.DataFrame, plans: dict[str, list[pf.Plan]]) -> float:
    """The definition; noises of one column are looked at together, at all outputs."""
    columns = list(plans)
    values = {s: [tuple(map(Fraction, row)) for row in own[columns].values.tolist()]
              for s, own in rows.groupby("s")}  # fmt: skip
    joint = {s: {v: Fraction(own.count(v), len(own)) for v in own} for s, own in values.items()}
    kernels = []
    for k, column in enumerate(columns):
        rate = sum(1 / Fraction(plan.scale) for plan in plans[column] if plan.scale)
        atoms = sorted({value[k] for own in values.values() for value in own})
        kernels.append((k, laplace(atoms, 1 / rate, Fraction(1))))
    return float(joint_loss([joint], [tuple(joint)], kernels))


def faults_of_prices(folder: Path, seeds: Sequence[int]) -> tuple[list[Any], int]:
    """Return prices below the loss, and how many were exact, of random tables and releases."""
    faults, exact = [], 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        table = random_frame(seed, 80, missing=0.3 * (seed % 2))
        ledger = opened(Ledger.create(folder / f"{seed}.db"), table)
        plans: dict[str, list[pf.Plan]] = {}
        for _ in range(int(rng.integers(1, 5))):
            column = str(rng.choice(["x", "z"]))
            plan = at_scale(plan_for(table, column), float(rng.choice([0.7, 1.5, 4.0, 20.0])))
            plans.setdefault(column, []).append(plan)
            price = spend(ledger, table, plan)
            slow = max(table_losses(table, plans))
            if price < slow * (1 - 1e-12):
                faults.append((seed, price, slow))
            exact += math.isclose(price, slow, rel_tol=1e-9)
        if ledger.verify(table).differences or ledger.verify().differences:
            faults.append((seed, "verify"))
    return faults, exact


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(100, 150), marks=pytest.mark.slow)])
def test_prices_are_never_below_brute_force(tmp_path: Path, seeds: range) -> None:
    faults, exact = faults_of_prices(tmp_path, seeds)
    assert faults == []
    assert exact > 4


def increments(patch: pytest.MonkeyPatch) -> None:
    """The price of a set is the sum of what each release costs alone."""
    honest = pricing.bound_of

    def added(counted: Any, outs: Any) -> Any:
        alone = [honest(counted, [out])[0] for out in outs]
        upper = sum((bound.upper or 0 for bound in alone), Fraction(0))
        return replace(alone[0], upper=upper), 0, 1

    patch.setattr(pricing, "bound_of", added)


def complete_rows_only(patch: pytest.MonkeyPatch) -> None:
    """Rows that lack a value are overlooked."""
    patch.setattr(pricing, "incomplete_rows", lambda prior: 0)


@pytest.mark.parametrize("mutant", [increments, complete_rows_only])
def test_mutants_are_below_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Any
) -> None:
    mutant(monkeypatch)
    faults, _ = faults_of_prices(tmp_path, range(4))
    assert any(fault[1] != "verify" for fault in faults)


def test_too_many_combinations_fall_back_to_worst_cases(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_frame(14)
    x, z = at_scale(plan_for(table, "x"), 9.0), at_scale(plan_for(table, "z"), 9.0)
    spend(opened(ledger, table), table, x)
    exact = ledger.price(table, z).bound
    monkeypatch.setattr(pricing, "MOST_CELLS", 8)
    mixed = ledger.price(table, z).bound
    assert (exact.kind, mixed.kind) == ("joint loss", "joint loss + worst cases")
    assert (exact.upper or 0) <= (mixed.upper or 0) <= Fraction(4, 9)
    assert mixed.terms == (("z", Fraction(1, 9)),)


# ---- worst cases for everything else ----------------------------------------------------------


def test_a_plan_of_another_prior_costs_worst_cases(ledger: Ledger) -> None:
    table = random_frame(9)
    prior = pf.Prior.from_counts({"no": [4, 3, 2, 1], "yes": [1, 2, 3, 4]}, support=range(4))
    plan = pf.calibrate(prior, 0.3).with_columns("x", "s")
    price = opened(ledger, table).price(table, plan)
    assert not price.own
    worst = 3 / Fraction(plan.scale or 1)
    assert (price.bound.upper, price.bound.kind) == (worst, "worst-case sum")
    spend(ledger, table, plan)
    # From then on everything does.
    z = at_scale(plan_for(table, "z"), 8.0)
    both = ledger.price(table, z)
    assert both.own
    assert both.bound.upper == (price.bound.upper or 0) + Fraction(1, 8)
    other = plan_for(random_frame(10, rows=200), "z", 0.3)
    assert not ledger.price(table, other).own


def test_clamped_values_cost_worst_cases(ledger: Ledger) -> None:
    table = random_frame(8)
    narrow = table.assign(x=table["x"].clip(upper=1))
    plan = at_scale(plan_for(narrow, "x"), 4.0)
    opened(ledger, table)
    with pytest.raises(InputError, match="row"):
        ledger.charge(table, plan)
    price = ledger.price(table, plan, out_of_support="clamp")
    assert (price.own, price.bound.upper) == (False, Fraction(1, 4))


def test_a_region_costs_its_robust_loss_once_and_worst_cases_together(ledger: Ledger) -> None:
    table = random_frame(7)
    prior = pf.Prior.from_table(table, secret="s", public="x", confidence=0.9)
    plan = pf.calibrate(prior, 0.5)
    price = opened(ledger, table).price(table, plan)
    assert price.own
    assert price.loss == pytest.approx(0.5, rel=1e-6)
    spend(ledger, table, plan)
    twice = ledger.price(table, plan)
    assert twice.bound.upper == 2 * 3 / Fraction(plan.scale or 1)


def test_people_with_several_rows_cost_worst_cases(ledger: Ledger) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"p{i}", "ab"[i % 2], int(v)) for i in range(40) for v in rng.integers(0, 2, 2)]
    table = frame(rows, ["id", "s", "x"]).assign(house=[row[0] for row in rows])
    own = plan_for(table, "x", 0.5, unit="id")
    price = opened(ledger, table).price(table, own)
    assert (price.own, price.rows) == (True, 2)
    assert price.loss == pytest.approx(0.5, rel=1e-6)  # a single one costs what its plan proved
    bare = at_scale(plan_for(table, "x"), 8.0)
    spend(ledger, table, bare)
    both = ledger.price(table, own)
    assert both.bound.upper == 2 * (Fraction(1, 8) + 1 / Fraction(own.scale or 1))
    spend(ledger, table, own)
    assert ledger.verify().differences == ledger.verify(table).differences == ()
    assert ledger.price(table, bare).rows == 2  # as soon as a plan says whose rows they are
    with pytest.raises(InputError, match="the units house, id"):
        ledger.price(table, plan_for(table, "x", 0.5, unit="house"))


def test_a_secret_without_complete_rows_costs_worst_cases(ledger: Ledger) -> None:
    table = frame([("a", 0, 0), ("a", 1, 1), ("b", 1, None), ("b", None, 0), ("b", None, 1)] * 4)
    x = at_scale(plan_for(table[table["x"].notna()], "x"), 4.0)
    opened(ledger, table)
    z = at_scale(plan_for(table, "z"), 4.0)
    spend(ledger, table, at_scale(plan_for(table, "x"), 4.0))
    price = ledger.price(table, z)
    assert (price.bound.upper, price.bound.kind) == (Fraction(1, 2), "worst-case sum")
    assert ledger.price(table, x).own


def test_one_column_is_read_in_one_way(ledger: Ledger) -> None:
    table = random_frame(6)
    spend(opened(ledger, table), table, plan_for(table, "x"))
    for other in ({"step": 2}, {"missing": ["?"]}, {"support": range(9)}):
        with pytest.raises(InputError, match="reads the column 'x' otherwise"):
            ledger.price(table, plan_for(table, "x", **other))
    spend(ledger, table, plan_for(table, "z"))
    spend(ledger, table, plan_for(table, "x", 0.1, "l1"))


# ---- charged before, whatever happens after ---------------------------------------------------


def test_it_is_charged_before_the_block_and_released_after(books: Ledger) -> None:
    with books.charge(TABLE, PLAN, min_scale=30) as charged:
        [entry] = Ledger.open(books.path).show().releases
        assert (entry.id, entry.state) == (charged.id, "charged")
        PLAN.release(TABLE)
    [entry] = books.show().releases
    assert (entry.state, entry.dataset, entry.column) == ("released", "t", "x")
    assert json.loads(entry.plan)["scale"] == 30  # what was in force
    assert charged.price.loss < 0.1
    # Whoever does not open the block has charged all the same.
    books.charge(TABLE, PLAN)
    assert [entry.state for entry in books.show().releases] == ["released", "charged"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_what_fails_stays_charged(books: Ledger, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, books.charge(TABLE, PLAN) as charged:
        raise error
    assert any(charged.id in note and "ledger show" in note for note in raised.value.__notes__)
    assert [entry.state for entry in books.show().releases] == ["charged"]
    assert books.price(TABLE, PLAN).releases == 1


def test_a_release_that_cannot_be_noted_as_released_is_one_all_the_same(
    books: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged = books.charge(TABLE, PLAN)
    monkeypatch.setattr(store, "PATIENCE", 0.3)
    warned = pytest.warns(PufferfishWarning, match="charged and done.*in use.*; it counts")
    with store.writing(books.path), warned, charged:
        pass
    assert [entry.state for entry in books.show().releases] == ["charged"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.assign(x=table["x"] + 0.5),
        lambda table: table.assign(id=range(len(table))).replace({"id": {1: 0, 3: 2}}),
    ],
)
def test_what_a_release_would_refuse_is_not_charged(ledger: Ledger, edit: Any) -> None:
    """Case 6 of the second list: whatever can refuse is asked before the charge."""
    first = random_frame(1).assign(id=range(60))
    plan, table = plan_for(first, "x", unit="id"), edit(first)
    with pytest.raises((InputError, CheckFailed)):
        opened(ledger, table).charge(table, plan)
    huge = at_scale(plan_for(first, "x"), 1e19)
    with pytest.raises(InputError, match="64 bits"):
        ledger.charge(table, huge)
    assert ledger.show().releases == ()


def overtake(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Do something right before the right to write is taken, as another process might."""
    real = store.writing

    def writing(path: Path) -> Any:
        monkeypatch.setattr(store, "writing", real)
        work()
        return real(path)

    monkeypatch.setattr(store, "writing", writing)


@pytest.mark.parametrize("looks", [True, False])
def test_somebody_who_charges_meanwhile_is_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """Whoever does not look a second time overspends."""
    plan = plan_for(APART, "x", "0.6", "l1")
    opened(ledger, APART, 1)
    overtake(monkeypatch, lambda: spend(Ledger.open(ledger.path), APART, plan))
    if looks:
        with pytest.raises(DoesNotFit):
            ledger.charge(APART, plan)
        assert len(ledger.show().releases) == 1
        return
    without_a_second_look(monkeypatch.setattr)
    spend(ledger, APART, plan)
    assert len(ledger.show().releases) == 2
    assert {d.fault for d in ledger.verify(APART).differences} == {"too little"}


# ---- which table it is ------------------------------------------------------------------------


def test_copies_of_a_table_are_that_table(books: Ledger, tmp_path: Path) -> None:
    TABLE.sample(frac=1, random_state=1).to_csv(tmp_path / "renamed.csv", index=False)
    TABLE[["z", "s", "x"]].to_parquet(tmp_path / "other.parquet")
    for number, copy in enumerate(["renamed.csv", "other.parquet"]):
        assert books.price(tmp_path / copy, PLAN).releases == number
        spend(books, tmp_path / copy, PLAN)
    assert books.account(TABLE, "s")[0].budget == 100


def test_a_file_that_changes_is_refused(
    books: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    TABLE.to_csv(path, index=False)
    overtake(monkeypatch, lambda: os.utime(path, (1, 1)))
    with pytest.raises(InputError, match="changed while"):
        books.charge(path, PLAN)
    assert books.show().releases == ()


def test_an_edited_or_grown_table_is_refused(books: Ledger) -> None:
    edited = TABLE.copy()
    edited.loc[0, "z"] = 1 - edited.loc[0, "z"]
    for other in (edited, TABLE.iloc[1:], TABLE.drop(columns="z"), pd.concat([TABLE, TABLE[:1]])):
        with pytest.raises(InputError, match="not the table of the dataset t about 's'"):
            books.charge(other, PLAN)
        with pytest.raises(InputError, match=r"has a dataset about 's' already .t.*--other-people"):
            opened(books, other, name="u")
    for name, again in (("t", edited), ("u", TABLE)):
        with pytest.raises(InputError, match="never changed"):
            opened(books, again, name=name, other_people=True)
    with pytest.raises(InputError, match="True or False"):
        opened(books, edited, name="u", other_people="no")
    opened(books, edited, "1/3", name="u", other_people=True)
    plan = plan_for(edited, "x", 0.05)
    assert spend(books, edited, plan) == pytest.approx(0.05)
    datasets, releases = books.show()
    assert [(d.name, d.budget, d.other_people) for d in datasets] == [
        ("t", 100, False), ("u", Fraction(1, 3), True),
    ]  # fmt: skip
    assert [release.dataset for release in releases] == ["u"]


def test_wrong_datasets_and_plans_are_refused(ledger: Ledger) -> None:
    wrong: Any
    for wrong, words in (
        ({"budget": 0}, "budget"), ({"name": " "}, "needs a name"), ({"name": "\ud800"}, "a name"),
        ({"name": 5}, "needs a name"), ({"secret": "q"}, "no column"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            ledger.dataset(**{"name": "t", "table": TABLE, "secret": "s", "budget": 1} | wrong)
    with pytest.raises(InputError, match="no dataset about the secret 's'"):
        ledger.price(TABLE, PLAN)
    opened(ledger, TABLE)
    nameless = pf.calibrate(pf.Prior.from_mapping({"a": {"0": 1}, "b": {"1": 1}}), 1)
    for wrong, words in (
        ("plan.json", "a Plan is needed"), (nameless, "names its columns"),
        (nameless.with_columns("x"), "names its columns"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            ledger.price(TABLE, wrong)
    with pytest.raises(InputError, match="none of the datasets"):
        ledger.verify(random_frame(2))


# ---- verify -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, fault, with_table",
    [
        ("bound = '0.001'", "too little", True),
        ("bound = '2', kind = 'joint loss'", "over the budget", False),
        ("bound = '999'", "too much", False),
        ("plan = replace(plan, '\"scale\": ', '\"scale\": 9')", "too much", True),
        ("plan = '{}'", "unreadable", False),
        ("public = 'z'", "unreadable", False),
        ("own = 0", "too little", False),
        ("plan = replace(plan, 'sha256:', 'sha256:0')", "not its own", True),
    ],
)
def test_verify_finds_what_was_changed(
    ledger: Ledger, change: str, fault: str, with_table: bool
) -> None:
    table = random_frame(13)
    opened(ledger, table, 1)
    for _ in range(3):
        spend(ledger, table, plan_for(table, "x", 0.05))
    spend(ledger, table, at_scale(plan_for(table, "z"), 50.0))
    found = ledger.verify(table)
    assert (found.releases, found.recounted, found.differences) == (4, 4, ())
    assert ledger.verify().recounted == 0
    statement = f"UPDATE release SET {change} WHERE sequence = 2"
    change_against(ledger.path, "release_is_final", statement)
    differences = ledger.verify(table if with_table else None).differences
    assert fault in {difference.fault for difference in differences}


# ---- calibrating beside what is charged -------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["exact", "relaxed", "channel"])
@pytest.mark.parametrize("missing, budget", [(0.0, "1/2"), (0.3, 3)])
def test_what_is_calibrated_beside_a_ledger_fits(
    ledger: Ledger, mechanism: Any, missing: float, budget: Any
) -> None:
    table = random_frame(5, 200, missing)
    opened(ledger, table, budget)
    spend(ledger, table, plan_for(table, "x", 0.2))
    scenario = pf.Scenario(pf.Prior.from_table(table, secret="s", public="z"))
    plan = calibrate_beside(ledger, table, scenario, budget, mechanism=mechanism)
    price = ledger.price(table, plan)
    assert price.fits
    if mechanism == "exact":
        assert float(price.left) < 0.01
    spend(ledger, table, plan)
    with pytest.raises((CheckFailed, InputError)):
        spend(ledger, table, at_scale(plan_for(table, "x"), 0.5))


def test_what_is_public_of_a_fitted_plan_depends_on_no_row(tmp_path: Path) -> None:
    told = []
    for change in (0, 1):
        table, ledger = random_frame(5, 200, 0.3), Ledger.create(tmp_path / f"{change}.db")
        table.loc[0, "z"] = change
        opened(ledger, table, 9)
        for name in ("x", "z"):
            spend(ledger, table, plan_for(table, name, 0.1))
        scenario = pf.Scenario(pf.Prior.from_table(table, secret="s", public="z"))
        plan = calibrate_beside(ledger, table, scenario, 9, mechanism="exact")
        # Rows with blanks have worst cases, and the plan an epsilon of its own.
        assert plan.certificate.epsilon != plan.epsilon_exact
        assert plan.verify(scenario).holds
        told.append((plan.scale, page(plan, public=True)))
    assert told[0][0] != told[1][0]
    assert told[0][1] == told[1][1]
    assert "together with the other releases" in told[0][1]
