# SPDX-License-Identifier: Apache-2.0
"""The channel: exact integers, the sampler that draws from them, and what it says of itself.

The law is compared with the definition in exact fractions, by every word of a small size; a mutant
of each guarantee is put before the same check and must fail it.
"""

import dataclasses
import json
import math
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from noise_checks import DRAWS, LEAST_P, OFF, all_different
from pufferfish.errors import InputError
from pufferfish.mechanisms import Channel
from pufferfish.sampling import categorical, seeded_entropy, system_entropy
from pufferfish.sampling.categorical import RowTable
from pufferfish.sampling.entropy import EntropyStuck
from pufferfish.support import Lattice, Levels

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


def numbers(size: int) -> Levels:
    return Levels(tuple(f"level {k:04d}" for k in range(size)))


def channel_of(rows: Sequence[Sequence[int]]) -> Channel:
    return Channel.of(numbers(len(rows)), numbers(len(rows[0])), rows)


def by_definition(row: Sequence[int], u: Fraction, *, below: bool = False) -> int:
    """The output for U = u, or (below) for all U just below u: the first sum that is larger."""
    total = sum(row)
    sums = [Fraction(c, total) for c in accumulate(row)]
    return sum(c < u for c in sums) if below else sum(c <= u for c in sums)


# --- Every word ---------------------------------------------------------------------------------


def every_draw(table: RowTable, x: int, later: bytes) -> np.ndarray[Any, Any]:
    """The outputs of all words of 16 bits, each followed by the byte ``later`` for ever."""
    words = np.arange(1 << 16)
    heads, rests = words >> 8, (words & 255) << 8
    cells = (x << table.bits) + (heads >> (8 - table.bits))
    open_ = table.guide[cells] < 0
    first = iter([heads.astype("<u1").tobytes(), rests[open_].astype("<u2").tobytes()])

    def entropy(count: int) -> bytes:
        answer = next(first, later * count)
        assert len(answer) == count
        return answer

    return table.draw(np.full(words.size, x), entropy)


def enumeration_is_exact(table: RowTable, rows: Rows) -> bool:
    """Words of 8 and 16 bits, taken one and all, give the outputs of the definition."""
    one = 1 << 16
    for x, row in enumerate(rows):
        scaled = [Fraction(c * one, sum(row)) for c in accumulate(row)]
        words = np.arange(one)
        # U is the word itself: it passes the sums that are at most the word ...
        low = np.searchsorted([math.ceil(c) for c in scaled], words, side="right")
        # ... or just below the next word: it passes the sums that are below that.
        high = np.searchsorted([math.floor(c) for c in scaled], words, side="right")
        if table.thresholds.size == 1:
            return bool((table.draw(np.array([x]), system_entropy) == low[0]).all())
        if not np.array_equal(every_draw(table, x, b"\0"), low):
            return False
        if not np.array_equal(every_draw(table, x, b"\xff"), high):
            return False
    return True


def small(rows: Rows) -> RowTable:
    return RowTable.of(rows, np.uint8, np.uint16)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("least_bits", [2, 5, 8])
def test_small_words_enumerated(
    name: str, least_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categorical, "_LEAST_BITS", least_bits)
    monkeypatch.setattr(categorical, "_CELLS_PER_THRESHOLD", 1)
    assert enumeration_is_exact(small(ROWS[name]), ROWS[name])


def test_the_enumeration_agrees_with_the_definition() -> None:
    """The quick bookkeeping of the check above, against fractions for a few words."""
    for rows in ROWS.values():
        table = small(rows)
        if table.thresholds.size == 1:
            continue
        for x, row in enumerate(rows):
            zeros, ones = every_draw(table, x, b"\0"), every_draw(table, x, b"\xff")
            for word in (0, 1, 255, 256, 2**15 - 1, 2**15, 2**15 + 1, 2**16 - 1):
                assert zeros[word] == by_definition(row, Fraction(word, 2**16))
                assert ones[word] == by_definition(row, Fraction(word + 1, 2**16), below=True)


@given(st.randoms(use_true_random=False))
def test_small_words_of_random_rows(rng: random.Random) -> None:
    rows = random_rows(rng)
    assert enumeration_is_exact(small(rows), rows)


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


def test_whole_words_have_the_exact_masses() -> None:
    """With 2**16 as the denominator, counting all words gives the integers themselves."""
    row = [1, 4096, 0, 61439 - 2**14, 2**14]
    assert sum(row) == 2**16
    drawn = every_draw(small([row]), 0, b"\0")
    assert np.bincount(drawn, minlength=5).tolist() == row


def as_doubles(rows: Rows) -> Rows:
    """Mutant: the rows as doubles, as a float sampler has them, exactly those doubles."""
    one = 2**120
    out = []
    for row in rows:
        floats = [int(Fraction(v / sum(row)) * one) for v in row]
        floats[-1] += one - sum(floats)
        out.append(floats)
    return out


def test_the_enumeration_rejects_thresholds_off_by_one() -> None:
    rows = ROWS["sevenths"]
    table = small(rows)
    for off in (1, -1):
        shifted = table.thresholds + np.uint16(off % 2**16)
        assert not enumeration_is_exact(dataclasses.replace(table, thresholds=shifted), rows)


def test_the_enumeration_rejects_a_guide_without_open_cells() -> None:
    rows = ROWS["sevenths"]
    table = small(rows)
    closed = np.where(table.guide < 0, 0, table.guide)
    assert not enumeration_is_exact(dataclasses.replace(table, guide=closed), rows)


@pytest.mark.parametrize("side", [0, 1])
def test_the_enumeration_rejects_words_that_decide_a_tie(
    side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        RowTable, "_with_more_words", lambda self, x, first, word, entropy: first + side
    )
    rows = ROWS["many in one cell"]
    assert not enumeration_is_exact(small(rows), rows)


# --- Ties ---------------------------------------------------------------------------------------


def scripted(*answers: bytes) -> Callable[[int], bytes]:
    """A source of entropy that gives these answers, whose lengths must be those asked for."""
    rest: Iterator[bytes] = iter(answers)

    def entropy(count: int) -> bytes:
        answer = next(rest)
        assert len(answer) == count
        return answer

    return entropy


def ties_are_exact(table: RowTable, rows: Rows) -> bool:
    """U agrees with a threshold in a whole word, then falls beside it: the definition decides.

    Raises StopIteration if more words are read than the definition needs.
    """
    bits, head_bits = np.iinfo(table.long).bits, np.iinfo(table.short).bits
    one = 1 << bits
    for x, row in enumerate(rows):
        for sum_ in list(accumulate(row))[:-1]:
            c = Fraction(sum_, sum(row))
            if c in (0, 1):
                continue
            floor = int(c * one**3)
            first, second, third = (floor >> bits * place & (one - 1) for place in (2, 1, 0))
            for more in ([second - 1], [second + 1], [second, third - 1], [second, third + 1]):
                if not all(0 <= word < one for word in more):
                    continue
                u, width = first, one
                for word in more:
                    u, width = u * one + word, width * one
                expected = by_definition(row, Fraction(u, width))
                if by_definition(row, Fraction(u + 1, width), below=True) != expected:
                    continue  # another threshold within the last word: not decided by it
                head, rest = first >> bits - head_bits, (first << head_bits) & (one - 1)
                script = [
                    word.to_bytes(size // 8, "little")
                    for word, size in [(head, head_bits), (rest, bits), *((w, bits) for w in more)]
                ]
                if int(table.draw(np.array([x]), scripted(*script))[0]) != expected:
                    return False
    return True


WORDS = [(np.uint8, np.uint16), (np.uint16, np.uint64)]


@pytest.mark.parametrize("short, long", WORDS, ids=["small", "full"])
@pytest.mark.parametrize("name", ROWS)
def test_a_word_that_hits_a_threshold_reads_on(name: str, short: Any, long: Any) -> None:
    assert ties_are_exact(RowTable.of(ROWS[name], short, long), ROWS[name])


@given(st.randoms(use_true_random=False))
def test_ties_of_random_rows(rng: random.Random) -> None:
    rows = random_rows(rng)
    assert ties_are_exact(RowTable.of(rows), rows)


@pytest.mark.parametrize("name", ["sevenths", "many in one cell", "mixed"])
def test_the_check_of_ties_rejects_float_rows(name: str) -> None:
    rows = ROWS[name]
    assert ties_are_exact(RowTable.of(as_doubles(rows)), as_doubles(rows))
    assert not ties_are_exact(RowTable.of(as_doubles(rows)), rows)


def test_a_threshold_that_ends_is_passed_without_further_words() -> None:
    """1/2**64 is at most U = 1/2**64, whatever follows; one step less is below it."""
    table = RowTable.of([[1, 2**64 - 1]])
    head, word = b"\0\0", (1 << 16).to_bytes(8, "little")  # 16 bits of 0, then ...00001
    assert table.draw(np.array([0]), scripted(head, word)).tolist() == [1]
    assert table.draw(np.array([0]), scripted(head, b"\0" * 8)).tolist() == [0]
    # The same threshold in other terms, and one that is a little larger.
    assert RowTable.of([[3, 3 * 2**64 - 3]]).draw(np.array([0]), scripted(head, word)) == [1]
    larger = RowTable.of([[3 * 2**64 + 1, 3 * 2**128 - 3 * 2**64 - 1]])
    assert larger.draw(np.array([0]), scripted(head, word, b"\0" * 8, b"\0" * 8)) == [0]
    assert larger.draw(np.array([0]), scripted(head, word, b"\x01" + b"\0" * 7)) == [1]


def test_a_beginning_of_a_cell_needs_no_second_word() -> None:
    table = RowTable.of([[1, 1], [3, 1]])
    assert (table.guide >= 0).all()
    for head, expected in ((0x7FFF, 0), (0x8000, 1), (0xBFFF, 1), (0xC000, 1)):
        assert table.draw(np.array([0]), scripted(head.to_bytes(2, "little"))) == [expected]


def test_a_source_that_repeats_itself_is_refused() -> None:
    with pytest.raises(EntropyStuck):  # 1/3 is .010101...
        channel_of([[1, 2]]).draw(np.array([0]), lambda count: b"\x55" * count)


# --- The law ------------------------------------------------------------------------------------


def fit(drawn: np.ndarray[Any, Any], row: Sequence[int]) -> float:
    """p-value of a chi-square test that outputs have the masses of a row."""
    expected = np.array([v / sum(row) for v in row]) * drawn.size
    observed = np.bincount(drawn, minlength=len(row))
    if observed[expected == 0].any():
        return 0.0
    kept = expected > 0
    if kept.sum() == 1:
        return 1.0
    return float(stats.chisquare(observed[kept], expected[kept]).pvalue)


def off_by(row: Sequence[int], factor: float, own: int) -> list[int]:
    """The row with everything but one entry scaled by a factor."""
    other = [0 if y == own else int(v * 10 * Fraction(str(factor))) for y, v in enumerate(row)]
    other[own] = 10 * sum(row) - sum(other)
    return other


LAW = [
    [2**63, 2**62, 2**62],
    [10**20, 5 * 10**20, 4 * 10**20],
    [0, 1, 1],
    [1, 0, 2],
    [0, 7, 0],
    [300, 300, 301],
]


def test_draws_fit_their_rows_and_no_others() -> None:
    channel = channel_of(LAW)
    atoms = np.tile(np.arange(len(LAW)), DRAWS)
    np.random.default_rng(0).shuffle(atoms)
    drawn = channel.draw(atoms)
    assert drawn.dtype == np.int64
    assert drawn.shape == atoms.shape
    for x, row in enumerate(LAW):
        assert fit(drawn[atoms == x], row) > LEAST_P
        if sum(v > 0 for v in row) == 1:
            continue
        own = max(range(3), key=lambda y, row=row: row[y])
        for factor in OFF:
            wrong = channel_of([off_by(row, factor, own)])
            assert fit(wrong.draw(np.zeros(DRAWS, dtype=np.int64)), row) < LEAST_P


def test_large_channels_fit_too() -> None:
    rng = random.Random(3)
    rows = [[rng.randrange(1, 2**57) for _ in range(100)] for _ in range(100)]
    channel = channel_of(rows)
    at = np.repeat([0, 57, 99], DRAWS)
    drawn = channel.draw(at)
    for x in (0, 57, 99):
        assert fit(drawn[at == x], rows[x]) > LEAST_P
        assert fit(drawn[at == x], rows[x - 1]) < LEAST_P
    joint = np.bincount(drawn[:-1:2] % 2 * 2 + drawn[1::2] % 2, minlength=4)
    even = [sum(row[::2]) / sum(row) for row in (rows[0], rows[57], rows[99])]
    expected = sum(
        np.array([e * e, e * (1 - e), (1 - e) * e, (1 - e) ** 2]) * DRAWS / 2 for e in even
    )
    assert stats.chisquare(joint, expected).pvalue > LEAST_P  # neighbours are independent


def test_nothing_is_drawn_that_has_no_mass() -> None:
    channel = channel_of([[0, 1, 0, 2**200, 0], [1, 0, 0, 0, 0]])
    for byte in (b"\0", b"\xff", b"\x80"):
        assert set(channel.draw(np.array([0, 0, 1]), lambda n, b=byte: b * n)) <= {0, 1, 3}
    assert channel.draw(np.array([1]), lambda n: b"\xff" * n) == [0]


def test_certain_outputs_need_no_entropy() -> None:
    channel = channel_of([[0, 3], [5, 0]])
    assert channel.draw(np.array([0, 1, 1, 0]), scripted()).tolist() == [1, 0, 0, 1]
    assert channel_of([[1, 2]]).draw(np.array([], dtype=np.int64), scripted()).size == 0


def test_batches_are_drawn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categorical, "_BATCH", 1000)
    drawn = channel_of([[1] * 1000]).draw(np.zeros(2500, dtype=np.int64))
    assert not np.array_equal(drawn[:1000], drawn[1000:2000])
    assert drawn.size == 2500


# --- Entropy ------------------------------------------------------------------------------------


def test_every_draw_asks_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def counted(count: int) -> bytes:
        asked.append(count)
        return real(count)

    monkeypatch.setattr(os, "urandom", counted)
    channel = channel_of([[1, 2]])
    for _ in range(2):
        asked.clear()
        channel.draw(np.zeros(1000, dtype=np.int64))
        assert sum(asked) >= 2000


def test_seeded_entropy_repeats_itself() -> None:
    draw, at = channel_of([[1] * 50]).draw, np.zeros(200, dtype=np.int64)
    assert np.array_equal(draw(at, seeded_entropy(3)), draw(at, seeded_entropy(3)))
    assert not np.array_equal(draw(at, seeded_entropy(3)), draw(at, seeded_entropy(4)))


FORK = """
import os, sys
import numpy as np
from pufferfish.mechanisms import Channel
from pufferfish.sampling import seeded_entropy, system_entropy
from pufferfish.support import Levels

sources = {
    "system": lambda: system_entropy,
    "reused seed": lambda: seeded_entropy(7),
    "inherited state": lambda state=np.random.default_rng().bytes: state,
}
source = sources[sys.argv[1]]
levels = Levels(tuple(f"{k:03d}" for k in range(100)))
channel = Channel.of(levels, levels, [[1 + (x == y) for y in range(100)] for x in range(100)])
at = np.arange(100)
print(channel.draw(at, source()).tobytes().hex(), flush=True)
for _ in range(3):
    child = os.fork()
    if child == 0:
        print(channel.draw(at, source()).tobytes().hex(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def drawn_across_forks(source: str) -> list[bytes]:
    done = subprocess.run(
        [sys.executable, "-c", FORK, source], check=True, capture_output=True, text=True
    )
    samples = [bytes.fromhex(line) for line in done.stdout.split()]
    assert len(samples) == 4
    return samples


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_never_share_draws() -> None:
    assert all_different(drawn_across_forks("system"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("mutant", ["reused seed", "inherited state"])
def test_the_fork_check_catches_shared_draws(mutant: str) -> None:
    assert not all_different(drawn_across_forks(mutant))


# --- Tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 10, 50, 100, 200])
def test_tables_stay_small(size: int) -> None:
    table = RowTable.of([[1 + x * y % 7 for y in range(size)] for x in range(size)])
    assert table.guide.size <= 2**22
    assert np.mean(table.guide < 0) <= 1 / 32


def test_a_large_channel_takes_modest_memory() -> None:
    rows = [[1 << 55 | x * y for y in range(400)] for x in range(400)]
    tracemalloc.start()
    try:
        RowTable.of(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


def test_tables_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = channel_of([[1, 2]])
    channel.draw(np.array([0]))

    def never(*_: object) -> None:
        raise AssertionError("a table was made again")

    monkeypatch.setattr(RowTable, "of", never)
    channel.draw(np.array([0]))


# --- The mechanism ------------------------------------------------------------------------------


def test_probabilities_are_the_integers() -> None:
    channel = channel_of([[1, 2, 4], [10**40, 0, 10**40]])
    assert channel.denominators == (7, 2 * 10**40)
    assert channel.probability(0, 2) == Fraction(4, 7)
    assert channel.probability(1, 1) == 0
    assert np.array_equal(channel.matrix, [[1 / 7, 2 / 7, 4 / 7], [0.5, 0, 0.5]])
    with pytest.raises(ValueError, match="read-only"):
        channel.rows[0, 0] = 2


def test_rows_are_kept_apart_from_what_was_given() -> None:
    rows = np.array([[1, 2], [3, 4]])
    channel = Channel(numbers(2), numbers(2), rows, (3, np.int64(7)))  # type: ignore[arg-type]
    rows[0, 0] = 9
    assert channel.rows.tolist() == [[1, 2], [3, 4]]
    assert {type(v) for v in (*channel.rows.ravel(), *channel.denominators)} == {int}


@pytest.mark.parametrize(
    "rows, denominators, message",
    [
        ([[0.5, 0.5]], (1,), "whole numbers, but 0.5"),
        ([[1.0, 2.0]], (3,), "whole numbers, but 1.0"),
        ([["1", 2]], (3,), "whole numbers, but '1'"),
        ([[1, 2]], (3.0,), "whole numbers, but 3.0"),
        ([[-1, 4]], (3,), "row 1 of the channel has the negative entry -1"),
        ([[1, 2]], (4,), "row 1 of the channel sums to 3"),
        ([[0, 0]], (0,), "above 0"),
        ([[1, 2]], (3, 3), "2 denominators"),
        ([[1, 2, 3]], (6,), r"rows of shape \(1, 3\)"),
        ([[1, 2], [1, 2]], (3, 3), r"rows of shape \(2, 2\)"),
    ],
)
def test_wrong_channels_are_refused(rows: Any, denominators: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Channel(numbers(1), numbers(2), rows, denominators)


def test_rows_of_no_shape_are_refused() -> None:
    with pytest.raises(InputError, match="rows of integers"):
        Channel.of(numbers(1), numbers(2), [1, 2])
    with pytest.raises(InputError, match="whole numbers"):
        Channel.of(numbers(1), numbers(2), [[0.5, 0.5]])


@pytest.mark.parametrize("atoms", [[0, 2], [-1], [[0, 1]], [0.0], ["0"], [True]])
def test_wrong_positions_are_refused(atoms: Any) -> None:
    with pytest.raises(InputError, match="positions"):
        channel_of([[1, 2], [2, 1]]).draw(np.array(atoms))


def test_unsigned_and_short_positions_do() -> None:
    channel = channel_of([[0, 2], [2, 0]])
    for kind in (np.uint8, np.int16, np.uint64):
        assert channel.draw(np.array([0, 1], dtype=kind)).tolist() == [1, 0]


def half_lattice(*places: int) -> Lattice:
    return Lattice(Fraction(1, 2), places[0], np.array(places) - places[0])


@given(st.randoms(use_true_random=False))
def test_errors_against_the_definition(rng: random.Random) -> None:
    rows = random_rows(rng)
    n, m = len(rows), len(rows[0])
    inputs = half_lattice(*sorted(rng.sample(range(-9, 9), n)))
    outputs = Lattice(Fraction(1, 3), -5, np.array(sorted(rng.sample(range(20), m))))
    outputs = Lattice(outputs.step, -5 + int(outputs.index[0]), outputs.index - outputs.index[0])
    channel = Channel.of(inputs, outputs, rows)
    weights = [rng.choice([0, 1, 5, 10**20, 0.25, "1/3"]) for _ in range(n)]
    weights[rng.randrange(n)] = 2
    masses = [Fraction(str(w)) for w in weights]
    mse, kept = Fraction(0), Fraction(0)
    for x, mass in enumerate(masses):
        for y in range(m):
            chance = mass * channel.probability(x, y) / sum(masses)
            mse += chance * (inputs.value(x) - outputs.value(y)) ** 2
            kept += chance * (inputs.value(x) == outputs.value(y))
    assert channel.mse(weights) == pytest.approx(float(mse), rel=1e-15, abs=1e-70)
    assert channel.keep_rate(weights) == pytest.approx(float(kept), rel=1e-15, abs=1e-70)


def test_a_cost_of_nothing_is_nothing() -> None:
    identity = Channel.of(half_lattice(0, 1, 5), half_lattice(0, 1, 5), np.diag([3, 5, 7]))
    for weights in ([1, 1, 1], [0.1, 0.2, 0.7], np.array([3, 0, 9])):
        assert identity.mse(weights) == 0
        assert identity.keep_rate(weights) == 1


def test_levels_and_codes() -> None:
    ordered = Levels(("low", "mid", "high"), ordered=True)
    rows = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    channel = Channel.of(ordered, ordered, rows)
    assert channel.mse([1, 1, 1]) == pytest.approx((1 / 2 + 0 + 4 / 2) / 3)
    assert channel.keep_rate([1, 0, 0]) == 0.5
    codes = Channel.of(ordered, Lattice(Fraction(1), 0, np.arange(3)), rows)
    assert codes.mse([1, 1, 1]) == channel.mse([1, 1, 1])
    assert codes.keep_rate([1, 1, 1]) == channel.keep_rate([1, 1, 1])
    some = Channel.of(ordered, Levels(("high", "low"), ordered=True), [[1, 3], [1, 1], [1, 0]])
    assert some.same == (1, None, 0)
    assert some.keep_rate([1, 1, 2]) == pytest.approx((3 / 4 + 2) / 4)
    assert some.mse([1, 0, 0]) == 1
    for outputs in (Levels(("low", "other")), numbers(2)):
        with pytest.raises(InputError, match="order"):
            Channel.of(numbers(3), outputs, [[1, 1]] * 3).mse([1, 1, 1])
    with pytest.raises(InputError, match="'other' is none of the inputs"):
        Channel.of(ordered, Levels(("low", "other")), [[1, 1]] * 3).mse([1, 1, 1])


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [-1, 2], [0, 0], ["x", 1]])
def test_wrong_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InputError, match="weight"):
        channel_of([[1, 2], [2, 1]]).keep_rate(weights)


def test_description() -> None:
    assert channel_of([[1, 0], [2**63, 2**63]]).describe() == (
        "a channel from 2 levels to 2 levels: 3 entries above 0, whole numbers over denominators "
        "of at most 65 bits"
    )


@given(st.randoms(use_true_random=False))
def test_files_hold_the_integers(rng: random.Random) -> None:
    rows = random_rows(rng)
    rows[0][0] += 3**10_000  # longer than Python reads in decimal
    channel = Channel.of(numbers(len(rows)), half_lattice(*range(len(rows[0]))), rows)
    data = json.loads(json.dumps(channel.to_dict(), allow_nan=False))
    again = Channel.from_dict(data)
    assert again.rows.tolist() == rows
    assert again.denominators == channel.denominators
    assert again.inputs.same_as(channel.inputs)
    assert again.outputs.same_as(channel.outputs)


@pytest.mark.parametrize(
    "row",
    [
        [],
        None,
        [[0, 1]],
        [[0, "1"]],
        [[0, "0x-1"]],
        [[0, "0xG"]],
        [[0, "0x1_0"]],
        [[2, "0x1"]],
        [[-1, "0x1"]],
        [[True, "0x1"]],
        [[1, "0x1"], [0, "0x1"]],
        [[0, "0x1"], [0, "0x1"]],
        [[0, "0x1", 1]],
    ],
)
def test_files_that_hold_no_channel_are_refused(row: Any) -> None:
    data = channel_of([[1, 2], [2, 1]]).to_dict()
    data["rows"][1] = row
    with pytest.raises(InputError, match="a row of its channel"):
        Channel.from_dict(data)


def test_files_without_mass_or_rows_are_refused() -> None:
    data = channel_of([[1, 2], [2, 1]]).to_dict()
    with pytest.raises(InputError, match="above 0"):
        Channel.from_dict({**data, "rows": [[[0, "0x0"]], [[0, "0x1"]]]})
    with pytest.raises(InputError, match="needs 2 rows"):
        Channel.from_dict({**data, "rows": data["rows"][:1]})
    with pytest.raises(InputError, match="'rows'"):
        Channel.from_dict({**data, "rows": "x"})
