# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM: remembered when they arrive, and asked for again where work can stop.

A signal becomes an exception, but a library may swallow it: DuckDB and pyarrow import optional
modules from compiled code, and drop whatever that raises. So the signal is remembered too, and
:func:`check`, called after every batch of rows and before anything gets its name, raises again.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["Terminated", "check", "deafen", "listening", "received"]


class Terminated(BaseException):
    """The process was asked to end: files in progress are removed on the way out."""


#: The signals that arrived while the command ran; a process has only one place for them.
_received: list[int] = []


def received() -> int | None:
    """Return the first signal that arrived while the command ran, or None."""
    return _received[0] if _received else None


def check() -> None:
    """Stop here if a signal arrived, whatever a library made of it.

    Raises
    ------
    KeyboardInterrupt, Terminated
        For Ctrl-C, and for the request to end.
    """
    number = received()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number is not None:
        raise Terminated


def deafen() -> None:
    """Ignore signals from now on: the work is done, and only the interpreter's own end remains."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def listening(last: bool) -> Iterator[None]:
    """Listen while a command runs, in the main thread; elsewhere Python has no handlers.

    Parameters
    ----------
    last : bool
        Whether the process ends afterwards: then signals are ignored and not what they were.
    """
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: list[tuple[int, Any]] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # A signal that the parent told us to ignore stays ignored.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            before.append((number, signal.signal(number, _handle)))
    hook = sys.unraisablehook

    def unraisable(found: "sys.UnraisableHookArgs") -> None:
        # Raised where nothing can be raised, and remembered: no reason for a traceback.
        if not issubclass(found.exc_type, KeyboardInterrupt | Terminated):
            hook(found)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for listened, handler in before:
            signal.signal(listened, signal.SIG_IGN if last else handler)


def _handle(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated
