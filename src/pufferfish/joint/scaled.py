# SPDX-License-Identifier: Apache-2.0
r"""The joint loss in doubles with exponents of their own, with a proved bound of the error.

For outputs so far from the mass that plain doubles vanish: a likelihood is m 2^e with m in
[1/2, 1) a double and e a 64-bit integer, so that nothing underflows. Assumptions as in
:mod:`pufferfish.certificate.floatscan`; u = 2^-53.

**Noise.** The factors e^-(gap / theta_eff) come from balls, rounded once to such a number
(1.001 u). From left to right A_k = P_k + r_k A_{k-1}, from right to left
B_k = r_{k+1} (P_{k+1} + B_{k+1}). A term goes through at most n - 1 steps, each with the error of
the factor, of a product and of a sum, through the sum with its own place and through the last one,
A + B: 3.01 n u in all, for an axis of n atoms. A sum adds mantissas shifted to the larger exponent;
what a shift takes below the normal range is less than 2^-1000 of the sum. Powers of two are exact.

**Loss.** With lambda the error after all axes (masses and channels: :mod:`.floatproof`), the
difference of two logarithms, v = (e_i - e_j) ln 2 + ln(m_i / m_j), is wrong by at most 2 lambda
for the numbers themselves, 3.01 u |(e_i - e_j) ln 2| for the first product, 9 u for the quotient
and its logarithm, u |v| for the sum; as the first product is at most |v| + 1, together by at most
2 lambda + u (4.1 |v| + 13).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from pufferfish.arrays import FloatArray, IntArray
from pufferfish.certificate.arbs import exp_minus
from pufferfish.certificate.floatscan import UNIT
from pufferfish.joint.floatproof import FloatEnclosure, TooExtreme, rounded_before_noise, starts
from pufferfish.joint.problem import Problem
from pufferfish.precision import precision

#: The exponent of 0, below all others; all ranges over theta together are less than the next one.
_NONE = -(1 << 62)
_LONGEST = Fraction(1 << 59)
#: Atoms of an axis up to which it is passed one by one.
_MOST_ATOMS = 20_000
_BITS = 96
#: Shifts beyond this leave nothing.
_SHIFT = -1100


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Numbers m 2^e, elementwise; 0 has m = 0 and e near `_NONE`."""

    m: FloatArray
    e: IntArray

    def above(self, other: "_Scaled") -> npt.NDArray[np.bool_]:
        """Where these numbers are larger."""
        larger: npt.NDArray[np.bool_] = (self.e > other.e) | (
            (self.e == other.e) & (self.m > other.m)
        )
        return larger

    def where(self, chosen: npt.NDArray[np.bool_], other: "_Scaled") -> "_Scaled":
        """These numbers where chosen, the other ones elsewhere."""
        return _Scaled(np.where(chosen, self.m, other.m), np.where(chosen, self.e, other.e))


def enclose_scaled(problem: Problem) -> FloatEnclosure:
    """Bound a joint loss that is known to be finite.

    Raises
    ------
    TooExtreme
        If an axis is too long, or distances over theta pass about 10**17.
    """
    rounded, range_ = rounded_before_noise(problem), Fraction(0)
    for axis in problem.merged:
        if axis.noisy:
            rounded += 3.01 * len(axis.atoms)
            range_ += int(axis.index[-1]) * axis.rate
            if len(axis.atoms) > _MOST_ATOMS or range_ > _LONGEST:
                raise TooExtreme
    peaks = []
    with np.errstate(all="ignore"):
        for rho in range(len(problem.masses)):
            peaks.append((*_adversary(problem, rho), rho))
    value, cell, pair, rho = max(peaks)
    error = 1.01 * UNIT * (2 * rounded + 4.1 * value + 13)
    lower = max(0.0, math.nextafter(value - error, -math.inf))
    return FloatEnclosure(lower, math.nextafter(value + error, math.inf), cell, pair, rho)


def _adversary(problem: Problem, rho: int) -> tuple[float, int, tuple[int, int]]:
    """Return the largest computed loss, its cell and its rows, likelier first."""
    rows = _rows(problem, rho)
    if not problem.all_pairs or len(problem.rows) == 2:
        kept = list(rows)
        found = []
        for i, j in problem.pairs:
            first = kept[i].above(kept[j])
            value, cell = _largest(kept[i].where(first, kept[j]), kept[j].where(first, kept[i]))
            found.append((value, cell, (i, j) if first[cell] else (j, i)))
        return max(found)
    high = low = next(rows)
    high_row, low_row = np.zeros((2, len(high.m)), dtype=np.int32)
    for s, row in enumerate(rows, start=1):
        above, below = row.above(high), low.above(row)
        high, low = row.where(above, high), row.where(below, low)
        high_row[above] = s
        low_row[below] = s
    value, cell = _largest(high, low)
    return value, cell, (int(high_row[cell]), int(low_row[cell]))


def _largest(high: _Scaled, low: _Scaled) -> tuple[float, int]:
    """Return the largest ln(high / low) and its place; where both are 0 there is none."""
    logs = (high.e - low.e) * math.log(2) + np.log(high.m / low.m)
    logs = np.where(low.m > 0, logs, 0.0)
    cell = int(logs.argmax())
    return max(0.0, float(logs[cell])), cell


def _rows(problem: Problem, rho: int) -> Iterator[_Scaled]:
    """Yield the likelihoods of one secret after another on the whole grid, flat."""
    for array in starts(problem, rho):
        m, small = np.frexp(array)
        e = np.where(m > 0, small.astype(np.int64), _NONE)
        for axis in problem.merged:
            for d, length in enumerate(axis.shape):
                # The axis in turn is the first one; after all of them they are in order again.
                m, e = m.reshape(length, -1), e.reshape(length, -1)
                if axis.noisy and d == len(axis.shape) - 1:
                    passed = _noise(_Scaled(m, e), axis.index, axis.rate)
                    m, e = passed.m, passed.e
                m, e = np.ascontiguousarray(m.T), np.ascontiguousarray(e.T)
        yield _Scaled(m.reshape(-1), e.reshape(-1))


def _noise(masses: _Scaled, index: IntArray, rate: Fraction) -> _Scaled:
    """Pass the noise over the first axis, in both directions."""
    gaps = np.diff(index).tolist()
    with precision(_BITS):
        known = {gap: _factor(gap * rate) for gap in set(gaps)}
    m, e = masses.m, masses.e
    forth = _Scaled(m.copy(), e.copy())
    for k, gap in enumerate(gaps, start=1):
        factor, power = known[gap]
        _put_sum(forth, k, m[k], e[k], forth.m[k - 1] * factor, forth.e[k - 1] + power)
    carried = _Scaled(m[-1:].copy(), e[-1:].copy())
    for k in range(len(gaps) - 1, -1, -1):
        factor, power = known[gaps[k]]
        come_m, come_e = carried.m[0] * factor, carried.e[0] + power
        _put_sum(forth, k, forth.m[k], forth.e[k], come_m, come_e)
        _put_sum(carried, 0, m[k], e[k], come_m, come_e)
    return forth


def _put_sum(
    into: _Scaled, at: int, m: FloatArray, e: IntArray, other_m: FloatArray, other_e: IntArray
) -> None:
    """Put the sum of two rows of numbers into a row."""
    top = np.maximum(e, other_e)
    total = _shifted(m, e - top)
    total += _shifted(other_m, other_e - top)
    into.m[at], power = np.frexp(total)
    np.add(top, power, out=into.e[at])


def _shifted(m: FloatArray, by: IntArray) -> FloatArray:
    shifted: FloatArray = np.ldexp(m, np.maximum(by, _SHIFT).astype(np.int32))
    return shifted


def _factor(distance: Fraction) -> tuple[float, int]:
    """Return e^-distance as a mantissa in about [1/2, 1], rounded once, and its exponent."""
    value = exp_minus(distance)
    man, exponent = value.mid().man_exp()
    power = int(exponent) + int(man).bit_length()
    return float(value * arb((1, -power))), power
