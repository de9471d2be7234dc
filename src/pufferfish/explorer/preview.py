# SPDX-License-Identifier: Apache-2.0
"""Preview: what a choice of epsilon and confidence would give, also to simulated rows."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pufferfish import plots
from pufferfish.calibration.calibrate import calibrate
from pufferfish.cli.options import scenario_of
from pufferfish.errors import InputError, PufferfishError
from pufferfish.numbers import FloatArray, parse_epsilon
from pufferfish.plans.plan import Plan
from pufferfish.plots.losses import moved
from pufferfish.priors.scenario import Scenario
from pufferfish.report.compare import what_to_calibrate
from pufferfish.report.results import Result, frequencies_of
from pufferfish.report.sentences import left_out_lines
from pufferfish.support import MISSING_LEVEL
from pufferfish.tables.table import Table

#: Rows that are simulated, and of these shown.
_ROWS, _SHOWN = 1000, 8
_BELIEFS = (0.5, 0.9)


class Counted:
    """The scenario of a table under some options, counted once for all positions of sliders."""

    def __init__(self, table: Table, options: Mapping[str, Any]) -> None:
        self.scenario = scenario_of(table, options)
        self._last: tuple[Any, Any] = (None, None)

    @cached_property
    def frequencies(self) -> FloatArray:
        """How frequent the values are."""
        return frequencies_of(self.scenario)

    @cached_property
    def distributions(self) -> str:
        """The picture of P(X|S)."""
        return _picture(plots.distributions(self.scenario), "prior")

    def results(self, epsilon: str, confidence: str) -> tuple[dict[str, Result], list[str]]:
        """Return what each mechanism would give, by its name, and why others are left out."""
        if self._last[0] != (epsilon, confidence):
            self._last = (epsilon, confidence), self._results(epsilon, confidence)
        found: tuple[dict[str, Result], list[str]] = self._last[1]
        return found

    def _results(self, epsilon: str, confidence: str) -> tuple[dict[str, Result], list[str]]:
        scenario, report = self.scenario, self.scenario.priors[0].report
        if confidence:
            prior = scenario.priors[0].with_region(confidence=confidence)
            scenario = Scenario(prior, pairs=scenario.pairs)
        results, failed = dict[str, Result](), dict[str, object]()
        wanted, left_out = what_to_calibrate(scenario, ["all"], {})
        for name, arguments in wanted.items():
            try:
                plan = calibrate(scenario, epsilon, **arguments)
            except PufferfishError as error:
                failed[name] = error
            else:
                rows = report.rows_used if report else 0
                results[name] = Result(name, epsilon, plan, rows, self.frequencies, None, False)
        lines = left_out_lines({**left_out, **failed})
        if not results:
            raise InputError("; ".join(lines))
        return results, lines

    def chosen(self, results: Mapping[str, Result], name: str) -> str:
        """Return the mechanism that was chosen, where it applies, or the one to begin with."""
        default = "exact" if self.scenario.support.ordered else "channel (frequencies)"
        return next((each for each in (name, default) if each in results), next(iter(results)))

    def loss(self, plan: Plan) -> str:
        """Return the picture of the loss against noise; none of a channel."""
        return "" if plan.scale is None else _picture(plots.loss(self.scenario, plan), "loss")

    def simulated(self, plan: Plan) -> tuple[list[tuple[str, str]], str]:
        """Return some simulated rows and what a release makes of them, and a picture of all.

        They are drawn from the frequencies of the values and released from a seed: what a release
        makes of the rows of the table is not foretold.
        """
        shares, sets = self.frequencies, plan.labels is not None
        drawn = np.random.default_rng(0).choice(len(shares), _ROWS, p=shares)
        values = [plan.support.name(k) for k in drawn.tolist()]
        cells = ["" if value == MISSING_LEVEL else value for value in values]
        found = plan.release(cells, seed=1, allow_unchanged=True, sets=sets)
        released, told = found if sets else (found, found)
        rows = [(value, str(own)) for value, own in zip(values, released, strict=True)]
        original = {name: values.count(name) for name in dict.fromkeys(values)}
        return rows[:_SHOWN], _picture(plots.frequencies(plan.estimate(told), original), "rows")


def meaning(epsilon: str) -> list[str]:
    """Return what an epsilon means to whoever wants to know a secret."""
    loss = float(parse_epsilon(epsilon))
    return [
        f"Who is {100 * belief:.3g} % certain of a secret can become at most "
        f"{100 * moved(belief, loss)[1]:.3g} % certain of it."
        for belief in _BELIEFS
    ]


def _picture(figure: Any, name: str) -> str:
    """Return a figure as an element of a page that allows no elements of style."""
    text = plots.svg(figure, figure.axes[0].get_title(loc="left").replace("\n", " "), name)
    before, _, rest = text.partition("<style")
    return before + rest.partition("</style>")[2] if rest else before
