# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: a plan for each epsilon and mechanism, and the table of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.cli.output import brief, print_lines, print_table, share
from pufferfish.estimate.matrix import Expected
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import rounded_up
from pufferfish.plans.plan import Plan
from pufferfish.support import Levels

#: Noise of so many times the column's spread leaves nothing of it: fewer than 4 % of the variance
#: of a released value is the column's own.
_NOTHING = 5.0
_HEADERS = ("\nepsilon", "\nmechanism", "scale, or kept\n(by a constant)", "noise /\nspread",
            "error of\nthe mean", "error of\na share", "below\nwasserstein")  # fmt: skip
#: What programs are told of a plan, and of its result.
_OF_PLAN = ("epsilon", "mechanism", "scale", "loss", "mse", "unchanged", "cost", "keep_rate")
_OF_RESULT = ("reduction_vs_wasserstein", "keep_rate_of_a_constant", "survives", "loss_at_95")


@dataclass(frozen=True)
class Result:
    """One line of the comparison: a plan for an epsilon, as the user wrote it, and its name there.

    ``expected`` are the errors to expect of a release; ``distance`` is the scale of wasserstein
    times epsilon, where this mechanism can be compared with it.
    """

    name: str
    epsilon: str
    plan: Plan
    expected: Expected
    distance: Fraction | None

    @property
    def loss_at_95(self) -> float | None:
        """The largest loss that the rows allow at 95 %; None where there is a region."""
        risk = self.plan.sensitivity
        return None if risk is None or self.plan.regions else risk.loss_at_95

    @property
    def survives(self) -> bool:
        """Whether a released value tells anything of its own row."""
        plan, ratio = self.plan, self.expected.noise_to_spread
        # One constant for everybody, the mean, has an error of the spread.
        most = _NOTHING if plan.channel is None else 1.0
        kept = plan.keep_rate or 0.0
        few_errors = ratio is not None and ratio < most
        return few_errors or plan.unchanged or kept > self.keep_rate_of_a_constant + 1e-9

    @property
    def keep_rate_of_a_constant(self) -> float:
        """The share of rows that one constant for everybody keeps."""
        found = self.plan.distortion
        return self.expected.constant if found is None else found.baseline

    @property
    def reduction_vs_wasserstein(self) -> float | None:
        """By how many per cent the scale is below that of wasserstein."""
        scale = self.plan.scale
        if not self.distance or scale is None:
            return None
        saved = 100 - 100 * Fraction(scale) * self.plan.epsilon_exact / self.distance
        # The last bit of a scale that was rounded up is no reduction, and no increase either.
        return round(float(saved), 10) + 0.0

    def to_dict(self, channel: bool = False) -> dict[str, Any]:
        """Return what programs are told, with ``channel`` also the channel itself."""
        plan, expected, risk = self.plan, self.expected, self.plan.sensitivity
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


def print_results(results: Sequence[Result], channels: bool) -> None:
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


def _print_channel(channel: Channel) -> None:
    """Print a channel: a line for each value, a column for each output."""
    rows = [
        # No chance that is not 0 or 1 is printed as if it were.
        [channel.inputs.name(x), *(brief(min(p, 0.9999) if p < 1 else p, 4) for p in chances)]
        for x, chances in enumerate(channel.matrix.tolist())
    ]
    print_table(["value", *map(channel.outputs.name, range(channel.outputs.size))], rows, [0])
