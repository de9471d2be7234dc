# SPDX-License-Identifier: Apache-2.0
"""The same loss with as many digits as it takes: small epsilons leave a double too few.

A slice of mass 1e-15 at epsilon 1e-15 is one unit in the last place of a likelihood. This module
evaluates the loss in ball arithmetic for the search of a scale; it is not the certificate, which
shares no code with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import flint

from pufferfish.loss import Witness
from pufferfish.scenario import Scenario

#: Up to so many cells (adversaries x secrets x atoms) digits are cheap: about 20 milliseconds.
PRECISE_CELLS = 20_000


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set flint's working precision for a while."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def bits_for(epsilon: Fraction) -> int:
    """Return a precision at which losses near epsilon are known to many digits."""
    return 128 + max(0, math.ceil(-math.log2(epsilon)) if epsilon > Fraction(1, 10**300) else 1024)


class PreciseLoss:
    """Loss of Laplace noise as a function of u = step / theta, in ball arithmetic."""

    def __init__(self, scenario: Scenario, bits: int) -> None:
        self.bits = bits
        lattice = scenario.lattice
        self.step = lattice.step
        self.places: list[int] = lattice.index.tolist()
        self.gaps = [b - a for a, b in zip(self.places, self.places[1:], strict=False)]
        secrets = scenario.protected
        place = {s: k for k, s in enumerate(secrets)}
        self.pairs = [(place[a], place[b]) for a, b in scenario.pairs]
        self.all_pairs = scenario.is_all_pairs and len(secrets) > 2
        self.counts: list[list[list[int]]] = []
        self.totals: list[list[int]] = []
        for prior in scenario.priors:
            rows = [prior.row(s) for s in secrets]
            self.counts.append([[int(c) for c in prior.counts[r].tolist()] for r in rows])
            self.totals.append([prior.totals[r] for r in rows])

    def _bits_at(self, u: Fraction | None) -> int:
        """Return enough bits for exp(-distance * u): the exponent's own size costs some."""
        largest = 0 if u is None else int((self.places[-1] - self.places[0]) * u)
        return self.bits + largest.bit_length()

    def loss(self, theta: Fraction) -> float:
        """Return the loss at an exact scale, to the nearest double; ``inf`` where infinite."""
        u = None if theta == 0 else self.step / theta
        with precision(self._bits_at(u)):
            likelihoods = self._masses() if u is None else self._likelihoods(_ball(u))
            value, _ = self._worst(likelihoods)
            return math.inf if value is None else float(value)

    def excess(self, u: float, epsilon: Fraction) -> tuple[float, Witness]:
        """Return (loss - epsilon) / epsilon at u, and where the loss is attained.

        The difference is taken before it becomes a double.
        """
        with precision(self._bits_at(Fraction(u))):
            value, witness = self._worst(self._likelihoods(flint.arb(u)))
            return self._relative(value, epsilon), witness

    def unchanged(self, epsilon: Fraction) -> tuple[float, Witness]:
        """Return (loss - epsilon) / epsilon without noise."""
        while True:
            with precision(self.bits):
                value, witness = self._worst(self._masses())
                if value is None or not (value - _ball(epsilon)).contains(0):
                    return self._relative(value, epsilon), witness
            # ln of a rational is never one: with enough digits it differs from epsilon.
            self.bits *= 2

    def excess_at(self, witness: Witness, u: float, epsilon: Fraction) -> tuple[float, float]:
        """Return (log-ratio - epsilon) / epsilon at a witness, and its slope in u."""
        with precision(self._bits_at(Fraction(u))):
            ball = flint.arb(u)
            y = self.places[witness.atom]
            logs, slopes = [], []
            for row in (witness.numerator, witness.denominator):
                total, moment = flint.arb(0), flint.arb(0)
                counts = self.counts[witness.adversary][row]
                for x, c in zip(self.places, counts, strict=True):
                    if c:
                        d = abs(x - y)
                        weight = c * (-d * ball).exp()
                        total += weight
                        moment += d * weight
                logs.append((total / self.totals[witness.adversary][row]).log())
                slopes.append(-moment / total)
            value = logs[0] - logs[1]
            eps = _ball(epsilon)
            return float((value - eps) / eps), float((slopes[0] - slopes[1]) / eps)

    def _relative(self, value: flint.arb | None, epsilon: Fraction) -> float:
        if value is None:
            return math.inf
        eps = _ball(epsilon)
        return float(((value - eps) / eps).mid())

    def _masses(self) -> list[list[list[flint.arb]]]:
        return [
            [[flint.arb(c) / n for c in row] for row, n in zip(rows, totals, strict=True)]
            for rows, totals in zip(self.counts, self.totals, strict=True)
        ]

    def _likelihoods(self, u: flint.arb) -> list[list[list[flint.arb]]]:
        known: dict[int, flint.arb] = {}
        factors = []
        for gap in self.gaps:
            if gap not in known:
                known[gap] = (-gap * u).exp()
            factors.append(known[gap])
        return [
            [_both_ways(row, n, factors) for row, n in zip(rows, totals, strict=True)]
            for rows, totals in zip(self.counts, self.totals, strict=True)
        ]

    def _worst(self, likelihoods: list[list[list[flint.arb]]]) -> tuple[flint.arb | None, Witness]:
        """Return the largest log-ratio (None for infinity), by midpoints, and its witness."""
        best = flint.arb(1)
        witness = Witness(0, self.pairs[0][0], self.pairs[0][1], 0)
        for rho, rows in enumerate(likelihoods):
            if self.all_pairs:
                for k, column in enumerate(zip(*rows, strict=True)):
                    # By midpoints; the largest over the smallest, linear in the secrets.
                    i = j = 0
                    for s, value in enumerate(column):
                        i = s if value > column[i] else i
                        j = s if value < column[j] else j
                    if column[j].is_zero():
                        if column[i].is_zero():
                            continue
                        return None, Witness(rho, i, j, k)
                    ratio = column[i] / column[j]
                    if ratio > best:
                        best, witness = ratio, Witness(rho, i, j, k)
                continue
            for i, j in self.pairs:
                for k, (a, b) in enumerate(zip(rows[i], rows[j], strict=True)):
                    if a.is_zero() or b.is_zero():
                        if a.is_zero() and b.is_zero():
                            continue
                        return None, Witness(
                            rho, j if a.is_zero() else i, i if a.is_zero() else j, k
                        )
                    forward = a / b
                    if forward > best:
                        best, witness = forward, Witness(rho, i, j, k)
                    elif forward * best < 1:
                        best, witness = b / a, Witness(rho, j, i, k)
        return best.log(), witness


def _both_ways(counts: list[int], total: int, factors: list[flint.arb]) -> list[flint.arb]:
    left = []
    running = flint.arb(0)
    for k, c in enumerate(counts):
        running = (running * factors[k - 1] if k else running) + c
        left.append(running)
    running = flint.arb(0)
    for k in range(len(counts) - 2, -1, -1):
        running = (running + counts[k + 1]) * factors[k]
        left[k] = left[k] + running
    return [value / total for value in left]


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(value.numerator) / value.denominator
