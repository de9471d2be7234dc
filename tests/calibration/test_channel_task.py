# SPDX-License-Identifier: Apache-2.0
"""What may be asked of a channel: costs, weights, outputs, and what is refused in one line."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from channel_checks import BIT, HALF, PAIR, UNSEEN, entries, is_private
from pufferfish.calibration import channel_program
from pufferfish.calibration.channel import channel
from pufferfish.calibration.channel_task import (
    output_alphabet,
    read_costs,
    read_weights,
    widened,
)
from pufferfish.errors import InputError
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Lattice, Levels, lattice_of, make_lattice

NAMES = ["u", "v", "w", "x", "y"]
LEVELS = Scenario(Prior.from_counts(UNSEEN, support=NAMES), [("a", "b")])
ORDERED = Scenario(Prior.from_counts(UNSEEN, support=NAMES, order="appearance"), [("a", "b")])
OWN = [[5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [2, 2, 2, 2, 2]]


def numbers(*values: object) -> Lattice:
    return make_lattice([Fraction(str(value)) for value in values])


def matrix_of(support: Lattice | Levels, cost: object) -> list[list[Fraction]]:
    costs = read_costs(support, support, cost)
    return (costs.whole * costs.unit).tolist()


def refused(scenario: Scenario, epsilon: Fraction, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        channel(scenario, epsilon, **options)
    return str(caught.value)


# --- Costs and weights --------------------------------------------------------------------------


def test_named_costs() -> None:
    halves = numbers(0, "0.5", 2)
    squares = [[0, Fraction(1, 4), 4], [Fraction(1, 4), 0, Fraction(9, 4)], [4, Fraction(9, 4), 0]]
    assert matrix_of(halves, "squared") == squares
    assert matrix_of(halves, "absolute")[0] == [0, HALF, 2]
    assert matrix_of(halves, "hamming") == (1 - np.eye(3)).tolist()
    for scenario, name in ((PAIR, "squared"), (ORDERED, "squared"), (LEVELS, "hamming")):
        assert channel(scenario, HALF).distortion.cost_name == name


def test_costs_by_value() -> None:
    by_name: dict[str, Any] = {
        name: dict(zip(NAMES, row, strict=True)) for name, row in zip(NAMES, OWN, strict=True)
    }
    # Levels that do not occur here may be in the mapping, too.
    by_name["more"] = {}
    assert matrix_of(LEVELS.support, by_name) == OWN
    by_number = {x: {f"{y}.0": OWN[x][y] for y in range(5)} for x in range(5)}
    assert matrix_of(PAIR.support, by_number) == OWN
    thirds = [["1/3" if x != y else 0 for y in range(5)] for x in range(5)]
    assert matrix_of(PAIR.support, thirds)[0][1] == Fraction(1, 3)
    misspelt = {"uu" if name == "u" else name: row for name, row in by_name.items()}
    for cost, message in (
        (misspelt, "no row for u (did you mean 'uu'"),
        ({**by_name, "u": 3}, "must be a mapping"),
        ({**by_name, "u": {}}, "the row of 'u' in the cost matrix has no entry for u"),
        (3, "or 5 rows of 5 numbers"),
        ([[0, 1]], "5 rows of 5"),
        ([[-1] * 5] * 5, "negative entry -1"),
        ("hammin", "did you mean 'hamming'"),
        ("squared", "cost squared, unlike the cost hamming or a cost matrix, needs numbers"),
    ):
        assert message in refused(LEVELS, HALF, cost=cost)


def test_costs_that_span_too_much_are_refused() -> None:
    far = Scenario(Prior.from_mapping({"a": {"0": 1}, "b": {"1": ".5", "40000": ".5"}}))
    assert "less than a factor of 1e9, but these go from 1 to 1600000000" in refused(far, HALF)
    assert is_private(far, channel(far, HALF, cost="absolute").mechanism, HALF)
    huge = {"a": {"0": ".6", "1e200": ".4"}, "b": {"0": ".3", "1e200": ".7"}}
    scenario = Scenario(Prior.from_mapping(huge, step="1e200"))
    hamming = channel(scenario, HALF, cost="hamming").cost
    for cost, unit in (("absolute", 10**200), ("squared", 10**400)):
        made = channel(scenario, HALF, cost=cost)
        assert is_private(scenario, made.mechanism, HALF)
        assert made.cost == unit * hamming


def test_weights_by_value() -> None:
    listed = [1, 2, 0, 4, 5]
    for scenario, keys in ((PAIR, ["0", 1, 2.0, "3", Fraction(4)]), (LEVELS, NAMES)):
        given: dict[Any, object] = dict(zip(keys, listed, strict=True))
        assert read_weights(scenario, given) == read_weights(scenario, listed) == listed
        del given[keys[1]]
        assert "no weight for" in refused(scenario, HALF, weights=given)
    twice = {0: 1, 1: 1, "1.0": 2, 2: 1, 3: 1, 4: 1}
    assert "of '1' twice" in refused(PAIR, HALF, weights=twice)
    wrong: Any
    for wrong, message in (
        ([1, 2], "5 weights, one for each value, not 2"),
        ([0] * 5, "not be negative, nor all of them 0"),
        ([1, 1, 1, 1, -1], "not be negative"),
        (3, "5 weights"),
        (["a"] * 5, "a weight must be a number"),
    ):
        assert message in refused(PAIR, HALF, weights=wrong)


def test_weights_by_default_are_counts_only_where_all_priors_have_them() -> None:
    """Otherwise the numerators of a given prior would count as rows."""
    counted = Prior.from_counts({"a": [9, 1], "b": [1, 1]}, support=range(2))
    given = Prior.from_mapping({"a": {0: "0.125", 1: "0.875"}, "b": {0: "0.5", 1: "0.5"}})
    assert read_weights(Scenario(counted), None) == [10, 2]
    for both in ([counted, given], [given, counted]):
        mean = Fraction(9, 10) + HALF + Fraction(1, 8) + HALF
        found = read_weights(Scenario(both), None)
        assert Fraction(found[0], sum(found)) == mean / 4
    assert read_weights(PAIR, None)[1] == 0


# --- Outputs ------------------------------------------------------------------------------------


def test_finer_and_wider_outputs() -> None:
    support = numbers(0, 3)
    for asked in (2, "fine:2", " Fine: 2", np.int64(2)):
        assert lattice_of(output_alphabet(support, asked)).values == (0, 1, 2, 3)
    fine = output_alphabet(numbers(10, "11.5"), 2)
    assert lattice_of(fine).values == (10, Fraction("10.5"), 11, Fraction("11.5"))
    for wrong in (0, -1, 1.5, True, "fine:0", "fine", "fine:-1", [1]):
        with pytest.raises(InputError, match="finer outputs"):
            output_alphabet(support, wrong)
    # More than are ever solved for; and, so far from 0, some that are the same double.
    for far, points in ((support, 10**9), (numbers(3), 10**30), (numbers(10**16, 10**16 + 1), 2)):
        with pytest.raises(InputError, match="ask for fewer"):
            output_alphabet(far, points)
    with pytest.raises(InputError, match="have none"):
        output_alphabet(Levels(("x", "y")), 1)
    assert widened(support, Fraction(2)).values == (-2, 0, 3, 5)
    assert widened(support, Fraction(1)).values == (0, 3)
    with pytest.raises(InputError, match="a larger epsilon"):
        widened(support, Fraction(10**17))


# --- Refusals -----------------------------------------------------------------------------------


def test_programs_that_are_too_large_are_refused_before_they_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_program, "MOST_COEFFICIENTS", 60)
    assert "75 coefficients, more than 60; merge levels" in refused(PAIR, HALF)
    assert "5 values to 9 outputs needs a linear" in refused(PAIR, HALF, outputs=1)
    every = Scenario(PAIR.priors)
    assert "175 coefficients" in refused(every, HALF)
    region = Scenario(PAIR.priors[0].with_region(confidence="0.9"), [("a", "b")])
    assert "425 coefficients" in refused(region, HALF)
    monkeypatch.undo()
    many = {"a": [1] * 3000, "b": [1] * 3000}
    text = refused(Scenario(Prior.from_counts(many, support=range(3000))), HALF)
    assert "3000 values" in text


def test_what_is_asked_too_much() -> None:
    assert refused(BIT, Fraction(1, 10), min_keep="0.9", invariant=True) == (
        "no channel that is private at epsilon 0.1 meets invariant and min_keep 0.9; fewer "
        "or weaker conditions, a larger epsilon, weights above 0, or no region (confidence or "
        "tv_radius) may help"
    )
    # 1 / (1 + e^-1) = 0.731058...
    made = channel(BIT, Fraction(1), min_keep="0.731058").mechanism
    assert min(entries(made)[x][x] for x in range(2)) >= Fraction("0.731058")
    assert "meets min_keep 0.731059" in refused(BIT, Fraction(1), min_keep="0.731059")
    assert "between 0 and 1, but 1.5 was given" in refused(BIT, HALF, min_keep=1.5)
    assert "unbiased channel needs numbers" in refused(LEVELS, HALF, unbiased=True)
    assert "changes nothing is both" in refused(BIT, HALF, invariant=True, unbiased=True)
    # What never occurs is never published where frequencies stay, not even for itself.
    idle = {"invariant": True, "weights": [1, 0]}
    assert "meets invariant and" in refused(BIT, HALF, min_keep="0.1", **idle)
    region = BIT.priors[0].with_region(tv_radius="0.2")
    assert "meets min_keep 0.99" in refused(Scenario(region), HALF, min_keep="0.99")
