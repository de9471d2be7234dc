# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
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
    brief,
    print_csv,
    print_json,
    print_lines,
    print_table,
    share,
)
from pufferfish.cli.results import Result, compare
from pufferfish.errors import InputError
from pufferfish.files import checked_target
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import rounded_up, show
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels

#: Options that the command for a sample does not repeat, those with a value first.
_NOT_REPEATED = ("--mechanism", "--save", "--format", "--force", "--explain", "--show-channel")
#: What --explain prints of a result, by its name in JSON.
_DETAILS = {
    "mechanism": "mechanism",
    "loss": "loss",
    "loss_at_95": "loss at\n95 %",
    "mse": "mse",
    "std": "std",
    "cost": "cost",
    "robustness_radius": "radius",
    "robustness_radius_at_double": "radius\nat twice",
    "reduction_vs_l1": "% below\nl1",
}


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
    (texts, hint), names = epsilons(wanted), mechanisms(options["mechanism"])
    target = options["save"]
    if target is not None:
        check_one(texts, hint, names)
        source = None if table in (None, "-") else Path(str(table))
        checked_target(target, source, options["force"], options["priors"])
    scenario = scenario_of(table, options)
    found, left_out = resolve(names, scenario)
    arguments = channel_arguments(options, found)
    results, failed = compare(scenario, texts, found, arguments, "all" in names, **beside)
    shown = options["show_channel"]
    if shown and options["form"] == "csv":
        raise InputError("--show-channel is for --format table or json, but csv was asked for")
    if target is not None:
        plan = results[0].plan
        if options["priors"] and options["public"] is not None:
            plan = plan.with_columns(**columns_of(options))
        signals.check()
        plan.save(target, force=options["force"])
        messages.note(f"the plan is saved as {target}{'; it is private' * plan.from_rows}")
    if hint:
        messages.note(hint)
    if beside:
        messages.note("with all that is charged the joint loss stays within epsilon and the budget")
    for name, why in {**left_out, **failed}.items():
        messages.note(f"'all' leaves out {name}: {why}")
    command = _command_for_a_sample(messages.arguments, results, bool(arguments))
    verdict = describe.verdict_lines(results, scenario, command)
    where = " and ".join(options["priors"]) or str(table)
    rows = [_result_to_dict(r) for r in results]
    if options["form"] == "table":
        print_lines([*describe.scenario_lines(scenario, where, options["explain"]), ""])
        _print_results(results)
        for r in results if shown else ():
            _print_channel(r)
        if options["explain"]:
            _print_details(results, rows)
        print_lines(["", *verdict])
        return
    for line in describe.survival_lines(results):
        messages.warning(line)
    if options["form"] == "csv":
        print_csv(tuple(rows[0]), rows)
        return
    for row, r in zip(rows, results, strict=True):
        if shown and r.plan.channel is not None:
            row["channel"] = _channel_to_dict(r.plan.channel)
    risks = [r.loss_at_95 for r in results if r.loss_at_95 is not None]
    print_json(
        {
            "scenario": _scenario_to_dict(scenario, where),
            "results": rows,
            "verdict": {
                "certified": all(r.plan.certificate.holds for r in results),
                "if_a_sample": max(risks, default=None),
                "command_for_a_sample": command or None,
                "survives": any(r.survives for r in results),
                "private": any(r.plan.from_rows for r in results),
                "text": verdict,
            },
        }
    )


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


def _print_results(results: Sequence[Result]) -> None:
    """Print the table: how strong each mechanism is, and how good a release will be."""
    headers = ["epsilon", "mechanism", "scale, or kept\n(by a constant)", "noise /\nspread",
               "error of\nthe mean", "error of\na share", "below\nwasserstein"]  # fmt: skip
    rows = []
    for r in results:
        plan, expected, below = r.plan, r.expected, r.below_wasserstein
        size = f"{share(plan.keep_rate or 0.0)} ({share(r.constant)})"
        numbers = (expected.noise_to_spread, expected.mean_error)
        error = expected.share_error
        rows.append(
            [
                r.epsilon,
                plan.mechanism,
                size if plan.scale is None else rounded_up(plan.scale, 8),
                *("-" if v is None else brief(v) for v in numbers),
                "-" if error is None else ">1" if error > 1 else brief(error),
                "-" if below is None else f"{below:.1f} %",
            ]
        )
    marked = [k for k, r in enumerate(results) if r.plan.unchanged or not r.survives]
    one = len({r.epsilon for r in results}) == 1
    print_table(headers[one:], [row[one:] for row in rows], [1 - one], marked)


def _print_details(results: Sequence[Result], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what else is known of each result."""
    cells = [
        [_detail(row[key], r.plan.epsilon_exact, 8 if key == "loss" else 5) for key in _DETAILS]
        for row, r in zip(rows, results, strict=True)
    ]
    print_lines([""])
    print_table(
        ["epsilon", *_DETAILS.values()],
        [[r.epsilon, *line] for line, r in zip(cells, results, strict=True)],
        [1],
    )
    print_lines(
        line
        for r in results
        for line in ("", f"{r.plan.mechanism} at {r.epsilon}:", *describe.plan_lines(r.plan))
    )
    print_lines(["", "radius: how wrong the prior may be (total variation) before the loss passes "
                 "epsilon; cost: what the channel minimises"])  # fmt: skip


def _detail(value: Any, epsilon: Fraction, digits: int) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return at_most(value, epsilon, digits) if value >= 0 else f"{value:.5g}"


def _print_channel(result: Result) -> None:
    """Print a channel: a line for each value, a column for each output."""
    channel = result.plan.channel
    if channel is not None:
        print_lines(["", f"channel at epsilon {result.epsilon}: chance of each output by value"])
        rows = [
            # No chance that is not 0 or 1 is printed as if it were.
            [channel.inputs.name(x), *(f"{p:.0f}" if p in (0, 1) else
             f"{min(max(p, 0.0001), 0.9999):.4f}" for p in chances)]
            for x, chances in enumerate(channel.matrix.tolist())
        ]  # fmt: skip
        outputs = (channel.outputs.name(y) for y in range(channel.outputs.size))
        print_table(["value", *outputs], rows, [0])


def _channel_to_dict(channel: Channel) -> dict[str, Any]:
    ends = {"inputs": channel.inputs, "outputs": channel.outputs}
    names: dict[str, Any] = {
        end: list(s.names) if isinstance(s, Levels) else [s.value(k) for k in range(s.size)]
        for end, s in ends.items()
    }
    return names | {"rows": channel.matrix.tolist()}


def _result_to_dict(result: Result) -> dict[str, Any]:
    plan, expected = result.plan, result.expected
    # A radius is about the loss of this release, and epsilon here about that of several.
    risk = plan.sensitivity if plan.composition is None else None
    own = ("epsilon", "mechanism", "scale", "loss", "mse", "std", "unchanged", "cost", "keep_rate")
    return {name: getattr(plan, name) for name in own} | {
        "certified": plan.certificate.holds,
        "certified_by": plan.certificate.method,
        "reduction_vs_wasserstein": result.below_wasserstein,
        "reduction_vs_l1": result.below_l1,
        "keep_rate_of_a_constant": result.constant,
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
    """Return a scenario as JSON values; the digest is private and not among them."""
    report, support = scenario.priors[0].report, scenario.support
    values: dict[str, Any] = {"kind": describe.kind_words(support), "size": support.size}
    coding = None
    if isinstance(support, Levels):
        values |= {"levels": support.names}
        coding = {name: k for k, name in enumerate(support.names)} if support.ordered else None
    else:
        least, greatest = support.value(0), support.value(support.size - 1)
        values |= {"step": support.step, "least": least, "greatest": greatest}
    data = {
        "source": source,
        "secret": None if report is None else report.rules.secret,
        "public": scenario.product.columns[0],
        "unit": scenario.unit,
        "support": {"step": None, "levels": None, **values},
        "secrets": scenario.priors[0].secrets,
        "pairs": scenario.pairs,
        "adversaries": len(scenario.priors),
        "region": describe.region_words(scenario.rules) or None,
        "coding": coding,
        "notes": describe.scenario_notes(scenario),
    }
    if report is None:
        return data | dict.fromkeys(("rows", "set_aside", "missing", "people", "warnings"))
    return data | {
        "rows": {
            "read": report.rows_read,
            "used": report.rows_used,
            "set_aside": report.rows_set_aside,
            "by_secret": dict(report.secrets),
        },
        "set_aside": [vars(aside) for aside in report.set_aside],
        "missing": [vars(text) for text in report.missing],
        "people": report.people,
        "warnings": report.warnings,
    }
