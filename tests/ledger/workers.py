# SPDX-License-Identifier: Apache-2.0
"""Processes that spend from a ledger, for the tests that run many of them and kill some.

A line on standard input gives a task: `spend PATH AMOUNT TIMES` tries to charge so often (and says
"refused" where it does not fit), `hammer PATH AMOUNT SIZE` charges for ever. Each charge that is
durable is told by its id on standard output, and the end of a task by "done".

With `commands` as a second argument they run whole commands instead: see `serve_commands`.
"""

import contextlib
import importlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from pufferfish.errors import InputError
from pufferfish.ledger import records, store
from pufferfish.ledger.records import Dataset, ReleaseRecord

NAME = "students"


def opened(path: Path) -> Path:
    """Make a ledger with a dataset and a budget of 1."""
    store.create(path)
    with store.writing(path) as connection:
        records.add_dataset(connection, Dataset(NAME, "higher", Fraction(1), "d" * 64, 100, False))
    return path


def add(connection: sqlite3.Connection, bound: Fraction, plan: str = "{}") -> str:
    made = ReleaseRecord(NAME, "x", plan, True, bound, "worst-case sum")
    records.add_release(connection, made)
    return made.id


def change_against(path: Path, trigger: str, statement: str) -> None:
    """Change a ledger in spite of one of its triggers, which is there again afterwards."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        query = f"SELECT sql FROM sqlite_master WHERE name = '{trigger}'"
        (definition,) = connection.execute(query).fetchone()
        for each in (f"DROP TRIGGER {trigger}", statement, definition):
            connection.execute(each)


def charge_once(path: Path, amount: Fraction, plan: str = "{}", pause: float = 0.0) -> str | None:
    """Charge a release whose worst case is the amount; None where the budget does not allow it."""
    with store.writing(path) as connection:
        before = records.releases(connection, NAME)
        after = amount + (before[-1].bound if before else 0)
        if after > 1:
            return None
        time.sleep(pause)  # so that whoever does not wait for others does harm
        return add(connection, after, plan)


def without_transaction() -> None:
    """A wrong variant: each statement stands alone."""
    store.writing = store._connected


def with_late_lock() -> None:
    """A wrong variant: the lock of those who write is taken when something is written."""

    @contextlib.contextmanager
    def writing(path: Path) -> Iterator[sqlite3.Connection]:
        with store._connected(path) as connection:
            connection.execute("BEGIN")
            yield connection
            store._patiently(connection, "COMMIT")

    store.writing = writing


def telling_too_early() -> None:
    """A wrong variant: a charge is told before it is durable, as a release would come too early."""
    honest = store.writing

    @contextlib.contextmanager
    def writing(path: Path) -> Iterator[sqlite3.Connection]:
        with honest(path) as connection:
            yield connection
            say(records.releases(connection)[-1].id)
            time.sleep(0.05)

    store.writing = writing


def without_a_second_look(put: Callable[..., Any] = setattr) -> None:
    """A wrong variant: nobody looks whether another release was charged in the meantime."""
    from pufferfish.ledger.pricing import Subject

    state = Subject.state

    def blind(self: Subject, connection: sqlite3.Connection) -> Any:
        return vars(self).setdefault("first", state(self, connection))

    put(Subject, "state", blind)


def charging_after_the_output() -> None:
    """A wrong variant: an output is in place before its release is charged."""
    from pufferfish.ledger.ledger import Ledger

    charge = Ledger.charge

    @contextlib.contextmanager
    def charged_late(self: Ledger, *arguments: Any, **options: Any) -> Any:
        yield SimpleNamespace(id="0", price=self.price(*arguments, **options))
        with charge(self, *arguments, **options):
            pass

    Ledger.charge = charged_late  # type: ignore[method-assign]  # wrong on purpose


MUTANTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "without": without_transaction,
    "late": with_late_lock,
    "early": telling_too_early,
    "blind": without_a_second_look,
    "after": charging_after_the_output,
}


def say(text: str) -> None:
    print(text, flush=True)


def serve_commands() -> None:
    """Run commands in forked processes, so that what takes long is loaded only once.

    A line holds a command's arguments, with the file for its messages last, and is answered by
    the id of the process; a process's id is answered by its exit status.
    """
    for name in ("duckdb", "pufferfish.cli.app", "pufferfish.cli.release"):
        importlib.import_module(name)
    say("ready")
    for line in sys.stdin:
        task = json.loads(line)
        if isinstance(task, int):
            say(str(os.waitstatus_to_exitcode(os.waitpid(task, 0)[1])))
            continue
        *arguments, log = task
        child = os.fork()
        if child == 0:
            run_command(arguments, log)
        say(str(child))


def run_command(arguments: list[str], log: str) -> NoReturn:
    """Be the command, in a forked process; one that hangs is ended."""
    from pufferfish.cli import main

    status = 70
    try:
        signal.alarm(300)
        messages = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(messages, stream)
        status = main(arguments)
    finally:
        os._exit(status)


def main() -> None:
    MUTANTS[sys.argv[1]]()
    if sys.argv[2:] == ["commands"]:
        serve_commands()
        return
    say("ready")
    for line in sys.stdin:
        kind, path, amount, number = line.rstrip("\n").split("\t")
        each = Fraction(amount)
        if kind == "hammer":
            while True:
                say(charge_once(Path(path), each, plan="p" * int(number)) or "refused")
        for _ in range(int(number)):
            try:
                say(charge_once(Path(path), each, pause=0.003) or "refused")
            except InputError as error:
                say(f"failed: {error}")
        say("done")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
