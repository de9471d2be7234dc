# SPDX-License-Identifier: Apache-2.0
"""Texts: what a cell, a level or a secret is called, whether it came as text or as a number.

One function for all of them, so that a level that the user states (``levels=[1.0]``) and the cell
that holds it always have the same name.
"""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.rationals import MOST_DIGITS, show


def text_of(value: Any) -> str:
    """Return one Python value as trimmed text; nothing, and only nothing, is empty.

    Floats are read as the shortest decimal that they print as (32-bit ones too), decimals and
    integers exactly, booleans as ``true`` and ``false``, other kinds as they print.

    Raises
    ------
    InputError
        For bytes, lists and other collections.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return _float_text(value)
    if isinstance(value, int | np.integer):
        return _integer_text(int(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value).lower()
        return show(Fraction(value)) if abs(value.adjusted()) < 400 else str(value)
    if isinstance(value, Fraction):
        return show(value)
    if isinstance(value, bytes | bytearray | list | tuple | dict | set):
        raise InputError(f"numbers or text are needed, but a {type(value).__name__} was found")
    return str(value).strip()


def _integer_text(value: int) -> str:
    # Python refuses to print more than 4,300 digits, and no number of so many is read.
    if value.bit_length() > 4 * MOST_DIGITS:
        raise InputError(f"an integer of more than {MOST_DIGITS} digits was found")
    return str(value)


def _float_text(value: Any) -> str:
    wide = float(value)
    if not math.isfinite(wide):
        return str(wide)
    # A float that is whole is written as the integer, so that 1.0 and 1 are one level.
    if wide == int(wide) and abs(wide) < 2**53:
        return str(int(wide))
    return repr(value) if type(value) is float else str(value)
