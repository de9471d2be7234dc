# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: a plan, and what is to be expected of a release by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pufferfish.calibration.channel_task import read_weights
from pufferfish.estimate.matrix import Expected, expected_errors
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import FloatArray, parse_epsilon, rounded_up, show
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario
from pufferfish.report.digits import brief, share
from pufferfish.support import Levels

#: Averages survive an error below this share of the spread; where the number of rows is not known,
#: noise below so many times the spread.
_CLOSE = 0.2
_NOISY = 5.0
HEADERS = ("\nepsilon", "\nmechanism", "scale, or kept\n(by a constant)", "noise /\nspread",
            "error,\nmean", "error,\nshare", "below\nwasserst.")  # fmt: skip
#: What programs are told of a plan.
_OF_PLAN = ("epsilon", "mechanism", "scale", "loss", "mse", "unchanged", "cost", "keep_rate",
            "objective", "objective_bound")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Result:
    """One line of the comparison: a plan for an epsilon, as the user wrote it, and its name there.

    It releases so many ``rows`` (0: not known) of values of these ``frequencies``; ``distance`` is
    the scale of wasserstein times epsilon, where this mechanism can be compared with it. ``joint``:
    epsilon is for everything charged together with this release.
    """

    name: str
    epsilon: str
    plan: Plan
    rows: int
    frequencies: FloatArray
    distance: Fraction | None
    joint: bool

    @classmethod
    def of(
        cls, plan: Plan, scenario: Scenario, frequencies: FloatArray, name: str = "",
        epsilon: str = "", distance: Fraction | None = None,
    ) -> "Result":  # fmt: skip
        """Return the result of a plan for a scenario; what errors of the prior do is found out."""
        epsilon = epsilon or show(plan.epsilon_exact)
        joint = plan.composition is not None or plan.epsilon_exact != parse_epsilon(epsilon)
        if not joint and scenario.noisy is None and plan.sensitivity is None:
            plan = plan.with_sensitivity(scenario)
        counted = scenario.priors[0].report
        rows = scenario.noisy.rows if scenario.noisy else counted.rows_used if counted else 0
        own = None if joint else distance
        return cls(name or plan.mechanism, epsilon, plan, rows, frequencies, own, joint)

    @cached_property
    def expected(self) -> Expected:
        """The errors to expect of a release."""
        plan = self.plan
        return expected_errors(
            plan.support, plan.applied, self.frequencies, self.rows, plan.labels, plan.weights
        )

    @property
    def loss_at_95(self) -> float | None:
        """The largest loss that the rows allow at 95 %; None where there is a region."""
        risk = self.plan.sensitivity
        return None if risk is None or self.plan.regions else risk.loss_at_95

    @property
    def gone(self) -> list[int]:
        """The values that are outputs, or labels of them, and that a channel never publishes."""
        channel = self.plan.label_channel
        if channel is None:
            return []
        used = channel.rows.T.tolist()
        return [x for x, y in enumerate(channel.same) if y is not None and not any(used[y])]

    @property
    def left(self) -> str:
        """What a release leaves of the column: its "values", only its "averages", or ""."""
        plan, found, p = self.plan, self.expected, self.frequencies
        ratio = np.inf if found.noise_to_spread is None else found.noise_to_spread
        # One constant for everybody, the mean, has an error of the spread.
        near = ratio < 1 or (plan.keep_rate or 0) > found.constant + 1e-9
        near = near and p[self.gone].sum() <= 0.5
        error, spread = found.mean_error, found.spread
        if spread is None:
            error, spread = found.share_error, np.sqrt((p * (1 - p)).mean())
        close = error is not None and error < _CLOSE * spread
        if plan.unchanged or (near and (plan.objective is None or plan.labels is not None)):
            return "values"
        if error is None:  # a channel that merges levels, or an unknown number of rows
            unknown = plan.objective is not None and not self.rows
            close = unknown if plan.channel is not None else ratio < _NOISY
        return "averages" if close else ""

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
        of_channel, kept = plan.distortion, plan.objective is None
        data = {name: getattr(plan, name) for name in _OF_PLAN}
        if channel and plan.channel is not None:
            data["channel"] = _channel_to_dict(plan.channel)
            data["labels"] = plan.labels and _channel_to_dict(plan.labels)
        return data | {
            "best_for": of_channel and ("kept" if kept else of_channel.cost_name),
            "std": getattr(plan.applied, "std", None),  # a channel has none
            "certified": plan.certificate.holds,
            "certified_by": plan.certificate.method,
            "reduction_vs_wasserstein": self.reduction_vs_wasserstein,
            "keep_rate_of_a_constant": expected.constant,
            "survives": bool(self.left),
            "loss_at_95": self.loss_at_95,
            "spread": expected.spread,
            "noise_to_spread": expected.noise_to_spread,
            "error_of_mean": expected.mean_error,
            "error_of_share": expected.share_error,
            "error_of_cdf": expected.cdf_error,
            "robustness_radius": risk and risk.radius,
            "robustness_radius_at_double": risk and risk.radius_at_double,
            "robust": bool(plan.regions),
            "repair": of_channel and of_channel.gap,
        }


def frequencies_of(scenario: Scenario) -> FloatArray:
    """Return how frequent the values of a scenario are; of many values that takes seconds."""
    weights = read_weights(scenario, None)
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def _channel_to_dict(channel: Channel) -> dict[str, Any]:
    ends = {"inputs": channel.inputs, "outputs": channel.outputs}
    names = {end: s.names if isinstance(s, Levels) else s.values for end, s in ends.items()}
    return {**names, "rows": channel.matrix.tolist()}


def lines_of(results: Sequence[Result]) -> list[list[str]]:
    """Return the cells of a table of results, below ``HEADERS``."""
    rows = []
    for r in results:
        plan, expected, below = r.plan, r.expected, r.reduction_vs_wasserstein
        size = f"{share(plan.keep_rate)} ({share(expected.constant)})"
        if plan.scale is not None:
            size = rounded_up(plan.scale, 8)
        numbers = (expected.noise_to_spread, expected.mean_error, expected.share_error)
        saved = "-" if below is None else f"{below:.1f} %"
        called = r.name.split(" at ")[0]
        rows.append([r.epsilon, called, size, *map(brief, numbers), saved])
    return rows
