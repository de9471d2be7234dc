# SPDX-License-Identifier: Apache-2.0
"""Sweep: many calibrations, from one count of a table, as one tidy table with a row for each.

Processes compute them, of which none harms the others when it dies. What is done is kept in a
journal beside the output, so that a sweep that was stopped goes on from there.
"""

import hashlib
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from copy import copy
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish import __version__
from pufferfish.calibration.registry import method_named
from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.files import PRIVATE, PendingFile, checked_target, writing
from pufferfish.numbers import Number, parse_epsilon
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.release.sinks import TextSink, as_text, sink_for
from pufferfish.report.compare import limits_of, results_of, what_to_calibrate
from pufferfish.tables.frames import FrameTable
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table, one_array, one_pass, strings

Row = dict[str, Any]
#: A scenario, epsilon, the name of the result, and the arguments of ``calibrate``.
Task = tuple[Scenario, str, str, Mapping[str, Any]]
_ENDED = {"reason": "its process ended, perhaps for lack of memory"}
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_WORKER = "import sys; sys.path[:] = {}; from pufferfish.report.sweep import serve; serve()"


def sweep(
    table: str | Path | Any, *, secrets: str | Iterable[str], publics: str | Iterable[str],
    epsilons: Number | Iterable[Number], mechanisms: str | Sequence[str] = "all",
    jobs: int | None = None, output: str | Path | None = None, force: bool = False,
    progress: Callable[[int, int], object] | None = None, **reading: Any,
) -> pa.Table:  # fmt: skip
    """Calibrate for all secrets, public columns, epsilons and mechanisms, in parallel processes.

    Parameters
    ----------
    table : path or dataframe
        As for :meth:`pufferfish.Prior.from_table`; a file is read once.
    secrets, publics : str, or iterable of str
        Columns; each pair is calibrated for as if nothing else were published.
    epsilons, mechanisms
        As for :func:`pufferfish.compare`.
    jobs : int, optional
        Processes; by default one for each core. The result does not depend on it.
    output : path, optional
        Also write the result, as CSV, TSV or Parquet, readable by you alone. The same call goes on
        with a sweep that was stopped, from the journal ``.NAME.sweep``.
    force : bool
        Replace an output that exists.
    progress : callable, optional
        Called with the number of cells that are done, and of all; may raise.
    **reading
        How columns are read, as for :meth:`pufferfish.Prior.from_table`.

    Returns
    -------
    pyarrow.Table
        A row for each cell, in the order of the arguments, with the names of ``calibrate --format
        csv``; ``reason`` says why a calibration failed, ``warnings`` are those about its columns.

    Raises
    ------
    InputError
        If nothing can be calibrated for, or the output or its journal is not this sweep's.
    """
    source = open_table(table)
    target = sink_of = None
    if output is not None:
        target = checked_target(output, force, source.inputs)
        sink_of = sink_for(output)
    own, other, named = ([n] if isinstance(n, str) else n for n in (secrets, publics, mechanisms))
    pairs = list(product(*(dict.fromkeys(map(source.column, names)) for names in (own, other))))
    methods = [name if name == "all" else method_named(name).name for name in named]
    progress = progress or (lambda done, cells: None)
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be a number of processes from 1, but {jobs} was given")
    limits, counted = limits_of(epsilons), _counted(source, pairs)
    cells = [c for pair in pairs for c in _cells(counted, pair, limits, methods, reading)]
    tasks = {cell: task for cell, (_, task) in enumerate(cells) if task}
    if not tasks:
        raise InputError(cells[0][0]["reason"] if cells else "a sweep needs one of each argument")
    with _journal(target, tasks) as journal:
        kept = journal.execute("SELECT cell, row FROM sweep WHERE cell >= 0")
        done: dict[int, Row] = {cell: json.loads(row) for cell, row in kept}
        todo = {cell: task for cell, task in tasks.items() if cell not in done}
        progress(before := len(cells) - len(todo), len(cells))
        with closing(_computed(todo, jobs or os.cpu_count() or 1)) as computed:
            for number, (cell, row) in enumerate(computed, start=before + 1):
                done[cell] = row
                if row != _ENDED:  # which another run tries again
                    journal.execute("INSERT INTO sweep VALUES (?, ?)", (cell, json.dumps(row)))
                progress(number, len(cells))
        found = _to_arrow([about | done.get(n, {}) for n, (about, _) in enumerate(cells)])
        if target and sink_of:
            with writing(target), PendingFile(target, force, PRIVATE) as pending:
                sink = sink_of(pending.file, found.column_names)
                text = as_text if isinstance(sink, TextSink) else one_array
                sink.write({name: text(found.column(name)) for name in found.column_names})
                sink.close()
                pending.publish()
    return found


def _counted(table: Table, pairs: Iterable[Sequence[str]]) -> Table:
    """Return a table that knows the counts of pairs of columns, from one pass."""
    sets, found = [tuple(pair) for pair in pairs if len(set(pair)) > 1], copy(table)
    if isinstance(table, FrameTable):  # its engine counts
        return table
    try:
        counts = dict(zip(sets, one_pass(table, sets), strict=True))
    except InputError:
        if table.is_text_file:
            raise
        return table  # it may be the type of one column: then each pair is counted by itself
    vars(found)["groups"] = lambda columns: counts[tuple(columns)]
    return found


def _cells(
    table: Table, pair: Sequence[str], limits: Sequence[str], methods: Sequence[str],
    reading: Mapping[str, Any],
) -> Iterator[tuple[Row, Task | None]]:  # fmt: skip
    """Yield what is known of each row about two columns, and its task, where it has one."""
    about: Row = dict(zip(("secret", "public"), pair, strict=True))
    wanted, failed = dict[str, Any](), dict[str, str]()
    scenario: Any = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PriorWarning)
        try:
            scenario = Scenario(Prior.from_table(table, **about, **reading))
        except PufferfishError as error:
            failed = dict.fromkeys(methods, str(error))
    for name in methods if scenario else ():
        try:
            more, reasons = what_to_calibrate(scenario, [name], {})
        except PufferfishError as error:
            more, reasons = {}, {name: str(error)}
        wanted, failed = wanted | more, failed | reasons
    about |= dict.fromkeys(("epsilon", "mechanism", "best_for", "reason"))
    own = (str(each.message) for each in told if issubclass(each.category, PriorWarning))
    about["warnings"] = "; ".join(own) or None
    for limit in limits:
        about["epsilon"] = float(parse_epsilon(limit))
        for name, arguments in wanted.items():
            yield about | arguments, (scenario, limit, name, arguments)
        for name, reason in failed.items():
            yield about | {"mechanism": name, "reason": reason}, None


@contextmanager
def _journal(target: Path | None, tasks: Mapping[int, Task]) -> Iterator[sqlite3.Connection]:
    """Give the journal of an output, whose cell -1 is a digest of all that decides the results.

    It is locked, removed at the end, and kept where an error comes before. Without an output it is
    in memory.
    """
    what = [(n, s.digest, s.priors[0].totals, s.priors[0].rules, m) for n, (s, *m) in tasks.items()]
    digest = hashlib.sha256(repr((__version__, what)).encode()).hexdigest()
    path = Path(":memory:") if target is None else target.with_name(f".{target.name}.sweep")
    if target is not None:
        with writing(path):  # through no link, and for its owner alone
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE))
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as journal:
            journal.execute("PRAGMA locking_mode = EXCLUSIVE")
            journal.execute("CREATE TABLE IF NOT EXISTS sweep (cell INTEGER PRIMARY KEY, row TEXT)")
            journal.execute("INSERT OR IGNORE INTO sweep VALUES (-1, ?)", [digest])
            if journal.execute("SELECT row FROM sweep WHERE cell = -1").fetchone() != (digest,):
                fault = "is that of other data, arguments or another version"
                raise InputError(f"the journal {path} {fault}; remove it, or name another output")
            try:
                yield journal
            except BaseException as error:
                if target is not None:
                    error.add_note(f"what is done is kept in {path}; run it again to go on")
                raise
        if target is not None:
            path.unlink()
    except sqlite3.Error as error:
        fault = f"is in use by another sweep, or is none ({error}); nothing was written"
        raise InputError(f"the journal {path} {fault}") from None


def _computed(tasks: Mapping[int, Task], jobs: int) -> Generator[tuple[int, Row]]:
    """Yield the row of each task when it is done; each of so many threads has a process for it."""
    workers: dict[int, Any] = {}

    def row_of(task: Task) -> Row:
        me = threading.get_ident()
        if me not in workers:  # not by multiprocessing, which runs the user's script once more
            workers[me] = subprocess.Popen(
                [sys.executable, "-c", _WORKER.format(sys.path)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | _ONE_THREAD,
            )  # fmt: skip
        worker = workers[me]
        try:
            pickle.dump(task, worker.stdin)
            worker.stdin.flush()
            return dict(pickle.load(worker.stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):  # it is dead, or killed
            _stop(workers.pop(me, worker))
            return _ENDED

    pool = ThreadPoolExecutor(jobs)
    cells = {pool.submit(row_of, task): cell for cell, task in tasks.items()}
    try:
        for done in as_completed(cells):
            yield cells[done], done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in list(workers.values()):
            worker.kill()
        pool.shutdown()
        for worker in workers.values():
            _stop(worker)


def _stop(worker: Any) -> None:
    worker.kill()
    worker.communicate()  # closes its pipes, and waits


def serve() -> None:
    """Answer tasks from standard input with rows, until whoever sends them has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sender hears it, too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(EOFError):
        while True:
            scenario, limit, name, arguments = pickle.load(sys.stdin.buffer)
            try:
                (result,), _ = results_of(scenario, [limit], {name: arguments}, False)
                row = result.to_dict()
            except PufferfishError as error:
                row = {"reason": str(error)}
            except Exception as error:  # its text may quote cells
                row = {"reason": f"it failed with {type(error).__name__}; please report it"}
            pickle.dump(row, answers)
            answers.flush()


def _to_arrow(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table; what a row has not is null. Arrow's own way would import pandas."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        kinds = {type(cell) for cell in cells} - {type(None)}
        kind = pa.float64() if kinds and kinds <= {int, float} else pa.string()
        texts = strings(None if cell is None else str(cell) for cell in cells)
        columns[name] = texts.cast(pa.bool_() if kinds == {bool} else kind)
    return pa.table(columns)
