# SPDX-License-Identifier: Apache-2.0
"""The root finder on functions that are known, and what raises a scale until it is proved."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from pufferfish.calibration.root import find_root, noise_up, raised
from pufferfish.errors import InputError, PufferfishError


@dataclass
class Known:
    """A loss of 1 at a root, rising by 1 / root."""

    root: float
    calls: int = 0

    def worst(self, u: float) -> tuple[float, int]:
        self.calls += 1
        return self.at(0, u)[0], 0

    def at(self, witness: int, u: float) -> tuple[float, float]:
        return u / self.root, 1 / self.root


@dataclass
class Hinges:
    """The largest of many smooth functions, each with its own root: the worst one changes."""

    roots: tuple[float, ...]
    calls: int = 0

    def worst(self, u: float) -> tuple[float, int]:
        self.calls += 1
        worst = max(range(len(self.roots)), key=lambda k: self.at(k, u)[0])
        return self.at(worst, u)[0], worst

    def at(self, witness: int, u: float) -> tuple[float, float]:
        root = self.roots[witness]
        power = 1 + witness % 3
        return (u / root) ** power, power / root * (u / root) ** (power - 1)


@pytest.mark.parametrize("root", [1e-300, 1e-9, 0.1, 1 / 3, 1.0, 12345.678])
def test_the_search_ends_on_the_private_side(root: float) -> None:
    for start in (0.0, root / 2, root, 3 * root):
        known = Known(root)
        u, slope = find_root(known, 1.0, root / 1000, start, 1e-14)
        assert known.at(0, u)[0] <= 1 + 1e-15
        assert u >= root * (1 - 2e-14)
        assert slope == pytest.approx(1)
        assert known.calls <= 8


def test_few_evaluations_where_the_worst_witness_changes() -> None:
    hinges = Hinges(tuple(1 + k / 100 for k in range(100)))
    u, _ = find_root(hinges, 1.0, 1e-4, 1e-4, 1e-13)
    assert u == pytest.approx(1.0, rel=1e-12)
    assert hinges.calls <= 19


def test_a_search_that_meets_no_number_is_an_error() -> None:
    with pytest.raises(PufferfishError, match="did not converge"):
        find_root(Known(math.nan), 1.0, 0.1, 0.5, 1e-12)


def test_a_scale_is_rounded_up_and_refused_where_there_is_no_double() -> None:
    third = noise_up(Fraction(1, 3), Fraction(1), Fraction(1))
    assert Fraction(third.scale) > Fraction(1, 3) > Fraction(math.nextafter(third.scale, 0))
    with pytest.raises(InputError, match="the scale for epsilon 1e-305 overflows"):
        noise_up(Fraction(10) ** 309, Fraction(1), Fraction("1e-305"))
    with pytest.raises(InputError, match="overflows"):
        noise_up(math.inf, Fraction(1), Fraction("1e-305"))


def test_a_scale_is_raised_until_it_is_proved_and_by_no_more_than_that() -> None:
    asked: list[float] = []

    def judge(scale: float) -> tuple[str, bool, float]:
        asked.append(scale)
        return "proof", scale >= 1, 1 / scale

    assert raised(1.0, Fraction(1), judge) == (1.0, "proof")
    assert asked == [1.0]
    scale, _ = raised(math.nextafter(1.0, 0), Fraction(1), judge)
    assert 1 <= scale <= 1 + 4e-16
    scale, _ = raised(1 - 1e-4, Fraction(1), judge)
    assert 1 <= scale <= 1 + 1e-4


@pytest.mark.parametrize("proposal", [0.0, 0.5, 1e308])
def test_what_is_far_off_is_an_error(proposal: float) -> None:
    with pytest.raises(PufferfishError, match="could be proved"):
        raised(proposal, Fraction(1), lambda scale: (None, False, math.inf))
