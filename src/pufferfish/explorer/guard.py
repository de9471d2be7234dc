# SPDX-License-Identifier: Apache-2.0
"""Guard: who may ask the explorer for anything, and what its pages may load.

It serves this machine alone. Whoever opens the address that the command printed shows its token
once, and gets it as a cookie. What asks for another host (a name that came to mean this machine),
comes from a page of another origin, or lacks the token is refused before anything is read.
"""

import secrets
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
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


class Guard:
    """ASGI middleware around an application, served at a port, that begins at some path."""

    def __init__(self, app: ASGIApp, port: int, begins: str = "/") -> None:
        self._app, self._begins, self._place = app, begins, f"{HOST}:{port}"
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
