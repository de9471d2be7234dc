# SPDX-License-Identifier: Apache-2.0
"""Pages: templates, forms, names of files, work in a thread, and refusals in one sentence."""

import asyncio
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from pufferfish.cli.app import explain
from pufferfish.report import visible

Form = ImmutableMultiDict[str, str]
#: Megabytes of an upload, by its kind.
UPLOADS = {"table": 1000, "plan": 20}
_MOST_BYTES = 1 << 18
#: Held by what pages wait for; by calibrations of a preview, which nobody may wait for any more.
_BUSY, PREVIEW = asyncio.Lock(), asyncio.Lock()


_TEMPLATES = Environment(
    loader=PackageLoader("pufferfish.explorer", "pages"), autoescape=True, finalize=visible,
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip


def page(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page, or a part of one, as an answer."""
    text = _TEMPLATES.get_template(f"{name}.html").render(uploads=UPLOADS, **values)
    return HTMLResponse(text.encode(errors="backslashreplace"), status)


def found(request: Request, kind: str) -> Any:
    """Return the "table", "plan" or "job" of an address."""
    return known(getattr(request.app.state.space, f"{kind}s"), request.path_params[kind], kind)


def known(held: Mapping[str, Any], key: str, kind: str) -> Any:
    """Return what a key stands for."""
    if key not in held:
        raise HTTPException(404, f"there is no such {kind} in this session: begin again")
    return held[key]


async def posted(request: Request) -> Form:
    """Return the fields of a form that was posted."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, f"a form has at most {_MOST_BYTES:,} bytes")
    return Form(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


async def work(request: Request, task: Any, *given: Any, lock: asyncio.Lock = _BUSY) -> Any:
    """Do work in a thread, one piece after another; none for a page that has gone."""
    async with lock:
        if await request.is_disconnected():
            raise HTTPException(400, "the page has gone")
        return await run_in_threadpool(task, *given)


def named(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which ``names`` stand for files."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


def shown(words: Sequence[str], names: Mapping[str, str]) -> str:
    """Return a command as a user would write it."""
    return shlex.join(["pufferfish", *(names.get(word, word) for word in words)])


def sentence(request: Request, error: Exception) -> tuple[int, str]:
    """Return the status of an error, and what is wrong in one sentence."""
    if isinstance(error, HTTPException):
        return error.status_code, error.detail
    exit_status, text = explain(error)
    text = named(text, dict(request.app.state.space.names))
    if exit_status < 70:
        return 422, text
    text += f"; number {secrets.token_hex(4)}"
    print(f"pufferfish: error: {text}", file=sys.stderr, flush=True)
    return 500, text


async def refused(request: Request, error: Exception) -> Response:
    """Return what is wrong with a request."""
    status, text = sentence(request, error)
    if request.headers.get("accept") == "application/json":
        return JSONResponse({"error": text}, status)
    return page("refused", status, text=text)
