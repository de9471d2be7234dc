# SPDX-License-Identifier: Apache-2.0
"""What ``release`` and ``estimate`` do by the plan of a query."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from pufferfish.cli.ledger import price_words
from pufferfish.cli.options import option_name
from pufferfish.cli.output import after, print_csv, print_json, print_lines, print_table
from pufferfish.cli.process import Messages, check
from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import LEVEL
from pufferfish.files import checked_target
from pufferfish.ledger.ledger import Ledger
from pufferfish.numbers import show
from pufferfish.queries.answer import QueryAnswer, read_answer, read_bounds
from pufferfish.queries.plan import QueryPlan
from pufferfish.queries.record import answer_of_record, write_query_record
from pufferfish.report.digits import brief
from pufferfish.report.queries import answer_lines
from pufferfish.tables.table import Table


def refuse_others(others: Mapping[str, Any], why: str = "not for the plan of a query") -> None:
    """Refuse options that are not left at what they are by default."""
    by_default = (None, False, (), "refuse", "stationary")
    if wrong := [name for name, value in others.items() if value not in by_default]:
        raise InputError(f"{listed(map(option_name, wrong))}: {why}")


def release_answer(
    messages: Messages, plan: QueryPlan, source: Table, plan_file: str, output: str,
    record: str | None, publish: bool, ledger: str | None, force: bool, seed: int | None,
    others: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write the noisy answer to the query of a plan, as CSV, and its public record."""
    taken = ("bounds", "allow_unchanged")
    refuse_others({n: value for n, value in others.items() if n not in taken})
    if not output.lower().endswith(".csv"):  # before anything is drawn
        raise InputError(f"cannot write {output}: an answer is CSV, and the name ends in .csv")
    if seed is not None and "test" not in os.path.basename(output).lower():
        raise InputError("a release from a seed is for tests only: OUT must contain 'test'")
    if seed is not None and ledger is not None:
        raise InputError("--ledger does not account for --seed; leave it out")
    checked_target(output, force, [*source.inputs, plan_file, *([ledger] if ledger else [])])
    if ledger is None and plan.composition is not None:
        messages.warning(
            "the plan was calibrated beside earlier answers, but this one is charged to no ledger "
            "(--ledger); the next answer will not know of it"
        )
    how = {name: others[name] for name in taken}
    charged = None if ledger is None else Ledger.open(ledger).charge(source, plan, **how)
    with charged or nullcontext():
        answer = plan.release(source, seed=seed, **how)
        check()
        answer.save(output, force=force)
    with after(output):
        if record is not None:
            made: dict[str, Any] = {"seeded": seed is not None, "bounds": answer.bounds}
            write_query_record(record, plan, **made, publish=publish, force=force)
            messages.note(f"the public record is saved as {record}")
            if publish and plan.from_rows:
                messages.warning("the record tells the scale, and so of the rows it was fitted to")
        price = [price_words(charged.price)] if charged else []
        print_lines([*answer_lines(plan, output, answer, plan_file), *price])


def estimate_answer(
    released: str, data: Any, path: str, by_plan: bool, bounds: Any, form: str
) -> None:
    """Print the numbers of a released answer with their errors, by its plan or record."""
    if by_plan:
        plan = QueryPlan.of_values(data, path)
        asked, ends = plan.query, read_bounds(bounds)
        like = QueryAnswer(asked.kind, asked.names, (), 1, plan.noise, ends)
    else:
        if bounds is not None:
            raise InputError("--bounds stand in the record; leave them out")
        like = answer_of_record(data, path)
    answer = read_answer(released, like)
    error, margin, bounds = answer.standard_error, answer.margin, answer.bounds
    figures = [
        {"query": n, "estimate": float(v), "standard_error": error, "low": float(v) - margin,
         "high": float(v) + margin}
        for n, v in zip(answer.names, answer.values, strict=True)
    ]  # fmt: skip
    notes = ["errors and intervals are about the noise alone"]
    if bounds is not None:
        ends = " to ".join(map(show, bounds))
        notes.append(f"the answer was moved into {ends}: at either end the truth may lie beyond")
    if form == "csv":
        print_csv(figures)
    elif form == "json":
        facts = {"records": answer.records, "confidence": LEVEL, "figures": figures}
        print_json(facts | {"notes": notes})
    else:
        print_lines([f"{released}: {answer.kind} of {answer.records} records, by {path}", ""])
        rows = [
            [str(f["query"]), f"{f['estimate']:.10g}", brief(error, 3),
             f"{f['low']:.10g} to {f['high']:.10g}"] for f in figures
        ]  # fmt: skip
        print_table(["", "estimate", "standard error", "95 % interval"], rows, [0])
        print_lines(["", *(f"note: {note}" for note in notes)])
