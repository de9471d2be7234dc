# SPDX-License-Identifier: Apache-2.0
"""Jobs: commands of the package, each in a process of its own that can be cancelled."""

import asyncio
import shlex
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pufferfish.cli.app import explain
from pufferfish.errors import printable

_MAIN = "import sys; from pufferfish.cli import main; sys.exit(main())"
#: Seconds after which a process that was asked to end is killed.
_PATIENCE = 3.0


class Job:
    """A command; its ``state`` is "running", "done", "failed" or "cancelled".

    ``names`` stand for files where the command is shown, and in what it says. ``done`` is called
    when it has succeeded, and returns the address of what it made; ``back`` is where it was asked
    for. ``made`` are the file that it wrote, and what that is called.
    """

    task: asyncio.Task[None]
    made: tuple[Path, str]

    def __init__(
        self, words: Sequence[str], names: Mapping[str, str], back: str = "",
        done: Callable[["Job"], str] = lambda _: "",
    ) -> None:  # fmt: skip
        self.command, self.back = shown(words, names), back
        self.state, self.location, self.output, self.lines = "running", "", "", list[str]()
        self._words, self._done, self.started = words, done, time.monotonic()
        self.named = partial(named, names=dict(names))  # of a text that it says

    async def run(self, *more: str) -> None:
        """Run the command, with further options that are not shown."""
        try:
            status = await self._run(*more)
            self.location = "" if status else self._done(self)
            self.state = "failed" if status else "done"
        except Exception as error:  # it could not be started, or what it made cannot be read
            self.state, self.lines = "failed", [self.named(explain(error)[1])]

    async def _run(self, *more: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _MAIN, *self._words, *more, stdin=DEVNULL, stdout=PIPE,
            stderr=PIPE, start_new_session=True,  # Ctrl-C is for the explorer
        )  # fmt: skip
        try:
            said = [part.decode(errors="replace") for part in await process.communicate()]
        finally:  # also where it is cancelled
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), _PATIENCE)
                except TimeoutError:
                    process.kill()
                    await process.wait()
        self.output = said[0]
        errors = (line.partition(": ")[2] for line in said[1].splitlines())
        self.lines = [printable(self.named(line)) for line in errors]
        return process.returncode or 0

    async def cancel(self) -> None:
        """End the process, and wait until it has ended."""
        if self.state == "running":
            self.state = "cancelled"
            self.task.cancel()
            await asyncio.wait([self.task])


def named(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which ``names`` stand for files."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


def shown(words: Sequence[str], names: Mapping[str, str]) -> str:
    """Return a command as a user would write it."""
    return shlex.join(["pufferfish", *(names.get(word, word) for word in words)])
