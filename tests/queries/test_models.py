# SPDX-License-Identifier: Apache-2.0
"""Trees and households: laws by brute force; and the referee itself."""

import math
import random
from collections.abc import Iterable
from fractions import Fraction as Q
from itertools import product
from typing import Any

import pytest

from pufferfish import CountQuery, calibrate
from pufferfish.errors import InputError
from pufferfish.queries.household import Household
from pufferfish.queries.model import Law
from pufferfish.queries.tree import Tree
from queries import brute

BINARY = Tree([0, 1], [None, 0, 0, 1, 1, 2, 2], [0.7, 0.3], [[0.8, 0.2], [0.3, 0.7]])
FLU = Household([0, 1], counts=[0.1, 0.15, 0.5, 0.15, 0.1])
AB, SAME = ["a", "b"], [[1, 0], [0, 1]]
QUARTER = [Q(1, 4)] * 4
REGIMES, HISTOGRAM = (0, 1, 0, 1), [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def laws_of(laws: Iterable[Law]) -> Any:
    """The laws of a model as the referee writes them; an impossible state has none."""
    every = [{s: p.coeffs() for s, p in enumerate(law) if p is not None} for law in laws]
    assert all(any(p) for law in every for p in law.values())
    exact = ({s: dict(enumerate(Q(int(c)) for c in p)) for s, p in law.items()} for law in every)
    return list(map(brute.normalised, exact))


def again(model: Any) -> Any:
    made = type(model)(**model.to_json())
    assert (made, hash(made), made.to_json()) == (model, hash(model), model.to_json())
    return made


@pytest.mark.parametrize("seed", range(40))
def test_laws_of_trees_are_those_of_all_sequences(seed: int) -> None:
    rng = random.Random(seed)
    k, n, one = rng.randint(2, 3), rng.randint(1, 6), rng.random() < 0.3
    place = rng.sample(range(n), n)  # parents may come later than their children
    above = {place[v]: place[rng.randrange(v)] for v in range(1, n)}
    parents = [above.get(v) for v in range(n)]
    chains = [brute.random_chain(rng, k, rng.choice(brute.KINDS), "impossible") for _ in parents]
    matrices = [chains[0 if one else v][0] for v in range(n)]
    each = [None if v == place[0] else matrix for v, matrix in enumerate(matrices)]
    tree = again(Tree(range(k), parents, chains[0][1], matrices[0] if one else each))
    weights = [rng.randint(0, 3) for _ in range(k)]
    expected = brute.conditionals(brute.tree_law(parents, chains[0][1], matrices), weights)
    assert laws_of(tree.laws(weights, ())) == expected
    assert tree.sizes(()) == (n,)


@pytest.mark.parametrize("seed", range(20))
def test_laws_of_households_are_those_of_all_sequences(seed: int) -> None:
    rng = random.Random(seed)
    k, n = rng.randint(2, 3), rng.randint(1, 4)
    drawn = {x: rng.choice((0, 0, 1, 5)) + (not any(x)) for x in product(range(k), repeat=n)}
    joint = {x: Q(mass, sum(drawn.values())) for x, mass in drawn.items()}
    household, weights = again(Household(range(k), joint)), [rng.randint(0, 3) for _ in range(k)]
    law = {x: p for x, p in joint.items() if p}
    assert laws_of(household.laws(weights, ())) == brute.conditionals(law, weights)
    assert Household(range(k), list(law.items())) == household
    assert household.sizes(()) == (n,)


@pytest.mark.parametrize("counts", [[1, 0], [0, 0, 1], [0.1, 0.15, 0.5, 0.15, 0.1]])
def test_a_number_of_members_is_an_exchangeable_law(counts: list[float]) -> None:
    n = len(counts) - 1
    law = [Q(str(p)) / math.comb(n, j) for j, p in enumerate(counts)]
    joint = {x: law[x.count("b")] for x in product("ab", repeat=n)}
    household = again(Household(AB, counts=counts))
    assert household.sizes(()) == (n,)
    for weights in ((0, 1), (2, 0), (0, 0)):
        same = laws_of(Household(AB, joint).laws(weights, ()))
        assert laws_of(household.laws(weights, ())) == same


@pytest.mark.parametrize(
    "model, scales",
    [
        (BINARY, [15.0710921767128, 3.02179191030325, 0.502139678501739]),
        (FLU, [5.51453612922379, 1.15452655908564, 0.243596238972671]),
        ([FLU, BINARY], [15.0710921767128, 3.02179191030325]),
    ],
)
def test_reference_scales(model: Any, scales: list[float]) -> None:
    groups = model if isinstance(model, list) else [model]  # independent of one another
    laws = [law for each in groups for law in laws_of(each.laws((0, 1), ()))]
    for epsilon, scale in zip((0.2, 1, 5), scales, strict=False):
        assert brute.least_scale(laws, epsilon) == pytest.approx(scale, rel=1e-11)
        for scenario in (CountQuery(model, 1), CountQuery(model, 1).scenario()):
            assert calibrate(scenario, epsilon, "exact").scale == pytest.approx(scale, rel=1e-9)


def test_a_renormalised_law_is_noted() -> None:
    third = ["0.3333333", "0.6666666"]
    joint = Household(AB, [[["a"], third[0]], [["b"], third[1]]])
    for model in (Tree(AB, [None, 0], third, SAME), Household(AB, counts=third), joint):
        assert "renormalised" in model.notes[0]
        assert again(model).notes == ()


@pytest.mark.parametrize(
    "message, kind, options",
    [
        *[("one root", Tree, {"parents": p}) for p in ([0], [None, None], [None, 2, 1], [None, 2])],
        *[("one root", Tree, {"parents": p}) for p in ([None, -1], [None, False], [None, "0"], 3)],
        *[("needs a row", Tree, {"transition": m}) for m in (SAME[:1], [None, []])],
        *[("for the root", Tree, {"transition": m}) for m in (None, [SAME, None], [None] * 3)],
        ("must be a list of probabilities", Tree, {"transition": "ab"}),
        ("the law of the root sum to 2", Tree, {"root": [1, 1]}),
        ("two or more different names", Tree, {"states": "a"}),
        ("either joint or counts", Household, {}),
        ("either joint or counts", Household, {"counts": [1, 0], "joint": {("a",): 1}}),
        ("two states", Household, {"counts": [1, 0], "states": list("abc")}),
        *[("two states", Household, {"counts": wrong}) for wrong in ([1], "10", {0: 1, 1: 0})],
        ("negative", Household, {"counts": [1.5, -0.5]}),
        *[("must map", Household, {"joint": j}) for j in ({}, {(): 1}, [["a"], 1], [1, 2], 3)],
        ("unknown state 'x'", Household, {"joint": {"xy": 1}}),
        ("unknown state 'c'", Household, {"joint": {("a", "c"): 1}}),
        *[("nothing twice", Household, {"joint": [[["a"], 0.5], [x, 0.5]]}) for x in (["a"], AB)],
        ("sum to 0.5", Household, {"joint": {("a", "b"): 0.5}}),
    ],
)  # fmt: skip
def test_refused(message: str, kind: Any, options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"states": AB}
    given |= {"parents": [None, 0], "root": [1, 0], "transition": SAME} if kind is Tree else {}
    with pytest.raises(InputError, match=message) as caught:
        kind(**given | options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", brute.KINDS)
@pytest.mark.parametrize("start", brute.STARTS)
def test_referee_without_enumeration(kind: str, start: str) -> None:
    rng = random.Random(kind + start)
    for k, T, weights in ((2, 5, [3, 0]), (3, 4, [0, 1, 3]), (3, 3, HISTOGRAM), (2, 1, [0, 1])):
        transition, initial = brute.random_chain(rng, k, kind, start)
        law = brute.chain_law(transition, initial, T)
        assert sum(law.values()) == 1
        found = brute.chain_conditionals(transition, initial, weights, T)
        assert found == brute.conditionals(law, weights)
        if kind == "tp2" and weights is not HISTOGRAM:
            assert brute.is_mtp2(law)
            if weights == sorted(weights):  # then the ends decide
                assert brute.loss(found, 2) == pytest.approx(brute.ends(found, 0.5), rel=1e-14)


def test_referee_where_the_ends_do_not_decide() -> None:
    for transition, loss in ((brute.REGIME, 0.105428033), (brute.POSITIVE, 0.102065004)):
        found = brute.chain_conditionals(transition, QUARTER, REGIMES, 8)
        assert brute.ends(found, Q(1, 10)) == pytest.approx(0.1, rel=1e-14)
        assert brute.loss(found, 10) == pytest.approx(loss, rel=1e-8)
    for transition in (brute.ADJACENT, brute.NEARLY_TP2, brute.REGIME):
        k = len(transition)
        assert not brute.is_mtp2(brute.chain_law(transition, [Q(1, k)] * k, 4))


def test_referee_of_other_starts() -> None:
    for (transition, initial, T), scale, records, loss in (
        (brute.ABOVE_LIMIT, 9.401058301453537, slice(7), 0.2 * 1.4576221653),
        (brute.REVERSED, 20, slice(5, 6), 0.16633547777),
        (brute.WINDOW, 0.5, slice(4, 5), 11.7107867112),
        (brute.ANY_START, 0.7939273486983935, slice(30), 5.5024882964),
    ):
        found = brute.chain_conditionals(transition, initial, (0, 1), T)
        assert brute.loss(found[records], scale) == pytest.approx(loss, rel=1e-9)
        assert brute.is_mtp2(brute.chain_law(transition, initial, 4))
