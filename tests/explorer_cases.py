# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of the explorer: sessions inside this process, and the command itself."""

import asyncio
import atexit
import contextlib
import html
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.routing import Route

from cli_runner import COMMAND, run
from pufferfish.explorer.app import application
from pufferfish.explorer.explore import Guard
from pufferfish.explorer.workspace import Workspace

PORT = 8123
OWN = f"http://127.0.0.1:{PORT}"
#: One loop for all sessions of this process: commands go on only while something is asked.
LOOP = asyncio.new_event_loop()
atexit.register(LOOP.close)
LEVELS = ("<2", "2-5", "5-10", ">10")
CHOSEN = {"secret": "higher", "public": "studytime", "epsilon": "0.5"}
JSON = {"accept": "application/json"}


def student_table(rows: int = 120) -> bytes:
    """Students: how long they study goes with whether they want a higher education."""
    lines = ["higher,studytime,age,romantic,id"]
    for k in range(rows):
        higher = k // 2 * 7 % 10 < 6
        love = ("yes", "no", "", "?")[k * 5 % 8 % 4]
        study = LEVELS[k * 13 % 11 // 3 if higher else 3 - k * 13 % 11 // 3]
        lines.append(
            f"{'yes' if higher else 'no'},{study},{15 + k * 3 % 5 + higher},{love},{k // 2}"
        )
    return "\n".join([*lines, ""]).encode()


class Session:
    """A session, as a browser sees it that has opened the printed address."""

    def __init__(self, folder: Path, ledger: Path | None = None, port: int = PORT) -> None:
        self.space = Workspace(folder, None if ledger is None else str(ledger))
        made = application(self.space)
        self.guard, self.folder, self.own = Guard(made, port), folder, f"http://127.0.0.1:{port}"
        routes = [route for route in made.routes if isinstance(route, Route)]
        self._routes = [(method, route.path) for route in routes for method in route.methods or ()]
        self.table = self.plan = ""
        transport = httpx.ASGITransport(app=self.guard, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=self.own)
        entered = self.get(self.guard.address())
        assert (entered.status_code, entered.headers["location"]) == (303, "/")

    def ask(self, method: str, address: str, **more: Any) -> httpx.Response:
        """Ask, as a page of the session does."""
        headers = {"origin": self.own} | more.pop("headers", {})
        return LOOP.run_until_complete(
            self.client.request(method, address, headers=headers, **more)
        )

    def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request as it is."""
        return LOOP.run_until_complete(self.client.send(request, auth=None))

    def get(self, address: str, **more: Any) -> httpx.Response:
        return self.ask("GET", address, **more)

    def post(self, address: str, data: Any = None, **more: Any) -> httpx.Response:
        return self.ask("POST", address, data=data, **more)

    def upload(self, content: bytes, **asked: str) -> str:
        """Send a file, and return the address of what it became."""
        found = self.post("/upload", params=asked, content=content, headers=JSON)
        assert found.status_code == 200, found.text
        location = str(found.json()["location"])
        if "table" not in asked:
            self.table = location
        return location

    def job(self, address: str, data: Any = None) -> httpx.Response:
        """Start a command, wait for it, and return the last page."""
        found = self.post(address, data)
        assert found.status_code == 303, text(found)
        return self.finish(found.headers["location"])

    def finish(self, job: str) -> httpx.Response:
        while self.get(job, headers=JSON).json()["state"] == "running":
            LOOP.run_until_complete(asyncio.sleep(0.02))
        found = self.get(job)
        return self.get(found.headers["location"]) if found.status_code == 303 else found

    def calibrate(self, form: dict[str, Any]) -> str:
        """Calibrate for the last table, and return the address of the plan."""
        page = self.job(f"{self.table}/calibrate", form)
        assert "The verdict" in page.text, text(page)
        self.plan = page.url.path
        return self.plan

    @property
    def routes(self) -> list[tuple[str, str]]:
        """What can be asked for: methods and addresses."""
        keys = {"job": "1", "number": "1", "part": "offer", "kind": "public"}
        keys |= {"table": self.table.rpartition("/")[2], "plan": self.plan.rpartition("/")[2]}
        return [
            (method, re.sub(r"\{(\w+)\}", lambda found: keys[found[1]], path))
            for method, path in self._routes
            if method != "HEAD"
        ]

    def together(self, *requests: tuple[str, Any]) -> list[httpx.Response]:
        """Post several forms at once."""

        async def all_of_them() -> list[httpx.Response]:
            posts = (
                self.client.post(address, data=data, headers={"origin": self.own})
                for address, data in requests
            )
            return list(await asyncio.gather(*posts))

        return LOOP.run_until_complete(all_of_them())


class Done(NamedTuple):
    """A command that has run, in the place of a process of its own."""

    returncode: int
    out: str
    err: str

    async def communicate(self) -> tuple[bytes, bytes]:
        return self.out.encode(), self.err.encode()


@contextlib.contextmanager
def commands_inside() -> Iterator[list[list[str]]]:
    """Run the commands of sessions inside this process, which is quicker; yield their words."""
    ran: list[list[str]] = []

    async def inside(*words: str, **_: Any) -> Done:
        ran.append(list(words[4:]))
        done = run(*words[4:])
        return Done(done.status, done.out, done.err)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", inside)
        yield ran


def text(page: httpx.Response) -> str:
    """What a page tells, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page.text))


def commands(page: httpx.Response) -> list[str]:
    """The commands that a page shows."""
    bare = re.sub(r"</?span>", "", page.text)
    found = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", bare, re.DOTALL)
    return [html.unescape(each) for each in found]


def sentence(page: httpx.Response) -> str:
    """Check that a request was refused with one sentence, and return it."""
    assert 400 <= page.status_code < 500, (page.status_code, page.text[-500:])
    if page.headers["content-type"] == "application/json":
        return str(page.json()["error"])
    found = re.findall(r'<p class="warn" role="alert">(.*?)</p>', page.text)
    return html.unescape(found[0]) if found else page.text


class Explorer:
    """The command itself, served to a client."""

    def __init__(self, *arguments: object, cwd: Path, **more: str) -> None:
        self.folder = cwd / "tmp"
        self.folder.mkdir(exist_ok=True)
        code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        command = [*COMMAND[:2], code + COMMAND[2], "explore", "--no-browser"]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)], cwd=cwd, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(self.folder)} | more,
        )  # fmt: skip
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found, self.process.communicate()
        self.address = found[0]
        self.own = self.address.partition("/?")[0]
        self.client = httpx.Client(
            base_url=self.own, headers={"origin": self.own}, timeout=60, follow_redirects=True
        )
        self.page = self.client.get(self.address)

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """End it, and return its status and what it wrote on standard error."""
        self.client.close()
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


@contextlib.contextmanager
def explorer(*arguments: object, cwd: Path, **more: str) -> Iterator[Explorer]:
    """Serve the explorer, and see that it ends."""
    served = Explorer(*arguments, cwd=cwd, **more)
    try:
        yield served
    finally:
        served.client.close()
        served.process.kill()
        served.process.communicate()


def wait_for(what: Any, seconds: float = 20) -> Any:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found
