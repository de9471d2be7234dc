# SPDX-License-Identifier: Apache-2.0
"""Compare: plans of several mechanisms at several epsilons, and the table of all."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
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
from pufferfish.numbers import Number, parse_epsilon, show
from pufferfish.plans.plan import Plan
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.report.results import HEADERS, Result, frequencies_of, lines_of

_HEADS = [" ".join(head.split()) for head in HEADERS]


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
    frequencies, distance = frequencies_of(scenario), None
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
            results.append(Result.of(plan, scenario, frequencies, label, epsilon, distance))
    if not results:
        raise next(iter(failed.values()))
    return results, failed
