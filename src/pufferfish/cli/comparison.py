# SPDX-License-Identifier: Apache-2.0
"""The comparison for people: a table with the columns that its results have, and what they mean."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pufferfish.cli.describe import (
    channel_words,
    constant_words,
    nearly_unchanged,
    never_published,
    proved_by,
    region_words,
)
from pufferfish.cli.digits import at_most, per_cent, rounded_up, share, short
from pufferfish.cli.output import fits, make_table, print_table

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
    return None if rate is None else share(rate).replace("more than ", ">")


_COLUMNS = (
    _Column("epsilon", lambda r: r.epsilon),
    _Column("mechanism", lambda r: r.plan.mechanism, "left"),
    _Column("scale", lambda r: None if r.plan.scale is None else rounded_up(r.plan.scale)),
    _Column("kept", lambda r: _kept(r)),
    _Column("cost", lambda r: None if r.plan.cost is None else rounded_up(r.plan.cost, 5), rank=4),
    _Column("loss", lambda r: at_most(r.plan.loss, r.plan.epsilon_exact)),
    _Column("loss at\n95 %", _loss_at_95, rank=1),
    _Column("std", lambda r: None if r.plan.std is None else short(r.plan.std), rank=5),
    _Column("mse", lambda r: None if r.plan.mse is None else short(r.plan.mse), rank=2),
    _Column("below\nwasserstein", lambda r: _reduction(r, 0), rank=3),
    _Column("below\nl1", lambda r: _reduction(r, 1), rank=6),
)


def print_results(
    console: "Console", scenario: "Scenario", results: "Sequence[Result]"
) -> tuple[str, ...]:
    """Print the table; return the names of the columns that a narrow terminal goes without."""
    columns = [c for c in _COLUMNS if any(c.cell(r) is not None for r in results)]
    if region_words(scenario):  # the loss itself is that of a region
        columns = [c for c in columns if c.cell is not _loss_at_95]
    hidden: list[_Column] = []
    table = _table(columns, results)
    for column in sorted((c for c in columns if c.rank), key=lambda c: -c.rank):
        if fits(console, table):
            break
        hidden.append(column)
        table = _table([c for c in columns if c not in hidden], results)
    print_table(console, table)
    return tuple(column.header.replace("\n", " ") for column in hidden)


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
    told = dict.fromkeys(channel_words(r.plan) for r in results if r.plan.distortion is not None)
    lines += [f"{words[:1].upper()}{words[1:]}." for words in told]
    lines += _on_the_outputs(results)
    if not region:
        lines += _on_the_95(results, "loss at 95 %" not in hidden)
    return lines + _on_the_radius(results)


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


def _on_the_95(results: "Sequence[Result]", shown: bool) -> list[str]:
    """Return what the loss at 95 % confidence is, and what an infinite one means."""
    found = [r for r in results if _loss_at_95(r) is not None]
    if not found:
        return []
    what = (
        "the loss if each group's true frequencies are as unlucky as its number of rows allows at "
        "95 % confidence"
    )
    if len(results) == 1:
        lines = [
            f"Loss at 95 %: {_loss_at_95(found[0])}, {what} (--confidence 0.95 calibrates for it)."
        ]
    elif shown:
        lines = [f"Loss at 95 %: {what} (--confidence 0.95 calibrates for it)."]
    else:
        lines = []
    if any(_loss_at_95(r) == "inf" for r in found):
        lines.append(
            "A loss of inf at 95 %: some output occurs for one secret, and the rows of another are "
            "too few to show that it occurs there as well; who sees it may be sure of the secret."
        )
    return lines


def _on_the_radius(results: "Sequence[Result]") -> list[str]:
    """Return how wrong the prior may be before a loss passes epsilon, and twice epsilon."""
    found = [
        (r, r.plan.sensitivity.radius, r.plan.sensitivity.radius_at_double)
        for r in results
        if r.plan.sensitivity is not None
    ]
    known = [(r, a, b) for r, a, b in found if a is not None and b is not None]
    if not known:
        return []
    what = "in total variation, the share of each group's rows that may be elsewhere"
    if len(known) > _A_LINE_EACH:
        once, twice = _span([a for _, a, _ in known]), _span([b for _, _, b in known])
        return [
            f"Robustness radius: the prior may be wrong by {once} before a loss passes epsilon, by "
            f"{twice} before one passes twice epsilon ({what}); --format json has each."
        ]
    if len(results) == 1:
        once, twice = (_radius(value) for value in known[0][1:])
        return [
            f"Robustness radius: the prior may be wrong by {once} before the loss passes epsilon, "
            f"by {twice} before it passes twice epsilon ({what})."
        ]
    each = (f"{r.plan.mechanism} at {r.epsilon} {_radius(a)} and {_radius(b)}" for r, a, b in known)
    return [
        f"Robustness radius, by which the prior may be wrong ({what}) before the loss passes "
        f"epsilon and twice epsilon: {'; '.join(each)}."
    ]


def _span(values: "Sequence[float]") -> str:
    least, most = _radius(min(values)), _radius(max(values))
    return least if least == most else f"{least} to {most}"


def _radius(value: float) -> str:
    """Return a radius with three decimals, cut off and not rounded: it promises no more."""
    thousandths = int(value * 1000)
    if thousandths == 0:
        return "0" if value < 1e-12 else "less than 0.001"
    return f"{thousandths / 1000:g}"


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
