# SPDX-License-Identifier: Apache-2.0
"""Noisy counts in a ledger: paid for once and beside everything, as soon as they are drawn."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from cli_runner import run
from ledger.workers import change_against
from pufferfish.cli import calibrate as command
from pufferfish.errors import CheckFailed, InputError, SeededWarning
from pufferfish.ledger import counts as module
from pufferfish.ledger import pricing
from pufferfish.ledger.calibrate import calibrate_beside, draw_counts
from pufferfish.ledger.counts import plan_of_counts
from pufferfish.ledger.ledger import DoesNotFit, Ledger
from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import NoisyCounts

SPENT = Fraction(1, 2)


def table(rows: int = 900, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "other"], rows)
    x = rng.binomial(3, np.where(s == "a", 0.5, 0.4))
    return pd.DataFrame({"s": s, "x": x, "z": rng.integers(0, 3, rows)})


TABLE = table()


def noisy(
    frame: Any = TABLE, public: str = "x", seed: int = 3, epsilon: Any = SPENT
) -> pf.Scenario:
    with pytest.warns(SeededWarning):
        return pf.noisy_counts(
            frame, epsilon, secret="s", public=public, pairs=[("a", "b")], support=range(4),
            seed=seed,
        )  # fmt: skip


def held_out(scenario: pf.Scenario) -> pf.Scenario:
    prior = scenario.priors[0]
    assert isinstance(prior.rule, NoisyCounts)
    rule = replace(prior.rule, held_out=True)
    return pf.Scenario(replace(prior, rule=rule), scenario.pairs)


def ordinary(public: str = "z", frame: pd.DataFrame = TABLE, **options: Any) -> pf.Plan:
    prior = pf.Prior.from_table(frame, secret="s", public=public, **options)
    return pf.calibrate(pf.Scenario(prior, [("a", "b")]), 0.1)


def worst(plan: pf.Plan, diameter: int = 3) -> Fraction:
    return diameter / Fraction(plan.scale or 0)


def spend(ledger: Ledger, plan: pf.Plan, frame: Any = TABLE) -> LossBound:
    with ledger.charge(frame, plan) as charged:
        pass
    return charged.price.bound


COUNTS = noisy()
PLAN = pf.calibrate(COUNTS, SPENT + 1)
OTHER = pf.calibrate(COUNTS, SPENT + 2)


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "books.db")
    made.dataset("d", TABLE, secret="s", budget=99)
    return made


# ---- what a set costs ---------------------------------------------------------------------------


def test_a_single_release_costs_both_parts(books: Ledger) -> None:
    price = books.price(TABLE, PLAN)
    assert (price.own, price.plans, price.bound.upper) == (True, 1, SPENT + 1)
    assert price.bound.terms == (("noisy counts", SPENT),)
    assert (price.bound.method, price.kind) == (
        "walk", "joint loss + worst cases; plan 1 from noisy counts",
    )  # fmt: skip
    channel = pf.calibrate(COUNTS, SPENT + 1, "channel")
    bound = books.price(TABLE, channel).bound
    assert SPENT + Fraction("0.9") < (bound.upper or 0) <= SPENT + 1
    # More noise than the worst case needs is worth its worst case.
    assert books.price(TABLE, PLAN, min_scale=30).bound.upper == SPENT + Fraction(3, 30)


def test_plans_from_one_set_pay_once_and_each_has_its_own_chance(books: Ledger) -> None:
    assert spend(books, PLAN).upper == SPENT + 1
    price = books.price(TABLE, OTHER)
    assert price.bound.upper == worst(PLAN) + worst(OTHER) + SPENT
    assert [term for term, _ in price.bound.terms] == ["x", "x", "noisy counts"]
    assert price.plans == 2
    spend(books, OTHER)
    # Another set of the same table is another output.
    second = pf.calibrate(noisy(seed=4), SPENT + 1)
    price = books.price(TABLE, second)
    assert price.bound.upper == worst(PLAN) + worst(OTHER) + worst(second) + 2 * SPENT
    assert price.plans == 1
    assert books.verify().differences == books.verify(TABLE).differences == ()


def test_counts_are_additive_to_other_releases(books: Ledger) -> None:
    z, again = ordinary(), ordinary("z")
    alone = spend(books, z)
    twice = books.price(TABLE, again).bound.upper or Fraction(0)
    books.charge(TABLE, plan_of_counts(COUNTS))
    # As long as nothing is released from them, the joint loss is known.
    assert spend(books, again).upper == twice + SPENT > 2 * (alone.upper or 0) * Fraction("0.9")
    assert spend(books, PLAN).upper == 2 * worst(z, 2) + worst(PLAN) + SPENT
    assert books.verify().differences == books.verify(TABLE).differences == ()


def test_rows_of_a_person_pay_each(tmp_path: Path) -> None:
    frame = TABLE.assign(id=np.repeat(range(300), 3), s=np.repeat(TABLE.s[:300].to_numpy(), 3))
    books = Ledger.create(tmp_path / "b")
    books.dataset("d", frame, secret="s", budget=999)
    own, plan = ordinary(frame=frame, unit="id"), pf.calibrate(noisy(frame), SPENT + 1)
    assert spend(books, plan, frame).upper == SPENT + 1
    price = books.price(frame, own)
    assert price.rows == 3
    assert price.bound.upper == 3 * (worst(plan) + worst(own, 2) + SPENT)
    assert price.bound.terms[-1] == ("noisy counts", 3 * SPENT)
    spend(books, own, frame)
    assert books.verify(frame).differences == books.verify().differences == ()
    # Drawn alone they are paid for as often.
    second = Ledger.create(tmp_path / "c")
    second.dataset("d", frame, secret="s", budget=999)
    alone = second.price(frame, own).bound.upper or Fraction(0)
    second.charge(frame, plan_of_counts(noisy(frame)))
    assert second.price(frame, own).bound.upper == alone + 3 * SPENT


def test_held_out_rows_are_not_charged(books: Ledger) -> None:
    plan = pf.calibrate(held_out(noisy(table(300, 2))), 1)
    price = books.price(TABLE, plan)
    assert (price.own, price.bound.upper, price.bound.terms) == (True, 1, ())
    spend(books, plan)
    assert books.price(TABLE, plan).bound.upper == 2 * worst(plan)
    assert books.verify().differences == books.verify(TABLE).differences == ()
    with pytest.raises(InputError, match="of the rows of its dataset, not of others"):
        plan_of_counts(held_out(COUNTS))


def test_two_draws_that_come_out_alike_are_two(books: Ledger) -> None:
    for number in (1, 2, 3):
        books.charge(TABLE, plan_of_counts(COUNTS))
        assert books.show().releases[-1].bound == number * SPENT
    assert spend(books, PLAN).upper == 3 * SPENT + 1
    # So are equal counts of two columns.
    twin = TABLE.assign(z=TABLE.x)
    columns = [pf.calibrate(noisy(twin, public, epsilon=90), 91) for public in ("x", "z")]
    assert columns[0].noisy == columns[1].noisy
    bound = module.with_counts(pricing.worst_of([]), columns)
    assert bound.upper == 180


# ---- brute force --------------------------------------------------------------------------------


def law_of(frame: pd.DataFrame, atoms: int) -> Any:
    """The distributions of x under a and b."""
    rows = [np.bincount(frame.x[frame.s == s], minlength=atoms) for s in "ab"]
    return np.array([own / own.sum() for own in rows])


def slow_loss(law: Any, sets: list[NoisyCounts], plans: list[pf.Plan]) -> float:
    """The largest |ln| of the chance of all that is out, under both secrets of a row, by its law.

    Every set has counts that are those of the other rows, one more in some cells; outputs lie
    around the values.
    """
    atoms = law.shape[1]
    chance = law[None]  # by what came out, secret and value
    cells = np.eye(2 * atoms).reshape(-1, 2, atoms)
    for own in sets:
        rate = float(own.epsilon1) / 2
        extra = np.array(list(itertools.product((0, 1), repeat=2 * atoms)))
        extra = extra[extra.sum(axis=1) <= 2].reshape(-1, 2, atoms)
        apart = np.abs(extra[:, None] - cells).sum(axis=(2, 3)).reshape(-1, 2, atoms)
        chance = (chance[:, None] * np.exp(-rate * apart)).reshape(-1, 2, atoms)
    for plan in plans:
        outputs = np.arange(-1, atoms + 1)
        kernel = np.exp(-np.abs(outputs[:, None] - np.arange(atoms)) / float(plan.scale or 0))
        chance = (chance[:, None] * kernel[:, None]).reshape(-1, 2, atoms)
    out = chance.sum(axis=2)
    return float(np.abs(np.log(out[:, 0] / out[:, 1])).max())


def at_scale(plan: pf.Plan, scale: float) -> pf.Plan:
    assert isinstance(plan.applied, DiscreteLaplace)
    return replace(plan, applied=replace(plan.applied, scale=scale))


def prices(folder: Path) -> Iterator[tuple[float, float]]:
    """Yield prices of random releases and noisy counts, and their losses by brute force."""
    rng = np.random.default_rng(5)
    certain = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1]])  # then each release tells its worst case
    for number in range(8):
        ledger = Ledger.create(folder / str(number))
        ledger.dataset("d", TABLE, secret="s", budget=999)
        known = [noisy(seed=k, epsilon=Fraction(int(rng.integers(1, 5)), 4)).rules for k in (1, 2)]
        plans: list[pf.Plan] = []
        sets: list[NoisyCounts] = []
        for k in rng.integers(0, 3, 3):
            own = ordinary("x") if k == 2 else replace(PLAN, regions=known[k])
            plans.append(at_scale(own, float(rng.choice([0.8, 1.7, 5.0]))))
            sets += [own.noisy] if own.noisy else []
            upper = float(spend(ledger, plans[-1]).upper or 0)
            if len(plans) > 1 and sets:
                yield upper, slow_loss(certain, list(dict.fromkeys(sets)), plans)


def test_prices_are_those_of_brute_force(tmp_path: Path) -> None:
    found = list(prices(tmp_path))
    assert len(found) > 10
    assert all(price == pytest.approx(slow, rel=1e-9) for price, slow in found)


def forgotten(bound: LossBound, plans: Any, rows: int = 1) -> LossBound:
    return bound


def for_every_plan(bound: LossBound, plans: Any, rows: int = 1) -> LossBound:
    spent = sum(plan.noisy.epsilon1 for plan in plans if plan.noisy)
    return replace(bound, upper=(bound.upper or 0) + spent)


@pytest.mark.parametrize("mutant", [forgotten, for_every_plan])
def test_mutants_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Any) -> None:
    monkeypatch.setattr(pricing, "with_counts", mutant)
    assert any(price != pytest.approx(slow, rel=1e-9) for price, slow in prices(tmp_path))


def test_joint_losses_and_counts_add_by_brute_force(books: Ledger) -> None:
    plans = [at_scale(ordinary("x"), 2.0), at_scale(ordinary("x"), 3.0)]
    spend(books, plans[0])
    books.charge(TABLE, plan_of_counts(COUNTS))
    upper = float(spend(books, plans[1]).upper or 0)
    assert COUNTS.noisy
    law = law_of(TABLE, 4)
    alone, slow = (slow_loss(law, sets, plans) for sets in ([], [COUNTS.noisy]))
    assert upper == pytest.approx(alone + float(SPENT), rel=1e-9)
    assert alone + float(SPENT) / 2 < slow <= upper


# ---- whether they are those of the table --------------------------------------------------------


def edited(change: Callable[[Any], Any]) -> pf.Plan:
    data = json.loads(PLAN.to_json())
    change(data["noisy"])
    return pf.Plan.from_json(json.dumps(data))


def far(noisy: Any) -> None:
    noisy["counts"][1][2] += 150  # noise has a standard deviation of 5.7


@pytest.mark.parametrize("change", [far, lambda noisy: noisy.update(rows=noisy["rows"] + 1)])
def test_counts_of_another_table_cost_worst_cases(books: Ledger, change: Any) -> None:
    price = books.price(TABLE, edited(change))
    assert (price.own, price.bound.upper) == (False, worst(PLAN) + SPENT)
    assert "for other counts than those of this table" in price.why
    spend(books, edited(change))
    assert books.verify().differences == books.verify(TABLE).differences == ()


def test_so_do_counts_of_other_values_or_rows(books: Ledger, tmp_path: Path) -> None:
    other = pf.calibrate(noisy(table(901, 7)), SPENT + 1)
    assert not books.price(TABLE, other).own
    other = pf.calibrate(noisy(TABLE.assign(x=TABLE.z)), SPENT + 1)
    assert not books.price(TABLE, other).own
    frame = TABLE.copy()
    frame.loc[0, "x"] = 4  # no declared value
    made = Ledger.create(tmp_path / "b")
    made.dataset("d", frame, secret="s", budget=99)
    assert not made.price(frame, PLAN, out_of_support="clamp").own
    with pytest.raises(InputError, match="row 1"):
        made.charge(frame, PLAN)
    frame.loc[0, "x"] = np.nan  # such a row is in neither
    made = Ledger.create(tmp_path / "c")
    made.dataset("d", frame, secret="s", budget=99)
    assert made.price(frame, pf.calibrate(noisy(frame), SPENT + 1)).own


# ---- drawn --------------------------------------------------------------------------------------


def draws(
    books: Ledger, spent: Any = SPENT, limit: Any = 2, seed: int = 3
) -> tuple[pf.Scenario, Fraction]:
    return draw_counts(books, TABLE, "s", spent, limit, lambda: noisy(epsilon=spent, seed=seed))


def test_they_are_charged_when_they_are_drawn(books: Ledger) -> None:
    scenario, left = draws(books)
    [record] = books.show().releases
    assert (record.kind, record.bound, record.state) == ("noisy counts", SPENT, "charged")
    assert json.loads(record.plan)["noisy"]["counts"] == [*map(list, scenario.noisy.counts)]  # type: ignore[union-attr]
    assert books.verify().differences == books.verify(TABLE).differences == ()
    plan = pf.calibrate(scenario, left, "exact")
    assert plan.epsilon_exact == 2
    assert spend(books, plan).upper == 2
    # Another draw leaves less for its plan, and none is of use beside a release.
    with pytest.raises(CheckFailed, match="come before any release"):
        draws(books)


def test_what_other_counts_take_is_not_left(books: Ledger) -> None:
    draws(books)
    scenario, left = draws(books, seed=4)
    assert left == Fraction(3, 2)
    assert spend(books, pf.calibrate(scenario, left, "exact")).upper == 2
    with pytest.raises(InputError, match="draw_counts"):
        calibrate_beside(books, TABLE, scenario, 2, mechanism="exact")


@pytest.mark.parametrize("change", [{"s": "b", "x": 3}, {"s": "other", "x": None}])
def test_the_public_plan_beside_a_ledger_depends_on_the_noisy_counts_alone(
    tmp_path: Path, monkeypatch: Any, change: dict[str, Any]
) -> None:
    """Also where a row is the only one of its secret, and where the noise is far from the table."""
    first = pd.DataFrame({"s": ["a"] * 300 + ["b"], "x": [0, 1, 2] * 100 + [3]})
    second = first.copy()
    second.loc[300 if change["x"] is None else 0, ["s", "x"]] = [change["s"], change["x"]]
    wanted = np.array([[90, 120, 80, 20], [30, 20, 25, 25], [0, 1, -1, 0]])
    files = []
    for number, frame in enumerate((first, second)):
        table, books, plan = (tmp_path / f"{number}{end}" for end in (".csv", ".db", ".json"))
        frame.to_csv(table, index=False)
        Ledger.create(books).dataset("d", table, secret="s", budget=2)
        counts = [
            np.bincount(frame.x[own].dropna().astype(int), minlength=4)
            for own in (frame.s == "a", frame.s == "b", frame.s == "other")
        ]
        noise = (wanted - counts).ravel()
        monkeypatch.setattr(DiscreteLaplace, "noise", lambda *_, noise=noise: noise)
        done = run(
            "calibrate", table, "--secret", "s", "--public", "x", "--pair", "a", "b", "--range", 0,
            3, "--publishable", "0.5", "--ledger", books, "--save", plan,
        )  # fmt: skip
        assert done.status == 0, done.err
        files.append(json.loads(plan.read_text()))
    if change["x"] is None:
        assert files[1]["noisy"].pop("rows") + 1 == files[0]["noisy"].pop("rows"), "that shows"
        files = [{**own, "scale": 0} for own in files]  # the bets depend on it
    assert files[0] == files[1]
    assert files[0]["epsilon"] == 2


@pytest.mark.parametrize("spent, limit", [(2, 2), (3, 2), ("1.5", 2)])
def test_what_leaves_nothing_is_not_drawn(books: Ledger, spent: Any, limit: Any) -> None:
    draws(books)
    with pytest.raises(CheckFailed, match="nothing was drawn"):
        draw_counts(books, TABLE, "s", spent, limit, lambda: pytest.fail("drawn"))
    assert len(books.show().releases) == 1


def test_whoever_charges_meanwhile_is_seen(books: Ledger) -> None:
    tight = Ledger.create(books.path.with_name("tight"))
    tight.dataset("d", TABLE, secret="s", budget=1)

    def draw() -> pf.Scenario:
        tight.charge(TABLE, plan_of_counts(noisy(seed=8, epsilon="0.8")))
        return COUNTS

    with pytest.raises(DoesNotFit):
        draw_counts(tight, TABLE, "s", SPENT, 1, draw)
    assert [record.bound for record in tight.show().releases] == [Fraction("0.8")]


def test_a_ledger_whose_counts_were_changed_is_found_out(books: Ledger) -> None:
    draws(books)
    spend(books, pf.calibrate(COUNTS, 2, "exact"))
    change_against(books.path, "release_is_final", "UPDATE release SET bound = '0.4' WHERE own = 1")
    for found in (books.verify(), books.verify(TABLE)):
        assert {each.fault for each in found.differences} == {"too little"}


# ---- the command line ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    opened = run("ledger", "open", "b", "--dataset", "d", "t.csv", "--secret", "s", "--budget", 3)
    assert opened.status == 0, opened.err
    return tmp_path


def calibrated(*options: object) -> Any:
    return run("calibrate", "t.csv", "--secret", "s", "--public", "x", "--pair", "a", "b",
               "--range", "0", "3", "--publishable", "0.5", "--ledger", "b", *options)  # fmt: skip


def released(plan: str, output: str) -> Any:
    return run("release", "t.csv", "--plan", plan, "--ledger", "b", "-o", output,
               "--record", f"{output}.json", "--bounds", 0, 3)  # fmt: skip


def test_commands_charge_show_and_record(folder: Path) -> None:
    done = calibrated("--epsilon", "1.5", "--save", "p.json")
    assert done.status == 0, done.err
    # Nothing is told of rows: other secrets are released as well, and a charge reads them.
    assert all("note: " in line for line in done.err.splitlines())
    assert "outside" not in done.err + done.out
    shown = run("ledger", "show", "b")
    assert "noisy counts  charged" in shown.out
    one = released("p.json", "one.csv")
    assert one.status == 0, one.err
    assert "at most 1.5000000 (joint loss + worst cases; plan 1 from noisy counts)" in one.out
    record = Path("one.csv.json").read_text()
    assert "Plans from these noisy counts so far: 1; each scale has its own chance" in record
    for words in (["b"], ["b", "t.csv"]):
        assert run("ledger", "verify", *words).status == 0
    assert "plan 1 from noisy counts" in run("ledger", "show", "b").out
    assert "each scale from noisy counts has its own chance to fail" in shown.out
    # The same counts, another plan: worst cases, and no second epsilon for the counts.
    plan = pf.Plan.load("p.json")
    again = run("ledger", "price", "b", "t.csv", "--plan", "p.json", "--format", "json").data
    assert again["plans"] == 2
    assert again["joint_loss"] == pytest.approx(0.5 + 6 / (plan.scale or 0))
    refused = calibrated("--save", "p2.json")
    assert refused.status == 1
    assert "nothing was drawn" in refused.err
    assert not Path("p2.json").exists()


def test_a_release_pays_for_counts_that_were_not_charged(folder: Path) -> None:
    PLAN.save("p.json")
    done = released("p.json", "one.csv")
    assert "at most 1.5000000 (joint loss + worst cases; plan 1 from noisy counts)" in done.out
    assert len(Ledger.open("b").show().releases) == 1


@pytest.mark.parametrize("error", [CheckFailed("no distribution fits"), KeyboardInterrupt()])
def test_what_ends_between_draw_and_plan_leaves_them_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*given: Any) -> Any:
        assert [record.bound for record in Ledger.open("b").show().releases] == [SPENT]
        raise error

    monkeypatch.setattr(command, "results_of", fails)
    assert calibrated("--epsilon", 2, "--save", "p.json").status != 0
    assert not os.path.exists("p.json")
    assert [record.bound for record in Ledger.open("b").show().releases] == [SPENT]


def test_what_does_not_fit_is_refused_before_a_draw(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiscreteLaplace, "noise", lambda *_: pytest.fail("drawn"))
    for options in (["--epsilon", ".5"], ["--epsilon", ".4"]):
        done = calibrated(*options, "--save", "p.json")
        assert done.status == 1
        assert "refused: noisy counts must come before any release and leave something" in done.err
    assert Ledger.open("b").show().releases == ()


@pytest.mark.parametrize(
    "options",
    [
        ("--mechanism", "relaxed"), ("--best-for", "nosuch"),
        ("--mechanism", "channel", "--cost", "none.json"), ("--min-keep", "2"),
    ],
)  # fmt: skip
def test_mistakes_cost_nothing(folder: Path, options: tuple[str, ...]) -> None:
    done = run(
        "calibrate", "t.csv", "--secret", "s", "--public", "x", "--pair", "a", "b", "--range", 0, 3,
        "--publishable", "0.5", "--ledger", "b", "--save", "p.json", *options,
    )  # fmt: skip
    assert done.status == 2
    assert Ledger.open("b").show().releases == ()


def test_a_failure_after_the_draw_says_what_was_spent(folder: Path) -> None:
    done = run(
        "calibrate", "t.csv", "--secret", "s", "--public", "x", "--pair", "a", "b", "--range", 0, 3,
        "--publishable", "0.5", "--ledger", "b", "--save", "p.json", "--mechanism", "channel",
        "--best-for", "kept", "--min-keep", "0.999999",
    )  # fmt: skip
    assert done.status != 0
    assert "this depends on the noisy counts, whose epsilon 0.5 is spent" in done.err
    assert [record.bound for record in Ledger.open("b").show().releases] == [Fraction(1, 2)]
