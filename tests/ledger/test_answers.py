# SPDX-License-Identifier: Apache-2.0
"""Answers to queries in a ledger: against all sequences, and what is refused."""

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pufferfish as pf
from ledger.test_ledger import change_against
from pufferfish.errors import InputError
from pufferfish.ledger.ledger import DoesNotFit, Ledger
from pufferfish.mechanisms.laplace import DiscreteLaplace
from queries import brute

WHERE = {"state": "s", "time": "t", "sequence": "who"}
CHAIN = pf.MarkovChain(["0", "1"], [["3/4", "1/4"], ["1/4", "3/4"]])


def table(length: int = 5) -> pd.DataFrame:
    draw = random.Random(1)
    rows = [(who, t, draw.choice("01")) for who in range(3) for t in range(length)]
    return pd.DataFrame(rows, columns=["who", "t", "s"])


def plan_for(query: Any, epsilon: Any = 1, **columns: Any) -> Any:
    return pf.calibrate(query, epsilon).with_columns(**WHERE | columns)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "books.db")
    made.dataset("d", table(), secret="s", budget=2)
    return made


def spend(ledger: Ledger, plan: Any) -> float:
    with ledger.charge(table(), plan) as charged:
        plan.release(table())
    return charged.price.loss


def test_the_joint_loss_is_charged(ledger: Ledger) -> None:
    count, other = (plan_for(pf.CountQuery(CHAIN, s, 5)) for s in "10")
    ever = plan_for(pf.SumQuery(CHAIN, length="any"), "1/2")
    assert spend(ledger, count) == count.loss
    assert spend(ledger, ever) == float(pf.joint_loss(count.query, [count, ever]))
    scales = [plan.scale for plan in (count, ever, other)]
    exact = brute.chain_loss(CHAIN, [(0, 0, 0), (1, 1, 1)], 5, scales)
    before = ledger.show().releases[-1].bound
    price = ledger.price(table(), other, bounds=(0, 5), allow_unchanged=True)
    assert price.loss == pytest.approx(exact, rel=1e-9)
    assert 2 < price.loss < count.loss + ever.loss + other.loss  # losses do not add up
    assert price.before == before
    with pytest.raises(DoesNotFit, match="releases out: 2; nothing was charged"):
        ledger.charge(table(), other)
    [charged] = [r for r in ledger.show().releases if r.column == "sum of s"]
    assert (charged.kind, charged.state, charged.bound) == ("joint loss", "released", before)
    next_one = pf.calibrate(other.query, 2, already=[count, ever]).with_columns(**WHERE)
    assert 2 * (1 - 1e-9) <= spend(ledger, next_one) <= 2
    for given in (None, table()):
        found = ledger.verify(given)
        assert (found.releases, found.differences) == (3, ())


@pytest.mark.parametrize(
    "change, fault",
    [
        ("bound = '1/10'", "too little"), ("bound = '2'", "too much"),
        ("bound = '9'", "over the budget"), ("plan = replace(plan, '\"scale\": ', '\"scale\": 1')",
                                             "too much"),
        ("plan = replace(plan, 'Markov', 'x')", None), ("plan = '{}'", "unreadable"),
    ],
)  # fmt: skip
def test_verify_finds_what_was_changed(ledger: Ledger, change: str, fault: str | None) -> None:
    for _ in range(2):
        spend(ledger, plan_for(pf.CountQuery(CHAIN, "1", 5), "1/2"))
    statement = f"UPDATE release SET {change} WHERE sequence = 2"
    change_against(ledger.path, "release_is_final", statement)
    found = {difference.fault for difference in ledger.verify().differences}
    assert found == set() if fault is None else fault in found


def test_what_is_refused(ledger: Ledger) -> None:
    query = pf.CountQuery(CHAIN, "1", 5)
    plan, longer = plan_for(query), plan_for(pf.CountQuery(CHAIN, "1", 6))
    bare = pf.calibrate(query, 1)
    unnoised = replace(plan, noise=DiscreteLaplace(0.0, Fraction(1)))
    huge = replace(plan, noise=DiscreteLaplace(1e18, Fraction(1)))
    faults: list[tuple[Any, str, dict[str, Any]]] = [
        (bare, "names the columns of states and times", {}),
        (plan_for(query, time=None, gaps="order"), "whatever the order of its rows", {}),
        (unnoised, "without noise counts in no joint loss", {"allow_unchanged": True}),
        (plan, "min_scale: not for the plan of a query", {"min_scale": 3}),
        (plan, "the lesser one first", {"bounds": (5, 0)}),
        (huge, "does not fit in 64 bits", {}),
        (longer, "sequences of 5 records, but the plan is for 6", {}),
    ]
    for given, fault, options in faults:
        for what in (ledger.price, ledger.charge):
            with pytest.raises(InputError, match=fault):
                what(table(), given, **options)
    with pytest.raises(InputError, match="is not the table of the dataset"):
        ledger.charge(table(6), longer)
    assert not ledger.show().releases
    spend(ledger, plan)
    for given, fault in ((plan_for(query, gaps="order"), "reads sequences otherwise"), (
            plan_for(pf.CountQuery(pf.MarkovChain(["1", "0"], CHAIN.transition), "1", 5)),
            "other states")):  # fmt: skip
        with pytest.raises(InputError, match=fault):
            ledger.charge(table(), given)


def test_noise_for_the_budget_fits(tmp_path: Path) -> None:
    rows = [[".5", ".25", ".25"], [".25", ".5", ".25"], [".125", ".375", ".5"]]
    query = pf.HistogramQuery(pf.MarkovChain(["0", "1", "2"], rows), 4)  # its grid is for doubles
    first = plan_for(query)
    second = pf.calibrate(query, "1.01", already=[first]).with_columns(**WHERE)
    made = Ledger.create(tmp_path / "new.db")
    made.dataset("d", table(4), secret="s", budget="1.01")
    for plan in (first, second):
        with made.charge(table(4), plan):
            pass
    assert not made.verify().differences


@pytest.mark.parametrize("plan", ["{", "{}", "[]", "5"])
def test_damaged_plans_are_called_damaged(ledger: Ledger, plan: str) -> None:
    given = plan_for(pf.CountQuery(CHAIN, "1", 5), "1/2")
    spend(ledger, given)
    change_against(ledger.path, "release_is_final", f"UPDATE release SET plan = '{plan}'")
    with pytest.raises(InputError, match="is damaged"):
        ledger.charge(table(), given)


def test_columns_and_answers_do_not_mix(ledger: Ledger) -> None:
    query = plan_for(pf.CountQuery(CHAIN, "1", 5))
    prior = pf.Prior.from_table(table(), secret="s", public="t")
    column = pf.calibrate(pf.Scenario(prior), 1)
    spend(ledger, query)
    with pytest.raises(InputError, match="has answers to queries about dependent records"):
        ledger.charge(table(), column)
    with pytest.raises(InputError, match="has answers to queries"):
        ledger.price(table(), column)
    other = Ledger.create(ledger.path.with_name("other.db"))
    other.dataset("d", table(), secret="s", budget=9)
    with other.charge(table(), column):
        pass
    with pytest.raises(InputError, match="has releases of columns"):
        other.charge(table(), query)
