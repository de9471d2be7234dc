# SPDX-License-Identifier: Apache-2.0
"""``pufferfish release``: the released table, written by a plan or by one made on the way."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli.channeling import (
    ChannelOptions,
    channel_given,
    channel_options,
    make_channel_options,
)
from pufferfish.cli.charging import charged, ledger_of, print_price
from pufferfish.cli.choice import mechanisms
from pufferfish.cli.commands import WithMechanisms
from pufferfish.cli.files import check_not_input, check_there, load_plan, writing
from pufferfish.cli.levels import codes_of_bounds, unknown_level
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import (
    Source,
    epsilons,
    make_source,
    one_of,
    one_text,
    source_options,
)
from pufferfish.cli.released import print_release
from pufferfish.errors import InputError, listed

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.release import ReleaseSpec
    from pufferfish.scenario import Scenario


@click.command(cls=WithMechanisms, short_help="Write the released table.")
@click.argument("table")
@click.option("-o", "--output", metavar="OUT", help="File to write: .csv, .tsv (.gz) or .parquet.")
@click.option("--plan", "plan_file", metavar="FILE", help="Plan that calibrate saved.")
@source_options
@click.option(
    "--epsilon", "epsilon", multiple=True, metavar="E",
    help="epsilon, the largest loss, where no plan is given.",
)  # fmt: skip
@click.option(
    "--mechanism", "mechanism", multiple=True, metavar="M",
    help="Mechanism, where no plan is given; by default 'exact', or 'channel' for levels without "
    "an order.",
)  # fmt: skip
@channel_options
@click.option(
    "--keep", multiple=True, metavar="COL",
    help="Column to write beside the released one, as it is; may be repeated. The guarantee does "
    "not cover a release with kept columns.",
)  # fmt: skip
@click.option(
    "--out-of-support", callback=one_of("refuse", "clamp"), metavar="[refuse|clamp]",
    default="refuse", show_default=True,
    help="What happens to a value that is not in the plan's support.",
)  # fmt: skip
@click.option(
    "--bounds", nargs=2, metavar="LO HI",
    help="Move what is released into these bounds, after the noise; for ordered levels two of "
    "their names or codes.",
)  # fmt: skip
@click.option(
    "--round", "rounding", is_flag=True,
    help="Round what is released to integers; with --bounds inside the codes, ordered levels get "
    "their names back.",
)  # fmt: skip
@click.option(
    "--allow-unchanged", is_flag=True,
    help="Publish the column unchanged where the scale is 0 or the channel changes nothing.",
)  # fmt: skip
@click.option(
    "--min-scale", metavar="T", help="Add at least the noise of this scale; not for a channel."
)
@click.option(
    "--ledger", "ledger_file", metavar="FILE",
    help="Charge the release to the account of its secret in this ledger, before anything is "
    "drawn; refused where all releases together would exceed the budget.",
)  # fmt: skip
@click.option(
    "--new-table",
    is_flag=True,
    help="With --ledger: a table that the ledger does not know is about other people.",
)
@click.option(
    "--record", metavar="FILE",
    help="Also write what those who receive OUT may see of the plan, which is private.",
)  # fmt: skip
@click.option(
    "--publish-scale", is_flag=True,
    help="With --record: also tell how much noise there is. A scale that was computed from a table "
    "depends on every row of it.",
)  # fmt: skip
@click.option(
    "--prior-table", metavar="FILE",
    help="With --ledger and --plan: other table that the plan was calibrated for; without it (or "
    "--prior) the worst case is charged for whoever has another prior than TABLE.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace outputs that exist.")
@click.option(
    "--seed", type=int, metavar="N",
    help="Repeatable noise, for tests only: it protects nobody, and OUT must contain 'test'.",
)  # fmt: skip
@click.pass_obj
def release(messages: Messages, /, table: str, **options: Any) -> None:
    """Add the noise to the public column of TABLE, or send it through the channel, and write OUT.

    Only the released column is written, unless --keep names more; rows without a public value are
    left out and counted. Nothing appears under the name OUT before it is complete.

    \b
    Examples:
      pufferfish release student.csv --plan plan.json -o released.csv
      pufferfish release student.csv --secret higher --public romantic \\
          --order no,yes --epsilon 0.1 -o released.csv --round --bounds no yes
      pufferfish release wards.csv --secret diagnosis --public ward \\
          --epsilon 0.5 --min-keep 0.6 -o released.csv
      pufferfish release numbers.csv --prior prior.json --public days \\
          --epsilon 1 -o released.csv
      pufferfish release student.csv --plan plan.json --ledger books.db \\
          -o released.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    output = options["output"]
    if output is None:
        raise InputError("give the file to write with -o OUT")
    source = make_source(None, options)
    books = options["ledger_file"]
    read = (table, options["plan_file"], *source.priors, books, options["prior_table"])
    check_not_input(output, read, "the release")
    check_there(table, "file")
    ledger = ledger_of(options, messages)
    state = None
    scenario = None
    channel = ChannelOptions()
    if options["plan_file"] is not None:
        plan = _loaded(options, source)
        if ledger is not None:
            from pufferfish.cli.judging import calibrated_for

            scenario = calibrated_for(plan, source.priors, options["prior_table"])
    else:
        channel = make_channel_options(options)
        check_not_input(output, channel.files, "the release")
        from pufferfish.release import file_state

        # Taken before counting: a table that changes until it is released is refused.
        state = None if source.priors else file_state(table)
        plan, scenario = _calibrated(table, output, options, source, channel, messages)
    spec = plan.release_spec(
        out_of_support=options["out_of_support"],
        bounds=codes_of_bounds(plan, options["bounds"], messages),
        round=options["rounding"],
        allow_unchanged=options["allow_unchanged"],
        min_scale=options["min_scale"],
    )
    inputs = [p for p in (*read[1:], *channel.files) if p]
    _check_record(options, (table, output, *inputs))
    if ledger is not None and state is None:
        from pufferfish.release import file_state

        state = file_state(table)

    def write() -> Any:
        from pufferfish.cli import progress
        from pufferfish.release import release_file

        with progress.rows() as done, writing(output, messages):
            return release_file(
                table,
                output,
                spec,
                keep=options["keep"],
                force=options["force"],
                seed=options["seed"],
                progress=done,
                inputs=inputs,
                state=state,
            )

    if ledger is None and plan.beside is not None:
        from pufferfish.cli.charging import uncharged

        messages.warning(uncharged(plan.beside.releases))
    price = None
    try:
        if ledger is None:
            report = write()
        else:
            _check_output(table, output, options["force"], inputs, spec)
            report, price = charged(
                ledger, table, plan, spec, write, messages,
                new_table=options["new_table"], scenario=scenario,
            )  # fmt: skip
    except InputError as error:
        hints = one_text("--keep", options["keep"], str(error))
        hints += unknown_level(plan, table, str(error))
        if " row " in str(error):  # a cell that a list of missing texts might have settled
            hints += one_text("--missing", source.missing, "".join(source.missing))
        raise InputError(f"{error}{hints}") from None
    if options["record"] is not None:
        from pufferfish.cli.judging import proved_again
        from pufferfish.publicrecord import write_record

        proved = options["plan_file"] is None or proved_again(plan, table, source.priors, messages)
        with writing(options["record"], messages):
            write_record(
                options["record"],
                plan,
                report,
                publish_scale=options["publish_scale"],
                spec=spec,
                proved=proved,
                force=options["force"],
            )
    if options["plan_file"] is None:
        from pufferfish.cli.planwords import NO_PLAN

        messages.note(NO_PLAN)
    print_release(plan, spec, report, options["plan_file"], messages)
    if price is not None:
        print_price(price, messages)
    if options["record"] is not None:
        messages.note(f"the public record is saved as {options['record']}; the plan stays private")


def _check_record(options: dict[str, Any], others: Iterable[str]) -> None:
    """Check that a record can be written, before anything is released."""
    if options["record"] is None:
        if options["publish_scale"]:
            raise InputError("--publish-scale is for --record FILE")
        return
    from pufferfish.atomic import checked_target

    check_not_input(options["record"], others, "the record")
    checked_target(options["record"], None, options["force"])


def _check_output(
    table: str, output: str, force: bool, inputs: list[str], spec: "ReleaseSpec"
) -> None:
    """Check what can be checked of the output before a release is charged for it."""
    from pufferfish.atomic import checked_target
    from pufferfish.estimate.released import releaser_of
    from pufferfish.release.csvtext import check_apart
    from pufferfish.release.sinks import checked_extension

    extension = checked_extension(output)
    checked_target(output, Path(table), force, inputs)
    levels = releaser_of(spec).levels
    if levels is not None and extension != ".parquet":
        check_apart(levels.names)


def _loaded(options: dict[str, Any], source: Source) -> "Plan":
    """Return the plan of a file; one that came from a prior is told the columns' names."""
    named = ["--secret", "--public", "--missing", "--step", "--missing-as-level"]
    if options["ledger_file"] is not None:
        # It says what the plan was calibrated for, which the plan does not hold.
        named.append("--prior")
    given = [*source.given]
    given += [f"--{name}" for name in ("epsilon", "mechanism") if options[name]]
    given += channel_given(options)
    # Checked before the file is read: these never go with a plan.
    wrong = [name for name in given if name not in named]
    if wrong:
        raise InputError(f"{listed(wrong)} cannot be given with --plan: the plan says it already")
    plan = load_plan(options["plan_file"])
    if plan.rules is not None:
        given = [name for name in given if name != "--prior"]
        if given:
            raise InputError(
                f"{listed(given)} cannot be given with --plan: the plan says it already"
            )
        return plan
    return _with_columns(plan, source)


def _calibrated(
    table: str,
    output: str,
    options: dict[str, Any],
    source: Source,
    channel: ChannelOptions,
    messages: Messages,
) -> "tuple[Plan, Scenario | None]":
    """Return a plan made from the options of calibrate, and the scenario of a given prior."""
    from pufferfish.atomic import checked_target
    from pufferfish.calibration import calibrate
    from pufferfish.calibration.registry import NOISE
    from pufferfish.cli.describe import notes_of
    from pufferfish.cli.scenarios import scenario_of, unfound_missing
    from pufferfish.release.sinks import checked_extension

    if not options["epsilon"]:
        raise InputError(
            "give --plan FILE, or the options of calibrate with one epsilon and one mechanism"
        )
    epsilon = epsilons(options["epsilon"]).only("release")
    request = mechanisms(options["mechanism"])
    request.check_one("release")
    request.check_options(channel)
    # Before anything long is computed.
    checked_extension(output)
    checked_target(output, Path(table), options["force"])
    if not source.priors:
        scenario = scenario_of(replace(source, table=table))
    else:
        _public(source)  # before anything long is computed
        # The columns are those of the table that is released, and say nothing of the prior.
        scenario = scenario_of(
            replace(source, secret=None, public=None, missing=(), missing_as_level=False)
        )
    (mechanism,) = request.resolve(scenario, channel).names
    arguments, notes = channel.arguments(scenario)
    plan = calibrate(scenario, epsilon, mechanism, **({} if mechanism in NOISE else arguments))
    for note in (*notes_of(scenario), *notes, *plan.notes):
        messages.note(note)
    for text in unfound_missing(scenario):
        messages.warning(text)
    given = scenario if source.priors else None
    return plan if plan.rules is not None else _with_columns(plan, source), given


def _with_columns(plan: "Plan", source: Source) -> "Plan":
    """Tell a plan from a given prior the column to release, and how its cells are cleaned."""
    public = _public(source)
    return plan.with_columns(
        public, source.secret, source.missing, source.step, source.missing_as_level
    )


def _public(source: Source) -> str:
    """Return the column to release, for a plan that names none."""
    if source.public is None:
        raise InputError(
            "the prior did not come from a table: name the column to release with --public COL"
        )
    return source.public
