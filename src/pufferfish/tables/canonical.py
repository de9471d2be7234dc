# SPDX-License-Identifier: Apache-2.0
"""Canonical: the one text of a cell, and the exact number that it prints.

Counting, releasing, missing marks, levels, persons and the identity of a table all compare cells
by these texts. A text is trimmed; then what programs change when they copy a table is undone:
``1.50``, ``1.5`` and ``15e-1`` are one number, as are ``.5`` and ``0.5``, ``-0`` and ``0``;
``True`` is ``true``; the time ``2020-01-31T00:00:00.000`` is the date ``2020-01-31``, and
``08:30:00.000`` is ``08:30:00``. Nothing else is taken for the same: ``007``, ``+7`` and ``7e0``,
which may be codes, remain other texts than ``7``.
"""

import re
import sys
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Subnormal

_PLAIN = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII
)
_ENDLESS = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
#: ``12e2``: a number by its exponent alone, and so perhaps a code.
_CODE = re.compile(r"-?[0-9]+[eE][0-9]+", re.ASCII)
#: A number may have so many significant digits, and lies within these powers of ten.
_EXACT = Context(
    prec=38, Emin=-999, Emax=308, traps=[Inexact, Overflow, Subnormal, InvalidOperation]
)
_LARGEST = Decimal(sys.float_info.max)
_TIME = re.compile(
    r"(?:([0-9]{4}-[0-9]{2}-[0-9]{2})[ T])?([0-9]{2}:[0-9]{2})(?:(:[0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)


def canonical(text: str) -> str:
    """Return the one text for a text and those that mean the same in a copy of its table.

    >>> [canonical(text) for text in (" 1.50", "1E+3", "-0.0", "True", "007", "2020-01-31T00:00")]
    ['1.5', '1000', '0', 'true', '007', '2020-01-31']
    """
    text = text.strip()
    if text.isdecimal() or text[:1] not in "-.0123456789":
        return text.lower() if text.lower() in ("true", "false") else text
    number = None if _CODE.fullmatch(text) else _read(text)
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


def parse(text: str, decimal: str = ".") -> tuple[int, int] | str | None:
    """Return the number that a trimmed text prints as a plain decimal with a decimal mark.

    It is a numerator over a denominator in lowest terms, or the text of a fault; None is no number.
    Examples of what is none: ``1/3``, ``1,200``, ``0x10``, and ``007``, which may be a code.
    """
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".", 1)
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= _EXACT.prec:
        return int(text), 1
    number = _read(text)
    return number.as_integer_ratio() if isinstance(number, Decimal) else number


def _read(text: str) -> Decimal | str | None:
    if not _PLAIN.fullmatch(text):
        return "is not finite" if _ENDLESS.fullmatch(text) else None
    try:
        number = _EXACT.normalize(_EXACT.create_decimal(text))
    except Overflow:
        return "is not finite"
    except Subnormal:  # as is underflow
        return f"is too small (below 1e{_EXACT.Emin})"
    except Inexact:
        return f"has more than {_EXACT.prec} digits"
    return "is not finite" if abs(number) > _LARGEST else number or Decimal(0)
