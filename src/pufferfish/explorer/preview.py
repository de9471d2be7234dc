# SPDX-License-Identifier: Apache-2.0
"""Preview: what a choice of epsilon and confidence would give, also to simulated rows."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pufferfish import plots
from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import NOISE
from pufferfish.cli.options import scenario_of
from pufferfish.errors import InputError, PufferfishError
from pufferfish.estimate.matrix import read_bins
from pufferfish.explorer.pages import Form
from pufferfish.numbers import FloatArray, parse_epsilon, rounded_up
from pufferfish.plots.losses import moved
from pufferfish.priors.scenario import Scenario
from pufferfish.report.compare import what_to_calibrate
from pufferfish.report.results import Result, frequencies_of
from pufferfish.report.sentences import left_out_lines
from pufferfish.support import MISSING_LEVEL, Lattice
from pufferfish.tables.table import Table

#: Rows that are simulated, and of these shown; bins of an order that are drawn.
_ROWS, _SHOWN, _BINS = 1000, 8, 12
#: Results by mechanism (None: not yet known), and why others are left out.
Results = tuple[dict[str, Any], list[str]]


class Counted:
    """The scenario of a table under some options, counted once for all positions of sliders."""

    def __init__(self, table: Table, options: Mapping[str, Any]) -> None:
        self.scenario = scenario_of(table, options)
        self._results = lru_cache(8)(self._calibrated)

    @cached_property
    def _frequencies(self) -> FloatArray:
        return frequencies_of(self.scenario)

    @cached_property
    def distributions(self) -> str:
        """The picture of P(X|S)."""
        return _picture(plots.distributions(self.scenario), "prior")

    def results(self, form: Form, quick: bool = False) -> tuple[Results, str]:
        """Return what each mechanism would give, and the name of the one that is chosen.

        ``quick``: what takes longer than a slider moves is not calibrated.
        """
        epsilon, confidence = (form.get(name, "").strip() for name in ("epsilon", "confidence"))
        found = self._results(epsilon, confidence, quick)
        default = "exact" if self.scenario.support.ordered else "channel (frequencies)"
        return found, next(n for n in (form.get("mechanism"), default, *found[0]) if n in found[0])

    def _calibrated(self, epsilon: str, confidence: str, quick: bool) -> Results:
        scenario, report = self.scenario, self.scenario.priors[0].report
        if confidence:
            prior = scenario.priors[0].with_region(confidence=confidence)
            scenario = Scenario(prior, pairs=scenario.pairs)
        wanted, left_out = what_to_calibrate(scenario, ["all"], {})
        results: dict[str, Any] = dict.fromkeys(wanted)
        failed: dict[str, object] = {}
        for name, arguments in wanted.items():
            if quick and (confidence or name not in NOISE):
                continue
            try:
                plan = calibrate(scenario, epsilon, **arguments)
            except PufferfishError as error:
                failed[name] = error
                del results[name]
            else:
                rows = report.rows_used if report else 0
                results[name] = Result(name, epsilon, plan, rows, self._frequencies, None, False)
        lines = left_out_lines({**left_out, **failed})
        if not results:
            raise InputError("; ".join(lines))
        return results, lines

    def _chosen(self, form: Form) -> Any:
        (results, _), name = self.results(form)
        return results[name].plan

    def loss(self, form: Form) -> str:
        """Return the picture of the loss against noise; none of a channel."""
        plan = self._chosen(form)
        return "" if plan.scale is None else _picture(plots.loss(self.scenario, plan), "loss")

    def simulated(self, form: Form) -> tuple[list[tuple[str, str]], str]:
        """Return some simulated rows and what a release makes of them, and a picture of all.

        They are drawn from the frequencies of the values and released from a seed: what a release
        makes of the rows of the table is not foretold.
        """
        plan, shares = self._chosen(form), self._frequencies
        drawn = np.random.default_rng(0).choice(len(shares), _ROWS, p=shares)
        values = [plan.support.name(k) for k in drawn.tolist()]
        cells, coding = values, plan.coding
        if isinstance(plan.support, Lattice):
            cells = [cell.replace(".", coding.decimal) for cell in values]
        elif coding.missing_as_level:
            cells = ["" if cell == MISSING_LEVEL else cell for cell in values]
        sets = plan.labels is not None
        found = plan.release(cells, seed=1, allow_unchanged=True, sets=sets)
        released, told = found if sets else (found, found)
        original: dict[str, float] = dict(Counter(values))
        estimate = plan.estimate(told, bins=_BINS if plan.support.ordered else None)
        if estimate.bins:
            counts = np.bincount(drawn, minlength=len(shares)) @ read_bins(plan.support, _BINS)
            # Bins that cannot be estimated have no name.
            named = len(estimate.bins) == len(counts)
            original = dict(zip(estimate.bins, counts.tolist(), strict=True)) if named else {}
        drawable = estimate.bins or estimate.frequencies
        figure = plots.frequencies(estimate, original or None) if drawable else None
        rows = [(value, str(own)) for value, own in zip(values, released, strict=True)]
        return rows[:_SHOWN], _picture(figure, "rows") if figure else ""


def meaning(epsilon: str) -> list[str]:
    """Return what an epsilon means to whoever wants to know a secret."""
    loss = float(parse_epsilon(epsilon))
    lines = [
        f"Who is {100 * belief:.3g} % certain of one secret rather than another can become at "
        f"most {rounded_up(100 * moved(belief, loss)[1], 3)} % certain of it."
        for belief in (0.5, 0.9)
    ]
    return [*lines, *["Such an epsilon protects hardly anything."] * (loss > 5)]


def _picture(figure: Any, name: str) -> str:
    """Return a figure as an element of a page that allows no elements of style."""
    text = plots.svg(figure, figure.axes[0].get_title(loc="left").replace("\n", " "), name)
    before, _, rest = text.partition("<style")
    return before + rest.partition("</style>")[2] if rest else before
