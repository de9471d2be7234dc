# SPDX-License-Identifier: Apache-2.0
"""Compare: results of several mechanisms at several epsilons, and the table of all.

A result is a plan with what is to be expected of a release by it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.channel_task import read_weights
from pufferfish.calibration.registry import (
    NOISE,
    applicable,
    check_applies,
    default_for,
    method_named,
    purpose,
)
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError, PufferfishError, html_table, listed
from pufferfish.estimate.matrix import Expected, expected_errors
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import FloatArray, Number, parse_epsilon, rounded_up, show
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import Sensitivity
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.report import brief, share
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
_HEADS = [" ".join(head.split()) for head in HEADERS]


@dataclass(frozen=True, eq=False)
class Result:
    """One line of the comparison: a plan, its name there, and its epsilon as the user wrote it.

    ``distance`` is the scale of wasserstein times epsilon, where this mechanism can be compared
    with it; ``released`` are the rows of a release where they are not those of the scenario.
    """

    plan: Plan
    scenario: Scenario
    name: str
    epsilon: str
    distance: Fraction | None = None
    released: int | None = None

    @property
    def rows(self) -> int:
        """The rows of a release; 0 where they are not known."""
        if self.released is not None:
            return self.released
        noisy, report = self.scenario.noisy, self.scenario.priors[0].report
        return noisy.rows if noisy else report.rows_used if report else 0

    @property
    def joint(self) -> bool:
        """Whether epsilon is for everything charged together with this release."""
        limit = parse_epsilon(self.epsilon)
        return self.plan.composition is not None or self.plan.epsilon_exact != limit

    @cached_property
    def risk(self) -> Sensitivity | None:
        """What errors of the prior would do, where that is known and not private."""
        if self.joint or self.scenario.noisy is not None:
            return None
        return self.plan.with_sensitivity(self.scenario).sensitivity

    @property
    def frequencies(self) -> FloatArray:
        """How frequent the values are."""
        return frequencies_of(self.scenario)

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
        return None if self.risk is None or self.plan.regions else self.risk.loss_at_95

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
        if self.joint or not self.distance or scale is None:
            return None
        saved = 100 - 100 * Fraction(scale) * self.plan.epsilon_exact / self.distance
        # The last bit of a scale that was rounded up is no reduction, and no increase either.
        return round(float(saved), 10) + 0.0

    def to_dict(self, channel: bool = False) -> dict[str, Any]:
        """Return what programs are told, with ``channel`` also the channel itself."""
        plan, expected, risk = self.plan, self.expected, self.risk
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


@lru_cache(1)
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


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Plans side by side; it prints, and shows in notebooks, as a table.

    Attributes
    ----------
    results : tuple of Result
        A line each: ``plan``, ``epsilon`` and ``expected``, the errors of a release.
    left_out : dict of str to str
        Why a mechanism has no line.
    """

    results: tuple[Result, ...]
    left_out: Mapping[str, str]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of all lines, for instance for :func:`pufferfish.plots.noise`."""
        return tuple(result.plan for result in self.results)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return what is known of each line, by the names of ``calibrate --format json``."""
        return [result.to_dict() for result in self.results]

    def to_arrow(self) -> Any:
        """Return these lines as a ``pyarrow.Table``."""
        import pyarrow as pa  # slow to import

        return pa.Table.from_pylist(self.to_dicts())

    def to_pandas(self) -> Any:
        """Return these lines as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        table = [_HEADS, *lines_of(self.results)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(map(str.rjust, row, widths)).rstrip() for row in table)
        return "\n".join([*lines, *(f"left out: {why}" for why in self.left_out.values())])

    def _repr_html_(self) -> str:
        return html_table("Mechanisms compared", _HEADS, lines_of(self.results))


def compare(
    scenario: Scenario | Prior, epsilons: Number | Iterable[Number],
    mechanisms: str | Sequence[str] = "all", **options: Any,
) -> Comparison:  # fmt: skip
    """Calibrate several mechanisms at several epsilons, and return the table of all.

    Parameters
    ----------
    scenario : Scenario or Prior
        As for :func:`pufferfish.calibrate`.
    epsilons : number, or iterable of them
    mechanisms : "all", name or sequence of names
        ``all``: every one that applies, and a channel for values and one for estimates.
    **options
        Of the channel, as for :func:`pufferfish.calibrate`.
    """
    known = as_scenario(scenario)
    limits = limits_of(epsilons)
    names = [mechanisms] if isinstance(mechanisms, str) else list(mechanisms)
    if not limits or not names:
        raise InputError("compare needs at least one epsilon and one mechanism")
    asked = {k: v for k, v in options.items() if v is not None and v is not False}
    wanted, reasons = what_to_calibrate(known, names, asked)
    results, failed = results_of(known, limits, wanted, "all" in names)
    return Comparison(tuple(results), {**reasons, **{k: str(v) for k, v in failed.items()}})


def limits_of(epsilons: Number | Iterable[Number]) -> list[str]:
    """Return one epsilon or several as exact texts."""
    one = isinstance(epsilons, str) or not isinstance(epsilons, Iterable)
    given: Any = [epsilons] if one else epsilons
    return [show(parse_epsilon(each)) for each in given]


def what_to_calibrate(
    scenario: Scenario, names: Sequence[str], asked: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the arguments of ``calibrate`` by name, and why 'all' leaves out other mechanisms.

    'all' means a channel that keeps values, and another; ``asked`` are the options of channels.
    """
    methods = [method_named(name) for name in names if name != "all"]
    for method in methods:
        check_applies(method, scenario)
    by_all, ordered, left_out = "all" in names, scenario.support.ordered, dict[str, str]()
    best = purpose(ordered, asked)
    purposes = [best]
    mechanisms = tuple(own.name for own in methods) or (default_for(scenario, asked),)
    if by_all:
        mechanisms, left_out = applicable(scenario)
        estimates = "both" if ordered else "frequencies"
        purposes = ["kept", estimates if best == "kept" else best]
    if asked and "channel" not in mechanisms:
        named = listed(f"{name} (--{name.replace('_', '-')})" for name in asked)
        words = f"{named}: for the channel (--mechanism channel)"
        raise InputError(f"{words}, but {listed(mechanisms)} is computed")
    found: dict[str, dict[str, Any]] = {}
    for name in mechanisms:
        if name in NOISE:
            found[name] = {"mechanism": name}
        for best in () if name in NOISE else purposes:
            called = f"{name} ({best if isinstance(best, str) else 'own statistics'})"
            found[called] = {"mechanism": name, **asked, "best_for": best}
    if not found:  # levels without an order, and many of them
        raise InputError(f"'all' computes nothing here; of the channel {left_out['channel']}")
    return found, left_out


def results_of(
    scenario: Scenario, epsilons: Sequence[str], wanted: Mapping[str, Mapping[str, Any]],
    by_all: bool, method: Callable[..., Plan] = calibrate,
    check: Callable[[], object] = lambda: None,
) -> tuple[list[Result], dict[str, PufferfishError]]:  # fmt: skip
    """Calibrate for every epsilon what is ``wanted``; 'all' leaves out what fails, and why.

    ``check`` is called before each, and may raise.
    """
    results: list[Result] = []
    failed: dict[str, PufferfishError] = {}
    distance = None
    if not (scenario.has_region or scenario.unit) and wanted.keys() & {*NOISE}:
        # The scale is a distance over epsilon: epsilon 1 gives the distance.
        distance = Fraction(wasserstein(scenario, Fraction(1)).scale)
    for epsilon in epsilons:
        for name, arguments in wanted.items():
            check()
            label = f"{name} at {epsilon}" if len(epsilons) > 1 else name
            try:
                plan = method(scenario, epsilon, **arguments)
            except PufferfishError as error:
                if not by_all:
                    raise
                failed[label] = error
                continue
            results.append(Result(plan, scenario, label, epsilon, distance))
    if failed and not results:
        raise next(iter(failed.values()))
    return results, failed
