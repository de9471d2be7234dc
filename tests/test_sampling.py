# SPDX-License-Identifier: Apache-2.0
"""The sampler: exact thresholds, every path of the comparison, the law, and the entropy."""

import dataclasses
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from noise_checks import (
    DRAWS,
    LEAST_P,
    OFF,
    all_different,
    fit,
    residues,
    same_law,
)
from pufferfish.errors import InputError, PufferfishError
from pufferfish.sampling import DiscreteLaplaceSampler, seeded_entropy, system_entropy
from pufferfish.sampling import laplace as laplace_module
from pufferfish.sampling import table as table_module
from pufferfish.sampling import thresholds as thresholds_module
from pufferfish.sampling.laplace import MAX_UNITS, _Digits, _digits_of
from pufferfish.sampling.table import UNDECIDED, Table
from pufferfish.sampling.thresholds import (
    Digit,
    Interval,
    Law,
    SignedGeometric,
    exp_minus,
    proved_floors,
)

ONE = Fraction(1)
SCALES = [0.3, 0.5, 1.0, 3.7, 50.0, 1000.0, 1e6, 1e12]
STEPS = [ONE, Fraction(1, 4)]


# --- Exact thresholds ---------------------------------------------------------------------------


def independent_sums(law: Law) -> list[Any]:
    """Closed forms of the cumulative sums in multiple-precision floats, not intervals."""
    rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
    if isinstance(law, SignedGeometric):
        b, total = rate * law.weight, 1 + mpmath.exp(-rate)
        below = [mpmath.exp(-rate - k * b) / total for k in range(law.cut, -1, -1)]
        return below + [1 - mpmath.exp(-k * b) / total for k in range(1, law.cut + 1)]
    r = rate * law.weight
    return [mpmath.expm1(-(d + 1) * r) / mpmath.expm1(-law.base * r) for d in range(law.base - 1)]


def independent_floors(law: Law, bits: int) -> tuple[int, ...]:
    # The open interval (0, 1) is known; 1 minus less than the precision prints as 1.
    with mpmath.workdps(60 + bits // 3):
        return tuple(
            min(int(mpmath.floor(mpmath.ldexp(c, bits))), 2**bits - 1)
            for c in independent_sums(law)
        )


LAWS = [
    SignedGeometric(Fraction(rate), weight, cut)
    for rate, weight, cut in [
        (Fraction(10**6), 1, 2),
        (Fraction(10, 3), 1, 5),
        (2, 1, 6),
        (1, 1, 12),
        (Fraction(1, 3), 1, 40),
        (Fraction(1) / Fraction(3.7), 1, 45),
        (Fraction(1, 50), 1, 600),
        (Fraction(1, 1000), 8, 300),
        (Fraction(1, 10**6), 2**13, 700),
        (Fraction(1, 10**18), 2**53, 700),
        (Fraction(1, 10**40), 2**130, 9),
        (Fraction(1, 10**18), 1, 9),
    ]
] + [
    Digit(Fraction(rate), weight, base)
    for rate, weight, base in [
        (2, 1, 2),
        (Fraction(1, 1000), 1, 8),
        (Fraction(1, 10**6), 1, 64),
        (Fraction(1, 10**6), 64, 128),
        (Fraction(1, 10**12), 2**20, 1024),
        (Fraction(1, 10**18), 1, 2048),
        (Fraction(1, 10**18), 2**44, 512),
        (Fraction(1, 10**40), 1, 16),
    ]
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("bits", [16, 64, 192])
def test_thresholds_are_exact(law: Law, bits: int) -> None:
    assert proved_floors(law, bits) == independent_floors(law, bits)


def rounded_floors(law: Law, bits: int) -> tuple[int, ...]:
    """Mutant: thresholds from floating-point sums, as a float sampler has them."""
    return tuple(min(math.floor(float(c) * 2**bits), 2**bits - 1) for c in independent_sums(law))


@pytest.mark.parametrize("law", [law for law in LAWS if 1e-20 < law.rate <= 2], ids=str)
def test_the_check_of_thresholds_rejects_floats(law: Law) -> None:
    assert rounded_floors(law, 64) != independent_floors(law, 64)


@given(
    st.fractions(min_value=Fraction(1, 10**18), max_value=50, max_denominator=10**18).filter(bool),
    st.integers(1, 60),
)
@settings(max_examples=50, deadline=None)
def test_thresholds_of_any_law_are_exact(rate: Fraction, size: int) -> None:
    for law in (SignedGeometric(rate, size, size), Digit(rate, size, size + 1)):
        assert proved_floors(law, 64) == independent_floors(law, 64)


class Widened(Digit):
    """A law whose intervals say nothing until many bits are asked for."""

    asked: list[int] = []  # noqa: RUF012  # read by the one test below

    def cumulative(self, bits: int) -> list[Interval]:
        self.asked.append(bits)
        sums = super().cumulative(bits)
        return [(0, 1 << bits)] * len(sums) if bits < 300 else sums


def test_an_unproved_floor_is_computed_with_more_bits() -> None:
    law = Widened(Fraction(1, 7), 1, 5)
    assert proved_floors(law, 64) == independent_floors(Digit(Fraction(1, 7), 1, 5), 64)
    assert len(law.asked) == 3
    assert max(law.asked) >= 300


@given(
    st.fractions(min_value=0, max_value=2000, max_denominator=10**30).filter(bool),
    st.integers(32, 500),
)
@settings(max_examples=200, deadline=None)
def test_exponentials_lie_in_their_intervals(x: Fraction, bits: int) -> None:
    low, high = exp_minus(x, bits)
    with ctx.workprec(bits + 3000):
        exact = (arb(fmpq(-x.numerator, x.denominator)).exp()) * arb(2) ** bits
        assert exact >= low
        assert exact <= high
    assert high - low <= 1000 * bits * max(1, math.ceil(x))


@pytest.mark.parametrize("x", [Fraction(10**300), Fraction(10) ** 600 / 7, Fraction(1, 10**400)])
def test_exponentials_of_any_size_are_quick(x: Fraction) -> None:
    low, high = exp_minus(x, 160)
    assert (low, high) == (0, 1) if x > 1 else high == 2**160 and high - low < 100


# --- Every path of the comparison ---------------------------------------------------------------


def scripted(*answers: bytes) -> Callable[[int], bytes]:
    """A source of entropy that gives these answers, whose lengths must be those asked for."""
    rest: Iterator[bytes] = iter(answers)

    def entropy(count: int) -> bytes:
        answer = next(rest)
        assert len(answer) == count
        return answer

    return entropy


TINY = [
    SignedGeometric(Fraction(1), 1, 2),
    SignedGeometric(Fraction(1, 3), 1, 9),
    SignedGeometric(Fraction(20), 1, 1),
    SignedGeometric(Fraction(1, 10**6), 2**18, 20),
    SignedGeometric(Fraction(1, 4), 1, 90),
    Digit(Fraction(1, 5), 1, 2),
    Digit(Fraction(1, 5), 2, 16),
    Digit(Fraction(1, 10**9), 1, 32),
]


def every_draw(table: Table, later: bytes) -> np.ndarray[Any, Any]:
    """The outcomes of all words of 16 bits, each followed by the byte ``later`` for ever."""
    words = np.arange(1 << 16)
    heads, rests = words >> 8, (words & 255) << 8
    open_ = table.guide[heads] == UNDECIDED
    first = iter([heads.astype("<u1").tobytes(), rests[open_].astype("<u2").tobytes()])

    def entropy(count: int) -> bytes:
        answer = next(first, later * count)
        assert len(answer) == count
        return answer

    return table.draw(words.size, entropy)


def enumeration_is_exact(table: Table) -> bool:
    """Words of 8 and 16 bits: by enumeration every outcome has its exact mass, to both sides."""
    floors = independent_floors(table.law, 16)
    words = np.arange(1 << 16)
    for later, side in ((b"\0", "left"), (b"\xff", "right")):
        # U is the word itself, or just below the next word: it passes the sums below that.
        expected = np.searchsorted(np.array(floors), words, side=side) + table.law.first
        if not np.array_equal(every_draw(table, later), expected):
            return False
    return True


@pytest.mark.parametrize("law", TINY, ids=str)
def test_small_words_enumerated(law: Law) -> None:
    assert enumeration_is_exact(Table.of(law, np.uint8, np.uint16))


def test_the_enumeration_rejects_a_guide_without_open_cells() -> None:
    table = Table.of(TINY[1], np.uint8, np.uint16)
    heads = table.thresholds >> 8
    for side in ("left", "right"):
        guess = np.searchsorted(heads, np.arange(256), side=side) + table.law.first
        mutant = dataclasses.replace(table, guide=guess.astype(np.int16))
        assert not enumeration_is_exact(mutant)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_enumeration_rejects_words_that_decide_a_tie(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.of(TINY[1], np.uint8, np.uint16)
    monkeypatch.setattr(
        Table,
        "_with_more_words",
        lambda self, passed, within, entropy: passed if side == "left" else within,
    )
    assert not enumeration_is_exact(table)


@pytest.mark.parametrize(
    "short, long", [(np.uint8, np.uint16), (np.uint16, np.uint64)], ids=["tiny", "full"]
)
@pytest.mark.parametrize("law", TINY, ids=str)
def test_a_word_that_hits_a_threshold_reads_on(law: Law, short: Any, long: Any) -> None:
    table = Table.of(law, short, long)
    bits, head_bits = np.iinfo(long).bits, np.iinfo(short).bits
    floors = independent_floors(law, 3 * bits)
    for floor in floors[:: max(1, len(floors) // 20)]:
        # The outcome of a U whose digits are given, from the closed forms alone.
        first, second, third = (floor >> bits * place & (1 << bits) - 1 for place in (2, 1, 0))
        head, rest = first >> bits - head_bits, first << head_bits & (1 << bits) - 1
        begin = [int(head).to_bytes(head_bits // 8, "little"), rest.to_bytes(bits // 8, "little")]
        assert table.guide[head] == UNDECIDED
        for more in ([second - 1], [second + 1], [second, third - 1], [second, third + 1]):
            if not all(0 <= word < 1 << bits for word in more):
                continue
            words = [word.to_bytes(bits // 8, "little") for word in more]
            u = first
            for word in more:
                u = (u << bits) + word
            sums = [floor >> bits * (2 - len(more)) for floor in floors]
            equal = u in sums  # another threshold may agree in these bits: read more of it
            if equal:
                continue
            passed = sum(c < u for c in sums)
            assert table.draw(1, scripted(*begin, *words))[0] == passed + law.first


def test_both_ways_out_of_an_open_word_are_taken() -> None:
    table = Table.of(SignedGeometric(Fraction(2), 1, 6))
    (floor,) = independent_floors(table.law, 128)[6:7]  # P(Z < 0)
    head, rest, second = floor >> 112, floor >> 64 & (1 << 48) - 1, floor & (1 << 64) - 1
    begin = [head.to_bytes(2, "little"), (rest << 16).to_bytes(8, "little")]
    assert table.draw(1, scripted(*begin, (second - 1).to_bytes(8, "little")))[0] == -1
    assert table.draw(1, scripted(*begin, (second + 1).to_bytes(8, "little")))[0] == 0


# --- From digits to noise -----------------------------------------------------------------------


def digit_masses_are_exact(scale: float, laws: list[Law]) -> bool:
    """The digits' masses multiply to the mass of discrete Laplace noise, to 200 bits."""
    top, *lower = laws
    assert isinstance(top, SignedGeometric)
    bits = 400

    def mass(law: Law, outcome: int) -> Fraction:
        sums = [(0, 0), *law.cumulative(bits), (1 << bits, 1 << bits)]
        i = outcome - law.first
        return Fraction(sum(sums[i + 1]) - sum(sums[i]), 2 << bits)

    generator = np.random.default_rng(5)
    rate = 1 / Fraction(scale)
    with mpmath.workdps(100):
        a = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        for _ in range(40):
            t = int(generator.integers(-min(top.cut, 30), min(top.cut, 30)))
            number, product = (t if t >= 0 else ~t), mass(top, t)
            number *= top.weight
            for law in lower:
                assert isinstance(law, Digit)
                d = int(generator.integers(law.base))
                number += d * law.weight
                product *= mass(law, d)
            z = number if t >= 0 else ~number
            exact = (1 - a) / (1 + a) * a ** abs(z)
            ratio = mpmath.mpf(product.numerator) / product.denominator / exact
            if abs(ratio - 1) > mpmath.mpf(2) ** -200:
                return False
    return True


def laws_of(scale: float) -> list[Law]:
    digits = _digits_of(scale, ONE)
    return [digits.top.law, *(table.law for table, _ in digits.lower)]


@pytest.mark.parametrize("scale", [*SCALES, 128.0, 129.0, 0.03, 1e15, 1.4e17])
def test_digits_multiply_to_discrete_laplace(scale: float) -> None:
    laws = laws_of(scale)
    assert digit_masses_are_exact(scale, laws)
    weights = [law.weight for law in laws]
    bases = [law.base for law in laws[1:] if isinstance(law, Digit)]
    assert math.prod(bases) == weights[0]
    assert weights[1:] == [math.prod(bases[:i]) for i in range(len(bases))]


class WrongSign(SignedGeometric):
    """Mutant: the sign is drawn as if the top digit were the whole number."""

    def cumulative(self, bits: int) -> list[Interval]:
        return SignedGeometric(self.rate * self.weight, 1, self.cut).cumulative(bits)


def test_the_check_of_digits_rejects_mutants() -> None:
    top, *lower = laws_of(1000.0)
    assert isinstance(top, SignedGeometric)
    assert not digit_masses_are_exact(1000.0, [WrongSign(top.rate, top.weight, top.cut), *lower])
    assert not digit_masses_are_exact(1000.0, [top])
    assert not digit_masses_are_exact(1000.0000001, [top, *lower])


@dataclasses.dataclass
class Given:
    """Stands for a table, and draws what it was given."""

    outcomes: list[list[int]]

    def draw(self, size: int, entropy: object) -> np.ndarray[Any, np.dtype[np.int16]]:
        now = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        assert len(now) == size
        return np.array(now, dtype=np.int16)


def joined(top: list[list[int]], *lower: list[int], shift: int = 0, cut: int = 5) -> list[int]:
    width = shift // max(1, len(lower))
    tables = tuple((Given([digit]), width * i) for i, digit in enumerate(lower))
    digits = _Digits(Given(top), cut, tables, shift)  # type: ignore[arg-type]  # stand-ins
    return digits.draw(len(top[0]), system_entropy).tolist()


def test_digits_are_joined_in_magnitude() -> None:
    # Base 8, digits of 3 and 3 bits: 2*64 + 5*8 + 3 = 171, and its complement.
    assert joined([[2, ~2, 0, ~0]], [3] * 4, [5] * 4, shift=6) == [171, ~171, 43, ~43]


def test_a_top_digit_beyond_its_table_is_drawn_on() -> None:
    top = [[5, ~5, 4, ~5], [~3, 0, 5], [~5], [2]]
    assert joined(top) == [5 + 3, ~5, 4, ~(5 + 5 + 5 + 2)]


def test_draws_beyond_64_bits_are_refused() -> None:
    # 2**12 + 2**12 - 1 in units of 2**50 is the last that fits.
    fits = joined([[4096, ~4096], [4095, 4095]], [7, 7], shift=50, cut=4096)
    assert fits == [8191 * 2**50 + 7, -8191 * 2**50 - 8]
    for top in ([[4096], [4096], [0]], [[~4096], [4096], [0]]):
        with pytest.raises(InputError, match="64 bits"):
            joined(top, [7], shift=50, cut=4096)
    with pytest.raises(InputError, match="64 bits"):
        DiscreteLaplaceSampler(1.4e17, ONE).draw(1, lambda count: b"\xff" * count)


@pytest.mark.parametrize("scale", [1e-300, 0.5, 1e6])
@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
def test_a_source_that_is_stuck_is_refused(scale: float, byte: bytes) -> None:
    with pytest.raises(InputError, match="repeats itself"):
        DiscreteLaplaceSampler(scale, ONE).draw(1, lambda count: byte * count)


def test_a_source_that_gives_too_little_is_refused() -> None:
    with pytest.raises(InputError, match="20 bytes"):
        DiscreteLaplaceSampler(0.5, ONE).draw(10, lambda count: b"\1" * (count - 1))


# --- The law ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("step", STEPS)
def test_noise_fits_its_scale_and_no_other(scale: float, step: Fraction) -> None:
    noise = DiscreteLaplaceSampler(scale, step).draw(DRAWS)
    assert noise.dtype == np.int64
    assert fit(noise, scale, step) > LEAST_P
    for factor in OFF:
        assert fit(DiscreteLaplaceSampler(scale * factor, step).draw(DRAWS), scale, step) < LEAST_P


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e12, 1e15])
def test_low_digits_are_uniform_and_the_signs_alike(scale: float) -> None:
    noise = DiscreteLaplaceSampler(scale, ONE).draw(DRAWS)
    assert residues(noise) > LEAST_P
    assert fit(-noise, scale, ONE) > LEAST_P
    assert residues(noise >> 1 << 1) < LEAST_P  # a mutant without its lowest bit


def test_fit_rejects_a_mutant_that_forgets_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = _digits_of(2.0, ONE)
    short = dataclasses.replace(digits, top=Table.of(SignedGeometric(Fraction(1, 2), 1, 3)), cut=3)
    assert fit(short.draw(DRAWS, system_entropy), 2.0, ONE) > LEAST_P  # drawn on beyond 3
    forgets = dataclasses.replace(short, cut=999)
    assert fit(forgets.draw(DRAWS, system_entropy), 2.0, ONE) < LEAST_P


@pytest.mark.parametrize("scale", [0.5, 3.7, 1000.0])
def test_noise_has_the_law_of_opendp(scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * DRAWS), dtype=np.int64)
    assert same_law(DiscreteLaplaceSampler(scale, ONE).draw(DRAWS), theirs, scale) > LEAST_P
    for factor in OFF:
        ours = DiscreteLaplaceSampler(scale * factor, ONE).draw(DRAWS)
        assert same_law(ours, theirs, scale) < LEAST_P


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-6])
def test_tiny_scales_make_no_noise_that_could_be_seen(scale: float) -> None:
    assert not DiscreteLaplaceSampler(scale, ONE).draw(1000).any()


def test_only_the_ratio_of_scale_and_step_matters() -> None:
    for scale, step in [
        (0.5, Fraction(1, 4)),
        (2e300, Fraction(10**300)),
        (2e-300, Fraction(1e-300)),
    ]:
        ratio = Fraction(scale) / step
        noise = DiscreteLaplaceSampler(scale, step).draw(50, seeded_entropy(1))
        assert ratio == pytest.approx(2)
        assert np.array_equal(noise, DiscreteLaplaceSampler(2.0, ONE).draw(50, seeded_entropy(1)))


def test_no_scale_no_noise_and_no_entropy() -> None:
    for zero in (0, 0.0, -0.0):
        assert DiscreteLaplaceSampler(zero, ONE).draw(5, scripted()).tolist() == [0] * 5
    assert DiscreteLaplaceSampler(1.0, ONE).draw(0, scripted()).size == 0


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**57 * 1.0000001, 1e18, 1e300])
def test_scales_whose_noise_leaves_64_bits_are_refused(scale: float) -> None:
    with pytest.raises(InputError, match="64 bits"):
        DiscreteLaplaceSampler(scale, ONE).draw(1)
    DiscreteLaplaceSampler(scale, Fraction(scale) / MAX_UNITS).draw(10)


@pytest.mark.parametrize("scale", [-1.0, math.inf, math.nan, "1", None, True, 10**400, 1j])
def test_wrong_scales_are_refused(scale: Any) -> None:
    with pytest.raises(InputError, match="scale must be a finite number"):
        DiscreteLaplaceSampler(scale, ONE)


@pytest.mark.parametrize("scale", [2**53 + 1, Fraction(1, 3)])
def test_scales_that_would_be_rounded_are_refused(scale: Any) -> None:
    with pytest.raises(InputError, match="must be a double"):
        DiscreteLaplaceSampler(scale, ONE)


@pytest.mark.parametrize("step", [0, -1, 0.25, "1", None, True])
def test_wrong_steps_are_refused(step: Any) -> None:
    with pytest.raises(InputError, match="step must be"):
        DiscreteLaplaceSampler(1.0, step)


@pytest.mark.parametrize("size", [-1, 2.0, "3", None])
def test_wrong_sizes_are_refused(size: Any) -> None:
    with pytest.raises(InputError, match="size must be"):
        DiscreteLaplaceSampler(1.0, ONE).draw(size)


# --- Entropy ------------------------------------------------------------------------------------


def test_every_batch_asks_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def counted(count: int) -> bytes:
        asked.append(count)
        return real(count)

    monkeypatch.setattr(os, "urandom", counted)
    sampler = DiscreteLaplaceSampler(1e6, ONE)
    one = sampler.draw(1000)
    first = sum(asked)
    two = sampler.draw(1000)
    # Three digits, two bytes each, at least: nothing is left over from the first call.
    assert first >= 6000
    assert sum(asked) - first >= 6000
    assert not np.array_equal(one, two)


def test_batches_are_drawn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace_module, "_BATCH", 1000)
    noise = DiscreteLaplaceSampler(1e6, ONE).draw(2500)
    assert noise.size == 2500
    assert len(set(noise[:1000]) & set(noise[1000:2000])) < 100


def test_seeded_entropy_repeats_itself() -> None:
    draw = DiscreteLaplaceSampler(10.0, ONE).draw
    assert np.array_equal(draw(100, seeded_entropy(3)), draw(100, seeded_entropy(3)))
    assert not np.array_equal(draw(100, seeded_entropy(3)), draw(100, seeded_entropy(4)))
    entropy = seeded_entropy(3)
    assert not np.array_equal(draw(100, entropy), draw(100, entropy))
    # The stream is part of what a seed means; a change breaks every stored expectation.
    assert seeded_entropy(0)(4).hex() == "6b27270e"
    for seed in ("1", 1.0, None, True):
        with pytest.raises(InputError, match="seed must be an integer"):
            seeded_entropy(seed)  # type: ignore[arg-type]


FORK = """
import os, sys
from fractions import Fraction
import numpy as np
from pufferfish.sampling import DiscreteLaplaceSampler, seeded_entropy, system_entropy

sources = {
    "system": lambda: system_entropy,
    "reused seed": lambda: seeded_entropy(7),
    "inherited state": lambda state=np.random.default_rng().bytes: state,
}
source = sources[sys.argv[1]]
sampler = DiscreteLaplaceSampler(50.0, Fraction(1))
print(sampler.draw(20, source()).tobytes().hex(), flush=True)
for _ in range(3):
    child = os.fork()
    if child == 0:
        print(sampler.draw(20, source()).tobytes().hex(), flush=True)
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
def test_forked_processes_never_share_noise() -> None:
    assert all_different(drawn_across_forks("system"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("mutant", ["reused seed", "inherited state"])
def test_the_fork_check_catches_shared_noise(mutant: str) -> None:
    assert not all_different(drawn_across_forks(mutant))


# --- Tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [5e-324, 1e-6, 0.5, 127.0, 128.0, 129.0, 1e6, 1e15, 2.0**57])
def test_tables_stay_small(scale: float) -> None:
    digits = _digits_of(scale, ONE)
    tables = [digits.top, *(table for table, _ in digits.lower)]
    assert len(tables) <= 6
    for table in tables:
        assert table.thresholds.size <= 3073
        assert np.mean(table.guide == UNDECIDED) < 0.05


def test_tables_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = DiscreteLaplaceSampler(77.25, ONE)
    sampler.draw(1)

    def never(*_: object) -> None:
        raise AssertionError("a table was made again")

    monkeypatch.setattr(table_module, "proved_floors", never)
    DiscreteLaplaceSampler(77.25, ONE).draw(10, lambda count: b"\x77" * count)


def test_a_threshold_that_no_bits_decide_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law whose sum is a fraction of powers of two would ask for ever more bits."""

    @dataclasses.dataclass(frozen=True)
    class Half:
        first: int = 0

        def cumulative(self, bits: int) -> list[tuple[int, int]]:
            return [((1 << bits - 1) - 1, (1 << bits - 1) + 1)]

    monkeypatch.setattr(thresholds_module, "_MOST_GUARD", 800)
    with pytest.raises(PufferfishError, match="was not decided with 768 bits"):
        proved_floors(Half(), 64)
