# SPDX-License-Identifier: Apache-2.0
"""Progress bars for long work: on standard error, and only where a person looks."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


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
        To be called after each step.
    """
    if not _watched() or number < 2:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    with _bars(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as bars:
        task = bars.add_task(what, total=number)
        yield lambda: bars.advance(task)


@contextlib.contextmanager
def rows() -> Iterator[Callable[[int, int | None], None] | None]:
    """Show how many rows of a table are done: first checked, then written.

    Yields
    ------
    callable or None
        To be called with the rows done and the rows in all (None while these are not known).
    """
    if not _watched():
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    with _bars(text, BarColumn(), TimeElapsedColumn()) as bars:
        task = bars.add_task("checking rows", total=None)

        def done(rows_done: int, rows_in_all: int | None) -> None:
            verb = "checked" if rows_in_all is None else "written"
            bars.update(
                task, description=f"{rows_done:,} rows {verb}",
                total=rows_in_all, completed=rows_done,
            )  # fmt: skip

        yield done
