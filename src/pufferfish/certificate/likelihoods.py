# SPDX-License-Identifier: Apache-2.0
"""Balls for L_s(y) = sum over atoms x of P_s(x) e^-|y-x|/theta at all atoms y: two passes.

From left to right A_k = P_k + r_k A_{k-1}, from right to left B_k = r_{k+1} (P_{k+1} + B_{k+1}),
with r_k = e^-(x_k - x_{k-1})/theta, and L = A + B (theory, section 2). All terms are positive, so
nothing cancels, and Arb's exponents have no bound, so nothing underflows at any distance.
"""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly, arb_series, fmpz_poly

from pufferfish.certificate.arbs import exp_minus

Row = list[arb]

#: Evenly spaced supports go through FLINT's power series, their holes filled with zeros. A place
#: costs about half as much there as an atom in the plain recursion, hence at most this many.
PLACES_PER_ATOM = 2


class Likelihoods:
    """Computes the row of balls L_s(y), y over all atoms, for one secret after another.

    Parameters
    ----------
    index : int64 array, shape (n,)
        Places of the atoms on the lattice, increasing from 0.
    unit : Fraction
        One step of the lattice divided by theta.
    """

    def __init__(self, index: npt.NDArray[np.int64], unit: Fraction) -> None:
        self.size = len(index)
        gaps = np.diff(index)
        common = int(np.gcd.reduce(gaps)) if self.size > 1 else 1
        self.places = (index // common).tolist()
        self.length = self.places[-1] + 1
        self.even = self.length <= PLACES_PER_ATOM * self.size
        if self.even:
            self.ratio = exp_minus(common * unit)
        else:
            known = {gap: exp_minus(gap * unit) for gap in np.unique(gaps).tolist()}
            self.factors = [known[gap] for gap in gaps.tolist()]

    def row(self, counts: npt.NDArray[Any], total: int) -> Row:
        """Return L_s at all atoms, for the masses ``counts / total``."""
        masses = [int(c) for c in counts] if counts.dtype == object else counts.tolist()
        if not self.even:
            return self._uneven(masses, total)
        if self.length == self.size:
            return self._even(masses, total)
        filled = [0] * self.length
        for place, mass in zip(self.places, masses, strict=True):
            filled[place] = mass
        everywhere = self._even(filled, total)
        return [everywhere[place] for place in self.places]

    def _even(self, masses: list[int], total: int) -> Row:
        # As power series the passes are divisions by 1 - r x and, from the high end, by x - r:
        # FLINT divides by two terms with the very recursion, at a fraction of Python's cost.
        n, r = len(masses), self.ratio
        weighted = arb_poly(fmpz_poly(masses)) * (1 / arb(total))
        left = arb_series(weighted, prec=n) / arb_series([1, -r], prec=n)
        right = (weighted // arb_poly([-r, 1])) * r
        row = (left + arb_series(right, prec=n)).coeffs()
        if len(row) != n:
            # Another thread lowered FLINT's number of terms meanwhile.
            self.factors = [r] * (n - 1)
            return self._uneven(masses, total)
        return row

    def _uneven(self, masses: list[int], total: int) -> Row:
        scale = 1 / arb(total)
        weighted = [mass * scale if mass else None for mass in masses]
        row, carried = [], arb(0)
        for mass, factor in zip(weighted, itertools.chain((arb(0),), self.factors), strict=True):
            carried = carried * factor if mass is None else carried * factor + mass
            row.append(carried)
        carried = arb(0)
        for k in range(len(row) - 2, -1, -1):
            mass = weighted[k + 1]
            carried = (carried if mass is None else carried + mass) * self.factors[k]
            row[k] = row[k] + carried
        return row
