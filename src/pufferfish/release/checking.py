# SPDX-License-Identifier: Apache-2.0
"""Checking: the first pass over a table, which refuses before anything is drawn or written.

It is the first half of every release into a file, and stands by itself for whoever has to know that
a table can be released before paying for it.
"""

import warnings
from collections.abc import Callable
from typing import Any

from pufferfish.errors import PufferfishWarning
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.readback import AtomCounter, check_read_back
from pufferfish.release.releaser import Releaser
from pufferfish.release.rows import Columns, Tally, choose_columns, read_rows, rules_of
from pufferfish.tables import Coder, Table, open_table

#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]


def read_through(
    table: Table,
    spec: ReleaseSpec,
    columns: Columns,
    releaser: Releaser,
    coder: Coder,
    progress: Progress | None = None,
) -> Tally:
    """Read every row once, and check all that can be checked before anything is drawn.

    Parameters
    ----------
    table, spec, columns, releaser, coder
        What is read, and how.
    progress : callable, optional
        Called with the rows done, and None.

    Returns
    -------
    Tally
        What was counted.

    Raises
    ------
    InputError
        If a cell cannot be released, a person has another number of rows than the plan knows, or
        the column could be read back and nobody allowed it.

    Warns
    -----
    UnchangedWarning
        If it can be read back, as was allowed.
    """
    atoms = AtomCounter(releaser.mechanism)
    checked = Tally(atoms=atoms)
    for _ in read_rows(table, spec, columns, coder, checked, again=False):
        if progress is not None:
            progress(checked.rows, None)
    check_read_back(spec, releaser, atoms)
    return checked


def check_release(source: Any, spec: ReleaseSpec, progress: Progress | None = None) -> Tally:
    """Check that a table can be released as it is asked for; nothing is drawn or written.

    Warnings are left to the release itself.

    Parameters
    ----------
    source : str, Path, dataframe or Table
        What :func:`pufferfish.tables.open_table` opens.
    spec : ReleaseSpec
        What would be released, and how.
    progress : callable, optional
        Called with the rows done, and None.

    Returns
    -------
    Tally
        What was counted.

    Raises
    ------
    InputError
        As :func:`pufferfish.release.release_file` before it writes anything.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PufferfishWarning)
        table = open_table(source)
        rules = rules_of(spec)
        columns = choose_columns(table, rules, ())
        coder = Coder(spec.support, rules, table)
        return read_through(table, spec, columns, Releaser(spec), coder, progress)
