# SPDX-License-Identifier: Apache-2.0
"""App: what each address of the explorer shows, or does."""

import json
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import comb
from typing import Any
from urllib.parse import urlencode

import click
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from pufferfish.errors import InputError, PufferfishError
from pufferfish.explorer import pages
from pufferfish.explorer.pages import Form, shown
from pufferfish.explorer.preview import meaning, options_of
from pufferfish.explorer.workspace import Job, KeptPlan, OpenTable, Workspace, upload_name
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import scenario_of_table
from pufferfish.report import at_most
from pufferfish.report.compare import HEADERS, lines_of
from pufferfish.report.page import page as report_page
from pufferfish.report.sentences import certificate_words, mechanism_words, scenario_lines
from pufferfish.support import Levels

#: Pairs of secrets, and levels, that a page lists.
_MOST_PAIRS, _MOST_LEVELS = 66, 200
#: What a release may be told.
_FLAGS = ("round", "allow-unchanged")


async def start(request: Request) -> Response:
    """Return the page on which a table is chosen."""
    space: Workspace = request.app.state.space
    return pages.page("start", tables=space.tables, plans=space.plans, begins=False)


async def _open(request: Request, opener: Callable[..., OpenTable], *given: str) -> Response:
    table = await pages.work(request, opener, *given)
    return RedirectResponse(f"/tables/{table.key}", 303)


async def begin(request: Request) -> Response:
    """Open the table that the command names, or the example."""
    return await _open(request, request.app.state.space.begin)


async def open_file(request: Request) -> Response:
    """Open a file of this machine."""
    form, opener = await pages.posted(request), request.app.state.space.open_file
    return await _open(request, opener, form.get("path", "").strip())


async def upload(request: Request) -> Response:
    """Open the table that a browser sends, or a plan for a table."""
    space, asked = request.app.state.space, request.query_params
    kind = "plan" if "table" in asked else "table"
    name, ending = upload_name(asked.get("name", ""))
    path = space.new_file(ending, name)
    try:
        await space.receive(request.stream(), path, pages.UPLOADS[kind])
        if kind == "plan":
            table = pages.known(space.tables, asked["table"], "table")
            made = await pages.work(request, space.load_plan, path, table)
        else:
            made = await pages.work(request, space.open_table, str(path), name)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return JSONResponse({"location": f"/{kind}s/{made.key}"})


async def show_table(request: Request) -> Response:
    """Return the page of a table: what the chosen columns tell, and where sliders stand."""
    table, form, told = pages.found(request, "table"), request.query_params, dict[str, Any]()
    status, prior, fault, table.asked = 200, None, "", request.url.query
    if form.get("secret") and form.get("public"):
        status, prior, fault = await _part(request, "prior")
    if prior is not None:
        status, told["offer"], told["offer_fault"] = await _part(request, "offer")
    columns = [(name, name) for name in table.table.columns if name]
    told |= {"table": table, "form": form, "columns": columns, "prior": prior, "fault": fault}
    return pages.page("table", status, **told)


async def preview(request: Request) -> Response:
    """Return a part of the preview: "offer" at once, "all" mechanisms, or simulated "rows"."""
    part = request.path_params["part"]
    status, told, fault = await _part(request, part)
    return pages.page({"all": "offer"}.get(part, part), status, told=told, fault=fault)


async def _part(request: Request, part: str) -> tuple[int, Any, str]:
    """Return the status of a part, what it tells, and what is wrong in one sentence."""
    task: Any = pages.known(_PARTS, part, "part of a page")
    run: Any = partial(pages.work, request)
    if part in ("offer", "all"):  # what is quick waits for nothing that a slider asked for before
        run = run_in_threadpool if part == "offer" else partial(run, lock=pages.PREVIEW)
    try:
        return 200, await run(task, pages.found(request, "table"), request.query_params), ""
    except Exception as error:
        status, fault = pages.sentence(request, error)
        return status, None, fault


def _prior(table: OpenTable, form: Form) -> dict[str, Any]:
    """Return what a table tells of the chosen columns."""
    counted = table.count(form)
    prior, support = counted.scenario.priors[0], counted.scenario.support
    names = support.names if isinstance(support, Levels) else ()
    few = 1 < comb(len(prior.secrets), 2) <= _MOST_PAIRS
    pairs = combinations(prior.secrets, 2) if few else ()
    return {
        "lines": scenario_lines(counted.scenario, table.name), "report": prior.report,
        "picture": counted.distributions, "levels": names if len(names) <= _MOST_LEVELS else (),
        "pairs": [("\n".join(pair), " and ".join(pair)) for pair in pairs],
    }  # fmt: skip


def _offer(table: OpenTable, form: Form, quick: bool = False) -> dict[str, Any]:
    """Return what every mechanism would give, and the command that calibrates the chosen one."""
    told: dict[str, Any] = dict.fromkeys(("lines", "meaning", "left_out", "pending"), ())
    own = [(name, value) for name, value in form.multi_items() if name != "mechanism"]
    if form.get("epsilon", "").strip():
        told["meaning"] = meaning(form["epsilon"])
        (results, told["left_out"]), told["chosen"] = table.count(form).results(form, quick)
        told["lines"] = [(n, lines_of([r])[0] if r else ["…"] * 7) for n, r in results.items()]
        told["pending"] = None in results.values()
        own.append(("mechanism", told["chosen"]))
    words = ["calibrate", table.path, *options_of(Form(own)), "--save", "plan.json"]
    told["heads"] = [" ".join(head.split()) for head in HEADERS[1:-1]]
    return {**told, "table": table.key, "command": shown(words, {table.path: table.name})}


def _start(request: Request, job: Job, *more: str) -> Response:
    return RedirectResponse(f"/jobs/{request.app.state.space.start(job, *more)}", 303)


async def calibrate(request: Request) -> Response:
    """Calibrate what a form asks for."""
    table, space = pages.found(request, "table"), request.app.state.space
    form = await pages.posted(request)
    if not all(form.get(name, "").strip() for name in ("secret", "public", "epsilon")):
        raise InputError("choose a secret, a column to publish and an epsilon first")
    path = space.new_file(".json", "plan.json")

    def done(job: Job) -> str:
        return f"/plans/{space.keep_plan(path, Plan.load(path), table, job).key}"

    words = ["calibrate", table.path, *options_of(form), "--save", str(path)]
    back = f"/tables/{table.key}?{urlencode(form.multi_items())}"
    job = Job(words, space.names, back, done)
    return _start(request, job, "--format", "json")


async def show_plan(request: Request) -> Response:
    """Return the page of a plan."""
    kept, space = pages.found(request, "plan"), request.app.state.space
    lines = json.loads(kept.job.output)["verdict"]["text"] if kept.job else []
    own = Form({"allow-unchanged": "on"} if kept.plan.unchanged else {})
    words = {
        "verify": ["verify", *kept.words], "report": ["report", *kept.words, "-o", "report.html"],
        "release": [*_release_words(kept, own, space.ledger), "-o", "OUT.csv"],
        "estimate": ["estimate", "OUT.csv", "--plan", str(kept.path)],
    }  # fmt: skip
    return pages.page(
        "plan", kept=kept, plan=kept.plan, ledger=space.ledger, before=space.released(kept.table),
        verdict=[*map(kept.job.named, lines)] if kept.job else [],
        happens=mechanism_words(kept.plan.applied, kept.plan.labels),
        loss=at_most(kept.plan.loss, kept.plan.epsilon_exact),
        proof=certificate_words(kept.plan.certificate),
        commands={name: shown(each, space.names) for name, each in words.items()},
    )  # fmt: skip


async def release(request: Request) -> Response:
    """Release a table; another draw is asked for by its number, so that none is made twice."""
    kept, space = pages.found(request, "plan"), request.app.state.space
    form = await pages.posted(request)
    number, running = len(kept.releases) + 1, kept.table.releasing
    before = space.released(kept.table)
    if (running and running.state == "running") or form.get("number") != str(number):
        raise HTTPException(409, "this plan is released already: look before another draw")
    if before and "again" not in form:
        raise InputError("this is another release of the table: tick that you want one")
    column = kept.plan.coding.column if kept.plan.coding else "column"
    name = f"{re.sub(r'[^0-9A-Za-z]+', '-', column)}-released-{before + 1}.csv"
    path = space.new_file(".csv", name)

    def done(job: Job) -> str:
        kept.releases[str(number)], job.made = job, (path, name)
        return f"/plans/{kept.key}#releases"

    words = [*_release_words(kept, form, space.ledger), "-o", str(path)]
    job = Job(words, space.names, f"/plans/{kept.key}", done)
    answer, kept.table.releasing = _start(request, job), job
    return answer


def _release_words(kept: KeptPlan, form: Form, ledger: str | None) -> list[str]:
    words = ["release", kept.table.path, "--plan", str(kept.path)]
    words += [f"--{name}" for name in _FLAGS if name in form]
    words += ["--ledger", ledger] if ledger else []
    ends = [form.get(name, "").strip() for name in ("least", "greatest")]
    return [*words, *(["--bounds", *ends] if any(ends) else [])]


async def released(request: Request) -> Response:
    """Return a released table, to be saved."""
    releases = pages.found(request, "plan").releases
    chosen = pages.known(releases, request.path_params["number"], "release")
    path, name = chosen.made
    return FileResponse(path, filename=name)


async def plan_file(request: Request) -> Response:
    """Return the plan, to be saved."""
    return FileResponse(pages.found(request, "plan").path, filename="plan.json")


async def report(request: Request) -> Response:
    """Return the "private" or the "public" report of a plan, to be saved."""
    kept, kind = pages.found(request, "plan"), request.path_params["kind"]
    public = pages.known({"private": False, "public": True}, kind, "report")
    text = await pages.work(request, _report, kept, public)
    saved = {"Content-Disposition": f"attachment; filename=report-{kind}.html"}
    return Response(text.encode(errors="backslashreplace"), headers=saved, media_type="text/html")


def _report(kept: KeptPlan, public: bool) -> str:
    alone = public or kept.plan.noisy is not None
    scenario = None if alone else scenario_of_table(kept.plan, kept.table.table)
    return report_page(kept.plan, scenario, public=public, source=kept.table.name)


async def show_job(request: Request) -> Response:
    """Return the page of a command that runs or failed; that of what it made if it is done."""
    found = pages.found(request, "job")
    if request.headers.get("accept") == "application/json":  # the script
        told = {"state": found.state, "seconds": int(time.monotonic() - found.started)}
        return JSONResponse(told)
    if found.location:
        return RedirectResponse(found.location, 303)
    return pages.page("job", job=found, key=request.path_params["job"])


async def cancel(request: Request) -> Response:
    """Cancel a command."""
    await pages.found(request, "job").cancel()
    return RedirectResponse(f"/jobs/{request.path_params['job']}", 303)


_PARTS = {
    "prior": _prior,
    "offer": partial(_offer, quick=True),
    "all": _offer,
    "rows": lambda table, form: table.count(form).simulated(form),
}
_TABLE, _PLAN, _JOB = "/tables/{table}", "/plans/{plan}", "/jobs/{job}"
_SHOWN = {
    "/": start,
    "/begin": begin,
    _TABLE: show_table,
    _TABLE + "/preview/{part}": preview,
    _JOB: show_job,
    _PLAN: show_plan,
    _PLAN + "/plan.json": plan_file,
    _PLAN + "/report/{kind}": report,
    _PLAN + "/releases/{number}": released,
}
_DONE = {
    "/tables": open_file,
    "/upload": upload,
    _TABLE + "/calibrate": calibrate,
    _JOB + "/cancel": cancel,
    _PLAN + "/release": release,
}


def application(space: Workspace) -> Starlette:
    """Return the application of a session."""
    routes = [Route(path, show, methods=["GET"]) for path, show in _SHOWN.items()]
    routes += [Route(path, do, methods=["POST"]) for path, do in _DONE.items()]
    kinds = (PufferfishError, HTTPException, click.ClickException, OSError, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, pages.refused))
    app.state.space = space
    return app
