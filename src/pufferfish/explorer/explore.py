# SPDX-License-Identifier: Apache-2.0
"""``pufferfish explore``: the explorer, served to the browser of this machine."""

import asyncio
import logging
import os
import signal
import socket
import tempfile
import warnings
import webbrowser
from pathlib import Path
from typing import Any

import click

from pufferfish.cli import process
from pufferfish.errors import InputError, PufferfishWarning
from pufferfish.files import no_file

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles
    from starlette.types import Receive, Scope, Send

    from pufferfish.explorer.guard import HOST, Guard
    from pufferfish.explorer.pages import page
except ImportError as error:
    raise InputError(
        "the explorer needs more packages: pip install 'pufferfish-privacy[explorer]'"
    ) from error


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

    place = socket.create_server((HOST, 0))
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
