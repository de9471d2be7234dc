# SPDX-License-Identifier: Apache-2.0
"""Priors on several columns together: exact, from any table, and never taken for one column."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product as combinations_of
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pufferfish as pf
from pufferfish import alignment
from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.prior import Prior
from pufferfish.product import MOST_CELLS, Product, make_product
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels, lattice_of, make_lattice, make_levels
from pufferfish.supportfile import any_support_from_dict, support_from_dict, support_to_dict
from pufferfish.tables import (
    JointReport,
    JointRules,
    count_joint_table,
    joint,
    make_joint_rules,
    make_rules,
    open_table,
)
from table_cases import write

Row = tuple[str, ...]
Named = dict[str, dict[str, int]]


def joint_count(table: Any, public: Sequence[str] = ("x", "z"), **options: Any) -> Prior:
    """Count a table whose few rows draw the warning about single rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*single row", category=PriorWarning)
        return Prior.from_table(table, secret="s", public=public, **options)


def refused(table: Any, public: Sequence[str] = ("x", "z"), **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        joint_count(table, public, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


def by_name(prior: Prior) -> Named:
    """The counts above zero: {secret: {atom as text: rows}}."""
    return {
        secret: {prior.support.name(int(k)): int(row[k]) for k in np.flatnonzero(row)}
        for secret, row in zip(prior.secrets, prior.counts, strict=True)
    }


def as_table(rows: Iterable[Row], names: Sequence[str] = ("s", "x", "z")) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})


# Products


NUMBERS = make_lattice([Fraction(1), Fraction(3)])
NAMES = make_levels(["no", "yes", "?"])
XZ = make_product(["x", "z"], [NUMBERS, NAMES])


def test_atoms_are_in_c_order() -> None:
    assert (XZ.size, XZ.shape) == (6, (2, 3))
    assert [XZ.places(k) for k in range(6)] == list(combinations_of(range(2), range(3)))
    assert XZ.name(4) == "x = 3, z = no"
    assert XZ.position("z") == 1
    with pytest.raises(InputError, match="did you mean 'zeta'"):
        make_product(["x", "zeta"], XZ.axes).position("zetta")


def test_products_are_the_same_by_columns_and_axes() -> None:
    again = make_product([" x", "z "], [make_lattice([Fraction(1), Fraction(3)]), NAMES])
    assert XZ.same_as(again)
    assert not XZ.same_as(make_product(["z", "x"], [NAMES, NUMBERS]))
    assert not XZ.same_as(make_product(["x", "y"], XZ.axes))
    assert not XZ.same_as(make_product(["x", "z"], [NUMBERS, make_levels(["no", "yes"])]))
    assert not XZ.same_as(make_product(["x"], [NUMBERS]))
    assert not XZ.same_as(NUMBERS)
    assert not NUMBERS.same_as(XZ)
    assert not NAMES.same_as(XZ)


@pytest.mark.parametrize(
    "columns, message",
    [([], "at least one"), (["x", "x "], "'x' is named twice"), (["x", 3], "3 was given"),
     (["x", " "], "must be names")],
)  # fmt: skip
def test_wrong_columns(columns: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_product(columns, XZ.axes[: len(columns)])


def test_too_many_combinations_are_refused_with_the_sizes() -> None:
    side = Lattice(Fraction(1), 0, np.arange(2500, dtype=np.int64))
    four = Lattice(Fraction(1), 0, np.arange(4, dtype=np.int64))
    with pytest.raises(InputError) as caught:
        make_product(["age", "income", "k"], [side, side, four])
    message = str(caught.value)
    for part in ("25,000,000", "age 2,500", "income 2,500", "k 4", "fewer columns", "coarser step"):
        assert part in message
    half = Lattice(Fraction(1), 0, np.arange(MOST_CELLS // 2500, dtype=np.int64))
    assert make_product(["age", "income"], [side, half]).size == MOST_CELLS


def test_products_survive_a_file() -> None:
    ordered = make_levels(["lo", "hi"], ["lo", "hi"])
    big = make_lattice([Fraction(2**60), Fraction(2**60 + 5)])
    for product in (XZ, make_product(["a", "b", "c"], [ordered, big, NUMBERS])):
        data = support_to_dict(product)
        assert product.same_as(any_support_from_dict(data))
        with pytest.raises(InputError, match="of several columns, but one is needed"):
            support_from_dict(data)
    for single in (NUMBERS, NAMES):
        assert single.same_as(any_support_from_dict(support_to_dict(single)))


FILED = support_to_dict(XZ)
WIDE = {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 5000]]}


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ["x"]},
        {"columns": ["x", "x"]},
        {"columns": ["x", " z"]},
        {"columns": "xz"},
        {"axes": [FILED["axes"][0], 5]},
        {"axes": [FILED["axes"][0], FILED]},
        {"columns": [], "axes": []},
        {"axes": [WIDE, WIDE]},
        {"kind": "ponies"},
    ],
)
def test_broken_products_in_a_file_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        any_support_from_dict(FILED | change)


def test_a_small_file_does_not_ask_for_all_of_the_memory() -> None:
    """The second axis is refused before it is made: 5,001 times 1,999 atoms are the most."""
    with pytest.raises(InputError, match="hold at most 1999 atoms"):
        any_support_from_dict(FILED | {"axes": [WIDE, WIDE]})


# Counts that are given


def test_counts_have_one_axis_per_column() -> None:
    counts = {"a": [[1, 2], [3, 4], [5, 6]], "b": np.arange(6).reshape(3, 2)}
    prior = Prior.from_counts(counts, support={"x": ["2", 0, 1], "z": ["yes", "no"]})
    assert isinstance(prior.support, Product)
    assert prior.support.axes[1] == Levels(("no", "yes"))
    assert by_name(prior)["a"] == {
        "x = 2, z = yes": 1, "x = 2, z = no": 2, "x = 0, z = yes": 3, "x = 0, z = no": 4,
        "x = 1, z = yes": 5, "x = 1, z = no": 6,
    }  # fmt: skip
    assert prior.from_rows
    assert prior.totals == (21, 15)
    assert prior.marginal("z").counts.tolist() == [[12, 9], [9, 6]]
    assert prior.marginal("x").counts.tolist() == [[7, 11, 3], [5, 9, 1]]


def test_an_order_and_a_step_are_for_their_columns() -> None:
    prior = Prior.from_counts(
        {"a": [[1, 2], [4, 8], [16, 32]]},
        support={"x": [".2", ".4", 1], "z": ["lo", "hi"]},
        order={"z": ["lo", "hi"]},
        step={"x": 1},
    )
    assert isinstance(prior.support, Product)
    assert prior.support.axes[1] == Levels(("lo", "hi"), ordered=True)
    assert prior.counts.tolist() == [[5, 10, 16, 32]]


def test_counts_of_any_size() -> None:
    for large in (2**63, 2**80):
        prior = Prior.from_counts(
            {"a": [[large + 1, 0], [1, 2]]}, support={"x": [0, 1], "z": [5, 6]}
        )
        assert prior.probability("a", 0) == Fraction(large + 1, large + 4)
        assert prior.marginal("x").counts.tolist() == [[large + 1, 3]]
    near = Prior.from_counts({"a": [[2**62, 2**62]]}, support={"x": [0], "z": [5, 6]})
    assert near.marginal("x").counts.tolist() == [[2**63]]


def test_three_columns_and_one() -> None:
    cube = np.arange(24).reshape(2, 3, 4)
    support = {"x": [0, 1], "y": [0, 1, 2], "z": [0, 1, 2, 3]}
    prior = Prior.from_counts({"a": cube.tolist(), "b": cube + 1}, support=support)
    assert prior.counts.reshape(2, 2, 3, 4).tolist() == [cube.tolist(), (cube + 1).tolist()]
    assert prior.marginal("y").counts[0].tolist() == cube.sum(axis=(0, 2)).tolist()
    one = Prior.from_counts({"a": [1, 2]}, support={"x": [3, 5]}, step=3)
    assert isinstance(one.support, Product)
    assert one.marginal("x").counts.tolist() == [[1, 2]]
    assert lattice_of(one.marginal("x").support).step == 3


@pytest.mark.parametrize(
    "counts, given, message",
    [
        ([[1]], {}, "mapping"),
        ({"a": [[1, 2]]}, {}, r"shape \(2, 2\) \(2 of x, 2 of z\), but shape \(1, 2\)"),
        ({"a": [1, 2, 3, 4]}, {}, r"shape \(4,\)"),
        ({"a": [[1, 2], [3]]}, {}, "unequal lengths"),
        ({"a": 5}, {}, "unequal|shape"),
        ({"a": [[1, -2], [3, 4]]}, {}, "negative count -2"),
        ({"a": [[1, 0.5], [3, 4]]}, {}, "whole numbers"),
        ({"a": [[0, 0], [0, 0]]}, {}, "no mass"),
        ({"a": [[1, 1], [1, 1]], " a": [[1, 1], [1, 1]]}, {}, "given twice"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, "0.0"], "z": [0, 1]}}, "column 'x'.*twice"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, 0], "z": [0, 1]}}, "column 'x'.*twice"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {"x": [0, 1], "z": []}}, "column 'z'.*empty"),
        ({"a": [[1, 1], [1, 1]]}, {"support": {}}, "at least one column"),
        ({"a": [[1, 1], [1, 1]]}, {"step": 1}, r"step=\{'x': ...\}"),
        ({"a": [[1, 1], [1, 1]]}, {"order": {"zz": "a,b"}}, "'zz', which is none of the columns"),
        ({"a": [[1, 1], [1, 1]]}, {"order": {"x": ["0", "1"]}}, "column 'x': an order is for"),
        ({"a": [[1, 1], [1, 1]]}, {"confidence": ".95"}, "not supported for several columns"),
        ({"a": [1, 1]}, {"support": ["u", "v"], "order": {"x": ["u", "v"]}}, "support by column"),
    ],
)  # fmt: skip
def test_wrong_joint_counts(counts: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_counts(counts, **{"support": {"x": [0, 1], "z": [0, 1]}, **given})


def test_a_marginal_is_of_one_of_several_columns() -> None:
    prior = Prior.from_counts({"a": [[1, 2]]}, support={"x": [0], "z": [0, 1]})
    with pytest.raises(InputError, match="no column 'y'"):
        prior.marginal("y")
    with pytest.raises(InputError, match="only a prior on several columns"):
        prior.marginal("x").marginal("x")


# Tables


SECRETS, ONES, TWOS = ("a", "b", ""), ("1", "2.5", "-3", "1.0", ""), ("u", "v ", "", "w")
ROWS = st.lists(
    st.tuples(st.sampled_from(SECRETS), st.sampled_from(ONES), st.sampled_from(TWOS)),
    min_size=1,
    max_size=25,
)
SHOWN = {"1": "1", "1.0": "1", "2.5": "2.5", "-3": "-3"}


def by_hand(rows: Iterable[Row]) -> tuple[Named, dict[str, int]]:
    """Count rows one by one; also why each of the others is set aside."""
    counts: dict[str, Counter[str]] = {}
    aside: Counter[str] = Counter()
    for s, x, z in rows:
        reason = next(
            (why for cell, why in ((x, "no public value in 'x'"), (z, "no public value in 'z'"),
                                   (s, "no secret value")) if not cell.strip()), None,
        )  # fmt: skip
        if s:
            counts.setdefault(s, Counter())
        if reason is None:
            counts[s][f"x = {SHOWN[x]}, z = {z.strip()}"] += 1
        else:
            aside[reason] += 1
    return {s: dict(c) for s, c in counts.items()}, dict(aside)


def check_by_hand(rows: list[Row]) -> None:
    named, aside = by_hand(rows)
    prior = joint_count(as_table(rows))
    assert by_name(prior) == named
    report = prior.report
    assert isinstance(report, JointReport)
    assert dict(report.set_aside) == aside
    assert report.rows_read == len(rows) == report.rows_used + sum(aside.values())
    assert dict(report.secrets) == {s: sum(c.values()) for s, c in named.items()}


@given(ROWS)
def test_joint_counts_are_those_counted_by_hand(rows: list[Row]) -> None:
    named, _ = by_hand(rows)
    assume(named and all(named.values()))
    check_by_hand(rows)


@given(ROWS)
def test_the_marginal_is_the_prior_of_that_column(rows: list[Row]) -> None:
    named, _ = by_hand(rows)
    assume(named and all(named.values()))
    prior = joint_count(as_table(rows))
    assert isinstance(prior.support, Product)
    for k, (column, other) in enumerate((("x", 2), ("z", 1))):
        whole = Prior.from_table.__func__  # the same call, for one column
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)
            alone = whole(Prior, as_table(rows), secret="s", public=column)
            usable = [row for row in rows if row[other].strip()]
            part = whole(Prior, as_table(usable), secret="s", public=column)
        # The axis is that of a plan for the column, whatever rows are set aside for the other.
        assert prior.support.axes[k].same_as(alone.support)
        marginal = prior.marginal(column)
        assert marginal.secrets == part.secrets
        assert by_name(marginal) == by_name(part)
        if len(usable) == len(rows):
            assert marginal.counts.tolist() == alone.counts.tolist()
            assert marginal.totals == alone.totals


EXAMPLE: list[Row] = [
    ("a", "1", "u"), ("a", "2.5", "v"), ("b", "", "u"), ("b", "1", ""), ("b", "-3", "v"),
    ("a", "", ""), ("", "1", "u"), ("b", "1", "w"), ("b", "1", "w"),
]  # fmt: skip


def test_the_example() -> None:
    check_by_hand(EXAMPLE)
    report = joint_count(as_table(EXAMPLE)).report
    assert report.set_aside == (
        ("no public value in 'x'", 2), ("no public value in 'z'", 1), ("no secret value", 1),
    )  # fmt: skip
    lines = "\n".join(report.lines())
    for part in (
        "secret 's', public 'x', 'z' together", "rows read 9, used 5, set aside 4",
        "set aside, no public value in 'z': 1", "rows by secret: a 2, b 3",
        "column 'x' holds numbers; without a value 2",
        "column 'z' holds unordered levels; without a value 2",
    ):  # fmt: skip
        assert part in lines


def test_mutant_that_counts_missing_values_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # -1 for none would silently be the last atom.
    honest = joint.place_cells

    def filled(*given: Any) -> Any:
        placed = honest(*given)
        placed.atoms[placed.atoms < 0] = placed.support.size - 1
        return placed

    monkeypatch.setattr(joint, "place_cells", filled)
    with pytest.raises(AssertionError):
        check_by_hand(EXAMPLE)


def test_mutant_that_lays_out_the_last_column_first_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = np.ravel_multi_index
    monkeypatch.setattr(np, "ravel_multi_index", lambda at, shape: honest(at, shape, order="F"))
    with pytest.raises(AssertionError):
        check_by_hand(EXAMPLE)


def test_mutant_that_forgets_a_reason_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = joint._without_value
    monkeypatch.setattr(joint, "_without_value", lambda *given: honest(*given)[:1])
    with pytest.raises(PufferfishError, match="rows were lost"):
        check_by_hand(EXAMPLE)


def makers(folder: Any) -> dict[str, Any]:
    def parquet(data: dict[str, list[Any]]) -> Any:
        pq.write_table(pa.table(data), folder / "t.parquet")
        return folder / "t.parquet"

    def csv(data: dict[str, list[Any]]) -> Any:
        lines = [",".join(data)]
        lines += [
            ",".join("" if c is None else str(c) for c in row)
            for row in zip(*data.values(), strict=True)
        ]
        return write(folder, "\n".join(lines) + "\n")

    def pandas(data: dict[str, list[Any]]) -> Any:
        frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in data.items()})
        return frame.astype({"x": "Int64"})

    return {
        "csv": csv, "parquet": parquet, "pandas": pandas, "pyarrow": pa.table,
        "polars": pl.DataFrame, "polars lazy": pl.LazyFrame,
    }  # fmt: skip


BIG = 2**53
DATA: dict[str, list[Any]] = {
    "other": [[1], [2], [3], [4], [5], [6]],
    "s": ["a", "a", "b", "b", None, "b"],
    "x": [BIG, BIG + 1, BIG + 1, None, BIG + 2, BIG],
    "z": [0.1, 0.3, 0.1, 0.3, 0.1, None],
    "flag": [True, False, True, True, True, False],
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "pyarrow", "polars", "polars lazy"])
def test_the_same_table_gives_the_same_prior(tmp_path: Any, kind: str) -> None:
    data = {k: v for k, v in DATA.items() if k != "other" or kind in ("pyarrow", "polars")}
    prior = joint_count(makers(tmp_path)[kind](data), ["x", "z", "flag"])
    assert by_name(prior) == {
        "a": {f"x = {BIG}, z = 0.1, flag = 1": 1, f"x = {BIG + 1}, z = 0.3, flag = 0": 1},
        "b": {f"x = {BIG + 1}, z = 0.1, flag = 1": 1},
    }
    assert isinstance(prior.support, Product)
    assert prior.support.shape == (3, 2, 2)
    assert prior.report.set_aside == (
        ("no public value in 'x'", 1), ("no public value in 'z'", 1), ("no secret value", 1),
    )  # fmt: skip


def test_mutant_that_reads_numbers_as_floats_is_caught(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_float(text: str, decimal: str | None) -> Any:
        return float(text).as_integer_ratio() if text[0].isdigit() else None

    monkeypatch.setattr("pufferfish.tables.classify.number", as_float)
    with pytest.raises((AssertionError, InputError)):
        test_the_same_table_gives_the_same_prior(tmp_path, "csv")


class Watched:
    """A table that remembers which columns were read."""

    def __init__(self, table: Any) -> None:
        self._table = open_table(table)
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def groups(self, columns: Sequence[str]) -> Any:
        self.read |= set(columns)
        return self._table.groups(columns)

    def batches(self, columns: Sequence[str], rows: int = 10) -> Any:
        self.read |= set(columns)
        return self._table.batches(columns, rows)


def test_only_the_columns_in_use_are_read(tmp_path: Any) -> None:
    wide = write(tmp_path, "s,x,z,other\na,1,u,inf\nb,2,v,nan\n")
    watched = Watched(wide)
    with pytest.warns(PriorWarning, match="first appearance"):
        joint_count(watched, order={"z": "appearance"})
    assert watched.read == {"s", "x", "z"}


def test_one_column_in_a_list_is_a_product_of_one() -> None:
    table = as_table(EXAMPLE)
    prior = joint_count(table, ["x"], step=1)
    assert isinstance(prior.support, Product)
    assert prior.support.columns == ("x",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        alone = Prior.from_table(table, secret="s", public="x", step=1)
    assert prior.counts.tolist() == alone.counts.tolist()
    assert prior.support.axes[0].same_as(alone.support)
    assert prior.report.rows_used == alone.report.rows_used


def test_columns_keep_their_own_cleaning() -> None:
    rows = [
        ("a", "0.2", "lo", "-9"), ("a", "0.6", "hi", "-9.0"), ("b", "1.4", "?", "4"),
        ("b", "1.6", "hi", "4"), ("?", "1", "lo", "4"), ("c", "1", "lo", "4"),
        ("a", "2", "lo", "4"),
    ]  # fmt: skip
    table = as_table(rows, ("s", "x", "z", "n"))
    prior = joint_count(
        table, [" z", "x", "n "], order={"z": ["lo", "mid", "hi"]}, step={"x": "1"},
        missing={"z": ["?"], "n": ["-9"], "s": "?"}, exclude_secrets=["c"],
        support={"n": [4, 5]},
    )  # fmt: skip
    assert by_name(prior) == {"a": {"z = lo, x = 2, n = 4": 1}, "b": {"z = hi, x = 2, n = 4": 1}}
    assert isinstance(prior.support, Product)
    assert prior.support.shape == (3, 3, 2)
    assert isinstance(prior.support.axes[0], Levels)
    assert prior.support.axes[0].ordered
    report = prior.report
    assert isinstance(report, JointReport)
    assert report.set_aside == (
        ("no public value in 'z'", 1), ("no public value in 'n'", 2), ("no secret value", 1),
        ("secret excluded: c", 1),
    )  # fmt: skip
    assert [column.rules.missing for column in report.columns] == [("?",), (), ("-9",)]
    assert report.rules.missing == ("?",)
    assert [(m.text, m.public_rows, m.secret_rows) for m in report.missing] == [
        ("", 0, 0), ("?", 1, 1), ("-9", 2, 0),
    ]  # fmt: skip
    assert [column.kind for column in report.columns] == ["ordered levels", "numbers", "numbers"]
    assert report.columns[0].coding == (("lo", 0), ("mid", 1), ("hi", 2))
    assert report.columns[1].rounded == 4
    lines = "\n".join(report.lines())
    assert "coding of 'z' (as stated): lo = 0, mid = 1, hi = 2" in lines
    assert "step of 'x' 1: 4 distinct values rounded" in lines
    assert "column 'z': 1 declared level in no row" in lines


def test_missing_texts_common_to_all_and_found_nowhere() -> None:
    rows = [("a", "?", "u"), ("a", "1", "?"), ("a", "1", "u"), ("?", "1", "u"), ("b", "1", "u")]
    prior = joint_count(as_table(rows), missing=["?", "NA"])
    assert prior.report.set_aside == (
        ("no public value in 'x'", 1), ("no public value in 'z'", 1), ("no secret value", 1),
    )  # fmt: skip
    [note] = [note for note in prior.report.notes if "'NA'" in note]
    assert "no cell of the columns 's', 'x', 'z'" in note
    # Said of one column, a text means nothing in the others: there it is told like any other.
    own = joint_count(as_table(rows), missing={"x": "?"})
    assert own.secrets == ("?", "a", "b")
    assert by_name(own)["a"] == {"x = 1, z = ?": 1, "x = 1, z = u": 1}
    assert sum("'?' in column 's'" in note for note in own.report.notes) == 1
    assert any("'?' in column 'z' is a level of its own" in note for note in own.report.notes)


def test_missing_as_a_level_of_one_column() -> None:
    prior = joint_count(as_table(EXAMPLE), missing_as_level={"z": True})
    assert by_name(prior)["b"] == {
        "x = 1, z = (missing)": 1, "x = -3, z = v": 1, "x = 1, z = w": 2,
    }  # fmt: skip
    assert prior.report.set_aside == (("no public value in 'x'", 2), ("no secret value", 1))
    assert any("which are the level '(missing)'" in line for line in prior.report.lines())
    assert "holds numbers" in refused(as_table(EXAMPLE), missing_as_level=True)


def test_decimal_commas_and_orders_of_frames(tmp_path: Any) -> None:
    semicolons = write(tmp_path, "s;x;z\na;0,5;1.5\na;1,25;2.5\nb;0,5;1.5\n")
    prior = joint_count(semicolons)
    assert by_name(prior)["a"] == {"x = 0.5, z = 1.5": 1, "x = 1.25, z = 2.5": 1}
    assert [column.rules.decimal for column in prior.report.columns] == [",", None]
    kind = pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"s": ["a", "b"], "x": [1, 2], "z": pd.Series(["hi", "lo"], dtype=kind)})
    axis = joint_count(frame).support.axes[1]
    assert axis == Levels(("lo", "mid", "hi"), ordered=True)


def test_plans_rules_make_joint_rules() -> None:
    x = make_rules(secret="s", public="x", missing=["?"], step=1)
    z = make_rules(secret="s", public="z", levels=["u", "v", "w"])
    rules = JointRules.of([x, z])
    assert (rules.names, rules.missing, rules.secret.secret) == (("x", "z"), ("?",), "s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        counted = count_joint_table(as_table(EXAMPLE), rules)
    given = joint_count(
        as_table(EXAMPLE),
        step={"x": 1},
        levels={"z": ["u", "v", "w"]},
        missing={"x": "?", "s": "?"},
    )
    assert counted.support.same_as(given.support)
    assert counted.counts.tolist() == given.counts.tolist()
    for other, message in (
        (make_rules(secret="t", public="z"), "about one secret"),
        (make_rules(secret="s", public="z", exclude_secrets=["c"]), "leave out different secrets"),
        (make_rules(secret="s", public="x"), "named twice"),
    ):
        with pytest.raises(InputError, match=message):
            JointRules.of([x, other])


@pytest.mark.parametrize(
    "public, options, message",
    [
        ([], {}, "at least one column"),
        (["x", " x"], {}, "'x' is named twice"),
        (["x", 3], {}, "must be names"),
        (["x", "s"], {}, "must differ"),
        (["x", "zz"], {}, "there is no column 'zz'"),
        (["x", "z"], {"order": ["u", "v"]}, r"order={'x': ...}"),
        (["x", "z"], {"order": {"y": ["u"]}}, "order is given for 'y', which is none"),
        (["x", "z"], {"missing": {"y": ["?"]}}, "missing is given for 'y'"),
        (["x", "z"], {"step": {"z": 1}}, "a step is for numbers, but column 'z'"),
        (["x", "z"], {"step": {"x": 0}}, "above 0"),
        (["x", "z"], {"order": {"z": ["u", "v"]}}, "does not fit column 'z'"),
        (["x", "z"], {"exclude_secrets": ["d"]}, "'d' does not occur"),
        (["x", "z"], {"confidence": ".95"}, "not supported for several columns"),
        (["x", "z"], {"tv_radius": ".1"}, "not supported for several columns"),
        (["x", "z"], {"levels": {"x ": ["1"], "x": ["1"]}}, "given twice"),
    ],
)
def test_wrong_joint_tables(public: list[Any], options: dict[str, Any], message: str) -> None:
    assert message in refused(as_table(EXAMPLE), public, **options)


@pytest.mark.parametrize("option", ["order", "levels", "missing", "step", "support"])
def test_an_option_by_column_is_for_several_columns(option: str) -> None:
    """The keys of a mapping would else be taken for texts that mean "missing"."""
    with pytest.raises(InputError, match=f"^{option} by column is for several columns"):
        Prior.from_table(as_table(EXAMPLE), secret="s", public="x", **{option: {"x": ["1"]}})


def test_secrets_without_a_row_that_has_all_values() -> None:
    rows = [("a", "1", "u"), ("b", "1", ""), ("b", "", "u")]
    message = refused(as_table(rows))
    assert "the secret 'b'" in message
    assert "a value in all of 'x', 'z'" in message
    assert "no public value in 'x': 1" in message
    assert by_name(joint_count(as_table(rows), exclude_secrets=["b"])) == {"a": {"x = 1, z = u": 1}}
    assert "no row" in refused(as_table(rows[1:]))
    assert "no rows" in refused(as_table([]))
    # Each column by itself is fine.
    assert by_name(joint_count(as_table(rows), ["x"]))["b"] == {"x = 1": 1}


def test_a_single_row_is_told_of() -> None:
    with pytest.warns(PriorWarning, match="'a', 'b' have a single row"):
        Prior.from_table(
            as_table([("a", "1", "u"), ("b", "1", "u")]), secret="s", public=["x", "z"]
        )


def test_tables_with_too_many_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 4000
    table = pa.table({"s": ["a", "b"] * (n // 2), "x": list(range(n)), "z": list(range(n))})
    message = refused(table)
    assert "16,000,000 combinations of values (x 4,000, z 4,000)" in message
    coarse = joint_count(table, step={"x": 100, "z": 100})
    assert coarse.support.size == 41 * 41
    monkeypatch.setattr(joint, "MAX_COUNTS", 1000)
    assert "2 secrets times 1681" in refused(table, step={"x": 100, "z": 100})


# Scenarios


def small(columns: Sequence[str] = ("x", "z"), **options: Any) -> Prior:
    counts = {"a": [[1, 2], [3, 4]], "b": [[4, 3], [2, 1]]}
    return Prior.from_counts(counts, support={c: [0, 1] for c in columns}, **options)


@pytest.mark.parametrize(
    "use",
    [
        *[
            lambda s, name=name: pf.calibrate(s, 1, name)
            for name in (None, "l1", "wasserstein", "relaxed", "one-sided", "exact", "channel")
        ],
        lambda s: pf.calibrate(s.priors[0], 1),
        lambda s: pf.privacy_loss(s, scale=1),
        lambda s: pf.certify(s, 1.0, 1),
        lambda s: s.support,
        lambda s: s.lattice,
        lambda s: list(s.views()),
        lambda s: lattice_of(s.priors[0].support),
    ],
)
def test_what_is_for_one_column_refuses_several(use: Any) -> None:
    """Unordered levels too: their combinations are no levels to be replaced by each other."""
    levels = Prior.from_counts(
        {"a": [[1, 2], [3, 4]], "b": [[4, 3], [2, 1]]}, support={"x": ["u", "v"], "z": [0, 1]}
    )
    for prior in (small(), levels):
        with pytest.raises(InputError, match="one column at a time") as caught:
            use(Scenario(prior))
        assert "'x', 'z'" in str(caught.value)


def test_a_region_is_refused() -> None:
    for region in ({"tv_radius": ".1"}, {"confidence": ".9"}):
        with pytest.raises(InputError, match="not supported for several columns"):
            small().with_region(**region)
        with pytest.raises(InputError, match="not supported for several columns"):
            small(**region)
    assert small().with_region().region is None
    assert small().marginal("x").with_region(tv_radius=".1").region is not None


AXES = st.tuples(
    st.lists(st.integers(-3, 3), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from("uvw"), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(("0", "0.5", "2")), min_size=1, max_size=2, unique=True),
)


@st.composite
def joint_priors(draw: st.DrawFn) -> Prior:
    axes = draw(AXES)
    order = draw(st.permutations(range(3)))
    shape = [len(axes[k]) for k in order]
    cells = int(np.prod(shape))
    counts = {
        secret: np.array(draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)))
        for secret in draw(st.permutations(["a", "b"]))
    }
    assume(all(row.any() for row in counts.values()))
    return Prior.from_counts(
        {secret: row.reshape(shape) for secret, row in counts.items()},
        support={"xyz"[k]: axes[k] for k in order},
    )


def masses(prior: Prior) -> dict[tuple[str, frozenset[str]], Fraction]:
    """Every probability above 0 by the names of secret, columns and values."""
    found = {}
    for secret in prior.secrets:
        for k in range(prior.support.size):
            p = prior.probability(secret, k)
            if p:
                found[secret, frozenset(prior.support.name(k).split(", "))] = p
    return found


def check_alignment(priors: list[Prior]) -> None:
    scenario = Scenario(priors)
    product = scenario.product
    assert product is not None
    assert product.columns == priors[0].support.columns
    for given_prior, aligned in zip(priors, scenario.priors, strict=True):
        assert aligned.support.same_as(product)
        assert aligned.secrets == priors[0].secrets
        assert masses(aligned) == masses(given_prior)
    for column in product.columns:
        axis = product.axes[product.position(column)]
        alone = Scenario([p.marginal(column) for p in priors])
        assert axis.same_as(alone.support)
    assert scenario.cells == len(priors) * 2 * product.size


@given(st.lists(joint_priors(), min_size=1, max_size=3))
def test_adversaries_share_the_union_of_each_axis(priors: list[Prior]) -> None:
    check_alignment(priors)


@given(st.lists(joint_priors(), min_size=1, max_size=2), st.permutations(range(3)))
def test_digests_do_not_know_the_order_of_columns(priors: list[Prior], order: list[int]) -> None:
    turned = []
    for prior in priors:
        old = prior.support
        names = [old.columns[k] for k in order]
        rows = [row.reshape(old.shape).transpose(order).reshape(-1) for row in prior.counts]
        product = make_product(names, [old.axes[k] for k in order])
        turned.append(Prior.from_numerators(product, prior.secrets, rows, from_rows=True))
    assert Scenario(priors).digest == Scenario(turned).digest == Scenario(turned[::-1]).digest


CROSSED = [
    Prior.from_counts({"a": [[1, 2, 3]], "b": [[1, 1, 9]]}, support={"x": [0], "z": [0, 1, 2]}),
    Prior.from_counts(
        {"b": [[1, 2], [5, 7], [2, 0]], "a": [[1, 1], [3, 9], [8, 4]]},
        support={"z": [0, 1, 3], "x": [0, 4]},
    ),
]


def test_mutant_that_forgets_the_order_of_columns_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_alignment(CROSSED)
    monkeypatch.setattr(Product, "position", lambda self, column: "xz".index(column))
    with pytest.raises((AssertionError, ValueError)):
        check_alignment(CROSSED)


def test_mutant_that_takes_axes_by_their_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = alignment._placed

    def shifted(prior: Any, first: Any, union: Any, places: Any) -> Any:
        return honest(prior, first, union, tuple(np.arange(len(place)) for place in places))

    monkeypatch.setattr(alignment, "_placed", shifted)
    with pytest.raises(AssertionError):
        check_alignment(CROSSED)


def test_digests_tell_joint_scenarios_apart() -> None:
    base = {"a": [[1, 2], [3, 4]], "b": [[4, 3], [2, 1]]}
    support: dict[str, list[Any]] = {"x": [0, 1], "z": [0, 1]}
    turned = {s: np.transpose(c) for s, c in base.items()}
    flat = {s: np.ravel(c) for s, c in base.items()}
    variants = [
        Prior.from_counts(base, support=support),
        Prior.from_counts(turned, support=support),
        Prior.from_counts(base, support=support | {"z": [0, 2]}),
        Prior.from_counts(base, support={"x": [0, 1], "y": [0, 1]}),
        Prior.from_counts(base, support=support | {"z": ["0", "n"]}),
        Prior.from_counts(base, support=support | {"z": ["0", "n"]}, order={"z": ["0", "n"]}),
        Prior.from_counts({s: c[None] for s, c in flat.items()},
                          support={"x": [0], "z": [0, 1, 2, 3]}),
        Prior.from_counts(flat, support={"x": [0, 1, 2, 3]}),
        Prior.from_counts(flat, support=[0, 1, 2, 3]),
    ]  # fmt: skip
    assert len({Scenario(prior).digest for prior in variants}) == len(variants)
    doubled = Prior.from_counts({s: 2 * np.array(c) for s, c in base.items()}, support=support)
    assert Scenario(doubled).digest == Scenario(variants[0]).digest
    large = {s: (np.array(c, dtype=object) * 2**70).tolist() for s, c in base.items()}
    assert Scenario(Prior.from_counts(large, support=support)).digest == Scenario(doubled).digest


def test_joint_adversaries_that_do_not_fit_together() -> None:
    levels = Prior.from_counts(
        {"a": [[1, 2], [3, 4]], "b": [[4, 3], [2, 1]]}, support={"x": [0, 1], "z": ["u", "v"]}
    )
    side = Prior.from_counts({"a": [[1] * 4000], "b": [[1] * 4000]},
                             support={"x": [0], "z": list(range(4000))})  # fmt: skip
    for wrong, message in (
        ([small(), small().marginal("x")], "one column and another's on several"),
        ([small().marginal("x"), small()], "one column and another's on several"),
        ([small(), small(["x", "y"])], "same columns, but one is on x, z and another on x, y"),
        ([small(), small(["z", "y"])], "same columns"),
        ([small(), levels], "column 'z': one adversary's prior is on numbers"),
    ):
        with pytest.raises(InputError, match=message):
            Scenario(wrong)
    tall = Prior.from_counts({"a": [[1]] * 4000, "b": [[1]] * 4000},
                             support={"x": list(range(4000)), "z": [0]})  # fmt: skip
    with pytest.raises(InputError, match="16,000,000 combinations"):
        Scenario([side, tall])


def test_rules_of_several_columns_are_checked_alone() -> None:
    rules = make_joint_rules(secret=" s", public=iter(["x ", "z"]), missing="?")
    assert (rules.names, rules.missing) == (("x", "z"), ("?",))
    assert [own.missing for own in rules.columns] == [("?",), ("?",)]
    assert rules.secret.public == "x, z"
    with pytest.raises(InputError, match="needs the name of the column that holds the secret"):
        count_joint_table(as_table(EXAMPLE), JointRules.of([make_rules(public="x")]))
