# SPDX-License-Identifier: Apache-2.0
"""Sentences: one function for each object turns its fields into lines for people."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pufferfish.errors import counted, joined, listed, listed_pairs, quoted
from pufferfish.estimate.matrix import LeastSquares
from pufferfish.loss.certificate import Certificate
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import rounded_up, show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Rule, TVBall
from pufferfish.priors.scenario import Scenario
from pufferfish.release.spec import ReleaseReport
from pufferfish.report import at_most, brief, share
from pufferfish.report.compare import Result
from pufferfish.support import Levels, Support
from pufferfish.tables.rules import TableReport

_METHODS = {
    "ball": "ball arithmetic",
    "float-bound": "a floating-point bound",
    "exact": "exact rationals",
    "rational": "exact rationals",
    "none": "worst cases",
    "walk": "tests of ever less noise, beginning with noise that needs no table",
}


def support_words(support: Support) -> str:
    """Return what values a column has."""
    if not isinstance(support, Levels):
        ends = f"from {support.name(0)} to {support.name(support.size - 1)}"
        return f"{counted(support.size, 'number')} {ends}, step {show(support.step)}"
    if not support.ordered:
        return f"{counted(support.size, 'level')} without an order: {listed(support.names)}"
    codes = (f"{quoted(name)} = {code}" for code, name in enumerate(support.names))
    return f"{support.size} levels in order, coded {joined(codes)}"


def region_words(rules: Sequence[Rule | None]) -> str:
    """Return the regions that the priors may lie in; empty where they are taken as exact."""
    names = [
        "an exact prior"
        if rule is None
        else f"a distance of {show(rule.radius)} in total variation"
        if isinstance(rule, TVBall)
        else f"{show(rule.level * 100)} % confidence"
        for rule in rules
    ]
    return "; ".join(dict.fromkeys(names)) if any(rules) else ""


def report_lines(report: TableReport) -> list[str]:
    """Return where the rows of a table went: what was set aside, and what missing means."""
    lines = []
    aside = [f"{a.rows} ({a.reason}: {quoted(a.name)})" for a in report.set_aside]
    if aside:
        rows = counted(report.rows_set_aside, "row")
        lines.append(f"{rows} of {report.rows_read} set aside: {joined(aside)}")
    texts = [f"{repr(m.text) if m.text else 'the empty cell'} ({m.cells})" for m in report.missing]
    if len(texts) > 1 or any(m.cells for m in report.missing):
        lines.append(f"missing: {joined(texts)}")
    if report.people is not None:
        people = (f"{number} with {counted(rows, 'row')}" for rows, number in report.people)
        lines.append(f"people by {quoted(report.rules.unit or '')}: {joined(people)}")
    return lines


def scenario_lines(scenario: Scenario, source: str) -> list[str]:
    """Return what is hidden in what, from how many rows, and what was decided in reading it."""
    report, column = scenario.priors[0].report, scenario.product.columns[0]
    secrets, pairs, rows, more = listed(scenario.protected), "every pair", "a given prior", []
    if not scenario.is_all_pairs:
        pairs = f"pairs {listed_pairs(scenario.pairs, 8)}"
    if scenario.noisy is not None:
        which = "held out, and" if scenario.noisy.held_out else "to release,"
        rows = f"{counted(scenario.noisy.rows, 'row')} {which} counted with noise at epsilon "
        rows += f"{show(scenario.noisy.epsilon1)}; the counts without noise are private"
    elif report is not None:
        counts = dict(report.secrets)
        named = joined(f"{quoted(name)}: {counts[name]}" for name in scenario.protected)
        secrets = f"{quoted(report.rules.secret or '')}, rows {named}"
        rows, more = counted(report.rows_used, "row"), report_lines(report)
    elif len(scenario.priors) > 1:
        rows = f"{len(scenario.priors)} priors, one for each adversary"
    return [
        f"{source}: {rows}",
        f"hidden: {secrets}; {pairs}" if len(scenario.pairs) > 1 else f"hidden: {secrets}",
        f"published: {quoted(column) if column else 'a column'}, {support_words(scenario.support)}",
        *more,
        *(f"note: {note}" for note in scenario_notes(scenario)),
    ]


def scenario_notes(scenario: Scenario) -> list[str]:
    """Return what was decided about the input, each once."""
    notes = [note for prior in scenario.priors for note in prior.notes]
    left = [s for s in scenario.priors[0].secrets if s not in scenario.protected]
    if left:
        notes.append(f"nothing is promised for {listed(left, 2)} (in no pair)")
    if scenario.noisy is not None:
        notes.append("nothing is promised for rows of other secrets; how many there are is private")
    return list(dict.fromkeys(notes))


def mechanism_words(mechanism: DiscreteLaplace | Channel, labels: Channel | None = None) -> str:
    """Return what happens to a value; there are labels where sets are published."""
    if isinstance(mechanism, DiscreteLaplace):
        return f"discrete Laplace noise of scale {rounded_up(mechanism.scale, 10)}"
    kind = "levels" if isinstance(mechanism.outputs, Levels) else "values"
    kind = "sets of values" if labels else kind
    return f"a channel from {mechanism.inputs.size} to {mechanism.outputs.size} {kind}"


def certificate_words(certificate: Certificate) -> str:
    """Return how a loss was proved, and where it is attained."""
    methods = dict.fromkeys(_METHODS.get(m, m) for m in certificate.method.split("+"))
    said, found = f"proved by {' and '.join(methods)}", certificate.witness
    if found is None:
        return said
    return f"{said}; most telling is {listed(found.outputs)} for the pair {listed(found.pair)}"


def labels_only_words(plan: Plan, rows: int) -> str:
    """Return what it costs estimates that only labels are published."""
    solved = [LeastSquares(c.matrix, plan.weights) for c in (plan.channel, plan.label_channel) if c]
    every = np.eye(plan.support.size)
    by_sets, by_labels = (brief(each.error(every, rows, each.mu)) for each in solved)
    return f"error of a share {by_labels} from labels alone (-: no estimate), {by_sets} from sets"


def assumption_words(plan: Plan) -> str:
    """Return what the guarantee of a plan assumes."""
    who = "each row as one person's"
    if plan.unit is not None:
        who = f"all rows of a person (by {quoted(plan.unit)}) together"
    private = " Keep the plan private: it depends on every row." if plan.from_rows else ""
    if plan.noisy is not None:
        both = "plan and release are together"
        if plan.noisy.held_out:
            both = "the release, if no row of it was held out, and the plan are each"
        return (
            f"Takes the rows as independent, {who}; with {region_words(plan.regions)} {both} "
            "within epsilon. The plan may be published."
        )
    return (
        f"Takes the prior as public knowledge and {who}; several releases together may lose more "
        f"than the sum of their losses.{private}"
    )


def release_lines(plan: Plan, plan_file: str, report: ReleaseReport) -> list[str]:
    """Return what a release did, and what is promised of it, in at most five lines."""
    counts = (
        (report.set_aside, "without a value left out"),
        (report.clamped, "moved to the nearest value of the support"),
        (report.outside_promise, "outside the promise (secret in no pair)"),
    )
    rows = [f"{report.rows_released} of {report.rows_read} rows released"]
    rows += [f"{number} {what}" for number, what in counts if number]
    columns = f"column {quoted(report.column)}"
    if report.set_column is not None:
        columns += f" (labels), column {quoted(report.set_column)}"
    lines = [
        f"{report.output}: {columns}, {', '.join(rows)}",
        f"{plan.mechanism} at epsilon {show_short(plan.epsilon_exact)}: "
        f"{mechanism_words(report.mechanism, plan.labels)}",
    ]
    if report.unchanged:
        lines.append("PUBLISHED UNCHANGED: the column can be read back")
    if report.seeded:
        lines.append("drawn from a seed: it protects nobody")
    elif report.keep:
        lines.append(f"no certificate: {listed(report.keep)} may give the secret away")
    else:
        words = f"{plan_file} {'TABLE' if plan.from_rows else '--prior FILE'}"
        words = plan_file if plan.noisy else words
        lines.append(f"to prove it again: pufferfish verify {words}")
    return [*lines, assumption_words(plan)]


def verified_lines(path: str, plan: Plan, certificate: Certificate, same: bool) -> list[str]:
    """Return what was proved of a plan, in at most six lines; ``same``: under its own prior."""
    within = f"within epsilon {show_short(plan.epsilon_exact)}"
    if plan.noisy is not None:
        both = "apart from" if plan.noisy.held_out else "together with"
        by = f"from the noisy counts in it, for the pairs {listed_pairs(plan.pairs, 8)}"
        within = f"{within}, {both} the {show_short(plan.noisy.epsilon1)} of noisy counts"
    else:
        region = region_words(plan.regions)
        by = "the prior that it was computed from" if same else "ANOTHER PRIOR than its own"
        if region:
            walk = certificate.method == "walk"
            by = f"{by}, with {region}" if walk else f"every prior within {region} of {by}"
        by = f"under {by}"
        within = f"loss at most {at_most(certificate.loss, plan.epsilon_exact)}, {within}"
    lines = [
        f"{path}: verified {by}",
        f"{mechanism_words(plan.applied, plan.labels)}: {within}",
        certificate_words(certificate),
    ]
    if plan.composition is not None:
        lines.append("this release alone was verified; the ledger knows its joint loss with others")
    return [*lines, assumption_words(plan)]


def result_lines(result: Result) -> list[str]:
    """Return all that is known of a result, by the names that programs get."""
    known = ", ".join(f"{n} {v}" for n, v in result.to_dict().items() if v is not None)
    conditions = getattr(result.plan.distortion, "conditions", ())
    return [
        known, certificate_words(result.plan.certificate),
        *(f"the channel is {condition}" for condition in conditions), *result.plan.notes,
    ]  # fmt: skip


def left_out_lines(reasons: Mapping[str, object]) -> list[str]:
    """Return what 'all' leaves out, and why; a reason that several have is told of the first."""
    groups: dict[str, list[str]] = {}
    for name, why in reasons.items():
        groups.setdefault(str(why).removeprefix(name), []).append(name)
    return [f"'all' leaves out {joined(names)}: {reasons[names[0]]}" for names in groups.values()]


def verdict_lines(results: Sequence[Result], command: str) -> list[str]:
    """Return the verdict on results of ``calibrate``, in plain words."""
    scenario = results[0].scenario
    lines = [_proved(results, scenario), *_if_a_sample(results, scenario, command)]
    lines += survival_lines(results)
    if len(results) == 1 and results[0].left and not results[0].plan.unchanged:
        averages = results[0].left == "averages"
        word = "Averages survive, single values do not" if averages else "The column survives"
        lines.append(f"{word}: {_left(results[0])}.")
    kept = [r.plan.distortion for r in results if r.plan.objective is None]
    costs = dict.fromkeys(each.cost_name for each in kept if each)
    lines += [f"Channel (kept) has the least {cost} cost (see --cost)." for cost in costs]
    if scenario.noisy is not None:  # what is of use before the plan is published
        told = scenario_notes(scenario)
        lines += [f"Note: {n}." for r in results for n in r.plan.notes if n not in told]
    if any(r.plan.from_rows for r in results):
        lines.append("The plan is private: it depends on every row. Keep the plan with the table.")
    together = "Several releases together may lose more than the sum of their losses"
    return [*lines, f"{together} (see pufferfish ledger)."]


def _proved(results: Sequence[Result], scenario: Scenario) -> str:
    report, region = scenario.priors[0].report, region_words(scenario.rules)
    condition = ", if the given prior is the true one"
    if len(scenario.priors) > 1:
        condition = ", if one of the given priors is the true one"
    if region:
        walks = {r.epsilon for r in results if r.plan.certificate.method == "walk"}
        holds = f"with {region}" if walks else f"for every prior within {region}"
        alone = " (for each epsilon alone, chosen beforehand)" if len(walks) > 1 else ""
        condition = f" {holds}{alone}{_if_no_other_value(scenario)}"
    elif report is not None:
        condition = f", if these {report.rows_used} rows are all there is"
    every = "each loss" if len(results) > 1 else "the loss"
    if any(r.joint for r in results):
        every += ", together with all that is charged,"
    if scenario.noisy is not None:
        spent = show_short(scenario.noisy.epsilon1)
        every += f"{' or' if scenario.noisy.held_out else ','} that of the noisy counts ({spent})"
        every += "" if scenario.noisy.held_out else " included,"
    limits = {r.epsilon for r in results}
    limit = "its epsilon" if len(limits) > 1 else f"epsilon {limits.pop()}"
    return f"Proved: {every} is within {limit}{condition}."


def _if_a_sample(results: Sequence[Result], scenario: Scenario, command: str) -> list[str]:
    """Return how large the loss may be if the rows are a sample, and the command that holds."""
    if scenario.has_region or scenario.priors[0].report is None:
        return []
    known = [(r.loss_at_95, r) for r in results if r.loss_at_95 is not None]
    over = [(loss, r) for loss, r in known if loss > r.plan.epsilon]
    if over:
        loss, worst = max(over, key=lambda pair: pair[0])
        why = "; inf: too few rows show that an output occurs for every secret" * math.isinf(loss)
        return [
            f"If they are a sample, the loss may be as large as {rounded_up(loss, 3)} with "
            f"{worst.name} (95 % confidence{why}). This command makes a plan that holds then, too"
            f"{_if_no_other_value(scenario)}:",
            f"  {command}",
        ]
    if len(known) == len(results):
        other = _if_no_other_value(scenario)
        return [f"If they are a sample, that holds too (95 % confidence){other}."]
    return ["If they are a sample, the loss may be larger; how large is not known."]


def _if_no_other_value(scenario: Scenario) -> str:
    """Return the condition of a region whose values were not declared but found in a table."""
    report = scenario.priors[0].report
    found = report is not None and report.rules.columns[0].support is None
    return ", as long as nobody has a value that no row has" if found else ""


def survival_lines(results: Sequence[Result]) -> list[str]:
    """Return where nothing of the column is left, where it is published as it is or levels go."""
    lines = []
    lost = [r for r in results if not r.left]
    if len(lost) == len(results):
        least = min(lost, key=lambda r: r.expected.noise_to_spread or 0.0)
        lines.append(
            f"LITTLE OR NOTHING OF THE COLUMN IS LEFT: {_left(least)}. A larger epsilon keeps more."
        )
    elif lost:
        lines.append(f"Little or nothing is left with {listed(r.name for r in lost)}.")
    same = [r for r in results if r.plan.unchanged]
    if same:
        names = listed(r.name for r in same)
        lines.append(f"PUBLISHED UNCHANGED with {names}: release needs --allow-unchanged.")
    for r in results:
        if r.gone and not r.plan.unchanged:
            gone = listed(map(r.plan.support.name, r.gone))
            lines.append(f"Never published by {r.name}: {gone} (see --min-keep).")
    return lines


def _left(result: Result) -> str:
    kept = result.plan.keep_rate
    if kept is None:
        found = result.expected
        words = f"the noise is {brief(found.noise_to_spread, 2)} times the column's spread"
        if found.mean_error and found.spread:
            words += f", the error of the mean {brief(found.mean_error / found.spread, 2)} times"
        return words
    what = "rows stay as they are" if result.plan.labels is None else "labels are the value itself"
    words = f"{share(kept)} of the {what} (one constant: {share(result.expected.constant)})"
    return words if result.plan.objective is None else f"{errors_words(result)}; {words}"


def errors_words(result: Result) -> str:
    """Return what errors estimates have, where the rows are known."""
    found, names = result.expected, ("the mean", "a share", "the CDF")
    errors = zip(names, (found.mean_error, found.share_error, found.cdf_error), strict=True)
    known = [f"of {what} {brief(error)}" for what, error in errors if error is not None]
    return f"error {', '.join(known) or 'not known'}"
