# SPDX-License-Identifier: Apache-2.0
"""Random scenarios in plain Python numbers, leaning towards the inputs that break careless code."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations, product

from hypothesis import strategies as st

Prior = dict[str, dict[Fraction, Fraction]]
Pair = tuple[str, str]

SECRETS = ("a", "b", "c", "d", "e")
LARGEST_DISTANCE = 1_000_000
STEPS = tuple(Fraction(s) for s in ("1", "1", "1", "1/4", "1/10", "1/3", "5/2", "7"))
OFFSETS = tuple(Fraction(o) for o in ("0", "0", "0", "-3", "-1000000", "1e15", "9007199254740992"))
GAPS = (1, 1, 1, 1, 2, 3, 10, 250, 100_000)
SLICES = tuple(Fraction(s) for s in ("1e-6", "1e-9", "1e-15"))
EPSILONS = tuple(Fraction(e) for e in ("1e-6", "1e-3", "0.1", "0.5", "1", "1/3", "5", "20"))


@dataclass(frozen=True)
class Case:
    """A scenario and an epsilon.

    `priors` has one entry per adversary, each secret -> value -> probability; a value that a secret
    never takes may be left out or have probability 0. `pairs` are distinct and never empty.
    """

    priors: tuple[Prior, ...]
    pairs: tuple[Pair, ...]
    epsilon: Fraction

    @property
    def aligned(self) -> list[Prior]:
        """The priors, the first secret of each with all values that any of them has."""
        rows = [row for prior in self.priors for row in prior.values()]
        every = {x: Fraction(0) for row in rows for x in row}
        first = next(iter(self.priors[0]))
        return [prior | {first: every | dict(prior[first])} for prior in map(dict, self.priors)]

    @property
    def texts(self) -> list[dict[str, dict[str, str]]]:
        """The aligned priors with every number as a text: a decimal integer or a fraction."""
        return [
            {s: {str(x): str(p) for x, p in row.items()} for s, row in prior.items()}
            for prior in self.aligned
        ]


@st.composite
def supports(draw: st.DrawFn, max_atoms: int = 8) -> list[Fraction]:
    """Sorted values on a lattice: an offset, a step, and gaps of one step to a hundred thousand."""
    n = draw(st.sampled_from(range(max_atoms, 0, -1)))  # not st.integers, which prefers 1
    size = st.sampled_from(GAPS)
    if draw(st.integers(0, 3)) == 0:  # a lattice without holes
        size = st.just(1)
    gaps = draw(st.lists(size, min_size=n - 1, max_size=n - 1))
    step, offset = draw(st.sampled_from(STEPS)), draw(st.sampled_from(OFFSETS))
    index = [0, *accumulate(gaps)]
    return [offset + step * k for k in index if step * k <= LARGEST_DISTANCE]


def _counts(draw: st.DrawFn, n: int) -> list[Fraction]:
    """Integer counts, zeros among them, divided by their total."""
    largest = draw(st.sampled_from((1, 3, 50, 10_000)))
    counts = draw(st.lists(st.integers(0, largest), min_size=n, max_size=n))
    counts[draw(st.integers(0, n - 1))] += 1
    return [Fraction(c, sum(counts)) for c in counts]


def _decimals(draw: st.DrawFn, n: int) -> list[Fraction]:
    """Decimals that sum to exactly 1: gaps between sorted cuts at hundredths or millionths."""
    unit = draw(st.sampled_from((10, 100, 1_000_000)))
    cuts = sorted(draw(st.lists(st.integers(0, unit), min_size=n - 1, max_size=n - 1)))
    ends = zip([0, *cuts], [*cuts, unit], strict=True)
    return [Fraction(high - low, unit) for low, high in ends]


def _point(draw: st.DrawFn, n: int) -> list[Fraction]:
    """All mass at one value."""
    at = draw(st.integers(0, n - 1))
    return [Fraction(k == at) for k in range(n)]


def _like(draw: st.DrawFn, model: list[Fraction]) -> list[Fraction]:
    """Another secret's masses, with a thin slice moved from one value to another, or none."""
    masses = list(model)
    giver = draw(st.sampled_from([k for k, p in enumerate(masses) if p > 0]))
    taker = draw(st.integers(0, len(masses) - 1))
    thin = min(draw(st.sampled_from((Fraction(0), *SLICES))), masses[giver])
    masses[giver] -= thin
    masses[taker] += thin
    return masses


@st.composite
def priors(draw: st.DrawFn, support: list[Fraction], secrets: tuple[str, ...]) -> Prior:
    """One adversary's distributions of the secrets on (part of) a support."""
    n = len(support)
    rows: list[list[Fraction]] = []
    for _ in secrets:
        kind = draw(st.sampled_from(("counts", "counts", "decimals", "like", "like", "point")))
        if kind == "like" and rows:
            rows.append(_like(draw, draw(st.sampled_from(rows))))
        elif kind == "point":
            rows.append(_point(draw, n))
        elif kind == "decimals":
            rows.append(_decimals(draw, n))
        else:
            rows.append(_counts(draw, n))
    keep_zeros = draw(st.booleans())
    return {
        secret: {x: p for x, p in zip(support, row, strict=True) if p > 0 or keep_zeros}
        for secret, row in zip(secrets, rows, strict=True)
    }


@st.composite
def chosen_pairs(draw: st.DrawFn, secrets: tuple[str, ...]) -> tuple[Pair, ...]:
    """All pairs half of the time; else some of them, in any order and either way round."""
    every = list(combinations(secrets, 2))
    if draw(st.booleans()):
        return tuple(every)
    some = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    turned = draw(st.lists(st.booleans(), min_size=len(some), max_size=len(some)))
    return tuple(
        (second, first) if turn else (first, second)
        for (first, second), turn in zip(some, turned, strict=True)
    )


def epsilons() -> st.SearchStrategy[Fraction]:
    """Common budgets, and decimals with up to three digits between 1e-6 and 20."""
    decimal = st.builds(
        lambda digits, power: Fraction(digits, 10**power), st.integers(1, 999), st.integers(2, 6)
    )
    large = st.integers(1, 2000).map(lambda k: Fraction(k, 100))
    return st.sampled_from(EPSILONS) | decimal | large


@st.composite
def cases(draw: st.DrawFn, max_atoms: int = 8, max_secrets: int = 5) -> Case:
    """Small scenarios: brute force over every output is quick."""
    count = min(max_secrets, draw(st.sampled_from((2, 2, 2, 2, 3, 3, 4, 5))))
    adversaries = draw(st.sampled_from((1, 1, 1, 1, 2, 3)))
    secrets, support = SECRETS[:count], draw(supports(max_atoms))
    several = tuple(draw(priors(support, secrets)) for _ in range(adversaries))
    return Case(several, draw(chosen_pairs(secrets)), draw(epsilons()))


@st.composite
def large(draw: st.DrawFn, max_atoms: int = 200) -> Case:
    """Two secrets on up to 200 values, drawn from a seed: too many to draw or shrink one by one."""
    random = draw(st.randoms(use_true_random=False))
    n = draw(st.integers(min(20, max_atoms), max_atoms))
    step, offset = draw(st.sampled_from(STEPS)), draw(st.sampled_from(OFFSETS))
    gaps = draw(st.sampled_from(((1,), (1, 1, 1, 2, 5), (1, 1, 10, 3000))))
    index = [0, *accumulate(random.choice(gaps) for _ in range(n - 1))]
    support = [offset + step * k for k in index]
    largest = draw(st.sampled_from((1, 20, 10**6)))
    prior: Prior = {}
    for secret in SECRETS[:2]:
        counts = [random.randint(0, largest) for _ in support]
        counts[random.randrange(n)] += 1
        prior[secret] = {x: Fraction(c, sum(counts)) for x, c in zip(support, counts, strict=True)}
    return Case((prior,), (("a", "b"),), draw(epsilons()))


@dataclass(frozen=True)
class Released:
    """Joint priors of some columns, and what is released of them.

    `adversaries`: secret -> values of all columns -> count. `releases`: the column and a scale (0:
    unchanged), or the rows of a channel.
    """

    columns: tuple[tuple[Fraction, ...], ...]
    adversaries: tuple[dict[str, dict[tuple[Fraction, ...], int]], ...]
    pairs: tuple[Pair, ...]
    releases: tuple[tuple[int, float | list[list[int]]], ...]


SCALES = (0.0, 0.3, 1.0, 1.0, 2.5, 4.0, 30.0)


@st.composite
def channel_rows(draw: st.DrawFn, size: int) -> list[list[int]]:
    """Rows of a channel, some with zeros, of different sums."""
    outputs, zeros = draw(st.integers(1, 3)), draw(st.booleans())
    entry = st.sampled_from((0, 1, 3, 10)) if zeros else st.sampled_from((1, 2, 9, 40))
    rows = [draw(st.lists(entry, min_size=outputs, max_size=outputs)) for _ in range(size)]
    for row in rows:
        row[draw(st.integers(0, outputs - 1))] += 1
    return rows


@st.composite
def joint_counts(draw: st.DrawFn, columns: tuple[tuple[Fraction, ...], ...]) -> dict[tuple, int]:
    """How many rows have which values in all columns."""
    cells = list(product(*columns))
    full = draw(st.booleans())
    count = st.integers(1, 9) if full else st.sampled_from((0, 0, 1, 5))
    counts = draw(st.lists(count, min_size=len(cells), max_size=len(cells)))
    counts[draw(st.integers(0, len(cells) - 1))] += 1
    return {cell: c for cell, c in zip(cells, counts, strict=True) if c}


@st.composite
def released(draw: st.DrawFn, max_columns: int = 2) -> Released:
    """One or two columns of two or three values with one to three releases."""
    width = draw(st.integers(1, max_columns))
    value = st.integers(0, 5).map(Fraction)
    column = st.lists(value, min_size=2, max_size=3, unique=True).map(lambda v: tuple(sorted(v)))
    columns = tuple(draw(column) for _ in range(width))
    secrets = SECRETS[: draw(st.sampled_from((2, 2, 3)))]
    adversaries = tuple(
        {secret: draw(joint_counts(columns)) for secret in secrets}
        for _ in range(draw(st.sampled_from((1, 1, 2))))
    )
    releases = []
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, width - 1))
        rows = channel_rows(len(columns[at]))
        releases.append((at, draw(st.sampled_from(SCALES) | rows)))
    return Released(columns, adversaries, draw(chosen_pairs(secrets)), tuple(releases))


@dataclass(frozen=True)
class Robust:
    """Counts on a support, pairs, and the rule of the regions: a confidence or a radius."""

    support: tuple[int, ...]
    counts: tuple[dict[str, list[int]], ...]
    pairs: tuple[Pair, ...]
    rule: tuple[str, str]


@st.composite
def robust(draw: st.DrawFn, most: int = 4) -> Robust:
    """Cells that nobody has, rare and common ones."""
    n, m = draw(st.integers(1, most)), draw(st.integers(2, 3))
    gaps = draw(st.lists(st.sampled_from((1, 1, 2, 5)), min_size=n - 1, max_size=n - 1))
    count = st.sampled_from((0, 0, 1, 3, 20, 200))
    counts = []
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        rows = {}
        for secret in SECRETS[:m]:
            rows[secret] = draw(st.lists(count, min_size=n, max_size=n))
            rows[secret][draw(st.integers(0, n - 1))] += 1
        counts.append(rows)
    rule = draw(
        st.tuples(st.just("confidence"), st.sampled_from(("0.5", "0.95", "0.999")))
        | st.tuples(st.just("tv_radius"), st.sampled_from(("1/100", "0.1", "1/4", "0.9", "1")))
    )
    pairs = draw(chosen_pairs(SECRETS[:m]))
    return Robust((0, *accumulate(gaps)), tuple(counts), pairs, rule)


@st.composite
def people(draw: st.DrawFn) -> dict[str, list[tuple[int, ...]]]:
    """For each secret the rows of its people, one to three each; all numbers of rows for all."""
    everybody: dict[str, list[tuple[int, ...]]] = {}
    numbers = draw(st.sets(st.integers(1, 3), min_size=1))
    for secret in SECRETS[: draw(st.sampled_from((2, 2, 3)))]:
        everybody[secret] = []
        for k in sorted(numbers):
            row = st.tuples(*[st.sampled_from((0, 1, 3))] * k)
            everybody[secret] += draw(st.lists(row, min_size=1, max_size=6))
    return everybody
