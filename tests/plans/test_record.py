# SPDX-License-Identifier: Apache-2.0
"""The public record tells the custodian's choices, and nothing that depends on the rows."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from plan_cases import edited, recorded
from pufferfish.errors import InputError
from pufferfish.plans import record
from pufferfish.plans.record import read_record, write_record
from pufferfish.release.pipeline import release_file

#: 7301 and 7309 are numbers that nothing else in a record looks like.
CONTENT = ["ill,7301,1"] * 14 + ["ill,7309,0"] * 6 + ["well,7301,1"] * 8 + ["well,7309,0"] * 12


def table(folder: Path, kind: str = "number") -> Path:
    text = "\n".join(["health,place,other", *CONTENT]) + "\n"
    if kind == "level":
        text = text.replace("7301", "north").replace("7309", "south")
    path = folder / "in.csv"
    path.write_text(text)
    return path


def planned(folder: Path, kind: str = "number", epsilon: Any = "0.25", **options: Any) -> pf.Plan:
    mechanism = options.pop("mechanism", None)
    prior = pf.Prior.from_table(table(folder, kind), secret="health", public="place", **options)
    return pf.calibrate(prior, epsilon, mechanism)


def test_what_a_record_says(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    told = recorded(plan, table(tmp_path), tmp_path)
    assert next(iter(told)) == "notice"
    assert told["notice"].startswith("PUBLIC")
    facts = {
        "column": "place", "secret": "health", "unit": None, "kept_columns": [], "epsilon": "0.25",
        "pairs": [["ill", "well"]], "mechanism": "discrete Laplace noise", "rounded": False,
        "bounds": None, "values": {"kind": "numbers", "levels": None, "step": "1"},
    }  # fmt: skip
    assert told.items() >= facts.items()
    assert told["certificate"]["claimed"] is True
    assert "e**epsilon" in told["promise"]
    said = " ".join(told["assumptions"])
    for words in ("public knowledge", "depends on every one", "independent", "own person"):
        assert words in said
    assert "stays out of everything public" in said
    not_covered = " ".join(told["not_covered"])
    for words in ("do not add up", "none of the pairs", "left out"):
        assert words in not_covered


SECRET = ("7301", "7309", "sha256", "41", "40", "14", "0.7", '"scale":', '"channel":', "in.csv")


def test_nothing_of_the_table_is_in_it(tmp_path: Path) -> None:
    for mechanism in ("exact", "channel"):
        plan = planned(tmp_path, mechanism=mechanism, epsilon="1/3")
        text = json.dumps(recorded(plan, table(tmp_path), tmp_path))
        assert [word for word in SECRET if word in text] == []
        numbers = [plan.scale, plan.loss, plan.cost, plan.keep_rate, plan.mse]
        assert [n for n in numbers if n is not None and repr(n) in text] == []


def variants(folder: Path) -> list[Path]:
    """The table, and copies with one secret changed, a row more, another value, a blank."""
    base = table(folder).read_text()
    texts = [
        base, base.replace("ill", "well", 1), base.replace("ill", "cured", 1),
        base + "ill,7301,1\n", base + "ill,7305,1\n", base + "ill,,1\n",  # 7305 is impossible
        "\n".join(base.split("\n")[:3]) + "\n",
    ]  # fmt: skip
    paths = [folder / f"copy{k}.csv" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_a_record_does_not_depend_on_rows(tmp_path: Path, mechanism: str) -> None:
    plan = edited(planned(tmp_path, mechanism=mechanism))
    sources = variants(tmp_path)
    asked: dict[str, Any] = {"out_of_support": "clamp", "allow_unchanged": True}
    for more in ({}, {"round": True}):
        first, *others = (recorded(plan, s, tmp_path, **asked, **more) for s in sources)
        assert all(told == first for told in others)
    assert not first["certificate"]["claimed"]
    assert "impossible" in first["certificate"]["statement"]
    assert "is moved to" in first["not_covered"][-1]
    # Without clamping the certificate is claimed, for any rows too, or there is no release.
    for source in sources[:4]:
        told = recorded(plan, source, tmp_path, allow_unchanged=True)
        assert told["certificate"]["claimed"] is True
        assert "at most epsilon, says its file" in told["certificate"]["statement"]
    no: Any = "no"
    with pytest.raises(InputError, match="publish must be True or False"):
        recorded(plan, source, tmp_path, publish=no)


def test_mutant_a_record_that_counts_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path)
    monkeypatch.setattr(
        record, "_why_no_certificate", lambda plan, report, spec: report.clamped and "clamped"
    )
    first, *others = (
        recorded(plan, s, tmp_path, out_of_support="clamp") for s in variants(tmp_path)
    )
    assert not all(told == first for told in others)


@pytest.mark.parametrize(
    "changes, reason, promised",
    [
        ({"seed": 1}, "seed", False),
        ({"keep": ("other",)}, "kept columns (other)", False),
        ({"min_scale": 1000}, "more noise", True),
        ({"out_of_support": "clamp"}, "impossible", True),
    ],
)
def test_no_certificate_is_claimed_for_something_else(
    changes: dict[str, Any], reason: str, promised: bool, tmp_path: Path
) -> None:
    told = recorded(planned(tmp_path), table(tmp_path), tmp_path, **changes)
    assert told["certificate"]["claimed"] is False
    assert reason in told["certificate"]["statement"]
    assert bool(told["promise"]) is promised
    assert bool(told["assumptions"]) is promised
    assert told["kept_columns"] == list(changes.get("keep", ()))
    plan = edited(planned(tmp_path), certificate=None)
    told = recorded(plan, table(tmp_path), tmp_path)
    assert "none that holds" in told["certificate"]["statement"]


@pytest.mark.parametrize(
    "options, asked, values",
    [
        ({}, {}, ("levels", None, None)),
        ({"order": ["south", "north"]}, {}, ("codes of levels", None, "1")),
        ({"order": ["south", "north"]}, {"round": True, "bounds": (0, 1)}, ("levels", None, None)),
    ],
)
def test_levels_of_a_table_are_not_named(
    options: dict[str, Any], asked: dict[str, Any], values: tuple[Any, ...], tmp_path: Path
) -> None:
    plan = planned(tmp_path, "level", **options)
    told = recorded(plan, table(tmp_path, "level"), tmp_path, **asked)
    assert tuple(told["values"].values()) == values
    if asked:
        assert (told["rounded"], told["bounds"]) == (True, ["0", "1"])


MASSES = {"a": {"0": ".5", "0.25": ".3", "1": ".2"}, "b": {"0": ".2", "0.25": ".3", "1": ".5"}}


def given_prior(folder: Path, mechanism: str) -> tuple[pf.Plan, Path]:
    source = folder / "t.csv"
    source.write_text("x\n0\n0.25\n1\n")
    plan = pf.calibrate(pf.Prior.from_mapping(MASSES), "0.5", mechanism)
    return plan.with_columns("x"), source


def test_a_given_prior_is_no_table(tmp_path: Path) -> None:
    plan, source = given_prior(tmp_path, "exact")
    told = recorded(plan, source, tmp_path, publish=True)
    assert told["secret"] is None
    assert told["values"]["step"] == "0.25"
    assert (told["scale"], told["support"]["step"]) == (plan.scale, "0.25")
    assert "rows of a table" not in " ".join(told["assumptions"])
    # Rounded values do not show the lattice of the noise.
    told = recorded(plan, source, tmp_path, round=True)
    assert (told["rounded"], told["values"]["step"]) == (True, "1")
    told = recorded(*given_prior(tmp_path, "channel"), tmp_path)
    assert (told["mechanism"], told["values"]["step"]) == ("channel", "0.25")


def test_a_region_and_earlier_releases_are_told(tmp_path: Path) -> None:
    source = table(tmp_path)
    told = recorded(planned(tmp_path, confidence="0.9"), source, tmp_path)
    assert "90 % confidence" in told["assumptions"][0]  # it leads
    near = recorded(planned(tmp_path, tv_radius="1/50"), source, tmp_path)
    assert "balls of radius 0.02" in near["assumptions"][0]
    prior = pf.Prior.from_table(source, secret="health", public="place")
    first = pf.calibrate(prior, "0.1")
    second = pf.calibrate(prior, "0.25", already=[first])
    told = recorded(second, source, tmp_path)
    assert "together with the other releases" in told["assumptions"][0]
    assert second.composition is not None
    assert repr(second.composition.value) not in json.dumps(told)


def test_the_rows_of_one_person_are_one_promise(tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    lines = [f"p{k},{'ill' if k % 3 else 'well'},{(k + v) % 2}" for k in range(60) for v in (0, 1)]
    source.write_text("person,health,place\n" + "\n".join(lines) + "\n")
    prior = pf.Prior.from_table(source, secret="health", public="place", unit="person")
    told = recorded(pf.calibrate(prior, "0.5"), source, tmp_path, allow_unchanged=True)
    assert told["unit"] == "person"
    assert "released for a person" in told["promise"]
    assert "the same 'person' are one person's" in told["assumptions"][-1]
    assert "How many rows" in told["not_covered"][-1]
    assert told["certificate"]["claimed"] is True


# What is published, and read back by those who estimate


@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_a_published_mechanism_is_read_back(mechanism: str, tmp_path: Path) -> None:
    plan, source = given_prior(tmp_path, mechanism)
    told = recorded(plan, source, tmp_path, publish=True, round=True, bounds=(0, 1))
    assert "keep_rate" not in json.dumps(told)
    read = read_record(tmp_path / "record.json")
    assert (read.round, read.bounds) == (True, (Fraction(0), Fraction(1)))
    assert read.coding is not None
    assert read.coding.column == "x"
    assert read.support == plan.support
    if plan.channel is None:
        assert read.mechanism == plan.applied
        recorded(plan, source, tmp_path, publish=True, min_scale=1000)
        assert read_record(tmp_path / "record.json").mechanism.scale == 1000
    else:
        assert read.mechanism.rows.tolist() == plan.channel.rows.tolist()
    rows = planned(tmp_path, mechanism=mechanism, epsilon="0.4")
    told = recorded(rows, table(tmp_path), tmp_path, publish=True)
    assert "decided so" in " ".join(told["assumptions"])


def test_records_that_tell_no_mechanism(tmp_path: Path) -> None:
    path, (plan, source) = tmp_path / "record.json", given_prior(tmp_path, "exact")
    recorded(plan, source, tmp_path)
    with pytest.raises(InputError, match=r"does not tell the mechanism; .*--publish-scale"):
        read_record(path)
    spec, other = plan.spec(), pf.calibrate(pf.Prior.from_mapping(MASSES), "0.3")
    with pytest.raises(InputError, match="by another plan"):
        write_record(path, other, release_file(source, tmp_path / "o.csv", spec), spec)
    good = recorded(plan, source, tmp_path, publish=True)
    changes: list[Any] = [
        {"format": 1}, {"scale": "1"}, {"scale": -1.0},
        {"support": {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 268435455]]}},
        {"bounds": ["1", "0"]}, {"channel": 3}, {"column": None},
    ]  # fmt: skip
    for wrong in (*(good | change for change in changes), [], {}, {"format": 2}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match="no usable record"):
            read_record(path)
