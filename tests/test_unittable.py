# SPDX-License-Identifier: Apache-2.0
"""The counts of people's rows that a ledger keeps: counted, summed over columns, written, read."""

import json
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.ledger.jointtable import JointTable, count
from pufferfish.ledger.readings import Reading
from pufferfish.ledger.unittable import UnitTable, count_units
from pufferfish.tables import Table, open_table
from pufferfish.tables.identity import identity_of


def people(seed: int, blanks: float = 0.2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 4, 40)
    who = np.repeat(np.arange(40), numbers)
    order = rng.permutation(len(who))
    table = pd.DataFrame(
        {
            "who": who,
            "s": np.where(who % 3 == 0, "a", np.where(who % 3 == 1, "b", "c")),
            "x": rng.integers(0, 3, len(who)).astype(float),
            "z": rng.choice(["p", "q"], len(who)),
        }
    ).iloc[order]
    table.loc[rng.random(len(table)) < blanks, "x"] = np.nan
    table.loc[rng.random(len(table)) < blanks, "z"] = None
    return table.reset_index(drop=True)


def counted(frame: pd.DataFrame) -> tuple[UnitTable, JointTable]:
    table: Table = open_table(frame)
    plans = [
        pf.calibrate(pf.Prior.from_table(frame, secret="s", public="x", unit="who"), 1, "l1"),
        pf.calibrate(pf.Prior.from_table(frame, secret="s", public="z"), 1),
    ]
    found = count(table, "s", [(None, Reading(plan)) for plan in plans])
    readings = list(zip(found.labels, map(Reading, plans), strict=True))
    rules = plans[0].rules
    assert rules is not None
    return count_units(table, rules, identity_of(table).order, found.joint, readings), found.joint


def by_hand(frame: pd.DataFrame, columns: list[str]) -> Counter[Any]:
    """How many people of each secret have these values in their rows, None for none."""
    found: Counter[Any] = Counter()
    for _, own in frame.groupby("who", sort=False):
        rows = [tuple(None if v is None or v != v else v for v in row)
                for row in own[columns].itertuples(index=False)]  # fmt: skip
        rows = [row for row in rows if any(v is not None for v in row)]
        if rows:
            found[own["s"].iloc[0], tuple(rows)] += 1
    return found


def read(table: UnitTable, joint: JointTable) -> Counter[Any]:
    found: Counter[Any] = Counter()
    axes = [joint.axes[joint.axis(label)].support for label in table.labels]
    for cells, counts in table.groups:
        for line, number in zip(cells.tolist(), counts.tolist(), strict=True):
            places = np.array(line[1:]).reshape(-1, len(axes))
            rows = tuple(
                tuple(
                    None
                    if k < 0
                    else float(axis.name(k))
                    if axis.name(k).isdigit()
                    else axis.name(k)
                    for k, axis in zip(row, axes, strict=True)
                )
                for row in places.tolist()
            )
            found[table.secrets[line[0]], rows] += number
    return found


@pytest.mark.parametrize("seed", range(5))
def test_people_are_counted_as_by_hand(seed: int) -> None:
    frame = people(seed)
    table, joint = counted(frame)
    assert read(table, joint) == by_hand(frame, ["x", "z"])
    assert table.most_rows == max(len(rows) for _, rows in by_hand(frame, ["x", "z"]))
    assert not table.complete
    for columns in (["x"], ["z"]):
        part = table.of(columns)
        assert read(part, joint) == by_hand(frame, columns)
        assert part.complete
        assert part.of(columns) is part
    with pytest.raises(InputError, match="lack the column 'y'"):
        table.of(["x", "y"])


@pytest.mark.parametrize("seed", range(3))
def test_patterns_hold_everybody_once(seed: int) -> None:
    frame = people(seed)
    table, joint = counted(frame)
    patterns: Counter[Any] = Counter()
    for secret, rows in by_hand(frame, ["x", "z"]).elements():
        there = tuple(
            (r, c) for r, row in enumerate(rows) for c, v in enumerate(row) if v is not None
        )
        patterns[secret, len(rows), there] += 1
    found: Counter[Any] = Counter()
    for rows, units in table.patterns():
        there = tuple(zip(units.rows, units.columns, strict=True))
        assert (units.atoms >= 0).all()
        for secret, number in zip(joint.secrets, units.counts.sum(axis=1).tolist(), strict=True):
            if number:
                found[secret, rows, there] += number
    assert found == patterns


@pytest.mark.parametrize("seed", range(3))
def test_units_on_a_support_are_those_of_the_prior(seed: int) -> None:
    frame = people(seed)
    table, joint = counted(frame)
    prior = pf.Prior.from_table(frame, secret="s", public="x", unit="who")
    units = table.units_on("x", joint.axes[0].support, prior.support)  # type: ignore[arg-type]
    assert units is not None
    assert prior.units is not None
    assert units.digest(range(3)) == prior.units.digest(range(3))


def test_what_is_written_is_read_back_and_nothing_else() -> None:
    table, _ = counted(people(1))
    data = table.to_bytes()
    back = UnitTable.from_bytes(data)
    assert back.to_bytes() == data
    assert (back.column, back.order, back.labels) == ("who", table.order, ("x", "z"))
    assert len(table.order) == 64
    empty = replace(table, groups=())
    assert UnitTable.from_bytes(empty.to_bytes()).most_rows == 1
    assert empty.of(["x"]).groups == ()
    length = int.from_bytes(data[:8], "little")
    head, body = json.loads(data[8 : 8 + length]), data[8 + length :]

    def made(head: Any, body: bytes) -> bytes:
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + body

    longer = zlib.compress(zlib.decompress(body) + b"\0" * 8)
    many = [[rows, number + 1] for rows, number in head["groups"]]
    wrong = np.frombuffer(zlib.decompress(body), "<i8").copy()
    wrong[0] = 3
    for broken in (
        b"",
        data[:20],
        data[:-3],
        made(head | {"format": 2}, body),
        made(head | {"groups": many}, body),
        made(head | {"groups": [["x", 1]]}, body),
        made({k: v for k, v in head.items() if k != "order"}, body),
        made(head, longer),
        made(head, zlib.compress(wrong.tobytes())),
    ):
        with pytest.raises(InputError, match="the ledger"):
            UnitTable.from_bytes(broken)


def test_the_order_of_rows_is_known_and_nothing_else_of_a_copy(tmp_path: Any) -> None:
    frame = people(2)
    one = identity_of(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    other = frame[["z", "s", "who", "x"]]
    for copy in (tmp_path / "t.csv", tmp_path / "t.parquet", other):
        assert identity_of(copy) == one
    turned = identity_of(frame[::-1])
    assert turned.digest == one.digest
    assert turned.order != one.order


def test_batches_do_not_matter_for_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(3)
    orders = set()
    for rows in (1, 7, 1000):
        monkeypatch.setattr("pufferfish.tables.identity._LEAST_ROWS", rows)
        monkeypatch.setattr("pufferfish.tables.identity._BATCH_CELLS", 1)
        orders.add(identity_of(frame).order)
    assert len(orders) == 1
