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
from functools import cached_property

import pyarrow as pa
import pyarrow.types as pt

from pufferfish.numbers import text_of
from pufferfish.tables.arrow import is_text, to_list

#: A numerator over a denominator (a power of ten), a fault in words, or None for no number.
Parsed = tuple[int, int] | str | None

_NUMBER = re.compile(r"(-?)((?:0|[1-9][0-9]*)?)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?", re.ASCII)
#: ``12e2``: a number by its exponent alone, and so perhaps a code.
CODE = re.compile(r"-?[0-9]+[eE][0-9]+", re.ASCII)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_CLOCK = re.compile(r"([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
#: Beyond so many digits a number is not written out.
_MOST_DIGITS = 400

_PLAIN = re.compile(r"([+-]?)((?:0|[1-9][0-9]*)?)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_ENDLESS = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
#: A number may have so many significant digits, and lies within these powers of ten.
DIGITS = 38
_LEAST, _MOST = -999, 308
_LARGEST = int(sys.float_info.max)

#: ``01730``: a number but for a needless leading zero, and so perhaps a code.
ZERO_LED = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?", re.ASCII)
#: ``1,5``: a number but for its decimal mark, or for marks of thousands.
COMMA = re.compile(
    r"[+-]?(?:[0-9][0-9.]*)?,[0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII
)
POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?", re.ASCII)


def canonical(text: str) -> str:
    """Return the one text for a text and those that mean the same in a copy of its table.

    >>> [canonical(text) for text in (" 1.50", "1E+3", "-0.0", "True", "007", "2020-01-31T00:00")]
    ['1.5', '1000', '0', 'true', '007', '2020-01-31']
    """
    text = text.strip()
    if text[:1] not in "-.0123456789":
        return text.lower() if text.lower() in ("true", "false") else text
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _plain_time(text)
    sign, whole, places, power = match[1], match[2], match[3] or "", int(match[4] or 0)
    if not whole + places or CODE.fullmatch(text):
        return text
    digits = (whole + places).lstrip("0")
    power -= len(places)
    if match[3] is None and match[4] is None:
        return sign + whole if digits else "0"  # an integer of any length stays as it is
    shorter = digits.rstrip("0")
    power += len(digits) - len(shorter)
    if not shorter:
        return "0"
    if power > _MOST_DIGITS or power + len(shorter) < -_MOST_DIGITS:
        return f"{sign}{shorter}e{power}"
    if power >= 0:
        return sign + shorter + "0" * power
    shorter = shorter.rjust(1 - power, "0")
    return f"{sign}{shorter[:power]}.{shorter[power:]}"


def _plain_time(text: str) -> str:
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return _plain_clock(*clock.groups())
    time = _TIME.fullmatch(text)
    if time is None or time[2] is None:
        return text
    day, hour = time[1], _plain_clock(time[2], time[3], time[4])
    if time[5] is None:
        return day if hour == "00:00:00" else f"{day} {hour}"
    return f"{day} {hour}{'Z' if not time[5].strip('Z+-0:') else time[5]}"


def _plain_clock(minute: str, second: str | None, places: str | None) -> str:
    fraction = (places or "").rstrip("0")
    return f"{minute}:{second or '00'}{'.' * bool(fraction)}{fraction}"


def is_date(text: str) -> bool:
    """Return whether a canonical text is a date, with or without a time of day."""
    return _TIME.fullmatch(text) is not None


def parse(text: str) -> Parsed:
    """Return the number that a trimmed text prints as a plain decimal.

    Examples of what is none: ``1/3``, ``1,200``, ``0x10``, and ``007``, which may be a code.
    """
    if text.isascii() and text.isdecimal() and len(text) <= DIGITS:
        return (int(text), 1) if text[0] != "0" or len(text) == 1 else None
    match = _PLAIN.fullmatch(text)
    if match is None:
        return "is not finite" if _ENDLESS.fullmatch(text) else None
    whole, places = match[2], match[3] or ""
    if not whole + places:
        return None
    digits = (whole + places).lstrip("0")
    if not digits:
        return 0, 1
    written = match[4] or "0"
    # A long exponent decides by itself.
    power = int(written) if len(written) < 9 else 10**6 * (-1 if written[0] == "-" else 1)
    power -= len(places)
    top = power + len(digits) - 1
    if not _LEAST <= top <= _MOST:
        return "is not finite" if top > _MOST else f"is too small (below 1e{_LEAST})"
    shorter = digits.rstrip("0")
    if len(shorter) > DIGITS:
        return f"has more than {DIGITS} digits"
    power += len(digits) - len(shorter)
    size = int(shorter) * 10 ** max(power, 0)
    if size > _LARGEST:
        return "is not finite"
    return -size if match[1] == "-" else size, 10 ** max(-power, 0)


class Cells:
    """Distinct raw cells as text and as numbers.

    Attributes
    ----------
    raw : list of str
        The trimmed text of each; "" for null.
    texts : list of str
        The canonical text of each; "" for null.
    typed : bool
        Whether they came as numbers or truth values, so that a decimal mark means nothing.
    """

    def __init__(self, values: pa.Array, decimal: str = ".") -> None:
        kind = values.type
        self.typed = not is_text(kind) and not pt.is_temporal(kind)
        narrow = kind.to_pandas_dtype() if pt.is_float16(kind) or pt.is_float32(kind) else None
        self.raw = [
            text_of(value if narrow is None or value is None else narrow(value))
            for value in to_list(values)
        ]
        self._comma = decimal == "," and not self.typed
        self.texts = [canonical(text) for text in self.raw]

    @cached_property
    def numbers(self) -> list[Parsed]:
        """What each cell prints as a number; see :func:`parse`."""
        if not self._comma:
            return [parse(text) for text in self.raw]
        return [None if "." in t else parse(t.replace(",", ".", 1)) for t in self.raw]
