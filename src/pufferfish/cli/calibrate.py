# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from pufferfish.calibration.calibrate import calibrate as calibrate_alone
from pufferfish.calibration.l1 import l1
from pufferfish.calibration.registry import NOISE, REGISTRY
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.cli import describe, process
from pufferfish.cli.options import (
    FORCE,
    channel_arguments,
    channel_options,
    check_one,
    columns_of,
    epsilons,
    format_option,
    mechanisms,
    option,
    resolve,
    scenario_of,
    source_options,
)
from pufferfish.cli.output import after, print_csv, print_json, print_lines
from pufferfish.cli.process import Messages
from pufferfish.cli.verdict import Result, print_results, survival_lines, verdict_lines
from pufferfish.errors import InputError, PufferfishError
from pufferfish.estimate.matrix import expected_errors
from pufferfish.files import checked_target
from pufferfish.numbers import FloatArray, show
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels

#: Options that the command for a sample does not repeat, those with a value first.
_NOT_REPEATED = ("--mechanism", "--save", "--format", "--force", "--explain", "--show-channel")


class _WithMechanisms(click.Command):
    """A command whose help lists the mechanisms."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Mechanisms"):
            formatter.write_dl([(name, method.summary) for name, method in REGISTRY.items()])


@click.command(cls=_WithMechanisms)
@click.argument("table", required=False)
@source_options
@option(
    "--epsilon E1,E2,...", "The largest loss: one number or several, such as 0.1,0.5,1 or 1/3.",
    multiple=True,
)  # fmt: skip
@option(
    "--mechanism M1,M2,...|all", "Mechanisms to compute; by default 'exact', or 'channel' for "
    "levels without an order. 'all': every one that applies.", multiple=True,
)  # fmt: skip
@channel_options
@option("--explain", "Print all that is known.")
@format_option("table", "json", "csv")
@option("--save FILE", "Save the plan, readable by you alone; takes one epsilon and one mechanism.")
@option(
    "--ledger BOOKS", "Calibrate the next release of TABLE: epsilon bounds its joint loss with all "
    "that is charged in this ledger, and is by default the budget.",
)  # fmt: skip
@FORCE
@click.pass_obj
def calibrate(
    messages: Messages, /, table: str | None, epsilon: tuple[str, ...], mechanism: tuple[str, ...],
    ledger: str | None, save: str | None, form: str, explain: bool, force: bool, **options: Any,
) -> None:  # fmt: skip
    """Compute the least noise, or the cheapest channel, that keeps every pair within epsilon.

    TABLE is a CSV, TSV, Parquet or JSON file, or - for CSV on standard input. What the public
    column tells about the secret is counted in it, or read from a prior file.

    \b
    Examples:
      pufferfish calibrate student.csv --secret higher --public romantic \\
          --order no,yes --epsilon 0.1,0.5,1 --mechanism all
      pufferfish calibrate adult.csv --secret marital-status \\
          --public hours-per-week --pair Married-civ-spouse Never-married \\
          --missing "?" --epsilon 0.5 --save plan.json
      pufferfish calibrate --prior prior.json --epsilon 1/3 --format json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    method: Callable[..., Plan] = calibrate_alone
    priors = options["priors"]
    if ledger is not None:
        method, budget = _beside(ledger, table, options["secret"])
        epsilon = epsilon or (budget,)
        messages.note("with all that is charged the joint loss stays within epsilon and the budget")
    (texts, hint), names = epsilons(epsilon), mechanisms(mechanism)
    if save is not None:
        check_one(texts, hint, names)
        checked_target(save, None if table in (None, "-") else Path(str(table)), force, priors)
    if options["show_channel"] and form == "csv":
        raise InputError("--show-channel is for --format table or json, but csv was asked for")
    scenario = scenario_of(table, options)
    found, left_out = resolve(names, scenario)
    arguments = channel_arguments(options, found)
    results, failed = compare(scenario, texts, found, arguments, "all" in names, method)
    if save is not None:
        plan = results[0].plan
        if priors and options["public"] is not None:
            plan = plan.with_columns(**columns_of(options))
        process.check()
        plan.save(save, force=force)
        messages.note(f"the plan is saved as {save}{'; it is private' * plan.from_rows}")
    if hint:
        messages.note(hint.strip(" ()"))
    for name, why in {**left_out, **failed}.items():
        messages.note(f"'all' leaves out {name}: {why}")
    source = " and ".join(priors) or str(table)
    command = _command_for_a_sample(messages.arguments, results, bool(arguments))
    verdict = verdict_lines(results, scenario, command)
    with after(save):
        if form == "table":
            print_lines([*describe.scenario_lines(scenario, source, explain), ""], True)
            print_results(results, options["show_channel"], explain)
            print_lines(["", *verdict], True)
            return
        for line in survival_lines(results):
            messages.warning(line)
        rows = [r.to_dict(options["show_channel"]) for r in results]
        if form == "csv":
            print_csv(rows)
            return
        facts = {
            "certified": all(r.plan.certificate.holds for r in results),
            "if_a_sample": max(r.loss_at_95 or 0.0 for r in results) if command else None,
            "command_for_a_sample": command or None,
            "survives": any(r.survives for r in results),
            "private": any(r.plan.from_rows for r in results),
            "text": verdict,
        }
        told = _scenario_to_dict(scenario, source)
        print_json({"scenario": told, "results": rows, "verdict": facts})


def _beside(books: str, table: str | None, secret: str | None) -> tuple[Callable[..., Plan], str]:
    """Return how to calibrate beside all that is charged to the dataset of a table; its budget."""
    from pufferfish.ledger.calibrate import calibrate_beside
    from pufferfish.ledger.ledger import Ledger

    if table is None or secret is None:
        raise InputError("--ledger is about tables: give a TABLE with --secret COL")
    ledger = Ledger.open(books)
    return partial(calibrate_beside, ledger, table), show(ledger.budget(table, secret))


def compare(
    scenario: Scenario,
    epsilons: Sequence[str],
    names: Sequence[str],
    arguments: Mapping[str, Any],
    by_all: bool,
    method: Callable[..., Plan],
) -> tuple[list[Result], dict[str, PufferfishError]]:
    """Calibrate every mechanism for every epsilon; return results, and why others cannot be had.

    One that only 'all' asked for and that fails does not hinder the others.
    """
    results: list[Result] = []
    failed: dict[str, PufferfishError] = {}
    report, weights = scenario.priors[0].report, _frequencies(scenario)
    # Both scales are a distance over epsilon: epsilon 1 gives the distance.
    distances: list[Fraction] = []
    if not (scenario.has_region or scenario.unit) and set(names) & set(NOISE):
        distances = [Fraction(f(scenario, Fraction(1)).scale) for f in (wasserstein, l1)]
    for epsilon in epsilons:
        for name in names:
            process.check()
            try:
                plan = method(scenario, epsilon, name, **({} if name in NOISE else arguments))
            except PufferfishError as error:
                if not by_all:
                    raise
                failed[f"{name} at {epsilon}"] = error
                continue
            plan = plan.with_sensitivity(scenario)
            rows = 0 if report is None else report.rows_used
            expected = expected_errors(scenario.support, plan.applied, weights, rows)
            below = [_reduction(plan, distance) for distance in distances] or [None, None]
            results.append(Result(epsilon, plan, expected, *below))
    if not results:
        raise next(iter(failed.values()))
    return results, failed


def _frequencies(scenario: Scenario) -> FloatArray:
    """Return how frequent the values are: pooled rows, or the mean of the distributions given."""
    total = np.zeros(scenario.support.size)
    for prior in scenario.priors:
        for secret in prior.secrets if prior.from_rows else scenario.protected:
            row = prior.row(secret)
            share = prior.probabilities[row].reshape(-1)
            total += share * float(prior.totals[row]) if prior.from_rows else share
    return np.asarray(total / total.sum())


def _reduction(plan: Plan, distance: Fraction) -> float | None:
    """Return by how many per cent a scale is below a distance over epsilon."""
    if plan.scale is None or not distance or not math.isfinite(plan.scale):
        return None
    saved = 1 - Fraction(plan.scale) * plan.epsilon_exact / distance
    # The last bit of a scale that was rounded up is no reduction, and no increase either.
    return float(100 * saved) if abs(saved) > Fraction(1, 10**12) else 0.0


def _command_for_a_sample(arguments: Sequence[str], results: Sequence[Result], asked: bool) -> str:
    """Return the command whose plan holds also if the rows are a sample; empty if none does.

    ``asked``: something was asked of the channel.
    """
    if all(r.loss_at_95 is None for r in results):
        return ""
    kept = [
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if word.partition("=")[0] not in _NOT_REPEATED and before not in _NOT_REPEATED[:3]
    ]
    only = asked or all(r.plan.channel is not None for r in results)
    channel = ["--mechanism", "channel"] if only else []
    return shlex.join(["pufferfish", *kept, *channel, "--confidence", "0.95"])


def _scenario_to_dict(scenario: Scenario, source: str) -> dict[str, Any]:
    """Return a scenario as JSON values; the digest is private and not among them."""
    report, support = scenario.priors[0].report, scenario.support
    lattice, levels, coding = None, None, None
    if not isinstance(support, Levels):
        kind, lattice = "numbers", support
    else:
        levels, kind = support.names, "unordered levels"
        if support.ordered:
            kind, coding = "ordered levels", dict(zip(levels, range(support.size), strict=True))
    data: dict[str, Any] = {
        "source": source,
        "secret": report and report.rules.secret,
        "public": scenario.product.columns[0],
        "unit": scenario.unit,
        "support": {
            "kind": kind,
            "size": support.size,
            "levels": levels,
            "step": lattice and lattice.step,
            "least": lattice and lattice.values[0],
            "greatest": lattice and lattice.values[-1],
        },
        "secrets": scenario.priors[0].secrets,
        "pairs": scenario.pairs,
        "adversaries": len(scenario.priors),
        "region": describe.region_words(scenario.rules) or None,
        "coding": coding,
        "notes": describe.scenario_notes(scenario),
    }
    if report is None:
        return data | dict.fromkeys(("rows", "set_aside", "missing", "people", "warnings"))
    rows = {"read": report.rows_read, "used": report.rows_used, "set_aside": report.rows_set_aside}
    more = ("set_aside", "missing", "people", "warnings")
    data["rows"] = rows | {"by_secret": dict(report.secrets)}
    return data | {name: getattr(report, name) for name in more}
