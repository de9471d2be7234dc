# SPDX-License-Identifier: Apache-2.0
"""MQMExact, MQMApprox and GK16: known scales, and influences by all sequences."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.quilts import gk16, mqm_approx, mqm_exact

STAY = MarkovChain(range(2), [["3/4", "1/4"], ["1/4", "3/4"]])
WEAK = MarkovChain(range(2), [[".8", ".2"], [".6", ".4"]])
FIXED = MarkovChain(range(2), [[".9", ".1"], [".4", ".6"]], [1, 0])
SKEW = MarkovChain(range(3), [[".8", ".1", ".1"], [".2", ".7", ".1"], [".3", ".1", ".6"]])
TP2 = MarkovChain(range(3), [[".7", ".2", ".1"], [".25", ".5", ".25"], [".1", ".2", ".7"]])
FOUR = MarkovChain(
    range(4),
    [[".9", ".05", ".03", ".02"], [".1", ".8", ".06", ".04"], [".05", ".1", ".75", ".1"],
     [".05", ".1", ".15", ".7"]],
)  # fmt: skip
# {0, 1} leads to {2, 3} and back: two states are impossible at each record.
TURNS = MarkovChain(
    range(4), [[0, 0, ".6", ".4"], [0, 0, ".3", ".7"], [".3", ".7", 0, 0], [".5", ".5", 0, 0]],
    [".5", ".5", 0, 0],
)  # fmt: skip
ENDS = MarkovChain(range(3), [[".5", ".3", ".2"], [0, ".6", ".4"], [0, 0, 1]], [".2", ".8", 0])

# chain, T, range of the weights, epsilon: MQMExact, MQMApprox, GK16
KNOWN = [
    (STAY, 8, 1, 0.2, 40, 40, math.inf),
    (STAY, 8, 1, 5, 0.356789199703197, 1.6, math.inf),
    (STAY, 100, 1, 0.2, 77.0373272936733, 134.013109660217, math.inf),
    (STAY, 100, 1, 1, 9.33739554744622, 18.9830962195617, math.inf),
    (STAY, 100, 1, 5, 0.356789199703197, 2.04805471277371, math.inf),
    (WEAK, 100, 1, 0.2, 36.6293380238061, 91.5531162884809, 39.5592156847626),
    (WEAK, 100, 1, 1, 4.33714890418404, 13.7086226058358, 7.91184313695252),
    (WEAK, 100, 1, 5, 0.276724254803969, 1.67525105703030, 1.58236862739050),
    (FIXED, 10, 1, 0.2, 45, 50, math.inf),
    (FIXED, 10, 1, 5, 0.798608498002820, 2, math.inf),
    (FIXED, 100, 1, 0.2, 93.7835992578375, 155.258422256441, math.inf),
    (FIXED, 100, 1, 1, 12.9340510861865, 23.5059552231667, math.inf),
    (FIXED, 100, 1, 5, 0.798608498002820, 3.09051809885176, math.inf),
    (SKEW, 6, 2, 1, 12, 12, math.inf),
    (SKEW, 6, 2, 5, 1.97458799617436, 2.4, math.inf),
    (TP2, 60, 2, 1, 29.7929244156410, 54.9736735413856, math.inf),
    (FOUR, 60, 1, 1, 42.2523573084691, 60, math.inf),
]


@pytest.mark.parametrize("chain, length, spread, epsilon, exact, approx, inferential", KNOWN)
def test_known(
    chain: MarkovChain, length: int, spread: int, epsilon: float,
    exact: float, approx: float, inferential: float,
) -> None:  # fmt: skip
    assert mqm_exact(chain, [length], spread, epsilon) == pytest.approx(exact, rel=1e-12)
    assert mqm_approx(chain, [length], spread, epsilon) == pytest.approx(approx, rel=1e-12)
    assert gk16(chain, [length], spread, epsilon) == pytest.approx(inferential, rel=1e-12)


@pytest.mark.parametrize("epsilon, scale", [(0.2, 247.1545901), (1, 33.57631992)])
def test_long_histograms(epsilon: float, scale: float) -> None:
    """One record changes two counts by one; a stationary chain of any length needs the same."""
    for lengths in ([10**3], [10**6, 2]):
        assert mqm_exact(SKEW, lengths, 2, epsilon) == pytest.approx(scale, rel=1e-8)


def by_sequences(chain: MarkovChain, starts: Sequence[Sequence[Fraction]], length: int,
                 epsilon: float) -> float:  # fmt: skip
    """MQMExact by its definition: the laws of a quilt from the probabilities of all sequences."""
    states, records = range(len(chain.states)), range(length)
    laws = []
    for start in starts:
        law: dict[tuple[int, ...], Fraction] = {}
        for path in itertools.product(states, repeat=length):
            steps = itertools.pairwise(path)
            p = start[path[0]] * math.prod(chain.transition[r][s] for r, s in steps)
            if p:
                law[path] = Fraction(p)
        laws.append(law)

    def influence(t: int, quilt: tuple[int, ...]) -> float:
        told = 0.0
        for law in laws:
            joint: dict[int, dict[tuple[int, ...], Fraction]] = {}
            for path, p in law.items():
                seen = joint.setdefault(path[t], {})
                key = tuple(path[q] for q in quilt)
                seen[key] = seen.get(key, Fraction(0)) + p
            for a, b in itertools.permutations(joint.values(), 2):
                total_a, total_b = sum(a.values()), sum(b.values())
                told = max(
                    told, *(math.log(p / total_a / (b[key] / total_b)) if key in b else math.inf
                            for key, p in a.items()),
                )  # fmt: skip
        return told

    def scales(t: int) -> Iterator[float]:
        for past in [(), *((s,) for s in records[:t])]:
            for future in [(), *((s,) for s in records[t + 1 :])]:
                near = (future[0] if future else length) - (past[0] if past else -1) - 1
                left = epsilon - influence(t, past + future)
                yield near / left if left > 0 else math.inf

    return max(min(scales(t)) for t in records if any(len({p[t] for p in law}) > 1 for law in laws))


@pytest.mark.parametrize("chain", [STAY, FIXED, SKEW, TURNS, ENDS])
@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_exact_is_the_definition(chain: MarkovChain, epsilon: float) -> None:
    for length in range(2, 7 if len(chain.states) == 2 else 6):
        expected = by_sequences(chain, [chain.start or ()], length, epsilon)
        assert mqm_exact(chain, [length], 1, epsilon) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mechanism", [mqm_exact, mqm_approx, gk16])
def test_monotone_in_epsilon_and_of_the_worst_length(mechanism: Callable[..., float]) -> None:
    for chain in (WEAK, FIXED, FOUR, TURNS):
        scales = [mechanism(chain, [30], 1, epsilon) for epsilon in (0.1, 0.5, 1, 2, 5)]
        assert scales == sorted(scales, reverse=True)
        both = mechanism(chain, [3, 30], 1, 1)
        assert both == max(mechanism(chain, [n], 1, 1) for n in (3, 30))
        assert mechanism(chain, [3, 30], 2, 1) == pytest.approx(2 * both)


@pytest.mark.parametrize("stay", ["1/2", ".6", ".62", ".64"])
def test_gk16_by_the_inverse(stay: str) -> None:
    chain = MarkovChain(range(2), [[stay, 1 - Fraction(stay)], [1 - Fraction(stay), stay]])
    odds = Fraction(stay) / (1 - Fraction(stay))
    gamma = math.log(max(odds * (odds + 1 / odds) / 2, Fraction(1))) / 2
    for length in range(1, 12):
        matrix = gamma * (np.eye(length, k=1) + np.eye(length, k=-1))
        expected = math.inf
        if np.linalg.norm(matrix, 2) < 1:
            expected = 2 * np.linalg.inv(np.eye(length) - matrix).sum(axis=1).max()
        assert gk16(chain, [length], 1, 1) == pytest.approx(expected)
