# SPDX-License-Identifier: Apache-2.0
"""Identity: a digest by which a table is known again, whatever its name and the order of its rows.

A copy of a table, with the rows or the columns in another order, or as another kind of file, is
that same table; one with a single cell edited is not.

Every cell gives three 64-bit words: BLAKE2b of the name of its column and its canonical text (null
is the empty one). The words of a row are the sums of those of its cells, modulo 2**64, so the order
of the columns cannot matter. Each word of a row is mixed by the finaliser of SplitMix64, and the
words of the table are the sums over its rows, so their order cannot matter either. The digest is
SHA-256 over the names of the columns, sorted, the number of rows and the three words.

Two tables that were not made with an eye on this digest, and of which one has a row more often than
the other, agree in one word with a chance of about 2**-64, and in all three of about 2**-192. That
finds every slip and every edit; it does not stop somebody who constructs two tables of one digest.
The digest is as private as the table: whoever can guess all rows can test the guess.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS, distinct, texts_of

Words = npt.NDArray[np.uint64]

_SEED = b"pufferfish: identity of a table, version 3"
_WORDS = 3
#: About so many cells at a time, for memory.
_BATCH_CELLS = 2**22


@dataclass(frozen=True)
class TableIdentity:
    """What a table is known by: 64 hexadecimal digits, and how many rows it has."""

    digest: str
    rows: int


def identity_of(source: Any) -> TableIdentity:
    """Return the identity of a table, from all its rows and all its columns, read once."""
    table = open_table(source)
    if table.columns.count("") > 1:
        raise InputError(
            f"{table.name} has {table.columns.count('')} columns without a name, which cannot be "
            "told apart; give each a name"
        )
    total, rows = np.zeros(_WORDS, dtype=np.uint64), 0
    size = min(BATCH_ROWS, 1 + _BATCH_CELLS // max(1, len(table.columns)))
    for batch in table.batches(table.columns, size) if table.columns else ():
        rows += len(batch)
        total += row_words(table.columns, batch).sum(axis=0)
    content = json.dumps([sorted(table.columns), rows, total.tolist()]).encode()
    return TableIdentity(hashlib.sha256(_SEED + content).hexdigest(), rows)


def row_words(names: Sequence[str], batch: pa.RecordBatch) -> Words:
    """Return the mixed words of each row of some columns, shape (rows, 3)."""
    words = np.zeros((len(batch), _WORDS), dtype=np.uint64)
    for name, cells in zip(names, batch.columns, strict=True):
        values, places = distinct(cells)
        words += _hashed(name, texts_of(values))[places]
    return _mixed(words)


def _hashed(name: str, texts: list[str]) -> Words:
    """Return the words of each cell of a column, shape (cells, 3)."""
    key = hashlib.blake2b(_SEED + name.encode()).digest()
    pieces = [hashlib.blake2b(t.encode(), digest_size=8 * _WORDS, key=key).digest() for t in texts]
    return np.frombuffer(b"".join(pieces), dtype="<u8").astype(np.uint64).reshape(-1, _WORDS)


def _mixed(words: Words) -> Words:
    """Return the words mixed by the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words
