# SPDX-License-Identifier: Apache-2.0
"""What ``release`` and ``estimate`` do by the plan of a query."""

import io
import os
from collections.abc import Mapping
from typing import Any

from pufferfish.cli.options import option_name
from pufferfish.cli.output import after, print_csv, print_json, print_lines, print_table
from pufferfish.cli.process import Messages, check
from pufferfish.errors import InputError, listed
from pufferfish.files import checked_target, write_whole
from pufferfish.queries.answer import LEVEL, read_answer
from pufferfish.queries.plan import QueryPlan
from pufferfish.queries.record import noise_of_record, write_query_record
from pufferfish.report.digits import brief
from pufferfish.report.queries import answer_lines
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table, raw_texts

_COLUMNS = ("query", "value", "records")


def refuse_others(others: Mapping[str, Any]) -> None:
    """Refuse options that are of no use for the plan of a query."""
    wrong = [n for n, value in others.items() if value not in (None, False, (), "refuse")]
    if wrong:
        raise InputError(f"{listed(map(option_name, wrong))}: not for the plan of a query")


def release_answer(
    messages: Messages, plan: QueryPlan, source: Table, plan_file: str, output: str,
    record: str | None, publish: bool, force: bool, seed: int | None, others: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write the noisy answer to the query of a plan, as CSV, and its public record."""
    taken = ("bounds", "allow_unchanged")
    refuse_others({n: value for n, value in others.items() if n not in taken})
    name = os.path.basename(output).lower()
    if not name.endswith(".csv"):
        raise InputError(f"cannot write {output}: an answer is CSV, and the name ends in .csv")
    if seed is not None and "test" not in name:
        raise InputError("a release from a seed is for tests only: OUT must contain 'test'")
    checked_target(output, force, [*source.inputs, plan_file])
    if record is not None:
        checked_target(record, force, [*source.inputs, plan_file, output])
    elif publish:
        raise InputError("--publish-scale is for --record FILE")
    answer = plan.release(
        source, bounds=others["bounds"], seed=seed, allow_unchanged=others["allow_unchanged"]
    )
    text = io.StringIO()
    print_csv(answer.rows(), text)
    check()
    write_whole(output, text.getvalue().encode(), force=force)
    with after(output):
        if record is not None:
            write_query_record(record, plan, seeded=seed is not None, publish=publish, force=force)
            messages.note(f"the public record is saved as {record}")
        print_lines(answer_lines(plan, output, answer, plan_file))


def estimate_answer(released: str, data: Any, path: str, by_plan: bool, form: str) -> None:
    """Print the numbers of a released answer with their errors, by its plan or record."""
    if by_plan:
        plan = QueryPlan.of_values(data, path)
        names, noise = plan.query.names, plan.noise
    else:
        names, noise = noise_of_record(data, path)
    table = open_table(released)
    columns = [table.column(name) for name in _COLUMNS]
    cells = [list(map(raw_texts, batch.columns)) for batch in table.batches(columns)]
    rows = [
        dict(zip(_COLUMNS, row, strict=True)) for own in cells for row in zip(*own, strict=True)
    ]
    answer = read_answer(rows, names, noise)
    error, margin = answer.standard_error, answer.margin
    figures = [
        {"query": n, "estimate": float(v), "standard_error": error, "low": float(v) - margin,
         "high": float(v) + margin}
        for n, v in zip(names, answer.values, strict=True)
    ]  # fmt: skip
    if form == "csv":
        print_csv(figures)
    elif form == "json":
        print_json({"records": answer.records, "confidence": LEVEL, "figures": figures})
    else:
        print_lines([f"{released}: {answer.records} records, released by {path}", ""])
        table_rows = [
            [str(f["query"]), f"{f['estimate']:.10g}", brief(error, 3),
             f"{f['low']:.10g} to {f['high']:.10g}"] for f in figures
        ]  # fmt: skip
        print_table(["", "estimate", "standard error", "95 % interval"], table_rows, [0])
        print_lines(["", "note: errors and intervals are about the noise alone"])
