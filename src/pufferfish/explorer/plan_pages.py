# SPDX-License-Identifier: Apache-2.0
"""Plan pages: a plan is calibrated, verified, released and reported, each by its command."""

import json
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from pufferfish.errors import InputError
from pufferfish.explorer import choices, pages
from pufferfish.explorer.jobs import Job, shown
from pufferfish.explorer.pages import Form
from pufferfish.explorer.table_pages import space_of, table_of
from pufferfish.explorer.workspace import KeptPlan, Release
from pufferfish.report.sentences import certificate_words, mechanism_words

_FLAGS, _ENDINGS = ("round", "allow-unchanged"), (".csv", ".parquet")


def _plan_of(request: Request) -> KeptPlan:
    return pages.known(space_of(request).plans, request.path_params["plan"], "plan")


def _job_of(request: Request) -> Job:
    return pages.known(space_of(request).jobs, request.path_params["job"], "command")


def _start(request: Request, job: Job, *more: str) -> Response:
    return RedirectResponse(f"/jobs/{space_of(request).jobs.start(job, *more)}", 303)


async def calibrate(request: Request) -> Response:
    """Calibrate what a form asks for."""
    table, form, space = table_of(request), await pages.posted(request), space_of(request)
    if not all(form.get(name, "").strip() for name in ("secret", "public", "epsilon")):
        raise InputError("choose a secret, a column to publish and an epsilon first")
    path = space.new_file(".json")

    def done(job: Job) -> str:
        return f"/plans/{space.keep_plan(path, table, job).key}"

    words = ["calibrate", *table.words, *choices.words(form), "--save", str(path)]
    back = f"/tables/{table.key}?{urlencode(form.multi_items())}"
    job = Job(words, space.names((path, "plan.json")), back, done)
    return _start(request, job, "--format", "json")


async def show(request: Request) -> Response:
    """Return the page of a plan."""
    kept, space = _plan_of(request), space_of(request)
    verdict = json.loads(kept.job.output)["verdict"]["text"] if kept.job else []
    words = {
        "verify": _verify_words(kept), "release": [*_release_words(kept, Form()), "-o", "OUT.csv"],
        "report": ["report", str(kept.path), *kept.table.words, "-o", "report.html"],
    }  # fmt: skip
    return pages.page(
        "plan", kept=kept, plan=kept.plan, verdict=verdict, ledger=space.ledger,
        happens=mechanism_words(kept.plan.applied, kept.plan.labels),
        proof=certificate_words(kept.plan.certificate),
        commands={name: shown(each, space.names()) for name, each in words.items()},
    )  # fmt: skip


async def verify(request: Request) -> Response:
    """Verify a plan on its table."""
    kept = _plan_of(request)

    def done(job: Job) -> str:
        kept.verified = job
        return f"/plans/{kept.key}#verified"

    names = space_of(request).names()
    return _start(request, Job(_verify_words(kept), names, f"/plans/{kept.key}", done))


async def release(request: Request) -> Response:
    """Release a table; another draw is asked for by its number, so that none is made twice."""
    kept, form, space = _plan_of(request), await pages.posted(request), space_of(request)
    number, ending = len(kept.releases) + 1, form.get("ending", _ENDINGS[0])
    busy = kept.releasing is not None and kept.releasing.state == "running"
    if busy or form.get("number") != str(number):
        raise HTTPException(409, "this plan is released already: look before another draw")
    if number > 1 and "again" not in form:
        raise InputError("another draw is another release: tick that you want one")
    if ending not in _ENDINGS:
        raise InputError(f"a release is written as one of {', '.join(_ENDINGS)}")
    name, path = f"released-{number}{ending}", space.new_file(ending)

    def done(job: Job) -> str:
        kept.releases.append(Release(path, name, job))
        return f"/plans/{kept.key}#releases"

    words = [*_release_words(kept, form), "-o", str(path)]
    words += ["--ledger", space.ledger] if space.ledger else []
    kept.releasing = Job(words, space.names((path, name)), f"/plans/{kept.key}", done)
    return _start(request, kept.releasing)


def _verify_words(kept: KeptPlan) -> list[str]:
    return ["verify", str(kept.path), *([] if kept.plan.noisy else kept.table.words)]


def _release_words(kept: KeptPlan, form: Form) -> list[str]:
    words = ["release", *kept.table.words, "--plan", str(kept.path)]
    words += [f"--{name}" for name in _FLAGS if name in form]
    ends = [form.get(name, "").strip() for name in ("least", "greatest")]
    return [*words, *(["--bounds", *ends] if any(ends) else [])]


async def released(request: Request) -> Response:
    """Return a released table, to be saved."""
    found = {str(k): each for k, each in enumerate(_plan_of(request).releases, start=1)}
    chosen = pages.known(found, request.path_params["number"], "release")
    return FileResponse(chosen.path, filename=chosen.name)


async def file(request: Request) -> Response:
    """Return the plan, or one of its reports, to be saved."""
    kept, space, name = _plan_of(request), space_of(request), request.path_params["name"]
    options = {"plan.json": [], "public.html": ["--public"], "report.html": kept.table.words}
    more = pages.known(options, name, "file of a plan")
    if name == "plan.json":
        return FileResponse(kept.path, filename=name)
    path = space.new_file(".html")
    more = [] if kept.plan.noisy and more != ["--public"] else more
    job = Job(["report", str(kept.path), *more, "-o", str(path)], space.names((path, name)))
    await job.run()
    if job.state != "done":
        raise InputError(" ".join(job.lines))
    return FileResponse(path, filename=name)


async def job(request: Request) -> Response:
    """Return the page of a command that runs or failed; that of what it made if it is done."""
    found = _job_of(request)
    if found.location:
        return RedirectResponse(found.location, 303)
    return pages.page("job", job=found, key=request.path_params["job"])


async def state(request: Request) -> Response:
    """Return whether a command still runs, and for how long."""
    found = _job_of(request)
    return JSONResponse({"state": found.state, "seconds": found.seconds})


async def cancel(request: Request) -> Response:
    """Cancel a command."""
    await _job_of(request).cancel()
    return RedirectResponse(f"/jobs/{request.path_params['job']}", 303)
