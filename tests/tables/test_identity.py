# SPDX-License-Identifier: Apache-2.0
"""The identity of a table: the same for every copy of it, another one for every other table."""

import csv
import gzip
import hashlib
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.numbers import canonical
from pufferfish.tables import identity
from pufferfish.tables.identity import identity_of
from table_cases import write

Row = tuple[Any, ...]


def arrow(names: list[str], rows: list[Row]) -> pa.Table:
    columns = [pa.array([row[k] for row in rows], pa.string()) for k in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def digest(names: list[str], rows: list[Row]) -> str:
    return identity_of(arrow(names, rows)).digest


def slow_digest(names: list[str], rows: list[Row]) -> str:
    """The same digest by the definition in the docstring, one Python integer after the other."""
    seed, top = b"pufferfish: identity of a table, version 3", 2**64
    total = [0, 0, 0]
    for row in rows:
        words = [0, 0, 0]
        for name, cell in zip(names, row, strict=True):
            key = hashlib.blake2b(seed + name.encode(), digest_size=64).digest()
            text = canonical(cell or "").encode()
            piece = hashlib.blake2b(text, digest_size=24, key=key).digest()
            for k in range(3):
                words[k] += int.from_bytes(piece[8 * k : 8 * k + 8], "little")
        for k, word in enumerate(words):
            word %= top
            word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % top
            word = (word ^ word >> 27) * 0x94D049BB133111EB % top
            total[k] = (total[k] + (word ^ word >> 31)) % top
    content = json.dumps([sorted(names), len(rows), total]).encode()
    return hashlib.sha256(seed + content).hexdigest()


NAMES = st.lists(st.sampled_from(["a", "b", "c", "aa", "é"]), min_size=1, max_size=3, unique=True)
ANY = st.none() | st.text(st.characters(codec="utf-8"), max_size=12) | st.text(max_size=0)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[Row]]:
    names = draw(NAMES)
    rows = draw(st.lists(st.tuples(*[ANY] * len(names)), max_size=12))
    return names, rows


# ---- one table --------------------------------------------------------------------------------


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(
    table: tuple[list[str], list[Row]], chance: random.Random
) -> None:
    names, rows = table
    order = chance.sample(range(len(names)), len(names))
    moved = [tuple(row[k] for k in order) for row in chance.sample(rows, len(rows))]
    assert digest([names[k] for k in order], moved) == digest(names, rows)


@given(tables())
def test_the_digest_is_that_of_its_definition(table: tuple[list[str], list[Row]]) -> None:
    assert digest(*table) == slow_digest(*table)


def changed(names: list[str], rows: list[Row]) -> dict[str, list[tuple[list[str], list[Row]]]]:
    """Every table that differs by one change; cells of ``rows`` must all be different."""
    found: dict[str, list[tuple[list[str], list[Row]]]] = {}

    def add(kind: str, new_rows: list[Row], new_names: list[str] = names) -> None:
        found.setdefault(kind, []).append((new_names, new_rows))

    for k, row in enumerate(rows):
        add("dropped", rows[:k] + rows[k + 1 :])
        add("duplicated", [*rows, row])
        add("another duplicated", [*rows[:k], rows[k - 1], *rows[k + 1 :]])
        for c in range(len(names)):
            for cell in (None, "other", row[c] + "0", "0" + row[c], row[c][:-1]):
                edited = [*row[:c], cell, *row[c + 1 :]]
                add("edited", [*rows[:k], tuple(edited), *rows[k + 1 :]])
    add("added", [*rows, tuple("new" for _ in names)])
    add("blank row added", [*rows, tuple(None for _ in names)])
    for i, j in itertools.combinations(range(len(rows)), 2):
        for c in range(len(names)):
            one, two = list(rows[i]), list(rows[j])
            one[c], two[c] = two[c], one[c]
            swapped = list(rows)
            swapped[i], swapped[j] = tuple(one), tuple(two)
            add("exchanged between rows", swapped)
    for c, d in itertools.combinations(range(len(names)), 2):
        turned = list(rows[0])
        turned[c], turned[d] = turned[d], turned[c]
        add("exchanged between columns", [tuple(turned), *rows[1:]])
        renamed = list(names)
        renamed[c], renamed[d] = renamed[d], renamed[c]
        add("names exchanged", rows, renamed)
    add("renamed", rows, [names[0] + "x", *names[1:]])
    add("column dropped", [row[1:] for row in rows], names[1:])
    add("column added", [(*row, None) for row in rows], [*names, "new"])
    return found


SMALL = (["s", "x", "y"], [(f"s{k}", f"x{k}", f"y{k}") for k in range(7)])


def missed() -> set[str]:
    """Return the kinds of change after which the identity of the small table stays the same."""
    own = digest(*SMALL)
    return {kind for kind, others in changed(*SMALL).items() for o in others if digest(*o) == own}


def test_every_change_is_seen() -> None:
    assert missed() == set()


def test_numbers_that_do_not_depend_on_the_column_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = identity._hashed
    monkeypatch.setattr(identity, "_hashed", lambda name, texts: honest("x", texts))
    assert missed() == {"exchanged between columns", "names exchanged"}


def test_sums_of_cells_instead_of_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the mixing, whose cell it is is lost."""
    monkeypatch.setattr(identity, "_mixed", lambda words: words)
    assert missed() == {"exchanged between rows"}


def test_the_digest_never_changes() -> None:
    """Ledgers keep it: a version that computes another one would know no table again."""
    table = pa.table({"s": ["yes", "no", None], "x": [1.5, -2.0, 1e300], "long": ["t" * 65] * 3})
    assert identity_of(table).digest == PINNED
    assert identity_of(table).rows == 3


PINNED = "bb39e97db75d622b478bcb5eae0cd75a853e6f00c7d32fd545f50c7402b67ff9"


# ---- copies -----------------------------------------------------------------------------------

COLUMNS: dict[str, list[Any]] = {
    "name": ["Anna", " Bert", None, "Zoë ", "x,y", 'say "hi"', "line\nbreak", "", "7", "Anna"],
    "count": [0, -1, 2**53 + 1, 5, 10, 100, None, 7, 8, 9],
    "share": [0.5, 1e-7, 1e22, -0.0, 3.0, 1 / 3, None, 123456.75, 2.5e-310, 1e15],
    "flag": [True, False, None, True, True, False, True, False, None, True],
    "empty": [None] * 10,
}


def printed(value: Any) -> str:
    return "" if value is None else str(value)


def text_copy(path: Path, delimiter: str, print_cell: Callable[[Any], str] = printed) -> Path:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        writer.writerows(map(print_cell, row) for row in zip(*COLUMNS.values(), strict=True))
    return path


def all_copies(folder: Path) -> dict[str, Any]:
    table = pa.table(COLUMNS)
    frame = pl.DataFrame(COLUMNS, schema_overrides={"count": pl.Int64})
    pandas = pd.DataFrame({**COLUMNS, "count": pd.array(COLUMNS["count"], dtype="Int64")})
    pq.write_table(table, folder / "arrow.parquet", row_group_size=3)
    frame.write_parquet(folder / "polars.parquet")
    pandas.to_parquet(folder / "pandas.parquet")
    frame.write_csv(folder / "polars.csv")
    pandas.to_csv(folder / "pandas.csv", index=False)
    frame.write_ndjson(folder / "lines.ndjson")
    return {
        "csv": text_copy(folder / "a.csv", ","),
        "tsv": text_copy(folder / "b.tsv", "\t"),
        "gz": text_copy(folder / "c.csv.gz", ";"),
        "arrow": table,
        "chunks": pa.concat_tables([table.slice(0, 4), table.slice(4)]),
        "dictionaries": table.set_column(0, "name", table.column(0).dictionary_encode()),
        "polars": frame,
        "lazy": frame.lazy(),
        "categorical": frame.with_columns(pl.col("name").cast(pl.Categorical)),
        "pandas": pandas,
        "sorted": frame.sort("share").select(list(reversed(list(COLUMNS)))),
        **{path.name: path for path in sorted(folder.glob("*.*"))},
    }


def test_copies_of_every_kind_are_one_table(tmp_path: Path) -> None:
    copies = all_copies(tmp_path)
    found = {kind: identity_of(copy).digest for kind, copy in copies.items()}
    assert len(copies) >= 15
    assert {kind for kind, own in found.items() if own != found["csv"]} == set()


def test_a_file_read_by_pandas_or_polars_is_the_same_table(tmp_path: Path) -> None:
    """Integers with blanks become floats there, and numbers lose zeros at their end."""
    text = "s,n,x,b,t\nyes,1,1.50,True,a\nno,,2.0,False,b\nyes,3,-0.25,True,\nno,40,1e+3,False,d\n"
    path = write(tmp_path, text)
    own = identity_of(path)
    assert own.rows == 4
    assert identity_of(str(path)) == own
    assert identity_of(pd.read_csv(path)) == own
    assert identity_of(pl.read_csv(path)) == own
    assert identity_of(pd.read_csv(path, dtype_backend="pyarrow")) == own
    assert identity_of(pd.read_csv(path, dtype=str)) == own
    renamed = path.rename(tmp_path / "other.txt")
    assert identity_of(renamed) == own


# ---- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distinct", [3, 10**9], ids=["few levels", "all different"])
def test_batches_and_blocks_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: int
) -> None:
    chance = random.Random(5)
    rows: list[Row] = [
        (str(chance.randrange(distinct)), "w" * chance.randrange(80), f" {chance.randrange(9)}.0")
        for _ in range(700)
    ]
    names = ["a", "b", "c"]
    path = write(tmp_path, "".join(",".join(row) + "\n" for row in [tuple(names), *rows]))
    expected = slow_digest(names, rows)
    assert identity_of(path).digest == expected
    monkeypatch.setattr(identity, "_BATCH_CELLS", 64 * 3)
    assert identity_of(path).digest == expected
    assert identity_of(arrow(names, rows)).digest == expected


def test_two_columns_without_a_name_are_refused(tmp_path: Path) -> None:
    identity_of(write(tmp_path, "a,\n1,2\n"))
    path = write(tmp_path, "a,,\n1,2,3\n")
    with pytest.raises(InputError, match="2 columns without a name"):
        identity_of(path)
