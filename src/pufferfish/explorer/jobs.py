# SPDX-License-Identifier: Apache-2.0
"""Jobs: commands of the package, each in a process of its own that can be cancelled."""

import asyncio
import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pufferfish.errors import InputError, printable

_MAIN = "import sys; from pufferfish.cli import main; sys.exit(main())"
#: Jobs that run at once; seconds after which a process that was asked to end is killed.
_MOST, _PATIENCE = 2, 3.0


class Job:
    """A command; its ``state`` is "running", "done", "failed" or "cancelled".

    ``names`` stand for files where the command is shown, and in what it says. ``done`` is called
    when it has succeeded, and returns the address of what it made; ``back`` is where it was asked
    for.
    """

    def __init__(
        self, words: Sequence[str], names: Mapping[str, str], back: str = "",
        done: Callable[["Job"], str] = lambda _: "",
    ) -> None:  # fmt: skip
        self.command = shown(words, names)
        self.state, self.back, self.location = "running", back, ""
        self.output, self.lines = "", list[str]()
        self._words, self._names, self._done = words, names, done
        self._start, self._process = time.monotonic(), None
        self.task: asyncio.Task[None] | None = None  # without a name for it, it could vanish

    @property
    def seconds(self) -> int:
        """For how long it has run."""
        return int(time.monotonic() - self._start)

    async def run(self, *more: str) -> None:
        """Run the command, with further options that are not shown."""
        pipe: Any = asyncio.subprocess.PIPE
        process: Any = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _MAIN, *self._words, *more, stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe, stderr=pipe, start_new_session=True,  # Ctrl-C is for the explorer
        )  # fmt: skip
        self._process = process
        said = [part.decode(errors="replace") for part in await process.communicate()]
        for file, name in self._names.items():
            said = [part.replace(file, name) for part in said]
        self.output = said[0]
        self.lines = [printable(line.partition(": ")[2]) for line in said[1].splitlines()]
        if self.state == "running":
            self.state = "failed" if process.returncode else "done"
        if self.state == "done":
            self.location = self._done(self)

    async def cancel(self) -> None:
        """End the process, and wait until it has ended."""
        process: Any = self._process
        if self.state != "running" or process is None:
            return
        self.state = "cancelled"
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _PATIENCE)
            except TimeoutError:
                process.kill()


class Jobs(dict[str, Job]):
    """The jobs of a session by their keys."""

    def start(self, job: Job, *more: str) -> str:
        """Start a job, and return its key; refuse it where too many run."""
        if sum(each.state == "running" for each in self.values()) >= _MOST:
            raise InputError(f"{_MOST} commands run already: wait for one, or cancel it")
        key = str(len(self) + 1)
        self[key] = job
        job.task = asyncio.create_task(job.run(*more))
        return key


def shown(words: Sequence[str], names: Mapping[str, str]) -> str:
    """Return a command as a user would write it."""
    return shlex.join(["pufferfish", *(names.get(word, word) for word in words)])
