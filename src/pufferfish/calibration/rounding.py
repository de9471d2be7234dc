# SPDX-License-Identifier: Apache-2.0
"""A scale becomes a double once, rounded up."""

import math
from fractions import Fraction

from pufferfish.errors import InputError
from pufferfish.rationals import float_up


def scale_up(scale: Fraction, epsilon: Fraction) -> float:
    """Return the smallest double that is not below a scale.

    Parameters
    ----------
    scale : Fraction
        theta, in the units of the data, not negative.
    epsilon : Fraction
        What it was calibrated for.

    Raises
    ------
    InputError
        If the scale lies beyond every double.
    """
    rounded = float_up(scale)
    if math.isinf(rounded):
        raise InputError(
            f"the scale for epsilon {float(epsilon):.6g} overflows: it would exceed 1.8e308; "
            "epsilon must be larger"
        )
    return rounded
