# SPDX-License-Identifier: Apache-2.0
"""A table in the explorer: what a form chooses is the command that its page shows."""

import html
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cli_runner import run
from explorer_cases import JSON, Session, commands, sentence, student_table, text
from pufferfish.explorer.choices import words
from pufferfish.explorer.pages import Form

#: What is chosen, and which options of the command that is.
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({"public": "studytime"}, ""),
    "listed": ({"public": "studytime", "order": "listed", "levels": "<2\r\n2-5\r\n5-10\r\n>10\r\n"},
               "--order '<2,2-5,5-10,>10'"),
    "alphabetical": ({"public": "studytime", "order": "alphabetical", "levels": "<2\n>10"},
                     "--order alphabetical"),
    "declared": ({"public": "studytime", "levels": "<2\n2-5\n5-10\n>10\nnone", "declared": "on"},
                 "--levels '<2,2-5,5-10,>10,none'"),
    "numbers": ({"public": "age", "least": "14", "greatest": " 22 "}, "--range 14 22"),
    "steps": ({"public": "age", "step": "2", "mechanism": "wasserstein"},
              "--step 2 --mechanism wasserstein"),
    "persons": ({"public": "age", "unit": "id"}, "--unit id"),
    "confidence": ({"public": "age", "confidence": "0.9"}, "--confidence 0.9"),
    "missing": ({"public": "romantic", "missing": "?\n", "missing-as-level": "on"},
                "--missing '?' --missing-as-level"),
    "pair": ({"public": "romantic", "missing": "?", "pair": "yes\r\nno",
              "mechanism": "channel (kept)"},
             "--missing '?' --pair yes no --mechanism channel --best-for kept"),
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "student.csv"
    path.write_bytes(student_table())
    return path


@pytest.mark.parametrize("form, options", FORMS.values(), ids=FORMS)
def test_what_is_chosen_is_the_command_that_is_shown(
    session: Session, table: str, inside: list[list[str]], file: Path, form: Any, options: str
):
    form = {"secret": "higher", "epsilon": "0.4"} | form
    found = session.get(f"{table}/preview/all", params=form)
    command = commands(found)[-1]
    given = shlex.split(command)
    assert given[:2] == ["pufferfish", "calibrate"]
    assert given[-2:] == ["--save", "plan.json"]
    asked, name = words(Form(form)), "--mechanism"
    kept = ["--secret", "higher", "--public", form["public"], "--epsilon", "0.4"]
    assert {*shlex.split(options), *kept} == {*asked}
    # Where no mechanism is chosen, the page says which one it is.
    assert given[3:-2] == [*asked, *(given[given.index(name) : -2] if name not in asked else [])]
    page = session.get(table, params=form)
    assert command in commands(page)

    # What the sliders show is what the command says.
    told = run(*given[1:], "--force", "--format", "json")
    assert told.status == 0, told.err
    result = told.data["results"][0]
    rows = re.findall(r'value="([^"]*)" checked> .*?</label></th><td>(.*?)</td>', found.text)
    assert [row[0].partition(" (")[0] for row in rows] == [result["mechanism"]]
    if result["scale"] is not None:
        assert math.isclose(float(rows[0][1]), result["scale"], rel_tol=1e-7)

    # The page runs this command, and gets the same plan.
    plan = session.calibrate(form | {"mechanism": rows[0][0]})
    assert inside[-1][-2:] == ["--format", "json"]
    path = str(session.space.tables[table[8:]].path)
    shown = ["student.csv" if word == path else word for word in inside[-1][:-3]]
    assert [*shown, "plan.json"] == given[1:]
    own = json.loads((file.parent / "plan.json").read_text())
    made = session.get(f"{plan}/plan.json").json()
    assert {k: made[k] for k in own if k != "created"} == {k: own[k] for k in own if k != "created"}


def test_nothing_is_preset(session: Session, table: str):
    page = session.get(table)
    assert page.status_code == 200
    selected = re.findall(r'<option value="([^"]*)" selected', page.text)
    assert [*filter(None, selected)] == []
    assert "Calibrate" not in page.text
    page = session.get(table, params={"secret": "higher", "public": "studytime"})
    assert re.search(r'name="epsilon" value=""', page.text)
    assert re.search(r"disabled>Calibrate</button> <span[^>]*>Choose an epsilon first", page.text)
    assert "from 90 %" not in text(page)
    for lacking in ("secret", "public", "epsilon"):
        form = {"secret": "higher", "public": "studytime", "epsilon": "1"} | {lacking: " "}
        assert "first" in sentence(session.post(f"{table}/calibrate", form))


def test_what_an_epsilon_means(session: Session, table: str):
    form = {"secret": "higher", "public": "age", "epsilon": "0.1"}
    page = text(session.get(f"{table}/preview/offer", params=form))
    for before, after in ((90, 90.9), (50, 52.5)):
        told = f"{before} % certain of one secret rather than another can become at most {after} %"
        assert told in page


def test_previews_are_of_simulated_rows(session: Session, table: str):
    form = {"secret": "higher", "public": "studytime", "epsilon": "1"}
    rows = session.get(f"{table}/preview/rows", params=form)
    assert "These rows are simulated" in " ".join(text(rows).split())
    assert rows.text == session.get(f"{table}/preview/rows", params=form).text
    assert "<svg" in rows.text
    assert "<svg" not in session.get(f"{table}/preview/loss", params=form).text  # of a channel
    loss = session.get(f"{table}/preview/loss", params=form | {"order": "appearance"})
    assert "<svg" in loss.text
    assert "<style" not in loss.text + rows.text


@pytest.mark.parametrize(
    "form, part",
    [
        ({"epsilon": "0x5"}, "epsilon must be a number"),
        ({"secret": "hihger"}, "did you mean 'higher'"),
        ({"public": "higher"}, "higher"),
        ({"public": "age", "least": "16", "greatest": "17"}, "of the distinct values"),
        ({"pair": "x"}, "the pair (x, '')"),
        ({"confidence": "2"}, "confidence"),
        ({"order": "listed", "levels": "<2\n2-5"}, "name every level"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(session: Session, table: str, form: Any, part: str):
    form = {"secret": "higher", "public": "studytime", "epsilon": "1"} | form
    pages = [session.get(table, params=form), session.get(f"{table}/preview/offer", params=form)]
    for page in pages:
        assert page.status_code in (200, 422)
        warnings = re.findall(r'class="warn" role="alert">(.*?)</p>', page.text)
        assert any(part in html.unescape(each).lower() for each in warnings), text(page)
    failed = session.post(f"{table}/calibrate", form)
    if failed.status_code == 303:
        failed = session.finish(failed.headers["location"])
    assert part in text(failed).lower()


def test_a_file_of_this_machine(session: Session, file: Path, monkeypatch: pytest.MonkeyPatch):
    opened = session.post("/tables", {"path": f" {file} "})
    assert opened.status_code == 303
    again = session.post("/tables", {"path": "student.csv"})
    assert again.headers["location"] == opened.headers["location"]
    assert str(file) in text(session.get("/"))
    for path in ("nothing.csv", "", "/dev/zero", str(file.parent), "a\0b", "x" * 5000, "~nobody/x"):
        assert "\n" not in sentence(session.post("/tables", {"path": path}))


def test_the_example_needs_no_file(session: Session):
    assert "37,736" in text(session.get("/"))
    found = session.get("/begin").headers["location"]
    assert session.get("/begin").headers["location"] == found
    form = {"secret": "marital-status", "public": "workclass", "missing": "?"}
    page = text(session.get(found, params=form))
    assert "1402 rows of 37736 set aside" in page


@pytest.mark.parametrize("name, part", [
    ("student.xlsx", "its ending is .xlsx"), ("", "has no ending"), ("x.csv", "binary"),
    ("x.parquet", "damaged"), ("x.json", "damaged"), ("x.csv.gz", "gzip"),
])  # fmt: skip
def test_a_wrong_file(session: Session, name: str, part: str):
    refused = session.post(
        "/upload", params={"name": name}, content=b"\0\xff\xfe wrong", headers=JSON
    )
    assert part in sentence(refused)
    assert str(session.folder) not in refused.text
    assert [*session.folder.iterdir()] == []
