# SPDX-License-Identifier: Apache-2.0
"""Priors from mappings, counts and files are exact, and wrong ones are refused by name."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.numbers import show
from pufferfish.priors.ambiguity import Confidence, TVBall
from pufferfish.priors.prior import Prior
from pufferfish.support import Lattice, Levels, Product, make_lattice
from pufferfish.tables.rules import Column, Rules, Stratum


def values_of(prior: Prior) -> tuple[Fraction, ...]:
    assert isinstance(prior.support, Lattice)
    return prior.support.values


MASSES = st.lists(st.integers(0, 10**20), min_size=1, max_size=6).filter(any)


@given(st.lists(MASSES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_every_probability_survives(rows: list[list[int]], random: Any) -> None:
    exact = {
        f"s{s}": {Fraction(random.randint(-99, 99), 4) + 50 * k: Fraction(c, sum(row))
                  for k, c in enumerate(row)}
        for s, row in enumerate(rows)
    }  # fmt: skip
    prior = Prior.from_mapping(
        {s: {str(x): str(p) for x, p in row.items()} for s, row in exact.items()}
    )
    for secret, row in exact.items():
        for k, value in enumerate(values_of(prior)):
            assert prior.probability(secret, k) == row.get(value, 0)


def test_keys_of_any_kind_are_numbers_if_all_are() -> None:
    prior = Prior.from_mapping({"a": {30: ".2", "10": ".5", 20.0: ".3"}, "b": {"2e1": 1}})
    assert values_of(prior) == (10, 20, 30)
    assert [prior.probability("b", k) for k in range(3)] == [0, 1, 0]
    prior = Prior.from_mapping({"a": {"1": 0.5, "two": 0.5}})
    assert prior.support == Levels(("1", "two"), ordered=False)
    ordered = Prior.from_mapping({"a": {"hi": 0.5, "lo": 0.5}}, order=["lo", "hi"])
    assert ordered.support == Levels(("lo", "hi"), ordered=True)
    truth = Prior.from_mapping({"a": {True: 0.5, False: 0.5}})
    assert truth.support == Levels(("false", "true"))


def test_a_sum_within_a_millionth_is_renormalised_and_said_so() -> None:
    prior = Prior.from_mapping({"a": {0: "0.5", 1: "0.4999999"}, "b": {0: "1"}})
    assert sum(prior.probability("a", k) for k in range(2)) == 1
    assert prior.notes == (
        "the probabilities of secret 'a' sum to 1-1e-7; they were renormalised; if exact ties "
        "matter, give counts or fractions",
    )


def test_decimals_are_what_they_print_and_fractions_what_they_say() -> None:
    printed = Prior.from_mapping({"a": {0: 1 / 3, 2: 2 / 3}})
    assert printed.probability("a", 0) == Fraction("0.3333333333333333") / Fraction(
        "0.9999999999999999"
    )
    assert "renormalised" in printed.notes[0]
    exact = Prior.from_mapping({"a": {0: "1/6", 1: "1/6", 2: "4/6"}, "b": {0: "1/3", 2: "2/3"}})
    assert exact.probability("a", 0) + exact.probability("a", 1) == exact.probability("b", 0)
    assert exact.notes == ()


@pytest.mark.parametrize(
    "mapping, options, message",
    [
        ([0.5, 0.5], {}, "mapping"), ({}, {}, "at least one secret"),
        ({"a": [0.5, 0.5]}, {}, "values and probabilities"), ({"a": {}}, {}, "but {} was given"),
        ({"a": {0: 0.97}}, {}, "'a' sum to 0.97"), ({"a": {0: 1.5}}, {}, "'a' sum to 1.5"),
        ({"a": {0: 0, 1: 0}}, {}, "'a' sum to 0"),
        ({"a": {0: -0.1, 1: 1.1}}, {}, "negative probability -0.1"),
        ({"a": {0: "x"}}, {}, "probability of 0 under secret 'a'"),
        ({"a": {0: "1", 1: "1e-1001"}}, {}, "too small"), ({"a": {"inf": 1}}, {}, "not a finite"),
        ({"a": {0: "1", 1: f"0.{'0' * 1000}1"}}, {}, "too small"),
        ({"a": {0: "1", 1: "1/1e9"}}, {}, "must be a number"),
        ({"a": {"1": 0.5, "1.0": 0.5}}, {}, "same value twice"),
        ({"a": {0: 1}, " a": {0: 1}}, {}, "given twice"),
        ({"a": {None: 1}}, {}, "value of the support"),
        ({"a": {"x": 1}}, {"order": "alphabetic"}, "^order "),
        ({"a": {"x": 1}}, {"order": []}, "^order "),
        ({"a": {0: 1}}, {"order": ["0"]}, "order is for levels"),
        ({"a": {"x": 1}}, {"step": 1}, "step is for numbers"),
    ],
)  # fmt: skip
def test_wrong_mappings(mapping: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_mapping(mapping, **options)


@pytest.mark.parametrize("mass", ["1e-309", "1e-1000"])
@pytest.mark.parametrize("sums_to_one", [True, False])
def test_masses_below_every_double(mass: str, sums_to_one: bool) -> None:
    rest = show(1 - Fraction(mass)) if sums_to_one else "1"
    prior = Prior.from_mapping({"a": {0: rest, 1: mass}, "b": {0: "0.5", 1: "0.5"}})
    assert bool(prior.notes) != sums_to_one
    assert all(f"1+{mass}" in note for note in prior.notes)
    assert 0 < prior.probability("a", 1) <= Fraction(mass)
    assert prior.probabilities[0].tolist() == [1.0, float(mass)]


COUNTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=6).filter(any)


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_quick_way_for_integers_agrees_with_the_general_one(
    counts: list[int], random: Any
) -> None:
    support = random.sample(range(-50, 50), len(counts))
    quick = Prior.from_counts({"a": counts}, support=np.array(support))
    general = Prior.from_counts({"a": counts}, support=[str(v) for v in support])
    assert quick.product == general.product
    assert quick.counts.tolist() == general.counts.tolist()
    assert quick.totals == general.totals == (sum(counts),)


def test_counts_of_any_size_and_kind() -> None:
    prior = Prior.from_counts({"a": [2**80, 1], "b": np.array([3.0, 1.0])}, support=["0.5", 1])
    assert prior.probability("a", 1) == Fraction(1, 2**80 + 1)
    assert prior.probability("b", 0) == Fraction(3, 4)
    assert prior.counts.dtype == object
    levels = Prior.from_counts({"a": [1, 2]}, support=["y", "x"])
    assert levels.support == Levels(("x", "y"))
    assert levels.counts.tolist() == [[2, 1]]
    near = Prior.from_counts({"a": [[2**62, 2**62]]}, support={"x": [0], "z": [5, 6]})
    assert near.totals == (2**63,)
    assert near.marginal("x").counts.tolist() == [[2**63]]
    masses = Prior.from_mapping({"a": {0: f"1/{2**63 + 1}", 1: f"{2**63}/{2**63 + 1}"}})
    assert masses.totals == (2**63 + 1,)  # a list of such integers is no array of integers
    small = Prior.from_counts({"a": [1, 2]}, support=np.array([-128, 127], dtype=np.int8))
    assert values_of(small) == (-128, 127)
    with pytest.raises(ValueError, match="read-only"):
        prior.counts[0, 0] = 5


@pytest.mark.parametrize(
    "counts, support, message",
    [
        ([1], [0], "mapping"), ({"a": [1, 2]}, [0], r"needs counts of the shape \(1,\).* \(2,\)"),
        ({"a": [-1, 2]}, [0, 1], "negative count -1"), ({"a": [0.5, 0.5]}, [0, 1], "whole numbers"),
        ({"a": [0, 0]}, [0, 1], "'a' has no mass"), ({"a": [1, 1]}, [0, 0], "same value twice"),
        ({"a": [1, 1]}, ["0", "0.0"], "same value twice"),
        ({"a": [1, None]}, [0, 1], "count of secret"),
        ({"a": [1, 1], "a ": [1, 1]}, [0, 1], "given twice"), ({"a": []}, [], "empty"),
        ({"a": [1, 1]}, [[0], [1, 2]], "one dimension"),
        ({"a": [1, 1]}, np.array([0, 2**62]), r"2\*\*53"),
        ({"a": np.ones(10**7 + 1)}, np.arange(10**7 + 1), "10,000,001"),
        ({"a": np.array([1j, 2])}, [0, 1], "count of secret"),
        ({"a": pd.Series([[1], [2, 3]])}, [0, 1], "count of secret"),
        ({"a": [1, 2]}, pd.Series([[1], [2, 3]]), "value of the support"),
        ({"a": np.ma.array([1, 2], mask=[0, 1])}, [0, 1], "masked"),
    ],
    ids=range(17),
)  # fmt: skip
def test_wrong_counts(counts: Any, support: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_counts(counts, support=support)


def test_reprs_are_a_few_readable_lines() -> None:
    prior = Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=["no", "yes"], order="no,yes")
    assert repr(prior) == "<Prior of 2 secrets: a, b\n  on Levels(no < yes)\n  from 13 rows>"
    given = Prior.from_mapping({"a": {0: 1}, "b, c": {1: 1}}, tv_radius=0.1)
    assert repr(given) == (
        "<Prior of 2 secrets: a, 'b, c'\n  on Lattice(2 values from 0 to 1, step 1)\n"
        "  from given probabilities, known up to TVBall(radius=Fraction(1, 10))>"
    )


# Several columns


def by_name(prior: Prior, secret: str) -> dict[str, int]:
    row = prior.counts[prior.row(secret)]
    return {prior.product.name(int(k)): int(row[k]) for k in np.flatnonzero(row)}


def test_counts_have_one_axis_per_column() -> None:
    counts = {"a": [[1, 2], [3, 4], [5, 6]], "b": np.arange(6).reshape(3, 2)}
    prior = Prior.from_counts(counts, support={" x": ["2", 0, 1], "z": ["yes", "no"]})
    assert prior.product.axes[1] == Levels(("no", "yes"))
    assert by_name(prior, "a") == {
        "x = 2, z = yes": 1, "x = 2, z = no": 2, "x = 0, z = yes": 3, "x = 0, z = no": 4,
        "x = 1, z = yes": 5, "x = 1, z = no": 6,
    }  # fmt: skip
    assert prior.from_rows
    assert prior.totals == (21, 15)
    assert prior.marginal("z").counts.tolist() == [[12, 9], [9, 6]]
    assert prior.marginal("x").counts.tolist() == [[7, 11, 3], [5, 9, 1]]
    assert "x: Lattice(" in repr(prior)
    with pytest.raises(InputError, match=r"one of .* x, z"):
        _ = prior.support
    with pytest.raises(InputError, match="'y'"):
        prior.marginal("y")
    with pytest.raises(InputError, match=r"no secret 'aa' .did you mean 'a'"):
        prior.row("aa")
    number: Any = 5
    with pytest.raises(InputError, match="no secret 5"):
        prior.probability(number, 0)
    one = prior.marginal("x")
    assert one.marginal("x") is one.marginal(None) is one


def test_an_order_and_a_step_are_for_their_columns() -> None:
    prior = Prior.from_counts(
        {"a": [[1, 2], [4, 8], [16, 32]]},
        support={"x": [".2", ".4", 1], "z": ["lo", "hi"]},
        order={"z": ["lo", "hi"]},
        step={"x": 1},
    )
    assert prior.product.axes[1] == Levels(("lo", "hi"), ordered=True)
    assert prior.counts.tolist() == [[5, 10, 16, 32]]


@pytest.mark.parametrize(
    "counts, given, message",
    [
        ({"a": [[1, 2]]}, {}, r"shape \(2, 2\) of x, z, .* \(1, 2\)"),
        ({"a": [1, 2, 3, 4]}, {}, r"the shape \(4,\)"),
        ({"a": [[1, 2], [3]]}, {}, "no such shape"), ({"a": 5}, {}, "no such shape"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, "0.0"], "z": [0, 1]}}, "column 'x'.*twice"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, 1], "z": []}}, "column 'z'.*empty"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, 1], "x ": [0, 1]}}, "names"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {}}, "columns must be"),
        ({"a": [[1, 1], [1, 1]]}, {"step": 1}, "step of several columns must be a mapping"),
        ({"a": [[1, 1], [1, 1]]}, {"order": {"zz": "a,b"}}, "'zz'.*, but the columns are x, z"),
        ({"a": [[1, 1], [1, 1]]}, {"order": {"x": ["0", "1"]}}, "column 'x': an order is for"),
        ({"a": [[1, 1], [1, 1]]}, {"confidence": ".95"}, "not supported .* several columns"),
        ({"a": [1, 1]}, {"support": ["u", "v"], "order": {"x": ["u", "v"]}}, "misses the levels"),
    ],
)  # fmt: skip
def test_wrong_joint_counts(counts: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_counts(counts, **{"support": {"x": [0, 1], "z": [0, 1]}, **given})


# Regions


@pytest.mark.parametrize(
    "given, words",
    [
        ({"confidence": 95}, "95 % is 0.95"), ({"confidence": 1}, "below 1"),
        ({"confidence": 0}, "above 0"), ({"confidence": "nan"}, "finite"),
        ({"tv_radius": -0.1}, "from 0 to 1"), ({"tv_radius": 1.5}, "from 0 to 1"),
        ({"confidence": 0.9, "tv_radius": 0.1}, "both were given"),
    ],
)  # fmt: skip
def test_regions_that_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Prior.from_counts({"a": [3, 4], "b": [5, 6]}, support=[0, 1], **given)


def test_probabilities_have_no_confidence() -> None:
    prior = Prior.from_mapping({"a": {"0": 1}, "b": {"1": 1}})
    with pytest.raises(InputError, match="counts of rows"):
        prior.with_region(confidence=0.95)
    near = prior.with_region(tv_radius="1/8")
    assert near.rule == TVBall(Fraction(1, 8))
    assert near.with_region().rule is None
    assert prior.with_region(tv_radius=0).rule is None


# Tables and files


FRAME = pd.DataFrame({"s": list("aabbb"), "x": [0, 2, 2, 4, 4], "z": list("uvuvv")})


def test_a_table_is_counted_with_its_coding() -> None:
    prior = Prior.from_table(FRAME, secret="s", public="x", confidence=0.95)
    assert prior.rule == Confidence(Fraction(19, 20))
    assert prior.counts.tolist() == [[1, 1, 0], [0, 1, 2]]
    assert prior.from_rows
    assert prior.report is not None
    assert (prior.report.rows_read, prior.report.rows_used) == (5, 5)
    (coding,) = prior.codings
    assert (coding.column, coding.rounds) == ("x", False)
    assert coding.support == prior.support
    assert prior.rules is not None
    assert (prior.rules.secret, prior.unit) == ("s", None)


@pytest.mark.parametrize("cell", [[1], {"a": 1}, np.array([1]), pd.Series([1]), 1j, b"1"])
def test_cells_that_are_neither_numbers_nor_text(cell: Any) -> None:
    for name in ("s", "x"):
        frame = FRAME.astype(object)
        frame.at[0, name] = cell
        with pytest.raises(InputError, match=f"but an? {type(cell).__name__} was found"):
            Prior.from_table(frame, secret="s", public="x")


def test_several_columns_of_a_table() -> None:
    prior = Prior.from_table(FRAME, secret="s", public=["x", "z"])
    assert by_name(prior, "b") == {"x = 2, z = u": 1, "x = 4, z = v": 2}
    x = prior.marginal("x")
    assert x.counts.tolist() == [[1, 1, 0], [0, 1, 2]]
    assert [coding.column for coding in x.codings] == ["x"]
    assert x.rules is not None
    assert [column.name for column in x.rules.columns] == ["x"]


def test_the_rows_of_people_follow_their_column() -> None:
    frame = pd.DataFrame({
        "id": list("ppqqr"), "s": list("aabbb"), "x": [0, 1, 1, 1, 0], "z": list("uvuvu")
    })  # fmt: skip
    prior = Prior.from_table(frame, secret="s", public=["x", "z"], unit="id")
    assert prior.unit == "id"
    (two,) = (stratum for stratum in prior.marginal("z").strata if stratum.rows == 2)
    # Both people have u, then v: one sequence of that column.
    assert two.sequences.tolist() == [[0, 1]]
    assert two.counts.tolist() == [[1], [1]]
    with pytest.raises(InputError, match="not supported together with a unit"):
        prior.marginal("x").with_region(confidence=0.9)


def test_merged_counts_do_not_wrap() -> None:
    prior = Prior.from_counts({"a": [2**52] * 2050}, support=range(2050), step=100_000)
    assert prior.totals == (2050 * 2**52,)


def test_the_marginal_of_very_many_people_of_one_row() -> None:
    n = 9_000  # NumPy's own unravel_index is wrong for more than 8,192 lines of one number
    axes = make_lattice(map(Fraction, range(n))), make_lattice(map(Fraction, range(2)))
    counts = np.ones((2, 2 * n), dtype=np.int64)
    prior = Prior.from_numerators(
        Product(("x", "z"), axes),
        {"a": counts[0], "b": counts[1]},
        from_rows=True,
        rules=Rules("s", (Column("x"), Column("z")), unit="id"),
        strata=(Stratum(1, np.arange(2 * n)[:, None], counts),),
    )
    (stratum,) = prior.marginal("x").strata
    assert stratum.counts.shape == (2, n)
    assert (stratum.counts == 2).all()
