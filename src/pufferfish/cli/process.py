# SPDX-License-Identifier: Apache-2.0
"""The process: signals that end it, its lines on standard error, and how far its work has come.

A signal becomes an exception, but compiled code may drop it: DuckDB and pyarrow do. So it is
remembered too, and :func:`check`, called after every batch of rows and before a file gets its
name, raises again.
"""

import contextlib
import shutil
import signal
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from pufferfish.errors import PufferfishWarning, printable

#: The signals that arrived while the command ran; a process has only one place for them.
received: list[int] = []


class Stopped(BaseException):
    """The process was asked to end: files in progress are removed on the way out."""


def check() -> None:
    """Stop here if a signal arrived."""
    if received:
        raise Stopped


@contextlib.contextmanager
def listening(last: bool) -> Iterator[None]:
    """Listen while a command runs; ``last``: the process ends afterwards, and hears no more."""
    received.clear()
    # A signal that the parent told us to ignore stays ignored.
    before = [
        (number, signal.signal(number, _handle))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]
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
    received.append(number)
    raise Stopped


def progress(after: float = 1.0, noun: str = "rows") -> Callable[[int, int | None], None]:
    """Return a callback for rows done, and rows in all: it checks for signals and shows them.

    It shows them on a terminal alone, and only where the work lasts so many seconds.
    """
    start = time.monotonic()

    def step(rows: int, total: int | None) -> None:
        check()
        late = time.monotonic() - start >= after
        if late and sys.stderr is not None and sys.stderr.isatty():
            of = "" if total is None else f" of {total}"
            # The next line on the terminal, which is longer, takes the place of this one.
            print(f"{rows}{of} {noun}", end="\r", file=sys.stderr, flush=True)

    return step


def one_line(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    return printable(" ".join(text.split()))


def shown(line: str, stream: Any) -> str:
    """Return a line as a stream shows it: wrapped between words on a terminal, else whole.

    A command to be copied, which stands at the end after a colon, stays whole.
    """
    text, width = one_line(line), shutil.get_terminal_size().columns
    if len(text) <= width or not stream.isatty():
        return text
    words, colon, command = text.partition(": pufferfish ")
    filled = textwrap.fill(
        words, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return f"{filled}:\n  pufferfish {command}" if colon else filled


class Messages:
    """Notes and warnings of a command, each printed once on standard error, when its work is done.

    A command that fails prints one line, the error, and what remains in spite of it.
    """

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments
        self._waiting: dict[str, None] = {}

    def note(self, text: str) -> None:
        """Say what was done, where nothing is wrong with it."""
        self._waiting[f"note: {text}"] = None

    def warning(self, text: str) -> None:
        """Say what the user should look at."""
        self._waiting[f"warning: {text}"] = None

    def error(self, text: str, error: BaseException | None = None) -> None:
        """Print why the command failed, and what remains in spite of it (the notes of an error)."""
        remains = getattr(error, "__notes__", ())
        self._waiting = {f"error: {'; '.join([text, *remains])}": None}
        self.finish()

    def finish(self) -> None:
        """Print what was said."""
        for line in self._waiting:
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):  # nobody listens
                    print(shown(f"pufferfish: {line}", sys.stderr), file=sys.stderr, flush=True)
        self._waiting.clear()

    @contextlib.contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Show Python's warnings like any other message while a command runs."""

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            known = issubclass(category, PufferfishWarning)
            # The text of a warning of a library may quote cells.
            self.warning(str(message) if known else f"a {category.__name__} of a library")

        with warnings.catch_warnings():
            warnings.simplefilter("always", PufferfishWarning)
            warnings.showwarning = show
            yield
