# SPDX-License-Identifier: Apache-2.0
"""What is sent to hurt: a sentence answers it, and it is written in the temporary folder alone."""

import asyncio
import csv
import gzip
import html
import io
import os
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explorer_cases import CHOSEN, JSON, Done, Session, sentence, student_table, text
from html_reader import Html
from pufferfish.explorer import pages
from pufferfish.explorer.workspace import Workspace

#: A cell that is no level and no secret: no sentence, page or log may tell it.
CELL = "cell-4711"
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "</pre>",
        "' onload='x", "</textarea><b>", "&lt;i&gt;", "{% x %}", "javascript:x"]  # fmt: skip
VALUES = [
    *EVIL, *"~-%0\0\"", "", " ", "a\0b", "\ud800", "\r\n", "\x1b[31m", "\u202e", "é" * 300,
    "x" * 9999, "--help", "-o", "--", "../../../etc/passwd", "/etc/passwd", "@x", "file:///x",
    "%00", "all", "exact,channel", "channel (", "channel (x)", "channel (/etc/passwd)", "-1",
    "1e999", "1e-999", "NaN", "inf", "1/0", "1/3", "9" * 5000, "\uff11", "0x1", "1,2", "[" * 5000,
    '["a"]', '["yes", "no", "x"]', "null", '{"a": 1}', "higher", "studytime", "age", "odd", "id",
    "yes\nno", "a,b", "on",
]  # fmt: skip
LEVELS = {"order": "listed", "levels": "<2\r\n2-5\r\n5-10\r\n>10"}
FORMS: dict[str, dict[str, str]] = {
    "GET table": CHOSEN | LEVELS | {"confidence": "0.9", "unit": "", "missing": "?"},
    "GET preview/offer": CHOSEN | {"public": "age", "least": "0", "greatest": "30"},
    "GET preview/all": CHOSEN | {"pair": "yes\nno", "missing-as-level": "", "decimal": ","},
    "GET preview/loss": CHOSEN | {"public": "age", "step": "1"},
    "GET preview/rows": CHOSEN | {"mechanism": "channel (kept)", "declared": "on", "levels": "<2"},
    "POST calibrate": CHOSEN | LEVELS | {"confidence": ""},
    "POST release": {"number": "1", "ending": ".csv", "round": "on", "least": "0", "greatest": "9"},
    "POST /tables": {"path": "nothing.csv"},
    "POST /upload": {"name": "x.csv"},
    "POST /upload?": {"name": "x.json", "table": "1"},
}


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
def opened(session: Session, inside: Any, places: None) -> Session:
    """A session with a table, one of whose columns has numbers and a text, and a plan."""
    odd = ["odd", *(CELL if k == 7 else str(k % 3) for k in range(24))]
    lines = zip(student_table(24).decode().splitlines(), odd, strict=True)
    session.upload("\n".join(map(",".join, lines)).encode(), name="student.csv")
    session.calibrate(CHOSEN)
    return session


def check_inert(page: httpx.Response) -> None:
    """Check that a page has no element or attribute that runs, or loads, anything."""
    if not page.headers.get("content-type", "").startswith("text/html"):
        return
    found = Html(page.text)
    assert not found.tags & {"img", "iframe", "object", "base", "style", "b", "i"}
    for tag, given in found.elements:
        assert tag != "script" or given == {"src": "/static/explorer.js", "defer": None}
        assert not any(name.startswith("on") for name in given), (tag, given)
    for value in found.values("href", "src", "action", "formaction"):
        assert (value or "x")[0] in "/#" or value in ("data:,", "?"), value


def mutated(form: dict[str, str], draw: random.Random) -> bytes:
    """A form as it is sent, with fields changed, more, or lacking, or its bytes broken."""
    fields = [*form.items()]
    for _ in range(draw.randint(1, 3)):
        k, what = draw.randrange(len(fields) + 1), draw.randrange(4)
        if what == 0 and fields:
            del fields[k - 1]
        elif what == 1 or k == len(fields):
            name = draw.choice([*form, *FORMS["GET table"], draw.choice(VALUES)])
            fields.insert(k, (name, draw.choice(VALUES)))
        else:
            fields[k] = (fields[k][0], draw.choice(VALUES))
    return broken(urlencode(fields, errors="surrogatepass").encode(), draw, 0.2)


def broken(sent: bytes, draw: random.Random, chance: float) -> bytes:
    changed = bytearray(sent)
    if changed and draw.random() < chance:
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def send(session: Session, kind: str, sent: bytes) -> httpx.Response:
    method, where = kind.split()
    place = session.plan if where == "release" else session.table
    address = where.rstrip("?") if where.startswith("/") else f"{place}/{where}"
    url = httpx.URL(session.own + address.removesuffix("/table"))
    if method == "POST" and "upload" not in kind:
        return session.post(str(url), content=sent)
    url = url.copy_with(query=quote(sent, safe="=&%+").encode())
    return session.ask(method, url, content=student_table(4) if method == "POST" else None)


def check_mutations(session: Session, kind: str, number: int) -> None:
    draw = random.Random(kind)
    for _ in range(number):
        sent = mutated(FORMS[kind], draw)
        answer = send(session, kind, sent)
        assert answer.status_code < 500, (sent, text(answer))
        check_inert(answer)
        if answer.status_code >= 400:
            told = " ".join(text(answer).split())
            # The part "loss" leaves it to the others to say what is wrong.
            assert len(told) > 10 or "loss" in kind, sent
            assert CELL not in told or b"secret=odd" in sent
            assert str(session.folder) not in told, (sent, told)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("number", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutations_of_each_form(
    opened: Session, kind: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    async def failing(*_: Any, **__: Any) -> Any:
        return Done(2, "", "pufferfish: error: no\n")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", failing)
    check_mutations(opened, kind, number)
    assert capsys.readouterr().err == ""


def check_limit(session: Session) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b"higher,studytime\n"
        for _ in range(100):
            sent += 1
            yield b"yes,<2\n" * 30_000

    asked: Any = {"params": {"name": "x.csv"}, "headers": JSON}
    told = sentence(session.ask("POST", "/upload", content=chunks(), **asked))
    assert "the file is larger than 1 MB" in told
    assert sent < 25  # what is much too large is not read to its end
    assert [*session.folder.iterdir()] == []


def test_an_upload_that_is_too_large_is_not_kept(session: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(pages.UPLOADS, "table", 1)
    assert "at most 1 MB" in session.get("/").text
    check_limit(session)


def test_mutant_of_the_limit_is_caught(session: Session, monkeypatch: pytest.MonkeyPatch):
    async def unlimited(_: Any, chunks: AsyncIterator[bytes], path: Path, __: int) -> None:
        path.write_bytes(b"".join([chunk async for chunk in chunks]))

    monkeypatch.setattr(Workspace, "receive", unlimited)
    with pytest.raises(AssertionError):
        check_limit(session)


def test_a_form_that_is_too_large(session: Session, table: str):
    answer = session.post(f"{table}/calibrate", content=b"x=" + b"y" * 300_000)
    assert answer.status_code == 413
    assert "at most 262,144 bytes" in sentence(answer)


@pytest.mark.parametrize("name", [
    "../../x.csv", "/etc/x.csv", "..\\x.csv", "a\0.csv", ".csv", "x.csv/", "%2e%2e%2fx.csv", "con",
    "\ud800.csv", "x" * 5000 + ".csv", "$(touch x).csv", "; touch x #.csv", "-o.csv", "\n.csv",
])  # fmt: skip
def test_names_of_uploads_are_no_paths(session: Session, places: None, name: str):
    query = urlencode({"name": name}, errors="surrogatepass").encode()
    url = httpx.URL(session.own + "/upload").copy_with(query=query)
    answer = session.ask("POST", url, content=student_table())
    kept = [path.name for path in session.folder.iterdir()]
    assert (answer.status_code, kept) in [(200, ["1-file.csv"]), (422, [])]
    check_inert(session.get("/"))


@pytest.mark.parametrize("address", [
    "/" + "x" * 9999, "/static", "/%00", "/..%2f..%2fguard.py",
    "/plans/P/report/..%2fguard.py", "/plans/P/%2fetc%2fpasswd", "/plans/P/plan.json%00",
    "/plans/P/releases/..%2f1", "/plans/..%2f..", "/tables/%2e%2e/preview/offer", "/jobs/-1",
    "/tables/1/preview/__class__",
])  # fmt: skip
def test_addresses_are_no_paths(opened: Session, address: str):
    answer = opened.get(opened.own + address.replace("/plans/P", opened.plan))
    assert answer.status_code == 404
    assert len(text(answer)) > 5


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["a", "b"] * 50, "x": [*range(100)]}), sink)
    return sink.getvalue()


def test_broken_bytes(session: Session, places: None, capsys: pytest.CaptureFixture[str]):
    draw = random.Random(14)
    whole = {
        "x.csv": student_table(), "x.csv.gz": gzip.compress(student_table()),
        "x.json": b'[{"s": "a", "x": 1}, {"s": "b", "x": 2}]', "x.parquet": parquet(),
        "x.ndjson": b'{"s": "a", "x": 1}\n' * 9,
    }  # fmt: skip
    odd = [b"", b"\0", b"a" * 70_000, b"a,a\n1,2\n", b"[" * 100_000, b"\xef\xbb\xbf", b"\n\n", b'"']
    for name, content in whole.items():
        cut = [content[: draw.randrange(len(content))] for _ in range(2)]
        for sent in [*odd, *(broken(each, draw, 0.8) for each in [content] * 4 + cut)]:
            answer = session.post("/upload", params={"name": name}, content=sent, headers=JSON)
            if answer.status_code == 422:
                assert str(session.folder) not in sentence(answer)
                continue
            assert answer.status_code == 200, answer.text
            form = CHOSEN if "csv" in name else {"secret": "s", "public": "x"}
            page = session.get(answer.json()["location"], params=form)
            assert page.status_code in (200, 422)
    assert len([*session.folder.iterdir()]) == len(session.space.tables)
    assert capsys.readouterr().err == ""


def test_what_a_table_is_called_runs_nowhere(session: Session, inside: Any, places: None):
    draw, sink = random.Random(1), io.StringIO()
    rows = csv.writer(sink)
    rows.writerow(EVIL[:3])
    rows.writerows([EVIL[draw.random() < 0.4], EVIL[k % 9], k % 4] for k in range(300))
    session.upload(sink.getvalue().encode(), name=f"{EVIL[0]}{EVIL[1]}{EVIL[2]}.csv")
    form = {"secret": EVIL[0], "public": EVIL[1], "epsilon": "0.5", "missing": "</textarea><b>x"}
    ordered = form | {"order": "alphabetical", "mechanism": "exact"}
    places_ = [session.table, *(f"{session.table}/preview/{p}" for p in ("all", "rows", "loss"))]
    shown = [session.get(each, params=asked) for asked in (form, ordered) for each in places_]
    first = html.unescape(shown[0].text)
    assert all(name in first for name in EVIL)
    plan = session.calibrate(form)
    shown += [session.get(plan), session.get("/"), session.job(f"{plan}/verify")]
    shown += [session.job(f"{plan}/release", {"number": "1", "allow-unchanged": "on"})]
    shown += [session.job(f"{session.table}/calibrate", form | {"epsilon": EVIL[1]})]
    shown += [session.get(session.table, params=dict.fromkeys(form, value)) for value in EVIL]
    shown += [session.post("/tables", {"path": value}) for value in EVIL]
    for page in shown:
        assert page.status_code in (200, 422), text(page)
        assert page.headers["content-type"].startswith("text/html")
        check_inert(page)


def test_a_level_with_half_a_line_end_is_refused(session: Session, table: str):
    form = CHOSEN | {"order": "listed", "levels": "p\rx\nq"}
    answer = session.get(table, params=form)
    assert answer.status_code == 422
    assert "fault of pufferfish" not in answer.text


def test_a_pair_brings_no_option_of_its_own(session: Session, table: str, tmp_path: Path):
    target = tmp_path / "evil.html"
    for pair in (f"yes\nno\n--report\n{target}\n--force", "yes\nno\n--help"):
        offer = session.get(f"{table}/preview/offer", params=CHOSEN | {"pair": pair})
        assert "--report" not in offer.text
        answer = session.post(f"{table}/calibrate", CHOSEN | {"pair": pair})
        assert answer.status_code in (303, 422)
    assert not target.exists()


def test_a_link_to_a_table_is_the_table(session: Session, tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(student_table())
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    found = {
        session.post("/tables", {"path": str(tmp_path / name)}).headers["location"]
        for name in ("t.csv", "link.csv")
    }
    assert len(found) == 1
