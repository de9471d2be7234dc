# SPDX-License-Identifier: Apache-2.0
"""Plans of queries: saved, loaded, edited and verified."""

import copy
import json
import math
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pufferfish as pf
from pufferfish.errors import CheckFailed, InputError
from pufferfish.plans.plan import Plan
from pufferfish.queries.plan import QueryPlan, load_plan

CHAIN = pf.MarkovChain(["ill", "well"], [["3/4", "1/4"], ["1/4", "3/4"]])
QUERY = pf.CountQuery(CHAIN, "ill", [4, 8])
RECORDS = [["ill"] * 8, ["well", "ill"] * 4, ["ill", "well", "well", "ill"]]


@pytest.fixture(scope="module")
def plan() -> QueryPlan:
    return pf.calibrate(QUERY, 1)


@pytest.fixture
def data(plan: QueryPlan, tmp_path: Path) -> Any:
    plan.save(tmp_path / "plan.json")
    return json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))


def edited(data: Any, *path: Any, to: Any) -> Any:
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return made


def load(data: Any) -> QueryPlan:
    return QueryPlan.of_values(json.loads(json.dumps(data)), "plan.json")


MODELS = [
    QUERY,
    pf.CountQuery(CHAIN, "ill", "any"),
    pf.SumQuery(pf.MarkovChain([1, 2], CHAIN.transition, ["1/3", "2/3"]), {1: ".5", 2: -1}, 3),
    pf.MeanQuery([CHAIN, pf.MarkovChain(["ill", "well"], [[".6", ".4"], [".4", ".6"]])],
                 {"ill": 3, "well": 0}, 5),
    pf.HistogramQuery(CHAIN, 4, "sequence"),
    pf.CountQuery(pf.ChainBox(["a", "b"], [[0, ".1"], [".2", 0]], [[1, 1]] * 2), "a", "any"),
    pf.CountQuery(pf.Tree(["a", "b"], [None, 0, 0], [".2", ".8"], CHAIN.transition), "a"),
    pf.CountQuery(pf.Household(["a", "b"], counts=[".1", ".2", ".7"]), "b"),
    pf.CountQuery(pf.Household(["a", "b"], joint={("a", "b"): ".3", ("b", "b"): ".7"}), "b"),
]  # fmt: skip


@pytest.mark.parametrize("query", MODELS, ids=lambda q: type(q.models[0]).__name__ + q.kind)
def test_what_was_saved_is_loaded_and_proved_again(query: Any, tmp_path: Path) -> None:
    plan, path = pf.calibrate(query, "1/3"), tmp_path / "p.json"
    plan.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="exists"):
        plan.save(path)
    read = load_plan(path)
    assert isinstance(read, QueryPlan)
    assert (read.scale, read.epsilon_exact) == (plan.scale, Fraction(1, 3))
    assert (read.query.to_json(), read.query.models) == (query.to_json(), query.models)
    assert read.verify().loss == read.verify(query).loss == plan.loss
    assert "says its file" in repr(read)


def test_edited_plans_are_judged_on_their_merits(data: Any) -> None:
    scale = data["scale"]
    for change in (
        ("scale", scale * 0.9999), ("scale", 0), ("epsilon", "0.999"),
        ("query", "lengths", [4, 9]), ("query", "lengths", "any"),
        ("query", "protect", "sequence"),
        ("models", 0, "transition", [["0.8", "0.2"], ["0.2", "0.8"]]),
        ("models", 0, "initial", "any"),
    ):  # fmt: skip
        with pytest.raises(CheckFailed, match=r"loss at scale|scale 0"):
            load(edited(data, *change[:-1], to=change[-1])).verify()
    for change in (
        ("scale", scale * 1.001), ("epsilon", "1.001"), ("query", "lengths", [3]), ("loss", 0.1),
        ("certificate", None),
        ("models", 0, "initial", ["1/2", "1/2"]), ("notes", ["n"]),
        ("models", 0, "transition", [["0.7", "0.3"], ["0.3", "0.7"]]),
    ):  # fmt: skip
        assert load(edited(data, *change[:-1], to=change[-1])).verify().holds


def test_a_count_counts_and_a_histogram_has_the_lattice_of_counts(data: Any) -> None:
    for change in (("numbers", 0, "2"), ("numbers", 0, "1/1000"), ("kind", "histogram")):
        with pytest.raises(InputError, match="one number for each state"):
            load(edited(data, "query", *change[:-1], to=change[-1]))


def test_nonsense_is_refused_in_one_line(data: Any) -> None:
    def places(value: Any, *before: Any) -> Any:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield (*before, key)
            if isinstance(inner, dict | list):
                yield from places(inner, *before, key)

    claims, said = ("notice", "loss", "certificate"), []
    for place in places({k: v for k, v in data.items() if k not in claims}):
        for wrong in (math.nan, math.inf, True, "x", "", [], {"a": 1}, [[1]], -1, None, 1e308):
            try:
                found = QueryPlan.of_values(edited(data, *place, to=wrong), "plan.json")
            except InputError as error:
                said.append(str(error))
                continue
            assert place[0] != "scale" or wrong == 1e308
            for use in (found.verify, lambda own=found: own.release(RECORDS)):
                with suppress(InputError, CheckFailed):  # but it does not crash
                    use()
    assert len(said) > 200
    assert all(line.startswith("plan.json is no usable plan of a query: ") for line in said)
    assert not any("\n" in line for line in said)
    for changed in (
        edited(data, "more", to=1), edited(data, "query", "more", to=1),
        edited(data, "models", 0, "more", to=1), edited(data, "source", to={"state": "s", "x": 1}),
        edited(data, "fit", to={"confidense": "0.9"}), edited(data, "format", to=1),
        edited(data, "models", 0, "kind", to="chian"), {"query": {}}, [], 1,
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"^plan.json is no usable plan of a query: "):
            load(changed)


def test_plans_of_queries_and_of_columns_are_not_mixed_up(plan: QueryPlan, tmp_path: Path) -> None:
    plan.save(tmp_path / "q.json")
    masses = {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".2", "1": ".8"}}
    pf.calibrate(pf.Prior.from_mapping(masses), 1).save(tmp_path / "c.json")
    for kind, name in ((Plan, "q.json"), (QueryPlan, "c.json")):
        with pytest.raises(InputError, match=f"{name} is no usable plan") as caught:
            kind.load(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_another_query_is_judged_only_when_asked(plan: QueryPlan) -> None:
    milder = pf.MarkovChain(CHAIN.states, [["2/3", "1/3"], ["1/3", "2/3"]])
    for other in (pf.CountQuery(milder, "ill", [4, 8]), pf.CountQuery(CHAIN, "well", [4, 8]),
                  pf.CountQuery(CHAIN, "ill", 4)):  # fmt: skip
        with pytest.raises(CheckFailed, match="--other-prior"):
            plan.verify(other)
        assert plan.verify(other, other_prior=True).holds
    worse = pf.CountQuery(CHAIN, "ill", 9)
    with pytest.raises(CheckFailed, match="above epsilon 1"):
        plan.verify(worse, other_prior=True)
    finer = pf.SumQuery(CHAIN, {"ill": "1/2", "well": 0}, 4)
    with pytest.raises(CheckFailed, match="another lattice"):
        plan.verify(finer, other_prior=True)
    with pytest.raises(InputError, match="names no columns"):
        plan.query_of_table(pd.DataFrame({"s": ["ill"]}))
