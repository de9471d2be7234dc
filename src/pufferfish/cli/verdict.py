# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: a plan for each epsilon and mechanism, its table and the verdict."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pufferfish.cli import describe
from pufferfish.cli.output import at_most, brief, print_lines, print_table, share
from pufferfish.errors import listed, quoted
from pufferfish.estimate.matrix import Expected
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import rounded_up
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels

#: Noise of so many times the column's spread leaves nothing of it: fewer than 4 % of the variance
#: of a released value is the column's own.
_NOTHING = 5.0
#: From this share of untouched values on the column is called nearly unchanged.
_NEARLY = 0.95
_HEADERS = ("\nepsilon", "\nmechanism", "scale, or kept\n(by a constant)", "noise /\nspread",
            "error of\nthe mean", "error of\na share", "below\nwasserstein")  # fmt: skip
_RADIUS = ("robustness radius: how wrong the prior may be (total variation) before the loss passes "
           "epsilon; cost: what the channel minimises")  # fmt: skip
#: What programs are told of a plan, and of its result.
_OF_PLAN = ("epsilon", "mechanism", "scale", "loss", "mse", "unchanged", "cost", "keep_rate")
_OF_RESULT = ("reduction_vs_wasserstein", "reduction_vs_l1", "keep_rate_of_a_constant", "survives",
              "loss_at_95")  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One line of the comparison.

    Attributes
    ----------
    epsilon : str
        As the user wrote it.
    plan : Plan
        The calibrated mechanism, with its sensitivity where it has one.
    expected : Expected
        The errors to expect of a release.
    reduction_vs_wasserstein, reduction_vs_l1 : float or None
        By how many per cent the scale is below theirs; None where that means nothing.
    """

    epsilon: str
    plan: Plan
    expected: Expected
    reduction_vs_wasserstein: float | None
    reduction_vs_l1: float | None

    @property
    def loss_at_95(self) -> float | None:
        """The largest loss that the rows allow at 95 %; None for regions and several releases."""
        risk = self.plan.sensitivity
        if risk is None or self.plan.regions or self.plan.composition is not None:
            return None
        return risk.loss_at_95

    @property
    def survives(self) -> bool:
        """Whether a released value tells anything of its own row."""
        plan, ratio = self.plan, self.expected.noise_to_spread
        if plan.channel is None:
            return ratio is None or ratio < _NOTHING or self.expected.spread == 0
        if len(describe.used_outputs(plan.channel)) == 1:
            return plan.support.size == 1
        # One constant for everybody, the mean, has an error of the spread.
        kept = plan.keep_rate
        return (
            kept is None
            or kept >= self.keep_rate_of_a_constant - 1e-9
            or (ratio is not None and ratio < 1)
        )

    @property
    def untouched(self) -> float:
        """The share of values that are published as they are."""
        noise = self.plan.applied
        if isinstance(noise, DiscreteLaplace):  # P(noise = 0); theory, section 1
            return math.tanh(float(noise.step) / noise.scale / 2) if noise.scale else 1.0
        return self.plan.keep_rate or 0.0

    @property
    def keep_rate_of_a_constant(self) -> float:
        """The share of rows that one constant for everybody keeps."""
        found = self.plan.distortion
        return self.expected.constant if found is None else found.baseline

    def to_dict(self, channel: bool = False) -> dict[str, Any]:
        """Return what programs are told, with ``channel`` also the channel itself."""
        plan, expected = self.plan, self.expected
        # A radius is about the loss of this release, and epsilon here about that of several.
        risk = plan.sensitivity if plan.composition is None else None
        data = {name: getattr(plan, name) for name in _OF_PLAN}
        data |= {name: getattr(self, name) for name in _OF_RESULT}
        if channel and plan.channel is not None:
            data["channel"] = _channel_to_dict(plan.channel)
        return data | {
            "std": getattr(plan.applied, "std", None),  # a channel has none
            "certified": plan.certificate.holds,
            "certified_by": plan.certificate.method,
            "spread": expected.spread,
            "noise_to_spread": expected.noise_to_spread,
            "error_of_mean": expected.mean_error,
            "error_of_share": expected.share_error,
            "robustness_radius": risk and risk.radius,
            "robustness_radius_at_double": risk and risk.radius_at_double,
            "robust": bool(plan.regions),
            "repair": plan.distortion and plan.distortion.gap,
        }


def _channel_to_dict(channel: Channel) -> dict[str, Any]:
    ends = {"inputs": channel.inputs, "outputs": channel.outputs}
    names = {end: s.names if isinstance(s, Levels) else s.values for end, s in ends.items()}
    return {**names, "rows": channel.matrix.tolist()}


def print_results(results: Sequence[Result], channels: bool, explain: bool) -> None:
    """Print the table: how strong each mechanism is, and how good a release will be."""
    one = len({r.epsilon for r in results}) == 1
    rows = []
    for r in results:
        plan, expected, below = r.plan, r.expected, r.reduction_vs_wasserstein
        size = f"{share(plan.keep_rate)} ({share(r.keep_rate_of_a_constant)})"
        if plan.scale is not None:
            size = rounded_up(plan.scale, 8)
        numbers = (expected.noise_to_spread, expected.mean_error, expected.share_error)
        saved = "-" if below is None else f"{below:.1f} %"
        rows.append([r.epsilon, plan.mechanism, size, *map(brief, numbers), saved][one:])
    print_table(_HEADERS[one:], rows, [1 - one])
    for r in results:
        if channels and r.plan.channel is not None:
            print_lines(["", f"channel at epsilon {r.epsilon}: chance of each output by value"])
            _print_channel(r.plan.channel)
    if explain:
        for r in results:
            print_lines(["", *_details(r)], True)
        print_lines(["", _RADIUS], True)


def _print_channel(channel: Channel) -> None:
    """Print a channel: a line for each value, a column for each output."""
    rows = [
        # No chance that is not 0 or 1 is printed as if it were.
        [channel.inputs.name(x), *(brief(min(p, 0.9999) if p < 1 else p, 4) for p in chances)]
        for x, chances in enumerate(channel.matrix.tolist())
    ]
    print_table(["value", *map(channel.outputs.name, range(channel.outputs.size))], rows, [0])


def _details(result: Result) -> list[str]:
    """Return what else is known of a result, for --explain."""
    plan, told = result.plan, result.to_dict()
    known = [
        f"{name.replace('_', ' ')} {at_most(told[name], plan.epsilon_exact, digits)}"
        for name, digits in (("loss", 8), ("loss_at_95", 5), ("mse", 5), ("std", 5), ("cost", 5))
        if told[name] is not None
    ]
    known += [
        f"{name.replace('_', ' ')} {math.floor(1e5 * told[name]) / 1e5:g}"
        for name in ("robustness_radius", "robustness_radius_at_double")
        if told[name] is not None
    ]
    head = f"{plan.mechanism} at {result.epsilon}: {', '.join(known)}"
    return [head, *describe.plan_lines(plan)]


def verdict_lines(results: Sequence[Result], scenario: Scenario, command: str) -> list[str]:
    """Return the verdict on results of ``calibrate``, in plain words."""
    return [
        _proved(results, scenario),
        *_if_a_sample(results, command, scenario.unit),
        *_never_published(results),
        *(survival_lines(results) or [_why_survives(r) for r in results if len(results) == 1]),
        *([describe.PRIVATE] if any(r.plan.from_rows for r in results) else []),
        describe.NO_SUM,
    ]


def _proved(results: Sequence[Result], scenario: Scenario) -> str:
    """Return what was proved, and on which condition."""
    failed = [r.plan.mechanism for r in results if not r.plan.certificate.holds]
    if failed:
        return f"NOT PROVED: {listed(dict.fromkeys(failed))} may exceed epsilon."
    every = "each is" if len(results) > 1 else "the loss is"
    said = f"Proved: {every} within epsilon {listed(dict.fromkeys(r.epsilon for r in results))}"
    report, region = scenario.priors[0].report, describe.region_words(scenario.rules)
    if region:
        return f"{said} for every prior within {region}."
    if report is not None:
        return f"{said}, if these {report.rows_used} rows are all there is."
    return f"{said}, if the given prior is the true one."


def _if_a_sample(results: Sequence[Result], command: str, unit: str | None) -> list[str]:
    """Return what the results may cost if the rows are a sample, and the command that holds."""
    if unit is not None:
        return [
            "If they are a sample it may cost more; for rows of one person nobody knows how much."
        ]
    known = [(r.loss_at_95, r) for r in results if r.loss_at_95 is not None]
    over = [(loss, r) for loss, r in known if loss > r.plan.epsilon]
    if not over:
        return ["If they are a sample it holds too, at 95 % confidence."] * bool(known)
    each = [
        f"{rounded_up(loss, 3)} ({_named([worst], results)})"
        for _, group in groupby(over, key=lambda pair: pair[1].epsilon)
        for loss, worst in [max(group, key=lambda pair: pair[0])]
    ]
    infinite = any(loss == math.inf for loss, _ in over)
    why = " (inf: too few rows show that an output occurs for every secret)" if infinite else ""
    held = [r for loss, r in known if loss <= r.plan.epsilon]
    others = f", and {_named(held, results)} {'holds' if len(held) == 1 else 'hold'}" * bool(held)
    said = f"If they are a sample it may cost {describe.joined(each, 4)} at 95 %{why}{others}"
    if not command:
        return [f"{said}."]
    return [f"{said}; what holds then too, if no other value can occur:", f"  {command}"]


def _never_published(results: Sequence[Result]) -> list[str]:
    """Return which values the channels never publish, so that nobody can estimate them."""
    lines = []
    for result in results:
        channel = result.plan.channel
        if channel is None or result.plan.unchanged:
            continue
        lost = describe.never_published(channel)
        if lost:
            which = _named([result], results)
            lines.append(f"Never published by {which}: {listed(lost)} (--min-keep prevents it).")
    return lines[:3]


def survival_lines(results: Sequence[Result]) -> list[str]:
    """Return where nothing of the column is left, and where it is published as it is."""
    lost = [r for r in results if not r.survives]
    if len(lost) == len(results):
        least = min(lost, key=lambda r: r.expected.noise_to_spread or 0.0)
        return [f"NOTHING OF THE COLUMN IS LEFT: {_why_lost(least)}. A larger epsilon keeps more."]
    same = [r for r in results if r.plan.unchanged]
    noise = " or --min-scale" if any(r.plan.channel is None for r in same) else ""
    nearly = [r for r in results if not r.plan.unchanged and r.untouched > _NEARLY]
    lines = (
        (lost, "Nothing of the column is left with {}."),
        (same, f"PUBLISHED UNCHANGED with {{}}: release needs --allow-unchanged{noise}."),
        (
            nearly,
            f"More than {100 * _NEARLY:.0f} % of the values are published as they are with {{}}.",
        ),
    )
    return [line.format(_named(which, results)) for which, line in lines if which]


def _named(which: Iterable[Result], results: Sequence[Result]) -> str:
    several = len({r.epsilon for r in results}) > 1
    return listed(f"{r.plan.mechanism}{f' at {r.epsilon}' * several}" for r in which)


def _why_lost(result: Result) -> str:
    """Return why nothing of a column is left."""
    plan = result.plan
    if plan.channel is None:
        return f"the noise is {brief(result.expected.noise_to_spread, 2)} times its spread"
    first, *others = describe.used_outputs(plan.channel)
    if not others:
        return f"every row becomes {quoted(plan.channel.outputs.name(first))}"
    kept, constant = share(plan.keep_rate), share(result.keep_rate_of_a_constant)
    return f"it keeps {kept} of the rows, and one constant for everybody would keep {constant}"


def _why_survives(result: Result) -> str:
    """Return how much of a column is left."""
    plan, expected = result.plan, result.expected
    if plan.keep_rate is not None:
        words = f"{share(plan.keep_rate)} of the rows stay as they are"
        return (
            f"The column survives: {words} (one constant: {share(result.keep_rate_of_a_constant)})."
        )
    ratio = expected.noise_to_spread or 0.0
    words = f"the noise is {brief(ratio, 2)} times its spread"
    if ratio < 1:
        return f"The column survives: {words}."
    mean = brief(expected.mean_error, 2)
    left = f"; what is left is their mean, to about {mean}" if expected.mean_error else ""
    return f"Single values drown, {words}{left}."
