# SPDX-License-Identifier: Apache-2.0
"""Referee of queries over correlated records: laws by enumeration, losses by their definition.

It imports nothing of the package. States are 0, 1, ...; probabilities are exact fractions; a weight
is an integer, or a tuple of them (one for each count of a histogram).
"""

import contextlib
import functools
import itertools
import math
from collections import defaultdict
from fractions import Fraction as Q

import mpmath
import numpy as np


def rows(*texts):
    return [[Q(p) for p in text.split()] for text in texts]


KINDS = ("positive", "zeros", "tp2", "negative", "reducible", "deterministic")
STARTS = ("stationary", "point", "random", "impossible")
# With weights 0, 1, 0, 1 the ends do not decide (theory, section 8.3); the second is positive.
REGIME = rows("1/2 1/2 0 0", "1/2 1/2 0 0", "0 0 0 1", "0 0 1 0")
POSITIVE = [[Q(99, 100) * p + Q(1, 400) for p in row] for row in REGIME]
# Not TP2, but minors of neighbours are at least 0, and all minors are 0 for doubles.
ADJACENT = rows("1/2 0 1/2", "1/2 0 1/2", "1 0 0")
NEARLY_TP2 = rows("1/2 1/2", f"{Q(1, 2) + Q(1, 10**18)} {Q(1, 2) - Q(1, 10**18)}")
# (transition, initial, T), not stationary: epsilon 1/5 exceeds the limit of 8.4 by 1.457; rate 1/20
# at t = 6 a bound of 8.5 with the stationary chain reversed by 1.686; rate 2 at t = 5 the window
# a = 4, b = 2 of 8.6 with the stationary P(X_t) by 1.072; epsilon 5 the class of 8.7 (loss 5.502).
ABOVE_LIMIT = rows("99/100 1/100", "7/10 3/10"), *rows("1/2 1/2"), 7
REVERSED = rows("1/2 1/2", "1/100 99/100"), *rows("7/10 3/10"), 6
WINDOW = rows("99/100 1/100", "1/100 99/100"), *rows("99/100 1/100"), 7
ANY_START = rows("9/10 1/10", "1/10 9/10"), *rows("3/100 97/100"), 30


def stationary(transition):
    """The law that an irreducible chain keeps, by leaving out states; else ZeroDivisionError."""
    *rest, last = transition
    back = [p / sum(last[:-1]) for p in last[:-1]]
    without = [[p + row[-1] * q for p, q in zip(row, back, strict=False)] for row in rest]
    law = stationary(without) if len(rest) > 1 else [Q(1)]
    law.append(sum(p * row[-1] for p, row in zip(law, rest, strict=True)) / sum(last[:-1]))
    return [p / sum(law) for p in law]


def random_chain(rng, k, kind, start="stationary"):
    """A chain (transition, initial) of a kind and a start, random where it cannot be stationary."""

    def law(n, zeros=0.0):
        drawn = [rng.randint(1, 9) * (rng.random() >= zeros) for _ in range(n)]
        return [Q(p, sum(drawn)) for p in drawn] if any(drawn) else law(n, zeros)

    transition = [law(k, 0.5 * (kind == "zeros")) for _ in range(k)]
    if kind in ("tp2", "negative"):  # a product of bidiagonal matrices, its columns turned round
        factors = [np.diag(rng.choices((1, 2), k=k)) + np.diag(rng.choices(range(4), k=k - 1), side)
                   for side in (-1, 1) * (k - 1)]  # fmt: skip
        product = functools.reduce(np.matmul, factors)[:, :: -1 if kind == "negative" else 1]
        transition = [[Q(p, sum(row)) for p in row] for row in product.tolist()]
    elif kind == "reducible":
        cut, apart = rng.randint(1, k - 1), rng.random() < 0.5
        transition = [law(cut) + [Q(0)] * (k - cut) if apart else law(k) for _ in range(cut)]
        transition += [[Q(0)] * cut + law(k - cut) for _ in range(k - cut)]
    elif kind == "deterministic":
        small, goals = Q(1, 10 ** rng.randint(3, 9)), rng.choices(range(k), k=k)
        transition = [[(1 - small) * (s == goal) + small * p for s, p in enumerate(row)]
                      for goal, row in zip(goals, transition, strict=True)]  # fmt: skip
    at, initial = rng.randrange(k), law(k, 0.5 * (start == "impossible"))
    with contextlib.suppress(ZeroDivisionError):
        initial = stationary(transition) if start == "stationary" else initial
    return transition, [Q(s == at) for s in range(k)] if start == "point" else initial


def tree_law(parents, root, matrices):
    """P(sequence), of sequences with mass; for each node the matrix from its parent to it."""
    every = itertools.product(range(len(root)), repeat=len(parents))
    law = {x: math.prod(Q(root[s] if v is None else matrix[x[v]][s]) for s, v, matrix in
                        zip(x, parents, matrices, strict=True)) for x in every}  # fmt: skip
    return {x: p for x, p in law.items() if p}


def chain_law(transition, initial, T):
    return tree_law([None, *range(T - 1)], initial, [transition] * T)


def plus(v, w):
    """The sum of two values; 0 is that of no record."""
    vectors = isinstance(v, tuple) and isinstance(w, tuple)
    return tuple(map(sum, zip(v, w, strict=True))) if vectors else v + w if v and w else v or w


def normalised(masses):
    """For one record the laws of the sum, without states that are impossible there."""
    return {s: {f: p / total for f, p in sorted(law.items()) if p}
            for s, law in sorted(masses.items()) if (total := sum(law.values()))}  # fmt: skip


def conditionals(law, weights):
    """P(F = f | X_t = s) as [t][s][f], from the law of all sequences."""
    records = [defaultdict(lambda: defaultdict(Q)) for _ in next(iter(law))]
    for x, p in law.items():
        total = functools.reduce(plus, (weights[s] for s in x))
        for t, s in enumerate(x):
            records[t][s][total] += p
    return list(map(normalised, records))


def mixed(terms):
    """The sum of laws, each times a factor and shifted: of (factor, shift, law)."""
    total = defaultdict(Q)
    for p, w, law in terms:
        for f, q in law.items():
            total[plus(f, w)] += p * q
    return total


def chain_conditionals(transition, initial, weights, T):
    """The same as `conditionals` of a chain's law, for chains too long to enumerate."""
    k = range(len(initial))
    before, after = [[{weights[s]: Q(initial[s])} for s in k]], [[{0: Q(1)} for _ in k]]
    for _ in range(T - 1):
        before += [[mixed((transition[r][s], weights[s], before[-1][r]) for r in k) for s in k]]
        after += [[mixed(zip(row, weights, after[-1], strict=True)) for row in transition]]
    return [normalised({s: mixed((q, f, future[s]) for f, q in past[s].items()) for s in k})
            for past, future in zip(before, reversed(after), strict=True)]  # fmt: skip


def coordinates(record):
    """All values of a record's laws, shape (n, counts), and each law in integers of one sum."""
    values = sorted({f for law in record.values() for f in law})
    common = math.lcm(*(p.denominator for law in record.values() for p in law.values()))
    masses = [[int(law.get(f, 0) * common) for f in values] for law in record.values()]
    return np.array(values).reshape(len(values), -1), np.array(masses, dtype=object)


def loss(conditionals, scale, dps=30):
    """The largest |ln L_a(y) / L_b(y)| over records, pairs of states and y, noise on each count.

    The noise has one scale, or one for each count.
    """
    # Between two values the ratio is monotone in each coordinate of y, beyond them it is constant.
    worst = mpmath.mpf(1)
    with mpmath.workdps(dps + 10):
        for values, masses in map(coordinates, conditionals):
            outputs = np.array(list(itertools.product(*map(np.unique, values.T))))
            scales, kernel = scale if isinstance(scale, list) else [scale] * values.shape[1], 1
            for own, all_of_it, each in zip(scales, values.T, outputs.T, strict=True):
                u, far = 1 / mpmath.mpmathify(own), abs(all_of_it[:, None] - each)
                one = mpmath.mpf(10) ** (dps + 10 + int(u * far.max() / mpmath.log(10)))
                table = [int(one * mpmath.exp(-u * d)) for d in range(far.max() + 1)]
                kernel = kernel * np.array(table, dtype=object)[far]
            likelihoods = (masses @ kernel).T.tolist()
            worst = max(worst, *(mpmath.mpf(max(at)) / min(at) for at in likelihoods))
        return float(mpmath.log(worst))


def chain_loss(chain, weights, T, scale):
    """The loss of a chain that starts in a law, of T records."""
    return loss(chain_conditionals(chain.transition, chain.start, weights, T), scale)


def ends(conditionals, u):
    """The largest |ln E[e^(u c F) | a] / E[e^(u c F) | b]|, c = -1, 1 (a sign for each count)."""
    with mpmath.workdps(40):
        worst, rate = mpmath.mpf(1), mpmath.mpmathify(u)
        for values, masses in map(coordinates, conditionals):
            for signs in itertools.product((-1, 1), repeat=values.shape[1]):
                means = masses @ [mpmath.exp(int(f) * rate) for f in values @ signs]
                worst = max(worst, max(means) / min(means))
        return float(mpmath.log(worst))


def least_scale(conditionals, eps):
    """The least scale whose loss is eps, by bisection; 0.0 where a thousandth of `l1` is enough."""
    spans = [np.ptp(values, axis=0).sum() for values, _ in map(coordinates, conditionals)]
    l1 = high = float(max(spans)) / float(eps)
    low = l1 / 1000
    while high - low > 1e-12 * min(high, 1):
        middle = (low + high) / 2
        low, high = (low, middle) if loss(conditionals, middle) <= eps else (middle, high)
    return high if low > l1 / 1000 else 0.0


def is_mtp2(law):
    """Whether p(x v y) p(x ^ y) >= p(x) p(y) for all sequences x and y."""
    return all(law.get(tuple(map(max, x, y)), 0) * law.get(tuple(map(min, x, y)), 0) >= p * q
               for (x, p), (y, q) in itertools.combinations(law.items(), 2))  # fmt: skip
