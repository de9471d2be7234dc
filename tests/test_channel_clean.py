# SPDX-License-Identifier: Apache-2.0
"""Channels say what they mean: no residue, no cost that hides the others, codes as codes."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import pufferfish.calibration.channel
import pufferfish.calibration.channel_bound
import pufferfish.calibration.channel_task
import pufferfish.calibration.forbidden
from pufferfish.calibration.channel import ChannelSolution, channel, exponential_above
from pufferfish.calibration.channel_bound import least_cost, least_cost_exactly
from pufferfish.calibration.channel_program import Program, Row
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.costs import cost_matrix
from pufferfish.calibration.highs import Solver
from pufferfish.calibration.matrix import Matrix
from pufferfish.calibration.outputs import output_alphabet, widened
from pufferfish.certificate import certify_channel
from pufferfish.errors import InputError, PufferfishError
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice

HALF, ONE = Fraction(1, 2), Fraction(1)
COUNTS = {"a": [40, 10, 20, 5, 9], "b": [10, 30, 30, 20, 3]}
NUMBERS = Scenario(Prior.from_counts(COUNTS, support=[0, 1, 2, 3, 4]))


def ordered(names: list[str]) -> Scenario:
    return Scenario(Prior.from_counts(COUNTS, support=names, order=names))


#: The levels of the second have numbers as names, and these are not their codes.
ORDERED = {"words": ordered(list("uvwxy")), "numbers": ordered([*"1234", "more"])}


def random_scenario(seed: int, n: int, m: int, most: int = 60) -> Scenario:
    rng = np.random.default_rng(seed)
    counts = {f"s{k}": [*map(int, rng.integers(0, most, n)), 1] for k in range(m)}
    return Scenario(Prior.from_counts(counts, support=range(n + 1)))


def residue(solution: ChannelSolution) -> int:
    """How many positive entries are below 2**-40."""
    made = solution.channel
    return sum(
        0 < int(v) << 40 < whole
        for row, whole in zip(made.rows.tolist(), made.denominators, strict=True)
        for v in row
    )


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("cost", ["hamming", "squared", "absolute"])
def test_ordered_levels_are_their_codes_whatever_their_names(name: str, cost: str) -> None:
    plain = channel(NUMBERS, HALF, cost=cost, outputs=1)
    solution = channel(ORDERED[name], HALF, cost=cost, outputs=1)
    assert solution.cost == plain.cost
    assert solution.channel.keep_rate([1] * 5) == plain.channel.keep_rate([1] * 5)
    if cost == "hamming":
        kept = solution.channel.keep_rate(solution.weights)
        assert kept == pytest.approx(1 - float(solution.cost), rel=1e-12)
        unbiased = channel(ORDERED[name], HALF, cost=cost, unbiased=True)
        assert unbiased.cost == channel(NUMBERS, HALF, cost=cost, unbiased=True).cost < 1


@pytest.mark.parametrize("scenario", [NUMBERS, *ORDERED.values()], ids=["plain", *ORDERED])
@pytest.mark.parametrize("cost", ["hamming", "squared", "absolute"])
def test_more_outputs_never_cost_more(scenario: Scenario, cost: str) -> None:
    few = float(channel(scenario, HALF, cost=cost).cost)
    for k in (1, 2, 3):
        assert float(channel(scenario, HALF, cost=cost, outputs=k).cost) <= few * (1 + 2e-9)


HUGE = ("1e13", "1e40", "1e300")


def with_huge(seed: int, huge: object) -> list[list[object]]:
    rng = np.random.default_rng(seed)
    costs: list[list[object]] = [[int(v) for v in row] for row in rng.integers(1, 3, (5, 5))]
    for x in range(5):
        costs[x][x] = 0
    costs[0][4] = huge
    costs[3][1] = huge
    return costs


def costs_of_huge(seed: int, **options: object) -> list[ChannelSolution]:
    scenario = random_scenario(seed, 4, 3)
    found = [
        channel(scenario, HALF, cost=with_huge(seed, huge), **options)  # type: ignore[arg-type]
        for huge in ("1e6", *HUGE)
    ]
    assert all(certify_channel(scenario, s.channel, HALF).holds for s in found)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "options", [{}, {"invariant": True}, {"min_keep": "0.05"}, {"weights": [1, 2, 0, 1, 3]}]
)
def test_a_cost_that_forbids_takes_nothing_from_the_others(
    seed: int, options: dict[str, object]
) -> None:
    first, *others = costs_of_huge(seed, **options)
    for solution in others:
        assert float(solution.cost) <= float(first.cost) * (1 + 1e-8)
        # The cost is exact, and so are the bound and what is said of the two.
        assert solution.repair <= 1e-8
        assert solution.notes == ()
        assert solution.channel.rows[0, 4] == solution.channel.rows[3, 1] == 0


def test_without_the_prohibition_the_other_costs_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: one scale for all costs, which is what the check above is for."""
    monkeypatch.setattr(pufferfish.calibration.channel, "ceiling_of", lambda *_: None)
    first, *others = costs_of_huge(1)
    assert any(float(s.cost) > 1.5 * float(first.cost) for s in others)


@pytest.mark.parametrize("far", [-1, 0, 1, 3])
def test_what_is_forbidden_wrongly_is_allowed_again(
    far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of the program with all its entries, so that nothing is lost."""
    scenario = random_scenario(2, 5, 3)
    for options in ({}, {"invariant": True}, {"min_keep": "0.1"}, {"unbiased": True}):
        honest = channel(scenario, HALF, cost="squared", **options)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            patch.setattr(pufferfish.calibration.forbidden, "_FAR", Fraction(far))
            patch.setattr(
                pufferfish.calibration.channel, "ceiling_of", lambda w, c, spent=ONE: spent * 2**far
            )
            solution = channel(scenario, HALF, cost="squared", **options)  # type: ignore[arg-type]
        assert float(solution.cost) == pytest.approx(float(honest.cost), rel=1e-8)
        assert solution.lp_bound <= float(honest.cost) * (1 + 1e-12)


def test_costs_that_cannot_be_avoided_are_paid() -> None:
    costs = [["1e300", "1e300"], ["1e300", 0]]
    solution = channel(Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}})), HALF, cost=costs)
    assert float(solution.cost) == pytest.approx(5e299, rel=1e-6)
    assert solution.repair <= 1e-6


CONSTANT = Scenario(
    Prior.from_counts(
        {"s0": [200, 50, 10], "s1": [200, 1, 3], "s2": [200, 0, 10], "s3": [1, 0, 1]},
        support=["x0", "x1", "x2"],
    )
)


def test_a_constant_channel_is_constant() -> None:
    solution = channel(CONSTANT, ONE, cost="hamming")
    assert [np.flatnonzero(row).tolist() for row in solution.channel.rows] == [[0]] * 3
    certificate = certify_channel(CONSTANT, solution.channel, ONE)
    assert certificate.holds
    assert certificate.loss == 0


OPTIONS: list[dict[str, object]] = [
    {},
    {"cost": "squared"},
    {"cost": "hamming", "outputs": 1},
    {"invariant": True},
    {"unbiased": True, "weights": [2, 1, 0, 1, 2, 0, 1, 1]},
    {"min_keep": "0.02"},
    {"weights": [2, 1, 0, 1, 2, 0, 1, 1]},
    {"confidence": "0.9"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[",".join(o) or "plain" for o in OPTIONS])
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "2"])
def test_channels_from_tables_have_no_residue(options: dict[str, object], epsilon: str) -> None:
    given = {"cost": "hamming"} | options
    for seed, m in ((1, 2), (2, 3), (3, 5)):
        scenario = random_scenario(seed, 7, m)
        if "confidence" in given:
            given["regions"] = regions_of(scenario, confidence=given.pop("confidence"))
            solution = channel(scenario, Fraction(epsilon), **given)  # type: ignore[arg-type]
            given["confidence"] = "0.9"
            del given["regions"]
        else:
            solution = channel(scenario, Fraction(epsilon), **given)  # type: ignore[arg-type]
        assert residue(solution) == 0
        assert solution.repair <= 2e-9
        assert solution.notes == ()
        assert certify_channel(scenario, solution.channel, Fraction(epsilon)).holds


def test_without_the_cleaning_there_is_residue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the repaired channel as it is."""
    monkeypatch.setattr(pufferfish.calibration.channel_task, "cleaned", lambda *given: given[-1])
    assert residue(channel(CONSTANT, ONE, cost="hamming")) > 0
    assert residue(channel(random_scenario(3, 7, 5), HALF, cost="hamming")) > 0


def test_small_entries_that_privacy_needs_are_kept() -> None:
    """Along a path of pairs an output may be e^-20 as likely at every step."""
    prior = Prior.from_mapping({"a": {0: 1}, "b": {1: 1}, "c": {2: 1}, "d": {3: 1}})
    scenario = Scenario(prior, [("a", "b"), ("b", "c"), ("c", "d")])
    solution = channel(scenario, Fraction(15), cost="hamming")
    assert certify_channel(scenario, solution.channel, Fraction(15)).holds
    assert solution.repair <= 1e-6


def test_outputs_that_doubles_cannot_tell_apart_are_refused() -> None:
    def alphabet(low: object, high: object, step: object = 1) -> Lattice:
        prior = Prior.from_mapping({"a": {low: 1}, "b": {high: 1}}, step=step)
        assert isinstance(prior.support, Lattice)
        return prior.support

    far = alphabet(2**52, 2**52 + 2)
    for outputs in (1, 3, 4, 9):
        # Decimals are written as they are, however many digits that takes.
        assert output_alphabet(far, outputs).size == outputs + 2
    with pytest.raises(InputError, match=r"multiples of 1/3, .* doubles have 53 bits"):
        output_alphabet(alphabet(2**53, 2**53 + 2), 2)
    with pytest.raises(InputError, match="finite decimal"):
        channel(
            Scenario(Prior.from_mapping({"a": {2**53: 1}, "b": {2**53 + 2: 1}})), HALF, outputs=2
        )
    assert output_alphabet(alphabet(0, 3), 6).size == 8
    assert widened(output_alphabet(alphabet(0, 2), 2), Fraction(5)).size == 6
    close = Lattice(Fraction(1, 3), 3 * 2**53, np.array([0, 1, 2], dtype=np.int64))
    with pytest.raises(InputError, match="finite decimal"):
        widened(close, Fraction(2))


def test_the_largest_number_of_outputs_is_named() -> None:
    support = NUMBERS.support
    for many in ("99999999", "9" * 18, "9" * 40, "9" * 300):
        with pytest.raises(InputError, match=r"more than 100,000; ask for fewer, at most 24,998$"):
            output_alphabet(support, f"fine:{many}")
    crowd = Scenario(
        Prior.from_counts({"a": [1] * 60_000, "b": [1] * 60_000}, support=range(60_000))
    )
    with pytest.raises(InputError, match="these values are too many"):
        output_alphabet(crowd.support, 1)


def test_all_missing_costs_are_named_together() -> None:
    support = NUMBERS.support
    outputs = output_alphabet(support, 1)
    given = {x: dict.fromkeys(range(5), 1) for x in range(5)}
    with pytest.raises(
        InputError,
        match=r"no entry for '0\.5', '1\.5', '2\.5', '3\.5'; it needs one for each of '0', '0\.5', "
        r".*'3\.5', \.\.\. \(9 in all\)",
    ):
        cost_matrix(support, outputs, given)
    with pytest.raises(InputError, match=r"no entry for '0\.1', .*'0\.8', \.\.\. \(36 in all\)"):
        cost_matrix(support, output_alphabet(support, 9), given)
    with pytest.raises(InputError, match="no row for '3', '4'; it needs one for each of '0', '1',"):
        cost_matrix(support, support, {x: given[x] for x in range(3)})


def tall_program(terms: int, coefficient: Fraction) -> Program:
    """One value and output under many constraints."""
    rows = [Row([0], [coefficient], Fraction(0), None) for _ in range(terms)]
    rows.append(Row([0], [ONE], ONE, ONE))
    return Program((1, 1), np.array([1.0]), rows, {}, terms, [ONE] * terms)


@pytest.mark.parametrize("terms", [1, 90, 10_000])
def test_the_bound_holds_however_tall_a_column_is(
    terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a sum grows with its terms; a fixed share of it covers only short ones."""
    honest, careless = [], []
    for k in range(1, 8):
        program = tall_program(terms, Fraction(k, 7))
        matrix = Matrix.of(program)
        duals = np.append(np.full(terms, 1 / (3 * k + 1)), 0.0)
        exact = least_cost_exactly(program, [ONE], [Fraction(float(y)) for y in duals])
        size = 1 + sum(abs(Fraction(float(y))) for y in duals) * Fraction(k, 7)
        honest.append(Fraction(least_cost(program, matrix, duals)) <= exact)
        with monkeypatch.context() as patch:
            fixed = 1e-14 / (2 * (terms + 10))
            patch.setattr(pufferfish.calibration.channel_bound, "_UNIT", fixed)
            careless.append(Fraction(least_cost(program, matrix, duals)) <= exact)
        # It is not given away either.
        lost = exact - Fraction(least_cost(program, matrix, duals))
        assert lost <= size * Fraction(5 * (terms + 10)) * Fraction(sys.float_info.epsilon)
    assert all(honest)
    assert terms < 10_000 or not all(careless)


def test_the_exact_bound_agrees_with_the_other() -> None:
    rng = np.random.default_rng(2)
    for seed in range(6):
        scenario = random_scenario(seed, 4, 3)
        solution = channel(scenario, HALF, cost="hamming", min_keep="0.05")
        costs = cost_matrix(scenario.support, scenario.support, "hamming")
        task = Task(
            scenario, None, scenario.support, costs, solution.weights,
            pufferfish.calibration.channel.Conditions(min_keep=Fraction(1, 20)),
            pufferfish.calibration.channel.exponential_below(HALF),
        )  # fmt: skip
        program = task.program(task.bound)
        solver = Solver(program)
        duals = solver.solve().duals + rng.normal(0, 1e-3, len(program.rows))
        exact = [Fraction(float(c)) for c in program.cost]
        multipliers = [
            Fraction(float(y)) / Fraction(2) ** int(e)
            for y, e in zip(duals, solver.matrix.exponent, strict=True)
        ]
        slow = least_cost_exactly(program, exact, multipliers)
        fast = least_cost(program, solver.matrix, duals)
        assert Fraction(fast) <= slow
        assert fast == pytest.approx(float(slow), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("epsilon", ["21", "30", "300"])
def test_beyond_the_cap_the_excess_is_told_relative_to_the_optimum(epsilon: str) -> None:
    scenario = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
    solution = channel(scenario, Fraction(epsilon), cost="hamming")
    optimum = 1 / (1 + math.exp(float(epsilon)))
    assert optimum * (1 - 1e-6) <= solution.lp_bound <= optimum
    assert solution.repair == pytest.approx(float(solution.cost) / optimum - 1, rel=1e-6)
    assert f"at most {solution.repair:.2g} times that least" in solution.notes[0]
    unknown = channel(scenario, Fraction(10**5), cost="hamming")
    assert unknown.lp_bound == 0
    assert "only that it is not below 0 is known" in unknown.notes[0]


def test_the_exponential_is_enclosed() -> None:
    for epsilon in ("1e-9", "1", "25", "5000"):
        value = Fraction(epsilon)
        low = pufferfish.calibration.channel.exponential_below(value)
        high = exponential_above(value)
        assert low < high < low * (1 + Fraction(1, 2**120))


def test_a_solver_that_fails_on_the_stricter_program_leaves_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(self: Solver, solution: object, share: float) -> Solver:
        class Broken:
            seconds = 0.0

            def solve(self, magnified: int) -> None:
                raise PufferfishError("out of order")

        return Broken()  # type: ignore[return-value]

    monkeypatch.setattr(Solver, "tightened", fails)
    scenario = random_scenario(3, 7, 5)
    solution = channel(scenario, HALF, cost="hamming")
    assert certify_channel(scenario, solution.channel, HALF).holds
    assert solution.repair <= 1e-9
