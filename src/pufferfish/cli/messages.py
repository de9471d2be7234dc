# SPDX-License-Identifier: Apache-2.0
"""Messages: what is said on standard error, one line each, and each only once.

Notes and warnings wait until the command has done its work: they stand below the result, where
they are seen, and a command that fails says one line, the error.
"""

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

from pufferfish.errors import PufferfishWarning, listed

#: The library names an option in both of its ways; who types a command is told of one of them.
_PYTHON = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r" \((?:force|other_prior|allow_unchanged|new_table|missing_as_level)=True\)", ""),
        (r" \((?:min_scale|step|order|levels|missing|keep|bounds|exclude_secrets|public|secret"
         r"|column|missing_as_level|unit)=[^()\s]*\)", ""),
        (r" \((?:plan\.)?with_columns\([a-z_]+=[^()]*\)\)", ""),
        (r"(--(?:min-scale|round|bounds)) \((?:min_scale|round|bounds)\)", r"\1"),
        (r"\(confidence or tv_radius\)", "(--confidence or --tv-radius)"),
        (r"\bmin_keep(?= \d| or a larger epsilon)", "--min-keep"),
        (r" \(out_of_support='\w+'\)", ""),
        (r"(?:order=\[\.\.\.\] )?\((--[a-z-]+) on the command line\)", r"\1"),
        (r"; counts go into Prior\.from_counts$", "; give probabilities, not counts"),
        (r" \(Int64\)", ""),
        (r"(?<![\w.,])1 (row|value|level|secret|cell)s\b", r"1 \1"),
        (r"\b(the levels .*) does not fit\b", r"\1 do not fit"),
    )
)  # fmt: skip


def command_line_words(text: str) -> str:
    """Return what the library says without what only a Python programmer could use.

    Parameters
    ----------
    text : str
        A message, such as "... exists already; give another name, or --force (force=True) ...".
    """
    for pattern, said in _PYTHON:
        text = pattern.sub(said, text)
    return text


def one_line(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    blanked = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in blanked)


class Messages:
    """Says notes, warnings and errors on standard error."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._written: list[str] = []
        self._lasting: list[str] = []

    def note(self, text: str) -> None:
        """Say what was done, where nothing is wrong with it."""
        self._waiting[_line("note", text)] = None

    def warning(self, text: str) -> None:
        """Say what the user should look at."""
        self._waiting[_line("warning", text)] = None

    def wrote(self, path: str) -> None:
        """Remember a file that is complete, whatever happens after it."""
        self._written.append(path)

    @contextlib.contextmanager
    def lasting(self, text: str) -> Iterator[None]:
        """Say what stays as it is now if the command fails in this block."""
        self._lasting.append(text)
        yield
        self._lasting.remove(text)

    def error(self, text: str) -> None:
        """Say why the command failed, which files are written and what lasts, nothing else."""
        self._waiting.clear()
        if self._written:
            text = f"{text}; {listed(self._written)} was written before"
        text = "; ".join([text, *self._lasting])
        _print(_line("error", text))

    def finish(self) -> None:
        """Print the notes and warnings of a command that has done its work."""
        for line in self._waiting:
            _print(line)
        self._waiting.clear()

    @contextlib.contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Show Python's warnings like any other message while a command runs."""

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            known = issubclass(category, PufferfishWarning)
            self.warning(str(message) if known else f"{category.__name__}: {message}")

        with warnings.catch_warnings():
            warnings.simplefilter("always", PufferfishWarning)
            warnings.showwarning = show
            yield


def _line(kind: str, text: str) -> str:
    return f"pufferfish: {kind}: {one_line(command_line_words(text))}"


def _print(line: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # nobody can be told that nobody listens
            print(line, file=sys.stderr, flush=True)
