# SPDX-License-Identifier: Apache-2.0
"""Plan pages: a plan is calibrated, verified, released and reported, each by its command."""

import asyncio
import json
from urllib.parse import urlencode

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from pufferfish.errors import InputError
from pufferfish.explorer import choices, pages
from pufferfish.explorer.jobs import Job, shown
from pufferfish.explorer.pages import Form
from pufferfish.explorer.workspace import KeptPlan, Release
from pufferfish.report.sentences import certificate_words, mechanism_words

_FLAGS, _ENDINGS = ("round", "allow-unchanged"), (".csv", ".parquet")


def _start(request: Request, job: Job, *more: str) -> Response:
    return RedirectResponse(f"/jobs/{request.app.state.space.jobs.start(job, *more)}", 303)


async def calibrate(request: Request) -> Response:
    """Calibrate what a form asks for."""
    table, form, space = (
        pages.found(request, "table"),
        await pages.posted(request),
        request.app.state.space,
    )
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
    kept, space = pages.found(request, "plan"), request.app.state.space
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
    kept = pages.found(request, "plan")

    def done(job: Job) -> str:
        kept.verified = job
        return f"/plans/{kept.key}#verified"

    names = request.app.state.space.names()
    return _start(request, Job(_verify_words(kept), names, f"/plans/{kept.key}", done))


async def release(request: Request) -> Response:
    """Release a table; another draw is asked for by its number, so that none is made twice."""
    kept, form, space = (
        pages.found(request, "plan"),
        await pages.posted(request),
        request.app.state.space,
    )
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
    job = Job(words, space.names((path, name)), f"/plans/{kept.key}", done)
    answer, kept.releasing = _start(request, job), job
    return answer


def _verify_words(kept: KeptPlan) -> list[str]:
    return ["verify", str(kept.path), *([] if kept.plan.noisy else kept.table.words)]


def _release_words(kept: KeptPlan, form: Form) -> list[str]:
    words = ["release", *kept.table.words, "--plan", str(kept.path)]
    words += [f"--{name}" for name in _FLAGS if name in form]
    ends = [form.get(name, "").strip() for name in ("least", "greatest")]
    return [*words, *(["--bounds", *ends] if any(ends) else [])]


async def released(request: Request) -> Response:
    """Return a released table, to be saved."""
    found = {str(k): each for k, each in enumerate(pages.found(request, "plan").releases, start=1)}
    chosen = pages.known(found, request.path_params["number"], "release")
    return FileResponse(chosen.path, filename=chosen.name)


async def file(request: Request) -> Response:
    """Return the plan, or one of its reports, to be saved."""
    kept, space, name = (
        pages.found(request, "plan"),
        request.app.state.space,
        request.path_params["name"],
    )
    options = {"plan.json": [], "public.html": ["--public"], "report.html": kept.table.words}
    more = pages.known(options, name, "file of a plan")
    if name == "plan.json":
        return FileResponse(kept.path, filename=name)
    path = space.new_file(".html")
    more = [] if kept.plan.noisy and more != ["--public"] else more
    job = Job(["report", str(kept.path), *more, "-o", str(path)], space.names((path, name)))
    space.jobs.start(job)
    await asyncio.wait([job.task])
    if job.state != "done":
        raise InputError(" ".join(job.lines))
    return FileResponse(path, filename=name, background=BackgroundTask(path.unlink))


async def job(request: Request) -> Response:
    """Return the page of a command that runs or failed; that of what it made if it is done."""
    found = pages.found(request, "job")
    if found.location:
        return RedirectResponse(found.location, 303)
    return pages.page("job", job=found, key=request.path_params["job"])


async def state(request: Request) -> Response:
    """Return whether a command still runs, and for how long."""
    found = pages.found(request, "job")
    return JSONResponse({"state": found.state, "seconds": found.seconds})


async def cancel(request: Request) -> Response:
    """Cancel a command."""
    await pages.found(request, "job").cancel()
    return RedirectResponse(f"/jobs/{request.path_params['job']}", 303)
