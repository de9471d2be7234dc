# SPDX-License-Identifier: Apache-2.0
"""A plan in the explorer: calibrated, verified, released and charged, each by its command."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_runner import run
from explorer_cases import CHOSEN, JSON, LOOP, Session, commands, sentence, student_table, text
from pufferfish.explorer import workspace
from pufferfish.explorer.workspace import OpenTable

NUMBERS = {"secret": "higher", "public": "age", "epsilon": "0.4"}
START = asyncio.create_subprocess_exec


@pytest.fixture
def plan(session: Session, table: str, inside: Any) -> str:
    return session.calibrate(CHOSEN)


def saved(session: Session, folder: Path, *addresses: str) -> list[Path]:
    """Download files."""
    found = []
    for address in addresses:
        answer = session.get(address)
        assert answer.status_code == 200
        name = re.findall(r'attachment; filename="?([^"]*)', answer.headers["content-disposition"])
        found.append(folder / name[0])
        found[-1].write_bytes(answer.content)
    return found


def test_what_is_released_verifies_and_estimates(session: Session, plan: str, tmp_path: Path):
    page = session.get(plan)
    assert "pufferfish calibrate student.csv --secret higher" in commands(page)[0]
    shown = ["verify plan.json student.csv", "release student.csv --plan plan.json -o OUT.csv",
             "report plan.json student.csv -o report.html"]  # fmt: skip
    assert {f"pufferfish {each}" for each in shown} < {*commands(page)}
    page = session.job(f"{plan}/release", {"number": "1"})
    assert page.url.path == plan
    name = "studytime-released-1.csv"
    assert f"pufferfish release student.csv --plan plan.json -o {name}" in commands(page)
    assert str(session.folder) not in page.text
    files = ("plan.json", "report/private", "report/public", "releases/1")
    own, report, public, released = saved(session, tmp_path, *(f"{plan}/{file}" for file in files))
    table = tmp_path / "student.csv"
    table.write_bytes(student_table())
    assert run("verify", own, table).status == 0
    assert released.name == name
    assert released.read_text().count("\n") == 121
    assert run("estimate", released, "--plan", own).status == 0
    made = tmp_path / "made.html"  # reports are those of the command line
    for path, more in ((report, table), (public, "--public")):
        assert run("report", own, more, "-o", made, "--force").status == 0
        assert made.read_text().replace(f"{tmp_path}/", "") == path.read_text()


def test_another_draw_is_asked_for_by_its_number(session: Session, plan: str, inside: Any):
    release = f"{plan}/release"
    for number in ("0", "2", "", "x", "-1", "01"):
        assert "look before another draw" in sentence(session.post(release, {"number": number}))
    assert session.post(release).status_code == 409
    page = session.job(release, {"number": "1"})
    assert "Another draw is another release" in page.text
    assert re.search('name="again"[^>]* required>', page.text)
    assert session.post(release, {"number": "1"}).status_code == 409  # from another tab
    assert "tick that you want one" in sentence(session.post(release, {"number": "2"}))
    page = session.job(release, {"number": "2", "again": "on"})
    names = re.findall(r"<h3>(.*?)</h3>", page.text)
    assert names == ["studytime-released-1.csv", "studytime-released-2.csv"]
    assert session.get(f"{plan}/releases/2").content[:9] == b"studytime"
    assert session.get(f"{plan}/releases/3").status_code == 404
    assert len([words for words in inside if words[0] == "release"]) == 2


def check_one_release(session: Session, plan: str, inside: Any) -> None:
    form = (f"{plan}/release", {"number": "1"})
    answers = session.together(form, form, form)
    assert sorted(answer.status_code for answer in answers) == [303, 409, 409]
    for answer in answers:
        if answer.status_code == 303:
            session.finish(answer.headers["location"])
    assert [words[0] for words in inside].count("release") == 1


def test_two_plans_of_a_table_are_not_released_at_once(session: Session, plan: str, inside: Any):
    other = session.calibrate(CHOSEN | {"epsilon": "0.1"})
    first, second = (session.post(f"{each}/release", {"number": "1"}) for each in (plan, other))
    assert first.status_code == 303
    assert second.status_code in (409, 422)  # it runs, or is done and must be ticked


def test_releases_at_the_same_time_are_one_release_and_a_mutant_is_caught(
    session: Session, plan: str, inside: Any, monkeypatch: pytest.MonkeyPatch
):
    check_one_release(session, plan, inside)
    forgetful = property(lambda _: None, lambda *_: None)
    monkeypatch.setattr(OpenTable, "releasing", forgetful, raising=False)
    with pytest.raises(AssertionError):
        check_one_release(session, plan, inside)


def test_noise_is_rounded_and_bounded_as_asked(session: Session, table: str, inside: Any):
    release = session.calibrate(NUMBERS) + "/release"
    form = {"number": "1", "round": "on", "least": "15", "greatest": "20"}
    page = session.job(release, form)
    assert any("--round --bounds 15 20 -o age-" in command for command in commands(page))
    cells = session.get(f"{session.plan}/releases/1").text.splitlines()[1:]
    assert {*cells} <= {*map(str, range(15, 21))}
    again = {"number": "2", "again": "on", "least": "9", "greatest": "x"}
    assert "'x'" in text(session.job(release, again))
    assert "released-2" not in session.get(session.plan).text


def test_what_is_published_unchanged_is_asked_for(session: Session, table: str, inside: Any):
    release = session.calibrate(CHOSEN | {"epsilon": "20"}) + "/release"
    page = session.get(session.plan).text
    assert re.search('name="allow-unchanged"[^>]* required> Publish the column unchanged', page)
    assert "--allow-unchanged" in text(session.job(release, {"number": "1"}))
    page = session.job(release, {"number": "1", "allow-unchanged": "on"})
    assert "released-1.csv" in page.text


def test_a_ledger_is_charged_until_its_budget_is_spent(tmp_path: Path, inside: Any):
    books, file, folder = tmp_path / "books", tmp_path / "student.csv", tmp_path / "session"
    file.write_bytes(student_table())
    folder.mkdir()
    asked = ("--dataset", "students", file, "--secret", "higher", "--budget", "0.6")
    assert run("ledger", "open", books, *asked).status == 0
    session = Session(folder, ledger=books)
    session.table = session.post("/tables", {"path": str(file)}).headers["location"]
    release = session.calibrate(NUMBERS) + "/release"
    assert f"It is charged to the ledger {books}." in session.get(session.plan).text
    page = session.job(release, {"number": "1"})
    assert any(f"--ledger {books}" in command for command in commands(page))
    spent = run("ledger", "show", books, "--format", "json").data
    assert len(spent["releases"]) == 1
    assert "budget" in text(session.job(release, {"number": "2", "again": "on"}))
    assert session.get(f"{session.plan}/releases/2").status_code == 404
    assert run("ledger", "show", books, "--format", "json").data == spent


def test_a_plan_is_loaded(session: Session, plan: str, inside: Any):
    content = session.get(f"{plan}/plan.json").content
    key = session.table.rpartition("/")[2]
    loaded = session.upload(content, name="my plan.json", table=key)
    assert "verified when it was loaded" in session.get(loaded).text
    assert "released-1.csv" in session.job(f"{loaded}/release", {"number": "1"}).text
    # It is another draw all the same if another plan has released this table.
    assert "tick that you want one" in sentence(session.post(f"{plan}/release", {"number": "1"}))

    first = key
    session.upload(student_table().replace(b"studytime", b"days"), name="other.csv")
    key = session.table.rpartition("/")[2]
    edited = json.loads(content) | {"epsilon": "0.001"}
    wrong = [(each, key) for each in (b"{}", b"[" * 99_999, b"\xff", b"", b'{"format": NaN}')]
    wrong += [(content, "99"), (content, key), (json.dumps(edited).encode(), first)]
    for sent, table in wrong:
        asked = {"name": "plan.json", "table": table}
        refused = session.post("/upload", params=asked, content=sent, headers=JSON)
        assert str(session.folder) not in sentence(refused)


# From here on, commands are processes.


@contextlib.contextmanager
def sleeping(monkeypatch: pytest.MonkeyPatch, more: str = "pass") -> Iterator[list[Any]]:
    """Commands that take 20 seconds, and the processes that they are."""
    started: list[Any] = []

    async def start(*words: Any, **options: Any) -> Any:
        code = f"import signal, time; {more}; time.sleep(20)"
        started.append(await START(*words[:3], code, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    try:
        yield started
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        LOOP.run_until_complete(asyncio.sleep(0.1))


def alive(process: Any) -> bool:
    return process.returncode is None and Path(f"/proc/{process.pid}").exists()


def running(started: list[Any], number: int = 1) -> None:
    """Wait until as many processes run."""
    while len(started) < number:
        LOOP.run_until_complete(asyncio.sleep(0.01))
    LOOP.run_until_complete(asyncio.sleep(0.3))  # now they have said what they do with signals


@pytest.mark.parametrize("more", ["pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_cancelled_command_ends_and_leaves_nothing(
    session: Session, table: str, monkeypatch: pytest.MonkeyPatch, more: str
):
    monkeypatch.setattr(workspace, "_PATIENCE", 0.3)
    before = [*session.folder.iterdir()]
    with sleeping(monkeypatch, more) as started:
        job = session.post(f"{table}/calibrate", CHOSEN).headers["location"]
        running(started)
        assert "It runs" in session.get(job).text
        assert alive(started[0])
        began = time.monotonic()
        assert session.post(f"{job}/cancel").headers["location"] == job
        assert not alive(started[0])
        assert time.monotonic() < began + 10
    assert session.get(job, headers=JSON).json()["state"] == "cancelled"
    page = session.get(job)
    assert "Cancelled" in page.text
    assert f'href="{table}?' in page.text
    assert "epsilon=0.5" in page.text
    assert "/plans/" not in session.get("/").text
    assert [*session.folder.iterdir()] == before
    assert session.post(f"{job}/cancel").status_code == 303  # again: nothing happens


def test_a_command_is_cancelled_before_it_has_started(
    session: Session, table: str, monkeypatch: pytest.MonkeyPatch
):
    async def both() -> None:
        own = {"origin": session.own}
        made = await session.client.post(f"{table}/calibrate", data=CHOSEN, headers=own)
        await session.client.post(made.headers["location"] + "/cancel", headers=own)
        await asyncio.sleep(0.3)

    with sleeping(monkeypatch) as started:
        LOOP.run_until_complete(both())
        assert session.get("/jobs/1", headers=JSON).json()["state"] == "cancelled"
        assert not any(map(alive, started))


def test_at_most_two_commands_run_at_once(
    session: Session, plan: str, monkeypatch: pytest.MonkeyPatch
):
    calibrate, form = f"{session.table}/calibrate", CHOSEN | {"number": "1"}
    with sleeping(monkeypatch) as started:
        found = [session.post(calibrate, CHOSEN) for _ in range(2)]
        running(started, 2)
        for address in (calibrate, f"{plan}/release"):
            assert "2 commands run already" in sentence(session.post(address, form))
        assert len(started) == 2
        for each in found:
            session.post(each.headers["location"] + "/cancel")
        # What was refused is no release that has begun.
        assert session.post(f"{plan}/release", {"number": "1"}).status_code == 303


@pytest.mark.parametrize("form", [
    {"secret": "a\0b"}, {"missing": "x" * 200_000},
    {"order": "listed", "levels": "yyyyyyyy\n" * 16_000},
])  # fmt: skip
def test_a_command_that_cannot_be_started_has_failed(session: Session, table: str, form: Any):
    failed = session.job(f"{table}/calibrate", CHOSEN | form)
    assert "This did not work" in failed.text
    assert len(text(failed).partition("This did not work")[2].split()) > 8
