# SPDX-License-Identifier: Apache-2.0
"""Identity: a digest by which a table is known again, whatever its name and the order of its rows.

A copy of a table, with the rows or the columns in another order, or as another kind of file, is
that same table; one with a single cell edited is not.

*Rows.* Every cell gives three 64-bit numbers: BLAKE2b of the name of its column and its canonical
text (null is the empty one). The sums of these over the cells of a row, modulo 2**64, give three
numbers v, their top 60 bits; the order of the columns cannot matter. If two rows differ in a cell,
their sums differ by a number as good as random, and a v agrees with chance at most 2**-59.

*Tables.* For each v, the product of ``z - v`` over all rows, modulo the prime p = 2**61 - 1: a
product, so the order of the rows cannot matter. If one table has a row more often than the other,
then either the v of that row is that of one of the at most 2 n other rows of both (chance at most
2 n 2**-59), or the two products are different polynomials in z of degree at most n, which agree at
z with chance at most n / p. In all less than n 2**-57 for one product, and since the three are
independent, less than ``(n 2**-57)**3`` for the identity: 2**-101 for ten million rows. This holds
for any two tables that were not made with an eye on the constants z, which are as good as drawn
once. The digest is SHA-256 over the names of the columns, sorted, the number of rows and the three
products.

The digest is as private as the table: whoever can guess all rows can test the guess.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS, distinct, texts_of

Words = npt.NDArray[np.uint64]

_SEED = b"pufferfish: identity of a table, version 2"
#: Three products.
_PRODUCTS = 3
_PRIME = 2**61 - 1
#: So many rows at a time, for memory and for the processor's cache.
_BLOCK = 1 << 14
_BATCH_CELLS = 1 << 22
_LEAST_ROWS = 256


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
    """Return the identity of a table, from all its rows and all its columns, read once."""
    table = open_table(source, delimiter=delimiter)
    if table.columns.count("") > 1:
        raise InputError(
            f"{table.name} has {table.columns.count('')} columns without a name, which cannot be "
            "told apart; give each a name"
        )
    data = hashlib.shake_256(_SEED).digest(8 * _PRODUCTS)
    points = np.frombuffer(data, dtype="<u8").astype(np.uint64) % np.uint64(_PRIME)
    products, rows = [1] * _PRODUCTS, 0
    size = max(_LEAST_ROWS, min(BATCH_ROWS, _BATCH_CELLS // max(1, len(table.columns))))
    for batch in table.batches(table.columns, size) if table.columns else ():
        rows += len(batch)
        sums = np.zeros((len(batch), _PRODUCTS), dtype=np.uint64)
        for name, cells in zip(table.columns, batch.columns, strict=True):
            values, places = distinct(cells)
            sums += _hashed(name, texts_of(values))[places]
        for k in range(_PRODUCTS):
            product = _product(sums[:, k] >> np.uint64(4), points[k])
            products[k] = products[k] * product % _PRIME
    content = json.dumps([sorted(table.columns), rows, products]).encode()
    return TableIdentity(hashlib.sha256(_SEED + content).hexdigest(), rows)


def _hashed(name: str, texts: list[str]) -> Words:
    """Return three numbers for each cell of a column, shape (cells, 3)."""
    column = hashlib.blake2b(_SEED + name.encode(), digest_size=64).digest()
    size = 8 * _PRODUCTS
    pieces = [hashlib.blake2b(t.encode(), digest_size=size, key=column).digest() for t in texts]
    numbers: Words = np.frombuffer(b"".join(pieces), dtype="<u8").astype(np.uint64)
    return numbers.reshape(-1, _PRODUCTS)


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
