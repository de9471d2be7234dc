# SPDX-License-Identifier: Apache-2.0
"""The max divergence of one release, and what a certificate and a bound look like."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import M, real
from pufferfish.errors import InputError
from pufferfish.loss.bounds import worst_case
from pufferfish.loss.certificate import Certificate, LossBound, Witness
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.support import make_lattice, make_levels
from strategies import channel_rows

ONE = Fraction(1)
TENTHS = make_lattice([Fraction(0), Fraction(1, 10), Fraction(1)])


def test_noise_is_exact() -> None:
    noise = DiscreteLaplace(10.0, Fraction(1, 10))
    assert worst_case(noise, TENTHS) == Fraction(1, 10)
    # Ten times a tenth is one.
    assert 10 * worst_case(noise, TENTHS) == 1  # type: ignore[operator]  # finite here
    assert worst_case(DiscreteLaplace(0.0, ONE), TENTHS) is None
    assert worst_case(DiscreteLaplace(10.0, ONE), TENTHS) is None  # a step that misses a value
    levels = make_levels(["lo", "mid", "hi"], order=["lo", "mid", "hi"])
    assert worst_case(DiscreteLaplace(4.0, ONE), levels) == Fraction(1, 2)
    with pytest.raises(InputError, match="order"):
        worst_case(DiscreteLaplace(4.0, ONE), make_levels(["a", "b"]))


@given(channel_rows(3))
def test_channels_are_rounded_up(rows: list[list[int]]) -> None:
    support = make_lattice(map(Fraction, range(3)))
    outputs = make_lattice(map(Fraction, range(len(rows[0]))))
    found = worst_case(Channel(support, outputs, rows), support)
    chances = [[Fraction(v, sum(row)) for v in row] for row in rows]
    columns = [column for column in zip(*chances, strict=True) if any(column)]
    if any(min(column) == 0 for column in columns):
        assert found is None
        return
    truth = M.log(real(max(max(column) / min(column) for column in columns)))
    assert found is not None
    assert truth - M.mpf(10) ** -45 <= real(found) <= truth + M.mpf(2) ** -120


@given(st.fractions(0, 10))
def test_bounds_are_compared_exactly(upper: Fraction) -> None:
    bound = LossBound(upper, Fraction(0))
    assert bound.at_most(upper)
    assert bound.at_most(str(upper))
    assert not LossBound(upper + Fraction(1, 10**60), Fraction(0)).at_most(upper)
    assert Fraction(float(bound)) >= upper
    assert not LossBound(None, None).at_most(upper)
    assert float(LossBound(None, None)) == math.inf


def test_certificates_are_shown_in_a_few_lines() -> None:
    witness = Witness(("3",), ("a", "b"), 0)
    shown = repr(Certificate("ball", 0.5, 0.4, Fraction(1, 2), True, True, witness))
    assert shown.count("\n") == 2
    assert "from 0.4 to 0.5" in shown
    assert "epsilon 0.5: holds" in shown
    refuted = Certificate("ball", 0.5, 0.4, Fraction(1, 3), False, True)
    assert "epsilon 1/3: refuted" in repr(refuted)
