# SPDX-License-Identifier: Apache-2.0
"""Who may ask the explorer, what its answers allow a page, and a mutant of each guarantee.

A mutant is a guard that is deceived: what it should look at is mended before it looks, or what it
should add is taken away afterwards.
"""

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from explorer_cases import CHOSEN, OWN, PORT, Session, explorer, sentence, student_table, text
from pufferfish.explorer.guard import Guard
from pufferfish.explorer.workspace import Workspace

HOSTS = ["localhost:8123", "127.0.0.1", "127.0.0.1:8124", "evil.example:8123", "[::1]:8123", "",
         "127.0.0.1.evil.example:8123", "127.0.0.1:8123@evil.example", "0.0.0.0:8123"]  # fmt: skip
ORIGINS = [None, "null", "", "http://evil.example", "http://localhost:8123", "https://127.0.0.1:8123",
           "http://127.0.0.1:8124", OWN + "/", OWN + ".evil.example", f"{OWN}, {OWN}"]  # fmt: skip
COOKIES = ["", "pufferfish-8123=", "pufferfish-8123=wrong", "pufferfish-8123=é", ";=;\x7f",
           "pufferfish={0}", "pufferfish-8124={0}", "pufferfish-8123={1}",
           "pufferfish-8123={2}"]  # fmt: skip
EXPECTED = {
    "x-content-type-options": "nosniff", "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
}  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return used(Session(tmp_path_factory.mktemp("session")))


def used(session: Session) -> Session:
    """A session in which a table was released."""
    session.upload(student_table(), name="student.csv")
    released = session.job(f"{session.calibrate(CHOSEN)}/release", {"number": "1"})
    assert "released-1.csv" in released.text, text(released)
    return session


def state(session: Session) -> tuple[object, ...]:
    space = session.space
    files = sorted(path.name for path in session.folder.iterdir())
    releases = [len(plan.releases) for plan in space.plans.values()]
    return [*space.tables], [*space.plans], [*space.jobs], releases, files


def check_refused(session: Session, headers: Any, posts: bool = False) -> None:
    """Check that no address is answered for these headers, and that nothing is done."""
    before = state(session)
    for method, address in [*session.routes, ("GET", "/nothing"), ("GET", "/?token=wrong")]:
        if method == "POST" or not posts:
            request = session.client.build_request(method, session.own + address, content=b"x=1")
            request.headers = type(request.headers)([*headers(request), ("content-length", "3")])
            found = session.send(request)
            assert found.status_code == 403, (method, address, headers)
            assert 10 < len(found.text) < 100
            assert "\n" not in found.text
    assert state(session) == before


def token_of(guard: Guard) -> str:
    return guard.address().partition("=")[2]


def cookie(session: Session) -> str:
    return "; ".join(f"{name}={value}" for name, value in session.client.cookies.items())


def check_hosts(session: Session) -> None:
    rest = [("origin", session.own), ("cookie", cookie(session))]
    for host in HOSTS:
        check_refused(session, lambda _, h=host: [("host", h), *rest])
    check_refused(session, lambda _: rest)
    both = [("host", session.own[7:]), ("host", "evil.example")]
    check_refused(session, lambda _: [*both, *rest])
    check_refused(session, lambda _: [*both[::-1], *rest])


def check_origins(session: Session) -> None:
    rest = [("host", session.own[7:]), ("cookie", cookie(session))]
    for origin in ORIGINS:
        own = [] if origin is None else [("origin", origin)]
        check_refused(session, lambda _, o=own: [*o, *rest], posts=origin is None)
    for pair in ([session.own, "null"], ["http://evil.example", session.own]):
        check_refused(session, lambda _, p=pair: [*(("origin", each) for each in p), *rest])


def check_token(session: Session) -> None:
    token = token_of(session.guard)
    rest = [("host", session.own[7:]), ("origin", session.own)]
    for given in COOKIES:
        line = given.format(token, token[:-1], token.lower())
        check_refused(session, lambda _, c=line: [*rest, ("cookie", c.encode("latin-1"))])
    check_refused(session, lambda _: rest)


def check_entering(session: Session) -> None:
    """Check that the token is in the printed address, then in the cookie, and nowhere else."""
    entered = session.get(session.guard.address())
    token = token_of(session.guard)
    assert len(token) >= 32
    value, *flags = entered.headers["set-cookie"].split("; ")
    assert value == f"pufferfish-{urlsplit(session.own).port}={token}"
    assert sorted(flag.lower() for flag in flags) == ["httponly", "path=/", "samesite=strict"]
    assert (entered.status_code, entered.headers["location"], entered.text) == (303, "/", "")
    for method, address in session.routes:
        if method == "GET":
            found = session.get(address)
            assert token not in found.text + str(found.headers.multi_items()) + str(found.url)


def check_headers(session: Session) -> None:
    """Check what every answer says of itself: pages, errors, files, and what goes elsewhere."""
    table, plan, foreign = session.table, session.plan, {"origin": "null"}
    others = ("/nothing", "/tables/99", f"{table}?secret=x&public=y",
              f"{plan}/nothing", session.guard.address())  # fmt: skip
    answers = [session.get(address) for method, address in session.routes if method == "GET"]
    answers += [session.get(address) for address in others]
    answers += [session.post(each) for each in ("/", f"{table}/calibrate", f"{plan}/release")]
    answers += [session.post("/tables", headers=foreign), session.get("/", headers={"host": "x"})]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "begin", lambda _: 1 // 0)
        answers.append(session.get("/begin"))
    assert {200, 303, 403, 404, 405, 409, 422, 500} == {answer.status_code for answer in answers}
    for answer in answers:
        check_answer(answer)


CSP = """default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline';
img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';
frame-ancestors 'none'""".replace("\n", " ")


def check_answer(answer: httpx.Response) -> None:
    assert answer.headers["content-security-policy"] == CSP
    for name, value in EXPECTED.items():
        assert answer.headers.get_list(name) == [value]
    assert not any(name.startswith("access-control") for name in answer.headers)
    saved = answer.headers.get("content-disposition", "").startswith("attachment; ")
    assert saved == bool(re.search("plan.json|/report/|/releases/", answer.url.path))


CHECKS = [check_hosts, check_origins, check_token, check_entering, check_headers]


@pytest.mark.parametrize("check", CHECKS)
def test_guard(session: Session, check: Callable[[Session], None]):
    check(session)


def test_the_browser_is_started_with_an_address_that_opens_once(session: Session):
    """Other users of the machine can read with which words a browser was started."""
    address = session.guard.address(once=True)
    assert token_of(session.guard) not in address
    assert [session.get(address).status_code for _ in range(2)] == [303, 200]
    session.client.cookies, kept = {}, session.client.cookies
    assert session.get(address).status_code == 403
    assert session.get(session.guard.address()).status_code == 303
    session.client.cookies = kept


def test_whoever_is_refused_is_told_why(session: Session):
    assert sentence(session.get("/", headers={"host": "evil"})) == f"Only {OWN} is served here."
    assert "other pages" in sentence(session.post("/tables", headers={"origin": "null"}))
    session.client.cookies, kept = {}, session.client.cookies
    assert "Open the address" in sentence(session.get("/"))
    session.client.cookies = kept


def deceived(change: Callable[[Any, Any], None], after: Callable[[Any], Any] = lambda h: h) -> Any:
    """A guard that sees other headers, or whose own are changed."""

    class Deceived(Guard):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = after([*message["headers"]])
                await send(message)

            headers = dict(scope["headers"])
            change(self, headers)
            await super().__call__(scope | {"headers": [*headers.items()]}, receive, sending)

    return Deceived


def seen(name: bytes, value: Callable[[Any], str]) -> Callable[[Any, Any], None]:
    return lambda guard, headers: headers.update({name: value(guard).encode()})


def without(name: bytes, what: bytes = b"") -> Callable[[Any], Any]:
    def left(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        changed = [(n, v.replace(what, b"") if n == name else v) for n, v in headers]
        return [(n, v) for n, v in changed if what or n != name]

    return left


def same(guard: Any, headers: Any) -> None: ...


MUTANTS = [
    (deceived(seen(b"host", lambda _: OWN[7:])), check_hosts),
    (deceived(seen(b"origin", lambda _: OWN)), check_origins),
    (deceived(seen(b"cookie", lambda g: f"pufferfish-{PORT}={token_of(g)}")), check_token),
    (deceived(same, without(b"set-cookie", b"HttpOnly; ")), check_entering),
    (deceived(same, without(b"set-cookie", b"; SameSite=strict")), check_entering),
    (deceived(same, without(b"content-security-policy")), check_headers),
    (deceived(same, without(b"content-security-policy", b"; form-action 'self'")), check_headers),
    (deceived(same, without(b"cross-origin-resource-policy")), check_headers),
]  # fmt: skip


@pytest.mark.parametrize("guard, check", MUTANTS)
def test_mutants_of_the_guard_are_caught(
    session: Session, guard: Any, check: Callable[[Session], None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session.guard, "__class__", guard)
    with pytest.raises((AssertionError, KeyError)):
        check(session)


def test_two_explorers_in_one_browser(session: Session, tmp_path: Path):
    """A browser sends the cookies of one port to all ports."""
    other = Session(tmp_path, port=PORT + 1)
    other.client.cookies.update(session.client.cookies)
    session.client.cookies.update(other.client.cookies)
    assert len(session.client.cookies) == 2
    assert session.get(session.table).status_code == other.get("/").status_code == 200
    assert sentence(other.get(session.table)).startswith("There is no such table")
    other.client.cookies.delete(f"pufferfish-{PORT + 1}")
    assert other.get("/").status_code == 403
    assert other.get(f"/?token={token_of(session.guard)}").status_code == 403


def test_a_fault_shows_a_number_and_no_cell(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(_: Workspace) -> None:
        raise RuntimeError("cell-of-a-table")

    monkeypatch.setattr(Workspace, "begin", fail)
    found = session.get("/begin")
    number = re.search(r"RuntimeError .*; number (\w{8})", text(found))
    assert number is not None
    assert found.status_code == 500
    assert "Traceback" not in found.text
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert number[1] in said
    assert "cell-of-a-table" not in found.text + said


def test_it_is_served_to_this_machine_alone(tmp_path: Path):
    with explorer(cwd=tmp_path) as served:
        port = urlsplit(served.own).port or 0
        assert served.page.status_code == 200
        for place in (("127.0.0.2", port), ("::1", port)):  # of this machine, but others
            with pytest.raises(OSError), socket.create_connection(place, timeout=5):  # noqa: PT011  # whatever it is
                pass
        addresses = ["explorer.js", "explorer.css", "nothing", "..%2fguard.py", "%00", "x%00"]
        for address in [*addresses, ""]:
            answer = served.client.get(f"/static/{address}")
            assert answer.status_code == (200 if address.startswith("explorer.") else 404)
            check_answer(answer)
        assert served.client.post("/static/explorer.js").status_code == 405
        # No web socket: it is a request like any other.
        name, value = next(iter(served.client.cookies.items()))
        lines = ["GET /begin HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Cookie: {name}={value}",
                 "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw=="]  # fmt: skip
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
            raw.sendall("\r\n".join([*lines, "Origin: http://evil.example", "", ""]).encode())
            assert b" 403 " in raw.recv(1000).partition(b"\r\n")[0]
            raw.sendall("\r\n".join([*lines, "", ""]).encode())
            assert b" 101 " not in raw.recv(1000)
        assert "token" not in str(served.page.url)
