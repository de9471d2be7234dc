# SPDX-License-Identifier: Apache-2.0
"""Contraction bounds: against all sequences, where they are exact, and wrong certificates."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from pufferfish.errors import PufferfishError
from pufferfish.queries import contraction
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.contraction import birkhoff_loss, contraction_loss, prove_contraction
from queries import brute

ONE, TWO = Fraction(1), [[0, 1], [1, 0]]
SLOW = MarkovChain(range(2), [["3/4", "1/4"], ["1/4", "3/4"]])
ANY = MarkovChain(range(2), [[".9", ".1"], [".1", ".9"]], "any")
THREE = MarkovChain(range(3), [["8/10", ".1", ".1"], [".2", ".7", ".1"], [".3", ".1", ".6"]])


def spread_of(weights: Sequence[int]) -> list[list[int]]:
    return [[abs(a - b) for b in weights] for a in weights]


def histogram_spread(states: int) -> list[list[int]]:
    return [[2 * (a != b) for b in range(states)] for a in range(states)]


def times(u: Any, spread: Any) -> list[list[Any]]:
    return [[u * own for own in row] for row in spread]


@pytest.mark.parametrize("seed", range(100))
def test_no_number_of_records_loses_more(seed: int) -> None:
    draw = random.Random(seed)
    k, kind = draw.choice([2, 3, 3, 4]), draw.choice(["positive", "positive", "zeros"])
    start = draw.choice(["stationary", "stationary", "random"])
    chain = MarkovChain(range(k), *brute.random_chain(draw, k, kind, start))
    weights: list[Any] = [tuple(row) for row in np.eye(k, dtype=int).tolist()]
    spread, longest = histogram_spread(k), 5 - k // 3
    if seed % 4:
        weights = [draw.randint(0, 3) for _ in range(k)]
        spread, longest = spread_of(weights), {2: 8, 3: 6, 4: 5}[k]
    u = 10 ** draw.uniform(-1.5, 0.3)
    bound = contraction_loss(chain, times(u, spread))
    exact = max(brute.chain_loss(chain, weights, n, 1 / u) for n in (1, 2, longest))
    assert exact <= bound * (1 + 1e-10) + 1e-12
    proven = prove_contraction(chain, times(Fraction(u), spread))
    assert (proven is None) == (bound == math.inf)
    if proven is not None:
        assert float(proven) == pytest.approx(bound, rel=1e-9, abs=1e-12)
        assert exact <= float(proven) * (1 + 1e-13) + 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_every_start(seed: int) -> None:
    draw = random.Random(seed)
    k = draw.choice([2, 3])
    rows = brute.random_chain(draw, k, "positive")[0]
    weights, u = [*range(k - 1), 3], 10 ** draw.uniform(-1.5, 0.3)
    chain = MarkovChain(range(k), rows, "any")
    bound = contraction_loss(chain, times(u, spread_of(weights)))
    assert bound <= birkhoff_loss(contraction.cross_ratio(chain.transition), 3 * u) * (1 + 1e-12)
    for _ in range(4):
        start = brute.random_chain(draw, k, "zeros", "impossible")[1]
        one = MarkovChain(range(k), rows, start)
        assert brute.chain_loss(one, weights, 5, 1 / u) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_exact_for_ordered_chains(seed: int) -> None:
    """The limit of TP2 chains and weights in order is ln (l_a r_a pi_b) / (l_b r_b pi_a)."""
    draw = random.Random(seed)
    k = draw.choice([2, 3, 4])
    columns = [draw.randint(1, 5) for _ in range(k)]
    rows = [[columns[t] * Fraction(3, 2) ** (s * t) for t in range(k)] for s in range(k)]
    chain = MarkovChain(range(k), [[p / sum(row) for p in row] for row in rows])
    weights = [0, *sorted(draw.randint(0, 3) for _ in range(k - 1))]
    u, limit = 10 ** draw.uniform(-1.5, 0), 0.0
    for sign in (1, -1):
        tilted = np.array(chain.transition, dtype=float) * np.exp(sign * u * np.array(weights))
        ends = 1 / np.array(chain.start, dtype=float)
        for matrix in (tilted, tilted.T):
            values, vectors = np.linalg.eig(matrix)
            ends *= np.abs(vectors[:, values.real.argmax()].real)
        limit = max(limit, float(np.ptp(np.log(ends))))
    assert contraction_loss(chain, times(u, spread_of(weights))) == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize(
    "chain, spread, epsilon, scale, tolerance",
    [
        (THREE, histogram_spread(3), 0.2, 41.368283436, 1e-7),
        (THREE, histogram_spread(3), 1, 8.8134226242, 1e-7),
        (SLOW, TWO, 1, 2.8929051413876, 1e-12),
        (ANY, TWO, 5, 1.1363, 5e-5),
        # Windows need half a per cent less.
        (THREE, spread_of([0, 1, 2]), 0.2, 30.966408, 1e-6),
    ],
)
def test_known_scales(
    chain: MarkovChain, spread: Any, epsilon: float, scale: float, tolerance: float
) -> None:
    ends = [
        contraction_loss(chain, times((1 + d) / scale, spread)) for d in (-tolerance, tolerance)
    ]
    assert ends[0] < epsilon < ends[1]
    proven = prove_contraction(chain, times(1 / Fraction(scale), spread))
    assert proven is not None
    assert ends[0] < proven < ends[1]


def test_no_bound() -> None:
    parted = MarkovChain(range(2), [[1, 0], [0, 1]], ["1/2", "1/2"])
    swapped = MarkovChain(range(2), [[0, 1], [1, 0]])
    far, every = times(10**300, TWO), times(20, histogram_spread(3))
    for chain, reach in ((parted, TWO), (SLOW, far), (THREE, every)):
        assert contraction_loss(chain, reach) == math.inf
        assert prove_contraction(chain, reach) is None
    assert prove_contraction(swapped, TWO) == contraction_loss(swapped, TWO) == 1
    rare = [Fraction(1, 10**120), Fraction(1, 2), Fraction(1, 2) - Fraction(1, 10**120)]
    alike = MarkovChain(range(3), [rare] * 3)  # rare transitions are left to Birkhoff's bound
    assert 2 <= prove_contraction(alike, spread_of([0, 1, 2])) < 2 + Fraction(1, 10**9)
    assert prove_contraction(parted, [[0, 0], [0, 0]]) == 0
    assert birkhoff_loss(None, 0.1) == math.inf
    assert contraction.prove_birkhoff(None, ONE) is None


@pytest.mark.parametrize("seed", range(40))
def test_two_states_by_their_recursion(seed: int) -> None:
    """The exponents are what more and more records lead to, however lasting the states."""
    draw = random.Random(seed)
    p, q = (Fraction(10 ** draw.uniform(-14, -0.4)) for _ in range(2))
    reach = Fraction(10 ** draw.uniform(-3, 1.5))
    chain = MarkovChain(range(2), [[1 - p, p], [q, 1 - q]])
    expected = mpmath.mpf(0)
    with mpmath.workdps(60):
        a, b = (mpmath.mpf(n.numerator) / n.denominator for n in (p, q))
        growth = mpmath.exp(mpmath.mpf(reach.numerator) / reach.denominator)
        for one, other in ((a, b), (b, a)):
            low, high = mpmath.mpf(1), mpmath.mpf(10) ** 30
            for _ in range(260):  # one more record raises what is below the root
                x = mpmath.sqrt(low * high)
                after = ((1 - one) * x * growth + one) / (other * x * growth + 1 - other)
                low, high = (x, high) if after > x else (low, x)
            expected = max(expected, 2 * mpmath.log(low) + mpmath.log(growth))
    proven = prove_contraction(chain, times(reach, TWO))
    assert proven is not None
    assert (
        expected * (1 - mpmath.mpf(10) ** -30) <= mpmath.mpf(proven.numerator) / proven.denominator
    )
    assert float(proven) == pytest.approx(float(expected), rel=1e-14)
    assert contraction_loss(chain, times(float(reach), TWO)) == pytest.approx(float(expected))


@pytest.mark.parametrize("seed", range(20))
def test_two_states_by_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    chain = MarkovChain(range(2), *brute.random_chain(draw, 2, "positive", "random"))
    reach = times(10 ** draw.uniform(-2, 1), TWO)
    found = contraction_loss(chain, reach)
    monkeypatch.setattr(contraction, "two_states", contraction.fixed_point)
    assert found == pytest.approx(contraction_loss(chain, reach), rel=1e-9)


@pytest.mark.parametrize("k, u", [(1.0, 0.3), (1.5, 1e-6), (9.0, 0.3), (9.0, 8.0)])
def test_birkhoff(k: float, u: float) -> None:
    loss = birkhoff_loss(Fraction(k) ** 2, 2 * u)
    one_side, e = (loss - 2 * u) / 2, math.exp((loss + 2 * u) / 4)
    assert one_side == pytest.approx(2 * math.log((1 + k * e) / (k + e)), rel=1e-9, abs=1e-15)
    assert float(
        contraction.prove_birkhoff(Fraction(k) ** 2, 2 * Fraction(u)) or 0
    ) == pytest.approx(loss)


def certificate(d: str, *rows: tuple[int, int], own: str = "0") -> bool:
    """Whether shares over 128 prove exponents d of the slow chain, whose fixed point is .3264."""
    one = [[Fraction(n, 128) for n in row] for row in rows]
    shares = np.array([[one, one], [[row[::-1] for row in one[::-1]]] * 2])
    values = np.array([[Fraction(own), Fraction(d)], [Fraction(d), Fraction(own)]])
    return contraction.holds(SLOW.transition, times(Fraction(10, 29), TWO), values, shares, 128)


def test_certificates() -> None:
    assert certificate("0.34", (59, 69), (0, 128))
    assert not certificate("0.32", (59, 69), (0, 128))
    assert not certificate("0.34", (128, 0), (0, 128))
    # Each would hold but for one rule: no negative exponent, no negative share, nothing lost.
    assert not certificate("0.2", (62, 66), (0, 128), own="-0.2")
    assert not certificate("0.1", (128, 0), (-166, 294))
    assert not certificate("0.1", (40, 40), (0, 100))


def test_wrong_programs_cost_noise_only(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, spread = np.random.default_rng(1), spread_of([0, 1, 3])
    exact = brute.chain_loss(THREE, [0, 1, 3], 6, 20)

    def fails(program: Any) -> Any:
        raise PufferfishError("no solution")

    for wrong in (fails, lambda p: (draw.random(len(p.cost)), draw.random(len(p.end)))):
        monkeypatch.setattr(contraction, "solve", wrong)
        proven = prove_contraction(THREE, times(Fraction(1, 20), spread))
        assert proven is None or proven >= exact
