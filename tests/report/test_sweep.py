# SPDX-License-Identifier: Apache-2.0
"""A sweep is what the single calibrations are, whatever happens to it on the way."""

import importlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from table_cases import csv_text, write

S = "abba" * 30
TABLE = {
    "s": list(S),
    "t": [k % 3 for k in range(120)],
    "x": [k % 4 + (c == "a") for k, c in enumerate(S)],
    "y": ["pqr"[k * k % 7 % 3] for k in range(120)],
    "mixed": [str(k) if k % 2 else "word" for k in range(120)],
}
GIVEN: dict[str, Any] = {
    "secrets": ["s", "t"], "publics": ["x", "y", "mixed", "s"], "epsilons": ["1/3", 1],
    "mechanisms": ["exact", "channel"],
}  # fmt: skip
#: Of its 32 cells, those that no process computes.
FAILING = 18
#: Keys of a row, beside those of a result.
MORE = ("secret", "public", "reason", "warnings")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = (",".join(map(str, row)) for row in zip(*TABLE.values(), strict=True))
    return write(tmp_path, "\n".join([",".join(TABLE), *lines]) + "\n")


@pytest.fixture(scope="module")
def undisturbed() -> pa.Table:
    return pf.sweep(pa.table(TABLE), **GIVEN, jobs=1)


def journal_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.sweep")


def cells_of(groups: pa.Table) -> set[Any]:
    return set(zip(*(column.to_pylist() for column in groups.columns), strict=True))


def test_rows_are_single_calibrations(table: Path, undisturbed: pa.Table) -> None:
    expected: list[dict[str, Any]] = []
    for secret in GIVEN["secrets"]:
        prior = pf.Prior.from_table(table, secret=secret, public="x")
        for epsilon in GIVEN["epsilons"]:
            expected += pf.compare(prior, epsilon, GIVEN["mechanisms"]).to_dicts()
    rows = undisturbed.to_pylist()
    found = [row for row in rows if row["public"] == "x"]
    assert [row["secret"] for row in found] == ["s"] * 4 + ["t"] * 4
    assert [{k: row[k] for k in row if k not in MORE} for row in found] == [
        {k: row[k] for k in found[0] if k not in MORE} for row in expected
    ]
    assert {row["reason"] for row in found} == {None}
    # Two mechanisms of levels without an order, of which one applies; none of the other columns.
    levels = [row for row in rows if row["public"] == "y"]
    assert [row["mechanism"] for row in levels] == ["channel", "exact"] * 4
    assert all("order" in row["reason"] for row in levels[1::2])
    assert all("mixes numbers" in row["reason"] for row in rows if row["public"] == "mixed")
    same = [row for row in rows if row["public"] == row["secret"]]
    assert len(same) == 4
    assert all("differ" in row["reason"] and row["scale"] is None for row in same)


def test_the_result_does_not_depend_on_jobs_and_kind(table: Path, undisturbed: pa.Table) -> None:
    output = table.with_name("o.parquet")
    assert pf.sweep(table, **GIVEN, jobs=3, output=output).drop_columns("reason") == (
        undisturbed.drop_columns("reason")  # which names the table
    )
    assert pq.read_table(output).drop_columns("reason") == undisturbed.drop_columns("reason")
    assert output.stat().st_mode & 0o777 == 0o600
    assert not journal_of(output).exists()
    with pytest.raises(InputError, match="exists already"):
        pf.sweep(table, **GIVEN, output=output)


def test_columns_of_any_name_and_kind_are_counted_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pufferfish.tables.scan import ScanTable
    from pufferfish.tables.source import open_table
    from pufferfish.tables.table import one_pass

    names = ["x1", "=2+3", 'a"b', "x0", "count", "X1 "]
    data = {name: [(k * p) % 3 or None for k in range(60)] for p, name in enumerate(names, 1)}
    pq.write_table(pa.table({**data, "list": [[1]] * 60}), tmp_path / "t.parquet")
    whole = open_table(tmp_path / "t.parquet")
    sets = [(a, b) for a in names[:2] for b in map(str.strip, names[2:])]
    for columns, groups in zip(sets, one_pass(whole, sets), strict=True):
        alone = whole.groups(columns)
        assert cells_of(groups) == cells_of(alone)
        assert groups.schema.types == alone.schema.types
    passes: list[Any] = []
    before = ScanTable._query
    monkeypatch.setattr(ScanTable, "_query", lambda *a: passes.append(a) or before(*a))
    given = {"secrets": "=2+3", "epsilons": 1, "mechanisms": "exact"}
    found = pf.sweep(tmp_path / "t.parquet", publics=names[2:], **given, output=tmp_path / "o.csv")
    assert len(passes) == 1
    assert found.column("public").to_pylist() == ['a"b', "x0", "count", "X1"]
    text = (tmp_path / "o.csv").read_text()
    assert text.count("\n'=2+3,") == 4
    assert '\n\'=2+3,"a""b",1,exact,' in text
    # A column that cannot be counted costs its own row alone.
    found = pf.sweep(tmp_path / "t.parquet", publics=["list", "x0"], **given)
    assert ["list cells" in (why or "") for why in found.column("reason").to_pylist()] == [1, 0]


class Break(Exception):
    """Stops a sweep."""


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that a sweep starts; all of them end."""
    made, start = [], subprocess.Popen

    def started(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(start(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", started)
    yield made
    assert all(worker.returncode is not None for worker in made)


def test_a_process_that_dies_costs_its_own_cell(
    tmp_path: Path, undisturbed: pa.Table, workers: list[subprocess.Popen[bytes]]
) -> None:
    output = tmp_path / "o.parquet"

    def kill(done: int, cells: int) -> None:
        if done == FAILING + 1:
            for worker in workers:
                worker.kill()

    found = pf.sweep(pa.table(TABLE), **GIVEN, jobs=2, progress=kill).to_pylist()
    ended = [k for k, row in enumerate(found) if "its process ended" in (row["reason"] or "")]
    assert 1 <= len(ended) <= 3
    assert all(found[k]["scale"] is None for k in ended)
    for k, row in enumerate(undisturbed.to_pylist()):
        assert k in ended or found[k] == row
    assert len(workers) > 2

    def kill_and_stop(done: int, cells: int) -> None:
        kill(done, cells)
        if done == FAILING + 5:
            raise Break

    # A sweep that goes on tries again what it had no answer to.
    with pytest.raises(Break):
        pf.sweep(pa.table(TABLE), **GIVEN, jobs=2, output=output, progress=kill_and_stop)
    assert pf.sweep(pa.table(TABLE), **GIVEN, output=output) == undisturbed


def stopped(table: Any, output: Path, done: int) -> None:
    """Stop a sweep after so many cells."""

    def stop(now: int, cells: int) -> None:
        if now >= done:
            raise Break

    with pytest.raises(Break) as caught:
        pf.sweep(table, **GIVEN, jobs=2, output=output, progress=stop)
    (note,) = caught.value.__notes__
    assert "run it again" in note
    assert not output.exists()
    assert journal_of(output).stat().st_mode & 0o777 == 0o600


def test_a_sweep_goes_on_and_computes_nothing_twice(
    tmp_path: Path, undisturbed: pa.Table, workers: list[subprocess.Popen[bytes]]
) -> None:
    output = tmp_path / "o.parquet"
    assert sum(row["reason"] is not None for row in undisturbed.to_pylist()) == FAILING
    stopped(pa.table(TABLE), output, FAILING + 3)
    # What is in the journal is taken as it is.
    with closing(sqlite3.connect(journal_of(output), isolation_level=None)) as journal:
        kept = dict(journal.execute("SELECT cell, row FROM sweep WHERE cell >= 0"))
        assert len(kept) == 3
        first = min(kept)
        mark = json.dumps(json.loads(kept[first]) | {"loss": 0.125})
        journal.execute("UPDATE sweep SET row = ? WHERE cell = ?", [mark, first])
    seen: list[tuple[int, int]] = []
    found = pf.sweep(
        pa.table(TABLE), **GIVEN, output=output, progress=lambda *now: seen.append(now)
    )
    cells = len(undisturbed)
    assert seen == [(k, cells) for k in range(FAILING + 3, cells + 1)]
    for k, (row, expected) in enumerate(
        zip(found.to_pylist(), undisturbed.to_pylist(), strict=True)
    ):
        assert row == expected | ({"loss": 0.125} if k == first else {})
    assert pq.read_table(output) == found
    assert list(tmp_path.iterdir()) == [output]


def test_who_stops_a_sweep_does_not_wait_for_its_cells(
    monkeypatch: pytest.MonkeyPatch, workers: list[subprocess.Popen[bytes]]
) -> None:
    def stop(*_: Any) -> None:
        raise Break

    module = importlib.import_module("pufferfish.report.sweep")
    monkeypatch.setattr(module, "_WORKER", "import time; time.sleep(20)  # {}")
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(Break):
            pf.sweep(pa.table(TABLE), **GIVEN, jobs=2, progress=lambda *_: signal.alarm(1))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL] * 2


def test_a_journal_of_anything_else_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "o.csv"
    stopped(pa.table(TABLE), output, 1)
    other = {**TABLE, "x": [TABLE["x"][0] + 1, *TABLE["x"][1:]]}  # type: ignore[operator]
    twice = {name: cells * 2 for name, cells in TABLE.items()}  # the same probabilities
    for data, more in (
        (other, {}), (twice, {}), (TABLE, {"epsilons": ["1/3", 2]}), (TABLE, {"tv_radius": ".01"}),
        (TABLE, {"publics": ["x", "y"]}),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"the journal .*\.o\.csv\.sweep is that of other"):
            pf.sweep(pa.table(data), **GIVEN | more, output=output)
    for content in (b"no database" * 100, b"SQLite format 3\0" + b"\0" * 2000):
        journal_of(output).write_bytes(content)
        with pytest.raises(InputError, match=r"\.o\.csv\.sweep .*is none"):
            pf.sweep(pa.table(TABLE), **GIVEN, output=output)
        assert journal_of(output).read_bytes() == content
    journal_of(output).unlink()
    journal_of(output).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"\.o\.csv\.sweep"):
        pf.sweep(pa.table(TABLE), **GIVEN, output=output)
    assert [path.name for path in tmp_path.iterdir()] == [".o.csv.sweep"]


def test_what_cannot_be_calibrated_at_all_is_refused(tmp_path: Path) -> None:
    data = pa.table(TABLE)
    given = {"secrets": "s", "publics": "x", "epsilons": 1}
    for wrong, part in (
        ({"publics": "mixed"}, "mixes numbers"), ({"publics": "z"}, "no column 'z'"),
        ({"mechanisms": "exat"}, "'exact'"), ({"epsilons": 0}, "above 0"), ({"jobs": 0}, "from 1"),
        ({"epsilons": []}, "one of each"), ({"output": tmp_path / "o.txt"}, "must end in"),
        ({"decimal": ";"}, "decimal mark"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=part):
            pf.sweep(data, **given | wrong)
    text = write(tmp_path, csv_text([("a", "1"), ("b", '2"')]))
    with pytest.raises(InputError):
        pf.sweep(text, **given, output=tmp_path / "o.csv")
    assert list(tmp_path.iterdir()) == [text]
    warned = pf.sweep(pa.table({"s": list("aab"), "x": [1, 2, 2]}), **given, mechanisms="l1")
    assert "single row" in warned.column("warnings").to_pylist()[0]


def test_a_script_is_not_run_again_by_its_processes(tmp_path: Path) -> None:
    """As the processes of multiprocessing would run it, and draw its releases twice."""
    script = write(
        tmp_path,
        "import pyarrow as pa, pufferfish as pf\nprint('once')\n"
        "data = pa.table({'s': list('aabb'), 'x': [0, 1, 1, 1]})\n"
        "found = pf.sweep(data, secrets='s', publics='x', epsilons=1, mechanisms='l1')\n"
        "print(found['scale'][0])\n",
        "script.py",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once\n1.0\n", "")
