# SPDX-License-Identifier: Apache-2.0
"""What a channel may publish: the values, points between them, or points beyond them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.rationals import show
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support, lattice_of

#: Finer alphabets than this make programs that are refused anyway.
MOST_OUTPUTS = 100_000
#: No text stands for a larger K; that it is too large is told like of any other.
_FINE_OUTPUTS = re.compile(r"fine\s*:\s*(\d{1,300})", re.ASCII)


def output_alphabet(support: Support, outputs: object) -> Support:
    """Return the alphabet of a channel's outputs.

    Parameters
    ----------
    support : Lattice or Levels
        The alphabet of X.
    outputs : None, int or str
        None: the same alphabet. K, or "fine:K": also K lattice points between every two
        neighbours, for numbers and ordered levels.

    Raises
    ------
    InputError
        If K is no whole number above 0, the levels have no order, or the outputs are too many, too
        fine, or such that doubles cannot tell them apart.
    """
    if outputs is None:
        return support
    between = _points_between(outputs)
    if isinstance(support, Levels) and not support.ordered:
        raise InputError(
            "finer outputs need numbers or levels with an order, but the levels "
            f"{listed(support.names)} have none"
        )
    lattice = lattice_of(support)
    many = (lattice.size - 1) * (between + 1) + 1
    if many > MOST_OUTPUTS:
        most = (MOST_OUTPUTS - 1) // (lattice.size - 1) - 1
        advice = f"ask for fewer, at most {most:,}" if most > 0 else "these values are too many"
        raise InputError(
            f"{_brief(between)} points between neighbours make {_brief(many)} outputs, more than "
            f"{MOST_OUTPUTS:,}; {advice}"
        )
    places = lattice.index.tolist()
    fine: set[Fraction] = set()
    for a, b in pairwise(places):
        fine.update(a + Fraction((b - a) * k, between + 1) for k in range(between + 1))
    fine.add(Fraction(places[-1]))
    denominator = math.lcm(*(f.denominator for f in fine))
    units = sorted(int(f * denominator) for f in fine)
    if units[-1] > MAX_CELLS:
        raise InputError(
            f"{between} points between neighbours need a lattice of more than 2**53 cells; ask "
            "for fewer, or give a coarser step (--step)"
        )
    index = np.array(units, dtype=np.int64)
    made = Lattice(lattice.step / denominator, lattice.origin * denominator, index)
    _check_distinct(made)
    return made


def _check_distinct(outputs: Lattice) -> None:
    """Refuse outputs that would be published as the same double.

    Multiples of a step with a finite decimal are published as exact decimals, all others as the
    nearest doubles.
    """
    denominator = outputs.step.denominator
    if pow(10, denominator.bit_length(), denominator) == 0:
        return
    for low, high in pairwise(outputs.values):
        if float(low) == float(high):
            raise InputError(
                f"the outputs would be multiples of {show(outputs.step)}, which is no finite "
                "decimal, so that they are published as doubles, which cannot tell the outputs "
                f"next to {float(low):.17g} apart: doubles have 53 bits, about 15 digits; ask for "
                "a number K of points for which the step is a finite decimal (K + 1 with no "
                "other prime factors than 2 and 5), or for fewer"
            )


def _brief(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"{Decimal(number):.0e}"


def _points_between(outputs: object) -> int:
    hint = ""
    if isinstance(outputs, str):
        match = _FINE_OUTPUTS.fullmatch(outputs.strip().lower())
        if match:
            outputs = int(match[1])
        else:
            digits = re.search(r"[1-9]\d*", outputs)
            hint = f" (did you mean 'fine:{digits[0]}'?)" if digits else ""
    elif isinstance(outputs, Integral) and not isinstance(outputs, bool):
        outputs = int(outputs)
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
        raise InputError(
            "finer outputs need a whole number K of points between neighbours, at least 1, or the "
            f"text 'fine:K', but {outputs!r} was given{hint}"
        )
    return outputs


def widened(outputs: Support, factor: Fraction) -> Support:
    """Return numeric outputs with points c -+ (d / 2) * factor added (theory, section 4).

    Raises
    ------
    InputError
        If these lie more than 2**53 steps apart, or doubles cannot tell the outputs apart.
    """
    lattice = lattice_of(outputs)
    low, high = lattice.value(0), lattice.value(lattice.size - 1)
    middle, half = (low + high) / 2, (high - low) / 2
    reach = half * factor
    below = (middle - reach) // lattice.step
    above = -((-(middle + reach)) // lattice.step)
    if above - below > MAX_CELLS:
        raise InputError(
            f"an unbiased channel needs outputs as far as {float(reach):.1e} from the middle of "
            "the values, more than 2**53 steps; a larger epsilon or a coarser step (--step) helps"
        )
    units = sorted({int(below), int(above), *(lattice.origin + int(k) for k in lattice.index)})
    index = np.array([unit - units[0] for unit in units], dtype=np.int64)
    made = Lattice(lattice.step, units[0], index)
    _check_distinct(made)
    return made
