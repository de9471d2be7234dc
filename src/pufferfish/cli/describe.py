# SPDX-License-Identifier: Apache-2.0
"""Words: one function for each object turns its fields into lines for people."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from pufferfish.cli.output import at_most, brief, share
from pufferfish.cli.results import Result, rows_of, used_outputs
from pufferfish.errors import counted, listed, quoted
from pufferfish.loss.certificate import Certificate
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import rounded_up, show, show_short
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Confidence, Rule
from pufferfish.priors.scenario import Scenario
from pufferfish.release.spec import ReleaseReport
from pufferfish.support import Levels, Support
from pufferfish.tables.report import TableReport

_METHODS = {
    "ball": "ball arithmetic",
    "float-bound": "a floating-point bound",
    "exact": "exact rationals",
    "none": "worst cases",
}
PRIVATE = "The plan is private: it depends on every row of the table. Keep both together."
#: From this share of untouched values on the column is called nearly unchanged.
_NEARLY = 0.95
NO_SUM = "Losses of several releases do not add up (see pufferfish ledger)."


def joined(items: Iterable[str], limit: int = 8) -> str:
    """Return phrases joined by commas, cut after ``limit`` of them."""
    every = list(items)
    text = ", ".join(every[:limit])
    return text if len(every) <= limit else f"{text} and {len(every) - limit} more"


def support_words(support: Support) -> str:
    """Return what values a column has."""
    if not isinstance(support, Levels):
        ends = (support.name(0), support.name(support.size - 1))
        if support.size == 1:
            return f"the number {ends[0]} alone"
        return f"{support.size} numbers from {ends[0]} to {ends[1]}, step {show(support.step)}"
    if not support.ordered:
        return f"{counted(support.size, 'level')} without an order: {listed(support.names)}"
    codes = (f"{quoted(name)} = {code}" for code, name in enumerate(support.names))
    return f"{support.size} levels in order, released as codes: {joined(codes)}"


def kind_words(support: Support) -> str:
    """Return what a support holds."""
    if isinstance(support, Levels):
        return "ordered levels" if support.ordered else "unordered levels"
    return "numbers"


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


def report_lines(report: TableReport, explain: bool = False) -> list[str]:
    """Return where the rows of a table went: what was set aside, and what missing means."""
    lines = []
    reasons = {
        "no public value": "without a value of {}",
        "no secret": "without the secret {}",
        "secret excluded": "of the excluded secret {}",
    }
    aside = [
        f"{aside.rows} {reasons[aside.reason].format(quoted(aside.name))}"
        for aside in report.set_aside
        if aside.rows
    ]
    if aside:
        lines.append(
            f"{counted(report.rows_set_aside, 'row')} of {report.rows_read} set aside: "
            f"{joined(aside)}"
        )
    texts = [
        f"{m.text!r} ({m.public_rows} public, {m.secret_rows} secret)" if m.text
        else f"the empty cell ({m.public_rows} public, {m.secret_rows} secret)"
        for m in report.missing
        if explain or m.public_rows or m.secret_rows
    ]  # fmt: skip
    if texts:
        lines.append(f"missing: {joined(texts)}")
    if report.missing_rows is not None:
        lines.append(f"released as the level of missing values: {report.missing_rows} rows")
    if report.people is not None:
        people = (f"{number} with {counted(rows, 'row')}" for rows, number in report.people)
        lines.append(f"people by {quoted(report.rules.unit or '')}: {joined(people)}")
    return lines


def scenario_lines(scenario: Scenario, source: str, explain: bool = False) -> list[str]:
    """Return what is hidden in what, from how many rows, and what was decided in reading it."""
    report = scenario.priors[0].report
    pairs = (f"({quoted(a)}, {quoted(b)})" for a, b in scenario.pairs)
    which = "; every pair" if scenario.is_all_pairs else f"; pairs {joined(pairs)}"
    which = "" if len(scenario.pairs) == 1 else which
    if report is None:
        rows = counted(len(scenario.priors), "prior") + ", one for each adversary"
        lines = [f"{source}: {rows if len(scenario.priors) > 1 else 'a given prior'}"]
        lines.append(f"hidden: {listed(scenario.protected)}{which}")
    else:
        lines = [f"{source}: {counted(report.rows_used, 'row')}"]
        counts = dict(report.secrets)
        named = joined(f"{quoted(name)} {counts[name]}" for name in scenario.protected)
        lines.append(f"hidden: {quoted(report.rules.secret or '')}, rows {named}{which}")
    column = scenario.product.columns[0]
    name = "a column" if column is None else quoted(column)
    lines.append(f"published: {name}, {support_words(scenario.support)}")
    region = region_words(scenario.rules)
    if region:
        lines.append(f"for every prior within {region}")
    if report is not None:
        lines += report_lines(report, explain)
    return [*lines, *(f"note: {note}" for note in scenario_notes(scenario))]


def scenario_notes(scenario: Scenario) -> list[str]:
    """Return what was decided about the input, each once."""
    notes = [note for prior in scenario.priors for note in prior.notes]
    for prior in scenario.priors:
        notes += () if prior.report is None else prior.report.notes
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


def certificate_words(certificate: Certificate) -> str:
    """Return how a loss was proved, and where it is attained."""
    how, _, more = certificate.method.partition("+")
    how = _METHODS.get(how, how) + (" and exact rationals" if more else "")
    witness = certificate.witness
    if witness is None:
        return f"proved by {how}"
    pair = listed(witness.pair)
    return f"proved by {how}; most telling is {listed(witness.outputs)} for the pair {pair}"


def plan_lines(plan: Plan) -> list[str]:
    """Return what is known of a plan, for --explain."""
    lines = [certificate_words(plan.certificate)]
    found = plan.distortion
    if found is not None:
        lines.append(f"expected {found.cost_name} cost {rounded_up(plan.cost or 0.0, 5)}, at most "
                     f"{rounded_up(found.gap, 2)} above the least possible")  # fmt: skip
        lines += [f"the channel is {c}" for c in found.conditions]
    if plan.channel is not None:
        used = set(used_outputs(plan))
        lost = [plan.channel.inputs.name(x) for x, y in enumerate(plan.channel.same)
                if y is not None and y not in used]  # fmt: skip
        if lost:
            lines.append(f"never published: {listed(lost)}")
    return [*lines, *plan.notes]


def verdict_lines(results: Sequence[Result], scenario: Scenario, command: str) -> list[str]:
    """Return the verdict on results of ``calibrate``, in plain words."""
    return [
        _proved(results, scenario),
        *_if_a_sample(results, command),
        *(survival_lines(results) or [_why_survives(r) for r in results if len(results) == 1]),
        *([PRIVATE] if any(r.plan.from_rows for r in results) else []),
        NO_SUM,
    ]


def _proved(results: Sequence[Result], scenario: Scenario) -> str:
    """Return what was proved, and on which condition."""
    failed = [r.plan.mechanism for r in results if not r.plan.certificate.holds]
    if failed:
        return f"NOT PROVED: {listed(dict.fromkeys(failed))} may exceed epsilon."
    every = "each is" if len(results) > 1 else "the loss is"
    said = f"Proved: {every} within epsilon {listed(dict.fromkeys(r.epsilon for r in results))}"
    region = region_words(scenario.rules)
    if region:
        return f"{said} for every prior within {region}."
    if scenario.priors[0].from_rows:
        return f"{said}, if these {rows_of(scenario)} rows are all there is."
    return f"{said}, if the given prior is the true one."


def _if_a_sample(results: Sequence[Result], command: str) -> list[str]:
    """Return what the results may cost if the rows are a sample, and the command that holds."""
    known = [r for r in results if r.loss_at_95 is not None]
    if not known:
        return []
    each = [
        f"{rounded_up(worst.loss_at_95 or 0.0, 3)} ({_named(worst, results)})"
        for _, group in groupby(known, key=lambda r: r.epsilon)
        for worst in [max(group, key=lambda r: r.loss_at_95 or 0.0)]
    ]
    infinite = any(r.loss_at_95 == float("inf") for r in known)
    why = " (inf: too few rows show that an output occurs for every secret)" if infinite else ""
    said = f"If they are a sample it may cost {joined(each, 4)} at 95 %{why}"
    return [f"{said}; what holds then too:", f"  {command}"] if command else [f"{said}."]


def survival_lines(results: Sequence[Result]) -> list[str]:
    """Return where nothing of the column is left, and where it is published as it is."""
    lost = [r for r in results if not r.survives]
    if lost and len(lost) == len(results):
        least = min(lost, key=lambda r: r.expected.noise_to_spread or 0.0)
        return [f"NOTHING OF THE COLUMN IS LEFT: {_why_lost(least)}. A larger epsilon keeps more."]
    lines = []
    if lost:
        each = listed(dict.fromkeys(_named(r, results) for r in lost))
        lines.append(f"Nothing of the column is left with {each}.")
    same = [r for r in results if r.plan.unchanged]
    if same:
        noise = " or --min-scale" if any(r.plan.channel is None for r in same) else ""
        each = listed(dict.fromkeys(_named(r, results) for r in same))
        lines.append(f"PUBLISHED UNCHANGED with {each}: release needs --allow-unchanged{noise}.")
    nearly = [r for r in results if r not in same and r.untouched > _NEARLY]
    if nearly:
        each = listed(f"{_named(r, results)} ({share(r.untouched)})" for r in nearly)
        lines.append(f"Most values are published as they are with {each}.")
    return lines


def _named(result: Result, results: Sequence[Result]) -> str:
    several = len({r.epsilon for r in results}) > 1
    return f"{result.plan.mechanism} at {result.epsilon}" if several else result.plan.mechanism


def _why_lost(result: Result) -> str:
    """Return why nothing of a column is left."""
    plan = result.plan
    if plan.channel is not None:
        used = used_outputs(plan)
        if len(used) == 1:
            return f"every row becomes {quoted(plan.channel.outputs.name(used[0]))}"
        kept, constant = share(plan.keep_rate or 0.0), share(result.constant)
        return f"it keeps {kept} of the rows, and one constant for everybody would keep {constant}"
    return f"the noise is {brief(result.expected.noise_to_spread or 0.0, 2)} times its spread"


def _why_survives(result: Result) -> str:
    """Return how much of a column is left."""
    plan, expected = result.plan, result.expected
    if plan.keep_rate is not None:
        words = f"{share(plan.keep_rate)} of the rows stay as they are"
        return f"The column survives: {words} (one constant: {share(result.constant)})."
    ratio = expected.noise_to_spread or 0.0
    words = f"the noise is {brief(ratio, 2)} times its spread"
    if ratio < 1:
        return f"The column survives: {words}."
    mean = f"their mean, to about {brief(expected.mean_error or 0.0, 2)}"
    return f"Single values drown, {words}; what is left is {mean}."


def assumption_words(plan: Plan, from_rows: bool | None = None) -> str:
    """Return what the guarantee of a plan assumes."""
    who = "each row as one person's"
    if plan.unit is not None:
        who = f"all rows of a person (by {quoted(plan.unit)}) together"
    said = (
        f"Takes the prior as public knowledge and {who}; losses of several releases do not add up."
    )
    if plan.from_rows if from_rows is None else from_rows:
        said += " Keep the plan private: it depends on every row."
    return said


def release_lines(
    plan: Plan, plan_file: str, report: ReleaseReport, charged: str = ""
) -> list[str]:
    """Return what a release did, and what is promised of it, in at most six lines."""
    rows = f"{report.rows_released} of {report.rows_read} rows released"
    if report.set_aside:
        rows += f", {report.set_aside} without a value left out"
    if report.clamped:
        rows += f", {report.clamped} moved to the nearest value of the support"
    if report.outside_promise:
        rows += f", {report.outside_promise} outside the promise (secret in no pair)"
    lines = [f"{report.output}: column {quoted(report.column)}, {rows}"]
    how = mechanism_words(report.mechanism)
    if isinstance(report.mechanism, DiscreteLaplace) and report.mechanism.scale > (plan.scale or 0):
        how += " (raised by --min-scale)"
    if report.keep_rate is not None:
        how += f", {share(report.keep_rate)} of the rows stay as they are"
    lines.append(f"{plan.mechanism} at epsilon {show_short(plan.epsilon_exact)}: {how}")
    if report.unchanged:
        lines.append("PUBLISHED UNCHANGED: the column can be read back")
    if report.seeded:
        lines.append("drawn from a seed: it protects nobody")
    elif report.keep:
        lines.append(f"no certificate: {listed(report.keep)} may give the secret away")
    else:
        lines.append(f"not proved again here: pufferfish verify {plan_file} TABLE does")
    return [*lines, *([charged] if charged else []), assumption_words(plan)]


def verified_lines(
    path: str, plan: Plan, scenario: Scenario, certificate: Certificate
) -> list[str]:
    """Return what was proved of a plan, in at most six lines."""
    same = plan.is_for(scenario)
    region = region_words(plan.regions)
    under = "the prior that it was computed from" if same else "ANOTHER PRIOR than its own"
    under = f"every prior within {region} of {under}" if region else under
    loss = at_most(certificate.loss, plan.epsilon_exact)
    lines = [
        f"{path}: verified under {under}",
        f"{mechanism_words(plan.applied)}: loss at most {loss}, within epsilon "
        f"{show_short(plan.epsilon_exact)}",
        certificate_words(certificate),
    ]
    if plan.composition is not None:
        lines.append("judged is this release alone; it was made to fit beside others, whose joint "
                     "loss the ledger knows")  # fmt: skip
    counted_rows = any(prior.from_rows for prior in scenario.priors)
    return [*lines, assumption_words(plan, plan.from_rows or counted_rows)]
