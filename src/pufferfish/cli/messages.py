# SPDX-License-Identifier: Apache-2.0
"""What is said on standard error: one line each, and each only once."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from pufferfish.errors import PufferfishWarning


def one_line(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    blanked = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in blanked)


class Messages:
    """Notes and warnings of a command, printed on standard error when it has done its work.

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
        remains = () if error is None else getattr(error, "__notes__", ())
        self._waiting = {f"error: {'; '.join([text, *remains])}": None}
        self.finish()

    def finish(self) -> None:
        """Print what was said, each line once."""
        for line in self._waiting:
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):  # nobody listens
                    print(f"pufferfish: {one_line(line)}", file=sys.stderr, flush=True)
        self._waiting.clear()

    @contextlib.contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Show Python's warnings like any other message while a command runs."""

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            known = issubclass(category, PufferfishWarning)
            self.warning(str(message) if known else f"{category.__name__}: {message}")

        with warnings.catch_warnings():
            warnings.simplefilter("always", PufferfishWarning)
            warnings.showwarning = show
            yield
