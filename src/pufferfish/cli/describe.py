# SPDX-License-Identifier: Apache-2.0
"""Words: one function for each object turns its fields into lines for people."""

from collections.abc import Sequence

from pufferfish.cli.output import at_most
from pufferfish.errors import counted, joined, listed, listed_pairs, quoted
from pufferfish.loss.certificate import Certificate
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import rounded_up, show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Confidence, Rule
from pufferfish.priors.scenario import Scenario
from pufferfish.release.spec import ReleaseReport
from pufferfish.support import Levels, Support
from pufferfish.tables.rules import TableReport

_METHODS = {
    "ball": "ball arithmetic",
    "float-bound": "a floating-point bound",
    "exact": "exact rationals",
    "rational": "exact rationals",
    "none": "worst cases",
}


def support_words(support: Support) -> str:
    """Return what values a column has."""
    if not isinstance(support, Levels):
        ends = f"from {support.name(0)} to {support.name(support.size - 1)}"
        return f"{counted(support.size, 'number')} {ends}, step {show(support.step)}"
    if not support.ordered:
        return f"{counted(support.size, 'level')} without an order: {listed(support.names)}"
    codes = (f"{quoted(name)} = {code}" for code, name in enumerate(support.names))
    return f"{support.size} levels in order, released as codes: {joined(codes)}"


def region_words(rules: Sequence[Rule | None]) -> str:
    """Return the regions that the priors may lie in; empty where they are taken as exact."""
    names = [
        "an exact prior"
        if rule is None
        else f"{show(rule.level * 100)} % confidence"
        if isinstance(rule, Confidence)
        else f"a distance of {show(rule.radius)} in total variation"
        for rule in rules
    ]
    return "; ".join(dict.fromkeys(names)) if any(rules) else ""


def report_lines(report: TableReport) -> list[str]:
    """Return where the rows of a table went: what was set aside, and what missing means."""
    lines = []
    aside = [f"{a.rows} ({a.reason}: {quoted(a.name)})" for a in report.set_aside if a.rows]
    if aside:
        rows = counted(report.rows_set_aside, "row")
        lines.append(f"{rows} of {report.rows_read} set aside: {joined(aside)}")
    texts = [f"{repr(m.text) if m.text else 'the empty cell'} ({m.cells})" for m in report.missing]
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
    if report is not None:
        counts = dict(report.secrets)
        named = joined(f"{quoted(name)} {counts[name]}" for name in scenario.protected)
        secrets = f"{quoted(report.rules.secret or '')}, rows {named}"
        rows, more = counted(report.rows_used, "row"), report_lines(report)
    elif len(scenario.priors) > 1:
        rows = f"{len(scenario.priors)} priors, one for each adversary"
    region = region_words(scenario.rules)
    return [
        f"{source}: {rows}",
        f"hidden: {secrets}" + f"; {pairs}" * (len(scenario.pairs) > 1),
        f"published: {quoted(column) if column else 'a column'}, {support_words(scenario.support)}",
        *([f"for every prior within {region}"] if region else []),
        *more,
        *(f"note: {note}" for note in scenario_notes(scenario)),
    ]


def scenario_notes(scenario: Scenario) -> list[str]:
    """Return what was decided about the input, each once."""
    notes = [
        note
        for prior in scenario.priors
        for note in (*prior.notes, *(prior.report.notes if prior.report else ()))
    ]
    left = [s for s in scenario.priors[0].secrets if s not in scenario.protected]
    if left:
        notes.append(f"promised nothing, as in no pair: {listed(left, 2)}")
    return list(dict.fromkeys(notes))


def mechanism_words(mechanism: DiscreteLaplace | Channel) -> str:
    """Return what happens to a value."""
    if isinstance(mechanism, DiscreteLaplace):
        return f"discrete Laplace noise of scale {rounded_up(mechanism.scale, 10)}"
    kind = "levels" if isinstance(mechanism.outputs, Levels) else "values"
    return f"a channel from {mechanism.inputs.size} to {mechanism.outputs.size} {kind}"


def never_published(channel: Channel) -> list[str]:
    """Return the values that are outputs of a channel, and that it never publishes."""
    used = [any(column) for column in channel.rows.T.tolist()]
    return [
        channel.inputs.name(x) for x, y in enumerate(channel.same) if y is not None and not used[y]
    ]


def certificate_words(certificate: Certificate) -> str:
    """Return how a loss was proved, and where it is attained."""
    methods = dict.fromkeys(_METHODS.get(m, m) for m in certificate.method.split("+"))
    said, found = f"proved by {' and '.join(methods)}", certificate.witness
    if found is None:
        return said
    return f"{said}; most telling is {listed(found.outputs)} for the pair {listed(found.pair)}"


def assumption_words(plan: Plan) -> str:
    """Return what the guarantee of a plan assumes."""
    who = "each row as one person's"
    if plan.unit is not None:
        who = f"all rows of a person (by {quoted(plan.unit)}) together"
    return (
        f"Takes the prior as public knowledge and {who}; losses of several releases do not add up."
        + " Keep the plan private: it depends on every row." * plan.from_rows
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
    lines = [
        f"{report.output}: column {quoted(report.column)}, {', '.join(rows)}",
        f"{plan.mechanism} at epsilon {show_short(plan.epsilon_exact)}: "
        f"{mechanism_words(report.mechanism)}",
    ]
    if report.unchanged:
        lines.append("PUBLISHED UNCHANGED: the column can be read back")
    if report.seeded:
        lines.append("drawn from a seed: it protects nobody")
    elif report.keep:
        lines.append(f"no certificate: {listed(report.keep)} may give the secret away")
    else:
        lines.append(f"not proved again here: pufferfish verify {plan_file} TABLE does")
    return [*lines, assumption_words(plan)]


def verified_lines(
    path: str, plan: Plan, scenario: Scenario, certificate: Certificate
) -> list[str]:
    """Return what was proved of a plan, in at most six lines."""
    same, region = plan.is_for(scenario), region_words(plan.regions)
    under = "the prior that it was computed from" if same else "ANOTHER PRIOR than its own"
    under = f"every prior within {region} of {under}" if region else under
    loss, epsilon = at_most(certificate.loss, plan.epsilon_exact), show_short(plan.epsilon_exact)
    lines = [
        f"{path}: verified under {under}",
        f"{mechanism_words(plan.applied)}: loss at most {loss}, within epsilon {epsilon}",
        certificate_words(certificate),
    ]
    if plan.composition is not None:
        lines.append("this release alone was verified; the ledger knows its joint loss with others")
    return [*lines, assumption_words(plan)]
