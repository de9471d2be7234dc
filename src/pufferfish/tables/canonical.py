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

#: A numerator over a power of ten (one pair for one number), a fault, or None for no number.
Parsed = tuple[int, int] | str | None

#: ``12e2``: a number by its exponent alone, and so perhaps a code.
CODE = re.compile(r"-?[0-9]+[eE][0-9]+", re.ASCII)
#: ``01730``: a number but for a needless leading zero, and so perhaps a code.
ZERO_LED = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?", re.ASCII)
#: Numbers but for their decimal mark, or for marks of thousands.
COMMA = re.compile(r"[+-]?[0-9.]*,[0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?", re.ASCII)

_PLAIN = re.compile(r"([+-]?)((?:0|[1-9][0-9]*)?)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_ENDLESS = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
#: A number may have so many significant digits, and lies within these powers of ten.
_DIGITS, _LEAST, _MOST = 38, -999, 308
_LARGEST = int(sys.float_info.max)

_CLOCK = r"([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
_HOUR = re.compile(_CLOCK)
_TIME = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[ T]{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?"
)


def canonical(text: str) -> str:
    """Return the one text for a text and those that mean the same in a copy of its table.

    >>> [canonical(text) for text in (" 1.50", "1E+3", "-0.0", "True", "007", "2020-01-31T00:00")]
    ['1.5', '1000', '0', 'true', '007', '2020-01-31']
    """
    text = text.strip()
    if text.isdecimal() or text[:1] not in "-.0123456789":
        return text.lower() if text.lower() in ("true", "false") else text
    number = None if CODE.fullmatch(text) else parse(text)
    if isinstance(number, tuple):
        places = len(str(number[1])) - 1
        digits = str(abs(number[0])).rjust(places + 1, "0")
        sign = "-" if number[0] < 0 else ""
        return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
    hour = _HOUR.fullmatch(text)
    if hour is not None and hour[2]:
        return _hour(hour[1], hour[2], hour[3])
    time = _TIME.fullmatch(text)
    if time is None or time[2] is None:
        return text
    clock, zone = _hour(time[2], time[3], time[4]), time[5]
    if zone is None:
        return time[1] if clock == "00:00:00" else f"{time[1]} {clock}"
    return f"{time[1]} {clock}{'Z' if not zone.strip('Z+-0:') else zone}"


def _hour(minute: str, second: str | None, places: str | None) -> str:
    fraction = (places or "").rstrip("0")
    return f"{minute}:{second or '00'}{'.' * bool(fraction)}{fraction}"


def is_date(text: str) -> bool:
    """Return whether a canonical text is a date, with or without a time of day."""
    return _TIME.fullmatch(text) is not None


def parse(text: str) -> Parsed:
    """Return the number that a trimmed text prints as a plain decimal.

    Examples of what is none: ``1/3``, ``1,200``, ``0x10``, and ``007``, which may be a code.
    """
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= _DIGITS:
        return int(text), 1
    match = _PLAIN.fullmatch(text)
    if match is None:
        return "is not finite" if _ENDLESS.fullmatch(text) else None
    places = match[3] or ""
    digits = (match[2] + places).lstrip("0")
    if not digits:
        return (0, 1) if match[2] + places else None
    written = match[4] or "0"
    # A long exponent decides by itself.
    power = int(written) if len(written) < 9 else 10**6 * (-1 if written[0] == "-" else 1)
    power -= len(places)
    top = power + len(digits) - 1
    shorter = digits.rstrip("0")
    if top < _LEAST:
        return f"is too small (below 1e{_LEAST})"
    if top <= _MOST and len(shorter) > _DIGITS:
        return f"has more than {_DIGITS} digits"
    power += len(digits) - len(shorter)
    size = int(shorter) * 10 ** max(power, 0) if top <= _MOST else _LARGEST + 1
    if size > _LARGEST:
        return "is not finite"
    return -size if match[1] == "-" else size, 10 ** max(-power, 0)
