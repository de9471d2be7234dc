# SPDX-License-Identifier: Apache-2.0
"""``pufferfish query``: the noise for a count, sum, mean or histogram of correlated records."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pufferfish.cli import process
from pufferfish.cli.options import (
    FORCE,
    READING,
    WithMechanisms,
    epsilons,
    name_list,
    opened,
    options,
    refuse_others,
)
from pufferfish.cli.output import after, print_csv, print_json, print_lines, print_table
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError, PufferfishError
from pufferfish.files import checked_target, read_strict
from pufferfish.ledger.answers import plans_of
from pufferfish.ledger.ledger import Ledger
from pufferfish.numbers import parse_number, rounded_up, show
from pufferfish.queries.calibrate import MECHANISMS, calibrate_query
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.model import Model
from pufferfish.queries.plan import Fit, QueryPlan, model_of
from pufferfish.queries.query import CountQuery, HistogramQuery, MeanQuery, Query, SumQuery
from pufferfish.queries.sequences import SequenceRules, Sequences, read_sequences
from pufferfish.report import brief
from pufferfish.report.queries import query_lines, query_verdict
from pufferfish.report.sentences import left_out_lines
from pufferfish.tables.table import Table

_OPTIONS = f"""
--state COL  Column of the records' states: what is released and, record by record, what is hidden.
    Other columns that depend on it are not.
--time COL  Column that orders the records of a sequence: numbers, or dates or times in ISO form.
--sequence COL  Column whose equal values mark the records of one sequence, such as a patient;
    without it all rows are one.
--states V1,...  All states there may be; by default those that occur.
--missing TEXT ...  Text that means a missing value, besides the empty cell; may be repeated. Rows
    without a state are refused: leave them out, or give them a state such as 'unknown'.
--gaps refuse|order  What happens where times are not equally far apart: refused, or records follow
    each other whatever the times, without --time in the order of the rows.
--count STATE  Release how many records have this state.
--sum FILE  Release the sum of a number for each state, by a JSON file {{state: number}}.
--mean  Release the mean of states that are numbers.
--histogram  Release how many records have each state.
--user-level  Hide all states of a sequence, such as a whole patient, not single records: the noise
    is for the range of the longest one.
--any-length  Make a plan for sequences of every length.
--length N  Number of records of a sequence, where no TABLE is given.
--model FILE  Model to take as it is, in JSON: {{"states": [...], "transition": [[...]], "initial":
    "stationary"}}, or with "kind" a box, tree or household. By default a Markov chain is fitted to
    TABLE.
--initial stationary|any|counted  What the first record of a fitted chain has: the stationary law,
    any law, or the shares of the sequences' first states.
--smoothing A  Number that is added to each number of transitions that were counted, such as 1/2.
--confidence C  Take all chains within intervals of this confidence, such as 0.95.
--epsilon E1,E2,... ...  The largest loss: one number or several, such as 0.1,0.5,1 or 1/3.
--ledger BOOKS  Compute the noise of the next answer about TABLE: epsilon bounds its joint loss with
    all answers that are charged in this ledger, and is by default the budget.
--mechanism M1,M2,...|all ...  Mechanisms to compute; by default the least noise that is known.
--format table|json|csv  Form of what is printed on standard output.
--save FILE  Save the plan, for release. Takes one epsilon and one mechanism.
{READING}{FORCE}"""

_OF_TABLES = ("state", "time", "sequence", "states", "missing", "gaps")


@click.command(cls=WithMechanisms, mechanisms=MECHANISMS)
@click.argument("table", required=False)
@options(_OPTIONS)
@click.pass_obj
def query(
    messages: Messages, /, table: str | None, format: str, save: str | None, force: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Compute the noise for a count, sum, mean or histogram of records that depend.

    TABLE has a row for each record, of one or many sequences, such as the states of patients over
    time. What is released is at most e^epsilon times likelier for one state of a record than for
    another, for those who believe that each sequence is a Markov chain.

    \b
    Examples:
      pufferfish query visits.csv --sequence patient --time week --state status \\
          --count ill --epsilon 0.1,1 --mechanism all
      pufferfish query visits.csv --sequence patient --time week --state status \\
          --histogram --any-length --epsilon 1 --save plan.json
      pufferfish query --model chain.json --length 100 --count ill --epsilon 1
    """  # noqa: D301  # \b keeps click from wrapping the examples
    source = opened(table, given | {"format": format}, ledger=given["ledger"])
    already, texts = _charged(messages, source, given)
    names = [name.strip() for text in given["mechanism"] for name in text.split(",")] or [None]
    if save is not None and (len(texts) > 1 or len(names) > 1 or "all" in names):
        raise InputError("--save takes exactly one epsilon and one mechanism")
    if save is not None:
        inputs = source.inputs if source else ()
        checked_target(save, force, [*inputs, *filter(None, (given["model"], given["ledger"]))])
    asked, rules, fit, found = _asked(source, given)
    plans, left_out = _plans(asked, texts, names, already)
    if save is not None:
        process.check()
        replace(plans[0], source=rules, fit=fit).save(save, force=force)
        private = "; it is private" if plans[0].from_rows else ""
        messages.note(f"the plan is saved as {save}{private}")
    for line in left_out_lines(left_out):
        messages.note(line)
    with after(save):
        _print(asked, plans, found, str(source.name if source else given["model"]), format)


def _charged(
    messages: Messages, source: Table | None, given: dict[str, Any]
) -> tuple[tuple[QueryPlan, ...], tuple[str, ...]]:
    """Return the plans that a ledger has charged for a table, and epsilons within its budget."""
    if given["ledger"] is None:
        return (), epsilons(given["epsilon"], messages.note)
    if source is None or given["state"] is None:
        raise InputError("--ledger is about tables: give a TABLE with --state COL")
    dataset, charged = Ledger.open(given["ledger"]).account(source, given["state"])
    budget = show(dataset.budget)
    messages.note(f"epsilon is for all answers charged with this one, and at most {budget}")
    texts = epsilons(given["epsilon"], messages.note, budget)
    return plans_of(charged, _rules(given)), texts


def _rules(given: dict[str, Any]) -> SequenceRules:
    return SequenceRules(
        given["state"], given["time"], given["sequence"], given["gaps"], given["missing"]
    )


def _asked(
    source: Table | None, given: dict[str, Any]
) -> tuple[Query, SequenceRules | None, Fit | None, Sequences | None]:
    """Return the query, how a table is read and its model fitted, and its sequences."""
    rules, fit, found, models, length = None, None, None, [], given["length"]
    states = given["states"] and name_list(given["states"], "--states")
    fitted = {name: given[name] for name in ("smoothing", "confidence", "initial")}
    if given["any_length"] and length is not None:
        raise InputError("give --length N or --any-length, not both")
    if given["model"] is not None:
        data = read_strict(given["model"], "the model")
        models = [model_of({"kind": "chain"} | data if isinstance(data, dict) else data)]
        states = states or models[0].states
        refuse_others(fitted, "for a chain that is fitted, not given")
    if source is not None:
        if given["state"] is None or length is not None:
            raise InputError("--state COL must be given with a TABLE, and --length N without one")
        rules = _rules(given)
        found = read_sequences(source, rules, states)
        rules = replace(rules, step=found.step)
        fixed = bool(models) and bool(models[0].sizes(()))  # a tree or household has its own size
        length = None if fixed else found.lengths
    elif not models:
        raise InputError(
            "give a TABLE with --state COL, or --model FILE (of a chain with --length N)"
        )
    else:
        of_tables = {name: given[name] for name in _OF_TABLES}
        refuse_others(of_tables, "for a TABLE, but none was given")
    if found and rules and not models:
        if given["user_level"]:  # whatever the model is
            refuse_others(fitted, "not with --user-level, which fits no model")
            even = [[Fraction(1, len(found.states))] * len(found.states)] * len(found.states)
            models = [MarkovChain(found.states, even, "any")]
        else:
            smoothing, level = given["smoothing"], given["confidence"]
            if smoothing is not None and level is not None:
                raise InputError("--smoothing: not with --confidence, whose intervals need none")
            confidence = None if level is None else parse_number(level, "--confidence")
            fit = Fit(given["initial"], parse_number(smoothing or 0, "--smoothing"), confidence)
            models = [fit.model(found, rules)]
    length = "any" if given["any_length"] else length
    how = {"length": length, "protect": "sequence" if given["user_level"] else "record"}
    return _query(models, given, how), rules, fit, found


def _query(models: Sequence[Model], given: dict[str, Any], how: dict[str, Any]) -> Query:
    kinds = [n for n in ("count", "sum", "mean", "histogram") if given[n] not in (None, False)]
    if kinds == ["count"]:
        return CountQuery(models, given["count"], **how)
    if kinds == ["sum"]:
        return SumQuery(models, read_strict(Path(given["sum"]), "the weights"), **how)
    if kinds == ["mean"]:
        return MeanQuery(models, **how)
    if kinds == ["histogram"]:
        return HistogramQuery(models, **how)
    raise InputError("say what to release: one of --count STATE, --sum FILE, --mean, --histogram")


def _plans(
    asked: Query, texts: Sequence[str], names: Sequence[str | None], already: Sequence[QueryPlan]
) -> tuple[list[QueryPlan], dict[str, str]]:
    """Return a plan for each epsilon and mechanism, and why 'all' leaves out others."""
    every = ["group"] if asked.protect == "sequence" else list(MECHANISMS)
    wanted = every if "all" in names else names
    plans, left_out = [], dict[str, str]()
    for text in texts:
        for name in wanted:
            process.check()
            try:
                plans.append(calibrate_query(asked, text, name, already))
            except PufferfishError as error:
                if "all" not in names:
                    raise
                label = f"{name} at {text}" if len(texts) > 1 else str(name)
                left_out[label] = str(error)
    if not plans:
        raise InputError(next(iter(left_out.values())))
    return plans, left_out


def _print(
    asked: Query, plans: Sequence[QueryPlan], found: Sequences | None, source: str, form: str
) -> None:
    records = found.records if found else max(asked.sizes, default=0)
    divisor = records if asked.kind == "mean" else 1  # 0: not known
    rows: list[dict[str, Any]] = [
        {
            "epsilon": plan.epsilon, "mechanism": plan.mechanism, "scale": plan.scale,
            "loss": plan.loss, "mse": plan.mse,
            "error": plan.noise.std / divisor if divisor else None,
            "least_scale": plan.least_scale, "certified": plan.certificate.holds,
            "certified_by": plan.certificate.method,
        }
        for plan in plans
    ]  # fmt: skip
    notes = list(dict.fromkeys([*plans[0].notes, *(found.notes if found else ())]))
    if form == "csv":
        print_csv(rows)
    elif form == "json":
        lengths = "any" if asked.lengths is None else asked.lengths
        facts = {"kind": asked.kind, "states": asked.states, "lengths": lengths,
                 "protect": asked.protect, "records": records or None}  # fmt: skip
        print_json({"query": facts, "results": rows, "notes": notes})
    else:
        print_lines([*query_lines(asked, source, found), ""])
        cells = [
            [f"{plan.epsilon:g}", plan.mechanism, rounded_up(plan.scale, 8), brief(row["error"]),
             brief(plan.least_scale) if plan.least_scale else "-",
             plan.certificate.method.split("+")[0]]
            for plan, row in zip(plans, rows, strict=True)
        ]  # fmt: skip
        heads = ["epsilon", "mechanism", "scale", "error", "least scale", "proved by"]
        print_table(heads, cells, [1, 5])
        print_lines(["", *query_verdict(plans), *(f"note: {n}" for n in notes)])
