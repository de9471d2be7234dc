# SPDX-License-Identifier: Apache-2.0
"""Problems that are given as such, whose points may have a part of the mass only."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pufferfish.loss.bounds import farthest, loses_nothing
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import axis_of
from pufferfish.loss.problem import Problem
from pufferfish.loss.proof import bound_of
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import Point
from pufferfish.support import make_lattice


def problem(*masses: list[int], total: int = 10, scale: float = 1.0) -> Problem:
    lattice, noise = make_lattice(range(len(masses[0]))), DiscreteLaplace(scale, Fraction(1))
    points = tuple(Point(np.array(own), total) for own in masses)
    axis = axis_of(0, lattice, [noise], np.arange(lattice.size))
    return Problem((axis,), points, ((0, 1),), ("a", "b"), 0)


def test_points_of_one_shape_tell_how_much_they_have() -> None:
    own = problem([1, 2], [2, 4])
    assert not loses_nothing(own)
    assert loses_nothing(problem([1, 2], [1, 2]))
    assert float(bound_of([own])) == pytest.approx(math.log(2))
    assert RateLoss.of_problems([own]).worst(0.5)[0] == pytest.approx(math.log(2))


def test_distance_bounds_whole_masses_only() -> None:
    """What is missing may be more of one point than of another: no move over 1 step does that."""
    own = problem([1, 0], [0, 9], scale=8.0)
    assert farthest(own) is None
    assert farthest(problem([10, 0], [0, 10], scale=8.0)) == Fraction(1, 8)
    assert float(bound_of([own])) == pytest.approx(math.log(9) + 1 / 8)
    assert not bound_of([own], Fraction(1, 8)).at_most(Fraction(1, 8))


def test_a_point_without_mass_is_told_from_others() -> None:
    own = problem([1, 2], [0, 0])
    found = bound_of([problem([1, 2], [2, 1]), own])
    assert (found.upper, found.lower) == (None, None)
    assert RateLoss.of_problems([own]).worst(1.0)[0] == math.inf


def test_the_largest_of_given_problems_counts() -> None:
    near, far = problem([5, 5], [6, 4], scale=2.0), problem([9, 1], [1, 9], scale=2.0)
    found = bound_of([near, far], Fraction(1, 4))
    assert found.lower is not None
    assert found.lower > Fraction(1, 4)
    assert float(bound_of([near, far])) == float(bound_of([far])) > float(bound_of([near]))
    loss = RateLoss.of_problems([near, far])
    value, witness = loss.worst(3.0)
    assert value == pytest.approx(float(bound_of([problem([9, 1], [1, 9], scale=2 / 3)])))
    assert witness is not None
    assert loss.at(witness, 3.0)[0] == pytest.approx(value)
