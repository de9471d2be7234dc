# SPDX-License-Identifier: Apache-2.0
"""The comparison for people: a table with the columns that its results have, and what they mean."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pufferfish.cli.describe import covered, region_words
from pufferfish.cli.digits import at_most, cut_off, error_up, per_cent, rounded_up, share
from pufferfish.cli.messages import one_line
from pufferfish.cli.output import fits, make_table, print_lines, print_table
from pufferfish.cli.planwords import (
    channel_words,
    constant_words,
    nearly_unchanged,
    never_published,
    proved_by,
)
from pufferfish.errors import InputError, listed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pufferfish.cli.results import Result
    from pufferfish.scenario import Scenario

#: What is said of a column that needs no noise.
UNCHANGED = "the column would be PUBLISHED UNCHANGED"
#: So many results are spoken of one by one; more are summed up.
_A_LINE_EACH = 3
_DASH = "-"
#: A channel's cost is this near to the least one by the solver's own tolerance: not worth a line.
_NEAR = 1e-9
#: So many values, and so many outputs, --show-channel prints as a table at most.
MOST_SHOWN = 30


@dataclass(frozen=True)
class _Column:
    """One column of the table.

    Attributes
    ----------
    header : str
    cell : callable
        The cell of a result, or None where it has none.
    side : "left" or "right"
    rank : int
        0: always shown; otherwise a narrow terminal goes without the largest first.
    """

    header: str
    cell: "Callable[[Result], str | None]"
    side: str = "right"
    rank: int = 0


def _loss_at_95(result: "Result") -> str | None:
    found = result.plan.sensitivity
    return None if found is None or found.loss_at_95 is None else rounded_up(found.loss_at_95, 4)


def _reduction(result: "Result", baseline: int) -> str | None:
    value = result.reductions[baseline]
    return None if value is None else per_cent(value)


def _kept(result: "Result") -> str | None:
    rate = result.plan.keep_rate
    if rate is None:
        return None
    # No other share is printed as a whole one.
    return "100 %" if rate == 1 else share(rate).replace("more than ", ">")


def _error(value: float | None) -> str | None:
    return None if value is None else error_up(value)


def _once(result: "Result") -> str | None:
    found = result.plan.sensitivity
    return None if found is None or found.radius is None else _radius(found.radius)


def _twice(result: "Result") -> str | None:
    found = result.plan.sensitivity
    if found is None or found.radius_at_double is None:
        return None
    return _radius(found.radius_at_double)


def _radius(value: float) -> str:
    """Return a radius, cut off and not rounded: it promises no more."""
    return "0" if value < 1e-12 else "<1e-6" if value < 1e-6 else cut_off(value)


_COLUMNS = (
    _Column("epsilon", lambda r: r.epsilon),
    _Column("mechanism", lambda r: r.plan.mechanism, "left"),
    _Column("scale", lambda r: None if r.plan.scale is None else rounded_up(r.plan.scale)),
    _Column("kept", lambda r: _kept(r)),
    _Column("cost", lambda r: _error(r.plan.cost), rank=6),
    _Column("loss", lambda r: at_most(r.plan.loss, r.plan.epsilon_exact)),
    _Column("loss at\n95 %", _loss_at_95, rank=1),
    _Column("radius", _once, rank=5),
    _Column("radius\nat twice", _twice, rank=4),
    _Column("std", lambda r: _error(r.plan.std), rank=7),
    _Column("mse", lambda r: _error(r.plan.mse), rank=2),
    _Column("below\nwasserstein", lambda r: _reduction(r, 0), rank=3),
    _Column("below\nl1", lambda r: _reduction(r, 1), rank=8),
)


def print_results(
    console: "Console", scenario: "Scenario", results: "Sequence[Result]"
) -> tuple[str, ...]:
    """Print the table; return the names of the columns that a narrow terminal goes without."""
    columns = [c for c in _COLUMNS if any(c.cell(r) is not None for r in results)]
    if region_words(scenario):  # the loss itself is that of a region
        columns = [c for c in columns if c.cell is not _loss_at_95]
    if len(results) == 1:  # a sentence says both
        columns = [c for c in columns if c.cell not in (_once, _twice)]
    elif _all_zero(results):  # a line says so
        columns = [c for c in columns if c.cell is not _once]
    hidden: list[_Column] = []
    table = _table(columns, results)
    for column in sorted((c for c in columns if c.rank), key=lambda c: -c.rank):
        if fits(console, table):
            break
        hidden.append(column)
        table = _table([c for c in columns if c not in hidden], results)
    print_table(console, table)
    return tuple(column.header.replace("\n", " ") for column in hidden)


def _all_zero(results: "Sequence[Result]") -> bool:
    """Whether no prior but the own one is within epsilon, as where every plan uses all of it."""
    return all(_once(r) in (None, "0") for r in results)


def _table(columns: "Sequence[_Column]", results: "Sequence[Result]") -> "Table":
    table = make_table((column.header, column.side) for column in columns)
    before = results[0].epsilon
    for result in results:
        if result.epsilon != before:
            table.add_section()
            before = result.epsilon
        cells = (column.cell(result) or _DASH for column in columns)
        table.add_row(*cells, style="bold red" if result.plan.unchanged else "")
    return table


def lines_below(
    scenario: "Scenario", results: "Sequence[Result]", hidden: tuple[str, ...]
) -> list[str]:
    """Return what is said below the table: what was proved, and what the columns mean."""
    methods = dict.fromkeys(proved_by(r.plan.certificate.method) for r in results)
    certified = "certified" if all(r.plan.certificate.holds for r in results) else "NOT certified"
    region = region_words(scenario)
    where = " for every prior of the region" if region else ""
    lines = [
        f"Every loss is {certified} to be within epsilon{where} (proved by {', '.join(methods)})."
    ]
    if hidden:
        lines.append(f"Not shown, as this terminal is narrow: {', '.join(hidden)}.")
    lines += dict.fromkeys(w for r in results for w in channel_words(r.plan, "cost" not in hidden))
    lines += _on_the_cost(results)
    lines += _on_the_outputs(results)
    if not region:
        lines += _on_the_95(scenario, results, "loss at 95 %" not in hidden)
    return lines + _on_the_radius(results, hidden)


def _on_the_cost(results: "Sequence[Result]") -> list[str]:
    """Return by how much more channels cost than they would have to, where that is worth a line."""
    found = [
        (result.epsilon, result.plan.distortion.repair)
        for result in results
        if result.plan.distortion is not None and result.plan.distortion.repair > _NEAR
    ]
    what = "of the least possible (as a share of that, unless it may be 0)"
    if len(found) > _A_LINE_EACH:
        most = rounded_up(max(repair for _, repair in found), 2)
        at = ", ".join(epsilon for epsilon, _ in found)
        return [f"The costs of the channel at {at} are within {most} {what}."]
    return [
        f"The cost of the channel at {epsilon} is within {rounded_up(repair, 2)} {what}."
        for epsilon, repair in found
    ]


def _on_the_outputs(results: "Sequence[Result]") -> list[str]:
    """Return which values channels never publish."""
    found = [
        (result, never_published(result.plan.channel))
        for result in results
        if result.plan.channel is not None and not result.plan.unchanged
    ]
    lost = [(result, words) for result, words in found if words]
    if len(lost) > _A_LINE_EACH:
        at = ", ".join(result.epsilon for result, _ in lost)
        return [f"Some values are never published by the channel at {at}."]
    return [f"Never published by the channel at {r.epsilon}: {words}." for r, words in lost]


def _on_the_95(scenario: "Scenario", results: "Sequence[Result]", shown: bool) -> list[str]:
    """Return what the loss at 95 % confidence is, and what an infinite one means."""
    found = [r for r in results if _loss_at_95(r) is not None]
    if not found:
        return []
    lines = []
    if shown or len(results) == 1:
        number = "" if shown else f"{_loss_at_95(found[0])}, "
        lines.append(
            f"Loss at 95 %: {number}the largest that the numbers of rows allow at 95 % confidence "
            "(see --confidence)."
        )
        where = covered(scenario)
        if where:
            lines.append(f"It is {where}.")
    if any(_loss_at_95(r) == "inf" for r in found):
        lines.append(
            "inf at 95 %: some output occurs for one secret, and rows are too few to show that it "
            "does for another."
        )
    return lines


def _on_the_radius(results: "Sequence[Result]", hidden: tuple[str, ...]) -> list[str]:
    """Return how wrong the prior may be before a loss passes epsilon, and twice epsilon."""
    once, twice = (any(cell(r) is not None for r in results) for cell in (_once, _twice))
    if not (once and twice):
        return []
    if len(results) == 1:
        return [
            f"Robustness radius (total variation): {_once(results[0])} before the loss passes "
            f"epsilon, {_twice(results[0])} before twice epsilon."
        ]
    what = "Radius: how wrong the prior may be (total variation) before the loss passes epsilon"
    zero = _all_zero(results)
    shown = [] if zero or "radius" in hidden else [f"{what}."]
    if "radius at twice" not in hidden:
        shown.append(
            "Radius at twice: the same for twice epsilon."
            if shown
            else f"Radius at twice: how wrong the prior may be (total variation) before the loss "
            f"passes twice epsilon{'; epsilon itself: 0' if zero else ''}."
        )
    return [" ".join(shown)] if shown else []


def check_shown(results: "Sequence[Result]", form: str) -> None:
    """Check that --show-channel has something to show, and that a table can show it.

    Raises
    ------
    InputError
        If there is no channel, or one is too large for a table, or the output is CSV.
    """
    if form == "csv":
        raise InputError("--show-channel is for --format table or json, but csv was asked for")
    found = [(r.epsilon, r.plan.channel) for r in results if r.plan.channel is not None]
    if not found:
        names = listed(dict.fromkeys(r.plan.mechanism for r in results))
        raise InputError(
            f"--show-channel is for the mechanism channel, but {names} is computed; ask for it "
            "with --mechanism channel"
        )
    for epsilon, channel in found if form == "table" else ():
        sizes = channel.inputs.size, channel.outputs.size
        if max(sizes) > MOST_SHOWN:
            raise InputError(
                f"--show-channel prints at most {MOST_SHOWN} values and {MOST_SHOWN} outputs, but "
                f"the channel at epsilon {epsilon} has {sizes[0]} and {sizes[1]}; use --format json"
            )


def print_channels(console: "Console", results: "Sequence[Result]") -> None:
    """Print every channel as a table: a line for each value, a column for each output."""
    for result in results:
        channel = result.plan.channel
        if channel is None:
            continue
        said = f"Channel at epsilon {result.epsilon}: for each value the chance of each output."
        console.print()
        print_lines(console, [said])
        names = [one_line(channel.outputs.name(y)) for y in range(channel.outputs.size)]
        table = make_table([("value", "left"), *((name, "right") for name in names)])
        rows = zip(channel.rows.tolist(), channel.denominators, strict=True)
        for x, (row, whole) in enumerate(rows):
            table.add_row(one_line(channel.inputs.name(x)), *(_chance(m, whole) for m in row))
        print_table(console, table)


def _chance(part: int, whole: int) -> str:
    """Return a chance with four digits; none that is not 0 or 1 is printed as if it were."""
    if part in (0, whole):
        return "0" if part == 0 else "1"
    value = part / whole
    return "<0.0001" if value < 1e-4 else ">0.9999" if value > 0.9999 else f"{value:.4f}"


def notices(results: "Sequence[Result]") -> list[str]:
    """Return what is said of every column that is published as it is, or nearly so."""
    lines = []
    for result in results:
        plan = result.plan
        at = f"at epsilon {result.epsilon} the {plan.mechanism}"
        often = nearly_unchanged(plan.applied, plan.keep_rate)
        constant = "" if plan.channel is None else constant_words(plan.channel)
        if constant:
            lines.append(
                f"{at} publishes {constant} in every row, so that nothing of the column is left; "
                "a larger epsilon keeps more"
            )
        elif plan.unchanged and plan.noise is None:
            lines.append(
                f"{at} changes nothing: {UNCHANGED}, which keeps within epsilon; release needs "
                "--allow-unchanged"
            )
        elif plan.unchanged:
            lines.append(
                f"{at} scale is 0: {UNCHANGED}, which keeps within epsilon; release needs "
                "--allow-unchanged or --min-scale"
            )
        elif often and plan.noise is None:
            lines.append(f"{at} would publish {often} of the values as they are")
        elif often:
            lines.append(
                f"{at} noise is 0 for {often} of the values, which would be published as they are"
            )
    return lines
