# SPDX-License-Identifier: Apache-2.0
"""Several rows of one person and several releases: counted, bounded and calibrated together."""

import itertools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from pufferfish import accountant
from pufferfish.errors import CheckFailed, InputError, OutsidePromiseWarning, PriorWarning
from pufferfish.joint import Axis, unitrows
from pufferfish.joint.unitrows import UnitBound, UnitRows, places_of
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.scenario import Scenario
from pufferfish.support import make_lattice, make_levels
from slow import joint_brute as brute
from slow.digits import M, real

COLUMNS = ["id", "s", "x", "z"]
PAIRS = [(0, 1), (0, 2), (1, 2)]
Value = tuple[int, int]


def frame(*people: tuple[str, Sequence[Value]]) -> pd.DataFrame:
    """A table of people: the secret of each, and the values of its rows in their order."""
    rows = [(f"p{at}", s, x, z) for at, (s, values) in enumerate(people) for x, z in values]
    return pd.DataFrame(rows, columns=COLUMNS)


def counted(table: Any, public: Any = ("x", "z"), **options: Any) -> pf.Prior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        named = public if isinstance(public, str) else list(public)
        return pf.Prior.from_table(table, secret="s", public=named, **{"unit": "id", **options})


def people(rng: np.random.Generator, numbers: Sequence[int], values: int = 2) -> pd.DataFrame:
    """Random people, every secret with every number of rows, and every value under each."""

    def rows(k: int) -> list[Value]:
        return [(int(rng.integers(values)), int(rng.integers(values))) for _ in range(k)]

    made = [(s, rows(k)) for s in "abc" for k in numbers for _ in range(int(rng.integers(1, 4)))]
    made += [(s, [(v, v)]) for s in "abc" for v in range(values)]
    return frame(*(made[at] for at in rng.permutation(len(made))))


def slow_loss(table: pd.DataFrame, releases: Sequence[tuple[int, Any]], secrets: int = 3) -> Any:
    """The largest loss over all numbers of rows, and of single rows, by its definition.

    ``releases`` are pairs of a column (0: x, 1: z) and, for each of its outputs, the likelihoods.
    """
    groups: dict[int, dict[str, dict[tuple[int, ...], int]]] = {}
    for _, own in table.groupby("id", sort=False):
        secret = own["s"].iloc[0]
        rows = list(zip(own["x"].tolist(), own["z"].tolist(), strict=True))
        for k, values in (
            (len(rows), tuple(v for row in rows for v in row)),
            *((0, r) for r in rows),
        ):
            counts = groups.setdefault(k, {}).setdefault(secret, {})
            counts[values] = counts.get(values, 0) + 1
    worst = M.mpf(0)
    for k, by_secret in groups.items():
        assert len(by_secret) == secrets
        placed = [(2 * row + column, r) for row in range(max(k, 1)) for column, r in releases]
        ratio = brute.largest_ratio(
            [[by_secret[s] for s in sorted(by_secret)]], PAIRS if secrets == 3 else [(0, 1)], placed
        )
        worst = max(worst, M.inf if ratio is None else M.log(real(ratio)))
    return worst


def noise(scale: float, values: int = 2) -> tuple[Mechanism, Any]:
    decay = M.exp(-1 / M.mpf(scale))
    kernel = [{x: decay ** abs(y - x) for x in range(values)} for y in range(values)]
    return DiscreteLaplace(scale, Fraction(1)), kernel


def channel(rng: np.random.Generator, least: int = 1, values: int = 2) -> tuple[Mechanism, Any]:
    support = make_lattice([Fraction(v) for v in range(values)])
    rows = [[int(v) for v in rng.integers(least, 8, values - 1)] for _ in range(values)]
    rows = [[*row, 8 * values - sum(row)] for row in rows]
    return Channel.of(support, support, rows), brute.channel(range(values), rows)


def close(found: Any, slow: Any) -> bool:
    """Whether a bound is the loss, rounded up."""
    if found.upper is None or slow == M.inf:
        return bool(found.upper is None and slow == M.inf)
    upper = real(found.upper)
    return bool(upper >= slow * (1 - M.mpf("1e-30")) - M.mpf("1e-30")) and bool(
        upper <= slow * (1 + M.mpf("1e-9")) + M.mpf("1e-12")
    )


@pytest.mark.parametrize("seed", range(16))
def test_the_joint_loss_of_all_rows_is_that_of_all_outputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = people(rng, ((2,), (1, 2), (2, 3), (3,))[seed % 4])
    scenario = Scenario(counted(table))
    made = [
        noise(float(rng.uniform(0.5, 4))),
        channel(rng, seed % 2),
        noise(float(rng.uniform(1, 9))),
    ]
    for chosen in ([(0, 0), (1, 1)], [(0, 0), (0, 2), (1, 2)], [(1, 1), (0, 1)], [(1, 0)]):
        items = [("xz"[column], made[at][0]) for column, at in chosen]
        slow = slow_loss(table, [(column, made[at][1]) for column, at in chosen])
        found = pf.joint_loss(scenario, items)
        assert close(found, slow), (chosen, float(found), slow)
        if isinstance(found, UnitBound):
            assert found.name in {"joint loss", "worst-case sum"}  # which may be equal
            assert found.how.endswith(f"of all {found.rows} rows of one person")


#: One row or one column alone tells nothing; both rows, each in another column, tell everything.
ACROSS = frame(
    *[("a", [(u, v), (w, u)]) for u in (0, 1) for v in (0, 1) for w in (0, 1)],
    *[("b", [(u, v), (w, 1 - u)]) for u in (0, 1) for v in (0, 1) for w in (0, 1)],
)


def test_a_secret_that_only_two_rows_in_two_columns_tell() -> None:
    prior = counted(ACROSS)
    alone = {c: pf.calibrate(counted(ACROSS, c), 1) for c in "xz"}
    assert [alone[c].scale for c in "xz"] == [0, 0]
    rows = counted(ACROSS, unit=None)
    bare = {c: pf.calibrate(counted(ACROSS, c, unit=None), 1) for c in "xz"}
    assert float(pf.joint_loss(rows, [bare["x"], bare["z"]])) == 0
    found = pf.joint_loss(prior, [alone["x"], alone["z"]])
    assert found.upper is None
    with pytest.raises(CheckFailed):
        pf.calibrate(prior, 1, "l1", already=[alone["x"], alone["z"]], column="x")
    # ln (1 + q^2) / (2 q) with q = exp(-1 / theta), for one of x and z each; x is unchanged
    plan = pf.calibrate(prior, 1, column="z", already=[alone["x"]])
    q = math.exp(-1 / (plan.scale or 0))
    assert math.log(1 / q) == pytest.approx(1, rel=1e-9)
    x, z = pf.calibrate_together(prior, 1, ["x", "z"])
    q = math.exp(-1 / (x.scale or 0))
    assert x.scale == z.scale
    assert math.log((1 + q * q) / (2 * q)) == pytest.approx(1, rel=1e-9)


def test_mutant_that_takes_each_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rows of one person together, the secret above is given away."""
    monkeypatch.setattr(accountant.Gathered, "by_units", False)
    found = pf.joint_loss(counted(ACROSS), [("x", noise(0.1)[0]), ("z", noise(0.1)[0])])
    assert float(found) == 0


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("mechanism", ["exact", "wasserstein", "channel"])
def test_what_is_fitted_in_keeps_all_rows_within_epsilon(seed: int, mechanism: str) -> None:
    rng = np.random.default_rng(100 + seed)
    table = people(rng, (1, 2) if seed % 2 else (2, 3))
    prior = counted(table)
    first = noise(float(rng.uniform(4, 20)))
    out = pf.joint_loss(prior, [("x", first[0])])
    epsilon = Fraction(math.ceil(4 * float(out)) + 1, 2)
    column = "xz"[seed % 2]
    plan = pf.calibrate(prior, epsilon, mechanism, column=column, already=[("x", first[0])])
    if plan.noise is not None:
        # At no noise at all the kernel is the identity.
        kernel = noise(plan.noise.scale)[1] if plan.noise.scale else brute.unchanged([0, 1])
    else:
        own = plan.channel
        assert own is not None
        rows = (
            own.rows
            * np.array([math.lcm(*own.denominators) // d for d in own.denominators])[:, None]
        )
        kernel = brute.channel([0, 1], rows.tolist())
    slow = slow_loss(table, [(0, first[1]), ("xz".index(column), kernel)])
    assert slow <= real(epsilon) * (1 + M.mpf("1e-30")), (slow, epsilon)
    assert plan.beside is not None
    assert plan.beside.loss <= float(epsilon)
    assert plan.units is not None
    assert plan.rules is not None
    assert plan.rules.unit == "id"
    if mechanism == "exact" and plan.scale:
        assert slow >= real(epsilon) * (1 - M.mpf("1e-8"))
    plan.verify(counted(table, column))


@pytest.mark.parametrize("seed", range(6))
def test_scales_together_are_the_least_in_their_ratio(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    table = people(rng, (1, 2))
    x, z = pf.calibrate_together(counted(table), "1/2", {"x": 1, "z": "3/2"})
    assert x.scale is not None
    assert z.scale == pytest.approx(1.5 * x.scale, rel=1e-12)
    slow = slow_loss(table, [(0, noise(x.scale)[1]), (1, noise(z.scale or 0)[1])])
    assert M.mpf("0.5") * (1 - M.mpf("1e-8")) <= slow <= M.mpf("0.5")
    twice = pf.calibrate_together(counted(table, "x"), "1/2", 2)
    kernel = noise(twice[0].scale or 0)[1]
    assert slow_loss(table, [(0, kernel), (0, kernel)]) <= M.mpf("0.5")
    once = pf.calibrate(counted(table, "x"), "1/2").scale
    assert twice[0].scale == pytest.approx(2 * (once or 0), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_never_below_the_loss(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(300 + seed)
    table = people(rng, (2, 3), values=3 if seed % 3 == 0 else 2)
    scenario = Scenario(counted(table))
    values = 3 if seed % 3 == 0 else 2
    items: list[Any] = [("x", noise(2.0, values)[0]), ("z", noise(5.0, values)[0])]
    exact = pf.joint_loss(scenario, items)
    worst = 3 * sum(Fraction(values - 1) / Fraction(m.scale) for _, m in items)
    names = set()
    for limit in (1, 4, 12, 40, 150, 1000):
        found = pf.joint_loss(scenario, items, limit=limit)
        assert found.upper is not None
        assert exact.upper is not None
        assert exact.upper <= found.upper * (1 + Fraction(1, 10**12))
        assert found.upper <= worst
        names.add(found.name)
    assert "joint loss + worst cases" in names
    # Where not even the counts can be spread out, fewer places are.
    monkeypatch.setattr(unitrows, "MOST_CELLS", 40)
    coarse = pf.joint_loss(scenario, items)
    assert coarse.upper is not None
    assert exact.upper is not None
    assert exact.upper <= coarse.upper * (1 + Fraction(1, 10**12))
    assert coarse.upper <= worst


def test_columns_that_are_not_known_count_once_for_every_row() -> None:
    table = frame(*[(s, [(v, 0), (v, 1)]) for s in "ab" for v in (0, 1)])
    one = counted(table, "x")
    other = counted(table, "z")
    unknown = pf.calibrate(pf.Prior.from_mapping({"a": {"0": 1}, "b": {"5": 1}}), 1, "l1")
    assert unknown.scale == 5
    found = pf.joint_loss(one, [("x", noise(3.0)[0]), ("y", unknown)])
    # x tells nothing here, and y at most 5 / 5 in each of both rows
    assert found.upper == 2
    assert isinstance(found, UnitBound)
    assert found.rows == 2
    with pytest.raises(InputError, match="the scenario is about single rows"):
        pf.joint_loss(counted(table, "x", unit=None), [pf.calibrate(one, 1)])
    table["house"] = table["id"]
    house = pf.calibrate(counted(table, "z", unit="house"), 1)
    with pytest.raises(InputError, match="has the unit 'id'"):
        pf.joint_loss(other, [house])


def test_columns_that_are_not_known_may_have_values_in_more_rows() -> None:
    """A row that lacks x is no row of x, but it is one of z."""
    rows = []
    for i in range(40):
        s, x = "ab"[i % 2], str(i // 2 % 2)
        last = "" if i % 4 < 2 else x
        rows += [(f"u{i}", s, x, 4 * (s == "b")), (f"u{i}", s, last, 4 * (s == "b"))]
    table = pd.DataFrame(rows, columns=COLUMNS)
    for own in (table[table["x"] != ""], table):
        of_x = counted(own, "x")
        assert of_x.units is not None
        assert of_x.units.most == 2
        z = pf.calibrate(counted(table, "z", unit=None), 1, "l1")
        assert z.scale == 4
        assert pf.joint_loss(of_x, [z]).upper == 2
    x = DiscreteLaplace(6.0, Fraction(1))
    z = pf.calibrate(counted(table, "z"), 1)
    of_x = counted(table, "x")
    loss = pf.joint_loss(of_x, [("x", x), z])
    assert float(loss) >= 2 * 4 / (z.scale or 1)
    with pytest.raises(CheckFailed):
        pf.calibrate(of_x, float(loss) * 0.5, already=[z])
    plan = pf.calibrate(of_x, float(loss) + 0.5, already=[z])
    assert plan.beside is not None
    assert 2 * 4 / (z.scale or 1) <= plan.beside.loss <= float(loss) + 0.5


def test_a_column_of_several_says_that_others_lack_values() -> None:
    table = frame(*[(s, [(v, 0), (1 - v, 1)]) for s in "ab" for v in (0, 1)]).astype(object)
    table.loc[table.index % 2 == 1, "z"] = None
    for options in ({}, {"unit": None}):
        joint = counted(table, **options)
        with pytest.warns(OutsidePromiseWarning, match="4 rows of the table without a value"):
            plan = pf.calibrate(joint, 1, column="x")
        assert any("without a value" in note for note in plan.notes)
        with warnings.catch_warnings():
            warnings.simplefilter("error", OutsidePromiseWarning)
            pf.calibrate(counted(table, ["z"], **options), 1, column="z")


def test_the_marginal_of_units_is_what_the_column_has_by_itself() -> None:
    rng = np.random.default_rng(5)
    table = people(rng, (1, 2, 3), values=3)
    joint = counted(table)
    for column in "xz":
        own, marginal = counted(table, column), joint.marginal(column)
        assert own.units is not None
        assert marginal.units is not None
        assert Scenario(own).digest == Scenario(marginal).digest
        rows = range(len(own.secrets))
        assert own.units.digest(rows) == marginal.units.digest(rows)
    plan = pf.calibrate(joint, 1, column="x")
    assert plan.scale == pf.calibrate(counted(table, "x"), 1).scale
    assert plan.units == pf.calibrate(counted(table, "x"), 1).units


def test_adversaries_on_other_supports_and_in_another_order() -> None:
    rng = np.random.default_rng(6)
    first, second = people(rng, (1, 2), values=2), people(rng, (1, 2), values=3)
    both = Scenario([counted(first), counted(second, ("z", "x"))])
    items = [("x", noise(2.0)[0]), ("z", noise(3.0)[0])]
    each = [pf.joint_loss(counted(table), items) for table in (first, second)]
    found = pf.joint_loss(both, items)
    assert found.value == pytest.approx(max(map(float, each)), rel=1e-12)


def test_a_number_of_rows_that_only_a_plan_knows_is_a_worst_case() -> None:
    small = frame(*[(s, [(v, v)]) for s in "ab" for v in (0, 1)])
    large = frame(*[(s, [(v, v), (0, 1)]) for s in "ab" for v in (0, 1)])
    plan = pf.calibrate(counted(large, "x"), 1, "l1")
    assert plan.units is not None
    assert plan.units.rows == (2,)
    found = pf.joint_loss(counted(small, "x"), [plan])
    assert found.upper == 2 / Fraction(plan.scale or 1)


def test_levels_and_noise_on_codes_at_the_places_of_rows() -> None:
    """A part of ordered levels keeps its distances, also beside a channel of the same column."""
    levels = make_levels(["low", "mid", "high"], ("low", "mid", "high"))
    atoms = np.array([[0, 0], [2, 0], [0, 2], [2, 2]])
    counts = np.array([[3, 1, 1, 3], [1, 3, 3, 1]])
    units = UnitRows.of(atoms, counts, (3,))
    laplace = DiscreteLaplace(1.5, Fraction(1))
    made = Channel.of(levels, levels, [[4, 1, 1], [1, 4, 1], [1, 1, 4]])
    for releases in ((laplace,), (made,), (laplace, made)):
        axis = Axis(levels, tuple(releases))
        places = places_of(units, [axis], [(0, 1)])
        kernel = [
            [
                (M.exp(-abs(y - x) / M.mpf(1.5)) if laplace in releases else 1)
                * (int(made.rows[x][w]) if made in releases else 1)
                for x in range(3)
            ]
            for y, w in itertools.product(range(3), range(3))
        ]
        found = unitrows.smallest_unit_bound(units, [axis], [["1"] * len(releases)], [(0, 1)])
        worst = M.mpf(0)
        for one, two in itertools.product(kernel, kernel):
            a, b = (
                sum(int(c) * one[x] * two[y] for c, (x, y) in zip(row, atoms, strict=True))
                for row in counts
            )
            worst = max(worst, abs(M.log(a / b)))
        assert close(found, worst), releases
        assert places.complete


def test_many_pairs_are_bounded_one_by_one() -> None:
    """Of a single pair more can be counted together than of all."""
    rng = np.random.default_rng(8)
    made = [(s, [(int(v) + 2 * k, 0) for v in rng.integers(0, 2, 3)]) for k, s in enumerate("abc")
            for _ in range(12)]  # fmt: skip
    units = counted(frame(*made), "x").units
    assert units is not None
    [group] = units.groups
    rows = UnitRows.of(group.sequences, group.counts, (6,))
    axis = Axis(counted(frame(*made), "x").support, (DiscreteLaplace(9.0, Fraction(1)),))  # type: ignore[arg-type]
    together = unitrows.smallest_unit_bound(rows, [axis], [["1"]], PAIRS)
    limited = unitrows.smallest_unit_bound(rows, [axis], [["1"]], PAIRS, limit=3 * 4**3 - 1)
    by_pair = unitrows._bound(rows, [axis], [["1"]], PAIRS, (), 3 * 4**3 - 1)
    assert together.upper is not None
    assert limited.upper is not None
    assert by_pair.upper is not None
    assert together.upper <= limited.upper < by_pair.upper


def test_the_least_scale_may_be_below_a_step() -> None:
    rows = [("p0", "a", 0), ("p1", "a", 1), ("p2", "b", 0), ("p3", "b", 1), ("p4", "a", 0),
            ("p4", "a", 1)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["id", "s", "x"])
    prior = counted(table, "x")
    # Two rows are known of one secret only: 2 / scale is charged.
    far = ("x", DiscreteLaplace(1000.0, Fraction(1)))
    plan = pf.calibrate(prior, 16, already=[far])
    assert 2 / 16 <= (plan.scale or 0) < 0.1252
    both = pf.calibrate_together(prior, 16, 2)
    assert 4 / 16 <= (both[0].scale or 0) < 0.2501
