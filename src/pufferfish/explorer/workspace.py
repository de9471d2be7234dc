# SPDX-License-Identifier: Apache-2.0
"""Workspace: the tables, plans, commands and releases of a session, in a temporary folder.

Each command runs in a process of its own, which can be cancelled.
"""

import asyncio
import os
import re
import shutil
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pufferfish.cli.app import explain
from pufferfish.errors import InputError, printable, short_name
from pufferfish.explorer.pages import Form, named, shown
from pufferfish.explorer.preview import Counted, options_of
from pufferfish.files import home_expanded, named_path, writing
from pufferfish.paper.table import write_table
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import scenario_of_table
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table

#: Bytes that stay free on the disk; choices of a table that stay counted; jobs that run at once.
_SPARE, _MOST_COUNTED, _MOST_JOBS = 1 << 28, 4, 2
_DEMO = "census"
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
        self, words: Sequence[str], names: Mapping[str, str], back: str,
        done: Callable[["Job"], str],
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


@dataclass(eq=False)
class OpenTable:
    """A table of the session, what it is called, and what was counted in it."""

    key: str
    path: str
    name: str
    table: Table
    asked: str = ""  # the last choices, as in an address
    releasing: Job | None = None

    def __post_init__(self) -> None:
        self._counted = lru_cache(_MOST_COUNTED)(partial(Counted, self.table))

    def count(self, form: Form) -> Counted:
        """Return the scenario of a form; only the last ones stay counted."""
        return self._counted(tuple(options_of(form, counting=True)))


@dataclass(eq=False)
class KeptPlan:
    """A plan for a table, the calibration that made it here, and what was made by it."""

    key: str
    path: Path
    plan: Plan
    table: OpenTable
    job: Job | None = None
    releases: dict[str, Job] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The plan, and the table if it needs one, as ``verify`` and ``report`` take them."""
        return [str(self.path), *([] if self.plan.noisy else [self.table.path])]


class Workspace:
    """What a session holds; whoever made the folder removes it.

    ``given`` is the table that the command names, if any.
    """

    def __init__(self, folder: Path, ledger: str | None = None, given: str | None = None) -> None:
        self.folder, self.ledger, self._given = folder, ledger, given
        self.tables: dict[str, OpenTable] = {}
        self.plans: dict[str, KeptPlan] = {}
        self.names: dict[str, str] = {}  # what stands for each file where people see it
        self.jobs: dict[str, Job] = {}
        self._made = 0

    def new_file(self, ending: str, name: str) -> Path:
        """Return the path of a new file, of which no part is from its ``name`` for people."""
        self._made += 1
        path = self.folder / f"{self._made}-file{ending}"
        self.names[str(path)] = name
        return path

    def begin(self) -> OpenTable:
        """Open the table that the command names, or one of the paper, which needs no file."""
        if self._given is not None:
            return self.open_table(self._given)
        path = self.folder / f"{_DEMO}.csv"
        if not path.exists():
            write_table(_DEMO, path)
        return self.open_table(str(path), path.name)

    def open_file(self, path: str) -> OpenTable:
        """Open a file of this machine."""
        if not home_expanded(named_path(path)).is_file():
            raise InputError(
                f"there is no file {path!r} on this machine; give the whole path of a table, such "
                "as /home/me/table.csv"
            )
        return self.open_table(path)

    def open_table(self, path: str, name: str = "") -> OpenTable:
        """Open a table, or return the one that is open already."""
        whole = os.path.realpath(home_expanded(Path(path)))
        for table in self.tables.values():
            if table.path == whole:
                return table
        self._made += 1
        table = OpenTable(str(self._made), whole, name or path, open_table(whole))
        self.tables[table.key], self.names[whole] = table, table.name
        return table

    def keep_plan(self, path: Path, plan: Plan, table: OpenTable, job: Any = None) -> KeptPlan:
        """Keep the plan of a file."""
        self._made += 1
        kept = KeptPlan(str(self._made), path, plan, table, job)
        self.plans[kept.key] = kept
        return kept

    def load_plan(self, path: Path, table: OpenTable) -> KeptPlan:
        """Keep a plan that comes from elsewhere, if it is verified on its table."""
        plan = Plan.load(path)
        plan.verify(None if plan.noisy else scenario_of_table(plan, table.table))
        return self.keep_plan(path, plan, table)

    def start(self, job: Job, *more: str) -> str:
        """Start a job, and return its key; refuse it where too many run."""
        if sum(each.state == "running" for each in self.jobs.values()) >= _MOST_JOBS:
            raise InputError(f"{_MOST_JOBS} commands run already: wait for one, or cancel it")
        key = str(len(self.jobs) + 1)
        self.jobs[key] = job
        job.task = asyncio.create_task(job.run(*more))
        return key

    def released(self, table: OpenTable) -> int:
        """Return how many releases of a table were made in this session."""
        return sum(len(plan.releases) for plan in self.plans.values() if plan.table is table)

    async def receive(self, chunks: AsyncIterator[bytes], path: Path, megabytes: int) -> None:
        """Write what a browser sends to a new file.

        What is too large is read on without being kept, so that the browser hears why.
        """
        size, most, fault = 0, megabytes * 10**6, ""
        with writing(path), path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    fault = f"the file is larger than {megabytes:,} MB"
                elif shutil.disk_usage(self.folder).free < _SPARE:
                    fault = "the disk of the temporary folder is full"
                elif not fault:
                    file.write(chunk)
                if size > 4 * most:
                    break
        if fault:
            raise InputError(f"{fault}: give its path on this machine instead")


def upload_name(given: str) -> tuple[str, str]:
    """Return what an upload is called, and the ending of its file: letters, which tell its kind."""
    name = printable(short_name(given.replace("\\", "/").rpartition("/")[2].strip()))
    return name, "".join(re.findall(r"(?:\.[a-z]{2,8}){1,2}$", name.lower(), re.ASCII))
