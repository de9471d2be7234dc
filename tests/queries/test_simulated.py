# SPDX-License-Identifier: Apache-2.0
"""Simulated chains: what is released of them is as likely for one state of a record as another."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pufferfish as pf
from queries import brute

CHAINS = 10_000
STAY = brute.rows("3/4 1/4", "1/4 3/4")
#: transition, initial law, weights, records, the record whose state is hidden, epsilon
CASES = [
    (STAY, brute.rows("1/2 1/2")[0], [0, 1], 9, 4, 1.0),
    (STAY, brute.rows("1/10 9/10")[0], [0, 1], 9, 2, 0.5),
    (brute.REGIME, [Fraction(1, 4)] * 4, [0, 1, 0, 1], 8, 0, 0.1),
]


def plan_of(case: Any) -> pf.QueryPlan:
    rows, initial, weights, length, _, epsilon = case
    chain = pf.MarkovChain(range(len(rows)), rows, initial)
    return pf.calibrate(pf.SumQuery(chain, dict(enumerate(weights)), length), epsilon, "exact")


def given_state(case: Any, state: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Sums of chains that have this state at the record, by simulating all and keeping those."""
    rows, initial, weights, length, record, _ = case
    steps = np.cumsum(np.array(rows, dtype=float), axis=1)
    firsts, count = np.cumsum(np.array(initial, dtype=float)), 12 * CHAINS
    paths = [states := np.searchsorted(firsts, rng.random(count))]
    for _ in range(length - 1):
        states = (rng.random(count)[:, None] > steps[states]).sum(axis=1)
        paths.append(states)
    kept = np.stack(paths)[:, paths[record] == state]
    return np.array(weights)[kept[:, :CHAINS]].sum(axis=0)


def output_law(law: dict[int, Fraction], scale: float, outputs: Any) -> np.ndarray[Any, Any]:
    """The chance of each released number: the law of the sum, and discrete Laplace noise."""
    each = [float(p) * stats.dlaplace.pmf(outputs - f, 1 / scale) for f, p in law.items()]
    return np.array(each).sum(axis=0)


@pytest.mark.parametrize("case", CASES)
def test_released_numbers_of_simulated_chains(case: Any) -> None:
    rows, initial, weights, length, record, epsilon = case
    plan = plan_of(case)
    laws = brute.chain_conditionals(rows, initial, weights, length)
    rng, far = np.random.default_rng(3), math.ceil(length + 30 * plan.scale)
    outputs = np.arange(-far, far + 1)
    exact = {x: output_law(law, plan.scale, outputs) for x, law in laws[record].items()}
    # Cells of about a twentieth of all that is released.
    mean = np.cumsum(sum(exact.values()) / len(exact))
    cells = np.unique(np.searchsorted(mean, np.arange(1, 20) / 20))
    found = {}
    for state, law in exact.items():
        released = given_state(case, state, rng) + plan.noise.noise(CHAINS)
        masses = np.diff(np.cumsum(law)[cells], prepend=0, append=1)
        counts = np.bincount(np.searchsorted(outputs[cells], released), minlength=cells.size + 1)
        assert stats.chisquare(counts, masses * CHAINS).pvalue > 1e-12
        found[state] = counts
    # Of two binomial counts of some 500 the ratio is off by less than 8 standard errors.
    for one in found.values():
        for other in found.values():
            assert (one <= np.exp(epsilon) * other * (1 + 8 * np.sqrt(2 / other.min()))).all()


@pytest.mark.parametrize("case", CASES)
def test_noise_of_five_percent_less_is_caught(case: Any) -> None:
    rows, initial, weights, length, _, epsilon = case
    plan = plan_of(case)
    outputs = np.arange(-2, length + 3)
    for factor, private in ((1.0, True), (1 - 1e-6, False), (0.95, False)):
        worst = 0.0
        for record in brute.chain_conditionals(rows, initial, weights, length):
            seen = [
                np.log(output_law(law, plan.scale * factor, outputs)) for law in record.values()
            ]
            worst = max(worst, float(np.max(np.max(seen, axis=0) - np.min(seen, axis=0))))
        assert (worst <= epsilon * (1 + 1e-9)) is private
