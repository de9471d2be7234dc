# SPDX-License-Identifier: Apache-2.0
"""Extreme rays against the reference and against vertex enumeration in rationals."""

import json
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import fmpz_mat

from pufferfish.calibration import columns as module
from pufferfish.calibration.best_for import best_for
from pufferfish.calibration.channel import cone_of, exponential_below
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.columns import rays_of
from pufferfish.errors import InputError
from pufferfish.priors.ambiguity import Point
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

REFERENCE = json.loads(Path(__file__).with_name("estimates.json").read_text(encoding="utf-8"))


def counted(counts: Any, pairs: Any = "all") -> Scenario:
    """A scenario of counts by adversary and secret."""
    priors = [
        Prior.from_counts({f"s{k}": row for k, row in enumerate(own)}, support=range(len(own[0])))
        for own in counts
    ]
    return Scenario(priors, pairs)


def by_enumeration(cone: Cone) -> set[tuple[Fraction, ...]]:
    """Every ray on which n - 1 constraints are tight, by trying all of them."""
    points = [[list(map(int, p.masses.reshape(-1))) for p in own] for own in cone.sets]
    n, e = len(points[0][0]), cone.bound
    forms = [[int(k == x) for k in range(n)] for x in range(n)]
    for own in points:
        for i, j in cone.pairs:
            a, b = sum(own[j]) * e.denominator, sum(own[i]) * e.numerator
            forms.append([b * q - a * p for p, q in zip(own[i], own[j], strict=True)])
    found = set()
    for chosen in combinations(forms, n - 1):
        kernel, rank = fmpz_mat([list(form) for form in chosen]).nullspace()
        if rank != 1:
            continue
        for sign in (1, -1):
            m = [sign * int(kernel[k, 0]) for k in range(n)]
            if all(sum(a * b for a, b in zip(f, m, strict=True)) >= 0 for f in forms):
                found.add(tuple(Fraction(v, sum(m)) for v in m))
    return found


def same(found: Any, wanted: set[tuple[Fraction, ...]]) -> bool:
    rows = {tuple(row) for row in np.round(found, 9).tolist()}
    every = {tuple(np.round([float(v) for v in row], 9).tolist()) for row in wanted}
    return len(found) == len(every) and rows == every


@pytest.mark.parametrize(
    "case", REFERENCE, ids=lambda case: f"{case['name'][:12]} {case['epsilon']}"
)
def test_reference(case: Any) -> None:
    cone = cone_of(counted(case["counts"]), exponential_below(Fraction(case["epsilon"])))
    found = rays_of(cone)
    assert len(found) == case["rays"]
    assert np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-12)


def random_cone(rng: random.Random) -> Cone:
    """Zeros and ties, all or some pairs, one or two adversaries, small and simple bounds."""
    n, secrets, adversaries = rng.choice([2, 3, 4]), rng.choice([2, 3, 3, 4]), rng.choice([1, 1, 2])

    def row() -> list[int]:
        while not any(found := [rng.choice([0, 1, 1, 2, 3, rng.randint(1, 90)]) for _ in range(n)]):
            pass
        return found

    names = [f"s{k}" for k in range(secrets)]
    path = list(pairwise(names))
    if adversaries == 2 and secrets == 4:
        adversaries = 1
    counts = [[row() for _ in names] for _ in range(adversaries)]
    bound = rng.choice([Fraction(3, 2), Fraction(2), exponential_below(Fraction(1, 10))])
    return cone_of(counted(counts, rng.choice(["all", path, [names[:2]]])), bound)


@pytest.mark.parametrize("seed", range(60))
def test_any_pairs_and_adversaries(seed: int) -> None:
    cone = random_cone(random.Random(seed))
    assert same(rays_of(cone), by_enumeration(cone))


@pytest.mark.slow
def test_many_random_cones() -> None:
    for seed in range(1000, 1600):
        cone = random_cone(random.Random(seed))
        assert same(rays_of(cone), by_enumeration(cone)), seed


def test_chosen_pairs_have_rays_that_all_pairs_do_not() -> None:
    """A list of level sets of three secrets misses rays of a path."""
    counts = [[[5, 1, 2, 3], [2, 1, 5, 4], [1, 1, 4, 1]]]
    path = cone_of(counted(counts, [("s0", "s1"), ("s1", "s2")]), Fraction(3, 2))
    every = cone_of(counted(counts), Fraction(3, 2))
    assert same(rays_of(path), by_enumeration(path))
    assert not same(rays_of(every), by_enumeration(path))


def test_ties_that_doubles_do_not_decide() -> None:
    """All priors are permutations of (1/2, 1/4, 1/4), and E = 3/2: many systems, one ray."""
    counts = [sorted(set(permutations([2, 1, 1])))]
    cone = cone_of(counted(counts), Fraction(3, 2))
    found = rays_of(cone)
    assert same(found, by_enumeration(cone))
    assert any(np.allclose(row, [0.5, 0.5, 0]) for row in found)


def test_values_that_nobody_has_are_rays_themselves() -> None:
    found = rays_of(cone_of(counted([[[5, 0, 1, 0], [1, 0, 5, 0]]]), Fraction(11, 10)))
    rows = found.tolist()
    assert [0, 1, 0, 0] in rows
    assert [0, 0, 0, 1] in rows


@pytest.mark.parametrize("seed", range(3))
def test_more_constraints_than_bits_of_a_number(seed: int) -> None:
    """The order of the constraints changes nothing, and each ray is the only one on its edge."""
    rng = np.random.default_rng(seed)
    cone = cone_of(counted(rng.integers(1, 99, (1, 14, 5)).tolist()), Fraction(3, 2))
    rays = rays_of(cone)
    shuffled = rays_of(replace(cone, pairs=[cone.pairs[k] for k in rng.permutation(14 * 13)]))
    assert len(rays) > 64
    assert {*map(tuple, rays.round(9))} == {*map(tuple, shuffled.round(9))}
    p = np.array([own.masses / own.total for own in cone.sets[0] if isinstance(own, Point)])
    forms = np.vstack([-np.eye(5), *(p[i] - 1.5 * p[j] for i, j in cone.pairs)])
    values = rays @ forms.T
    assert values.max() < 1e-12
    assert all(np.linalg.matrix_rank(forms[np.abs(own) < 1e-12]) == 4 for own in values)


def test_too_many_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    half = [1, 3] * 150
    with pytest.raises(InputError, match=r"fewer pairs, merge .* best_for='kept'"):
        rays_of(cone_of(counted([[half, half[::-1]]]), Fraction(11, 10)))
    few, wide = np.arange(1, 2003), np.arange(1, 30_001)
    for column in (few, wide):  # before a matrix of these sizes is made
        prior = Prior.from_counts({"a": column, "b": column[::-1]}, support=range(len(column)))
        with pytest.raises(InputError, match=r"a coarser step \(--step\)"):
            best_for(Scenario(prior), Fraction(1, 2), "both")
    rng = np.random.default_rng(1)
    many = counted(rng.integers(1, 1000, (1, 200, 9)).tolist())
    with monkeypatch.context() as patched:
        patched.setattr(module, "_MOST_WORK", 10**6)
        with pytest.raises(InputError, match="extreme rays"):
            rays_of(cone_of(many, Fraction(3, 2)))
        patched.setattr(module, "_MOST_FORMS", 1000)
        with pytest.raises(InputError, match="extreme rays"):
            rays_of(cone_of(many, Fraction(3)))
    monkeypatch.setattr(module, "MOST_RAYS", 5)
    for counts, pairs in (
        ([[[1, 2, 3, 9], [9, 3, 2, 1], [5, 1, 1, 5]]], "all"),
        ([[[1, 2, 3, 9], [9, 3, 2, 1]], [[1, 3, 3, 8], [9, 2, 2, 4]]], "all"),
    ):
        with pytest.raises(InputError, match="extreme rays"):
            rays_of(cone_of(counted(counts, pairs), Fraction(11, 10)))
