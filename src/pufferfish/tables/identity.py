# SPDX-License-Identifier: Apache-2.0
"""Identity: a digest by which a table is known again, whatever its name and the order of its rows.

The ledger charges releases to the table they were made from. A copy of it, with the rows or the
columns in another order, or as another kind of file, must be that same table; one with a single
cell edited must not.

How it is computed, and why it can be relied on
-----------------------------------------------
Let a table have n rows. Every cell is cleaned to a text (below), and a row becomes the vector x of
32-bit words that holds, for every column, the length of the text and its UTF-8 bytes, zeros after
them; a text of more than 64 bytes stands there by its length and its BLAKE2b digest. Two rows are
equal exactly if their vectors are (but for two long texts of one BLAKE2b digest).

*Rows.* Six sums ``a . x mod 2**64``, each with its own 64-bit keys ``a``, one key per column name
and word: the order of the columns cannot matter. Their top 30 bits make, two by two, three numbers
v below 2**60. If two rows differ, say by d = u 2**t (u odd, t < 32) in one word, then one sum's top
bits agree only if ``a d`` falls, for given other keys, into 2**35 - 1 consecutive values out of
2**64; ``a d`` takes each multiple of 2**t equally often, and the chance is at most 2**-29. So a v
agrees with chance at most 2**-58.

*Tables.* For each v, the product of ``z - v`` over all rows, modulo the prime p = 2**61 - 1: a
product, so the order of the rows cannot matter. If one table has a row more often than the other,
then either the v of that row is that of one of the at most 2 n other rows of both (chance at most
2 n 2**-58), or the two products are different polynomials in z of degree at most n, which agree at
z with chance at most n / p. In all less than n 2**-56 for one product, and since the keys of the
three products are independent, less than ``(n 2**-56)**3`` for the identity: 2**-98 for ten million
rows. This holds for any two tables with one set of columns, provided that they were not made with
an eye on the keys; those are constants (SHAKE-256 of a fixed text), as good as drawn once. The
digest is SHA-256 over the names of the columns, sorted, the number of rows and the three products.

*Order.* Where the order of the rows counts (several rows of one person), the numbers v are digested
as they come too.

The cells
---------
A cell is the trimmed text that :mod:`pufferfish.tables.cells` reads; null is the empty text. What
programs change when they copy a table is then undone: ``1.50``, ``1.5`` and ``15e-1`` are one
number, as are ``.5`` and ``0.5``, ``-0`` and ``0``; ``True`` is ``true``; the time
``2020-01-31T00:00:00.000`` is the date ``2020-01-31``, and ``08:30:00.000`` is ``08:30:00``.
Nothing else is taken for the same: ``007`` and ``+7`` remain other texts than ``7``.

The digest is as private as the table: whoever can guess all rows can test the guess.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pufferfish.errors import InputError, listed
from pufferfish.tables.arrow import strings, to_numpy
from pufferfish.tables.cells import BOOLEANS, cells_of, distinct
from pufferfish.tables.opening import open_table
from pufferfish.tables.source import BATCH_ROWS, Table

Words = npt.NDArray[np.uint64]

_SEED = b"pufferfish: identity of a table, version 1"
#: Three products, each over numbers made of two sums.
_PRODUCTS = 3
_SUMS = 2 * _PRODUCTS
_PRIME = 2**61 - 1
#: The bytes of a text that are hashed as they are; a longer one stands there by its digest.
_LONGEST = 64
#: So many cells at a time, for memory and for the processor's cache.
_BLOCK = 1 << 14
_BATCH_CELLS = 1 << 22
_LEAST_ROWS = 256
_SAMPLE = 4096

#: A number that is not in its plainest form. A leading zero or plus sign makes it a code, perhaps.
_UNPLAIN = (
    r"-?(?:(?:0|[1-9][0-9]*)?\.(?:[0-9]*0)?|\.[0-9]+|-?0|"
    r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+)"
)
_NUMBER = re.compile(r"(-?)((?:0|[1-9][0-9]*)?)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?", re.ASCII)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_CLOCK = re.compile(r"([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
#: Cells to look at one by one: those, times, truth values, and what may have a blank at an end.
_CLOSER = rf"^(?:{_UNPLAIN}|{_TIME.pattern}|{_CLOCK.pattern}|(?i:true|false))$|^[^!-~]|[^!-~]$"
#: Beyond so many digits a number is not written out.
_MOST_DIGITS = 400


@dataclass(frozen=True)
class TableIdentity:
    """What a table is known by.

    Attributes
    ----------
    digest : str
        64 hexadecimal digits; the same for every copy of the table.
    rows : int
        How many rows were read.
    order : str
        64 hexadecimal digits; the same for copies of the table with their rows in the same order.
        Empty for a lazy frame, which promises none.
    """

    digest: str
    rows: int
    order: str = ""


def identity_of(source: Any) -> TableIdentity:
    """Return the identity of a table, from all its rows and all its columns.

    The table is read once, a batch at a time; the time is linear in its cells, and memory does not
    grow with the rows of a file.

    Parameters
    ----------
    source : str, Path, dataframe or Table
        What :func:`pufferfish.tables.open_table` opens.

    Raises
    ------
    InputError
        If it cannot be read, a column holds lists, structs or bytes, or several have no name.
    """
    table = open_table(source)
    _check_names(table)
    keys = {name: _keys(name) for name in table.columns}
    points = _random(b"z", _PRODUCTS) % np.uint64(_PRIME)
    products = [1] * _PRODUCTS
    # One digest for each, so that it does not depend on where a batch ends.
    ordered = [hashlib.sha256(_SEED + b"order") for _ in range(_PRODUCTS)]
    rows = 0
    size = max(_LEAST_ROWS, min(BATCH_ROWS, _BATCH_CELLS // max(1, len(table.columns))))
    for batch in table.batches(table.columns, size) if table.columns else ():
        rows += len(batch)
        sums = np.zeros((_SUMS, len(batch)), dtype=np.uint64)
        for name, cells in zip(table.columns, batch.columns, strict=True):
            _add_column(sums, cells, keys[name], f"column {name!r} of {table.name}")
        tops = sums >> np.uint64(34)
        for k in range(_PRODUCTS):
            numbers = tops[2 * k] << np.uint64(30) | tops[2 * k + 1]
            ordered[k].update(numbers.astype("<u8").tobytes())
            products[k] = products[k] * _product(numbers, points[k]) % _PRIME
    content = json.dumps([sorted(table.columns), rows, products]).encode()
    in_order = hashlib.sha256(b"".join(own.digest() for own in ordered)).hexdigest()
    order = "" if table.unordered else in_order
    return TableIdentity(hashlib.sha256(_SEED + content).hexdigest(), rows, order)


def canonical(text: str) -> str:
    """Return the one text for a trimmed text and those that mean the same in a copy of its table.

    >>> [canonical(text) for text in ("1.50", "1E3", "-0.0", "True", "007", "2020-01-31T00:00")]
    ['1.5', '1000', '0', 'true', '007', '2020-01-31']
    """
    if text.lower() in BOOLEANS:
        return text.lower()
    match = _NUMBER.fullmatch(text)
    if match is None:
        clock = _CLOCK.fullmatch(text)
        if clock is not None:
            return _plain_clock(*clock.groups())
        time = _TIME.fullmatch(text)
        return text if time is None else _plain_time(*time.groups())
    sign, whole, places, power = match[1], match[2], match[3] or "", int(match[4] or 0)
    if not whole + places:
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


def _plain_time(
    date: str, minute: str, second: str | None, places: str | None, zone: str | None
) -> str:
    time = _plain_clock(minute, second, places)
    if zone is None:
        return date if time == "00:00:00" else f"{date} {time}"
    return f"{date} {time}{'Z' if not zone.strip('Z+-0:') else zone}"


def _plain_clock(minute: str, second: str | None, places: str | None) -> str:
    fraction = (places or "").rstrip("0")
    return f"{minute}:{second or '00'}{'.' * bool(fraction)}{fraction}"


def _check_names(table: Table) -> None:
    nameless = [k + 1 for k, name in enumerate(table.columns) if not name]
    if len(nameless) > 1:
        raise InputError(
            f"{table.name} has {len(nameless)} columns without a name (columns "
            f"{listed(map(str, nameless))}), which cannot be told apart; give each a name"
        )


def _random(purpose: bytes, numbers: int) -> Words:
    """Return 64-bit numbers that are constants, but as if drawn at random."""
    data = hashlib.shake_256(_SEED + purpose).digest(8 * numbers)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def _keys(name: str) -> Words:
    """Return the keys of a column: of the length and of each word, one for every sum."""
    words = 1 + _LONGEST // 4
    return _random(b"column " + name.encode(), words * _SUMS).reshape(words, _SUMS)


def _add_column(sums: Words, cells: pa.Array, keys: Words, what: str) -> None:
    """Add what the cells of one column contribute to the sums of their rows.

    Parameters
    ----------
    sums : uint64 array, shape (6, rows)
        Changed in place.
    cells : pyarrow.Array, shape (rows,)
        Raw cells.
    keys : uint64 array, shape (17, 6)
    what : str
        What messages call the column.
    """
    if not _repeats(cells):
        for start, part in _hashed(_texts(cells, what), keys):
            sums[:, start : start + part.shape[1]] += part
        return
    values, places = distinct(cells)
    hashes = np.empty((_SUMS, len(values)), dtype=np.uint64)
    for start, part in _hashed(_texts(values, what), keys):
        hashes[:, start : start + part.shape[1]] = part
    for total, own in zip(sums, hashes, strict=True):
        total += own[places]


def _repeats(cells: pa.Array) -> bool:
    """Whether the distinct cells are few enough to be worth finding."""
    if pt.is_dictionary(cells.type) or pt.is_null(cells.type):
        return True
    start = cells[:_SAMPLE]
    return 2 * len(distinct(start)[0]) <= len(start)


def _filled(cells: pa.Array) -> pa.Array:
    """Return cells as text, the empty one for null; a plain text here would import pandas."""
    return cells.cast(pa.large_string()).fill_null(strings([""]).cast(pa.large_string())[0])


def _texts(cells: pa.Array, what: str) -> pa.Array:
    """Return cells as their canonical texts, none of them null."""
    kind = cells.type
    pattern = _CLOSER
    if pt.is_float64(kind):
        # Arrow writes a number with other exponents than Python does, but with the same digits.
        pattern = "e|^-0$"
    elif not (pt.is_string(kind) or pt.is_large_string(kind)):
        if pt.is_integer(kind) or pt.is_boolean(kind):
            return _filled(cells)
        cells = strings(cells_of(cells, what).texts)
    texts = _filled(cells)
    closer = pc.match_substring_regex(texts, pattern)
    found = texts.filter(closer).to_pylist()
    if not found:
        return texts
    plain = strings([canonical(t.strip()) for t in found]).cast(pa.large_string())
    return pc.replace_with_mask(texts, closer, plain)


def _hashed(texts: pa.Array, keys: Words) -> Iterator[tuple[int, Words]]:
    """Yield the sums of texts, a block at a time: where it starts, and an array (6, block)."""
    offsets = to_numpy(_buffer(texts, 1, pa.int64(), len(texts) + 1))
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)
    # With zeros at the end, eight bytes can be read at every place.
    padded = np.concatenate([data[: offsets[-1]], np.zeros(8, dtype=np.uint8)])
    eight: Words = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    for start in range(0, len(texts), _BLOCK):
        ends = offsets[start : start + _BLOCK + 1]
        begins, lengths = ends[:-1], np.diff(ends)
        sums = keys[0][:, None] * lengths.astype(np.uint64)
        longest = int(lengths.max())
        if longest > _LONGEST:
            for k in np.flatnonzero(lengths > _LONGEST).tolist():
                cell = padded[begins[k] : begins[k] + lengths[k]].tobytes()
                digest = np.frombuffer(hashlib.blake2b(cell, digest_size=32).digest(), "<u4")
                sums[:, k] += (keys[1:9] * digest.astype(np.uint64)[:, None]).sum(axis=0)
            lengths = np.where(lengths > _LONGEST, 0, lengths)
            longest = int(lengths.max())
        for k in range((longest + 7) // 8):
            left = lengths - 8 * k
            rows = np.flatnonzero(left > 0)
            whole = len(rows) == len(left)
            if not whole:
                left = left[rows]
            words = eight[(begins if whole else begins[rows]) + 8 * k]
            unused = np.uint64(8) * (8 - np.minimum(left, 8)).astype(np.uint64)
            words = words << unused >> unused
            low, high = words & np.uint64(2**32 - 1), words >> np.uint64(32)
            for total, one, two in zip(sums, keys[1 + 2 * k], keys[2 + 2 * k], strict=True):
                part = low * one + high * two
                if whole:
                    total += part
                else:
                    total[rows] += part
        yield start, sums


def _buffer(array: pa.Array, number: int, kind: pa.DataType, length: int) -> pa.Array:
    """Return one buffer of an Arrow array as an array, from where the array starts."""
    return pa.Array.from_buffers(kind, length, [None, array.buffers()[number]], offset=array.offset)


def _product(numbers: Words, point: np.uint64) -> int:
    """Return the product of ``point - number`` modulo the prime."""
    total = 1
    for start in range(0, len(numbers), _BLOCK):
        factors = point + np.uint64(_PRIME) - numbers[start : start + _BLOCK]
        factors = _reduced(factors)
        while len(factors) > 1:
            half = len(factors) // 2
            rest = factors[2 * half :]
            factors = _times(factors[:half], factors[half : 2 * half])
            factors = np.concatenate([factors, rest])
        total = total * int(factors[0]) % _PRIME
    return total


def _times(a: Words, b: Words) -> Words:
    """Return products modulo the prime; no step of it exceeds 64 bits."""
    half = np.uint64(2**31 - 1)
    a_high, a_low = a >> np.uint64(31), a & half
    b_high, b_low = b >> np.uint64(31), b & half
    middle = a_high * b_low + a_low * b_high
    # 2**61 is 1 here: of the middle, which counts 2**31 fold, the part from bit 30 on comes round.
    around = (middle >> np.uint64(30)) + ((middle & np.uint64(2**30 - 1)) << np.uint64(31))
    return _reduced(np.uint64(2) * a_high * b_high + around + a_low * b_low)


def _reduced(numbers: Words) -> Words:
    prime = np.uint64(_PRIME)
    folded = (numbers & prime) + (numbers >> np.uint64(61))
    return np.where(folded >= prime, folded - prime, folded)
