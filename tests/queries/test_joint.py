# SPDX-License-Identifier: Apache-2.0
"""Several answers about one sequence: the joint loss against all sequences (theory, 8.12)."""

import random
from fractions import Fraction
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.queries.plan import QueryPlan
from pufferfish.queries.query import Query
from pufferfish.queries.routes import prove
from queries import brute

STAY = pf.MarkovChain([0, 1], [["3/4", "1/4"], ["1/4", "3/4"]])
BOX = pf.ChainBox([0, 1], [[".6", ".1"], [".2", ".5"]], [[".9", ".4"], [".5", ".8"]])
HOME = pf.Household(["well", "ill"], counts=[".5", ".1", ".1", ".3"])


def ordered_chain(draw: random.Random, k: int) -> pf.MarkovChain:
    """A TP2 chain that starts in its stationary law."""
    columns = [draw.randint(1, 5) for _ in range(k)]
    rows = [[columns[t] * Fraction(3, 2) ** (s * t) for t in range(k)] for s in range(k)]
    return pf.MarkovChain(range(k), [[p / sum(row) for p in row] for row in rows])


def joint_brute(chain: pf.MarkovChain, parts: Any, length: int) -> float:
    """The joint loss of queries with scales, from all sequences."""
    rows = [(row, Fraction(scale) / query.step) for query, scale in parts for row in query.weights]
    weights = [tuple(row[s] for row, _ in rows) for s in range(len(chain.states))]
    return float(brute.chain_loss(chain, weights, length, [scale for _, scale in rows]))


def random_chain(draw: random.Random, k: int, kind: str, start: str) -> pf.MarkovChain:
    return pf.MarkovChain(range(k), *brute.random_chain(draw, k, kind, start))


def joint(parts: Any) -> Any:
    (query, scale), *others = parts
    noise = tuple((own, DiscreteLaplace(theta, own.step)) for own, theta in others)
    return prove(query, scale, None, noise)


@pytest.mark.parametrize("seed", range(60))
def test_no_sequence_tells_more(seed: int) -> None:
    draw = random.Random(seed)
    k, start = draw.choice([2, 3]), draw.choice(["stationary", "random"])
    rising = seed % 3 == 0
    chain = ordered_chain(draw, k) if rising else random_chain(draw, k, "zeros", start)
    length, parts = draw.choice([1, 2, 4]), []
    for _ in range(draw.choice([1, 2, 2])):
        weights = [draw.randint(0, 2) for _ in range(k)]
        if rising:  # along the order of the states, or against it
            weights = sorted(weights, reverse=draw.random() < 0.5)
        weights[-1] += len(set(weights)) == 1
        scaled = {s: Fraction(w, 2) for s, w in zip(chain.states, weights, strict=True)}
        parts.append((pf.SumQuery(chain, scaled, length), 10 ** draw.uniform(-0.3, 1)))
    parts.append((pf.CountQuery(chain, chain.states[-1], length), 10 ** draw.uniform(-0.3, 1)))
    found, exact = joint(parts), joint_brute(chain, parts, length)
    assert float(found) == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert found.method == "ends+ball" or length == 1 or not rising
    if chain.any_length:  # the bounds that hold for every number of records are never below
        numbers = [dict(zip(query.states, query.numbers, strict=True)) for query, _ in parts]
        scales = [scale for _, scale in parts]
        ever = zip((pf.SumQuery(chain, own, "any") for own in numbers), scales, strict=True)
        assert float(joint(list(ever))) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_histogram_beside_a_count(seed: int) -> None:
    draw = random.Random(seed)
    chain = random_chain(draw, 3, "positive", "stationary")
    parts = [(pf.HistogramQuery(chain, 3), 10 ** draw.uniform(0, 1)),
             (pf.CountQuery(chain, chain.states[0], 3), 10 ** draw.uniform(0, 1))]  # fmt: skip
    exact = joint_brute(chain, parts, 3)
    assert float(joint(parts)) == pytest.approx(exact, rel=1e-9)
    assert float(joint(parts[::-1])) == pytest.approx(exact, rel=1e-9)
    for_any = [(pf.HistogramQuery(chain, "any"), parts[0][1]),
               (pf.CountQuery(chain, chain.states[0], "any"), parts[1][1])]  # fmt: skip
    assert float(joint(for_any)) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("length", [8, 1000, "any"])
def test_answers_of_one_query_are_one_with_all_rates(length: Any) -> None:
    one, zero = (pf.CountQuery(STAY, state, length) for state in "10")
    plan = pf.calibrate(one, 1)
    half = prove(one, plan.scale / 3)
    for others in ((one, one), (zero, one), (zero, zero)):  # two states: each is T minus the other
        found = joint([(one, plan.scale), *((own, plan.scale) for own in others)])
        assert float(found) == pytest.approx(float(half), rel=1e-12)
    histogram = pf.HistogramQuery(STAY, length)
    both = prove(histogram, 2 * plan.scale)
    assert float(both) == pytest.approx(plan.loss, rel=1e-9)
    assert float(joint([(one, 3.0), (zero, 3.0)])) == pytest.approx(float(prove(histogram, 3.0)))


@pytest.mark.parametrize(
    "query",
    [
        pf.CountQuery(STAY, 1, 6), pf.CountQuery(STAY, 1, "any"), pf.CountQuery(BOX, 1, 6),
        pf.CountQuery(HOME, "ill"), pf.HistogramQuery(STAY, 5),
        pf.CountQuery(pf.MarkovChain([0, 1], [[".9", ".1"], [".1", ".9"]], "any"), 1, 100),
        pf.SumQuery(STAY, length=100, protect="sequence"),
    ],
)  # fmt: skip
def test_calibrated_beside_earlier_answers(query: Query) -> None:
    first = pf.calibrate(query, "1/2")
    second = pf.calibrate(query, 1, already=[first])
    third = pf.calibrate(query, "3/2", already=[first, second])
    for plan, epsilon, before in ((second, 1, [first]), (third, 1.5, [first, second])):
        both = pf.joint_loss(query, [*before, plan])
        assert epsilon * (1 - 1e-7) <= float(both) <= epsilon
        assert plan.composition is not None
        assert plan.composition.at_most(epsilon)
        plan.verify()
        less = [(query, plan.scale * 0.95), *((query, own.scale) for own in before)]
        assert float(joint(less)) > epsilon


def test_models_of_all_plans_count() -> None:
    slow = pf.MarkovChain([0, 1], [[".9", ".1"], [".1", ".9"]])
    quick = pf.CountQuery(pf.MarkovChain([0, 1], [[".6", ".4"], [".4", ".6"]]), 1, 20)
    first = pf.calibrate(pf.CountQuery(slow, 1, 20), 1)
    second = pf.calibrate(quick, 2, already=[first])
    both = pf.joint_loss(pf.CountQuery(slow, 1, 20), [first, second])
    assert float(both) <= 2 < 2.1 < float(pf.joint_loss(
        pf.CountQuery(slow, 1, 20), [first, pf.calibrate(quick, 1)]))  # fmt: skip
    assert float(pf.joint_loss(quick, [first, second])) < float(both)


def test_exact_for_any_number_of_records() -> None:
    count, both = pf.CountQuery(STAY, 1, "any"), pf.HistogramQuery(STAY, "any")
    first = pf.calibrate(count, 1)
    second = pf.calibrate(both, 2, already=[first])
    assert second.mechanism == "exact"
    assert second.least_scale >= second.scale * (1 - 1e-9)
    long = [(pf.CountQuery(STAY, 1, 1000), first.scale),
            (pf.HistogramQuery(STAY, 1000), second.scale * 0.999)]  # fmt: skip
    assert joint(long).lower > 2
    crossed = pf.MarkovChain(range(3), [
        [".5", ".25", ".25"], [".25", ".5", ".25"], [".125", ".375", ".5"]])  # fmt: skip
    first, total = pf.calibrate(pf.CountQuery(crossed, 2, 9), 1), pf.SumQuery(crossed, length=9)
    bound = pf.calibrate(total, 2, "contraction", already=[first])
    least = pf.calibrate(total, 2, already=[first]).scale
    assert 0 < bound.least_scale <= least * (1 + 1e-9) < bound.scale


def test_models_of_several_kinds() -> None:
    home, chain = pf.CountQuery(HOME, "ill"), pf.MarkovChain(["well", "ill"], STAY.transition)
    other = pf.CountQuery(chain, "ill", 3)
    first = pf.calibrate(home, 1)
    second = pf.calibrate(other, 2, already=[first])
    rates = 1 / first.scale + 1 / second.scale
    worst = max(float(prove(query, 1 / rates)) for query in (home, other))
    assert worst == pytest.approx(2)
    for order in ([first, second], [second, first]):
        parts = [(plan.query, plan.scale) for plan in order]
        assert float(joint(parts)) == pytest.approx(worst, rel=1e-12)


def test_why_there_is_no_noise() -> None:
    point = pf.CountQuery(pf.MarkovChain([0, 1], STAY.transition, [0, 1]), 1, 6)
    with pytest.raises(InputError, match="starts exactly in its stationary law"):
        pf.calibrate(pf.CountQuery(STAY, 1, "any"), 2, already=[pf.calibrate(point, 1)])


def test_sequences_and_records_together() -> None:
    whole = pf.CountQuery(STAY, 1, 10, protect="sequence")
    first = pf.calibrate(pf.CountQuery(STAY, 1, 10), 1)
    with pytest.raises(InputError, match="earlier answers leave"):
        pf.calibrate(whole, 1, already=[first])
    plan = pf.calibrate(whole, 10, already=[first])
    assert plan.mechanism == "group"
    assert float(pf.joint_loss(whole, [first, plan])) == pytest.approx(10)


def test_what_counts_in_no_joint_loss(tmp_path: Any) -> None:
    query = pf.CountQuery(STAY, 1, 6)
    plan = pf.calibrate(query, 1)
    assert float(pf.joint_loss(query, [])) == 0
    other = pf.calibrate(pf.CountQuery(pf.MarkovChain(["a", "b"], [[".5", ".5"]] * 2), "a", 6), 1)
    for wrong, fault in (([plan, 1], "plans of queries"), ([other], "other states")):
        with pytest.raises(InputError, match=fault):
            pf.joint_loss(query, wrong)
        with pytest.raises(InputError, match=fault):
            pf.calibrate(query, 2, already=wrong)
    with pytest.raises(InputError, match="not beside earlier answers"):
        pf.calibrate(query, 2, "wasserstein", already=[plan])
    with pytest.raises(InputError, match="too little of it"):
        pf.calibrate(query, "1/2", already=[plan])
    second = pf.calibrate(query, 2, already=[plan])
    second.save(tmp_path / "plan.json")
    loaded = QueryPlan.load(tmp_path / "plan.json")
    assert loaded.composition == second.composition
