# SPDX-License-Identifier: Apache-2.0
"""The same loss with as many digits as it takes: small epsilons leave a double too few.

A slice of mass 1e-15 at epsilon 1e-15 is one unit in the last place of a likelihood. This module
evaluates the loss in ball arithmetic for the search of a scale; it is not the certificate, which
shares no code with it. The search looks at midpoints, so every ball is first seen to be narrow.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from pufferfish.errors import PufferfishError
from pufferfish.loss import Attained
from pufferfish.precision import precision
from pufferfish.scenario import Scenario

#: Up to so many cells (adversaries x secrets x atoms) digits are cheap: about 20 milliseconds.
PRECISE_CELLS = 20_000

#: Bits for an epsilon of 1; a smaller one needs as many more as it has binary places.
_LEAST_BITS = 128
#: Bits of a loss that is returned as a double.
_DOUBLE = 60
#: Bits that the rounding errors of a sum over the whole support may cost.
_SPENT = 48
#: No loss needs so many bits: numbers of 6,000 are not even read.
_MOST_BITS = 1 << 17


def bits_for(epsilon: Fraction) -> int:
    """Return a precision at which losses near epsilon are known to many digits."""
    size = epsilon.denominator.bit_length() - epsilon.numerator.bit_length()
    return _LEAST_BITS + max(0, size + 1)


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
        """Return the loss at an exact scale, to the nearest double; ``inf`` where infinite.

        Raises
        ------
        PufferfishError
            If the digits do not settle.
        """
        if not self._differ():
            return 0.0
        u = None if theta == 0 else self.step / theta
        while self.bits <= _MOST_BITS:
            with precision(self._bits_at(u)):
                likelihoods = self._masses() if u is None else self._likelihoods(_ball(u))
                value, _ = self._worst(likelihoods)
                if value is None:
                    return math.inf
                if value > 0 and value.rel_accuracy_bits() >= _DOUBLE:
                    return float(value)
            # Distributions that differ do so at every scale, however little.
            self.bits *= 2
        raise PufferfishError("the loss was not found to the precision of a double")

    def _differ(self) -> bool:
        """Whether any pair's distributions differ at all, for any adversary."""
        return any(
            [c * totals[j] for c in rows[i]] != [c * totals[i] for c in rows[j]]
            for rows, totals in zip(self.counts, self.totals, strict=True)
            for i, j in self.pairs
        )

    def excess(self, u: float, epsilon: Fraction) -> tuple[float, Attained]:
        """Return (loss - epsilon) / epsilon at u, and where the loss is attained.

        The difference is taken before it becomes a double.
        """
        with precision(self._bits_at(Fraction(u))):
            value, witness = self._worst(self._likelihoods(flint.arb(u)))
            return self._relative(value, epsilon), witness

    def unchanged(self, epsilon: Fraction) -> tuple[float, Attained]:
        """Return (loss - epsilon) / epsilon without noise."""
        while self.bits <= _MOST_BITS:
            with precision(self.bits):
                value, witness = self._worst(self._masses())
                if value is None or not (value - _ball(epsilon)).contains(0):
                    return self._relative(value, epsilon), witness
            # ln of a rational is never one: with enough digits it differs from epsilon.
            self.bits *= 2
        raise PufferfishError("it was not decided whether the loss without noise is epsilon")

    def excess_at(self, witness: Attained, u: float, epsilon: Fraction) -> tuple[float, float]:
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
            slope = (slopes[0] - slopes[1]) / _ball(epsilon)
            return self._relative(logs[0] - logs[1], epsilon), float(slope.mid())

    def _relative(self, value: flint.arb | None, epsilon: Fraction) -> float:
        """Return (value - epsilon) / epsilon, of which a narrow ball must be known."""
        if value is None:
            return math.inf
        eps = _ball(epsilon)
        relative = (value - eps) / eps
        known = flint.arb((1, -(self.bits - (bits_for(epsilon) - _LEAST_BITS) - _SPENT)))
        if not relative.rad() <= known * (1 + abs(relative.mid())):
            raise PufferfishError(
                "the loss was evaluated with fewer digits than were asked for: something else in "
                "this process changes the precision of FLINT"
            )
        return float(relative.mid())

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

    def _worst(self, likelihoods: list[list[list[flint.arb]]]) -> tuple[flint.arb | None, Attained]:
        """Return the largest log-ratio (None for infinity), by midpoints, and its witness."""
        best = flint.arb(1)
        witness = Attained(0, self.pairs[0][0], self.pairs[0][1], 0)
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
                        return None, Attained(rho, i, j, k)
                    ratio = column[i] / column[j]
                    if ratio > best:
                        best, witness = ratio, Attained(rho, i, j, k)
                continue
            for i, j in self.pairs:
                for k, (a, b) in enumerate(zip(rows[i], rows[j], strict=True)):
                    if a.is_zero() or b.is_zero():
                        if a.is_zero() and b.is_zero():
                            continue
                        return None, Attained(
                            rho, j if a.is_zero() else i, i if a.is_zero() else j, k
                        )
                    forward = a / b
                    if forward > best:
                        best, witness = forward, Attained(rho, i, j, k)
                    elif forward * best < 1:
                        best, witness = b / a, Attained(rho, j, i, k)
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
