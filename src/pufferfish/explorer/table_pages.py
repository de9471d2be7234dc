# SPDX-License-Identifier: Apache-2.0
"""Table pages: a table is opened, secret and column are chosen, and sliders moved."""

import json
from itertools import combinations
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from pufferfish.errors import InputError
from pufferfish.explorer import choices, pages
from pufferfish.explorer.jobs import shown
from pufferfish.explorer.pages import Form
from pufferfish.explorer.preview import Counted, meaning
from pufferfish.explorer.workspace import OpenTable, Workspace, upload_name
from pufferfish.report.results import HEADERS, Result, lines_of
from pufferfish.report.sentences import scenario_lines
from pufferfish.support import Levels

#: Pairs of secrets, and levels, that a page lists; choices that stay counted.
_MOST_PAIRS, _MOST_LEVELS, _MOST_COUNTED = 66, 200, 4


def space_of(request: Request) -> Workspace:
    """Return what the session holds."""
    space: Workspace = request.app.state.space
    return space


def table_of(request: Request) -> OpenTable:
    """Return the table of an address."""
    return pages.known(space_of(request).tables, request.path_params["table"], "table")


def _to(table: OpenTable) -> Response:
    return RedirectResponse(f"/tables/{table.key}", 303)


async def start(request: Request) -> Response:
    """Return the page on which a table is chosen."""
    space = space_of(request)
    return pages.page("start", tables=space.tables.values(), plans=space.plans.values())


async def begin(request: Request) -> Response:
    """Open the table that the command names."""
    return _to(await pages.work(request, space_of(request).begin))


async def demo(request: Request) -> Response:
    """Open the table that needs no file."""
    return _to(await pages.work(request, space_of(request).open_demo))


async def open_file(request: Request) -> Response:
    """Open a file of this machine."""
    form = await pages.posted(request)
    given = form.get("path", "").strip(), form.get("delimiter", "")
    return _to(await pages.work(request, space_of(request).open_file, *given))


async def upload(request: Request) -> Response:
    """Open the table that a browser sends, or a plan for a table."""
    space, asked = space_of(request), request.query_params
    kind = "plan" if "table" in asked else "table"
    name, ending = upload_name(asked.get("name", ""), kind)
    path = space.new_file(ending)
    try:
        await space.receive(request.stream(), path, pages.UPLOADS[kind])
        if kind == "plan":
            table = pages.known(space.tables, asked["table"], "table")
            made: Any = await pages.work(request, space.keep_plan, path, table)
        else:
            given = str(path), asked.get("delimiter", ""), name
            made = await pages.work(request, space.open_table, *given)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return JSONResponse({"location": f"/{kind}s/{made.key}"})


async def close(request: Request) -> Response:
    """Forget a table and its plans."""
    space_of(request).close(table_of(request))
    return RedirectResponse("/", 303)


async def show(request: Request) -> Response:
    """Return the page of a table: what the chosen columns tell, and where sliders stand."""
    table, form = table_of(request), pages.fields(request.query_params.multi_items())
    told: dict[str, Any] = {"scenario": None, "fault": ""}
    status = 200
    if form.get("secret") and form.get("public"):
        try:
            told |= await pages.work(request, _told, table, form)
            told |= {"offer": await pages.work(request, _offer, table, form)}
        except Exception as error:
            status, told["fault"] = pages.sentence(error)
    columns = [(name, name) for name in table.table.columns if name]
    return pages.page("table", status, table=table, form=form, columns=columns, **told)


async def preview(request: Request) -> Response:
    """Return a part of the preview: "offer", "loss" or "rows"."""
    part, form = request.path_params["part"], pages.fields(request.query_params.multi_items())
    parts = {"offer": _offer, "loss": _loss, "rows": _rows}
    task = pages.known(parts, part, "part of a preview")
    try:
        told, fault = await pages.work(request, task, table_of(request), form), ""
    except HTTPException:
        raise
    except Exception as error:
        told, fault = {}, pages.sentence(error)[1]
    return pages.page(part, **{part: told}, fault=fault)


def _counted(table: OpenTable, form: Form) -> Counted:
    """Return the scenario of a form; only the last ones of a table are kept."""
    key = tuple(choices.words(form, counting=True))
    found = table.counted.pop(key, None) or Counted(table.table, choices.options(form))
    table.counted[key] = found
    if len(table.counted) > _MOST_COUNTED:
        del table.counted[next(iter(table.counted))]
    return found


def _told(table: OpenTable, form: Form) -> dict[str, Any]:
    """Return what a table tells of the chosen columns."""
    counted = _counted(table, form)
    scenario = counted.scenario
    prior, support = scenario.priors[0], scenario.support
    pairs = list(combinations(prior.secrets, 2)) if len(prior.secrets) <= _MOST_PAIRS else []
    names = support.names if isinstance(support, Levels) else ()
    return {
        "scenario": scenario, "report": prior.report, "picture": counted.distributions,
        "lines": scenario_lines(scenario, table.name),
        "levels": names if len(names) <= _MOST_LEVELS else (),
        "pairs": [(json.dumps(p), " and ".join(p)) for p in pairs if 1 < len(pairs) <= _MOST_PAIRS],
    }  # fmt: skip


def _offer(table: OpenTable, form: Form) -> dict[str, Any]:
    """Return what every mechanism would give, and the command that calibrates the chosen one."""
    told: dict[str, Any] = {"lines": [], "meaning": [], "left_out": [], "chosen": "", "fault": ""}
    if form.get("epsilon", "").strip():
        try:
            told["meaning"] = meaning(form["epsilon"])
            results, told["left_out"], told["chosen"] = _results(table, form)
            told["lines"] = list(zip(results, lines_of([*results.values()]), strict=True))
        except InputError as error:
            told["fault"] = str(error)
    own = [(name, value) for name, value in form.multi_items() if name != "mechanism"]
    words = choices.words(Form([*own, ("mechanism", told["chosen"])]))
    command = shown(["calibrate", *table.words, *words, "--save", "plan.json"],
                    {table.path: table.name})  # fmt: skip
    heads = [" ".join(head.split()) for head in HEADERS[1:]]
    return {**told, "heads": heads, "table": table.key, "command": command}


def _loss(table: OpenTable, form: Form) -> str:
    results, _, chosen = _results(table, form)
    return _counted(table, form).loss(results[chosen].plan)


def _rows(table: OpenTable, form: Form) -> Any:
    results, _, chosen = _results(table, form)
    return _counted(table, form).simulated(results[chosen].plan)


def _results(table: OpenTable, form: Form) -> tuple[dict[str, Result], list[str], str]:
    """Return what each mechanism would give, why others are left out, and which is chosen."""
    counted, sliders = _counted(table, form), ("epsilon", "confidence")
    results, left_out = counted.results(*(form.get(name, "").strip() for name in sliders))
    return results, left_out, counted.chosen(results, form.get("mechanism", ""))
