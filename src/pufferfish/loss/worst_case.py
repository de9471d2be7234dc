# SPDX-License-Identifier: Apache-2.0
"""What one release tells at most, whatever is known of the value: its max divergence.

diameter / theta for noise, the largest ln M(y|x) / M(y|x') for a channel, infinite where a zero
stands against a positive chance (theory, section 6). Diameters over scales stay fractions: ten
times a tenth is one.
"""

import math
from fractions import Fraction

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.kernel import Mechanism, rows_of
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray, precision
from pufferfish.support import Support, lattice_of

_BITS = 128


def worst_case(
    mechanism: Mechanism, support: Support, atoms: IntArray | None = None
) -> Fraction | None:
    """Return the largest ln k(y|x) / k(y|x') of one mechanism; None: infinite.

    It is exact for noise, and rounded up for a channel. ``atoms``: the positions that x and x' can
    have, increasing; by default the whole support.
    """
    atoms = np.arange(support.size, dtype=np.int64) if atoms is None else atoms
    if isinstance(mechanism, DiscreteLaplace):
        lattice = lattice_of(support)
        diameter = lattice.value(int(atoms[-1])) - lattice.value(int(atoms[0]))
        if diameter == 0:
            return Fraction(0)
        if mechanism.scale == 0 or (lattice.step / mechanism.step).denominator != 1:
            return None
        return diameter / Fraction(mechanism.scale)
    rows = rows_of(support, mechanism)[atoms]
    if (rows < 0).any():
        lost = support.name(int(atoms[int(np.argmax(rows < 0))]))
        raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    denominators = [mechanism.denominators[x] for x in rows.tolist()]
    common = math.lcm(*denominators)
    factors = np.array([common // d for d in denominators], dtype=object)
    chances = mechanism.rows[rows] * factors[:, None]
    ratio = Fraction(1)
    for high, low in zip(chances.max(axis=0).tolist(), chances.min(axis=0).tolist(), strict=True):
        if high > 0 and low == 0:
            return None
        if high * ratio.denominator > ratio.numerator * low:
            ratio = Fraction(high, low)
    return _log_up(ratio)


def _log_up(ratio: Fraction) -> Fraction:
    """Return a number at or above ln of a ratio of at least 1, near it."""
    from flint import arb, fmpq  # slow to import, and not needed for noise

    if ratio == 1:
        return Fraction(0)
    with precision(_BITS):
        end = arb(fmpq(ratio.numerator, ratio.denominator)).log().upper()
        man, exponent = end.mid().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exponent)
