# SPDX-License-Identifier: Apache-2.0
"""Channels that hide every value from every other: for any number of values, and if cheaper."""

import warnings
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from pufferfish.calibration import hiding
from pufferfish.calibration.hiding import Hiding
from pufferfish.errors import CheckFailed, InputError, PriorWarning
from pufferfish.halving import largest_own
from pufferfish.joint import DoesNotFit
from pufferfish.ledger.calibrating import calibrate_beside
from pufferfish.ledger.fitting import fitting
from pufferfish.ledger.ledger import Ledger
from pufferfish.mechanisms import Channel
from pufferfish.unitloss import units_loss
from slow.digits import M, real

CODES = [f"code {k:02}" for k in range(40)]


def frame(sequences: dict[str, list[tuple[str, ...]]]) -> pd.DataFrame:
    """Persons with a secret each, and the values of their rows in order."""
    persons = [(s, values) for s, own in sequences.items() for values in own]
    rows = [(at, s, x) for at, (s, values) in enumerate(persons) for x in values]
    return pd.DataFrame(rows, columns=["id", "s", "x"])


def counted(table: pd.DataFrame, public: Any = "x", unit: str | None = "id") -> pf.Prior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return pf.Prior.from_table(table, secret="s", public=public, unit=unit)


#: Each row alone tells nothing, two rows tell everything.
TELLING: dict[str, list[tuple[str, ...]]] = {
    "a": [(v, v) for v in CODES],
    "b": [(v, w) for v, w in zip(CODES, CODES[1:] + CODES[:1], strict=True)],
}


def loss_of_two_rows(sequences: dict[str, list[tuple[str, ...]]], made: Channel) -> Any:
    """The loss of both rows of a person by its definition, in whole numbers but for the end."""
    assert len(set(made.denominators)) == 1
    place = {name: k for k, name in enumerate(CODES)}
    rows, worst = made.rows.tolist(), Fraction(1)
    for first, second in product(range(made.outputs.size), repeat=2):
        a, b = (
            Fraction(
                sum(rows[place[v]][first] * rows[place[w]][second] for v, w in sequences[s]),
                len(sequences[s]),
            )
            for s in "ab"
        )
        if a or b:
            worst = max(worst, a / b, b / a)
    return M.log(real(worst))


def largest_ratio(made: Channel) -> Any:
    """The logarithm of the largest ratio of the chances of one output by two values."""
    worst = Fraction(1)
    for y in range(made.outputs.size):
        chances = [made.probability(x, y) for x in range(made.inputs.size)]
        if any(chances):
            worst = max(worst, max(chances) / min(chances))
    return M.log(real(worst))


def test_two_rows_of_forty_levels_are_calibrated() -> None:
    prior = counted(frame(TELLING))
    with pytest.raises(CheckFailed):
        pf.calibrate(counted(frame(TELLING), unit=None), 3, "channel").verify(prior)
    plan = pf.calibrate(prior, 3)
    assert plan.channel is not None
    assert plan.verify(prior).holds
    loss = loss_of_two_rows(TELLING, plan.channel)
    assert loss <= 3
    assert loss == pytest.approx(plan.loss, abs=1e-12)
    assert (plan.channel.rows > 0).all()
    # What is out of reach for any prior would leave 3 / 2; of this one it is known that more fits.
    assert largest_ratio(plan.channel) > 1.5
    assert "hides every value from every other" in plan.notes[-1]
    assert "no channel made to hide the secret alone" in plan.notes[-1]


@pytest.mark.parametrize("own", ["1e-9", "1/3", "2", "19", "40"])
def test_randomised_response_uses_up_its_epsilon_and_no_more(own: str) -> None:
    scenario = pf.Scenario(counted(frame(TELLING), unit=None))
    made = Hiding(scenario, {"min_keep": 0}).channel(Fraction(own))
    every = Hiding(scenario, {"min_keep": "1e-3"}).channel(Fraction(own))
    for solution in (made, every):
        loss = largest_ratio(solution.channel)
        assert loss <= real(Fraction(own))
        if own != "40":  # beyond 20 it is that of 20
            assert loss >= real(Fraction(own)) * (1 - M.mpf("1e-15"))
        kept = np.exp(min(float(Fraction(own)), 20.0))
        assert float(solution.cost) == pytest.approx(1 - kept / (kept + 39), rel=1e-7)
    assert made.lp_bound <= float(made.cost)
    assert made.notes == ()
    assert "perhaps not the cheapest" in every.notes[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("own", ["0.2", "1", "4"])
def test_the_closed_form_costs_as_little_as_the_program(
    seed: int, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program knows nothing of the theorem; other costs may be dearer, never cheaper."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    counts = rng.integers(1, 60, (2, size)) ** rng.integers(1, 3)
    prior = pf.Prior.from_counts({"a": counts[0], "b": counts[1]}, support=list(range(size)))
    for cost in ("hamming", "squared", "absolute", rng.integers(0, 9, (size, size)).tolist()):
        family = Hiding(pf.Scenario(prior), {"cost": cost})
        program = family.channel(Fraction(own))
        with monkeypatch.context() as patch:
            patch.setattr(hiding, "MOST_VALUES", 1)
            closed = family.channel(Fraction(own))
        assert largest_ratio(closed.channel) <= real(Fraction(own))
        assert closed.lp_bound <= float(program.cost) * (1 + 1e-12) + 1e-12
        assert float(closed.cost) >= float(program.cost) * (1 - 1e-9)
        if cost == "hamming":
            assert float(closed.cost) == pytest.approx(float(program.cost), rel=1e-8)
            assert closed.notes == ()


def test_what_cannot_be_met_is_refused_with_what_was_tried() -> None:
    prior = counted(frame(TELLING))
    with pytest.raises(DoesNotFit) as refused:
        pf.calibrate(prior, 1, min_keep="0.5")
    said = str(refused.value)
    assert "under these conditions (min_keep 0.5)" in said
    assert "the loss of 2 rows is infinite" in said
    assert "within epsilon 0.5, but randomised response among 40 values keeps each of them" in said
    assert "0.04056 of the time" in said
    assert "weaker conditions" in said
    assert "noise" not in said
    with pytest.raises(DoesNotFit, match="cannot be had with invariant"):
        pf.calibrate(prior, 1, invariant=True)
    plan = pf.calibrate(prior, 1, min_keep="0.04")
    assert plan.distortion is not None
    assert plan.distortion.conditions == ("min_keep 0.04",)
    assert plan.verify(prior).holds
    assert plan.channel is not None
    assert all(plan.channel.probability(x, x) >= Fraction("0.04") for x in range(40))


def test_where_nothing_is_told_the_note_says_so() -> None:
    rare = {s: [*own, *[(CODES[0], CODES[0])] * 200] for s, own in TELLING.items()}
    plan = pf.calibrate(counted(frame(rare)), "0.1")
    assert plan.loss == 0
    assert "publishes every value in the same way" in plan.notes[-1]


def test_noise_is_named_where_there_is_an_order() -> None:
    numbers = {
        s: [tuple(str(CODES.index(v)) for v in w) for w in own] for s, own in TELLING.items()
    }
    table = frame(numbers)
    table["x"] = table["x"].astype(int)
    with pytest.raises(DoesNotFit, match=r"noise \(the mechanism exact\)"):
        pf.calibrate(counted(table), 1, "channel", min_keep="0.5")


# ---- the lesser cost --------------------------------------------------------------------------

#: x and y together: beside x, what hides every value of y is cheaper than what hides the secret.
TOGETHER = {"a": [[86, 414], [449, 51]], "b": [[27, 423], [52, 498]]}


def table_of_two() -> pd.DataFrame:
    rows = [
        (s, f"x{x}", f"y{y}")
        for s, counts in TOGETHER.items()
        for x, line in enumerate(counts)
        for y, number in enumerate(line)
        for _ in range(number)
    ]
    return pd.DataFrame(rows, columns=["s", "x", "y"])


def without_hiding(patch: pytest.MonkeyPatch) -> None:
    def none(self: Hiding, own: Fraction) -> Any:
        raise InputError("not tried")

    patch.setattr(Hiding, "channel", none)


def test_the_lesser_cost_is_taken_beside_what_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of_two()
    x = pf.calibrate(counted(table, "x", None), "0.3")
    both = counted(table, ["x", "y"], None)
    plan = pf.calibrate(both, "1.5", column="y", already=iter([x]))
    assert plan.cost == pytest.approx(0.182425, abs=1e-6)
    assert pf.joint_loss(both, [x, ("y", plan)]).at_most("1.5")
    assert "cost more (0.2506 instead of 0.1824)" in plan.notes[-1]
    with monkeypatch.context() as patch:
        without_hiding(patch)
        dear = pf.calibrate(both, "1.5", column="y", already=[x])
    assert dear.cost == pytest.approx(0.2506, abs=1e-4)
    # Conditions that only the secret's channels meet are no reason to refuse.
    kept = pf.calibrate(both, "1.5", column="y", already=[x], invariant=True)
    assert kept.distortion is not None
    assert kept.distortion.conditions == ("invariant",)


def test_the_lesser_cost_is_taken_beside_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of_two()
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 2)
    with ledger.charge(table, pf.calibrate(counted(table, "x", None), "0.3")):
        pass
    prior = counted(table, "y", None)
    first = pf.calibrate(prior, "1.5")
    found = calibrate_beside(ledger, table, pf.Scenario(prior), "1.5")
    # The search by prices alone, which goes on where the joint counts do not suffice.
    offer = ledger.offer(table, first, False)
    searched = fitting(offer, pf.Scenario(prior), first, Fraction("1.5"), {})
    for plan in (found, searched):
        assert plan.cost == pytest.approx(0.182425, abs=1e-6)
        assert "hides every value" in plan.notes[-1]
        assert "cost more" in plan.notes[-1]
        assert ledger.price(table, plan).loss <= 1.5
    with monkeypatch.context() as patch:
        without_hiding(patch)
        dear = fitting(offer, pf.Scenario(prior), first, Fraction("1.5"), {})
    assert dear.cost is not None
    assert dear.cost > 0.25
    assert "smaller epsilon of its own" in dear.notes[-1]


@pytest.mark.parametrize("seed", range(8))
def test_the_lesser_cost_is_taken_for_all_rows_of_a_person(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    values = list(product(CODES[:2], repeat=2))
    sequences = {
        s: [v for v in values for _ in range(int(rng.integers(1, 40) ** 2 // 8) + 1)] for s in "ab"
    }
    scenario = pf.Scenario(counted(frame(sequences)))
    epsilon = Fraction(1)
    family = Hiding(scenario, {})

    def fits(own: Fraction) -> Any:
        solution = family.channel(own)
        return solution if units_loss(scenario, solution.channel).at_most(epsilon) else None

    hidden = largest_own(epsilon, fits, 8, epsilon / 2 * (1 - Fraction(1, 2**40)))
    assert hidden is not None
    plan = pf.calibrate(scenario, epsilon)
    with monkeypatch.context() as patch:
        without_hiding(patch)
        try:
            alone = pf.calibrate(scenario, epsilon).cost or 0.0
        except DoesNotFit:
            alone = 1.0
    assert plan.cost == pytest.approx(min(alone, float(hidden[0].cost)), rel=1e-12)


def test_forty_levels_fit_beside_a_ledger_where_worst_cases_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    persons = np.arange(400) // 2
    s = np.where(persons % 2, "yes", "no")
    code = np.array(CODES)[(rng.integers(0, 40, 400) // 2 * 2 + (s == "yes")) % 40]
    table = pd.DataFrame({"id": persons, "s": s, "w": rng.integers(0, 4, 400), "x": code})
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.open_account("s", 8)
    # In another order the rows of persons are bounded by worst cases.
    with ledger.charge(table[::-1], pf.calibrate(counted(table, "w"), "0.2")):
        pass
    scenario = pf.Scenario(counted(table, "x", None))
    plan = calibrate_beside(ledger, table, scenario)
    assert plan.channel is not None
    assert 7.5 < ledger.price(table, plan).loss <= 8
    plan.verify(scenario)
    assert "hides every value" in plan.notes[-1]
    with pytest.raises(DoesNotFit, match=r"found nothing for 'x' .*cannot be had with invariant"):
        calibrate_beside(ledger, table, scenario, invariant=True)


# ---- halving ----------------------------------------------------------------------------------


def test_halving_finds_the_largest_that_fits() -> None:
    def attempt(own: Fraction) -> Fraction | None:
        tried.append(own)
        if own < Fraction(3, 10):
            raise InputError("too small for the conditions")
        return own if own <= Fraction(1, 3) else None

    tried: list[Fraction] = []
    assert largest_own(Fraction(5, 16), attempt, 9) == (Fraction(5, 16), Fraction(5, 16))
    assert tried == [Fraction(5, 16)]
    tried.clear()
    found = largest_own(Fraction(1), attempt, 9)
    assert found is not None
    assert Fraction(1, 4) in tried  # from where it has to go up again
    assert Fraction(1, 3) - Fraction(1, 128) < found[1] <= Fraction(1, 3)
    tried.clear()
    assert largest_own(Fraction(1), attempt, 2, Fraction(3, 10)) == (Fraction(3, 10),) * 2
    assert tried == [1, Fraction(3, 10)]
    assert largest_own(Fraction(1), lambda own: None, 5) is None
    with pytest.raises(InputError, match="too small"):
        largest_own(Fraction(1, 10), attempt, 5)
