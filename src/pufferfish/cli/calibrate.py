# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pufferfish.calibration.registry import REGISTRY
from pufferfish.cli import describe, signals
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import (
    channel_arguments,
    channel_options,
    check_one,
    columns_of,
    epsilons,
    format_option,
    mechanisms,
    resolve,
    scenario_of,
    source_options,
)
from pufferfish.cli.output import (
    at_most,
    exact_number,
    print_csv,
    print_json,
    print_lines,
    print_table,
    rounded_down,
    share,
)
from pufferfish.cli.results import Result, compare
from pufferfish.errors import InputError
from pufferfish.files import checked_target
from pufferfish.numbers import rounded_up, show
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels

#: A channel of more values than these is printed as JSON only.
_MOST_SHOWN = 30
#: Options that the command for a sample does not repeat, with their numbers of values.
_NOT_REPEATED = {
    "--mechanism": 1, "--save": 1, "--format": 1, "--confidence": 1, "--tv-radius": 1,
    "--force": 0, "--explain": 0, "--show-channel": 0,
}  # fmt: skip


class _WithMechanisms(click.Command):
    """A command whose help lists the mechanisms."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Mechanisms"):
            formatter.write_dl([(name, method.summary) for name, method in REGISTRY.items()])


@click.command(cls=_WithMechanisms)
@click.argument("table", required=False)
@source_options
@click.option(
    "--epsilon", multiple=True, metavar="E1,E2,...",
    help="The largest loss: one number or several, such as 0.1,0.5,1 or 1/3.",
)  # fmt: skip
@click.option(
    "--mechanism", multiple=True, metavar="M1,M2,...|all",
    help="Mechanisms to compute; by default 'exact', or 'channel' for levels without an order. "
    "'all': every one that applies.",
)  # fmt: skip
@channel_options
@click.option("--explain", is_flag=True, help="Print all that is known.")
@format_option("table", "json", "csv")
@click.option(
    "--save", metavar="FILE",
    help="Save the plan, readable by you alone; takes one epsilon and one mechanism.",
)  # fmt: skip
@click.option(
    "--ledger", "books", metavar="BOOKS",
    help="Calibrate the next release of TABLE: epsilon bounds its joint loss with all that is "
    "charged in this ledger, and is by default the budget.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a plan file that exists.")
@click.pass_obj
def calibrate(messages: Messages, /, table: str | None, **options: Any) -> None:
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
    wanted, beside = options["epsilon"], {}
    if options["books"] is not None:
        from pufferfish.ledger.calibrate import calibrate_beside
        from pufferfish.ledger.ledger import Ledger

        if table is None or options["secret"] is None:
            raise InputError("--ledger is about tables: give a TABLE with --secret COL")
        ledger = Ledger.open(options["books"], waiting=signals.check)
        wanted = wanted or (show(ledger.budget(table, options["secret"])),)
        beside = {"method": partial(calibrate_beside, ledger, table)}
    epsilon, names = epsilons(wanted), mechanisms(options["mechanism"])
    target = options["save"]
    if target is not None:
        check_one(epsilon, names, "--save")
        source = None if table in (None, "-") else Path(str(table))
        checked_target(target, source, options["force"], options["priors"])
    scenario = scenario_of(table, options)
    found, left_out = resolve(names, scenario)
    arguments = channel_arguments(options, found)
    results, failed = compare(scenario, epsilon.texts, found, arguments, "all" in names, **beside)
    shown = [r for r in results if r.plan.channel is not None] if options["show_channel"] else []
    _check_shown(shown, options["form"])
    if options["priors"] and options["public"] is not None:
        columns = columns_of(options)
        results = [r.with_plan(r.plan.with_columns(options["public"], **columns)) for r in results]
    if target is not None:
        signals.check()
        results[0].plan.save(target, force=options["force"])
        private = "; it is private" if results[0].plan.from_rows else ""
        messages.note(f"the plan is saved as {target}{private}")
    if epsilon.hint:
        messages.note(epsilon.hint)
    for name, why in {**left_out, **failed}.items():
        messages.note(f"'all' leaves out {name}: {why}")
    command = _command_for_a_sample(messages.arguments, results, scenario)
    where = " and ".join(options["priors"]) or str(table)
    if options["form"] == "json":
        print_json(_to_dict(results, scenario, where, command, shown))
    elif options["form"] == "csv":
        rows = [_result_to_dict(r) for r in results]
        print_csv(tuple(rows[0]), rows)
    if options["form"] != "table":
        for line in describe.survival_lines(results):
            messages.warning(line)
    else:
        _print(results, scenario, where, command, shown, options["explain"])


def _command_for_a_sample(
    arguments: Sequence[str], results: Sequence[Result], scenario: Scenario
) -> str:
    """Return the command whose plan holds also if the rows are a sample; empty if none does."""
    if all(r.loss_at_95 is None for r in results):
        return ""
    kept: list[str] = []
    skip = 0
    for word in arguments:
        name, equals, _ = word.partition("=")
        if skip:
            skip -= 1
        elif name in _NOT_REPEATED:
            skip = 0 if equals else _NOT_REPEATED[name]
        else:
            kept.append(word)
    if isinstance(scenario.support, Levels) and not scenario.support.ordered:
        channel = False
    else:
        channel = all(r.plan.channel is not None for r in results)
    more = ["--mechanism", "channel"] if channel else []
    return shlex.join(["pufferfish", *kept, *more, "--confidence", "0.95"])


def _print(
    results: Sequence[Result],
    scenario: Scenario,
    source: str,
    command: str,
    shown: Sequence[Result],
    explain: bool,
) -> None:
    """Print what was calibrated, for people."""
    print_lines([*describe.scenario_lines(scenario, source, explain), ""])
    several = len({r.epsilon for r in results}) > 1
    headers = ["mechanism", "scale, or kept\n(by a constant)", "noise /\nspread",
               "error of\nthe mean", "error of\na share", "below\nwasserstein"]  # fmt: skip
    rows = [
        [
            r.plan.mechanism,
            _size(r),
            _brief(r.expected.noise_to_spread),
            _brief(r.expected.mean_error),
            _brief(r.expected.share_error),
            "-" if r.below_wasserstein is None else f"{r.below_wasserstein:.1f} %",
        ]
        for r in results
    ]
    if several:
        headers.insert(0, "epsilon")
        rows = [[r.epsilon, *row] for r, row in zip(results, rows, strict=True)]
    marked = [k for k, r in enumerate(results) if r.plan.unchanged or not r.survives]
    print_table(headers, rows, left=[several], marked=marked)
    for result in shown:
        _print_channel(result)
    if explain:
        _print_details(results)
    print_lines(["", *describe.verdict_lines(results, scenario, command)])


def _size(result: Result) -> str:
    """Return a scale, or the share that a channel keeps with its baseline."""
    if result.plan.scale is not None:
        return rounded_up(result.plan.scale, 8)
    return f"{share(result.plan.keep_rate or 0.0)} ({share(result.expected.constant)})"


def _brief(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _print_details(results: Sequence[Result]) -> None:
    """Print what else is known of each result."""
    headers = ["epsilon", "mechanism", "loss", "loss at\n95 %", "std", "mse", "cost", "radius",
               "radius\nat twice", "below\nl1"]  # fmt: skip
    rows = []
    for r in results:
        plan, risk = r.plan, r.plan.sensitivity
        rows.append(
            [
                r.epsilon,
                plan.mechanism,
                at_most(plan.loss, plan.epsilon_exact),
                "-" if r.loss_at_95 is None else rounded_up(r.loss_at_95, 4),
                *("-" if v is None else rounded_up(v, 5) for v in (plan.std, plan.mse, plan.cost)),
                *("-" if v is None else rounded_down(v) for v in
                  ((None, None) if risk is None else (risk.radius, risk.radius_at_double))),
                "-" if r.below_l1 is None else f"{r.below_l1:.1f} %",
            ]
        )  # fmt: skip
    print_lines([""])
    print_table(headers, rows, left=[1])
    lines = [""]
    for r in results:
        words = describe.plan_words(r.plan)
        lines += [f"{r.plan.mechanism} at {r.epsilon}: {words[0]}", *(f"  {w}" for w in words[1:])]
    lines.append("cost: what the channel minimises; radius: how wrong the prior may be (total "
                 "variation) before the loss passes epsilon")  # fmt: skip
    print_lines(lines)


def _check_shown(shown: Sequence[Result], form: str) -> None:
    """Check that a channel can be shown in the form that was asked for."""
    if shown and form == "csv":
        raise InputError("--show-channel is for --format table or json, but csv was asked for")
    for result in shown if form == "table" else ():
        channel = result.plan.channel
        if channel and max(channel.inputs.size, channel.outputs.size) > _MOST_SHOWN:
            raise InputError(
                f"--show-channel prints at most {_MOST_SHOWN} values and outputs, but the channel "
                f"at epsilon {result.epsilon} has {channel.inputs.size} and "
                f"{channel.outputs.size}; use --format json"
            )


def _print_channel(result: Result) -> None:
    """Print a channel: a line for each value, a column for each output."""
    channel = result.plan.channel
    if channel is None:
        return
    print_lines(["", f"channel at epsilon {result.epsilon}: chance of each output by value"])
    names = [channel.outputs.name(y) for y in range(channel.outputs.size)]
    rows = [
        [channel.inputs.name(x), *("0" if p == 0 else "1" if p == 1 else
         f"{min(max(p, 0.0001), 0.9999):.4f}" for p in chances)]
        for x, chances in enumerate(channel.matrix.tolist())
    ]  # fmt: skip
    print_table(["value", *names], rows, left=[0])


def _to_dict(
    results: Sequence[Result],
    scenario: Scenario,
    source: str,
    command: str,
    shown: Sequence[Result],
) -> dict[str, Any]:
    """Return everything as JSON values; the digest is private and not among them."""
    rows = [_result_to_dict(r) for r in results]
    for row, result in zip(rows, results, strict=True):
        if result in shown and result.plan.channel is not None:
            row["channel"] = {
                "inputs": _names(result.plan.channel.inputs),
                "outputs": _names(result.plan.channel.outputs),
                "rows": result.plan.channel.matrix.tolist(),
            }
    verdict = {
        "certified": all(r.plan.certificate.holds for r in results),
        "if_a_sample": max((r.loss_at_95 for r in results if r.loss_at_95 is not None),
                           default=None),
        "command_for_a_sample": command or None,
        "survives": any(r.survives for r in results),
        "private": any(r.plan.from_rows for r in results),
        "text": [line.strip() for line in describe.verdict_lines(results, scenario, command)],
    }  # fmt: skip
    return {"scenario": _scenario_to_dict(scenario, source), "results": rows, "verdict": verdict}


def _result_to_dict(result: Result) -> dict[str, Any]:
    plan, risk, expected = result.plan, result.plan.sensitivity, result.expected
    return {
        "epsilon": plan.epsilon,
        "mechanism": plan.mechanism,
        "scale": plan.scale,
        "loss": plan.loss,
        "mse": plan.mse,
        "std": plan.std,
        "certified": plan.certificate.holds,
        "certified_by": plan.certificate.method,
        "unchanged": plan.unchanged,
        "reduction_vs_wasserstein": result.below_wasserstein,
        "reduction_vs_l1": result.below_l1,
        "cost": plan.cost,
        "keep_rate": plan.keep_rate,
        "keep_rate_of_a_constant": expected.constant,
        "spread": expected.spread,
        "noise_to_spread": expected.noise_to_spread,
        "error_of_mean": expected.mean_error,
        "error_of_share": expected.share_error,
        "survives": result.survives,
        "loss_at_95": result.loss_at_95,
        "robustness_radius": None if risk is None else risk.radius,
        "robustness_radius_at_double": None if risk is None else risk.radius_at_double,
        "robust": bool(plan.regions),
        "repair": None if plan.distortion is None else plan.distortion.gap,
    }


def _scenario_to_dict(scenario: Scenario, source: str) -> dict[str, Any]:
    report, support = scenario.priors[0].report, scenario.support
    levels = support.names if isinstance(support, Levels) else None
    data: dict[str, Any] = {
        "source": source,
        "secret": None if report is None else report.rules.secret,
        "public": scenario.product.columns[0],
        "unit": scenario.unit,
        "support": {
            "kind": "numbers" if levels is None else describe.kind_words(support),
            "size": support.size,
            "step": None if isinstance(support, Levels) else exact_number(support.step),
            "least": None if isinstance(support, Levels) else exact_number(support.value(0)),
            "greatest": None if isinstance(support, Levels)
            else exact_number(support.value(support.size - 1)),
            "levels": levels,
        },
        "secrets": list(scenario.priors[0].secrets),
        "pairs": [list(pair) for pair in scenario.pairs],
        "adversaries": len(scenario.priors),
        "region": describe.region_words(scenario.rules) or None,
        "coding": {name: code for code, name in enumerate(levels)}
        if levels is not None and isinstance(support, Levels) and support.ordered else None,
        "notes": describe.scenario_notes(scenario),
        "rows": None, "set_aside": None, "missing": None, "people": None, "warnings": [],
    }  # fmt: skip
    if report is not None:
        data |= {
            "rows": {
                "read": report.rows_read,
                "used": report.rows_used,
                "set_aside": report.rows_set_aside,
                "by_secret": dict(report.secrets),
            },
            "set_aside": [vars_of(aside) for aside in report.set_aside],
            "missing": [vars_of(text) for text in report.missing],
            "people": report.people,
            "warnings": list(report.warnings),
        }
    return data


def vars_of(record: Any) -> Mapping[str, Any]:
    """Return the fields of a frozen record."""
    return dict(vars(record))


def _names(support: Any) -> list[Any]:
    if isinstance(support, Levels):
        return list(support.names)
    return [exact_number(support.value(k)) for k in range(support.size)]
