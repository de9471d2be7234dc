# SPDX-License-Identifier: Apache-2.0
"""The smallest bound is the least of all mixtures: against every subset of the releases."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from pufferfish.joint import (
    Axis,
    Bound,
    GridTooLarge,
    Known,
    bounds,
    joint_loss_of,
    smallest_bound,
    worst_case,
)
from pufferfish.joint.loss import loss_of_problem
from pufferfish.joint.problem import Problem, make_problem
from pufferfish.joint.subsets import Subsets, Work
from pufferfish.joint.worst import Reach, total
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.support import Lattice, make_lattice

PAIR = [(0, 1)]
#: Bounds are rounded up, each in its last digit.
CLOSE = 1e-12


def numbers(*values: int) -> Lattice:
    return make_lattice(map(Fraction, values), Fraction(1))


def noise(scale: float, step: int = 1) -> DiscreteLaplace:
    return DiscreteLaplace(scale, Fraction(step))


@dataclass(frozen=True, eq=False)
class Example:
    axes: list[Axis]
    known: Known
    limit: int

    def found(self) -> Bound:
        return smallest_bound(self.axes, [self.known], limit=self.limit)

    @cached_property
    def truth(self) -> float:
        """The joint loss of everything that the masses are known of, with all others' worst."""
        chosen = [self.axes[c] for c in self.known.columns]
        rest = [
            worst_case(release, axis.support)
            for c, axis in enumerate(self.axes)
            if c not in self.known.columns
            for release in axis.releases
        ]
        others, loss = total(rest), joint_loss_of(self.known.masses, chosen, self.known.pairs)
        return math.inf if others is None else loss.lower + float(others)

    @cached_property
    def slow(self) -> float:
        """Every subset of the releases, one by one; nothing is merged or left out at once."""
        places = [(c, r) for c, axis in enumerate(self.axes) for r in range(len(axis.releases))]
        terms = {}
        for c, r in places:
            own = None
            if c in self.known.columns:
                at = self.known.columns.index(c)
                own = Reach.of(self.known.masses, at, self.known.pairs)
            terms[c, r] = worst_case(self.axes[c].releases[r], self.axes[c].support, own)
        able = [place for place in places if place[0] in self.known.columns]
        best = math.inf
        for inside in chain.from_iterable(combinations(able, n) for n in range(len(able) + 1)):
            others = total([term for place, term in terms.items() if place not in inside])
            if others is None:
                continue
            chosen = [
                Axis(
                    self.axes[c].support,
                    tuple(m for r, m in enumerate(self.axes[c].releases) if (c, r) in inside),
                )
                for c in self.known.columns
            ]
            try:
                joint = joint_loss_of(self.known.masses, chosen, self.known.pairs, limit=self.limit)
            except GridTooLarge:
                continue
            if joint.upper is not None:
                best = min(best, float(joint.upper + others))
        return best


def examples(number: int, seed: int = 0, releases: int = 7) -> Iterator[Example]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        columns = int(rng.integers(2, 5))
        supports = [
            numbers(*sorted(rng.choice(6, int(rng.integers(2, 4)), False).tolist()))
            for _ in range(columns)
        ]
        # Two pairs of three secrets now and then, and values that some cannot have.
        secrets = int(rng.integers(2, 4))
        masses = [
            rng.integers(1, 30, (secrets, *(s.size for s in supports)))
            for _ in range(int(rng.integers(1, 3)))
        ]
        if rng.random() < 0.2:
            masses[0][:, -1] = 0
        pairs = [(0, 1), (2, 1)] if secrets == 3 else PAIR
        released: list[list[Mechanism]] = [[] for _ in supports]
        for k in range(int(rng.integers(max(columns, 3), releases + 1))):
            c = k if k < columns else int(rng.integers(columns))
            released[c].append(_release(rng, supports[c], released[c]))
        axes = [Axis(s, tuple(r)) for s, r in zip(supports, released, strict=True)]
        known = Known(tuple(range(columns)), masses, pairs)
        if rng.random() < 0.2:
            known = Known(tuple(range(columns - 1)), [m.sum(axis=-1) for m in masses], pairs)
        cells = make_problem(known.masses, [axes[c] for c in known.columns], pairs).cells
        yield Example(axes, known, max(2, int(cells ** rng.uniform(0.3, 1.0)) - 1))


def _release(rng: np.random.Generator, support: Lattice, before: list[Mechanism]) -> Mechanism:
    kind = rng.random()
    channels = [m for m in before if isinstance(m, Channel)]
    if kind < 0.15 and channels:
        twin = channels[0]  # the same again, as an object of its own
        return Channel.of(twin.inputs, twin.outputs, twin.rows)
    if kind < 0.45:
        return noise(float(rng.choice([0.0, 0.5, 1.0, 3.0, 10.0], p=[0.05, 0.1, 0.25, 0.3, 0.3])))
    if kind < 0.5:
        return noise(2.0, 5)  # off the lattice of most columns
    outputs = int(rng.integers(2, 6))
    rows = rng.integers(1, 20, (support.size, outputs))
    if rng.random() < 0.05:
        rows[0, 0] = 0
    return Channel.of(support, numbers(*range(outputs)), rows)


MANY = list(examples(200))


def wrong(every: list[Example]) -> list[str]:
    found = []
    for number, example in enumerate(every):
        bound, slow = example.found().value, example.slow
        if not (bound == slow or abs(bound - slow) <= CLOSE * max(1.0, slow)):
            found.append(f"{number}: {bound} instead of {slow}")
        if bound < example.truth * (1 - CLOSE):
            found.append(f"{number}: {bound} is below the loss {example.truth}")
    return found


def test_no_subset_of_the_releases_gives_less() -> None:
    assert wrong(MANY) == []


def without_work(patch: pytest.MonkeyPatch) -> None:
    """Only the smallest worst cases are left out, one after the other."""
    patch.setattr(bounds, "MOST_WORK", 0)


def too_soon(patch: pytest.MonkeyPatch) -> None:
    """Sets that might be smaller are passed over."""
    honest = bounds._Mixtures._hopeless
    patch.setattr(
        bounds._Mixtures,
        "_hopeless",
        lambda self, left: honest(self, left) or bool(self.computed and left[0]),
    )


def too_large(patch: pytest.MonkeyPatch) -> None:
    """Grids are taken to be larger than they are."""
    honest = Subsets._outputs
    patch.setattr(
        Subsets, "_outputs", lambda self, a, own: (honest(self, a, own) or 0) + (len(own) > 1)
    )


@pytest.mark.parametrize("mutant", [without_work, too_soon, too_large])
def test_mutants_miss_the_least(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    # By choice of the examples the order in which releases are left out matters often.
    missed = [line for line in wrong(MANY) if "instead of" in line]
    assert len(missed) >= (20 if mutant is without_work else 5)


def test_exchanges_are_valid_and_never_worse_than_leaving_out_the_smallest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    least = [example.found().value for example in MANY]
    monkeypatch.setattr(bounds, "MOST_CHOICES", 0)
    exchanged = [example.found().value for example in MANY]
    without_work(monkeypatch)
    first = [example.found().value for example in MANY]
    pairs = [(a, b, c) for a, b, c in zip(least, exchanged, first, strict=True) if c < math.inf]
    assert all(a <= b * (1 + CLOSE) and b <= c * (1 + CLOSE) for a, b, c in pairs)
    better = sum(b < c * (1 - CLOSE) for _, b, c in pairs)
    missed = sum(b > a * (1 + CLOSE) for a, b, _ in pairs)
    assert better > 10
    assert missed < better


def subsets_of(example: Example) -> Subsets:
    known, axes = example.known, example.axes
    reaches = {c: Reach.of(known.masses, at, known.pairs) for at, c in enumerate(known.columns)}
    terms = {
        (c, r): worst_case(release, axis.support, reaches.get(c))
        for c, axis in enumerate(axes)
        for r, release in enumerate(axis.releases)
    }
    return Subsets(axes, known.columns, reaches, terms, Work(1 << 40))


def test_sizes_are_those_of_the_problem() -> None:
    rng = np.random.default_rng(1)
    larger = 0
    for example in MANY[:100]:
        subsets = subsets_of(example)
        sizes = {}
        for _ in range(4):
            left = tuple(int(rng.integers(n + 1)) for n in subsets.all)
            for choice in (left, tuple(int(n > 0) for n in left)):
                inside = subsets.inside(choice)
                if not inside:
                    continue
                axes = [
                    Axis(a.support, tuple(m for r, m in enumerate(a.releases) if (c, r) in inside))
                    for c, a in enumerate(example.axes)
                    if c in example.known.columns
                ]
                problem = make_problem(example.known.masses, axes, example.known.pairs)
                assert subsets.cells(choice) == problem.cells
                assert subsets.cells(choice, problem.cells) == problem.cells
                assert subsets.cells(choice, problem.cells - 1) is None
                sizes[choice] = problem.cells
        larger += any(
            sizes[a] > sizes[b] and all(x >= y for x, y in zip(a, b, strict=True))
            for a in sizes
            for b in sizes
        )
    assert larger > 0  # leaving out more does not always make a smaller grid


def test_sizes_know_of_too_many_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    support = numbers(*range(12))
    rng = np.random.default_rng(2)
    large = [Channel.of(support, support, rng.integers(1, 99, (12, 12))) for _ in range(5)]
    masses = [rng.integers(1, 9, (2, 12))]
    example = Example([Axis(support, tuple(large))], Known((0,), masses, PAIR), 1 << 24)
    subsets = subsets_of(example)
    # 12^4 outputs are looked at, 12^5 are too many.
    assert [subsets.cells((*(0,) * (5 - n), *(1,) * n)) for n in range(5)] == [
        None, 12**4, 12**3, 12**2, 12,
    ]  # fmt: skip
    with pytest.raises(GridTooLarge):
        make_problem(masses, example.axes, PAIR)
    monkeypatch.setattr(bounds, "MOST_WORK", 0)
    assert len(example.found().within) == 4


def test_equal_channels_are_counted() -> None:
    support = numbers(0, 1, 2)
    rows = np.full((3, 3), 1) + np.diag([2, 2, 2])
    many = [Channel.of(support, support, rows) for _ in range(14)]
    # Its denominators and its worst case are the same.
    other = Channel.of(support, support, rows[[0, 1, 1]])
    masses = [np.random.default_rng(3).integers(1, 40, (2, 3, 3))]
    axes = [Axis(support, (*many, other, noise(3.0))), Axis(support, (*many[:3], noise(1.0)))]
    example = Example(axes, Known((0, 1), masses, PAIR), 400)
    subsets = subsets_of(example)
    assert subsets.choices == 15 * 2 * 2 * 4 * 2
    assert sorted(len(kind.units) for kind in subsets.kinds) == [1, 1, 1, 3, 14]
    # The least of all numbers of equal channels, worked out one by one.
    best = math.inf
    for first, odd, second, here, there in np.ndindex(15, 2, 4, 2, 2):
        left = {"many": 14 - first, "odd": 1 - odd, "few": 3 - second}
        terms = [worst_case(many[0], support)] * (left["many"] + left["few"])
        terms += [worst_case(other, support)] * left["odd"]
        terms += [worst_case(noise(3.0), support)] * (1 - here)
        terms += [worst_case(noise(1.0), support)] * (1 - there)
        outside = total(terms)
        assert outside is not None
        if float(outside) >= best:
            continue
        chosen = [
            Axis(support, (*many[:first], *[other] * odd, *[noise(3.0)] * here)),
            Axis(support, (*many[:second], *[noise(1.0)] * there)),
        ]
        try:
            joint = joint_loss_of(masses, chosen, PAIR, limit=example.limit)
        except GridTooLarge:
            continue
        assert joint.upper is not None
        best = min(best, float(joint.upper + outside))
    found = example.found()
    assert found.value == pytest.approx(best, rel=CLOSE)
    assert len(found.within) + len(found.terms) == 20


def test_sets_that_cannot_be_proved_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = loss_of_problem
    few = [example for example in MANY[:60] if example.limit > 6]

    def refuses(problem: Problem) -> Any:
        if problem.cells > example.limit // 2:
            raise GridTooLarge(problem.cells, example.limit // 2)
        return honest(problem)

    monkeypatch.setattr(bounds, "loss_of_problem", refuses)
    for example in few:
        slow = Example(example.axes, example.known, example.limit // 2).slow
        assert example.found().value == pytest.approx(slow, rel=CLOSE)


def test_work_is_bounded_and_none_is_done_where_everything_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[int] = []
    honest = loss_of_problem

    def counts(problem: Problem) -> Any:
        computed.append(problem.cells)
        return honest(problem)

    monkeypatch.setattr(bounds, "loss_of_problem", counts)
    rng = np.random.default_rng(4)
    support = numbers(0, 1, 2, 3)
    axes = [
        Axis(support, (Channel.of(support, numbers(*range(9)), rng.integers(50, 99, (4, 9))),))
        for _ in range(6)
    ]
    known = Known(tuple(range(6)), [rng.integers(1, 9, (2, *(4,) * 6))], PAIR)
    whole = smallest_bound(axes, [known])
    assert (whole.name, computed) == ("joint loss", [9**6])
    computed.clear()
    monkeypatch.setattr(bounds, "LARGEST_GRID", 1)
    small = smallest_bound(axes, [known], limit=9**5)
    assert small.value >= whole.value
    # The first one, and as much again as the work allows.
    assert computed[0] == 9**5
    assert 9**4 <= sum(computed[1:]) <= bounds.MOST_WORK * 9**5
    # For less work than the next one is nothing more is computed.
    computed.clear()
    monkeypatch.setattr(bounds, "MOST_WORK", 1)
    assert smallest_bound(axes, [known], limit=9**5).value >= small.value
    assert computed == [9**5]
    # A thousand channels are more than can be gone through.
    computed.clear()
    rows = rng.integers(5, 20, (1000, 2, 3))
    bit = numbers(0, 1)
    many = Axis(bit, tuple(Channel.of(bit, numbers(0, 1, 2), r) for r in rows))
    smallest_bound([many], [Known((0,), [np.array([[1, 2], [2, 1]])], PAIR)], limit=200)
    assert sum(computed) <= 200 + bounds.MOST_WORK * 200
