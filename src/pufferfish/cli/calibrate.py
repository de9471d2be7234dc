# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli import signals
from pufferfish.cli.channeling import channel_options, make_channel_options
from pufferfish.cli.choice import mechanisms
from pufferfish.cli.commands import WithMechanisms
from pufferfish.cli.files import check_not_input, check_plan_target, writing
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import (
    Source,
    check_given,
    epsilons,
    format_option,
    make_source,
    source_options,
)

if TYPE_CHECKING:
    from pufferfish.cli.results import Result
    from pufferfish.scenario import Scenario

_CSV_COLUMNS = (
    "epsilon", "mechanism", "scale", "loss", "mse", "std", "certified", "certified_by",
    "unchanged", "reduction_vs_wasserstein", "reduction_vs_l1", "cost", "keep_rate", "loss_at_95",
    "robustness_radius", "robustness_radius_at_double", "robust",
)  # fmt: skip


@click.command(
    cls=WithMechanisms, short_help="Compute the noise or the channel that hides the secret."
)
@click.argument("table", required=False)
@source_options
@click.option(
    "--epsilon", "epsilon", multiple=True, metavar="E1,E2,...",
    help="epsilon, the largest loss: one number or several, such as 0.1,0.5,1 or 1/3.",
)  # fmt: skip
@click.option(
    "--mechanism", "mechanism", multiple=True, metavar="M1,M2,...|all",
    help="Mechanisms to compute; by default 'exact', or 'channel' for levels without an order. "
    "'all': every one that applies.",
)  # fmt: skip
@channel_options
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
    counted in it, or read from a prior file. Numbers and ordered levels get noise; levels without
    an order go through a channel, which publishes one of them.

    \b
    Examples:
      pufferfish calibrate student.csv --secret higher --public romantic \\
          --order no,yes --epsilon 0.1,0.5,1 --mechanism all
      pufferfish calibrate adult.csv --secret marital-status \\
          --public hours-per-week --pair Married-civ-spouse Never-married \\
          --missing "?" --epsilon 0.5 --save plan.json
      pufferfish calibrate adult.csv --secret marital-status \\
          --public workclass --pair Married-civ-spouse Never-married \\
          --epsilon 0.5 --min-keep 0.6 --confidence 0.95
      pufferfish calibrate --prior prior.json --epsilon 1/3 --format json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    source = make_source(table, options)
    check_given(source)
    wanted = epsilons(options["epsilon"])
    request = mechanisms(options["mechanism"])
    channel = make_channel_options(options)
    request.check_options(channel)
    target = options["save"]
    if target is not None:
        wanted.only("--save")
        request.check_one("--save")
        check_not_input(target, (table, *source.priors, *channel.files), "the plan")
        check_plan_target(target, options["force"])
    from pufferfish.cli.results import compare
    from pufferfish.cli.scenarios import scenario_of, unfound_missing

    scenario = scenario_of(source)
    chosen = request.resolve(scenario, channel)
    arguments, notes = channel.arguments(scenario)
    found = compare(scenario, wanted.texts, chosen, arguments)
    results = found.results
    if target is not None:
        signals.check()
        with writing(target, messages):
            results[0].plan.save(target, force=options["force"])
    if wanted.hint:
        messages.note(wanted.hint)
    for text in unfound_missing(scenario):
        messages.warning(text)
    report = Report(scenario, source, (*chosen.notes, *notes, *found.notes), results)
    report.print(options["form"], messages)
    if target is not None:
        private = "; it is private: keep it with the table" if results[0].plan.from_rows else ""
        messages.note(f"the plan is saved as {target}{private}")


@dataclass(frozen=True)
class Report:
    """What is printed.

    Attributes
    ----------
    scenario : Scenario
    source : Source
    notes : tuple of str
        What was decided about the options.
    results : list of Result
    """

    scenario: "Scenario"
    source: Source
    notes: tuple[str, ...]
    results: "list[Result]"

    def print(self, form: str, messages: Messages) -> None:
        """Print the results as a table for people, or as JSON or CSV for programs."""
        from pufferfish.cli import describe
        from pufferfish.cli.comparison import notices
        from pufferfish.cli.output import print_csv, print_json

        if form == "table":
            self._print_table()
            return
        rows = [_to_dict(result) for result in self.results]
        said = [note for r in self.results for note in (r.plan.assumption, *r.plan.notes)]
        notes = list(dict.fromkeys([*describe.notes_of(self.scenario), *self.notes, *said]))
        if form == "json":
            data = describe.to_dict(self.scenario, self.source)
            print_json({"scenario": data | {"notes": notes}, "results": rows})
        else:
            for note in notes:
                messages.note(note)
            print_csv(_CSV_COLUMNS, rows)
        for line in notices(self.results):
            messages.warning(line)

    def _print_table(self) -> None:
        from pufferfish.cli import describe
        from pufferfish.cli.comparison import lines_below, notices, print_results
        from pufferfish.cli.output import print_lines, stdout_console

        console = stdout_console()
        print_lines(console, describe.lines_of(self.scenario, self.source))
        print_lines(console, (f"note: {note}" for note in self.notes))
        console.print()
        hidden = print_results(console, self.scenario, self.results)
        console.print()
        lines = lines_below(self.scenario, self.results, hidden)
        known = describe.notes_of(self.scenario)
        lines += dict.fromkeys(n for r in self.results for n in r.plan.notes if n not in known)
        lines += dict.fromkeys(result.plan.assumption for result in self.results)
        print_lines(console, lines)
        noticed = notices(self.results)
        if noticed:
            console.print()
            print_lines(console, (f"NOTICE: {line}" for line in noticed), "bold red")


def _to_dict(result: "Result") -> dict[str, Any]:
    plan = result.plan
    found = plan.sensitivity
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
        "cost": plan.cost,
        "keep_rate": plan.keep_rate,
        "loss_at_95": None if found is None else found.loss_at_95,
        "robustness_radius": None if found is None else found.radius,
        "robustness_radius_at_double": None if found is None else found.radius_at_double,
        "robust": plan.robust,
    }
