# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli import signals
from pufferfish.cli.channeling import (
    channel_options,
    make_channel_options,
    show_channel_option,
)
from pufferfish.cli.charging import open_ledger
from pufferfish.cli.choice import Chosen, mechanisms
from pufferfish.cli.commands import WithMechanisms
from pufferfish.cli.digits import at_most
from pufferfish.cli.files import check_not_input, check_plan_target, writing
from pufferfish.cli.messages import Messages, command_line_words
from pufferfish.cli.options import (
    Source,
    check_given,
    epsilons,
    format_option,
    make_source,
    source_options,
)
from pufferfish.errors import InputError, PufferfishError

if TYPE_CHECKING:
    from pufferfish.cli.results import Comparison, Result
    from pufferfish.ledger.ledger import Ledger
    from pufferfish.plan import Plan
    from pufferfish.scenario import Scenario

_CSV_COLUMNS = (
    "epsilon", "mechanism", "scale", "loss", "mse", "std", "certified", "certified_by",
    "unchanged", "reduction_vs_wasserstein", "reduction_vs_l1", "cost", "keep_rate", "loss_at_95",
    "robustness_radius", "robustness_radius_at_double", "robust", "repair",
)  # fmt: skip
#: What --ledger adds.
_LEDGER_COLUMNS = ("joint_loss", "releases_out")


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
@show_channel_option
@format_option
@click.option(
    "--save", metavar="FILE",
    help="Save the plan, readable by you alone; takes one epsilon and one mechanism.",
)  # fmt: skip
@click.option(
    "--ledger", "ledger_file", metavar="FILE",
    help="Calibrate the next release of TABLE, beside all that is charged to the account of its "
    "secret in this ledger: epsilon is then what everything together may cost, by default the "
    "budget.",
)  # fmt: skip
@click.option(
    "--new-table",
    is_flag=True,
    help="With --ledger: a table that the ledger does not know is about other people.",
)
@click.option("--force", is_flag=True, help="Replace a plan file that exists.")
@click.pass_obj
def calibrate(messages: Messages, /, table: str | None, **options: Any) -> None:
    """Compute the least noise, or the cheapest channel, that keeps every pair within epsilon.

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
    ledger = _ledger(source, options, messages)
    given = options["epsilon"]
    if ledger is not None and not given:
        given = (_budget(ledger, source),)
    wanted = epsilons(given)
    request = mechanisms(options["mechanism"])
    channel = make_channel_options(options)
    request.check_options(channel)
    target = options["save"]
    if target is not None:
        wanted.only("--save")
        request.check_one("--save")
        check_not_input(
            target, (table, *source.priors, *channel.files, options["ledger_file"]), "the plan"
        )
        check_plan_target(target, options["force"])
    from pufferfish.cli.results import compare
    from pufferfish.cli.scenarios import scenario_of, unfound_missing

    scenario = scenario_of(source)
    chosen = request.resolve(scenario, channel)
    arguments, notes = channel.arguments(scenario)
    if ledger is None:
        found = compare(scenario, wanted.texts, chosen, arguments)
    else:
        found = _beside(ledger, table, scenario, wanted.texts, chosen, arguments, options)
    results = found.results
    if options["show_channel"]:
        from pufferfish.cli.comparison import check_shown

        check_shown(results, options["form"])
    if target is not None:
        signals.check()
        with writing(target, messages):
            results[0].plan.save(target, force=options["force"])
    if wanted.hint:
        messages.note(wanted.hint)
    for text in unfound_missing(scenario):
        messages.warning(text)
    noted = (*chosen.notes, *notes, *found.notes)
    report = Report(scenario, source, noted, results, ledger is not None)
    report.print(options["form"], messages, options["show_channel"])
    if target is not None:
        private = "; it is private: keep it with the table" if results[0].plan.from_rows else ""
        messages.note(f"the plan is saved as {target}{private}")


def _ledger(source: Source, options: dict[str, Any], messages: Messages) -> "Ledger | None":
    """Return the ledger to calibrate beside."""
    if options["ledger_file"] is None:
        if options["new_table"]:
            raise InputError("--new-table is for --ledger FILE")
        return None
    if source.priors:
        raise InputError("--ledger is about tables, but the prior comes from a file (--prior)")
    if source.secret is None or source.public is None:
        raise InputError("--ledger needs a TABLE with --secret COL and --public COL")
    return open_ledger(options["ledger_file"], messages)


def _budget(ledger: "Ledger", source: Source) -> str:
    """Return the budget of the secret, which is epsilon where none is given."""
    from pufferfish.ledger.account import budget_text

    with ledger.store.reading() as view:
        return budget_text(view.account((source.secret or "").strip()).budget)


def _beside(
    ledger: "Ledger",
    table: str | None,
    scenario: "Scenario",
    epsilons: tuple[str, ...],
    chosen: Chosen,
    channel: Mapping[str, Any],
    options: dict[str, Any],
) -> "Comparison":
    """Calibrate every mechanism for every epsilon beside what is out of the table."""
    from pufferfish.calibration.registry import NOISE
    from pufferfish.cli.progress import steps
    from pufferfish.cli.results import Comparison, Result
    from pufferfish.ledger.calibrating import calibrate_beside

    results: list[Result] = []
    notes: list[str] = []
    failed: PufferfishError | None = None
    with steps("calibrating", len(epsilons) * len(chosen.names)) as done:
        for epsilon in epsilons:
            for mechanism in chosen.names:
                try:
                    plan = calibrate_beside(
                        ledger,
                        table,
                        scenario,
                        epsilon,
                        mechanism,
                        new_table=options["new_table"],
                        **({} if mechanism in NOISE else channel),
                    )
                except PufferfishError as error:
                    if mechanism not in chosen.by_all:
                        raise
                    notes.append(f"'all' leaves out {mechanism} at {epsilon}: {error}")
                    failed = error
                else:
                    results.append(Result(epsilon, _sensitive(plan, scenario), (None, None)))
                    notes += _together(plan, epsilon)
                done()
    if failed is not None and not results:
        raise failed
    return Comparison(results, list(dict.fromkeys(notes)))


def _sensitive(plan: "Plan", scenario: "Scenario") -> "Plan":
    """Return a plan with its sensitivity, without a radius that would be about something else.

    The loss of this release alone is below epsilon, which is for everything together: a prior at
    such a radius would keep the one, and not the other.
    """
    plan = plan.with_sensitivity(scenario)
    if plan.beside is None or plan.sensitivity is None:
        return plan
    return replace(plan, sensitivity=replace(plan.sensitivity, radius=None, radius_at_double=None))


def _together(plan: "Plan", epsilon: str) -> list[str]:
    """Return what a plan and everything that is out cost together."""
    from pufferfish.errors import counted

    out = plan.beside
    if out is None:
        return []
    return [
        f"{plan.mechanism} at epsilon {epsilon}: with what is out "
        f"({counted(out.releases, 'release')}) everything together costs at most "
        f"{at_most(out.loss, plan.epsilon_exact)}",
        "every other loss here is that of the release alone",
    ]


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
    accounted : bool
        Whether they were calibrated beside a ledger.
    """

    scenario: "Scenario"
    source: Source
    notes: tuple[str, ...]
    results: "list[Result]"
    accounted: bool = False

    def print(self, form: str, messages: Messages, channels: bool = False) -> None:
        """Print the results as a table for people, or as JSON or CSV for programs."""
        from pufferfish.cli import describe
        from pufferfish.cli.comparison import notices
        from pufferfish.cli.output import print_csv, print_json
        from pufferfish.cli.planwords import channel_to_dict

        if form == "table":
            self._print_table(channels)
            return
        rows = [_to_dict(result) for result in self.results]
        if self.accounted:
            for row, result in zip(rows, self.results, strict=True):
                row |= _joint_to_dict(result.plan)
        if channels:
            for row, result in zip(rows, self.results, strict=True):
                if result.plan.channel is not None:
                    row["channel"] = channel_to_dict(result.plan.channel)
        said = [note for r in self.results for note in (r.plan.assumption, *r.plan.notes)]
        notes = list(dict.fromkeys([*describe.notes_of(self.scenario), *self.notes, *said]))
        noticed = notices(self.results)
        if form == "json":
            data = describe.to_dict(self.scenario, self.source)
            told = {"notes": notes, "warnings": [*data["warnings"], *noticed]}
            data |= {key: list(map(command_line_words, texts)) for key, texts in told.items()}
            print_json({"scenario": data, "results": rows})
        else:
            for note in notes:
                messages.note(note)
            print_csv((*_CSV_COLUMNS, *(_LEDGER_COLUMNS if self.accounted else ())), rows)
        for line in noticed:
            messages.warning(line)

    def _print_table(self, channels: bool) -> None:
        from pufferfish.cli import describe
        from pufferfish.cli.comparison import lines_below, notices, print_channels, print_results
        from pufferfish.cli.output import print_lines, stdout_console

        console = stdout_console()
        print_lines(console, describe.lines_of(self.scenario, self.source))
        print_lines(console, (f"note: {note}" for note in self.notes))
        console.print()
        hidden = print_results(console, self.scenario, self.results)
        if channels:
            print_channels(console, self.results)
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


def _joint_to_dict(plan: "Plan") -> dict[str, Any]:
    """Return what everything together costs; the plan's own loss where nothing is out."""
    out = plan.beside
    found = (plan.loss, 0) if out is None else (out.loss, out.releases)
    return dict(zip(_LEDGER_COLUMNS, found, strict=True))


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
        "repair": None if plan.distortion is None else plan.distortion.repair,
    }
