# SPDX-License-Identifier: Apache-2.0
"""Table pages: a table is opened, secret and column are chosen, and sliders moved."""

import json
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from pufferfish.explorer import choices, pages
from pufferfish.explorer.jobs import shown
from pufferfish.explorer.pages import Form
from pufferfish.explorer.preview import meaning
from pufferfish.explorer.workspace import OpenTable, Workspace, upload_name
from pufferfish.report.results import HEADERS, lines_of
from pufferfish.report.sentences import scenario_lines
from pufferfish.support import Levels

#: Pairs of secrets, and levels, that a page lists.
_MOST_PAIRS, _MOST_LEVELS = 66, 200


async def start(request: Request) -> Response:
    """Return the page on which a table is chosen."""
    space: Workspace = request.app.state.space
    return pages.page("start", tables=space.tables.values(), plans=space.plans.values())


async def _open(request: Request, opener: Callable[..., OpenTable], *given: str) -> Response:
    table = await pages.work(request, opener, *given)
    return RedirectResponse(f"/tables/{table.key}", 303)


async def begin(request: Request) -> Response:
    """Open the table that the command names."""
    return await _open(request, request.app.state.space.begin)


async def demo(request: Request) -> Response:
    """Open the table that needs no file."""
    return await _open(request, request.app.state.space.open_demo)


async def open_file(request: Request) -> Response:
    """Open a file of this machine."""
    form, opener = await pages.posted(request), request.app.state.space.open_file
    return await _open(request, opener, form.get("path", "").strip(), form.get("delimiter", ""))


async def upload(request: Request) -> Response:
    """Open the table that a browser sends, or a plan for a table."""
    space, asked = request.app.state.space, request.query_params
    kind = "plan" if "table" in asked else "table"
    name, ending = upload_name(asked.get("name", ""), kind)
    path = space.new_file(ending)
    try:
        await space.receive(request.stream(), path, pages.UPLOADS[kind])
        if kind == "plan":
            table = pages.known(space.tables, asked["table"], "table")
            made = await pages.work(request, space.keep_plan, path, table)
        else:
            given = str(path), asked.get("delimiter", ""), name
            made = await pages.work(request, space.open_table, *given)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return JSONResponse({"location": f"/{kind}s/{made.key}"})


async def close(request: Request) -> Response:
    """Forget a table and its plans."""
    request.app.state.space.close(pages.found(request, "table"))
    return RedirectResponse("/", 303)


async def show(request: Request) -> Response:
    """Return the page of a table: what the chosen columns tell, and where sliders stand."""
    table, form, told = pages.found(request, "table"), request.query_params, dict[str, Any]()
    status, prior, fault = 200, None, ""
    if form.get("secret") and form.get("public"):
        status, prior, fault = await _part(request, "prior")
    if prior is not None:
        status, told["offer"], told["offer_fault"] = await _part(request, "offer")
    columns = [(name, name) for name in table.table.columns if name]
    told |= {"table": table, "form": form, "columns": columns, "prior": prior, "fault": fault}
    return pages.page("table", status, **told)


async def preview(request: Request) -> Response:
    """Return a part of the preview: "offer" at once, "all" mechanisms, "loss" or "rows"."""
    part = request.path_params["part"]
    status, told, fault = await _part(request, part)
    return pages.page({"all": "offer"}.get(part, part), status, told=told, fault=fault)


async def _part(request: Request, part: str) -> tuple[int, Any, str]:
    """Return the status of a part, what it tells, and what is wrong in one sentence."""
    task: Any = pages.known(_PARTS, part, "part of a page")
    # What is quick waits for nothing that a slider asked for before.
    run: Any = run_in_threadpool if part == "offer" else partial(pages.work, request)
    try:
        return 200, await run(task, pages.found(request, "table"), request.query_params), ""
    except Exception as error:
        status, fault = pages.sentence(error)
        return status, None, fault


def _prior(table: OpenTable, form: Form) -> dict[str, Any]:
    """Return what a table tells of the chosen columns."""
    counted = table.count(form)
    prior, support = counted.scenario.priors[0], counted.scenario.support
    names = support.names if isinstance(support, Levels) else ()
    pairs = list(combinations(prior.secrets, 2)) if len(prior.secrets) <= _MOST_PAIRS else []
    return {
        "lines": scenario_lines(counted.scenario, table.name), "report": prior.report,
        "picture": counted.distributions, "levels": names if len(names) <= _MOST_LEVELS else (),
        "pairs": [(json.dumps(p), " and ".join(p)) for p in pairs if 1 < len(pairs) <= _MOST_PAIRS],
    }  # fmt: skip


def _offer(table: OpenTable, form: Form, quick: bool = False) -> dict[str, Any]:
    """Return what every mechanism would give, and the command that calibrates the chosen one."""
    told: dict[str, Any] = {"lines": [], "meaning": [], "left_out": [], "table": table.key}
    own = [(name, value) for name, value in form.multi_items() if name != "mechanism"]
    if form.get("epsilon", "").strip():
        told["meaning"] = meaning(form["epsilon"])
        (results, told["left_out"]), told["chosen"] = table.count(form).results(form, quick)
        told["lines"] = [(n, lines_of([r])[0] if r else ["…"] * 7) for n, r in results.items()]
        own.append(("mechanism", told["chosen"]))
    words = ["calibrate", *table.words, *choices.words(Form(own)), "--save", "plan.json"]
    told["heads"] = [" ".join(head.split()) for head in HEADERS[1:-1]]
    return {**told, "command": shown(words, {table.path: table.name})}


_PARTS = {
    "prior": _prior,
    "offer": partial(_offer, quick=True),
    "all": _offer,
    "loss": lambda table, form: table.count(form).loss(form),
    "rows": lambda table, form: table.count(form).simulated(form),
}
