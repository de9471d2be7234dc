# SPDX-License-Identifier: Apache-2.0
"""The public record: it promises what is true, and tells nothing that was worked out from rows."""

import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import run
from pufferfish import publicrecord
from pufferfish.errors import InputError, OutsidePromiseWarning, PufferfishWarning
from pufferfish.publicrecord import public_record, write_record
from pufferfish.release import ReleaseReport, release_file

pytestmark = pytest.mark.filterwarnings("ignore::pufferfish.errors.PufferfishWarning")

#: Rows by secret and value: numbers that occur nowhere else.
ROWS = {
    "number": {
        ("ill", "7301"): 71,
        ("ill", "7309"): 38,
        ("well", "7301"): 59,
        ("well", "7309"): 83,
    },
    "level": {
        ("ill", "north"): 71,
        ("ill", "south"): 38,
        ("well", "north"): 59,
        ("well", "south"): 83,
    },
}


def table(folder: Path, kind: str, extra: str = "") -> Path:
    path = folder / "hidden-name.csv"
    cells = [pair for pair, rows in ROWS[kind].items() for _ in range(rows)]
    lines = [f"{secret},{value},{k % 2}" for k, (secret, value) in enumerate(cells)]
    path.write_text("health,place,other\n" + "\n".join(lines) + "\n" + extra, encoding="utf-8")
    return path


def released(
    folder: Path,
    kind: str = "number",
    *,
    plan: pf.Plan | None = None,
    keep: tuple[str, ...] = (),
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    extra: str = "",
    **prior: Any,
) -> tuple[pf.Plan, ReleaseReport, Any]:
    """A plan from the table, the report on its release, and what was asked for."""
    source = table(folder, kind, extra)
    if plan is None:
        scenario = pf.Scenario(
            pf.Prior.from_table(source, secret="health", public="place", **prior)
        )
        plan = pf.calibrate(scenario, "0.25").with_sensitivity(scenario)
    spec = plan.release_spec(**(options or {}))
    report = release_file(source, folder / "test.csv", spec, keep, seed=seed, force=True)
    return plan, report, spec


def leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for item in data:
            yield from leaves(item)
    else:
        yield data


def secrets_of(plan: pf.Plan, report: ReleaseReport, kind: str) -> set[str]:
    """Every number and text of plan, table and report that must not be told."""
    found = {plan.digest, plan.digest[:12], "hidden-name", str(report.rows_read)}
    found |= {str(rows) for rows in ROWS[kind].values()}
    found |= {
        str(sum(r for (s, _), r in ROWS[kind].items() if s == name)) for name in ("ill", "well")
    }
    found |= {str(rows) for _, rows in (*report.set_aside, *(report.outside_promise or ()))}
    for item in leaves(plan.to_dict()):
        if isinstance(item, float) and math.isfinite(item) and item not in (0, 0.25):
            found |= {repr(item), f"{item:.5g}", f"{item:.4f}"}
        elif isinstance(item, str) and item.startswith("0x"):
            found.add(item)
    found |= {f"{v:.5g}" for v in (plan.mse, plan.std, plan.cost, plan.keep_rate) if v}
    if kind == "number":
        found |= {"7301", "7309"}
    elif plan.rules is not None and plan.rules.order is None and plan.rules.levels is None:
        found |= {"north", "south"}
    # Numbers of one digit say nothing, and are found anywhere.
    return {text for text in found if len(text) > 1} - {"0.25", "0.03"}  # stated


def told(record: dict[str, Any]) -> str:
    """All that a record says, but for its own version."""
    return json.dumps({key: value for key, value in record.items() if key != "version"})


CASES: list[tuple[str, dict[str, Any]]] = [
    ("number", {}),
    ("number", {"confidence": "0.9"}),
    ("level", {}),
    ("level", {"order": ["south", "north"]}),
    ("level", {"levels": ["south", "north"]}),
    ("level", {"order": "alphabetical"}),
    ("level", {"tv_radius": "0.03"}),
]


@pytest.mark.parametrize("kind, prior", CASES)
def test_nothing_secret_is_told(kind: str, prior: dict[str, Any], tmp_path: Path) -> None:
    value = "7301" if kind == "number" else "north"
    extra = "\n".join(["well,,0"] * 13 + [f",{value},1"] * 46) + "\n"
    plan, report, spec = released(tmp_path, kind, extra=extra, **prior)
    hidden = secrets_of(plan, report, kind)
    assert len(hidden) > 15
    for given in (spec, None):
        text = told(public_record(plan, report, spec=given))
        assert not [secret for secret in hidden if secret in text]
    # Asked for, how much noise there is can be told, and nothing else is.
    open_text = told(public_record(plan, report, publish_scale=True, spec=spec))
    assert plan.digest not in open_text
    assert "hidden-name" not in open_text
    assert (repr(plan.scale) in open_text) == (plan.scale is not None)
    assert ('"channel": {' in open_text) == (plan.channel is not None)


def test_the_search_for_secrets_finds_them(tmp_path: Path) -> None:
    plan, report, _ = released(tmp_path)
    hidden = secrets_of(plan, report, "number")
    for leak in (
        plan.digest, plan.scale, plan.loss, report.rows_read, 71, plan.mse, report.source,
        plan.to_dict(), plan.sensitivity,
    ):  # fmt: skip
        text = told(public_record(plan, report) | {"more": str(leak)})
        assert [secret for secret in hidden if secret in text], leak


def test_whether_something_happened_to_a_row_is_not_told(tmp_path: Path) -> None:
    plan, report, spec = released(tmp_path)
    _, other, _ = released(tmp_path, plan=plan, extra="well,,1\nneither,7301,0\n,7309,1\n")
    assert other.set_aside
    assert other.rows_outside_promise == 2
    assert public_record(plan, report, spec=spec) == public_record(plan, other, spec=spec)
    # Nor whether a least scale made a difference.
    small, large = (plan.release_spec(min_scale=t) for t in ("0.001", "1000"))
    _, raised, _ = released(tmp_path, plan=plan, options={"min_scale": 1000})
    assert raised.mechanism != report.mechanism
    assert public_record(plan, report, spec=small) == public_record(plan, raised, spec=large)
    assert public_record(plan, report) == public_record(plan, raised)


#: Rows like the others, but that a plan without them holds the last value impossible.
USUAL, IMPOSSIBLE = "ill,7301,1\n", "ill,9999,1\n"


@pytest.mark.parametrize("with_spec", [True, False])
@pytest.mark.parametrize("loaded", [True, False])
def test_whether_a_value_was_moved_is_not_told(
    with_spec: bool, loaded: bool, tmp_path: Path
) -> None:
    plan, _, _ = released(tmp_path, extra=USUAL)
    if loaded:
        plan.save(tmp_path / "plan.json")
        plan = pf.Plan.load(tmp_path / "plan.json")
    records = []
    for row, moved, proved in ((USUAL, 0, True), (IMPOSSIBLE, 1, False)):
        _, report, spec = released(
            tmp_path, plan=plan, extra=row, options={"out_of_support": "clamp"}
        )
        assert report.clamped == moved
        path = tmp_path / f"record{moved}.json"
        write_record(path, plan, report, spec=spec if with_spec else None, proved=proved)
        records.append(path.read_bytes())
    assert records[0] == records[1]
    record = json.loads(records[0])
    assert not record["certificate"]["claimed"]
    assert "impossible" in record["certificate"]["statement"]
    assert ("is moved to" if with_spec else "may have been moved to") in record["not_covered"][-1]


@pytest.mark.parametrize("source", ["plan", "prior"])
def test_nor_does_the_command_tell_it(source: str, tmp_path: Path) -> None:
    scenario = pf.Scenario(
        pf.Prior.from_table(table(tmp_path, "number", USUAL), secret="health", public="place")
    )
    pf.calibrate(scenario, "0.25").save(tmp_path / "plan.json")
    masses = {"ill": {"7301": ".7", "7309": ".3"}, "well": {"7301": ".4", "7309": ".6"}}
    (tmp_path / "prior.json").write_text(json.dumps({"secrets": masses}))
    how = {
        "plan": ["--plan", tmp_path / "plan.json"],
        "prior": ["--prior", tmp_path / "prior.json", "--secret", "health", "--public", "place",
                  "--epsilon", "0.25"],
    }[source]  # fmt: skip
    records = []
    for number, row in enumerate((USUAL, IMPOSSIBLE)):
        record = tmp_path / f"record{number}.json"
        done = run(
            "release", table(tmp_path, "number", row), *how, "--out-of-support", "clamp",
            "-o", tmp_path / f"out{number}.csv", "--record", record,
        )  # fmt: skip
        assert done.status == 0, done.err
        assert ("moved to the nearest value of the support: 1" in done.out) == bool(number)
        records.append(record.read_bytes())
    assert records[0] == records[1]


def test_options_that_cannot_have_led_to_the_release_are_refused(tmp_path: Path) -> None:
    plan, _, plain = released(tmp_path)
    for extra, options in ((IMPOSSIBLE, {"out_of_support": "clamp"}), ("", {"min_scale": 1000})):
        _, report, spec = released(tmp_path, plan=plan, extra=extra, options=options)
        public_record(plan, report, spec=spec)
        with pytest.raises(InputError, match="not those of the release"):
            public_record(plan, report, spec=plain)


def test_what_a_record_says(tmp_path: Path) -> None:
    plan, report, spec = released(tmp_path)
    record = public_record(plan, report, spec=spec)
    assert next(iter(record)) == "notice"
    assert record["notice"].startswith("PUBLIC")
    assert (record["format"], record["version"]) == (1, pf.__version__)
    assert (record["column"], record["secret"]) == ("place", "health")
    assert record["pairs"] == [["ill", "well"]]
    assert record["epsilon"] == "0.25"
    assert record["mechanism"] == "discrete Laplace noise"
    assert record["values"] == {"kind": "numbers", "levels": None, "step": "1"}
    assert (record["rounded"], record["bounds"]) == (False, None)
    assert record["certificate"]["claimed"] is True
    assert "e**epsilon" in record["promise"][0]
    said = " ".join(record["assumptions"])
    for words in ("public knowledge", "depends on every one", "independent", "own person"):
        assert words in said
    assert "not in this record" in said
    not_covered = " ".join(record["not_covered"])
    for words in ("do not add up", "none of the pairs", "left out"):
        assert words in not_covered
    assert "scale" not in record
    assert "channel" not in record
    open_record = public_record(plan, report, publish_scale=True, spec=spec)
    assert (open_record["scale"], open_record["noise_step"]) == (plan.scale, "1")
    assert "decided so" in " ".join(open_record["assumptions"])


def test_epsilon_is_exact_and_pairs_have_no_order(tmp_path: Path) -> None:
    source = table(tmp_path, "number")
    prior = pf.Prior.from_table(source, secret="health", public="place")
    for pair in (("well", "ill"), ("ill", "well")):
        plan = pf.calibrate(pf.Scenario(prior, [pair]), "1/3")
        report = release_file(source, tmp_path / "o.csv", plan.release_spec(), force=True)
        record = public_record(plan, report)
        assert (record["epsilon"], record["pairs"]) == ("1/3", [["ill", "well"]])


@pytest.mark.parametrize(
    "changes, reason, promised",
    [
        ({"seed": 1}, "seed", False),
        ({"keep": ("other",)}, "kept columns (other)", False),
        ({"options": {"min_scale": 1000}}, "more noise", True),
        ({"options": {"out_of_support": "clamp"}}, "impossible", True),
    ],
)
@pytest.mark.parametrize("with_spec", [True, False])
def test_no_certificate_is_claimed_for_something_else(
    changes: dict[str, Any], reason: str, promised: bool, with_spec: bool, tmp_path: Path
) -> None:
    plan, _, _ = released(tmp_path)
    plan, report, spec = released(tmp_path, plan=plan, **changes)
    record = public_record(plan, report, spec=spec if with_spec else None)
    assert record["certificate"]["claimed"] is False
    if "options" in changes and not with_spec:
        reason = "not stated whether"
    assert reason in record["certificate"]["statement"]
    assert bool(record["promise"]) is promised
    assert bool(record["assumptions"]) is promised
    assert record["kept_columns"] == list(changes.get("keep", ()))


def test_a_plan_without_a_certificate_claims_none(tmp_path: Path) -> None:
    plan, report, _ = released(tmp_path)
    data = plan.to_dict() | {"certificate": None}
    record = public_record(pf.Plan.from_dict(data), report)
    assert record["certificate"] == {
        "claimed": False,
        "statement": "No certificate is claimed: the plan has none that holds.",
    }


def test_a_certificate_for_everything_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publicrecord._Told, "_why_no_certificate", lambda self: "")
    with pytest.raises(AssertionError):
        test_no_certificate_is_claimed_for_something_else(
            {"keep": ("other",)}, "kept", False, True, tmp_path
        )


@pytest.mark.parametrize(
    "prior, options, values",
    [
        ({}, {}, ("levels", None, None)),
        ({"levels": ["south", "north"]}, {}, ("levels", ["north", "south"], None)),
        ({"order": ["south", "north"]}, {}, ("codes of levels", ["south", "north"], "1")),
        ({"order": "alphabetical"}, {}, ("codes of levels", None, "1")),
        (
            {"order": ["south", "north"]},
            {"round": True, "bounds": (0, 1)},
            ("levels", ["south", "north"], None),
        ),
    ],
)
def test_levels_are_named_where_they_were_stated(
    prior: dict[str, Any], options: dict[str, Any], values: tuple[str, Any, Any], tmp_path: Path
) -> None:
    plan, report, spec = released(tmp_path, "level", options=options, **prior)
    record = public_record(plan, report, spec=spec)
    assert tuple(record["values"].values()) == values
    if options:
        assert (record["rounded"], record["bounds"]) == (True, ["0", "1"])
        assert public_record(plan, report)["rounded"] is None


MASSES = {"a": {"0": ".5", "0.25": ".3", "1": ".2"}, "b": {"0": ".2", "0.25": ".3", "1": ".5"}}


def given_prior(tmp_path: Path, mechanism: str, **options: Any) -> tuple[pf.Plan, Any, Any]:
    source = tmp_path / "t.csv"
    source.write_text("x\n0\n0.25\n1\n")
    plan = pf.calibrate(pf.Prior.from_mapping(MASSES), "0.5", mechanism).with_columns("x")
    spec = plan.release_spec(**options)
    return plan, release_file(source, tmp_path / "o.csv", spec, force=True), spec


def test_a_given_prior_is_no_table(tmp_path: Path) -> None:
    plan, report, spec = given_prior(tmp_path, "exact")
    record = public_record(plan, report, publish_scale=True, spec=spec)
    assert record["secret"] is None
    assert record["values"]["step"] == "0.25"
    assert record["scale"] == plan.scale
    assert "rows of a table" not in " ".join(record["assumptions"])
    # Rounded values do not show the lattice of the noise.
    plan, report, spec = given_prior(tmp_path, "exact", round=True)
    record = public_record(plan, report, spec=spec)
    assert (record["rounded"], record["values"]["step"]) == (True, "1")
    assert public_record(plan, report)["values"]["step"] is None
    assert "noise_step" not in record


def test_a_channel_of_numbers_tells_its_step_only_where_it_was_stated(tmp_path: Path) -> None:
    plan, report, spec = given_prior(tmp_path, "channel")
    record = public_record(plan, report, spec=spec)
    assert (record["mechanism"], record["values"]["step"]) == ("channel", "0.25")
    prior = pf.Prior.from_table(table(tmp_path, "number"), secret="health", public="place")
    plan = pf.calibrate(prior, "0.4", "channel", min_keep="0.3")
    report = release_file(table(tmp_path, "number"), tmp_path / "c.csv", plan.release_spec())
    record = public_record(plan, report, spec=plan.release_spec())
    assert record["values"] == {"kind": "numbers", "levels": None, "step": None}
    assert record["conditions"] == ["min_keep 0.3"]
    assert "keep_rate" not in told(public_record(plan, report, publish_scale=True))


def test_a_region_and_earlier_releases_are_told(tmp_path: Path) -> None:
    plan, report, _ = released(tmp_path, confidence="0.9")
    assert "90 % confidence" in " ".join(public_record(plan, report)["assumptions"])
    source = table(tmp_path, "number")
    prior = pf.Prior.from_table(source, secret="health", public="place")
    first = pf.calibrate(prior, "0.1")
    second = pf.calibrate(prior, "0.25", already=[first])
    spec = second.release_spec()
    record = public_record(second, release_file(source, tmp_path / "b.csv", spec), spec=spec)
    assert "together with the other releases" in record["promise"][1]
    assert second.beside is not None
    assert repr(second.beside.loss) not in told(record)
    said = record["certificate"]["statement"]
    assert "joint loss of this release and the others" in said
    assert "(1 release)" in said
    assert "this release alone" in said
    spec = first.release_spec()
    record = public_record(first, release_file(source, tmp_path / "a.csv", spec), spec=spec)
    assert record["certificate"]["claimed"]
    assert "joint" not in record["certificate"]["statement"]


def test_the_rows_of_one_person_are_one_promise(tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    lines = [f"p{k},{'ill' if k % 3 else 'well'},{(k + v) % 2}" for k in range(60) for v in (0, 1)]
    source.write_text("person,health,place\n" + "\n".join(lines) + "\n")
    prior = pf.Prior.from_table(source, secret="health", public="place", unit="person")
    plan = pf.calibrate(prior, "0.5")
    spec = plan.release_spec(allow_unchanged=True)
    report = release_file(source, tmp_path / "o.csv", spec)
    record = public_record(plan, report, spec=spec)
    assert record["unit"] == "person"
    assert "released for a person" in record["promise"][0]
    assert "the same 'person' are one person's" in record["assumptions"][-1]
    assert "How many rows" in record["not_covered"][-1]
    assert record["certificate"]["claimed"] is True
    assert plan.units is not None
    assert plan.units.digest not in told(record)
    lost = pf.Plan.from_dict(plan.to_dict() | {"units": None})
    spec = lost.release_spec(allow_unchanged=True)
    certificate = public_record(lost, report, spec=spec, proved=True)["certificate"]
    assert certificate["claimed"] is False
    assert "all rows of a person" in certificate["statement"]


def test_plan_report_and_options_must_belong_together(tmp_path: Path) -> None:
    plan, report, _ = released(tmp_path)
    other = pf.calibrate(
        pf.Prior.from_table(table(tmp_path, "number"), secret="health", public="place"), "0.3"
    )
    with pytest.raises(InputError, match="by another plan"):
        public_record(plan, release_file(
            table(tmp_path, "number"), tmp_path / "x.csv", other.release_spec()
        ))  # fmt: skip
    with pytest.raises(InputError, match="options given"):
        public_record(plan, report, spec=other.release_spec())
    elsewhere = pf.calibrate(
        pf.Prior.from_table(table(tmp_path, "number"), secret="health", public="other"), 1
    )
    with pytest.raises(InputError, match="'place', but the plan is for 'other'"):
        public_record(elsewhere, report)


def test_it_is_written_like_any_file_once_and_whole(tmp_path: Path) -> None:
    plan, report, spec = released(tmp_path)
    path = tmp_path / "record.json"
    mask = os.umask(0o022)
    try:
        write_record(path, plan, report, spec=spec)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert json.loads(path.read_text()) == public_record(plan, report, spec=spec)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        write_record(path, plan, report, publish_scale=True)
    assert path.read_bytes() == before
    write_record(path, plan, report, publish_scale=True, force=True)
    assert json.loads(path.read_text())["scale"] == plan.scale
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_half_a_character_is_one_line(tmp_path: Path) -> None:
    plan, report, _ = released(tmp_path)
    odd = pf.Plan.from_dict(
        plan.to_dict() | {"pairs": [["ill", "\ud800"]], "secrets": ["ill", "\ud800"]}
    )
    with pytest.raises(InputError, match="half a character"):
        write_record(tmp_path / "r.json", odd, report)
    assert not (tmp_path / "r.json").exists()


def test_the_warnings_that_are_ignored_here_are_real(tmp_path: Path) -> None:
    plan, _, _ = released(tmp_path)
    assert issubclass(OutsidePromiseWarning, PufferfishWarning)
    with pytest.warns(OutsidePromiseWarning, match="kept columns"):
        released(tmp_path, plan=plan, keep=("other",))


def test_a_plan_of_a_file_is_only_a_claim(tmp_path: Path) -> None:
    plan, report, spec = released(tmp_path)
    assert public_record(plan, report, spec=spec)["certificate"]["claimed"]
    loaded = pf.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    spec = loaded.release_spec()
    certificate = public_record(loaded, report, spec=spec)["certificate"]
    assert not certificate["claimed"]
    assert "not proved again" in certificate["statement"]
    assert public_record(loaded, report, spec=spec, proved=True)["certificate"]["claimed"]
