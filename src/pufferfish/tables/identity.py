# SPDX-License-Identifier: Apache-2.0
"""Identity: a digest by which a table is known again, whatever its name and the order of its rows.

A copy of a table, with the rows or the columns in another order, or as another kind of file, is
that same table; one with a single cell edited is not.

Let a table have n rows. A cell is its canonical text (null is the empty one), and a row becomes
the vector x of 32-bit words that holds, for every column, the length of the text and its UTF-8
bytes, zeros after them; a text of more than 64 bytes stands there by its length and its BLAKE2b
digest. Two rows are equal exactly if their vectors are (but for two long texts of one digest).

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

The digest is as private as the table: whoever can guess all rows can test the guess.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.errors import InputError
from pufferfish.tables.arrow import distinct, strings, to_numpy
from pufferfish.tables.canonical import Cells, canonical
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS

Words = npt.NDArray[np.uint64]

_SEED = b"pufferfish: identity of a table, version 2"
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
#: Texts that are not canonical, perhaps: those that have a blank at an end are among them.
_CLOSER = r"^[-.0-9][0-9-]*[.eE: T]|^[.]|^-0|^(?i:true|false)$|^[^!-~]|[^!-~]$"


@dataclass(frozen=True)
class TableIdentity:
    """What a table is known by.

    Attributes
    ----------
    digest : str
        64 hexadecimal digits; the same for every copy of the table.
    rows : int
        How many rows were read.
    """

    digest: str
    rows: int


def identity_of(source: Any, *, delimiter: str | None = None) -> TableIdentity:
    """Return the identity of a table, from all its rows and all its columns.

    The table is read once, a batch at a time; the time is linear in its cells, and memory does not
    grow with the rows of a file.
    """
    table = open_table(source, delimiter=delimiter)
    if table.columns.count("") > 1:
        raise InputError(
            f"{table.name} has {table.columns.count('')} columns without a name, which cannot be "
            "told apart; give each a name"
        )
    keys = {name: _keys(name) for name in table.columns}
    points = _random(b"z", _PRODUCTS) % np.uint64(_PRIME)
    products = [1] * _PRODUCTS
    rows = 0
    size = max(_LEAST_ROWS, min(BATCH_ROWS, _BATCH_CELLS // max(1, len(table.columns))))
    for batch in table.batches(table.columns, size) if table.columns else ():
        rows += len(batch)
        sums = np.zeros((_SUMS, len(batch)), dtype=np.uint64)
        for name, cells in zip(table.columns, batch.columns, strict=True):
            _add_column(sums, cells, keys[name])
        tops = sums >> np.uint64(34)
        for k in range(_PRODUCTS):
            numbers = tops[2 * k] << np.uint64(30) | tops[2 * k + 1]
            products[k] = products[k] * _product(numbers, points[k]) % _PRIME
    content = json.dumps([sorted(table.columns), rows, products]).encode()
    return TableIdentity(hashlib.sha256(_SEED + content).hexdigest(), rows)


def _random(purpose: bytes, numbers: int) -> Words:
    """Return 64-bit numbers that are constants, but as if drawn at random."""
    data = hashlib.shake_256(_SEED + purpose).digest(8 * numbers)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def _keys(name: str) -> Words:
    """Return the keys of a column: of the length and of each word, one for every sum."""
    words = 1 + _LONGEST // 4
    return _random(b"column " + name.encode(), words * _SUMS).reshape(words, _SUMS)


def _add_column(sums: Words, cells: pa.Array, keys: Words) -> None:
    """Add what the cells of one column contribute to the sums (6, rows) of their rows."""
    start = cells[:_SAMPLE]
    if not pa.types.is_dictionary(cells.type) and 2 * len(distinct(start)[0]) > len(start):
        # Too many distinct cells to be worth finding.
        for first, part in _hashed(_texts(cells), keys):
            sums[:, first : first + part.shape[1]] += part
        return
    values, places = distinct(cells)
    hashes = np.empty((_SUMS, len(values)), dtype=np.uint64)
    for first, part in _hashed(_texts(values), keys):
        hashes[:, first : first + part.shape[1]] = part
    for total, own in zip(sums, hashes, strict=True):
        total += own[places]


def _texts(cells: pa.Array) -> pa.Array:
    """Return cells as their canonical texts, none of them null."""
    large = pa.large_string()
    kind, known = cells.type, (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    if not any(check(kind) for check in known):
        return strings(Cells(cells).texts).cast(large)
    # A plain text as the filling would import pandas.
    texts = cells.cast(large).fill_null(strings([""]).cast(large)[0])
    closer = pc.match_substring_regex(texts, _CLOSER)
    found = [canonical(text) for text in texts.filter(closer).to_pylist()]
    return pc.replace_with_mask(texts, closer, strings(found).cast(large)) if found else texts


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
