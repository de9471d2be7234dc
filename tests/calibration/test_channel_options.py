# SPDX-License-Identifier: Apache-2.0
"""What may be asked of a channel: costs, weights, outputs, and what is refused in one line."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from channel_checks import entries, is_private
from pufferfish.calibration import channel_program
from pufferfish.calibration.channel import channel
from pufferfish.calibration.channel_task import (
    output_alphabet,
    read_costs,
    read_weights,
)
from pufferfish.errors import InputError
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Lattice, Levels

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
BIT = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
#: Value 1 occurs under c alone, which is in no pair.
COUNTS = {"a": [40, 0, 20, 5, 9], "b": [10, 0, 30, 20, 3], "c": [1, 50, 1, 1, 1]}
NAMES = ["u", "v", "w", "x", "y"]
NUMBERS = Scenario(Prior.from_counts(COUNTS, support=[0, 1, 2, 3, 4]), [("a", "b")])
LEVELS = Scenario(Prior.from_counts(COUNTS, support=NAMES), [("a", "b")])
ORDERED = Scenario(Prior.from_counts(COUNTS, support=NAMES, order="appearance"), [("a", "b")])
OWN = [[5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [2, 2, 2, 2, 2]]


def matrix_of(scenario: Scenario, cost: object) -> np.ndarray:
    costs = read_costs(scenario.support, scenario.support, cost)
    return costs.whole * costs.unit


@pytest.mark.parametrize(
    "scenario, name", [(NUMBERS, "squared"), (ORDERED, "squared"), (LEVELS, "hamming")]
)
def test_the_cost_by_default(scenario: Scenario, name: str) -> None:
    solution = channel(scenario, HALF)
    assert solution.distortion.cost_name == name
    assert solution.cost == channel(scenario, HALF, cost=name).cost


def test_named_costs() -> None:
    halves = Scenario(Prior.from_mapping({"a": {"0": 1}, "b": {"0.5": ".5", "2": ".5"}})).support
    squared = read_costs(halves, halves, "squared")
    assert (squared.whole * squared.unit).tolist() == [
        [0, Fraction(1, 4), 4],
        [Fraction(1, 4), 0, Fraction(9, 4)],
        [4, Fraction(9, 4), 0],
    ]
    absolute = read_costs(halves, halves, "absolute")
    assert (absolute.whole * absolute.unit)[0].tolist() == [0, HALF, 2]
    assert read_costs(halves, halves, "hamming").whole.tolist() == (1 - np.eye(3)).tolist()


def test_costs_by_value() -> None:
    rows = (dict(zip(NAMES, row, strict=True)) for row in OWN)
    by_name: dict[str, Any] = dict(zip(NAMES, rows, strict=True))
    # Levels that do not occur here may be in the mapping, too.
    by_name["more"] = {}
    assert (matrix_of(LEVELS, by_name) == np.array(OWN)).all()
    numbers = {x: {f"{y}.0": OWN[x][y] for y in range(5)} for x in range(5)}
    assert (matrix_of(NUMBERS, numbers) == np.array(OWN)).all()
    thirds = [["1/3" if x != y else 0 for y in range(5)] for x in range(5)]
    assert matrix_of(NUMBERS, thirds)[0, 1] == Fraction(1, 3)
    misspelt = {"uu" if name == "u" else name: row for name, row in by_name.items()}
    for cost, message in (
        (misspelt, r"no row for u \(did you mean 'uu'"),
        ({**by_name, "u": 3}, "must be a mapping"),
        ({**by_name, "u": {}}, "the row of 'u' in the cost matrix has no entry for u"),
        (3, "rows of numbers, but 3 was given"),
        ([[0, 1]], "5 rows of 5"),
        ([[-1] * 5] * 5, "negative entry -1"),
        ("hammin", "did you mean 'hamming'"),
        (
            "squared",
            "cost squared, unlike the cost hamming or a cost matrix, needs numbers or levels",
        ),
        ("absolute", "cost absolute, unlike .* needs numbers or levels with an order"),
    ):
        with pytest.raises(InputError, match=message):
            channel(LEVELS, HALF, cost=cost)


def test_costs_that_span_too_much_are_refused() -> None:
    far = Scenario(Prior.from_mapping({"a": {"0": 1}, "b": {"1": ".5", "40000": ".5"}}))
    with pytest.raises(
        InputError, match=r"less than a factor of 1e9, .* from 1 to 1600000000; use"
    ):
        channel(far, HALF)
    assert is_private(far, channel(far, HALF, cost="absolute").mechanism, HALF)
    huge = {"a": {"0": ".6", "1e200": ".4"}, "b": {"0": ".3", "1e200": ".7"}}
    scenario = Scenario(Prior.from_mapping(huge, step="1e200"))
    for cost in ("hamming", "absolute", "squared"):
        made = channel(scenario, HALF, cost=cost)
        assert is_private(scenario, made.mechanism, HALF)
        expected = {"hamming": 1, "absolute": 10**200, "squared": 10**400}[cost]
        assert made.cost == expected * channel(scenario, HALF, cost="hamming").cost


def test_weights_by_value() -> None:
    listed = [1, 2, 0, 4, 5]
    for scenario, keys in ((NUMBERS, ["0", 1, 2.0, "3", Fraction(4)]), (LEVELS, NAMES)):
        given = dict(zip(keys, listed, strict=True))
        assert read_weights(scenario, given) == read_weights(scenario, listed)
        del given[keys[1]]
        with pytest.raises(InputError, match="no weight for"):
            read_weights(scenario, given)
    with pytest.raises(InputError, match="the weight of 'z', which is none of the values"):
        read_weights(LEVELS, dict(zip([*NAMES, "z"], [1] * 6, strict=True)))
    with pytest.raises(InputError, match="of '1' twice"):
        read_weights(NUMBERS, {0: 1, 1: 1, "1.0": 2, 2: 1, 3: 1, 4: 1})
    wrong: Any
    for wrong, message in (
        ([1, 2], "5 weights, one for each value, not 2"),
        ([0] * 5, "not be negative, nor all of them 0"),
        ([1, 1, 1, 1, -1], "not be negative"),
        (3, "5 weights"),
        (["a"] * 5, "a weight must be a number"),
    ):
        with pytest.raises(InputError, match=message):
            channel(NUMBERS, HALF, weights=wrong)


def test_weights_by_default_are_counts_only_where_all_priors_have_them() -> None:
    """Otherwise the numerators of a given prior would count as rows."""
    counted = Prior.from_counts({"a": [9, 1], "b": [1, 1]}, support=range(2))
    given = Prior.from_mapping({"a": {0: "0.125", 1: "0.875"}, "b": {0: "0.5", 1: "0.5"}})
    assert read_weights(Scenario(counted), None) == (Fraction(10, 12), Fraction(2, 12))
    for both in ([counted, given], [given, counted]):
        mean = Fraction(9, 10) + HALF + Fraction(1, 8) + HALF
        assert read_weights(Scenario(both), None) == (mean / 4, 1 - mean / 4)
    assert read_weights(NUMBERS, None)[1] == 0


# --- Outputs ------------------------------------------------------------------------------------


def test_finer_outputs() -> None:
    support = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {3: 1}})).support
    for asked in (2, "fine:2", " Fine: 2", np.int64(2)):
        lattice = output_alphabet(support, asked)
        assert isinstance(lattice, Lattice)
        assert lattice.values == (0, 1, 2, 3)
    for wrong in (0, -1, 1.5, True, "fine:0", "fine", "fine:-1", "3", [1]):
        with pytest.raises(InputError, match="finer outputs"):
            output_alphabet(support, wrong)
    with pytest.raises(InputError, match="ask for fewer"):
        output_alphabet(support, 10**9)
    far = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {2**52: 1}})).support
    with pytest.raises(InputError, match=r"more than 2\*\*53 cells"):
        output_alphabet(far, 6)
    with pytest.raises(InputError, match="have none"):
        output_alphabet(Levels(("x", "y")), 1)


def test_outputs_that_doubles_cannot_tell_apart_are_refused() -> None:
    near = Scenario(Prior.from_mapping({"a": {10**16: 1}, "b": {10**16 + 1: 1}})).support
    with pytest.raises(InputError, match="no finite decimal"):
        output_alphabet(near, 2)
    assert output_alphabet(near, 1).size == 3  # halves are decimals


# --- Refusals -----------------------------------------------------------------------------------


def refused(scenario: Scenario, epsilon: Fraction, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        channel(scenario, epsilon, **options)
    return str(caught.value)


def test_programs_that_are_too_large_are_refused_before_they_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_program, "MOST_COEFFICIENTS", 60)
    assert re.search(r"75 coefficients, more than 60; merge levels", refused(NUMBERS, HALF))
    assert re.search("5 values to 9 outputs .* fewer outputs", refused(NUMBERS, HALF, outputs=1))
    monkeypatch.undo()
    many = 3000
    counts = {"a": [1] * many, "b": [1] * many}
    text = refused(Scenario(Prior.from_counts(counts, support=range(many))), HALF)
    assert "3000 values" in text


def test_the_largest_min_keep_is_told() -> None:
    # 1 / (1 + e^-1) = 0.731058..., 1 / (1 + e^-0.1) = 0.524979...
    assert "min_keep 0.731 or less" in refused(BIT, Fraction(1), min_keep=1)
    assert refused(BIT, TENTH, min_keep="0.9", invariant=True) == (
        "no channel that is private at epsilon 0.1 meets invariant and min_keep 0.9; feasible with "
        "min_keep 0.5249 or less or a larger epsilon or fewer conditions"
    )
    for scenario, epsilon, invariant in (
        (NUMBERS, Fraction(1, 100), False),
        (NUMBERS, TENTH, True),
        (LEVELS, Fraction(1, 10**6), False),
    ):
        text = refused(scenario, epsilon, min_keep="0.9999999999", invariant=invariant)
        found = re.search(r"min_keep (\S+) or less", text)
        assert found
        most = Fraction(found[1])
        made = channel(scenario, epsilon, min_keep=most, invariant=invariant).mechanism
        assert is_private(scenario, made, epsilon)
        assert min(entries(made)[x][x] for x in range(5)) >= most
        more = most * (1 + Fraction(1, 500))
        if more < 1:
            assert "or less" in refused(scenario, epsilon, min_keep=more, invariant=invariant)


def test_what_is_asked_too_much() -> None:
    assert "between 0 and 1, but 1.5 was given" in refused(BIT, HALF, min_keep=1.5)
    assert "unbiased channel needs numbers" in refused(LEVELS, HALF, unbiased=True)
    assert "larger epsilon or fewer conditions" in refused(BIT, HALF, invariant=True, unbiased=True)
    assert "larger epsilon" not in refused(BIT, Fraction(25), min_keep=1)
    idle = refused(BIT, HALF, min_keep="0.1", invariant=True, weights=[1, 0])
    assert idle == "invariant and min_keep together need weights above 0, but that of '1' is 0"
    region = BIT.priors[0].with_region(tv_radius="0.2")
    assert "no region" in refused(Scenario(region), HALF, min_keep="0.99")
