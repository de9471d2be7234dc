# SPDX-License-Identifier: Apache-2.0
"""Missing as a level: blanks are counted, coded and reported as the level "(missing)".

And levels that are declared though no row has them, of which it can be one.
"""

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pufferfish.columns import common_rules, rules_for
from pufferfish.errors import InputError, PriorWarning
from pufferfish.prior import Prior
from pufferfish.regions import Box, regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels, make_lattice
from pufferfish.tables import MISSING_LEVEL, Coder, Rules, coder, make_rules, open_table
from pufferfish.tables import atoms as atoms_module
from pufferfish.tables.coder import MISSING, OK, OUTSIDE
from pufferfish.tables.frames import raw_cells
from table_cases import as_dict, count, csv_text, values, write

ABSENT = ("?", "NA")
ROWS = [("m", "a"), ("m", ""), ("m", "b"), ("n", "?"), ("n", " "), ("n", "a"), ("", ""), ("", "a")]


def table(folder, rows=ROWS):
    return write(folder, csv_text(rows))


def refused(source, **rules):
    with pytest.raises(InputError) as caught:
        count(source, **rules)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_rows_without_a_value_have_a_level(tmp_path):
    path = table(tmp_path)
    plain = count(path, missing=["?"])
    assert plain.report.set_aside == (("no public value", 4), ("no secret value", 1))
    assert plain.report.rows_used == 3
    prior = count(path, missing=["?"], missing_as_level=True)
    assert prior.support == Levels(("a", "b", "(missing)"), ordered=False)
    assert as_dict(prior) == {
        "m": {"a": 1, "b": 1, "(missing)": 1},
        "n": {"a": 1, "(missing)": 2},
    }
    report = prior.report
    assert report.rows_used == 6
    assert report.set_aside == (("no secret value", 2),)
    assert report.missing_rows == 3
    assert "  used, no public value, as the level '(missing)': 3" in report.lines()
    assert any("may reveal the secret" in note for note in report.notes)
    assert [(m.text, m.public_rows) for m in report.missing] == [("", 3), ("?", 1)]
    assert plain.report.missing_rows is None
    assert not any("as the level" in line for line in plain.report.lines())


def test_from_table_takes_it(tmp_path):
    path = table(tmp_path, ROWS * 2)
    options = {"secret": "s", "public": "x", "missing": ["?"]}
    prior = Prior.from_table(path, **options, missing_as_level=True)
    assert prior.support.names == ("a", "b", MISSING_LEVEL)
    assert prior.report.rules.missing_level == MISSING_LEVEL
    assert Prior.from_table(path, **options).report.rules.missing_level is None


def test_a_secret_with_blanks_only_is_a_secret(tmp_path):
    path = table(tmp_path, [("m", "a"), ("m", "b"), ("n", ""), ("n", "")])
    assert "'n'" in refused(path)
    assert as_dict(count(path, missing_as_level=True))["n"] == {"(missing)": 2}


@pytest.mark.parametrize(
    "rules, names, ordered",
    [
        ({}, ("a", "b", "(missing)"), False),
        ({"order": "alphabetical"}, ("a", "b", "(missing)"), True),
        ({"order": ["b", "(missing)", "a"]}, ("b", "(missing)", "a"), True),
        ({"order": "(missing),b,a"}, ("(missing)", "b", "a"), True),
        ({"levels": ["b", "z", "a"]}, ("a", "b", "z", "(missing)"), False),
        ({"levels": ["(missing)", "b", "a"]}, ("a", "b", "(missing)"), False),
        ({"levels": ["b", "a"], "order": ["(missing)", "a", "b"]}, ("(missing)", "a", "b"), True),
        ({"levels": ["b", "a"], "order": "alphabetical"}, ("a", "b", "(missing)"), True),
    ],
)
def test_where_the_level_stands(tmp_path, rules, names, ordered):
    path = table(tmp_path)
    prior = count(path, missing=["?"], missing_as_level=True, **rules)
    assert prior.support == Levels(names, ordered=ordered)
    assert as_dict(prior)["n"] == {"a": 1, "(missing)": 2}
    agree(path, prior)


def test_in_the_order_of_appearance_it_is_the_last(tmp_path):
    path = table(tmp_path, [("m", ""), ("m", "b"), ("n", ""), ("n", "a")])
    with pytest.warns(PriorWarning, match="first appearance"):
        prior = count(path, order="appearance", missing_as_level=True)
    assert prior.support == Levels(("b", "a", "(missing)"), ordered=True)
    agree(path, prior)


def test_without_a_blank_the_level_is_there_all_the_same(tmp_path):
    path = table(tmp_path, [("m", "a"), ("m", "b"), ("n", "a"), ("n", "b")])
    prior = count(path, missing_as_level=True)
    assert prior.counts.tolist() == [[1, 1, 0], [1, 1, 0]]
    assert prior.report.missing_rows == 0
    assert any("1 declared level in no row" in n and "'(missing)'" in n for n in prior.report.notes)


def test_a_wholly_blank_column_needs_declared_levels(tmp_path):
    path = table(tmp_path, [("m", ""), ("n", "")])
    assert "no row of" in refused(path, missing_as_level=True)
    assert "no row of" in refused(path, levels=["a"])
    prior = count(path, levels=["a"], missing_as_level=True)
    assert as_dict(prior) == {"m": {"(missing)": 1}, "n": {"(missing)": 1}}
    assert count(path, order=["(missing)", "a"], missing_as_level=True).support.ordered
    frame = pd.DataFrame({"s": ["m", "n"], "x": [None, None]})
    assert as_dict(count(frame, levels=["a"], missing_as_level=True)) == as_dict(prior)


@pytest.mark.parametrize("cells", [("1", "2", ""), ("true", "false", ""), ("1.5", "", "-999")])
def test_numbers_have_no_such_level(tmp_path, cells):
    path = table(tmp_path, list(zip("mnn", cells, strict=True)))
    message = refused(path, missing_as_level=True, missing=["-999"])
    assert ("holds truth values" if "true" in cells else "holds numbers") in message
    assert "--levels" in message
    named = count(
        path, levels=[c for c in cells if c not in ("", "-999")], missing=["-999"],
        missing_as_level=True,
    )  # fmt: skip
    assert "(missing)" in named.support.names


def test_typed_numbers_are_levels_only_where_they_are_named():
    frame = pd.DataFrame({"s": ["m", "n", "n"], "x": pd.array([1, 2, None], dtype="Int64")})
    assert "holds numbers" in refused(frame, missing_as_level=True)
    prior = count(frame, levels=[2, 1], missing_as_level=True)
    assert prior.support.names == ("1", "2", "(missing)")
    assert as_dict(prior)["n"] == {"2": 1, "(missing)": 1}
    agree(frame, prior)


def test_a_text_of_that_name_is_refused_unless_it_means_missing(tmp_path):
    path = table(tmp_path, [("m", "a"), ("n", ""), ("n", "(missing)"), ("n", "b")])
    for rules in ({}, {"levels": ["a", "b", "(missing)"]}, {"order": ["a", "b", "(missing)"]}):
        message = refused(path, missing_as_level=True, **rules)
        assert "data row 3" in message
        assert "--missing '(missing)'" in message
        prior = count(path, missing_as_level=True, missing=["(missing)"], **rules)
        assert as_dict(prior) == {"m": {"a": 1}, "n": {"b": 1, "(missing)": 2}}
        agree(path, prior)
    plain = count(path)
    assert as_dict(plain)["n"] == {"b": 1, "(missing)": 1}
    assert any("'(missing)' in column 'x' is a level of its own" in n for n in plain.report.notes)


def test_releasing_refuses_that_text_as_counting_does():
    rules = make_rules(public="x", missing_as_level=True)
    support = Levels(("a", "(missing)"))
    coder = Coder(support, rules)
    cells = pa.array(["a", "", None, "(missing)", "b", " "])
    result = coder.code(cells)
    assert result.state.tolist() == [OK, OK, OK, OUTSIDE, OUTSIDE, OK]
    assert result.atoms.tolist() == [0, 1, 1, -1, -1, 1]
    assert "name of the level of missing values" in coder.why("(missing)")
    assert coder.why("b") == "is none of the levels"
    declared = make_rules(public="x", missing_as_level=True, missing=["(missing)"])
    assert Coder(support, declared).code(cells).atoms.tolist() == [0, 1, 1, 1, -1, 1]
    # Without the rule it is a level like any other, as in a table that was released.
    assert Coder(support).code(cells).atoms.tolist() == [0, -1, -1, 1, -1, -1]


@pytest.mark.parametrize("support", [Levels(("a", "b")), make_lattice([1, 2])])
def test_a_support_without_the_level_is_refused(support):
    with pytest.raises(InputError, match="none of that name"):
        Coder(support, make_rules(public="x", missing_as_level=True))


@pytest.mark.parametrize(
    "given, part",
    [
        ({"order": ["a", "b"]}, "name '\\(missing\\)' in it"),
        ({"levels": ["a", "b", "(missing)"], "order": ["a", "b"]}, "does not say where"),
        ({"step": 1}, "but a step is for numbers"),
        ({"support": [1, 2]}, "but a support is for numbers"),
        ({"missing": ["?"], "levels": ["?"]}, "names '\\?', which means a missing value"),
    ],
)
def test_rules_that_are_refused(given, part):
    with pytest.raises(InputError, match=part):
        make_rules(public="x", missing_as_level=True, **given)


def test_only_with_the_level_may_its_name_mean_missing_too():
    with pytest.raises(InputError, match="which means a missing value"):
        make_rules(public="x", missing=["(missing)"], levels=["a", "(missing)"])
    stated = make_rules(
        public="x", missing=["(missing)"], order=["(missing)", "a"], missing_as_level=True
    )
    assert stated.order == ("(missing)", "a")


def test_rules_survive_the_plan_file():
    for more in ({}, {"levels": ["a"]}, {"order": ["(missing)", "a"]}, {"missing": ["(missing)"]}):
        rules = make_rules(secret="s", public="x", missing_as_level=True, **more)
        data = json.loads(json.dumps(rules.to_dict()))
        assert data["missing_level"] == "(missing)"
        assert Rules.from_dict(data) == rules
        for wrong in ("blank", True, 1, "", []):
            with pytest.raises(InputError, match="must be null or '\\(missing\\)'"):
                Rules.from_dict(data | {"missing_level": wrong})
    assert make_rules(public="x").to_dict()["missing_level"] is None


def test_a_given_prior_with_that_level():
    support = Levels(("a", "b", "(missing)"))
    rules = rules_for(support, public="x", missing=["?"], missing_as_level=True)
    assert rules.missing_level == "(missing)"
    result = Coder(support, rules).code(pa.array(["b", None, "?", "c"]))
    assert result.atoms.tolist() == [1, 2, 2, -1]
    ordered = Levels(("(missing)", "a"), ordered=True)
    assert rules_for(ordered, public="x", missing_as_level=True).order == ordered.names
    assert rules_for(support, public="x").missing_level is None
    with pytest.raises(InputError, match="no level '\\(missing\\)'; its levels are a, b"):
        rules_for(Levels(("a", "b")), public="x", missing_as_level=True)
    with pytest.raises(InputError, match="about numbers"):
        rules_for(make_lattice([1, 2]), public="x", missing_as_level=True)


def test_tables_that_were_read_in_different_ways(tmp_path):
    rows = [("m", "a"), ("n", "(missing)"), ("n", "a"), ("m", "(missing)")]
    priors = [count(table(tmp_path, rows)), count(table(tmp_path, rows), missing=["(missing)"],
                                                  missing_as_level=True)]  # fmt: skip
    with pytest.raises(InputError, match="--missing"):
        common_rules(priors)
    alike = [count(table(tmp_path)), count(table(tmp_path), missing_as_level=True)]
    with pytest.raises(InputError, match=r"--missing-as-level .*none and '\(missing\)'"):
        common_rules(alike)


@pytest.mark.parametrize("blank", [True, False])
def test_the_order_of_a_categorical_column(blank):
    cells = ["lo", "hi", None if blank else "lo"]

    def frame(*names):
        return pd.DataFrame({"s": list("mnn"), "x": pd.Categorical(cells, names, ordered=True)})

    assert "state an order that names '(missing)'" in refused(
        frame("lo", "hi"), missing_as_level=True
    )
    stated = count(frame("lo", "hi"), order=["(missing)", "lo", "hi"], missing_as_level=True)
    own = count(frame("(missing)", "lo", "hi"), missing_as_level=True)
    for prior in (stated, own):
        assert prior.support == Levels(("(missing)", "lo", "hi"), ordered=True)
        assert as_dict(prior)["n"] == {"hi": 1, "(missing)" if blank else "lo": 1}
    agree(frame("(missing)", "lo", "hi"), own)
    numbers = pd.DataFrame({"s": list("mnn"), "x": pd.Categorical([1, 2, None], ordered=True)})
    assert "holds numbers" in refused(numbers, missing_as_level=True)


# Counting and releasing agree, whatever holds the table.


def agree(source, prior):
    """Coding the rows of a table one by one gives back its counts."""
    opened = open_table(source)
    rules = prior.report.rules
    coded = Coder(prior.support, rules, opened)
    counts = np.zeros(prior.counts.shape, dtype=np.int64)
    for batch in opened.batches([rules.secret, rules.public], 3):
        result = coded.code(batch.column(1))
        assert set(result.state.tolist()) <= {OK}
        for secret, atom in zip(batch.column(0).to_pylist(), result.atoms.tolist(), strict=True):
            if secret in prior.secrets:
                counts[prior.row(secret), atom] += 1
    assert counts.tolist() == prior.counts.tolist()


def level_of(cell):
    if not isinstance(cell, str) or cell.strip() in ("", *ABSENT):
        return MISSING_LEVEL
    return cell.strip()


def in_csv(folder, secrets, cells):
    fields = ["" if cell is None else f'"{cell}"' for cell in cells]
    return write(folder, csv_text(zip(secrets, fields, strict=True)))


def in_json(folder, secrets, cells):
    lines = [json.dumps({"s": s, "x": x}) for s, x in zip(secrets, cells, strict=True)]
    return write(folder, "\n".join(lines), "table.ndjson")


def in_parquet(folder, secrets, cells):
    pq.write_table(pa.table({"s": secrets, "x": pa.array(cells, pa.string())}), folder / "t.pq")
    return folder / "t.pq"


def in_pandas(kind):
    def make(folder, secrets, cells):
        return pd.DataFrame({"s": secrets, "x": pd.Series(cells, dtype=kind)})

    return make


def in_objects(folder, secrets, cells):
    blanks = [None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]
    mixed = [blanks[k % 5] if cell is None else cell for k, cell in enumerate(cells)]
    return pd.DataFrame({"s": secrets, "x": pd.Series(mixed, dtype=object)})


HOLDERS = {
    "csv": in_csv,
    "json": in_json,
    "parquet": in_parquet,
    "pandas str": in_pandas("str"),
    "pandas string": in_pandas("string"),
    "pandas category": in_pandas("category"),
    "pandas objects": in_objects,
    "polars": lambda folder, s, x: pl.DataFrame({"s": s, "x": pl.Series(x, dtype=pl.String)}),
    "polars lazy": lambda folder, s, x: pl.LazyFrame({"s": s, "x": pl.Series(x, dtype=pl.String)}),
    "polars category": lambda folder, s, x: pl.DataFrame(
        {"s": s, "x": pl.Series(x, dtype=pl.Categorical)}
    ),
    "pyarrow": lambda folder, s, x: pa.table({"s": s, "x": pa.array(x, pa.string())}),
    "pyarrow dictionary": lambda folder, s, x: pa.table(
        {"s": s, "x": pa.array(x, pa.string()).dictionary_encode()}
    ),
}
CELLS = st.lists(
    st.sampled_from(["a", " b", "b ", "c", "", "   ", None, "?", " NA "]), min_size=1, max_size=12
)
STATED = st.sampled_from(
    [{}, {"levels": ["a", "b", "c", "never"]}, {"order": ["b", "(missing)", "a", "c"]}]
)


def check_holder(holder, folder, cells, stated):
    cells = ["a", "b", *cells]  # both secrets, and one value at least
    secrets = ["mn"[k % 2] for k in range(len(cells))]
    source = HOLDERS[holder](folder, secrets, cells)
    prior = count(source, missing=ABSENT, missing_as_level=True, **stated)
    expected = Counter(zip(secrets, map(level_of, cells), strict=True))
    found = {(s, x): n for s, row in as_dict(prior).items() for x, n in row.items()}
    assert found == expected
    assert prior.report.rows_used == len(cells)
    assert prior.report.missing_rows == sum(level_of(c) == MISSING_LEVEL for c in cells)
    agree(source, prior)


@pytest.mark.parametrize("holder", HOLDERS)
@settings(max_examples=12)
@given(cells=CELLS, stated=STATED)
def test_releasing_cleans_as_counting_does(tmp_path_factory, holder, cells, stated):
    check_holder(holder, tmp_path_factory.mktemp("same"), cells, stated)


@pytest.mark.parametrize("holder", ["csv", "pandas objects", "polars"])
def test_mutant_that_releases_blanks_as_missing_is_caught(tmp_path, monkeypatch, holder):
    cells = ["a", None, "b", ""]
    check_holder(holder, tmp_path, cells, {})
    honest = coder.Coder.__init__

    def forgets(self, *given):
        honest(self, *given)
        self._absent_code = (-1, MISSING)

    monkeypatch.setattr(coder.Coder, "__init__", forgets)
    with pytest.raises(AssertionError):
        check_holder(holder, tmp_path, cells, {})


def test_mutant_that_takes_the_name_of_the_level_for_a_level_is_caught(monkeypatch):
    honest = coder.Coder.__init__

    def lax(self, *given):
        honest(self, *given)
        self._missing_level = None

    monkeypatch.setattr(coder.Coder, "__init__", lax)
    with pytest.raises(AssertionError):
        test_releasing_refuses_that_text_as_counting_does()


def test_mutant_that_counts_blanks_as_another_level_is_caught(tmp_path, monkeypatch):
    honest = atoms_module.place_cells

    def shifted(table, name, public, *given):
        placed = honest(table, name, public, *given)
        placed.atoms[public.missing] = 0
        return placed

    monkeypatch.setattr("pufferfish.tables.count.place_cells", shifted)
    with pytest.raises(AssertionError):
        check_holder("csv", tmp_path, ["a", None], {})


def test_nan_that_is_no_blank_needs_to_be_said():
    for frame in (pa.table, pl.DataFrame):
        data = frame({"s": ["m", "n", "n"], "x": [1.0, float("nan"), None]})
        assert "'nan'" in refused(data, levels=[1], missing_as_level=True)
        prior = count(data, levels=[1], missing=["nan"], missing_as_level=True)
        assert as_dict(prior) == {"m": {"1": 1}, "n": {"(missing)": 2}}
        agree(data, prior)


def test_arrays_without_names_have_it_too():
    rules = make_rules(public="x", missing_as_level=True, missing=["?"])
    coded = Coder(Levels(("a", "(missing)")), rules)
    for cells in (
        ["a", None, "", "?"],
        np.array(["a", None, " ", "?"], dtype=object),
        pd.Series(["a", np.nan, pd.NA, "?"]),
        pl.Series(["a", None, "", "?"]),
    ):
        assert coded.code(raw_cells(cells)).atoms.tolist() == [0, 1, 1, 1]


# Levels and numbers that are declared though no row has them.


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    "stated, names",
    [
        ({"levels": ["d", "a", "c", "b"]}, ("a", "b", "c", "d")),
        ({"order": ["d", "a", "c", "b"]}, ("d", "a", "c", "b")),
    ],
)
def test_levels_that_no_row_has(tmp_path, holder, stated, names):
    source = HOLDERS[holder](tmp_path, ["m", "m", "n", "n"], ["a", "b", "b", "b"])
    prior = count(source, **stated)
    assert values(prior) == list(names)
    assert as_dict(prior) == {"m": {"a": 1, "b": 1}, "n": {"b": 2}}
    assert prior.probability("m", names.index("d")) == 0
    unseen = ", ".join(repr(name) for name in names if name in "cd")
    expected = f"2 declared levels in no row, of probability 0 but part of the support: {unseen}"
    assert expected in prior.report.notes
    only = count(source)
    assert values(only) == ["a", "b"]
    assert not any("in no row" in note for note in only.report.notes)


def test_levels_of_excluded_secrets_and_of_no_secret_are_seen(tmp_path):
    rows = [("m", "a"), ("n", "b"), ("out", "c"), ("", "d"), ("n", "a")]
    prior = count(table(tmp_path, rows), levels=["a", "b", "c", "d"], exclude_secrets=["out"])
    assert prior.counts.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert not any("in no row" in note for note in prior.report.notes)


def test_the_name_of_the_level_alone_does_not_count_blanks(tmp_path):
    prior = count(table(tmp_path), missing=["?"], levels=["a", "b", "(missing)"])
    assert as_dict(prior) == {"m": {"a": 1, "b": 1}, "n": {"a": 1}}
    assert prior.report.set_aside[0] == ("no public value", 4)
    assert any("--missing-as-level" in note for note in prior.report.notes)


def test_many_levels_that_no_row_has_are_not_all_named(tmp_path):
    path = table(tmp_path, [("m", "1"), ("n", "2")])
    (note,) = count(path, levels=range(1, 21)).report.notes
    assert note.startswith("18 declared levels in no row")
    assert note.endswith("'10', '11', '12', '13', '14', '15', '16', '17', ...")


def test_numbers_that_no_row_has(tmp_path):
    path = table(tmp_path, [("m", "1"), ("n", "2.5"), ("n", "1")])
    prior = count(path, support=[1, 2, "2.5", 7])
    assert prior.counts.tolist() == [[1, 0, 0, 0], [1, 0, 1, 0]]
    expected = "2 declared numbers in no row, of probability 0 but part of the support: 2, 7"
    assert expected in prior.report.notes
    assert not any("in no row" in n for n in count(path, support=[1, "2.5"]).report.notes)


@pytest.mark.parametrize(
    "rules", [{"levels": ["a", "b", "z"]}, {"order": ["z", "a", "b"]}, {"missing_as_level": True}]
)
def test_regions_reach_the_levels_that_no_row_has(tmp_path, rules):
    rows = [("m", "a"), ("m", "b"), ("n", "b"), ("n", "a")] * 5
    prior = Prior.from_table(
        table(tmp_path, rows), secret="s", public="x", confidence="0.95", **rules
    )
    unseen = prior.support.names.index("(missing)" if "missing_as_level" in rules else "z")
    (box,) = regions_of(Scenario(prior))
    assert isinstance(box, Box)
    for row in range(2):
        assert int(box.lower[row][unseen]) == 0
        assert int(box.upper[row][unseen]) > 0
