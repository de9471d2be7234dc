# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM: remembered when they arrive, and asked for again where work can stop.

A signal becomes an exception, but compiled code may drop it: DuckDB and pyarrow do. So it is
remembered too, and :func:`check`, called after every batch of rows and before a file gets its
name, raises again.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The process was asked to end: files in progress are removed on the way out."""


#: The signals that arrived while the command ran; a process has only one place for them.
_received: list[int] = []


def received() -> int | None:
    """Return the first signal that arrived while the command ran, or None."""
    return _received[0] if _received else None


def check(*_: object) -> None:
    """Stop here if a signal arrived; a progress callback."""
    if _received:
        raise Stopped


def ignore() -> None:
    """Ignore signals from now on: the work is done, and only the interpreter's own end remains."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def listening(last: bool) -> Iterator[None]:
    """Listen while a command runs; ``last``: the process ends afterwards."""
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal that the parent told us to ignore stays ignored.
    heard = [n for n in _SIGNALS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    before = [(number, signal.signal(number, _handle)) for number in heard]
    hook = sys.unraisablehook

    def unraisable(found: "sys.UnraisableHookArgs") -> None:
        # Raised where nothing can be raised, and remembered: no reason for a traceback.
        if not issubclass(found.exc_type, Stopped):
            hook(found)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before:
            signal.signal(number, signal.SIG_IGN if last else handler)


def _handle(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise Stopped
