# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: how much noise hides the secret, for every mechanism side by side."""

from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli import signals
from pufferfish.cli.commands import WithMechanisms
from pufferfish.cli.files import check_not_input, check_plan_target, writing
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import (
    Source,
    check_given,
    epsilons,
    exactly_one,
    format_option,
    make_source,
    mechanisms,
    source_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from pufferfish.cli.results import Result
    from pufferfish.scenario import Scenario

_CSV_COLUMNS = (
    "epsilon", "mechanism", "scale", "loss", "mse", "std", "certified", "certified_by",
    "unchanged", "reduction_vs_wasserstein", "reduction_vs_l1",
)  # fmt: skip
#: The columns of the table for people, and those that a narrow terminal goes without, in turn.
_COLUMNS = {
    "epsilon": "right", "mechanism": "left", "scale": "right", "loss": "right", "std": "right",
    "mse": "right", "below\nwasserstein": "right", "below\nl1": "right",
}  # fmt: skip
_DISPENSABLE = ("mse", "below\nl1", "below\nwasserstein", "std")
#: What is said of a column that needs no noise.
UNCHANGED = "the column would be PUBLISHED UNCHANGED"


@click.command(cls=WithMechanisms, short_help="Compute the noise that hides the secret.")
@click.argument("table", required=False)
@source_options
@click.option(
    "--epsilon", "epsilon", multiple=True, metavar="E1,E2,...",
    help="epsilon, the largest loss: one number or several, such as 0.1,0.5,1 or 1/3.",
)  # fmt: skip
@click.option(
    "--mechanism", "mechanism", multiple=True, metavar="M1,M2,...|all",
    help="Mechanisms to compute; by default 'exact'.",
)  # fmt: skip
@format_option
@click.option(
    "--save", metavar="FILE",
    help="Save the plan, readable by you alone; takes one epsilon and one mechanism.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a plan file that exists.")
@click.pass_obj
def calibrate(messages: Messages, /, table: str | None, **options: Any) -> None:
    """Compute the least noise that keeps every pair of secrets within epsilon.

    TABLE is a CSV, TSV, Parquet or JSON file. What the public column tells about the secret is
    counted in it, or read from a prior file.

    \b
    Examples:
      pufferfish calibrate student.csv --secret higher --public romantic \\
          --order no,yes --epsilon 0.1,0.5,1 --mechanism all
      pufferfish calibrate adult.csv --secret marital-status \\
          --public hours-per-week --pair Married-civ-spouse Never-married \\
          --missing "?" --epsilon 0.5 --save plan.json
      pufferfish calibrate --prior prior.json --epsilon 1/3 --format json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    source = make_source(table, options)
    check_given(source)
    wanted = epsilons(options["epsilon"])
    names = mechanisms(options["mechanism"])
    target = options["save"]
    if target is not None:
        wanted.only("--save")
        exactly_one(names, "mechanism", "--save")
        check_not_input(target, (table, *source.priors), "the plan")
        check_plan_target(target, options["force"])
    from pufferfish.cli.results import compare
    from pufferfish.cli.scenarios import scenario_of, unfound_missing

    scenario = scenario_of(source)
    results = compare(scenario, wanted.texts, names)
    if target is not None:
        signals.check()
        with writing(target, messages):
            results[0].plan.save(target, force=options["force"])
    if wanted.hint:
        messages.note(wanted.hint)
    for text in unfound_missing(scenario):
        messages.warning(text)
    _print(scenario, source, results, options["form"], messages)
    if target is not None:
        private = "; it is private: keep it with the table" if results[0].plan.from_rows else ""
        messages.note(f"the plan is saved as {target}{private}")


def _print(
    scenario: "Scenario",
    source: Source,
    results: "list[Result]",
    form: str,
    messages: Messages,
) -> None:
    from pufferfish.cli import describe
    from pufferfish.cli.output import print_csv, print_json

    if form == "table":
        _print_table(scenario, source, results)
        return
    rows = [_to_dict(result) for result in results]
    said = [note for r in results for note in (r.plan.assumption, *r.plan.notes)]
    notes = list(dict.fromkeys([*describe.notes_of(scenario), *said]))
    if form == "json":
        data = describe.to_dict(scenario, source)
        print_json({"scenario": data | {"notes": notes}, "results": rows})
    else:
        for note in notes:
            messages.note(note)
        print_csv(_CSV_COLUMNS, rows)
    for line in _notices(results):
        messages.warning(line)


def _to_dict(result: "Result") -> dict[str, Any]:
    plan = result.plan
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
        "reduction_vs_wasserstein": result.reductions[0],
        "reduction_vs_l1": result.reductions[1],
    }


def _notices(results: "list[Result]") -> list[str]:
    """Return what is said of every column that noise leaves as it is, or nearly so."""
    from pufferfish.cli.describe import nearly_unchanged

    lines = []
    for result in results:
        plan = result.plan
        share = nearly_unchanged(plan.noise)
        if plan.unchanged:
            lines.append(
                f"at epsilon {result.epsilon} the {plan.mechanism} scale is 0: {UNCHANGED}, which "
                "keeps within epsilon; release needs --allow-unchanged or --min-scale"
            )
        elif share:
            lines.append(
                f"at epsilon {result.epsilon} the {plan.mechanism} noise is 0 {share} of the "
                "values, which would be published as they are"
            )
    return lines


def _print_table(scenario: "Scenario", source: Source, results: "list[Result]") -> None:
    from pufferfish.cli import describe
    from pufferfish.cli.output import fits, print_lines, print_table, stdout_console

    console = stdout_console()
    print_lines(console, describe.lines_of(scenario, source))
    console.print()
    table, dropped = _table(results), 0
    while not fits(console, table) and dropped < len(_DISPENSABLE):
        dropped += 1
        table = _table(results, _DISPENSABLE[:dropped])
    print_table(console, table)
    console.print()
    methods = dict.fromkeys(describe.proved_by(r.plan.certificate.method) for r in results)
    certified = "certified" if all(r.plan.certificate.holds for r in results) else "NOT certified"
    lines = [f"Every loss is {certified} to be within epsilon (proved by {', '.join(methods)})."]
    if dropped:
        hidden = ", ".join(name.replace("\n", " ") for name in _DISPENSABLE[:dropped])
        lines.append(f"Not shown, as this terminal is narrow: {hidden}.")
    known = describe.notes_of(scenario)
    lines += dict.fromkeys(n for r in results for n in r.plan.notes if n not in known)
    lines += dict.fromkeys(result.plan.assumption for result in results)
    print_lines(console, lines)
    notices = _notices(results)
    if notices:
        console.print()
        print_lines(console, (f"NOTICE: {line}" for line in notices), "bold red")


def _table(results: "list[Result]", without: tuple[str, ...] = ()) -> "Table":
    """Return the results as a table, without some of its columns."""
    from pufferfish.cli.digits import at_most, per_cent, rounded_up, short
    from pufferfish.cli.output import make_table

    table = make_table((name, side) for name, side in _COLUMNS.items() if name not in without)
    before = results[0].epsilon
    for result in results:
        if result.epsilon != before:
            table.add_section()
            before = result.epsilon
        plan = result.plan
        cells = (
            result.epsilon,
            plan.mechanism,
            rounded_up(plan.scale),
            at_most(plan.loss, plan.epsilon_exact),
            short(plan.std),
            short(plan.mse),
            *(per_cent(value) for value in result.reductions),
        )
        shown = (cell for name, cell in zip(_COLUMNS, cells, strict=True) if name not in without)
        table.add_row(*shown, style="bold red" if plan.unchanged else "")
    return table
