# SPDX-License-Identifier: Apache-2.0
"""Preview: what a form asks for, and what it would give, also to simulated rows.

A form cannot mean anything else than the command that its page shows: the command parses them.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pufferfish import plots
from pufferfish.calibration.registry import NOISE
from pufferfish.cli.calibrate import calibrate
from pufferfish.cli.options import scenario_of
from pufferfish.estimate.matrix import read_bins
from pufferfish.explorer.pages import Form
from pufferfish.numbers import parse_epsilon, rounded_up
from pufferfish.plots.figures import moved
from pufferfish.priors.scenario import Scenario
from pufferfish.report.compare import frequencies_of, results_of, what_to_calibrate
from pufferfish.report.remake import level_list
from pufferfish.report.sentences import left_out_lines
from pufferfish.support import MISSING_LEVEL, Lattice
from pufferfish.tables.table import Table

#: Rows that are simulated, and of these shown; bins of an order that are drawn.
_ROWS, _SHOWN, _BINS = 1000, 8, 12
#: Results by mechanism (None: not yet known), and why others are left out.
Results = tuple[dict[str, Any], list[str]]
#: Fields whose option has their name; those of the sliders, which decide nothing that is counted.
_COUNTED, _SLIDERS = ("secret", "public", "unit", "step", "decimal"), ("confidence", "epsilon")


def options_of(form: Form, counting: bool = False) -> list[str]:
    """Return the options that a form asks for; ``counting``: those that decide what is counted."""
    found: list[str] = []
    for name in _COUNTED if counting else (*_COUNTED, *_SLIDERS):
        value = form.get(name, "").strip()
        found += [f"--{name}", value] if value else []
    for text in _lines(form.get("missing", "")):
        found += ["--missing", text]
    found += ["--missing-as-level"] * ("missing-as-level" in form)
    for pair in form.getlist("pair"):
        found += ["--pair", *[*_lines(pair), "", ""][:2]]  # two words, whatever was sent
    levels, order = _lines(form.get("levels", "")), form.get("order", "")
    if order in ("alphabetical", "appearance"):
        found += ["--order", order]
    if levels and (order == "listed" or "declared" in form):
        found += ["--order" if order == "listed" else "--levels", level_list(levels)]
    ends = [form.get(name, "").strip() for name in ("least", "greatest")]
    found += ["--range", *ends] if any(ends) else []
    name, _, purpose = form.get("mechanism", "").partition(" (")
    if name and not counting:
        found += ["--mechanism", name, *(["--best-for", purpose.removesuffix(")")] * bool(purpose))]
    return [word.replace("\0", "") for word in found]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


class Counted:
    """The scenario of a table under some options, counted once for all positions of sliders."""

    def __init__(self, table: Table, options: Sequence[str]) -> None:
        given = calibrate.make_context("calibrate", ["TABLE", *options]).params
        self.scenario = scenario_of(table, given)
        self._results = lru_cache(8)(self._calibrated)

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
        scenario = self.scenario
        if confidence:
            prior = scenario.priors[0].with_region(confidence=confidence)
            scenario = Scenario(prior, pairs=scenario.pairs)
        wanted, left_out = what_to_calibrate(scenario, ["all"], {})
        now = {n: a for n, a in wanted.items() if not quick or (n in NOISE and not confidence)}
        found, failed = results_of(scenario, [epsilon], now, by_all=True)
        results = dict.fromkeys(name for name in wanted if name not in failed)
        return results | {r.name: r for r in found}, left_out_lines({**left_out, **failed})

    def simulated(self, form: Form) -> dict[str, Any]:
        """Return simulated rows and what a release makes of some, and pictures of all and the loss.

        They are drawn from the frequencies of the values and released from a seed: what a release
        makes of the rows of the table is not foretold.
        """
        (results, _), name = self.results(form)
        plan, shares = results[name].plan, frequencies_of(self.scenario)
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
        loss = None if plan.scale is None else plots.loss(self.scenario, plan)
        pictures = {"loss": _picture(loss, "loss"), "picture": _picture(figure, "rows")}
        return {"rows": rows[:_SHOWN], **pictures}


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
    """Return a figure as an element of a page, or nothing where there is none."""
    if figure is None:
        return ""
    return plots.svg(figure, figure.axes[0].get_title(loc="left").replace("\n", " "), name)
