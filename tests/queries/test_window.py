# SPDX-License-Identifier: Apache-2.0
"""Window bounds: against all sequences, and how they approach the exact loss."""

import math
import random
from fractions import Fraction

import pytest

from pufferfish.errors import InputError
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.window import prove_window, window_loss, window_problems
from queries import brute

SLOW = MarkovChain(range(2), [["3/4", "1/4"], ["1/4", "3/4"]])
KNOWN = MarkovChain(range(2), SLOW.transition, ["1/10", "9/10"])


@pytest.mark.parametrize("seed", range(120))
def test_exact_below_narrow_below_wide(seed: int) -> None:
    draw = random.Random(seed)
    k, stay = draw.choice([2, 2, 3, 4]), Fraction(draw.choice([0, 5, 9]), 10)
    kind, start = draw.choice(["positive", "zeros", "zeros"]), draw.choice(brute.STARTS)
    rows, initial = brute.random_chain(draw, k, kind, start)
    rows = [[stay * (s == t) + (1 - stay) * p for t, p in enumerate(row)]
            for s, row in enumerate(rows)]  # fmt: skip
    chain = MarkovChain(range(k), rows, initial)
    weights = [draw.randint(0, 2) for _ in range(k)]
    weights = [w - min(weights) for w in weights]
    longest, u = {2: 8, 3: 6, 4: 5}[k], 10 ** draw.uniform(-1, 0.7)
    lengths = [longest, draw.randint(1, longest - 1)]
    exact = max(brute.chain_loss(chain, weights, n, 1 / u) for n in lengths)
    before = math.inf
    for width in (1, 2, 3, longest):
        bound = window_loss(chain, weights, lengths, width).worst(u)[0]
        assert exact <= bound * (1 + 1e-12) + 1e-13
        assert bound <= before * (1 + 1e-12) + 1e-13
        proven = prove_window(chain, weights, lengths, width, Fraction(u))
        assert proven.lower == 0
        assert proven.value == pytest.approx(bound, rel=1e-12, abs=1e-13)
        before = bound
    assert before == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("width, excess", [(8, 5.913e-3), (12, 2.6e-4), (20, 5.16e-7)])
def test_convergence(width: int, excess: float) -> None:
    """The scale that a window asks for above that of every number of records, 2.8929051413876."""
    loss = window_loss(SLOW, [0, 1], [1000], width)
    for error, above in ((-0.01, True), (0.01, False)):
        u = 1 / (2.8929051413876 * (1 + excess * (1 + error)))
        assert (loss.worst(u)[0] > 1) == above
        proven = prove_window(SLOW, [0, 1], [1000], width, Fraction(u), Fraction(1))
        assert proven.at_most(1) == (not above)


def test_records_that_are_alike_count_once() -> None:
    """All of a stationary chain far from its ends; else all far from its start, nearly."""
    interior = 2 * 2
    edges = 2 * 6 * 2
    assert len(window_problems(SLOW, [0, 1], [10**9, 50], 6)) == interior + edges
    known = window_problems(KNOWN, [0, 1], [5000], 6)
    assert interior + edges < len(known) < 100 * (interior + edges)
    loss = window_loss(KNOWN, [0, 1], [5000], 20).worst(0.3)[0]
    assert loss == pytest.approx(window_loss(KNOWN, [0, 1], [200], 20).worst(0.3)[0], rel=1e-12)


def test_states_that_outer_records_exclude() -> None:
    """Such a window has no bound at any rate, and a chain that never forgets has none at all."""
    turns = MarkovChain(range(3), [[0, 1, 0], [0, 0, 1], ["1/2", 0, "1/2"]])
    assert window_loss(turns, [0, 1, 2], [30], 1).worst(1e-9)[0] == math.inf
    assert prove_window(turns, [0, 1, 2], [30], 1, Fraction(1, 9)).upper is None
    assert window_loss(turns, [0, 1, 2], [30], 9).worst(0.1)[0] < 1
    swaps = MarkovChain(range(2), [[0, 1], [1, 0]])
    assert prove_window(swaps, [0, 1], [30], 9, Fraction(1, 9), Fraction(1)).value == math.inf
    # The state of the first record is known: nothing can be told of it.
    sure = MarkovChain(range(2), SLOW.transition, [1, 0])
    assert window_problems(sure, [0, 1], [1], 3) == []
    assert prove_window(sure, [0, 1], [1], 3, Fraction(1)).value < 1e-20


def test_refusals() -> None:
    with pytest.raises(InputError, match="any law"):
        window_problems(MarkovChain(range(2), SLOW.transition, "any"), [0, 1], [9], 3)
    with pytest.raises(GridTooLarge):
        window_problems(KNOWN, [0, 1], [20_001], 3)
    with pytest.raises(GridTooLarge):
        window_problems(SLOW, [0, 10_000], [100], 20)
