# SPDX-License-Identifier: Apache-2.0
"""What several releases tell together: never below brute force, and exact where a grid fits."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import definitions
from definitions import M, real
from loss_cases import (
    kernel_of,
    known_people,
    noise,
    package_releases,
    package_scenario,
    true_joint_loss,
)
from pufferfish.errors import InputError, OutsidePromiseWarning
from pufferfish.loss import composition, problem
from pufferfish.loss.bounds import worst_case
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.composition import Composition, gather, joint_loss
from pufferfish.loss.problem import LARGEST_GRID
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels, Support, make_lattice
from pufferfish.tables.rules import Coding
from strategies import Released, released

UNCHANGED = DiscreteLaplace(0.0, Fraction(1))


def numbers(values: Sequence[int]) -> Any:
    return make_lattice([Fraction(v) for v in values], Fraction(1))


def is_bound(found: Any, slow: Any) -> bool:
    """Whether a bound is at or above the loss, but for the digits of the slow one."""
    if found.upper is None or slow == M.inf:
        return found.upper is None
    return bool(real(found.upper) >= slow * (1 - M.mpf("1e-40")) - M.mpf("1e-40"))


def is_exact(found: Any, slow: Any) -> bool:
    """Whether a bound is the loss, rounded up."""
    close = slow == M.inf or float(found) <= float(slow) * (1 + 1e-9) + 1e-12
    return is_bound(found, slow) and close


# ---- random cases -----------------------------------------------------------------------------


def bound_on(cells: int, whole: Composition) -> LossBound:
    """The bound where no grid may have more cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem, "LARGEST_GRID", cells)
        return whole.bound()


def check_bounds(case: Released) -> None:
    """Every bound is one; the last, where everything fits, is the loss, and the least of them."""
    scenario, applied = package_scenario(case), package_releases(case)
    items = [(f"c{at}", made) for at, own in applied.items() for made in own]
    order = [k for c in applied for k, (at, _) in enumerate(case.releases) if at == c]
    slow, found = true_joint_loss(case), []
    for limit in (1, 3, 9, LARGEST_GRID):
        found.append(bound_on(limit, gather(scenario, items)))
        assert is_bound(found[-1], slow)
        named = [*found[-1].within, *(column for column, _ in found[-1].terms)]
        assert len(named) == len(items)
        if found[-1].kind == "joint loss + worst cases" and found[-1].upper is not None:
            # It is the joint loss of those within, and the worst cases of the others.
            rest = float(sum(worst or 0 for _, worst in found[-1].terms))
            assert any(
                math.isclose(float(found[-1]) - rest, true_joint_loss(case, some), abs_tol=1e-12)
                for some in itertools.combinations(order, len(found[-1].within))
            )
    assert is_exact(found[-1], slow)
    assert found[-1].upper is None or found[-1].lower <= float(found[-1])
    assert float(found[-1]) <= min(map(float, found)) * (1 + 1e-12)


@given(released(max_columns=3))
@settings(max_examples=15)
def test_bounds_are_never_below_brute_force(case: Released) -> None:
    check_bounds(case)


def test_mutant_that_forgets_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    values = (Fraction(0), Fraction(1))
    joint = {"a": {values[:1]: 7, values[1:]: 3}, "b": {values[:1]: 2, values[1:]: 5}}
    rows = [[3, 1], [1, 3]]
    case = Released((values,), (joint,), (("a", "b"),), ((0, rows), (0, 1.0), (0, rows)))
    check_bounds(case)
    honest = composition.worst_sum
    monkeypatch.setattr(composition, "worst_sum", lambda terms, rows: honest(terms[:1], rows))
    with pytest.raises(AssertionError):
        check_bounds(case)


# ---- one column -------------------------------------------------------------------------------

RARE = Scenario(Prior.from_mapping({"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}}))


def test_the_theorys_numbers() -> None:
    """Theory, section 6: one release costs 0.1, two 0.840, five 7.61; n numbers decide."""
    one = noise(4.0919340115)
    losses = [float(joint_loss(RARE, [("x", one)] * k)) for k in (1, 2, 5)]
    assert losses[0] == pytest.approx(0.1, abs=1e-9)
    assert round(losses[1], 3) == 0.840
    assert round(losses[2], 2) == 7.61
    merged = float(joint_loss(RARE, [("x", noise(one.scale / 5))]))
    assert losses[2] == pytest.approx(merged, rel=1e-12)
    assert float(joint_loss(RARE, [("x", noise(6.36623))] * 2)) == pytest.approx(0.2, abs=1e-5)


def test_budgets_of_one_column_add_exactly() -> None:
    """Ten times a tenth fit into 1, and nothing more does, where the worst case is attained."""
    times = 10
    apart = Scenario(Prior.from_mapping({"A": {"0": "1"}, "B": {"10": "1"}}))
    items = [("x", noise(10.0 * times))] * times
    assert joint_loss(apart, items).upper == 1
    assert not joint_loss(apart, [*items, ("x", noise(1e9))]).at_most(Fraction(1))
    # So where other pairs have other diameters.
    pairs = Prior.from_mapping({"A": {"0": 1}, "B": {"10": 1}, "C": {"90": 1}, "D": {"100": 1}})
    two = Scenario(pairs, [("A", "B"), ("C", "D")])
    assert joint_loss(two, items).upper == 1


# ---- several columns --------------------------------------------------------------------------

PAIR = Prior.from_counts(
    {"A": [[5, 3], [2, 6]], "B": [[4, 4], [4, 3]]}, support={"x": [0, 1], "z": [0, 1]}
)


@dataclass(frozen=True)
class Planned:
    """What composition reads of a plan."""

    applied: Any
    support: Support
    coding: Coding | None = None
    unit: str | None = None
    rows_per_person: tuple[int, ...] = ()


def planned(column: str | None, mechanism: Any, values: Sequence[int], **more: Any) -> Planned:
    coding = None if column is None else Coding(column, numbers(values))
    return Planned(mechanism, numbers(values), coding, **more)


def test_plans_that_read_cells_otherwise_are_refused() -> None:
    """A scenario that rounds, or drops numbers, may hold what tells the secrets apart for one."""
    table = pa.table({"s": list("aaabbb"), "x": ["4", "4", "-9", "-4", "-4", "4"]})
    plain = Prior.from_table(table, secret="s", public="x")
    made = Planned(UNCHANGED, plain.support, coding=plain.codings[0])
    assert joint_loss(plain, [made]).upper is None
    for more in ({"step": 10}, {"missing": ["-9"]}):
        other = Prior.from_table(table, secret="s", public="x", **more)
        with pytest.raises(InputError, match="read from cells in the same way"):
            joint_loss(other, [made])


def test_the_order_of_releases_does_not_matter() -> None:
    made = Channel(PAIR.product.axes[0], PAIR.product.axes[0], [[3, 1], [1, 3]])
    items: list[Any] = [("x", noise(2.0)), ("z", noise(1.5)), ("x", made)]
    values = {float(joint_loss(PAIR, order)) for order in itertools.permutations(items)}
    assert max(values) - min(values) < 1e-12


def test_a_worst_case_stands_in_for_a_column_nobody_counted() -> None:
    known = Prior.from_counts({"A": [7, 9], "B": [8, 7]}, support={"x": [0, 1]})
    z = planned("z", noise(4.0), [0, 1])
    alone = joint_loss(known, [("x", noise(2.0))])
    both = joint_loss(known, [("x", noise(2.0)), z])
    assert both.kind == "joint loss + worst cases"
    assert both.upper == (alone.upper or 0) + Fraction(1, 4)
    assert both.terms == (("z", Fraction(1, 4)),)
    # Each of the unknown column's releases counts with its own values.
    far = planned("z", noise(4.0), [0, 100])
    assert joint_loss(known, [z, far]).upper == Fraction(101, 4)
    assert joint_loss(known, [z, far]).kind == "worst-case sum"


def test_equal_releases_count_each() -> None:
    made = Channel(PAIR.product.axes[0], PAIR.product.axes[0], [[3, 1], [1, 3]])
    twice = gather(PAIR, []).with_release(0, made).with_release(0, made).with_release(1, made)
    assert bound_on(4, twice).terms == (("x", worst_case(made, PAIR.product.axes[0])),)
    assert bound_on(2, twice).terms == (("x", worst_case(made, PAIR.product.axes[0])),) * 2
    assert bound_on(1, twice).kind == "worst-case sum"


def test_a_scenario_without_a_name_is_about_one_column_only() -> None:
    """The first name is that of its column; another name is another column."""
    one = Scenario(Prior.from_mapping({"a": {"0": ".6", "1": ".4"}, "b": {"0": ".3", "1": ".7"}}))
    same = [planned("x", noise(5.0), [0, 1]), planned("x", noise(5.0), [0, 1])]
    other = [planned("x", noise(5.0), [0, 1]), planned("z", noise(5.0), [0, 1])]
    assert joint_loss(one, same).kind == "joint loss"
    assert joint_loss(one, other).kind == "joint loss + worst cases"
    assert float(joint_loss(one, other)) > float(joint_loss(one, same))


def test_a_plan_knows_its_column() -> None:
    plan = planned("x", noise(3.0), [0, 1])
    assert joint_loss(PAIR, [plan]).upper == joint_loss(PAIR, [("x", plan)]).upper
    nameless = planned(None, noise(3.0), [0, 1])
    assert joint_loss(PAIR, [("x", nameless)]).upper == joint_loss(PAIR, [plan]).upper


@pytest.mark.parametrize(
    "items, words",
    [
        ([3], "release 1 must be a plan"),
        ("x", "a list of plans"),
        (planned("x", UNCHANGED, [0, 1]), "a list of plans"),
        ([("x", 3)], "release 1 must be a plan"),
        ([UNCHANGED], "name the column of release 1"),
        ([("y", UNCHANGED)], "the scenario knows nothing"),
        ([("z", planned("x", UNCHANGED, [0, 1]))], "its plan is for 'x'"),
        ([planned("x", UNCHANGED, [0, 1], unit="id")], "the scenario is about single rows"),
        (
            [("x", Channel(Levels(("a",), False), Levels(("a",), False), [[1]]))],
            "release 1 is for other values",
        ),
    ],
    ids=str,
)
def test_what_is_no_release_is_refused(items: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        joint_loss(PAIR, items)
    with pytest.raises(InputError, match="Scenario or a Prior"):
        joint_loss(items, [])


def test_further_releases_are_added_to_what_was_gathered() -> None:
    first = gather(PAIR, [("x", noise(2.0)), planned("w", noise(8.0), [0, 1])])
    both = first.with_release(PAIR.product.position("z"), noise(3.0))
    assert (len(first), len(both)) == (2, 3)
    assert gather(PAIR, []).bound().upper == 0
    items = [("x", noise(2.0)), planned("w", noise(8.0), [0, 1]), ("z", noise(3.0))]
    assert both.bound().upper == joint_loss(PAIR, items).upper


def test_rows_that_lack_a_value_draw_a_warning() -> None:
    known = [0, 0, 1, 1] * 10
    table = pa.table({"s": ["a", "b"] * 60, "x": [None] * 80 + known, "z": [0, 1] * 40 + known})
    joint = Prior.from_table(table, secret="s", public=["x", "z"])
    with pytest.warns(OutsidePromiseWarning, match="80 rows of the table without a value"):
        joint_loss(joint, [("x", noise(1.0))])


# ---- regions ----------------------------------------------------------------------------------


def test_a_region_is_charged_its_robust_loss_or_worst_cases() -> None:
    counts = {"A": [30, 50, 20], "B": [50, 30, 20]}
    exact = Prior.from_counts(counts, support={"x": [0, 1, 2]})
    robust = exact.with_region(tv_radius=".1")
    one = joint_loss(robust, [("x", noise(4.0))])
    assert one.kind == "joint loss"
    assert float(joint_loss(exact, [("x", noise(4.0))])) < float(one) < 2 / 4
    twice = joint_loss(robust, [("x", noise(8.0))] * 2)  # merges into the same noise
    assert float(twice) == pytest.approx(float(one), rel=1e-9)
    made = Channel(exact.support, exact.support, [[4, 1, 1], [1, 4, 1], [1, 1, 4]])
    mixed = joint_loss(robust, [("x", noise(4.0)), ("x", made)])
    assert mixed.kind == "worst-case sum"
    assert float(mixed) == pytest.approx(0.5 + math.log(4))
    z = planned("z", noise(4.0), [0, 9])
    assert joint_loss(robust, [("x", noise(4.0)), z]).upper == (one.upper or 0) + Fraction(9, 4)


# ---- the rows of one person -------------------------------------------------------------------


def random_people(rng: np.random.Generator) -> definitions.People:
    """Some people of either secret with one and with two rows, of two columns of 0 and 1."""
    return {
        secret: [
            [tuple(map(int, row)) for row in rng.integers(0, 2, (k, 2))]
            for k in (1, 2)
            for _ in range(int(rng.integers(6, 12)) * k)
        ]
        for secret in "ab"
    }


def two_columns(people: definitions.People) -> Scenario:
    return known_people(people, [0, 1], "xz")


def check_people() -> None:
    """Bounds of random people are bounds; the last, where all fits, is the loss."""
    for seed in range(4):
        rng = np.random.default_rng(300 + seed)
        people = random_people(rng)
        if seed % 2:  # values that the secret decides
            people = {
                s: [[(int(s == "a"), int(s == "b"))] * len(own) for own in each]
                for s, each in people.items()
            }
        made = Channel(numbers([0, 1]), numbers([0, 1]), rng.integers(1, 9, (2, 2)))
        every = [(0, noise(2.0)), (1, made), (0, noise(5.0)), (1, noise(5.0))]
        for releases in (every[:2], every[::3], every[:1]):
            kernels = [(at, kernel_of(m, [Fraction(0), Fraction(1)])) for at, m in releases]
            slow = definitions.people_loss(people, kernels)
            whole = gather(two_columns(people), [("xz"[c], m) for c, m in releases])
            assert all(is_bound(bound_on(limit, whole), slow) for limit in (1, 3, 8))
            assert is_exact(whole.bound(), slow)


def test_bounds_for_the_rows_of_a_person_are_bounds() -> None:
    check_people()


def test_mutant_that_takes_one_row_of_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = composition.worst_sum
    monkeypatch.setattr(composition, "worst_sum", lambda terms, rows: honest(terms, 1))
    with pytest.raises(AssertionError):
        check_people()


#: One row or one column alone tells nothing; both rows, each in another column, tell everything.
ACROSS = {
    s: [[(u, v), (w, u if s == "a" else 1 - u)] for u in (0, 1) for v in (0, 1) for w in (0, 1)]
    for s in "ab"
}


def test_a_secret_that_only_two_rows_in_two_columns_tell() -> None:
    scenario = two_columns(ACROSS)
    for column in "xz":
        assert joint_loss(scenario, [(column, UNCHANGED)]).upper == 0
    both = joint_loss(scenario, [("x", UNCHANGED), ("z", UNCHANGED)])
    assert both.upper is None
    # ln (1 + q^2) / (2 q) with q = exp(-1 / theta), for one of x and z each
    found = joint_loss(scenario, [("x", noise(1.0)), ("z", noise(1.0))])
    q = math.exp(-1)
    assert float(found) == pytest.approx(math.log((1 + q * q) / (2 * q)), rel=1e-12)
    assert found.rows == 2


def test_numbers_of_rows_that_are_not_known_are_worst_cases() -> None:
    small = two_columns({s: [[(v, v)] for v in (0, 1)] for s in "ab"})
    plan = planned("x", noise(4.0), [0, 1], unit="id", rows_per_person=(3,))
    found = joint_loss(small, [plan])
    assert (found.upper, found.rows) == (Fraction(3, 4), 3)
    gap = two_columns({s: [[(v, v)] * k for v in (0, 1) for k in (1, 3)] for s in "ab"})
    plan = planned("x", noise(4.0), [0, 1], unit="id", rows_per_person=(1, 2, 3))
    assert (joint_loss(gap, [plan]).upper, joint_loss(gap, [plan]).rows) == (Fraction(1, 2), 2)
    # A column that nobody counted counts once for every row.
    two = two_columns({s: [[(v, 0), (v, 1)] for v in (0, 1)] for s in "ab"})
    y = planned("y", noise(5.0), [0, 5])
    found = joint_loss(two, [("x", noise(3.0)), y])
    assert found.upper == 2
