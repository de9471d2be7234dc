# SPDX-License-Identifier: Apache-2.0
r"""The loss in doubles with a proved bound of the error, for supports too large for balls.

Assumptions and the error of one pass: see :mod:`pufferfish.certificate.floatscan`; u = 2^-53, eta =
2^-1022. What remains is to put passes together and to take the logarithm of the worst ratio.

**Masses.** count / total, as the rounded count times the rounded 1 / total: 3 u. Whole numbers too
large for int64 are divided exactly and rounded once. A mass in (0, 2^-900) is refused.

**Plain atoms.** Lh_s = left + right (exclusive), rounded, so mu = 4 with lambda and alpha of the
theorem: Lh_s is within exp(+-lambda) L_s, but for 2 alpha. Where the two Lh of a ratio are at least
`LOW` = 2^-940, the second matters less than kappa = 2.02 alpha / LOW relative, and

    | ln (L_i / L_j) - ln fl(Lh_i / Lh_j) |  <=  2 lambda + 2 kappa + 1.001 u,

the last term for the quotient. The same then holds between the maxima over all such atoms.

**Far atoms.** Where some Lh_s < LOW, no mass of s is anywhere near (2^-900 would show), so P_s is 0
there. With z the last atom before y that has mass, and z' the first one after it,

    L_s(y) = left(z) exp(-c (y - z)) + right(z') exp(-c (z' - y)),

left and right inclusive, each at least a mass, at least 2^-900, so that alpha is less than kappa of
them; its logarithm needs no exponential that underflows. With l the computed logarithm of left(z),
b the computed c (y - z) and v = l - b, the error of v is at most

    lambda + kappa + 1.01 u (8 |l| + 2.1 b + |v|)

(logarithm 8 u, argument 2.1 u as in the theorem, difference u), and one u more for right(z'), the
rounded sum of the exclusive pass and the mass. Let h be the larger and g the smaller of the two
sides, e_h and e_g their errors, q = exp(g - h). ln(e^h + e^g) errs by at most max(e_h, e_g), and by
at most e_h + 4 q e_g where e_g <= 1/2 (the smaller side has at most the weight q); evaluating
h + log1p(exp(g - h)) adds 1.01 u (15 + |value|). A difference of such logarithms over two secrets
is wrong by at most the sum of the errors.

Only atoms of the pair itself need the far formula: elsewhere the ratio is no larger (theory,
section 2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from pufferfish.arrays import FloatArray
from pufferfish.certificate.arbs import log_bounds
from pufferfish.certificate.floatscan import UNIT, absolute_error, relative_error, scan
from pufferfish.certificate.record import Case, Finding
from pufferfish.precision import precision
from pufferfish.prior import Prior
from pufferfish.scenario import Scenario

#: Below this a sum is left to the far formula.
LOW = 2.0**-940

#: Smaller masses are refused: they might vanish beside what underflows.
_LEAST_MASS = 2.0**-900

#: Beyond this range the far distances themselves might overflow.
_LONGEST = 1e305

#: Far atoms are worked on in pieces, to bound the memory.
_PIECE = 2**18


class TooExtreme(ArithmeticError):
    """The scenario lies outside what the error bound is proved for; balls can do it."""


@dataclass(frozen=True)
class _Peak:
    """Proven bounds of one loss, and where the computed one is largest."""

    lower: float
    upper: float
    case: Case
    atom: int


def float_finding(
    scenario: Scenario, scale: float, epsilon: Fraction | None
) -> tuple[Finding, float]:
    """Bound the loss in floating point, and compare it with epsilon.

    Parameters
    ----------
    scenario : Scenario
        Exact priors on a lattice; m protected secrets, n atoms.
    scale : float
        theta > 0, taken as the exact rational of the double.
    epsilon : Fraction or None
        The exact bound to compare with.

    Returns
    -------
    finding : Finding
        ``upper`` is at least the true loss; inf where the bound is not proved for such a scenario.
    error : float
        The upper minus the lower bound, halved: how far the computed loss may be off.
    """
    cases = [(rho, pair) for rho in range(len(scenario.priors)) for pair in scenario.pairs]
    try:
        with np.errstate(all="ignore"):
            peaks, open_peaks = _all_peaks(scenario, scale, epsilon)
    except TooExtreme:
        undecided = frozenset(cases) if epsilon is not None else frozenset()
        return Finding(0.0, math.inf, undecided=undecided), math.inf
    lower = max(peak.lower for peak in peaks)
    upper = max(peak.upper for peak in peaks)
    worst = max(peaks, key=lambda peak: peak.upper)
    finding = Finding(
        lower,
        upper,
        worst.case,
        worst.atom,
        refuted=epsilon is not None and lower > epsilon,
        undecided=frozenset(peak.case for peak in open_peaks),
    )
    return finding, math.nextafter((upper - lower) / 2, math.inf)


def _all_peaks(
    scenario: Scenario, scale: float, epsilon: Fraction | None
) -> tuple[list[_Peak], list[_Peak]]:
    """Return the peaks of all adversaries, and those cases' that were not proved."""
    peaks: list[_Peak] = []
    open_peaks: list[_Peak] = []
    for rho, prior in enumerate(scenario.priors):
        sums = _Sums(scenario, prior, scale)
        if scenario.is_all_pairs:
            found = [sums.all_pairs(rho)]
            peaks += found
            if len(scenario.pairs) > 1 and _undecided(found[0], epsilon):
                found = [sums.pair((rho, pair)) for pair in scenario.pairs]
        else:
            found = [sums.pair((rho, pair)) for pair in scenario.pairs]
            peaks += found
        open_peaks += [peak for peak in found if not _proved(peak, epsilon)]
    return peaks, open_peaks


def _proved(peak: _Peak, epsilon: Fraction | None) -> bool:
    return epsilon is None or peak.upper <= epsilon


def _undecided(peak: _Peak, epsilon: Fraction | None) -> bool:
    return not _proved(peak, epsilon) and (epsilon is None or peak.lower <= epsilon)


class _Sums:
    """L_s of one adversary at all atoms, with the bounds of its error."""

    def __init__(self, scenario: Scenario, prior: Prior, scale: float) -> None:
        self.secrets = scenario.protected
        self.index = scenario.lattice.index
        self.rate = _quotient(scenario.lattice.step / Fraction(scale))
        n, span = len(self.index), self.rate * float(self.index[-1])
        if not span < _LONGEST:
            raise TooExtreme
        self.masses = _masses(prior, self.secrets)
        mirrored = (self.index[-1] - self.index)[::-1]
        self.left = scan(self.index, self.masses, self.rate, inclusive=True)
        self.right = scan(mirrored, self.masses[:, ::-1], self.rate, inclusive=False)[:, ::-1]
        self.total = self.left + self.right
        self.relative = relative_error(n, 4, span)
        self.lost = 2.02 * absolute_error(n) / LOW
        if self.lost > UNIT:
            raise TooExtreme

    def all_pairs(self, rho: int) -> _Peak:
        """The largest over the smallest secret at every atom; O(m n)."""
        return self._peak(rho, list(range(len(self.secrets))))

    def pair(self, case: Case) -> _Peak:
        """Both directions of one pair; O(n)."""
        return self._peak(case[0], [self.secrets.index(secret) for secret in case[1]])

    def _peak(self, rho: int, rows: list[int]) -> _Peak:
        total = self.total if len(rows) == len(self.secrets) else self.total[rows]
        high, low = total.max(axis=0), total.min(axis=0)
        plain = low >= LOW
        if bool(plain.all()):
            ratios, far = high / low, np.empty(0, dtype=np.intp)
        else:
            # Where nothing plain is left the ratio 1 is harmless: no loss is below 0.
            ratios = np.where(plain, high / low, 1.0)
            far = np.flatnonzero(~plain & (self.masses[rows] > 0).any(axis=0))
        atom = int(ratios.argmax())
        error = self._plain_error()
        with precision(64):
            lower, upper = log_bounds(arb(float(ratios[atom])))
        lower, upper = _below(lower, error), _above(upper, error)
        for piece in _pieces(far, len(rows)):
            far_lower, far_upper, far_atom = self._far(rows, piece)
            atom = far_atom if far_upper > upper else atom
            lower, upper = max(lower, far_lower), max(upper, far_upper)
        return _Peak(lower, upper, self._case(rho, rows, atom), atom)

    def _plain_error(self) -> float:
        """Return the bound for plain atoms: 2 lambda + 2 kappa + 1.001 u."""
        return 2 * self.relative + 2 * self.lost + 1.01 * UNIT

    def _case(self, rho: int, rows: list[int], atom: int) -> Case:
        if len(rows) > 2:
            column = self._logs(rows, np.array([atom]))[0][:, 0]
            ends = int(column.argmax()), len(column) - 1 - int(column[::-1].argmin())
            rows = [rows[s] for s in sorted(ends)]
        return rho, (self.secrets[rows[0]], self.secrets[rows[1]])

    def _far(self, rows: list[int], atoms: npt.NDArray[np.intp]) -> tuple[float, float, int]:
        """Return bounds of the loss over some far atoms, and the worst of them."""
        logs, errors = self._logs(rows, atoms)
        # The sums below round once more each.
        errors = 1.01 * errors + 4 * UNIT * np.abs(logs)
        upper = (logs + errors).max(axis=0) - (logs - errors).min(axis=0)
        lower = (logs - errors).max(axis=0) - (logs + errors).min(axis=0)
        worst = int(upper.argmax())
        return (
            max(0.0, math.nextafter(float(lower.max()), -math.inf)),
            math.nextafter(float(upper[worst]), math.inf),
            int(atoms[worst]),
        )

    def _logs(self, rows: list[int], atoms: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return ln L_s at some atoms and the bounds of their errors, both (rows, atoms)."""
        logs, errors = np.empty((2, len(rows), len(atoms)))
        for at, s in enumerate(rows):
            total = self.total[s, atoms]
            plain = total >= LOW
            value = np.log(np.where(plain, total, 1.0))
            error = self.relative + self.lost + 8.1 * UNIT * np.abs(value)
            if not bool(plain.all()):
                far = ~plain
                value[far], error[far] = self._far_logs(s, atoms[far])
            logs[at], errors[at] = value, error
        return logs, errors

    def _far_logs(self, s: int, atoms: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        own = np.flatnonzero(self.masses[s] > 0)
        after = np.searchsorted(own, atoms)
        before = after - 1
        sides = []
        for place, present in ((before, before >= 0), (after, after < len(own))):
            z = own[np.clip(place, 0, len(own) - 1)]
            inclusive = self.left[s, z]
            if place is after:
                inclusive = self.right[s, z] + self.masses[s, z]
            log = np.log(inclusive)
            distance = self.rate * np.abs(self.index[atoms] - self.index[z])
            value = log - distance
            error = (
                self.relative
                + self.lost
                + UNIT
                + 1.01 * UNIT * (8 * np.abs(log) + 2.1 * distance + np.abs(value))
            )
            sides.append((np.where(present, value, -np.inf), np.where(present, error, 0.0)))
        (one, one_error), (other, other_error) = sides
        swap = other > one
        high, low = np.where(swap, other, one), np.where(swap, one, other)
        high_error = np.where(swap, other_error, one_error)
        low_error = np.where(swap, one_error, other_error)
        weight = np.exp(low - high)
        total = high + np.log1p(weight)
        error = np.where(
            low_error <= 0.5,
            high_error + 4 * weight * low_error,
            np.maximum(high_error, low_error),
        )
        return total, error + 1.01 * UNIT * (15 + np.abs(total))


def _masses(prior: Prior, secrets: tuple[str, ...]) -> FloatArray:
    masses = np.empty((len(secrets), prior.support.size))
    for row, secret in zip(masses, secrets, strict=True):
        at = prior.row(secret)
        counts, total = prior.counts[at], prior.totals[at]
        if counts.dtype == object:
            # True division of Python integers rounds once.
            row[:] = [int(count) / total for count in counts]
            least = min(int(count) for count in counts if count)
            if Fraction(least, total) < _LEAST_MASS:
                raise TooExtreme
        else:
            row[:] = counts
            row *= 1 / total
    return masses


def _quotient(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise TooExtreme from None


def _pieces(atoms: npt.NDArray[np.intp], rows: int) -> list[npt.NDArray[Any]]:
    size = max(1, _PIECE // rows)
    return [atoms[at : at + size] for at in range(0, len(atoms), size)]


def _above(number: float, error: float) -> float:
    return math.nextafter(number + error, math.inf)


def _below(number: float, error: float) -> float:
    return max(0.0, math.nextafter(number - error, -math.inf))
