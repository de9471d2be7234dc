# SPDX-License-Identifier: Apache-2.0
"""The robust loss with as many digits as it takes, for the search of a scale.

A small epsilon leaves a double too few. The extreme priors are exact and the same at every scale;
only the likelihoods are balls. This is not the certificate, which shares no code with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import flint

from pufferfish.errors import PufferfishError
from pufferfish.loss import Attained
from pufferfish.precise import bits_for
from pufferfish.precision import precision
from pufferfish.robust.loss import RobustLoss
from pufferfish.robust.windows import Extreme

#: A relative excess is known to this.
_KNOWN = 2.0**-56
#: Doublings of the precision.
_TRIES = 8

T = TypeVar("T")


class PreciseExcess:
    """(robust loss - epsilon) / epsilon as a function of u = step / theta, in ball arithmetic.

    Parameters
    ----------
    loss : RobustLoss
        Its extreme priors are what is evaluated.
    epsilon : Fraction
        Above 0.
    """

    def __init__(self, loss: RobustLoss, epsilon: Fraction) -> None:
        self.loss, self.epsilon = loss, epsilon
        self.bits = bits_for(epsilon)
        self.places: list[int] = loss.index.tolist()

    def worst(self, u: float) -> tuple[float, Sequence[Attained]]:
        """Return the excess at u > 0, and the witness that attains it."""
        value, witness = self._known(u, self._worst)
        return float(value.mid()), [witness]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the excess at one witness, and its slope in u."""

        def both(ball: flint.arb) -> tuple[flint.arb, flint.arb]:
            high, low = self.loss.extremes_of(witness)
            top, fall = self._moments(high, witness.atom, ball)
            bottom, other_fall = self._moments(low, witness.atom, ball)
            return self._relative((top / bottom).log()), (other_fall - fall) / self._epsilon()

        value, slope = self._known(u, both)
        return float(value.mid()), float(slope.mid())

    def reach(self, u: float) -> float:
        """Return the cost of one witness, as a share of that of all: little."""
        return 0.1

    def _known(
        self, u: float, evaluate: Callable[[flint.arb], tuple[flint.arb, T]]
    ) -> tuple[flint.arb, T]:
        """Evaluate at a precision that is enough."""
        size = int(self.places[-1] * Fraction(u)).bit_length()
        for _ in range(_TRIES):
            with precision(self.bits + size):
                value, more = evaluate(flint.arb(u))
                if value.is_finite() and value.rad() <= _KNOWN * (1 + abs(value.mid())):
                    return value, more
            self.bits *= 2
        raise PufferfishError("the robust loss could not be evaluated to enough digits")

    def _epsilon(self) -> flint.arb:
        return flint.arb(self.epsilon.numerator) / self.epsilon.denominator

    def _relative(self, value: flint.arb) -> flint.arb:
        return (value - self._epsilon()) / self._epsilon()

    def _worst(self, u: flint.arb) -> tuple[flint.arb, Attained]:
        best, witness = flint.arb(0), Attained(0, *self.loss.pairs[0], 0)
        decay = _Decay(u)
        steps = [decay(b - a) for a, b in zip(self.places, self.places[1:], strict=False)]
        for rho, rows in enumerate(self.loss.extremes):
            tops = [self._values(high, steps, decay) for high, _ in rows]
            bottoms = [self._values(low, steps, decay) for _, low in rows]
            for i, j in self.loss.pairs:
                for y, (a, b) in enumerate(zip(tops[i], bottoms[j], strict=True)):
                    ratio = a / b
                    # By midpoints: that the ball is narrow is seen in the end.
                    if not ratio.is_finite():
                        return ratio, Attained(rho, i, j, y)
                    if ratio.mid() > best.mid():
                        best, witness = ratio, Attained(rho, i, j, y)
        return self._relative(best.log()), witness

    def _values(
        self, extreme: Extreme, steps: Sequence[flint.arb], decay: _Decay
    ) -> list[flint.arb]:
        """Return <P, k_y> at every output, from the running sums of the weights."""
        places, shells = self.places, extreme.shells
        weights = [flint.arb(w) for w in shells.weights]
        left, right = _passes(weights, steps)
        base = None
        if extreme.base is not None:
            masses = [flint.arb(w) for w in extreme.base]
            both = zip(*_passes(masses, steps), masses, strict=True)
            base = [a + b - c for a, b, c in both]
        slices = (shells.first, shells.last) if extreme.near else (
            shells.beyond_first, shells.beyond_last
        )  # fmt: skip
        firsts, lasts = (ends.tolist() for ends in slices)
        distances, targets = shells.distance.tolist(), extreme.target.tolist()
        unit, jump = flint.arb(extreme.unit), flint.arb(extreme.jump)
        values = []
        for y, place in enumerate(places):
            first, last = firsts[y], lasts[y]
            value = flint.arb(0) if base is None else base[y]
            if not extreme.near or first < last:
                far = flint.arb(0)
                if first > 0:
                    far += left[first - 1] * decay(place - places[first - 1])
                if last < len(places):
                    far += right[last] * decay(places[last] - place)
                value += left[y] + right[y] - weights[y] - far if extreme.near else far
            rest = int(extreme.rest[y])
            if rest:
                value += rest * decay(distances[y])
            if extreme.jump:
                value += jump * decay(abs(place - places[targets[y]]))
            values.append(value / unit)
        return values

    def _moments(self, extreme: Extreme, y: int, u: flint.arb) -> tuple[flint.arb, flint.arb]:
        """Return <P, k_y>, and by what share of itself it falls with u."""
        masses, _ = extreme.masses_at(y)
        terms = [
            (abs(x - self.places[y]), mass) for x, mass in zip(self.places, masses, strict=True)
        ]
        terms.append((int(extreme.shells.distance[y]), int(extreme.rest[y])))
        total, moment = flint.arb(0), flint.arb(0)
        for distance, mass in terms:
            if mass:
                weight = mass * (-distance * u).exp()
                total += weight
                moment += distance * weight
        return total / extreme.unit, moment / total


class _Decay:
    """e^-(d u) for whole d; each is worked out once."""

    def __init__(self, u: flint.arb) -> None:
        self.u = u
        self.known: dict[int, flint.arb] = {}

    def __call__(self, steps: int) -> flint.arb:
        if steps not in self.known:
            self.known[steps] = (-steps * self.u).exp()
        return self.known[steps]


def _passes(
    weights: Sequence[flint.arb], steps: Sequence[flint.arb]
) -> tuple[list[flint.arb], list[flint.arb]]:
    """Return the sums of weight * e^-distance to the left and to the right, own atom included."""
    left = [weights[0]]
    for weight, step in zip(weights[1:], steps, strict=True):
        left.append(left[-1] * step + weight)
    right = [weights[-1]]
    for weight, step in zip(weights[-2::-1], steps[::-1], strict=True):
        right.append(right[-1] * step + weight)
    return left, right[::-1]
