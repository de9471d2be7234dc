# SPDX-License-Identifier: Apache-2.0
"""Markov chains: exact input, the stationary law, laws of sums by brute force, and fitting."""

import itertools
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError, PriorWarning
from pufferfish.queries.chain import MarkovChain
from table_cases import write

STAY = [["3/4", "1/4"], ["1/4", "3/4"]]
FITTED = pd.DataFrame(
    {"s": [0, 1, 1, 0, 1.0, 0], "t": [2, 3, 4, 1, 2, 3], "who": list("aaabbb")}
).sample(frac=1, random_state=1)


def refused(*given: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        MarkovChain(*given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def by_enumeration(
    chain: MarkovChain, weights: list[int], length: int
) -> list[dict[int, dict[int, Fraction]]]:
    """P(sum of weights = n, X_t = s) as [t][s][n], from all sequences."""
    found: list[Any] = [defaultdict(lambda: defaultdict(Fraction)) for _ in range(length)]
    for path in itertools.product(range(len(chain.states)), repeat=length):
        p = chain.start[path[0]]
        for a, b in itertools.pairwise(path):
            p *= chain.transition[a][b]
        for t, s in enumerate(path):
            if p:
                found[t][s][sum(weights[x] for x in path)] += p
    return found


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    k = draw(st.integers(2, 3))
    row = st.lists(st.sampled_from((0, 0, 1, 2, 7)), min_size=k, max_size=k).filter(any)
    *rows, start = ([Fraction(c, sum(r)) for c in r] for r in (draw(row) for _ in range(k + 1)))
    return MarkovChain(range(k), rows, start)


@given(chains(), st.lists(st.integers(0, 3), min_size=3, max_size=3), st.integers(1, 5))
def test_laws_are_those_of_all_sequences(chain: MarkovChain, weights: list[int], T: int) -> None:
    weights = weights[: len(chain.states)]
    laws = list(chain.laws(weights, (T, 1)))
    assert len(laws) == sum(chain.sizes((T, 1))) == T + 1
    expected = by_enumeration(chain, weights, T) + by_enumeration(chain, weights, 1)
    for law, want in zip(laws, expected, strict=True):
        total = sum(sum(int(c) for c in poly.coeffs()) for poly in law if poly is not None)
        for s, poly in enumerate(law):
            coefficients = poly.coeffs() if poly is not None else []
            own = {n: Fraction(int(c), total) for n, c in enumerate(coefficients) if c}
            assert own == want[s]


@given(chains())
def test_the_stationary_law_is_kept_and_reversed(chain: MarkovChain) -> None:
    assert MarkovChain(**chain.to_json()) == chain
    if not chain.irreducible:
        assert "lead from every state" in refused(chain.states, chain.transition)
        return
    found = MarkovChain(chain.states, chain.transition)
    k, pi = range(len(found.states)), found.start
    assert found.stationary
    assert sum(pi) == 1
    assert pi == tuple(sum(pi[r] * found.transition[r][s] for r in k) for s in k)
    back = found.backwards
    assert all(pi[s] * back[s][r] == pi[r] * found.transition[r][s] for r in k for s in k)
    assert MarkovChain(**found.to_json()) == found


def test_input_is_exact_and_may_be_named() -> None:
    chain = MarkovChain(["a", 1.0], {1: {"a": 0.1, "1": "0.9"}, "a": [1 / 4, "3/4"]}, "any")
    assert chain.states == ("a", "1")
    assert chain.transition[0] == (Fraction(1, 4), Fraction(3, 4))
    assert chain.transition[1] == (Fraction(1, 10), Fraction(9, 10))
    assert (chain.start, chain.stationary, chain.from_rows) == (None, False, False)
    assert MarkovChain(**chain.to_json()) == chain
    almost = MarkovChain(["a", "b"], [[0.3333333333, 0.6666666666], [1, 0]])
    assert ("renormalised" in almost.notes[0], sum(almost.transition[0])) == (True, 1)


@pytest.mark.parametrize(
    "given, says",
    [
        ((["a"], [[1]]), "two or more different names"),
        (("ab", STAY), "two or more different names"),
        ((["a", "b"], STAY[:1]), "needs a row for each"),
        ((["a", "b"], [[1, 0], [0.5, 0.4]]), "sum to 0.9"),
        ((["a", "b"], [[2, -1], [0, 1]]), "negative"),
        ((["a", "b"], [[1], [0, 1]]), "needs 2 probabilities"),
        ((["a", "b"], [["x", 1], [0, 1]]), "must be a number"),
        ((["a", "b"], {"a": [1, 0]}), "needs 2 probabilities"),
        ((["walk", "run"], [{"wlak": 1}, [0, 1]]), "did you mean 'walk'?"),
        ((["a", "b"], [[1, 0], [0, 1]]), "state the initial law"),
        ((["a", "b"], STAY, "some"), "must be a list of probabilities"),
        ((["a", "b"], STAY, [1, 1]), "sum to 2"),
    ],
)
def test_refusals(given: Any, says: str) -> None:
    assert says in refused(*given)


def test_any_law_has_no_scenario() -> None:
    with pytest.raises(InputError, match="state its law"):
        next(MarkovChain(["a", "b"], STAY, "any").laws([0, 1], (2,)))


def fit(table: Any = FITTED, **options: Any) -> MarkovChain:
    return MarkovChain.from_sequences(table, state="s", time="t", sequence="who", **options)


def test_fitting_counts_transitions(tmp_path: Path) -> None:
    with pytest.warns(PriorWarning) as caught:
        chain = fit(initial="counted")
    texts = [str(w.message) for w in caught]
    assert "an output of them" in texts[0]
    assert texts[1].startswith("2 transitions or first states occur in no sequence")
    assert chain == MarkovChain([0, 1], [[0, 1], ["1/2", "1/2"]], [1, 0])
    assert chain.from_rows
    with pytest.warns(PriorWarning, match="is an output of them"):
        smoothed = fit(write(tmp_path, FITTED.to_csv(index=False)), smoothing="1/2")
    assert smoothed == MarkovChain([0, 1], [["1/6", "5/6"], ["1/2", "1/2"]])
    kept = MarkovChain(**smoothed.to_json(), from_rows=True)
    assert (kept, kept.from_rows) == (smoothed, True)


@pytest.mark.filterwarnings("ignore:the model is fitted:pufferfish.errors.PriorWarning")
def test_fitting_refuses_what_it_cannot_know() -> None:
    for options, says in (
        ({"states": [0, 1, 2]}, "smoothing"), ({"smoothing": -1}, "at least 0"),
        ({"missing": "1"}, "missing in 3 rows"),
        ({"states": [1]}, "none of the states 1 in 3 rows"),
        ({"table": FITTED[FITTED.s == 1], "gaps": "order"}, "two or more different names"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            fit(**options)
    assert fit(states=[0, 1, 2], smoothing=1).transition[2] == (Fraction(1, 3),) * 3
