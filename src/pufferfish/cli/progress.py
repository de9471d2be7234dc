# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: bars where a person looks, and a look for signals everywhere."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pufferfish.cli import signals


def _bars(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(
        *columns,
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,  # the output may be a program's
    )


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def steps(what: str, number: int) -> Iterator[Callable[[], None]]:
    """Show how many of a known number of steps are done.

    Yields
    ------
    callable
        To be called after each step; stops the work if a signal arrived.
    """
    if not _watched() or number < 2:
        yield signals.check
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    with _bars(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as bars:
        task = bars.add_task(what, total=number)

        def done() -> None:
            signals.check()
            bars.advance(task)

        yield done


@contextlib.contextmanager
def rows() -> Iterator[Callable[[int, int | None], None]]:
    """Show how many rows of a table are done: first checked, then written.

    Yields
    ------
    callable
        To be called with the rows done and the rows in all (None while these are not known); stops
        the work if a signal arrived.
    """
    if not _watched():
        yield lambda rows_done, rows_in_all: signals.check()
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    with _bars(text, BarColumn(), TimeElapsedColumn()) as bars:
        task = bars.add_task("checking rows", total=None)

        def done(rows_done: int, rows_in_all: int | None) -> None:
            signals.check()
            verb = "checked" if rows_in_all is None else "written"
            bars.update(
                task, description=f"{rows_done:,} rows {verb}",
                total=rows_in_all, completed=rows_done,
            )  # fmt: skip

        yield done
