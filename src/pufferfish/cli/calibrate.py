# SPDX-License-Identifier: Apache-2.0
"""``pufferfish calibrate``: what it takes to hide the secret, for every mechanism side by side."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import click

from pufferfish.calibration.calibrate import calibrate as calibrate_alone
from pufferfish.calibration.noisy_counts import HeldOut
from pufferfish.calibration.registry import REGISTRY
from pufferfish.cli import process
from pufferfish.cli.options import (
    FORCE,
    OF_BOTH,
    PRIOR,
    READING,
    WithMechanisms,
    channel_arguments,
    check_publishable,
    epsilons,
    mechanisms,
    opened,
    options,
    scenario_of,
)
from pufferfish.cli.output import after, print_csv, print_json, print_lines, print_results
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.files import checked_target
from pufferfish.ledger.calibrate import calibrate_beside, draw_counts
from pufferfish.ledger.ledger import Ledger
from pufferfish.numbers import show
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario
from pufferfish.report import sentences
from pufferfish.report.compare import Result, results_of, what_to_calibrate
from pufferfish.support import Levels
from pufferfish.tables.table import Table

_SOURCE = f"""
--secret COL  Column that holds the secret.
--public COL  Column to be published.
{PRIOR}
--pair A B ...  Pair of secrets that nobody may tell apart; may be repeated. By default all pairs.
--order V1,V2,...  Order of the levels, least first; or 'appearance' or 'alphabetical'. Noise on
    text needs one; levels without one go through a channel.
--levels V1,...  Levels of the public column, also those that no row has, and also where they look
    like numbers.
--range LO HI  Numbers that may occur: from LO to HI in steps of --step, or else of 1.
--missing TEXT ...  Text that means a missing value, besides the empty cell; may be repeated.
--missing-as-level  Make missing a level of the public column, released like any other. By default
    its rows are left out.
--exclude-secret LEVEL ...  Leave the rows of this secret out of the prior; may be repeated.
--step G  Step of the lattice; numbers are rounded to it before they are counted,
    ties to the even multiple.
--decimal MARK  Decimal mark of the numbers: . (by default) or ,
{READING}
--unit COL  Column whose equal values mark the rows of one person, who is protected in all of them
    together; by default each row is a person of its own.
--confidence C  Make a plan that holds with this confidence, such as 0.95, for the distributions
    that the rows of TABLE were drawn from; for 'exact' and 'channel'.
--publishable EPS1  Calibrate from noisy counts alone, which cost EPS1 of --epsilon: then the plan
    may be published. Needs --pair and --levels or --range, declared beforehand; with --confidence
    0.95 unless another one is given.
--hold-out SHARE REST  Count this share of the rows, drawn at random, and write the others to REST,
    to be released alone: then --epsilon is the larger of EPS1 and the loss of that, not the sum.
--tv-radius R  Calibrate for every prior within this distance in total variation, such as 0.01;
    for 'exact' and 'channel'.
"""
_MECHANISM = """
--epsilon E1,E2,... ...  The largest loss: one number or several, such as 0.1,0.5,1 or 1/3; may be
    repeated.
--mechanism M1,M2,...|all ...  Mechanisms to compute; by default 'exact', or 'channel' for levels
    without an order or with an option of channels. 'all': every one that applies.
--best-for NAME|FILE  What the channel is best for. 'kept': single values, by their --cost (the
    default for numbers and ordered levels). 'frequencies' (the default for levels without an
    order), 'mean', 'cdf' or 'both' (frequencies and mean): estimates of these from the released
    table. FILE: estimates of statistics of your own, in JSON {value: [number, ...]}; each is the
    mean over all rows of its number for the row's value.
--cost NAME|FILE  What a channel for 'kept' minimises: the mean 'squared' change of a value (the
    default for numbers and ordered levels) or its 'absolute' change, 'hamming' (the share of
    changed values; the default for levels without an order), or FILE, JSON {value: {output: cost}}.
--outputs fine:K  Let the channel publish K more values between every two neighbours.
--invariant  Let the channel keep the expected frequencies: on average, those of the outputs are
    those of the values.
--unbiased  Let the channel's expected output be the value; widens the outputs.
--min-keep P  Let the channel keep each value, or label it as itself, with at least this chance,
    such as 0.6.
--show-channel  Print the channel too: for each value the chance of each output.
"""
_OUTPUT = f"""
--explain  Print all that is known of each result, and how its loss was proved.
--format table|json|csv  Form of what is printed on standard output.
--save FILE  Save the plan, for release; readable by you alone, or by all if it may be published.
    Takes one epsilon and one mechanism.
--report FILE.html  Write a report that explains the plan, too (see pufferfish report).
--ledger BOOKS  Calibrate the next release of TABLE: epsilon bounds its joint loss with all that is
    charged in this ledger, and is by default the budget. Charges noisy counts when they are drawn.
{FORCE}"""
#: Values up to which the verdict tells unasked what another channel would give.
_MOST_UNASKED = 30
#: Options that the command for a sample does not repeat, those with a value first.
_NOT_REPEATED = ("--mechanism", "--format", "--report", "--force", "--explain", "--show-channel")


@click.command(cls=WithMechanisms, mechanisms={n: m.summary for n, m in REGISTRY.items()})
@click.argument("table", required=False)
@options(_SOURCE + _MECHANISM + _OUTPUT)
@click.pass_obj
def calibrate(messages: Messages, /, table: str | None, **given: Any) -> None:
    """Compute the least noise, or the best channel, that hides a secret of each row.

    Whatever is published is at most e^epsilon times likelier for one secret of a pair than for the
    other. Noise is added to numbers and ordered levels; a channel publishes another value, or a set
    of values, with chances that depend on the value.

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
    source = opened(table, given, ledger=given["ledger"])
    budget, books = None, None
    if given["publishable"] is not None or given["hold_out"] is not None:
        check_publishable(given)
    if given["ledger"] is not None:
        if source is None or given["secret"] is None:
            raise InputError("--ledger is about tables: give a TABLE with --secret COL")
        books = Ledger.open(given["ledger"])
        method = partial(calibrate_beside, books, source)
        budget = show(books.account(source, given["secret"])[0].budget)
        together = "epsilon is for everything charged together with this release, and at most"
        messages.note(f"{together} the budget {budget}")
    texts = epsilons(given["epsilon"], messages.note, budget)
    names = mechanisms(given["mechanism"])
    held = _checked_outputs(source, texts, names, **given)
    draw = partial(scenario_of, held or source, given)
    if given["publishable"] is not None:
        _rehearse(scenario_of(None, given), texts[0], names, given)
    if books is not None and given["publishable"] is not None:
        spent = given["publishable"]
        scenario, left = draw_counts(books, source, given["secret"], spent, texts[0], draw)
        method, texts = calibrate_alone, (show(left),)
    else:
        scenario = draw()
    asked, by_all = channel_arguments(given), "all" in names
    wanted, left_out = what_to_calibrate(scenario, names, asked)
    computed = [arguments["mechanism"] for arguments in wanted.values()]
    if given["show_channel"] and "channel" not in computed:
        raise InputError(f"--show-channel: no channel is computed, but {listed(wanted)}")
    try:
        results, failed = results_of(scenario, texts, wanted, by_all, method, process.check)
    except PufferfishError as error:
        if scenario.noisy is not None:
            spent = show(scenario.noisy.epsilon1)
            error.add_note(f"this depends on the noisy counts, whose epsilon {spent} is spent")
        raise
    results = [replace(r, released=len(held.left)) for r in results] if held else results
    _write(messages, table, results[0], held, given)
    for line in sentences.left_out_lines({**left_out, **failed}):
        messages.note(line)
    name = " and ".join(given["prior"]) or str(source and source.name)
    with after(given["save"]):
        _print(messages, name, results, asked, given)


def _checked_outputs(
    table: Table | None, texts: Sequence[str], names: Sequence[str], *, save: str | None,
    report: str | None, force: bool, prior: Sequence[str], **given: Any,
) -> HeldOut | None:  # fmt: skip
    """Refuse, before anything is computed, what could not be written; return who is held out."""
    if given["show_channel"] and given["format"] == "csv":
        raise InputError("--show-channel is for --format table or json, but csv was asked for")
    for option, path in (("--report", report), ("--save", save)):
        if path is not None and (len(texts) > 1 or len(names) > 1 or "all" in names):
            several = listed((*texts, *names))
            raise InputError(f"{option} takes exactly one epsilon and one mechanism, not {several}")
    others = [*prior, *(given[name] for name in ("ledger", "cost", "best_for"))]
    others += table.inputs if table else []
    if report is not None:
        from pufferfish.report.page import check_report  # slow to import, and needs an extra

        check_report(report, force, [*others, save])
    if save is not None:
        checked_target(save, force, others)
    if save is None or given["hold_out"] is None or table is None:
        return None
    if os.path.realpath(save) == os.path.realpath(given["hold_out"][1]):
        raise InputError(f"--save and --hold-out both name {save}; give two names")
    return HeldOut(table, given["hold_out"], force)


def _write(
    messages: Messages, table: str | None, result: Result, held: HeldOut | None,
    given: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write the plan and the report, where they are asked for."""
    save, force, report = given["save"], given["force"], given["report"]
    plan = replace(result.plan, sensitivity=result.risk)
    if save is not None:
        if given["prior"] and given["public"] is not None:
            plan = plan.with_columns(**{name: given[name] for name in OF_BOTH})
        process.check()
        with nullcontext() if held is None else held.written():
            plan.save(save, force=force)
        kept = "; it is private" if plan.from_rows else ""
        kept += "; it may be published, and another run costs epsilon again" if plan.noisy else ""
        kept += f"; release {given['hold_out'][1]}, never the held-out rows" if held else ""
        messages.note(f"the plan is saved as {save}{kept}")
    if report is not None:
        from pufferfish.report.page import write_report

        with after(save):
            about = None if plan.noisy else result.scenario
            write_report(report, plan, about, source=table or "TABLE", force=force)
        messages.note(f"the report is saved as {report}")


def _print(
    messages: Messages, source: str, results: Sequence[Result], asked: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:  # fmt: skip
    form, channels, scenario = given["format"], given["show_channel"], results[0].scenario
    forecast, instead = ("", None) if asked else _best_for_both(results)
    command = _command_for_a_sample(messages.arguments, results, asked)
    verdict = sentences.verdict_lines(results, command)
    verdict[-1:-1] = [forecast] if forecast else []
    if form == "table":
        print_lines([*sentences.scenario_lines(scenario, source), ""])
        print_results(results, channels)
        for result in results if given["explain"] else ():
            print_lines(["", *sentences.result_lines(result)])
        print_lines(["", *verdict])
        return
    for line in sentences.survival_lines(results):
        messages.warning(line)
    rows = [r.to_dict(channels) for r in results]
    if form == "csv":
        print_csv(rows)
        return
    facts = {
        "certified": all(r.plan.certificate.holds for r in results),
        "if_a_sample": max(r.loss_at_95 or 0.0 for r in results) if command else None,
        "command_for_a_sample": command or None,
        "survives": any(r.left for r in results),
        "private": any(r.plan.from_rows for r in results),
        "best_for_both": instead and instead.to_dict(),
        "text": verdict,
    }
    print_json({"scenario": _scenario_to_dict(scenario, source), "results": rows, "verdict": facts})


def _rehearse(blank: Scenario, epsilon: str, names: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse, before noise is drawn and paid for, what would be refused whatever the counts are."""
    wanted, _ = what_to_calibrate(blank, names, channel_arguments(given))
    _ = blank.sets
    # Nothing is hidden in equal distributions: that is quick, and nothing but the options can fail.
    for arguments in wanted.values():
        calibrate_alone(blank.with_rules([None]), epsilon, **arguments)


def _best_for_both(results: Sequence[Result]) -> tuple[str, Result | None]:
    """Return what to say of ``--best-for both`` beside the only result; where it is quick, it."""
    one, scenario = results[0], results[0].scenario
    special = scenario.has_region or scenario.unit or one.joint or len(scenario.priors) > 1
    told = one.plan.unchanged or one.plan.objective is not None or not one.rows
    if len(results) > 1 or told or special or not scenario.support.ordered:
        return "", None
    if scenario.support.size > _MOST_UNASKED or len(scenario.protected) > 2:
        return "See also --best-for both, for shares and the mean.", None
    try:
        plan = calibrate_alone(scenario, one.epsilon, best_for="both")
    except PufferfishError:  # an epsilon out of reach
        return "", None
    found = replace(one, name="channel (both)", plan=plan)
    return f"With --best-for both: {sentences.errors_words(found)}.", found


def _command_for_a_sample(
    arguments: Sequence[str], results: Sequence[Result], asked: Mapping[str, Any]
) -> str:
    """Return the command whose plan holds also if the rows are a sample; empty if none does."""
    if all(r.loss_at_95 is None for r in results):
        return ""
    kept = [
        word
        for before, word in zip(("", *arguments), arguments, strict=False)
        if word.partition("=")[0] not in _NOT_REPEATED and before not in _NOT_REPEATED[:3]
    ]
    only = asked or all(r.plan.channel is not None for r in results)
    by_default = asked or not results[0].plan.support.ordered
    channel = ["--mechanism", "channel"] if only and not by_default else []
    force = ["--force"] if any(word.startswith("--save") for word in kept) else []
    return shlex.join(["pufferfish", *kept, *channel, "--confidence", "0.95", *force])


def _scenario_to_dict(scenario: Scenario, source: str) -> dict[str, Any]:
    """Return a scenario as JSON values; the digest is private and not among them."""
    rules, report = scenario.priors[0].rules, scenario.priors[0].report
    support = scenario.support
    where: dict[str, Any] = {"size": support.size}
    if not isinstance(support, Levels):
        ends = {"least": support.value(0), "greatest": support.value(support.size - 1)}
        where |= {"kind": "numbers", "step": support.step, **ends}
    else:
        kind = "ordered levels" if support.ordered else "unordered levels"
        where |= {"kind": kind, "levels": support.names}
    codes = isinstance(support, Levels) and support.ordered
    rows = report and {
        "read": report.rows_read, "used": report.rows_used, "set_aside": report.rows_set_aside,
        "by_secret": dict(report.secrets),
    }  # fmt: skip
    data = {
        "source": source, "secret": rules and rules.secret,
        "public": scenario.product.columns[0], "unit": scenario.unit, "support": where,
        "secrets": scenario.priors[0].secrets, "pairs": scenario.pairs,
        "adversaries": len(scenario.priors),
        "region": sentences.region_words(scenario.rules) or None,
        "coding": {support.name(k): k for k in range(support.size)} if codes else None,
        "notes": sentences.scenario_notes(scenario), "rows": rows,
        "noisy_counts": scenario.noisy and {
            "epsilon": scenario.noisy.epsilon1, "rows": scenario.noisy.rows,
            "held_out": scenario.noisy.held_out,
        },
    }  # fmt: skip
    more = ("set_aside", "missing", "people", "warnings")
    return data | {name: report and getattr(report, name) for name in more}
