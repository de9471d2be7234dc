# SPDX-License-Identifier: Apache-2.0
"""Exact numbers in and out: read as they print, shown exactly, made floats once, rounded up.

The cells of tables are compared by the one text that :func:`canonical` gives them, in counting and
releasing, as missing marks, levels, persons, and in the identity of a table.
"""

import decimal
import math
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal
from fractions import Fraction
from numbers import Rational
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError

#: int64 while no sum can overflow, Python integers (dtype object) otherwise.
CountArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Cumulative sums and cross products of counts stay exact in 64 bits below this total.
INT64_SAFE = 2**62

#: What a probability, an epsilon or a value may be given as.
Number = int | float | str | Decimal | Fraction | SupportsFloat

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,15})?", re.ASCII)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_NON_FINITE = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE | re.ASCII)
#: A number may be written with so many characters; Python itself stops at 4,300 digits.
MAX_LENGTH = 2000
#: Nothing but 0 lies nearer to 0 than this: smaller numbers are refused as too small.
_SMALLEST = Decimal("1e-1000")
_LARGEST = Decimal(sys.float_info.max)
#: With both limits, numerators and denominators that are read have at most so many digits.
MOST_DIGITS = 3000
_MAX_BITS = (10**MOST_DIGITS).bit_length()

#: A cell that is a number, without the needless leading zero of a code.
_PLAIN = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII
)
#: ``12e2``: a number by its exponent alone, and so perhaps a code.
_CODE = re.compile(r"-?[0-9]+[eE][0-9]+", re.ASCII)
#: A cell may have so many significant digits, and lies within these powers of ten.
_EXACT = Context(
    prec=38, Emin=-999, Emax=308, traps=[Inexact, Overflow, Subnormal, InvalidOperation]
)
_TIME = re.compile(
    r"(?:([0-9]{4}-[0-9]{2}-[0-9]{2})[ T])?([0-9]{2}:[0-9]{2})(?:(:[0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)


class NotFinite(InputError):
    """A number was meant, but none that is read: not finite, too small, or too long."""


def parse_text(text: str) -> Fraction | None:
    """Return the exact number that a text prints (-3.2, .5, 1e-15, 1/3), or None if it is none.

    A NotFinite is raised where a number was meant, but it is not finite (``inf``, ``1e999``),
    nearer to 0 than 1e-1000, or longer than 2,000 characters.
    """
    stripped = text.strip()
    if len(stripped) > MAX_LENGTH and not stripped.strip("+-.0123456789eE/ "):
        raise NotFinite(f"a number of {len(stripped)} characters is too long (above {MAX_LENGTH})")
    fraction = _FRACTION.fullmatch(stripped)
    value: Decimal | Fraction  # a decimal does not write out its exponent
    if _DECIMAL.fullmatch(stripped):
        value = Decimal(stripped)
    elif fraction and int(fraction[2]):
        value = Fraction(int(fraction[1]), int(fraction[2]))
    elif fraction or _NON_FINITE.fullmatch(stripped):
        raise NotFinite(f"{stripped!r} is not a finite number")
    else:
        return None
    if not _LARGEST.copy_negate() <= value <= _LARGEST:
        raise NotFinite(f"{stripped!r} is not a finite number")
    if value and -_SMALLEST < value < _SMALLEST:
        raise NotFinite(f"{stripped!r} is too small (below 1e-1000)")
    return Fraction(value) if value else Fraction(0)


def parse_number(value: object, what: str) -> Fraction:
    """Return the exact value of a number; floats are read as the decimal they print as.

    ``value`` is an int, float, Decimal, Fraction, NumPy scalar, or a string that holds a decimal
    or a fraction; ``what`` says what it is, for the InputError where it is no finite number.
    """
    if isinstance(value, Rational) and not isinstance(value, bool):  # NumPy integers too
        numerator, denominator = int(value.numerator), int(value.denominator)
        if max(numerator.bit_length(), denominator.bit_length()) > _MAX_BITS:
            raise InputError(f"{what} has more than {MOST_DIGITS} digits")
        return Fraction(numerator, denominator)
    parsed = None
    if not isinstance(value, bool | np.bool_):
        try:
            parsed = parse_text(str(value))  # of a NumPy float32 its own shortest decimal
        except NotFinite as error:
            raise InputError(f"{what} must be a number, but {error}") from None
    if parsed is None:
        raise InputError(
            f"{what} must be a number such as 0.5, 1e-3 or 1/3, but {value!r} was given"
        )
    return parsed


def parse_epsilon(value: object) -> Fraction:
    """Return epsilon exactly: a number from 1e-305, below which scales overflow, to 1e300."""
    epsilon = parse_number(value, "epsilon")
    if not Fraction("1e-305") <= epsilon <= Fraction("1e300"):
        raise InputError(f"epsilon must be above 0, from 1e-305 to 1e300, but {value} was given")
    return epsilon


def checked_flag(value: object, what: str) -> bool:
    """Return a flag; a text such as "no" would count as True, and is refused."""
    if not isinstance(value, bool):
        raise InputError(f"{what} must be True or False, but {value!r} was given")
    return value


def float_up(value: Fraction) -> float:
    """Return the smallest double that is not below an exact number (infinity beyond them)."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest double that is not above an exact number."""
    return -float_up(-value) + 0.0  # never -0.0


def show(value: Fraction) -> str:
    """Return an exact number as the decimal that equals it, or as a fraction."""
    top, bottom = value.numerator, value.denominator
    if bottom == 1:
        return str(top)
    enough = Context(top.bit_length() + bottom.bit_length(), traps=[Inexact])
    try:
        return f"{enough.divide(Decimal(top), Decimal(bottom)):f}"
    except Inexact:
        return f"{top}/{bottom}"


def show_short(value: Fraction) -> str:
    """Return a number for a message: exactly where that is short, or six digits of it."""
    text = show(value)
    return text if len(text) <= 24 else f"{Decimal(value.numerator) / value.denominator:.6g}"


def rounded_up(value: float, digits: int = 10) -> str:
    """Return a number, not negative, with so many significant digits, none of them below it."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    context = Context(prec=digits, rounding=decimal.ROUND_CEILING)
    rounded = context.create_decimal_from_float(value)
    power = rounded.adjusted()
    # Trailing zeros are digits too: 10 is printed as 10.00000000.
    if -5 <= power < 16:
        return f"{rounded:.{max(digits - 1 - power, 0)}f}"
    return f"{rounded:.{digits - 1}e}"


def text_of(value: Any) -> str:
    """Return one Python value as trimmed text; nothing, and only nothing, is empty.

    Floats are read as the shortest decimal that they print as (32-bit ones too), decimals and
    integers exactly, booleans as ``true`` and ``false``, other kinds as they print; bytes,
    collections and complex numbers are refused.
    """
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Rational):
        return show(parse_number(value, "a number that was found"))
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 400:
        return show(Fraction(value))
    # A float that is whole is written as the integer, so that 1.0 and 1 are one level.
    number = float(value) if isinstance(value, float | np.floating) else math.nan
    if abs(number) < 2**53 and number.is_integer() and number == value:
        return str(int(number))
    collection = hasattr(value, "__len__") and not isinstance(value, str)
    if collection or isinstance(value, complex | np.complexfloating):
        raise InputError(f"numbers or text are needed, but a {type(value).__name__} was found")
    return str(value).strip()


def canonical(text: str) -> str:
    """Return the one text for a text and those that mean the same in a copy of its table.

    What programs change when they copy a table is undone. Nothing else is taken for the same:
    ``007``, ``+7`` and ``7e0``, which may be codes, remain other texts than ``7``.

    >>> [canonical(text) for text in (" 1.50", "1E+3", "-0.0", "True", "007", "2020-01-31T00:00")]
    ['1.5', '1000', '0', 'true', '007', '2020-01-31']
    """
    text = text.strip()
    if text.isdecimal() or text[:1] not in "-.0123456789":
        return text.lower() if text.lower() in ("true", "false") else text
    number = None if _CODE.fullmatch(text) else _read_cell(text)
    if isinstance(number, Decimal):
        return format(number, "f")
    time = _TIME.fullmatch(text)
    if time is None or not (time[1] or time[3]):
        return text
    places, zone = (time[4] or "").rstrip("0"), time[5] or ""
    clock = f"{time[2]}{time[3] or ':00'}" + (f".{places}" if places else "")
    if not zone.strip("Z+-0:"):
        zone = zone and "Z"
    if time[1] is None:
        return clock + zone
    return time[1] if clock + zone == "00:00:00" else f"{time[1]} {clock}{zone}"


def parse_cell(text: str, decimal: str = ".") -> tuple[int, int] | str | None:
    """Return the number that a trimmed text prints as a plain decimal with a decimal mark.

    It is a numerator over a denominator in lowest terms, or the text of a fault; None is no number.
    Examples of what is none: ``1/3``, ``1,200``, ``0x10``, and ``007``, which may be a code.
    """
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".", 1)
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= _EXACT.prec:
        return int(text), 1
    number = _read_cell(text)
    return number.as_integer_ratio() if isinstance(number, Decimal) else number


def _read_cell(text: str) -> Decimal | str | None:
    if not _PLAIN.fullmatch(text):
        return "is not finite" if _NON_FINITE.fullmatch(text) else None
    try:
        number = _EXACT.normalize(_EXACT.create_decimal(text))
    except Overflow:
        return "is not finite"
    except Subnormal:  # as is underflow
        return f"is too small (below 1e{_EXACT.Emin})"
    except Inexact:
        return f"has more than {_EXACT.prec} digits"
    return "is not finite" if abs(number) > _LARGEST else number or Decimal(0)


_flint = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Hold FLINT's working precision, alone, until done.

    FLINT keeps one precision for the whole process. A ball stays true whatever it is, but may
    become too wide to say anything, so other threads wait.
    """
    from flint import ctx  # slow to import, and not needed to read a table

    with _flint:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


# A process forked while another thread held the lock would wait for a thread that it has not got.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_flint.acquire, after_in_parent=_flint.release, after_in_child=_flint.release
    )
