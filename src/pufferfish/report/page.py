# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file about a plan that explains itself and asks nothing of the network.

The private report is for the custodian. The public one holds what a public record may hold; of a
plan from noisy counts, which is public itself, it holds everything. Sections and their words stand
in page.html; here is what they say of this plan.
"""

import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, listed, listed_pairs, printable, quoted
from pufferfish.estimate.matrix import read_bins, solver_of
from pufferfish.files import ANY_NEW_FILE, PRIVATE, checked_target, write_whole
from pufferfish.numbers import show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import assumptions, not_covered
from pufferfish.plans.verify import CONFIDENCE, scenario_of_counts
from pufferfish.priors.ambiguity import TVBall
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.report import remake
from pufferfish.report.digits import at_most, brief, share
from pufferfish.report.results import Result, frequencies_of
from pufferfish.report.sentences import certificate_words, mechanism_words, verdict_lines
from pufferfish.support import Levels

_PACKAGES = ("pufferfish-privacy", "numpy", "python-flint", "highspy", "pyarrow", "matplotlib")
#: Bins whose errors are told.
_BINS = 5


def write_report(
    path: str | Path, plan: Plan, scenario: Scenario | Prior | None = None, *,
    public: bool = False, source: str = "TABLE", force: bool = False,
) -> None:  # fmt: skip
    """Write a report of a plan as one HTML file.

    Parameters
    ----------
    path : str or Path
        Where to; a private report is readable by its owner only (mode 0600).
    plan : Plan
        Verified again before it is reported, wherever that is possible.
    scenario : Scenario or Prior, optional
        What the plan was computed from; a private report needs it, a public one takes none.
    public : bool
        Leave out everything that depends on rows.
    source : str
        How the table is called in the command that makes the plan again.
    force : bool
        Whether an existing file may be replaced.
    """
    text = page(plan, scenario, public=public, source=source)
    mode = ANY_NEW_FILE if public else PRIVATE
    write_whole(path, text.encode("utf-8", "backslashreplace"), force=force, mode=mode)


def check_report(path: str, force: bool, others: Sequence[str | Path | None]) -> None:
    """Refuse, before anything is computed, a report that could not be written."""
    if not path.lower().endswith((".html", ".htm")):
        raise InputError(f"cannot write {path}: a report is HTML, and its name ends in .html")
    checked_target(path, force, others)


def page(
    plan: Plan, scenario: Scenario | Prior | None = None, *, public: bool = False,
    source: str = "TABLE",
) -> str:  # fmt: skip
    """Return the text of a report; parameters as for :func:`write_report`."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise InputError("reports need jinja2: pip install 'pufferfish-privacy[report]'") from error
    from pufferfish import plots
    from pufferfish.plots.losses import BELIEFS, moved

    if public and scenario is not None:
        raise InputError("a public report is of the plan alone: nothing of a table stands in it")
    if plan.noisy is not None:
        plan.verify()
        scenario = scenario_of_counts(plan)
    elif scenario is not None:
        scenario = as_scenario(scenario, plan.pairs)
        plan.verify(scenario)
    elif not public:
        raise InputError("a report needs the TABLE or prior that the plan is from, or --public")
    result = None if scenario is None else Result.of(plan, scenario, frequencies_of(scenario))
    if result is None:  # all that may be known of the loss is its limit
        claim = replace(plan.certificate, loss=plan.epsilon, witness=None)
        plan = replace(plan, certificate=claim)
    environment = Environment(autoescape=True, finalize=_visible, undefined=StrictUndefined)
    written = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    told = {} if result is None or scenario is None else _told(result, scenario, source)
    ends = [(belief, *moved(belief, plan.loss)) for belief in BELIEFS]
    text: str = environment.from_string(written).render(
        **told, plan=plan, scenario=scenario, public=public or plan.noisy is not None,
        column="the released column" if plan.coding is None else quoted(plan.coding.column),
        secret="the secret" if plan.secret is None else quoted(plan.secret),
        pairs="the pairs " + listed_pairs(plan.pairs) if plan.pairs[1:] else listed(plan.pairs[0]),
        known=_known(plan), beliefs=[[f"{100 * each:.3g} %" for each in row] for row in ends],
        times=brief(math.exp(min(plan.epsilon, 700))), epsilon=show_short(plan.epsilon_exact),
        assumptions=assumptions(plan, plan.noisy is not None),
        limits=not_covered(plan, plan.spec(allow_unchanged=True)), versions=_versions(),
        plots=plots,
    )  # fmt: skip
    return text


def _visible(value: Any) -> Any:
    """Return text as a page shows it: what does not print is escaped, and lines stay lines."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value


def _known(plan: Plan) -> str:
    """Return what the promise lets an attacker know."""
    if any(isinstance(rule, TVBall) for rule in plan.regions):
        return "any distribution of the column in the region of the plan"
    if plan.regions:
        return "the distributions that the rows were drawn from"
    return "how the column is distributed for each secret"


def _told(result: Result, scenario: Scenario, source: str) -> dict[str, Any]:
    """Return what is told where the prior may be known."""
    plan, spread = result.plan, result.expected.spread
    sure = replace(plan, regions=(CONFIDENCE,))
    if plan.channel is None:
        sure = replace(sure, mechanism="exact")
    table = source if plan.coding is not None else None
    command = remake.command(plan, table)
    # Values that no range names can be declared in Python alone.
    named = plan.noisy is None or isinstance(plan.support, Levels) or "--range" in command
    return {
        "verdict": [*verdict_lines([result], scenario, remake.command(sure, source)), *plan.notes],
        "happens": mechanism_words(plan.applied, plan.labels),
        "rows": result.rows, "errors": list(_errors(result)), "spread": spread and brief(spread),
        "kept": plan.keep_rate is not None and share(plan.keep_rate),
        "loss": at_most(plan.loss, plan.epsilon_exact), "limit": show(plan.epsilon_exact),
        "proof": certificate_words(plan.certificate),
        "command": command if named else None, "program": remake.program(plan, table),
    }  # fmt: skip


def _errors(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what errors those have to expect who use the released table."""
    found, support, bins = result.expected, result.plan.support, None
    if found.share_error is not None and support.ordered and support.size > _BINS:
        solve = solver_of(support, result.plan.applied, result.plan.weights)
        bins = solve.error(read_bins(support, _BINS), result.rows, result.frequencies)
    averages = (("single value (root mean square)", found.noise), ("mean", found.mean_error))
    shares = (("share of one value", found.share_error), (f"share of one of {_BINS} bins", bins),
              ("distribution function", found.cdf_error))  # fmt: skip
    yield from ((name, brief(error)) for name, error in averages if error is not None)
    for name, error in shares:
        if error is not None:
            yield name, brief(error) if error < 1 else "above 1: no estimate"


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
