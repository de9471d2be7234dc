# SPDX-License-Identifier: Apache-2.0
"""``pufferfish explore``: the explorer, served to the browser of this machine alone.

Whoever opens the address that the command printed shows its token once, and gets it as a cookie.
What asks for another host (a name that came to mean this machine), comes from a page of another
origin, or lacks the token is refused before anything is read.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import tempfile
import warnings
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import click

from pufferfish.cli import process
from pufferfish.errors import InputError, PufferfishWarning
from pufferfish.files import no_file

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.requests import cookie_parser
    from starlette.responses import PlainTextResponse, RedirectResponse
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pufferfish.explorer.pages import page
except ImportError as error:
    raise InputError(
        "the explorer needs more packages: pip install 'pufferfish-privacy[explorer]'"
    ) from error

_HOST = "127.0.0.1"
_HEADERS = {
    # Pictures of matplotlib have styles as attributes, which reach nothing but the picture.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, forms would have no origin either
    "Cache-Control": "no-store",
}


@click.command()
@click.argument("table", required=False)
@click.option("--demo", is_flag=True, help="Begin with a table of the paper; no file is needed.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--ledger", metavar="BOOKS", help="Charge every release to its dataset in a ledger.")
def explore(table: str | None, demo: bool, no_browser: bool, ledger: str | None) -> None:
    """Explore a table in the browser: choose columns, look, calibrate, release, download.

    The page is served to this machine alone, at the address that is printed; Ctrl-C ends it. What
    it makes lies in a temporary folder and is gone afterwards: download what you want to keep.

    \b
    Examples:
      pufferfish explore student.csv
      pufferfish explore --demo
    """  # noqa: D301  # \b keeps click from wrapping the examples
    if table is not None and demo:
        raise InputError("--demo brings a table of its own: leave out TABLE")
    if table is not None and not os.path.exists(table):
        raise InputError(no_file(Path(table)))
    warnings.simplefilter("ignore", PufferfishWarning)  # pages show them
    logging.getLogger("uvicorn.error").disabled = True  # traces may hold cells
    with tempfile.TemporaryDirectory(prefix="pufferfish-") as folder:
        begins = "/begin" if demo or table is not None else "/"
        try:
            asyncio.run(_serve((Path(folder), ledger, table), begins, not no_browser))
        except (process.Stopped, KeyboardInterrupt):
            if signal.SIGTERM in process.received:
                raise
            process.received.clear()  # Ctrl-C is how it ends
    click.echo("The explorer has ended; its temporary files are removed.")


async def _serve(space: tuple[Any, ...], begins: str, browser: bool) -> None:
    loading = asyncio.create_task(asyncio.to_thread(_application, *space))
    files = StaticFiles(packages=[("pufferfish.explorer", "static")])
    static = Starlette(routes=[Mount("/static", files)])

    async def session(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first page is shown while the application is imported."""
        opens = (scope["path"], scope["query_string"]) == ("/begin", b"")
        answer: Any = static
        if not loading.done() and (opens or scope["path"] == "/"):
            answer = page("start", tables={}, plans={}, begins=opens)
        elif not scope["path"].startswith("/static/"):
            answer = await loading
        await answer(scope, receive, send)

    place = socket.create_server((_HOST, 0))
    guard = Guard(session, place.getsockname()[1], begins)
    config = uvicorn.Config(
        guard, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    click.echo(f"The explorer is at {guard.address()} (Ctrl-C ends it)")
    if browser:
        asyncio.get_running_loop().call_later(0.1, webbrowser.open, guard.address(once=True))
    try:
        await uvicorn.Server(config).serve(sockets=[place])
    finally:
        jobs = (await loading).state.space.jobs.values()
        await asyncio.gather(*(job.cancel() for job in jobs))


def _application(*given: Any) -> Starlette:
    from pufferfish.explorer.app import application  # slow to import
    from pufferfish.explorer.workspace import Workspace

    return application(Workspace(*given))


class Guard:
    """ASGI middleware around an application, served at a port, that begins at some path."""

    def __init__(self, app: ASGIApp, port: int, begins: str = "/") -> None:
        self._app, self._begins, self._place = app, begins, f"{_HOST}:{port}"
        self._token, self._once = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._cookie = f"pufferfish-{port}"

    def address(self, once: bool = False) -> str:
        """Return the address that opens the explorer; only ``once``: others may read it too."""
        return f"http://{self._place}/?token={self._once if once else self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on; every answer gets the headers."""

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await (self._own_answer(scope) or self._app)(scope, receive, answer)

    def _own_answer(self, scope: Scope) -> ASGIApp | None:
        """Return the answer to a request that is not passed on."""
        headers, own = Headers(scope=scope), f"http://{self._place}"
        if headers.getlist("host") != [self._place]:
            return PlainTextResponse(f"Only {own} is served here.", 403)
        if "\0" in scope["path"]:  # older versions of Starlette fail at it
            return PlainTextResponse("There is no such page.", 404)
        # Browsers name the origin of all that is not read alone.
        origins = headers.getlist("origin") or [own] * (scope["method"] in ("GET", "HEAD"))
        if {*origins} != {own}:
            return PlainTextResponse("Requests from other pages are refused.", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and (_same(given, self._token) or _same(given, self._once)):
            if _same(given, self._once):
                self._once = self._token  # what opened once is worth nothing now
            entered = RedirectResponse(self._begins, 303)
            entered.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return entered
        if not _same(cookie_parser(headers.get("cookie", "")).get(self._cookie, ""), self._token):
            return PlainTextResponse("Open the address that 'pufferfish explore' printed.", 403)
        return None


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())
