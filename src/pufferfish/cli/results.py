# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: a plan for each epsilon and mechanism, and what is known of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.l1 import l1
from pufferfish.calibration.registry import NOISE
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.cli import signals
from pufferfish.errors import PufferfishError
from pufferfish.estimate.matrix import Expected, expected_errors
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario

#: Noise of so many times the column's spread leaves nothing of it: fewer than 4 % of the variance
#: of a released value is the column's own.
_NOTHING = 5.0


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
    below_wasserstein, below_l1 : float or None
        By how many per cent the scale is below theirs; None where that means nothing.
    """

    epsilon: str
    plan: Plan
    expected: Expected
    below_wasserstein: float | None = None
    below_l1: float | None = None

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
        ratio = self.expected.noise_to_spread
        if self.plan.channel is None:
            return ratio is None or ratio < _NOTHING or self.expected.spread == 0
        if len(used_outputs(self.plan)) == 1:
            return self.plan.support.size == 1
        # One constant for everybody, the mean, has an error of the spread.
        kept = self.plan.keep_rate
        return kept is None or kept >= self.constant - 1e-9 or (ratio is not None and ratio < 1)

    @property
    def untouched(self) -> float:
        """The share of values that are published as they are."""
        plan = self.plan
        if isinstance(plan.applied, DiscreteLaplace):
            rate = float(plan.applied.step) / plan.applied.scale if plan.applied.scale else math.inf
            return math.tanh(rate / 2)  # P(noise = 0); theory, section 1
        return plan.keep_rate or 0.0

    @property
    def constant(self) -> float:
        """The share of rows that one constant for everybody keeps."""
        found = self.plan.distortion
        return self.expected.constant if found is None else found.baseline


def used_outputs(plan: Plan) -> list[int]:
    """Return the outputs that a channel publishes at all."""
    if plan.channel is None:
        return []
    return [y for y, column in enumerate(plan.channel.rows.T.tolist()) if any(column)]


def rows_of(scenario: Scenario) -> int:
    """Return the rows of the table that the prior was counted from; 0 where there is none."""
    report = scenario.priors[0].report
    return 0 if report is None else report.rows_used


def compare(
    scenario: Scenario,
    epsilons: Sequence[str],
    names: Sequence[str],
    arguments: Mapping[str, Any],
    by_all: bool,
    *,
    method: Callable[..., Plan] = calibrate,
) -> tuple[list[Result], dict[str, str]]:
    """Calibrate every mechanism for every epsilon; return results, and why others cannot be had.

    One that only 'all' asked for and that fails does not hinder the others.
    """
    results: list[Result] = []
    failed: dict[str, PufferfishError] = {}
    weights, distances = frequencies(scenario), _distances(scenario, names)
    rows = rows_of(scenario)
    for epsilon in epsilons:
        for name in names:
            signals.check()
            options = {} if name in NOISE else arguments
            try:
                plan = method(scenario, epsilon, name, **options)
            except PufferfishError as error:
                if not by_all:
                    raise
                failed[f"{name} at {epsilon}"] = error
                continue
            plan = plan.with_sensitivity(scenario)
            expected = expected_errors(scenario.support, plan.applied, weights, rows)
            below = [_reduction(plan, distance) for distance in distances]
            results.append(Result(epsilon, plan, expected, *below))
    if not results:
        raise next(iter(failed.values()))
    return results, {what: str(error) for what, error in failed.items()}


def frequencies(scenario: Scenario) -> FloatArray:
    """Return how frequent the values are: pooled rows, or the mean of the distributions given."""
    total = np.zeros(scenario.support.size)
    for prior in scenario.priors:
        for secret in prior.secrets if prior.from_rows else scenario.protected:
            row = prior.row(secret)
            counts = np.asarray(prior.counts[row].astype(np.float64)).reshape(-1)
            total += counts if prior.from_rows else counts / counts.sum()
    return np.asarray(total / total.sum())


def _distances(scenario: Scenario, names: Sequence[str]) -> list[Fraction | None]:
    """Return what wasserstein and l1 divide by epsilon, or None where they do not apply."""
    noise = any(name in NOISE for name in names)
    if not noise or scenario.has_region or scenario.unit is not None:
        return [None, None]
    # Both scales are a distance over epsilon: epsilon 1 gives the distance.
    return [Fraction(f(scenario, Fraction(1)).scale) for f in (wasserstein, l1)]


def _reduction(plan: Plan, distance: Fraction | None) -> float | None:
    if plan.scale is None or not distance or not math.isfinite(plan.scale):
        return None
    saved = 1 - Fraction(plan.scale) * plan.epsilon_exact / distance
    # The last bit of a scale that was rounded up is no reduction, and no increase either.
    return float(100 * saved) if abs(saved) > Fraction(1, 10**12) else 0.0
