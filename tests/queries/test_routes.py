# SPDX-License-Identifier: Apache-2.0
"""Scales and proofs of every route against losses by enumeration, for random laws."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.queries.case import Case
from pufferfish.queries.ends import is_tp2
from pufferfish.queries.plan import certify_query
from pufferfish.queries.query import Query
from pufferfish.queries.routes import lower_bound
from queries import brute

#: Each law, in the fast suite and in the slow run.
SEEDS = [range(40), pytest.param(range(40, 1040), marks=pytest.mark.slow)]
EPSILONS = (Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(3))
#: How far a scale may lie above what is least, relative to itself.
NEAR = 1e-9
#: From the least noise to the most; each pair of neighbours is proved in theory, section 8.
ORDERS = (
    ("ends", "exact", "contraction"),
    ("exact", "one-sided", "relaxed", "wasserstein", "group"),
    ("exact", "window", "mqm-exact", "group"),
)


def random_case(seed: int) -> tuple[list[Any], Query, Fraction]:
    """Conditional laws of a random chain, the same as a query, and an epsilon."""
    rng = random.Random(seed)
    k = rng.choice((2, 2, 3, 4))
    kind = rng.choice(brute.KINDS)
    transition, initial = brute.random_chain(rng, k, kind, rng.choice(brute.STARTS))
    weights = rng.choices(range(3), k=k)
    weights[rng.randrange(k)] = 0
    if not any(weights):
        weights[weights.index(0)] = 1
        weights[(weights.index(1) + 1) % k] = 0
    length = rng.randint(1, {2: 10, 3: 7, 4: 5}[k])
    chain = pf.MarkovChain(range(k), transition, initial)
    query = pf.SumQuery(chain, dict(enumerate(weights)), length)
    laws = brute.chain_conditionals(transition, initial, weights, length)
    return laws, query, rng.choice(EPSILONS)


def scale_of(query: Query, epsilon: Fraction, mechanism: str) -> float:
    """The scale of a proved plan; inf where the mechanism has none."""
    if mechanism == "ends":
        return lower_bound(Case(query), epsilon)
    try:
        plan = pf.calibrate(query, epsilon, mechanism)
    except InputError:  # there is no finite scale
        return math.inf
    assert plan.certificate.holds
    assert plan.loss <= plan.epsilon
    return plan.scale


def check(seed: int) -> None:
    laws, query, epsilon = random_case(seed)
    least = brute.least_scale(laws, epsilon)
    [chain] = query.models
    assert isinstance(chain, pf.MarkovChain)
    # Of chains that are nearly deterministic the contraction takes minutes.
    small = any(0 < p < 1e-4 for row in chain.transition for p in row)
    names = dict.fromkeys(itertools.chain(*ORDERS[small:]))
    scales = {m: scale_of(query, epsilon, m) for m in names}
    if least:
        assert least * (1 - 1e-11) <= scales["exact"] <= least * (1 + NEAR), seed
        below = scales["exact"] * 0.95
        assert not certify_query(query, below, epsilon).holds
    for order in ORDERS[small:]:
        for low, high in itertools.pairwise(order):
            # An exact scale of next to nothing may stand for none at all.
            assert scales[low] <= max(scales[high] * (1 + NEAR), query.range / 499), (seed, low)


@pytest.mark.parametrize("seeds", SEEDS)
def test_scales_of_random_laws(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.parametrize("seeds", SEEDS)
def test_proofs_enclose_the_loss(seeds: range) -> None:
    ends = 0
    for seed in seeds:
        laws, query, epsilon = random_case(seed)
        scale = random.Random(-seed).uniform(0.2, 8)
        loss = brute.loss(laws, scale)
        for goal in (
            epsilon,
            Fraction(loss + 1e-6),
            max(Fraction(loss - 1e-6), Fraction(1, 10**9)),
        ):
            found = certify_query(query, scale, goal)
            assert found.loss_at_least <= loss * (1 + 1e-9) + 1e-12, seed
            assert found.loss >= loss * (1 - 1e-9) - 1e-12, seed
            assert found.holds is (loss <= goal) or abs(loss - goal) < 1e-9, seed
        ends += found.method == "ends+ball"
    assert ends


def test_tp2_is_that_the_law_is_mtp2() -> None:
    """Of a law without impossible states; with them the order may still decide nothing."""
    rng, found = random.Random(5), set()
    for _ in range(60):
        k = rng.choice((2, 3))
        kind = rng.choice(("positive", "tp2", "negative", "zeros"))
        transition, initial = brute.random_chain(rng, k, kind, "random")
        rows = pf.MarkovChain(range(k), transition, initial).transition
        mtp2 = brute.is_mtp2(brute.chain_law(transition, initial, 3))
        found.add(mtp2)
        # Every state is possible at the first record, so minors that are negative are met.
        assert is_tp2(rows, list(range(k))) == mtp2
        if mtp2:
            assert is_tp2(rows, [0] * k)
    assert found == {False, True}


@pytest.mark.parametrize("seed", range(3))
def test_trees_and_households_by_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    rows, root = brute.random_chain(rng, 2, rng.choice(brute.KINDS), "impossible")
    parents = [None, 0, 0, 1, 1, 3]
    law = brute.tree_law(parents, root, [rows] * len(parents))
    tree = pf.CountQuery(pf.Tree(range(2), parents, root, rows), 1)
    joint = [[list(map(str, members)), p] for members, p in law.items()]
    home = pf.CountQuery(pf.Household(range(2), joint=joint), 1)
    laws = brute.conditionals(law, [0, 1])
    for epsilon in EPSILONS:
        least = brute.least_scale(laws, epsilon)
        for query in (tree, home):
            plan = pf.calibrate(query, epsilon)
            assert plan.mechanism == "exact"
            assert not least or least * (1 - 1e-11) <= plan.scale <= least * (1 + NEAR)
            both = pf.calibrate(pf.CountQuery([*query.models, *home.models], 1), epsilon)
            assert both.scale == pytest.approx(plan.scale, rel=NEAR)


@pytest.mark.parametrize("seed", range(4))
def test_histograms_by_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    k = 2 + seed % 2
    rows, initial = brute.random_chain(rng, k, "positive", rng.choice(brute.STARTS))
    units = [tuple(int(s == c) for c in range(k)) for s in range(k)]
    length = 4 - seed % 2
    laws = brute.chain_conditionals(rows, initial, units, length)
    query = pf.HistogramQuery(pf.MarkovChain(range(k), rows, initial), length)
    for epsilon in EPSILONS[1:]:
        least = brute.least_scale(laws, epsilon)
        plan = pf.calibrate(query, epsilon, "exact")
        assert least * (1 - 1e-11) <= plan.scale <= least * (1 + NEAR)
        assert scale_of(query, epsilon, "ends") <= plan.scale * (1 + NEAR)
        assert plan.scale <= scale_of(query, epsilon, "contraction") * (1 + NEAR)
        assert not certify_query(query, plan.scale * 0.95, plan.epsilon_exact).holds


def test_several_lengths_and_numbers_that_are_no_integers() -> None:
    rng = random.Random(11)
    for _ in range(6):
        rows, initial = brute.random_chain(rng, 2, "positive", "random")
        chain = pf.MarkovChain(["no", "yes"], rows, initial)
        laws = [
            law for n in (1, 3, 6) for law in brute.chain_conditionals(rows, initial, [11, 0], n)
        ]
        least = brute.least_scale(laws, 1)
        query = pf.SumQuery(chain, {"no": "5/2", "yes": "-1/4"}, [6, 1, 3])
        plan = pf.calibrate(query, 1, "exact")
        assert plan.query.step == Fraction(1, 4)
        assert plan.scale == pytest.approx(least / 4, rel=NEAR)
        assert certify_query(query, plan.scale, plan.epsilon_exact).holds


def test_the_worst_model_and_the_longest_sequence_decide() -> None:
    stays = (Fraction(3, 4), Fraction(9, 10))
    chains = [pf.MarkovChain(range(2), [[p, 1 - p], [1 - p, p]]) for p in stays]
    for models in (chains, chains[::-1]):
        query = pf.CountQuery(models, 1, [2, 8])
        plan = pf.calibrate(query, 1)
        assert plan.scale == pf.calibrate(pf.CountQuery(chains[1], 1, 8), 1).scale
        assert not certify_query(query, plan.scale * 0.999, plan.epsilon_exact).holds
    people = pf.CountQuery(chains, 1, [2, 8], protect="sequence")
    assert pf.calibrate(people, 1).scale == 8
    assert not certify_query(people, 7.99, Fraction(1)).holds


def test_a_lower_bound_is_that_of_a_member() -> None:
    """A box of negative correlation is bounded by independent records, which are none of it."""
    rows = [[0, Fraction(4, 5)], [Fraction(4, 5), 0]]
    plan = pf.calibrate(pf.CountQuery(pf.ChainBox(range(2), rows, [[1, 1], [1, 1]]), 1, 10), 1)
    assert plan.scale == pytest.approx(1)
    assert (plan.least_scale, plan.certificate.loss_at_least) == (0, 0)
    assert not certify_query(plan.query, 0.99, Fraction(1)).decided
