# SPDX-License-Identifier: Apache-2.0
"""App: which page, or which deed, an address stands for."""

import click
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from pufferfish.errors import PufferfishError
from pufferfish.explorer import plan_pages, table_pages
from pufferfish.explorer.pages import refused
from pufferfish.explorer.workspace import Workspace

_TABLE, _PLAN, _JOB = "/tables/{table}", "/plans/{plan}", "/jobs/{job}"
_SHOWN = {
    "/": table_pages.start,
    "/begin": table_pages.begin,
    _TABLE: table_pages.show,
    _TABLE + "/preview/{part}": table_pages.preview,
    _JOB: plan_pages.job,
    _JOB + "/state": plan_pages.state,
    _PLAN: plan_pages.show,
    _PLAN + "/file/{name}": plan_pages.file,
    _PLAN + "/releases/{number}": plan_pages.released,
}
_DONE = {
    "/tables": table_pages.open_file,
    "/upload": table_pages.upload,
    "/demo": table_pages.demo,
    _TABLE + "/close": table_pages.close,
    _TABLE + "/calibrate": plan_pages.calibrate,
    _JOB + "/cancel": plan_pages.cancel,
    _PLAN + "/verify": plan_pages.verify,
    _PLAN + "/release": plan_pages.release,
}


def application(space: Workspace) -> Starlette:
    """Return the application of a session."""
    routes = [Route(path, show, methods=["GET"]) for path, show in _SHOWN.items()]
    routes += [Route(path, do, methods=["POST"]) for path, do in _DONE.items()]
    kinds = (PufferfishError, HTTPException, click.ClickException, OSError, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, refused))
    app.state.space = space
    return app
