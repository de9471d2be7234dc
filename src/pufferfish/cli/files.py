# SPDX-License-Identifier: Apache-2.0
"""Files that a command names: is each there, is an output none of the inputs, was it written."""

import contextlib
import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pufferfish.cli.messages import Messages
from pufferfish.errors import InputError

if TYPE_CHECKING:
    from pufferfish.plan import Plan

#: Endings of tables, none of which is a plan.
_TABLES = (".csv", ".tsv", ".tab", ".txt", ".gz", ".parquet", ".pq")
#: Nearer than other names have to be: files of a folder often differ in one letter on purpose.
_CUTOFF = 0.65


def check_there(path: str, what: str) -> None:
    """Check that an input exists, before anything is read.

    Parameters
    ----------
    path : str
        As the user wrote it.
    what : str
        What it is, such as "plan file".

    Raises
    ------
    InputError
        If it does not; names the nearest file beside it.
    """
    if not os.path.lexists(path) and Path(path).parent.is_dir():
        raise InputError(f"there is no {what} {path}{near_file(path)}")


def near_file(path: str) -> str:
    """Return ``' (did you mean ...?)'`` for the nearest file in the same folder, or nothing."""
    given = Path(path)
    try:
        names = [entry.name for entry in given.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""

    def ratio(one: str, other: str) -> float:
        return difflib.SequenceMatcher(None, one.casefold(), other.casefold()).ratio()

    def likeness(name: str) -> tuple[float, float]:
        return ratio(given.stem, Path(name).stem), ratio(given.name, name)

    best = max(names, key=likeness, default="")
    # The ending alone, which many files share, makes no two names alike.
    return f" (did you mean {best!r}?)" if best and likeness(best)[0] >= _CUTOFF else ""


def check_not_input(output: str, inputs: Iterable[str | None], what: str) -> None:
    """Check that a file to be written is none of those that are read, by any of its names.

    Parameters
    ----------
    output : str
        The file to be written.
    inputs : iterable of str or None
        The files that are read; None is none.
    what : str
        What the output is, such as "the plan".

    Raises
    ------
    InputError
        If it is; nothing allows that, as the input would be lost.
    """
    for path in inputs:
        if path is not None and _same_file(output, path):
            by = "" if path == output else f" (it is {path})"
            raise InputError(
                f"{what} cannot be written to {output}: that is the input itself{by}, which would "
                "be lost; give another name"
            )


def _same_file(one: str, other: str) -> bool:
    """Whether two paths are one file: by name, through a symbolic link, or by a second name."""
    from pufferfish.atomic import home_expanded

    # A table's ~ stands for the home folder, so every path is also looked at with it expanded.
    first = {one, str(home_expanded(Path(one)))}
    second = {other, str(home_expanded(Path(other)))}
    return any(_same_path(a, b) for a in first for b in second)


def _same_path(one: str, other: str) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def check_plan_target(path: str, force: bool) -> None:
    """Check that a plan can be saved, before anything long is computed.

    Raises
    ------
    InputError
        If the file exists and must not be replaced, or its folder does not exist.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"the plan cannot be saved as {path}: it is a folder")
    if not target.parent.is_dir():
        raise InputError(f"the plan cannot be saved as {path}: there is no folder {target.parent}")
    if target.exists() and not force:
        raise InputError(f"{path} exists already; give another name, or --force to replace it")


@contextlib.contextmanager
def writing(path: str, messages: Messages) -> Iterator[None]:
    """Remember that a file was written, so that an error after that says so.

    An interrupt may come between the moment a file gets its name and the end of the work on it.
    """
    before = _state(path)
    try:
        yield
    except Exception:
        raise
    except BaseException:
        if _state(path) not in (before, None):
            messages.wrote(path)
        raise
    messages.wrote(path)


def _state(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def load_plan(path: str) -> "Plan":
    """Read a plan; a file of another kind is called that.

    Raises
    ------
    InputError
        If it does not exist or is no plan.
    """
    from pufferfish.plan import Plan

    check_there(path, "plan file")
    try:
        return Plan.load(path)
    except InputError:
        if Path(path).suffix.lower() in _TABLES and Path(path).is_file():
            raise InputError(
                f"{path} is no plan, but looks like a table; a plan is the file that calibrate "
                "--save writes"
            ) from None
        raise
