# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file about a plan that explains itself and asks nothing of the network.

The private report is for the custodian. The public one holds what a public record may hold; of a
plan from noisy counts, which is public itself, it holds everything.
"""

import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish.calibration.channel_options import read_weights
from pufferfish.errors import InputError, listed, listed_pairs, printable, quoted
from pufferfish.estimate.bins import read_bins
from pufferfish.estimate.matrix import Expected, solver_of
from pufferfish.files import ANY_NEW_FILE, PRIVATE, checked_target, write_whole
from pufferfish.numbers import show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import assumptions, not_covered
from pufferfish.plans.verify import scenario_of_counts
from pufferfish.priors.ambiguity import Confidence, TVBall
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.report import remake
from pufferfish.report.digits import at_most, brief, share
from pufferfish.report.results import Result
from pufferfish.report.sentences import certificate_words, mechanism_words, verdict_lines
from pufferfish.support import Levels

_PRIVATE = "PRIVATE. This report was made from the table: keep it with the table and the plan."
_PUBLIC = "PUBLIC. This report holds nothing that was computed from the table without noise."
_PACKAGES = ("pufferfish-privacy", "numpy", "python-flint", "highspy", "pyarrow", "matplotlib")
#: Bins whose errors are told.
_BINS = 5


@dataclass
class _Part:
    """A section of the page; what is empty is left out, and an indented text is a command."""

    id: str
    title: str
    texts: Sequence[str] = ()
    items: Sequence[str] = ()
    tables: Sequence[Any] = ()
    plots: Sequence[Any] = ()
    codes: Sequence[Any] = ()


@dataclass
class _Facts:
    """What a report is about."""

    plan: Plan
    scenario: Scenario | None
    rows: int
    source: str
    public: bool
    result: Result | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.scenario is not None:
            weights = np.array(read_weights(self.scenario, None), dtype=np.float64)
            epsilon = show(self.plan.epsilon_exact)
            joint = self.plan.composition is not None
            self.result = Result(
                self.plan.mechanism, epsilon, self.plan, self.rows, weights / weights.sum(), None,
                joint,
            )  # fmt: skip


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


def check_report(path: str, force: bool, others: Sequence[str | None]) -> None:
    """Refuse, before anything is computed, a report that could not be written."""
    if not path.lower().endswith((".html", ".htm")):
        raise InputError(f"cannot write {path}: a report is HTML, and its name ends in .html")
    checked_target(path, force, [each for each in others if each])


def page(
    plan: Plan, scenario: Scenario | Prior | None = None, *, public: bool = False,
    source: str = "TABLE",
) -> str:  # fmt: skip
    """Return the text of a report; parameters as for :func:`write_report`."""
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise InputError("reports need jinja2: pip install 'pufferfish-privacy[report]'") from error
    if public and scenario is not None:
        raise InputError("a public report is of the plan alone: nothing of a table stands in it")
    if plan.noisy is not None:
        plan.verify()
        scenario = scenario_of_counts(plan)
    elif scenario is not None:
        scenario = as_scenario(scenario, plan.pairs)
        plan.verify(scenario)
        if plan.sensitivity is None and plan.composition is None:
            plan = plan.with_sensitivity(scenario)
    elif not public:
        raise InputError("a report needs the TABLE or prior that the plan is from, or --public")
    rows = plan.noisy.rows if plan.noisy is not None else 0
    if scenario is not None and scenario.priors[0].report is not None:
        rows = scenario.priors[0].report.rows_used
    about = _Facts(plan, scenario, rows, source, public)
    environment = Environment(autoescape=True, finalize=_visible)
    template = environment.from_string(
        (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    )
    column, shown = _column(plan), public or plan.noisy is not None
    text: str = template.render(
        title=f"How {column} hides {_secret(plan)}", promise=_promise(plan), public=shown,
        notice=_PUBLIC if shown else _PRIVATE, parts=list(_parts(about)),
    )  # fmt: skip
    return text


def _visible(value: Any) -> Any:
    """Return text as a page shows it: what does not print is escaped, and lines stay lines."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value


def _column(plan: Plan) -> str:
    return "the released column" if plan.coding is None else quoted(plan.coding.column)


def _secret(plan: Plan) -> str:
    return "the secret" if plan.secret is None else quoted(plan.secret)


def _promise(plan: Plan) -> str:
    """Return in one sentence what is hidden, and from whom."""
    who = "person" if plan.unit else "row"
    times = brief(math.exp(min(plan.epsilon, 700)), 3)
    pairs = f"the pairs {listed_pairs(plan.pairs)}"
    if len(plan.pairs) == 1:
        pairs = f"{listed(plan.pairs[0])}"
    known = "how the column is distributed for each secret"
    if plan.regions:
        known = "the law that the rows were drawn from"
        if any(isinstance(rule, TVBall) for rule in plan.regions):
            known = "any distribution of the column in the region of the plan"
    return (
        f"Nobody who knows {known}, and nothing else of a {who}, learns from {_column(plan)} as it "
        f"is released which of two secrets ({_secret(plan)}: {pairs}) the {who} has: no output is "
        f"more than {times} times as likely with one as with the other (epsilon "
        f"{show_short(plan.epsilon_exact)})."
    )


def _parts(about: _Facts) -> Iterator[_Part]:
    plan, scenario, result = about.plan, about.scenario, about.result
    open_ = plan.noisy is not None
    if scenario is not None and result is not None:
        sure = replace(plan, regions=(Confidence(Fraction(19, 20)),))
        if plan.channel is None:
            sure = replace(sure, mechanism="exact")
        command = remake.command(sure, about.source)
        lines = verdict_lines([result], scenario, command)
        yield _Part("verdict", "The verdict", [*lines, *plan.notes])
    yield _Part("private", "Who may see what", items=list(_who(plan)))
    yield _belief(plan, open_ or not about.public)
    if scenario is not None:
        yield _mechanism(plan, scenario)
        if result is not None:
            yield _analyst(result)
    spec = plan.spec(allow_unchanged=True)
    yield _Part("assumptions", "What this assumes", items=assumptions(plan, open_))
    yield _Part("limits", "What is not covered", items=not_covered(plan, spec))
    if open_ or not about.public:
        yield _certificate(plan)
        yield _again(about)
    yield _Part("versions", "Versions", items=list(_versions()))


def _who(plan: Plan) -> Iterator[str]:
    """Yield who must keep what private."""
    if plan.noisy is not None:
        yield "Everybody may see the released table, the plan and this report."
        yield "The custodian keeps the table, and counts without noise, private."
        return
    yield "Everybody may see the released table, and the public record of the release."
    what = "rows of the table" if plan.from_rows else "prior"
    size = "the channel" if plan.channel else "the scale of the noise"
    yield (
        f"The custodian keeps the table, the plan, {size}, and every report that is not public: "
        f"they depend on the {what}."
    )


def _belief(plan: Plan, known: bool) -> _Part:
    from pufferfish.plots.losses import BELIEFS, belief, moved

    loss = plan.loss if known else plan.epsilon
    rows = [[f"{100 * b:g} %", *(f"{100 * end:.3g} %" for end in moved(b, loss))] for b in BELIEFS]
    table = _table("Belief in one secret of a pair rather than the other",
                   ["before", "least after", "most after"], rows)  # fmt: skip
    caption = "The bars are as long as the worst outputs can make them; most outputs tell less."
    figure = _plot(belief(plan) if known else belief_at(plan), caption, "belief")
    return _Part("belief", "What an attacker may come to believe", tables=[table], plots=[figure])


def belief_at(plan: Plan) -> Any:
    """Return the plot of beliefs that epsilon allows, whatever the loss is."""
    from pufferfish.plots.losses import belief

    claim = replace(plan.certificate, loss=plan.epsilon, witness=None)
    return belief(replace(plan, certificate=claim))


def _mechanism(plan: Plan, scenario: Scenario) -> _Part:
    from pufferfish import plots

    figures = [
        _plot(plots.distributions(scenario), "What links the column to the secret.", "prior")
    ]
    if plan.channel is not None:
        caption = "Each row of the picture is a value, and says what is published instead."
        if plan.labels is not None:
            caption += " {*} is the set of all values; a number tells equal sets apart."
        figures.append(_plot(plots.channel(plan), caption, "channel"))
    else:
        caption = "More noise, less loss under the prior itself; the dot is the plan."
        figures.append(_plot(plots.loss(scenario, plan), caption, "loss"))
        caption = "Areas are shares of rows; distance from the diagonal is what noise must hide."
        figures.append(_plot(plots.transport(scenario), caption, "transport"))
    words = mechanism_words(plan.applied, plan.labels)
    return _Part("mechanism", "What happens to a value", [f"It goes through {words}."
                 if plan.channel else f"It gets {words}."], plots=figures)  # fmt: skip


def _analyst(result: Result) -> _Part:
    """Return what errors those have to expect who use the released table."""
    plan, found = result.plan, result.expected
    rows = [[name, brief(value)] for name, value in _errors(found) if value is not None]
    texts = [f"The spread of the column is {brief(found.spread)}."] if found.spread else []
    bins = _bins_error(result)
    if bins is not None:
        rows.append([f"share of one of {_BINS} bins", brief(bins)])
    if plan.keep_rate is not None:
        texts.append(f"Values published as they are: {share(plan.keep_rate)}.")
    caption = f"Standard errors of estimates from {result.rows} released rows"
    table = _table(caption, ["what", "error"], rows)
    return _Part("analyst", "What an analyst gets", texts, tables=[table])


def _errors(found: Expected) -> list[tuple[str, float | None]]:
    return [
        ("single value (root mean square)", found.noise), ("mean", found.mean_error),
        ("share of one value", found.share_error), ("distribution function", found.cdf_error),
    ]  # fmt: skip


def _bins_error(result: Result) -> float | None:
    """Return the root mean square error of the shares of a few bins, where they are estimated."""
    plan, support, known = result.plan, result.plan.support, result.expected.share_error
    if known is None or not support.ordered or support.size <= _BINS:
        return None
    solve = solver_of(support, plan.applied, plan.weights)
    return solve.error(read_bins(support, _BINS), result.rows, result.frequencies)


def _certificate(plan: Plan) -> _Part:
    own = plan.certificate
    loss = at_most(plan.loss, plan.epsilon_exact)
    return _Part("certificate", "The certificate", [
        f"The privacy loss is at most {loss}, within epsilon {show(plan.epsilon_exact)}: "
        f"{certificate_words(own)}.",
    ])  # fmt: skip


def _again(about: _Facts) -> _Part:
    plan, table = about.plan, about.source if about.plan.coding is not None else None
    command, texts = remake.command(plan, table), []
    if plan.noisy is not None:
        texts = ["Anyone can verify the plan: pufferfish verify plan.json. Made again, it has "
                 "other noise, and costs epsilon again."]  # fmt: skip
    if plan.composition is not None:
        texts.append("It was made beside other releases of the same rows: give these, too.")
    if {"TABLE", "PRIOR", "FILE", "SHARE"}.intersection(command.split()):
        texts.append("Words in capital letters stand for what the plan does not know.")
    codes = [{"title": "In Python:", "text": remake.program(plan, table)}]
    # Values that no range names can be declared in Python alone.
    if plan.noisy is None or isinstance(plan.support, Levels) or "--range" in command:
        codes.insert(0, {"title": "On the command line:", "text": command})
    return _Part("again", "Make it again", texts, codes=codes)


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def _table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    return {"caption": caption, "headers": headers, "rows": rows}


def _plot(figure: Any, caption: str, name: str) -> Any:
    from markupsafe import Markup

    from pufferfish.plots.style import svg

    title = figure.axes[0].get_title(loc="left")
    # Its texts are escaped already.
    return {"svg": Markup(svg(figure, f"{title}. {caption}", name)), "caption": caption}
