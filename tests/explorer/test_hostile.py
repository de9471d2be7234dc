# SPDX-License-Identifier: Apache-2.0
"""What is sent to hurt: a sentence answers it, and nothing is written but in the temporary folder."""

import asyncio
import gzip
import html
import io
import os
import random
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest

import explorer_cases
from cli_runner import Outcome
from explorer_cases import CHOSEN, JSON, Session, explorer, sentence, student_table, text

#: A cell that is no level and no secret: no sentence, page or log may tell it.
CELL = "cell-4711"
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "</pre>", "' onload='x",
        "</textarea><b>", "&lt;i&gt;", "{% x %}", "javascript:x"]  # fmt: skip
VALUES = [*EVIL, "", " ", "\0", "a\0b", "\ud800", "\r\n", "\x1b[31m", "\u202e", "é" * 300, "x" * 9999, "--help",
          "-", "-o", "--", "../../../etc/passwd", "/etc/passwd", "~", "@x", "file:///etc/passwd", "%00", "%", "all",
          "exact,channel", "channel (", "channel (x)", "channel (/etc/passwd)", "0", "-1", "1e999", "1e-999", "NaN",
          "inf", "1/0", "1/3", "9" * 5000, "１", "0x1", "1,2", "[[[[[", '["a"]', '["yes", "no", "x"]', "null",
          '{"a": 1}', "[" * 5000, "higher", "studytime", "age", "odd", "id", "yes\nno", '"', "a,b", "on"]  # fmt: skip
FORMS: dict[str, dict[str, str]] = {
    "GET table": CHOSEN | {"order": "", "levels": "<2\n>10", "confidence": "0.9", "unit": "", "missing": "?"},
    "GET preview/offer": CHOSEN | {"public": "age", "mechanism": "exact", "least": "0", "greatest": "30"},
    "GET preview/all": CHOSEN | {"pair": '["yes", "no"]', "missing-as-level": "on", "decimal": ","},
    "GET preview/loss": CHOSEN | {"public": "age", "step": "1"},
    "GET preview/rows": CHOSEN | {"mechanism": "channel (kept)", "declared": "on", "levels": "<2"},
    "POST calibrate": CHOSEN | {"order": "listed", "levels": "<2\r\n2-5\r\n5-10\r\n>10", "confidence": ""},
    "POST plan/release": {"number": "1", "ending": ".csv", "round": "on", "least": "0", "greatest": "9"},
    "POST /tables": {"path": "nothing.csv", "delimiter": ";"},
    "POST /upload": {"name": "x.csv", "delimiter": "tab"},
    "POST /upload plan": {"name": "x.json", "table": "1"},
}  # fmt: skip


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Places where something could be written, but nothing may be."""
    made = [tmp_path / name for name in ("cwd", "home", "tmp")]
    for place in made:
        place.mkdir()
    monkeypatch.chdir(made[0])
    monkeypatch.setenv("HOME", str(made[1]))
    monkeypatch.setattr(tempfile, "tempdir", str(made[2]))
    yield
    assert [*map(os.listdir, made)] == [[], [], []]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands fail at once."""

    async def start(*_: Any, **__: Any) -> Any:
        return explorer_cases._Done(Outcome(2, "", "pufferfish: error: no\n"))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)


def mutated(form: dict[str, str], draw: random.Random) -> bytes:
    """A form as it is sent, with some fields changed, more, or lacking, or its bytes broken."""
    fields = [*form.items()]
    for _ in range(draw.randint(1, 3)):
        k = draw.randrange(len(fields) + 1)
        name = draw.choice([*form, *FORMS["GET table"], draw.choice(VALUES)])
        what = draw.randrange(4)
        if what == 0 and fields:
            del fields[k - 1]
        elif what == 1 or k == len(fields):
            fields.insert(k, (name, draw.choice(VALUES)))
        else:
            fields[k] = (fields[k][0], draw.choice(VALUES))
    sent = bytearray(urlencode([(n, v) for n, v in fields], errors="surrogatepass").encode())
    if draw.random() < 0.2 and sent:
        for _ in range(draw.randint(1, 4)):
            sent[draw.randrange(len(sent))] = draw.randrange(256)
    return bytes(sent)


def send(session: Session, kind: str, sent: bytes) -> httpx.Response:
    method, _, where = kind.partition(" ")
    place = session.plan if where.startswith("plan/") else session.table
    address = where if where.startswith("/") else f"{place}/{where.removeprefix('plan/')}"
    address = address.removesuffix("/table").removesuffix(" plan")
    url = httpx.URL(session.own + address)
    if method == "POST" and "upload" not in address:
        return session.post(address, content=sent)
    url = url.copy_with(query=quote(sent, safe="=&%+").encode())
    return session.ask(method, url, content=student_table(4) if method == "POST" else None)


class Inert(HTMLParser):
    """Checks that a page has no element or attribute that runs, or loads, anything."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag not in ("img", "iframe", "object", "base", "style", "b", "i"), tag
        assert tag != "script" or given == {"src": "/static/explorer.js", "defer": None}
        for name, value in given.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "action", "formaction"):
                assert (value or "x")[0] in "/#" or value in ("data:,", "?"), value


def check_inert(page: httpx.Response) -> None:
    if page.headers.get("content-type", "").startswith("text/html"):
        Inert().feed(page.text)


def check_mutations(session: Session, kind: str, number: int, seed: int = 14) -> None:
    draw = random.Random(f"{kind} {seed}")
    for k in range(number):
        sent = mutated(FORMS[kind], draw)
        answer = send(session, kind, sent)
        assert answer.status_code < 500, (k, sent, text(answer))
        check_inert(answer)
        if answer.status_code >= 400:
            told = " ".join(text(answer).split())
            # The part "loss" leaves it to the others to say what is wrong.
            assert len(told) > 10 or "loss" in kind, sent
            assert CELL not in told
            assert str(session.folder) not in told, (sent, told)


@pytest.fixture
def opened(session: Session, inside: Any, places: None) -> Session:
    """A session with a table that has a column of numbers and a text, and a plan."""
    lines = student_table(24).decode().splitlines()
    odd = ["odd", *(CELL if k == 7 else str(k % 3) for k in range(24))]
    content = "\n".join(f"{line},{cell}" for line, cell in zip(lines, odd, strict=True))
    session.upload(content.encode(), name="student.csv")
    session.calibrate(CHOSEN)
    return session


@pytest.mark.parametrize("kind", FORMS)
def test_mutations_of_each_form(
    opened: Session, kind: str, failing: None, capsys: pytest.CaptureFixture[str]
):
    check_mutations(opened, kind, 40)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMS)
def test_a_thousand_mutations_of_each_form(
    opened: Session, kind: str, failing: None, capsys: pytest.CaptureFixture[str]
):
    check_mutations(opened, kind, 1000, seed=15)
    assert capsys.readouterr().err == ""


def upload(session: Session, content: bytes, **asked: str) -> str:
    refused = session.post("/upload", params=asked, content=content, headers=JSON)
    return sentence(refused) if refused.status_code != 200 else ""


@pytest.mark.parametrize("name", [
    "../../x.csv", "/etc/x.csv", "..\\x.csv", "a\0.csv", ".csv", "x.csv/", "%2e%2e%2fx.csv", "\ud800.csv",
    "x" * 5000 + ".csv", "$(touch x).csv", "; rm -rf ~ #.csv", "-o.csv", "con.csv", "\n.csv",
])  # fmt: skip
def test_names_of_uploads_are_no_paths(session: Session, places: None, name: str):
    query = urlencode({"name": name}, errors="surrogatepass").encode()
    url = httpx.URL(session.own + "/upload").copy_with(query=query)
    answer = session.ask("POST", url, content=student_table())
    assert answer.status_code in (200, 422)
    if answer.status_code == 200:
        page = session.get("/")
        check_inert(page)
        assert [path.name for path in session.folder.iterdir()] == ["file-1.csv"]
    else:
        sentence(answer)
        assert [*session.folder.iterdir()] == []


@pytest.mark.parametrize("address", [
    "/static/../guard.py", "/static/..%2f..%2fguard.py", "/static//etc/passwd", "/static/%00", "/static/",
    "/plans/PLAN/report/..%2fguard.py", "/plans/PLAN/%2fetc%2fpasswd", "/plans/PLAN/plan.json%00",
    "/plans/PLAN/releases/..%2f1", "/plans/..%2f..", "/tables/%2e%2e/preview/offer", "/jobs/-1", "/" + "x" * 9999,
    "/tables/1/preview/__class__", "/static/explorer.js%00.html", "/static/..%5c..%5cguard.py",
])  # fmt: skip
def test_addresses_are_no_paths(opened: Session, address: str):
    url = opened.own + address.replace("/plans/PLAN", opened.plan)
    answer = opened.get(url)
    assert answer.status_code in (404, 405), text(answer)
    assert len(text(answer)) > 5
    assert "class Guard" not in answer.text


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["a", "b"] * 50, "x": [*range(100)]}), sink)
    return sink.getvalue()


def test_broken_bytes(session: Session, places: None, capsys: pytest.CaptureFixture[str]):
    draw, packed = random.Random(14), gzip.compress(student_table())
    whole = {"x.csv": student_table(), "x.csv.gz": packed, "x.parquet": parquet(),
             "x.json": b'[{"s": "a", "x": 1}, {"s": "b", "x": 2}]', "x.ndjson": b'{"s": "a", "x": 1}\n' * 9}  # fmt: skip
    for name, content in whole.items():
        for _ in range(12):
            broken = bytearray(
                content[: draw.randrange(len(content)) if draw.random() < 0.4 else None]
            )
            for _ in range(draw.randrange(4)):
                broken[draw.randrange(len(broken)) :][:0] = b""
                if broken:
                    broken[draw.randrange(len(broken))] = draw.randrange(256)
            asked = {"name": name}
            answer = session.post("/upload", params=asked, content=bytes(broken), headers=JSON)
            assert answer.status_code in (200, 422), answer.text
            if answer.status_code == 422:
                assert str(session.folder) not in sentence(answer)
                continue
            table = answer.json()["location"]
            for form in (CHOSEN, {"secret": "s", "public": "x", "epsilon": "1"}):
                assert session.get(table, params=form).status_code in (200, 422)
    for content in (
        b"",
        b"\0",
        b"a" * 70_000,
        b"a,a\n1,2\n",
        b"[" * 100_000,
        b"\xef\xbb\xbf",
        b"\n\n\n",
        b'"',
    ):
        for name in whole:
            upload(session, content, name=name)
    assert len([*session.folder.iterdir()]) == len(session.space.tables)
    assert capsys.readouterr().err == ""


def test_what_a_table_is_called_runs_nowhere(session: Session, places: None):
    import csv

    sink = io.StringIO()
    rows = csv.writer(sink)
    rows.writerow(EVIL[:3])
    draw = random.Random(1)
    rows.writerows(
        [
            [EVIL[draw.random() < 0.4], EVIL[draw.randrange(9)], draw.randrange(4)]
            for _ in range(300)
        ]
    )
    session.upload(sink.getvalue().encode(), name=f"{EVIL[0]}{EVIL[1]}{{{{7*7}}}}.csv")
    form = {
        "secret": EVIL[0],
        "public": EVIL[1],
        "epsilon": "0.5",
        "missing": "</textarea><script>",
    }
    parts = [f"{session.table}/preview/{part}" for part in ("offer", "all", "rows", "loss")]
    pages = [session.get(each, params=form) for each in (session.table, *parts, "/")]
    ordered = form | {"order": "alphabetical", "mechanism": "exact"}
    pages += [session.get(each, params=ordered) for each in (session.table, *parts)]
    plan = session.calibrate(form)
    pages += [
        session.get(plan),
        session.job(f"{plan}/release", {"number": "1", "allow-unchanged": "on"}),
    ]
    pages += [
        session.job(f"{plan}/verify"),
        session.job(f"{session.table}/calibrate", form | {"epsilon": EVIL[1]}),
    ]
    pages += [session.get(session.table, params={name: value for name in form}) for value in EVIL]
    pages += [session.post("/tables", {"path": value}) for value in EVIL]
    pages += [session.get(session.table, params=form | {"pair": EVIL[0]})]
    for page in pages:
        assert page.status_code in (200, 422), text(page)
        assert page.headers["content-type"].startswith("text/html")
        check_inert(page)
    shown = html.unescape(pages[0].text)
    assert all(name in shown for name in EVIL)
