# SPDX-License-Identifier: Apache-2.0
"""Laws that break careless bounds: no mechanism gives a scale that enumeration refutes."""

import random
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.queries.calibrate import MECHANISMS
from pufferfish.queries.ends import is_tp2
from pufferfish.queries.plan import certify_query
from queries import brute

QUARTERS = [Fraction(1, 4)] * 4
#: The regime chain in the order of its weights, with states that nothing leads to in between: of
#: two neighbouring columns one is 0, and so are all minors of neighbours.
FREE = [Fraction(s % 2 == 0, 4) for s in range(7)]
SPREAD_OUT = [FREE] * 7
SPREAD_OUT[::2] = [[brute.REGIME[r][s] if s >= 0 else Fraction() for s in (0, -1, 2, -1, 1, -1, 3)]
                   for r in (0, 2, 1, 3)]  # fmt: skip
#: transition, initial law, number of records, weights, epsilon
LAWS: dict[str, tuple[Any, Any, int, list[int], str]] = {
    "regime": (brute.REGIME, QUARTERS, 8, [0, 1, 0, 1], "1/10"),
    "positive": (brute.POSITIVE, "stationary", 8, [0, 1, 0, 1], "1/10"),
    "spread out": (SPREAD_OUT, FREE, 8, [0, 0, 0, 0, 1, 1, 1], "1/10"),
    "adjacent minors": (brute.ADJACENT, brute.rows("1/8 1/2 3/8")[0], 6, [0, 1, 2], "1/2"),
    "nearly TP2": (brute.NEARLY_TP2, "stationary", 8, [0, 1], "1"),
    "above the limit": (*brute.ABOVE_LIMIT, [0, 1], "1/5"),
    "reversed": (*brute.REVERSED, [0, 1], "1/5"),
    "window": (*brute.WINDOW, [0, 1], "1"),
    "start": (*brute.ANY_START, [0, 1], "5"),
}


def case(name: str) -> tuple[pf.MarkovChain, dict[int, int], int, Fraction, list[Any]]:
    """A chain, what its states add, the records, epsilon, and the laws of the sum."""
    rows, initial, length, weights, epsilon = LAWS[name]
    chain = pf.MarkovChain(range(len(rows)), rows, initial)
    laws = brute.chain_conditionals(rows, list(chain.start or ()), weights, length)
    return chain, dict(enumerate(weights)), length, Fraction(epsilon), laws


@pytest.mark.parametrize("name", LAWS)
def test_no_scale_is_refuted(name: str) -> None:
    chain, weights, records, epsilon, laws = case(name)
    queries = [pf.SumQuery(chain, weights, [1, records])]
    if chain.stationary:
        queries.append(pf.SumQuery(chain, weights, "any"))
    else:
        with pytest.raises(InputError, match="starts exactly in its stationary law"):
            pf.SumQuery(chain, weights, "any")
    anyhow = pf.MarkovChain(chain.states, chain.transition, "any")
    found = []
    for query in (*queries, pf.SumQuery(anyhow, weights, "any")):
        for mechanism in (None, *MECHANISMS):
            with suppress(InputError):
                found.append(pf.calibrate(query, epsilon, mechanism))
    for plan in found:
        assert plan.certificate.holds
        assert brute.loss(laws, plan.scale) <= float(epsilon) * (1 + 1e-12), plan
    assert {"group", "wasserstein", "relaxed", "window", "exact"} <= {p.mechanism for p in found}


@pytest.mark.parametrize("name", ["regime", "positive", "spread out"])
def test_the_ends_do_not_decide(name: str) -> None:
    chain, weights, length, epsilon, laws = case(name)
    query = pf.SumQuery(chain, weights, length)
    assert brute.ends(laws, 0.1) < 0.1000001
    assert brute.loss(laws, 10) > 0.102
    assert not certify_query(query, 10.1, epsilon).holds
    assert pf.calibrate(query, epsilon).scale > 10.2


def test_all_minors_are_compared_and_exactly() -> None:
    for name, (_, _, _, weights, _) in LAWS.items():
        rows = case(name)[0].transition
        p = np.array(rows, dtype=float)
        adjacent = (p[:-1, :-1] * p[1:, 1:] >= p[:-1, 1:] * p[1:, :-1]).all()
        assert adjacent or name in ("regime", "positive")
        right = name in ("above the limit", "reversed", "window", "start")
        assert is_tp2(rows, weights) is right


def test_any_start_costs_more_than_the_stationary_one() -> None:
    """theory, section 8.7: a loss of 5.502 at the scale for epsilon 5."""
    chain, _, length, epsilon, laws = case("start")
    box = [[Fraction(p, 10)] * 2 for p in (1, 1)], [[Fraction(p, 10)] * 2 for p in (9, 9)]
    known = pf.calibrate(pf.CountQuery(pf.ChainBox(range(2), *box), 1, "any"), epsilon)
    assert known.scale == pytest.approx(0.7939, rel=1e-4)
    assert brute.loss(laws, known.scale) == pytest.approx(5.502, rel=1e-4)
    anyhow = pf.MarkovChain(range(2), chain.transition, "any")
    for model in (pf.ChainBox(range(2), *box, "any"), anyhow):
        for lengths in ("any", length):
            query = pf.CountQuery(model, 1, lengths)
            assert brute.loss(laws, pf.calibrate(query, epsilon).scale) <= 5
            with pytest.raises(pf.CheckFailed):
                known.verify(query, other_prior=True)


@pytest.mark.parametrize(
    "k, initial", [(2, "stationary"), (2, "any"), (3, "stationary"), (3, "any")]
)
def test_no_member_of_a_box_exceeds_its_plan(k: int, initial: Any) -> None:
    rng = random.Random(k)
    for epsilon in (0.5, 4):
        corners = np.array([brute.random_chain(rng, k, "positive")[0] for _ in range(2)])
        box = pf.ChainBox(range(k), corners.min(axis=0), corners.max(axis=0), initial)
        plan = pf.calibrate(pf.SumQuery(box, None, "any"), epsilon)
        for part in (Fraction(0), Fraction(1, 3), Fraction(1)):
            member = (corners[0] + part * (corners[1] - corners[0])).tolist()
            rare = [Fraction(1, 99)] * (k - 1)
            law = brute.stationary(member) if initial == "stationary" else [1 - sum(rare), *rare]
            for length in (1, 2, 11 - 2 * k):
                laws = brute.chain_conditionals(member, law, list(range(k)), length)
                assert brute.loss(laws, plan.scale) <= epsilon * (1 + 1e-12)
