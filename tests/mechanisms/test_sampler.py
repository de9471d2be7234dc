# SPDX-License-Identifier: Apache-2.0
"""Tables: every word of a small size gives the outcome of the definition, and ties read on.

A mutant of each guarantee is put before the same check and must fail it.
"""

import dataclasses
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noise_checks import enumeration_is_exact, independent_floors, scripted
from pufferfish.mechanisms import sampler as module
from pufferfish.mechanisms.entropy import EntropyStuck
from pufferfish.mechanisms.sampler import Table
from pufferfish.mechanisms.thresholds import Digit, Law, Row, SignedGeometric

Rows = list[list[int]]

#: Denominators of all kinds: powers of two within a cell, a word and beyond; primes; huge ones.
ROWS: dict[str, Rows] = {
    "sevenths": [[1, 2, 4], [0, 7, 0], [3, 0, 4]],
    "halves and a cell": [[1, 1], [255, 1]],
    "two to the 16": [[1, 2**16 - 1], [2**15 + 1, 2**15 - 1]],
    "two to the 64": [[2**63 + 12345, 2**62, 2**62 - 12345], [0, 2**64 - 1, 1]],
    "leading and trailing zeros": [[0, 0, 5, 6, 0], [0, 3, 0, 0, 0], [9, 0, 0, 0, 1]],
    "many in one cell": [[1] * 40 + [10**6], [10**6] + [1] * 40],
    "mixed": [[3, 2**20], [10**30, 10**29 + 7], [1, 2**40 - 1], [2**90 // 3, 2**90]],
    "one output": [[5], [7]],
    "all even": [[3] * 60],
}
NOISE: list[SignedGeometric | Digit] = [
    SignedGeometric(Fraction(1), 1, 2),
    SignedGeometric(Fraction(1, 3), 1, 9),
    SignedGeometric(Fraction(20), 1, 1),
    SignedGeometric(Fraction(1, 10**6), 2**18, 20),
    SignedGeometric(Fraction(1, 4), 1, 90),
    Digit(Fraction(1, 5), 1, 2),
    Digit(Fraction(1, 5), 2, 16),
    Digit(Fraction(1, 10**9), 1, 32),
]
WORDS = [(np.uint8, np.uint16), (np.uint16, np.uint64)]


def of(rows: Rows, short: Any = np.uint16, long: Any = np.uint64) -> Table:
    return Table.of([Row(row) for row in rows], short, long)


def small(rows: Rows) -> Table:
    return of(rows, np.uint8, np.uint16)


def random_rows(rng: random.Random) -> Rows:
    n, m = rng.randint(1, 4), rng.randint(1, 7)
    top = rng.choice([1, 3, 2**8, 2**16, 2**64, 7**40])
    rows = [[rng.choice([0, 0, rng.randint(0, top), 1]) for _ in range(m)] for _ in range(n)]
    for row in rows:
        row[rng.randrange(m)] += 1
        if rng.random() < 0.5:  # a power of two
            total = sum(row)
            row[-1] += (1 << total.bit_length()) - total
    return rows


# --- Every word ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("least_bits", [2, 5, 8])
def test_small_words_of_rows_enumerated(
    name: str, least_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAST_BITS", least_bits)
    monkeypatch.setattr(module, "_CELLS_PER_THRESHOLD", 1)
    assert enumeration_is_exact(small(ROWS[name]), ROWS[name])


@pytest.mark.parametrize("law", NOISE, ids=str)
def test_small_words_of_noise_enumerated(law: Law) -> None:
    assert enumeration_is_exact(Table.of([law], np.uint8, np.uint16))


def test_the_enumeration_rejects_thresholds_off_by_one() -> None:
    rows = ROWS["sevenths"]
    table = small(rows)
    for off in (1, -1):
        shifted = table.thresholds + np.uint16(off % 2**16)
        assert not enumeration_is_exact(dataclasses.replace(table, thresholds=shifted), rows)


@pytest.mark.parametrize("rows", [ROWS["sevenths"], None], ids=["rows", "noise"])
def test_the_enumeration_rejects_a_guide_without_open_cells(rows: Rows | None) -> None:
    table = small(rows) if rows else Table.of([NOISE[1]], np.uint8, np.uint16)
    for closed in (
        np.where(table.guide < 0, 0, table.guide),
        np.maximum(table.guide, ~table.guide),
    ):
        assert not enumeration_is_exact(dataclasses.replace(table, guide=closed), rows)


@pytest.mark.parametrize("rows", [ROWS["many in one cell"], None], ids=["rows", "noise"])
@pytest.mark.parametrize("side", [0, 1])
def test_the_enumeration_rejects_words_that_decide_a_tie(
    side: int, rows: Rows | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Table, "_with_more_words", lambda self, x, first, word, entropy: first + side
    )
    table = small(rows) if rows else Table.of([NOISE[1]], np.uint8, np.uint16)
    assert not enumeration_is_exact(table, rows)


# --- Ties ---------------------------------------------------------------------------------------


def script_of(words: Sequence[int], table: Table) -> list[bytes]:
    """A short and a long word that begin with the first word, and further long words."""
    bits, head_bits = np.iinfo(table.long).bits, np.iinfo(table.short).bits
    head, rest = words[0] >> bits - head_bits, (words[0] << head_bits) & ((1 << bits) - 1)
    sized = [(head, head_bits), (rest, bits), *((word, bits) for word in words[1:])]
    return [word.to_bytes(size // 8, "little") for word, size in sized]


def sums_of(law: Any, row: Sequence[int] | None, bits: int) -> list[int]:
    """floor(2**bits * c) of all thresholds c, of a row or (None) of a law of noise."""
    if row is None:
        return list(independent_floors(law, bits))
    return [(c << bits) // sum(row) for c in accumulate(row)]


def ties_are_exact(table: Table, rows: Rows | None = None) -> bool:
    """U agrees with a threshold in a whole word, then falls beside it: the definition decides.

    Raises StopIteration if more words are read than the definition needs.
    """
    bits = np.iinfo(table.long).bits
    for x, law in enumerate(table.laws):
        sums = sums_of(law, rows and rows[x], 3 * bits)
        for c in set(sums[:: max(1, len(sums) // 20)]) - {0, 1 << 3 * bits}:
            first, second, third = (c >> bits * place & (1 << bits) - 1 for place in (2, 1, 0))
            for more in ([second - 1], [second + 1], [second, third - 1], [second, third + 1]):
                if not all(0 <= word < 1 << bits for word in more):
                    continue
                u = first
                for word in more:
                    u = (u << bits) + word
                known = [c >> bits * (2 - len(more)) for c in sums]
                if u in known:  # another threshold agrees in these bits: not decided by them
                    continue
                source = scripted(*script_of([first, *more], table))
                outcomes = law.outcomes if rows is None else range(len(rows[x]))
                if table.draw(1, source, np.array([x]))[0] != outcomes[sum(c < u for c in known)]:
                    return False
    return True


@pytest.mark.parametrize("short, long", WORDS, ids=["small", "full"])
def test_a_word_that_hits_a_threshold_reads_on(short: Any, long: Any) -> None:
    for rows in ROWS.values():
        assert ties_are_exact(of(rows, short, long), rows)
    for law in NOISE:
        assert ties_are_exact(Table.of([law], short, long))


@given(st.randoms(use_true_random=False))
def test_words_and_ties_of_random_rows(rng: random.Random) -> None:
    rows = random_rows(rng)
    assert enumeration_is_exact(small(rows), rows)
    assert ties_are_exact(of(rows), rows)


def as_doubles(rows: Rows) -> Rows:
    """Mutant: the rows as doubles, as a float sampler has them, exactly those doubles."""
    one = 2**120
    out = []
    for row in rows:
        floats = [int(Fraction(v / sum(row)) * one) for v in row]
        floats[-1] += one - sum(floats)
        out.append(floats)
    return out


@pytest.mark.parametrize("name", ["sevenths", "many in one cell", "mixed"])
def test_the_check_of_ties_rejects_float_rows(name: str) -> None:
    rows = ROWS[name]
    assert ties_are_exact(of(as_doubles(rows)), as_doubles(rows))
    assert not ties_are_exact(of(as_doubles(rows)), rows)


def test_a_threshold_that_ends_is_passed_without_further_words() -> None:
    """1/2**64 is at most U = 1/2**64, whatever follows; one step less is below it."""
    table = of([[1, 2**64 - 1]])
    head, word = b"\0\0", (1 << 16).to_bytes(8, "little")  # 16 bits of 0, then ...00001
    assert table.draw(1, scripted(head, word)).tolist() == [1]
    assert table.draw(1, scripted(head, b"\0" * 8)).tolist() == [0]
    # The same threshold in other terms, and one that is a little larger.
    assert of([[3, 3 * 2**64 - 3]]).draw(1, scripted(head, word)) == [1]
    larger = of([[3 * 2**64 + 1, 3 * 2**128 - 3 * 2**64 - 1]])
    assert larger.draw(1, scripted(head, word, b"\0" * 8, b"\0" * 8)) == [0]
    assert larger.draw(1, scripted(head, word, b"\x01" + b"\0" * 7)) == [1]


def test_a_source_that_repeats_itself_is_refused() -> None:
    with pytest.raises(EntropyStuck):  # 1/3 is .010101...
        of([[1, 2]]).draw(1, lambda count: b"\x55" * count)
