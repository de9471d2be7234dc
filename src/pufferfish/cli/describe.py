# SPDX-License-Identifier: Apache-2.0
"""What a scenario is, in words for people and as JSON values for programs."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.digits import rounded_up, share
from pufferfish.cli.options import Source
from pufferfish.errors import InputError, counted, listed
from pufferfish.rationals import float_up, parse_number, show

if TYPE_CHECKING:
    from pufferfish.mechanisms import Channel, Mechanism
    from pufferfish.plan import Plan
    from pufferfish.scenario import Scenario
    from pufferfish.support import Support
    from pufferfish.tables import Rules, TableReport

#: What a report says of declared values that no row has; false under a region.
OF_NO_ROW = "of probability 0 but"
#: Said where a release was made from the options of calibrate.
NO_PLAN = (
    "no plan was saved, and estimate needs one: to have it, calibrate with --save FILE first and "
    "release with --plan FILE"
)


def notes_of(scenario: "Scenario") -> tuple[str, ...]:
    """Return what was decided about the input, each once."""
    notes = [note for prior in scenario.priors for note in prior.notes]
    for prior in scenario.priors:
        if prior.report is not None:
            notes += [*prior.report.notes, *_numbers_as_levels(prior.report.rules)]
    if region_words(scenario):
        notes = _under_a_region(scenario, notes)
    return tuple(dict.fromkeys([*notes, *_unprotected(scenario)]))


def _under_a_region(scenario: "Scenario", notes: list[str]) -> list[str]:
    """Return notes as they are true under a region, and which values it covers.

    What a table says of the atoms that no row has, it says of the prior as counted.
    """
    found = notes
    if any(OF_NO_ROW in note for note in notes):
        most = rounded_up(_most_unseen(scenario), 3)
        words = f"of probability 0 to {most} in the region, and"
        found = [note.replace(OF_NO_ROW, words) for note in notes]
    where = covered(scenario)
    return [*found, f"the region is {where}"] if where else found


def _most_unseen(scenario: "Scenario") -> float:
    """Return how probable a value that no row of a protected secret has may be, at most."""
    from pufferfish.regions import Ball, regions_of

    most = Fraction(0)
    for region, prior in zip(regions_of(scenario), scenario.priors, strict=True):
        if isinstance(region, Ball):
            most = max(most, region.radius)
            continue
        for secret, upper in zip(scenario.protected, region.upper, strict=True):
            unseen = upper[prior.counts[prior.row(secret)] == 0]
            most = max(most, *(Fraction(int(end), region.denominator) for end in unseen))
    return float_up(most)


def proved_by(method: str) -> str:
    """Return how a certificate was proved, in words."""
    words = {
        "ball": "ball arithmetic",
        "float-bound": "a floating-point bound",
        "exact": "exact rationals",
    }
    how, _, more = method.partition("+")
    return words.get(how, how) + (" and exact rationals" if more == "rational" else "")


def nearly_unchanged(mechanism: "Mechanism", keep_rate: float | None) -> str:
    """Return in words how often values are published as they are, where that needs a notice.

    For noise that is more than nine in ten, as nothing else tells of it; a channel, which is meant
    to keep values and whose kept share stands in the table, has to change fewer than one in a
    thousand. P(noise = 0) = (1 - a) / (1 + a) with
    a = exp(-step / scale) (theory, section 1); a channel's share is ``keep_rate``, if known.
    """
    from pufferfish.mechanisms import DiscreteLaplace

    kept, most = keep_rate or 0.0, 0.999
    if isinstance(mechanism, DiscreteLaplace):
        if mechanism.scale == 0:
            return ""
        rate = mechanism.step / Fraction(mechanism.scale)
        a = math.exp(-float(min(rate, Fraction(700))))
        # As a double it may be 1, but the noise is never 0 for all of the values.
        kept, most = min((1 - a) / (1 + a), math.nextafter(1, 0)), 0.9
    return share(kept) if kept > most else ""


def channel_words(plan: "Plan", with_cost: bool = True) -> list[str]:
    """Return what a channel's kept share and cost mean, and which conditions it meets.

    Parameters
    ----------
    plan : Plan
    with_cost : bool
        Whether the cost is shown.
    """
    from pufferfish.support import Levels

    distortion = plan.distortion
    if distortion is None:
        return []
    codes = " of the codes" if isinstance(plan.support, Levels) else ""
    what = {
        "hamming": "share of values that change",
        "squared": f"squared difference{codes}",
        "absolute": f"absolute difference{codes}",
    }.get(distortion.name, "cost by the file that was given")
    cost = f"; cost: the expected {what}" if with_cost else ""
    lines = [f"Kept: the expected share of values that stay{cost}."]
    told = []
    for condition in distortion.conditions:
        name, _, number = condition.partition(" ")
        kept = f"keeps each value with a chance of at least {number}"
        told.append(kept if name == "min_keep" else f"is {condition}")
    return [*lines, f"The channel {' and '.join(told)} (to 1e-9)."] if told else lines


def assumed(plan: "Plan") -> str:
    """Return in one line what the guarantee assumes; ``plan.assumption`` says it in full."""
    unit = None if plan.rules is None else plan.rules.unit
    who = "each row" if unit is None else f"all rows with the same {unit!r}"
    if plan.from_rows:
        said = f"The prior is taken as public knowledge, {who} as one person; the plan depends on "
        said += "every row: keep it private."
    else:
        said = f"The given prior is taken as the adversary's, {who} as one person; the plan is as "
        said += "private as that prior."
    if unit is not None:
        said = f"{said[:-1]}; how many rows a person has is not protected."
    return f"{said} The losses of several releases do not add up."


def constant_words(channel: "Channel") -> str:
    """Return what a channel publishes in every row, or nothing where it publishes more."""
    from pufferfish.support import Levels

    used = _used(channel)
    if len(used) != 1 or channel.inputs.size == 1:
        return ""
    if isinstance(channel.outputs, Levels):
        return repr(channel.outputs.name(used[0]))
    return "one and the same number"


def never_published(channel: "Channel") -> str:
    """Return which values a channel publishes in no row, or nothing where there is none.

    Levels are named; numbers may be many, and are counted. Where others than the values may be
    published it says nothing of that kind.
    """
    from pufferfish.support import Levels

    used = set(_used(channel))
    lost = [x for x, y in enumerate(channel.same) if y not in used]
    if not lost or len(used) == 1 or not channel.inputs.same_as(channel.outputs):
        return ""
    if isinstance(channel.inputs, Levels):
        return listed(channel.inputs.name(x) for x in lost)
    return f"{len(lost)} of the {channel.inputs.size} values"


def _used(channel: "Channel") -> list[int]:
    return [y for y, column in enumerate(channel.rows.T.tolist()) if any(column)]


def region_words(scenario: "Scenario") -> str:
    """Return the regions that the priors may lie in, or nothing where they are taken as exact."""
    rules = [prior.region for prior in scenario.priors]
    names = ["an exact prior" if rule is None else rule.describe() for rule in rules]
    return "; ".join(dict.fromkeys(names)) if any(rules) else ""


def covered(scenario: "Scenario") -> str:
    """Return what confidence in a table covers, or nothing where its values were declared."""
    report = _report(scenario)
    if report is None:
        return ""
    rules = report.rules
    if rules.levels is not None or rules.support is not None or isinstance(rules.order, tuple):
        return ""
    if report.kind == "numbers":
        return "for the values that occur; no other one is thought possible"
    return "for the levels that occur; declare others with --levels"


def lines_of(scenario: "Scenario", source: Source) -> list[str]:
    """Return the header of a report, for people."""
    report = _report(scenario)
    if report is not None:
        # Its notes come at the end, with those of the prior.
        lines = [line for line in report.lines() if not line.startswith("note: ")]
    else:
        count = len(scenario.priors)
        adversaries = f"{count} adversaries" if count > 1 else "1 adversary"
        lines = [f"{listed(source.priors)}: {adversaries}"]
    lines.append(_support_line(scenario))
    lines.append(_pairs_line(scenario))
    region = region_words(scenario)
    if region:
        lines.append(f"region of the prior: {region}")
    return [*lines, *(f"note: {note}" for note in notes_of(scenario))]


def to_dict(scenario: "Scenario", source: Source) -> dict[str, Any]:
    """Return the scenario as JSON values; the digest is private and not among them."""
    report = _report(scenario)
    data: dict[str, Any] = {
        "source": source.table if source.table is not None else list(source.priors),
        "secret": None if report is None else report.rules.secret,
        "public": None if report is None else report.rules.public,
        "support": _support(scenario),
        "secrets": list(scenario.priors[0].secrets),
        "pairs": [list(pair) for pair in scenario.pairs],
        "adversaries": len(scenario.priors),
        "regions": _regions(scenario),
        "rows": None,
        "set_aside": None,
        "coding": None,
        "missing": None,
        "notes": list(notes_of(scenario)),
    }
    if report is not None:
        data["rows"] = {
            "read": report.rows_read,
            "used": report.rows_used,
            "set_aside": report.rows_set_aside,
            "by_secret": dict(report.secrets),
        }
        data["set_aside"] = dict(report.set_aside)
        data["coding"] = None if report.coding is None else dict(report.coding)
        data["missing"] = [
            {"text": m.text, "public_rows": m.public_rows, "secret_rows": m.secret_rows}
            for m in report.missing
        ]
        data["warnings"] = list(report.warnings)
    return data


def _regions(scenario: "Scenario") -> list[dict[str, str] | None] | None:
    """Return the rule of each adversary's region as JSON values; None where all are exact."""
    from pufferfish.regions import Confidence

    rules = [prior.region for prior in scenario.priors]
    if not any(rules):
        return None
    return [
        None
        if rule is None
        else {"confidence": show(rule.level)}
        if isinstance(rule, Confidence)
        else {"tv_radius": show(rule.radius)}
        for rule in rules
    ]


def _report(scenario: "Scenario") -> "TableReport | None":
    return scenario.priors[0].report


def _support(scenario: "Scenario") -> dict[str, Any]:
    from pufferfish.support import Levels

    support = scenario.support
    if isinstance(support, Levels):
        return {
            "kind": "ordered levels" if support.ordered else "unordered levels",
            "size": support.size,
            "step": 1 if support.ordered else None,
            "levels": list(support.names),
        }
    return {
        "kind": "numbers",
        "size": support.size,
        "step": _number(support.step),
        "least": _number(support.value(0)),
        "greatest": _number(support.value(support.size - 1)),
        "levels": None,
    }


def channel_to_dict(channel: "Channel") -> dict[str, Any]:
    """Return a channel as JSON values: names or numbers, and the chances as doubles."""
    return {
        "inputs": _labels(channel.inputs),
        "outputs": _labels(channel.outputs),
        "rows": channel.matrix.tolist(),
    }


def _labels(support: "Support") -> list[Any]:
    from pufferfish.support import Levels

    if isinstance(support, Levels):
        return list(support.names)
    return [_number(support.value(k)) for k in range(support.size)]


def _number(value: Fraction) -> int | float | str:
    """Return the JSON number that prints the exact value, or its text where none does."""
    if value.denominator == 1:
        return value.numerator
    nearest = value.numerator / value.denominator
    return nearest if Fraction(repr(nearest)) == value else show(value)


def _support_line(scenario: "Scenario") -> str:
    from pufferfish.support import Levels

    support = scenario.support
    if isinstance(support, Levels):
        order = "with an order, step 1" if support.ordered else "without an order"
        return f"support: {support.size} levels {order}: {listed(support.names)}"
    if support.size == 1:
        return f"support: the number {support.name(0)} alone, step {show(support.step)}"
    return (
        f"support: {support.size} numbers from {support.name(0)} to "
        f"{support.name(support.size - 1)}, step {show(support.step)}"
    )


def _pairs_line(scenario: "Scenario") -> str:
    secrets, pairs = scenario.priors[0].secrets, scenario.pairs
    named = listed(f"({first}, {second})" for first, second in pairs)
    every = len(pairs) == len(secrets) * (len(secrets) - 1) // 2
    if len(pairs) == 1 and every:
        return f"secrets: {listed(secrets)}; pair: {named}"
    what = "all pairs" if every else "pair" if len(pairs) == 1 else "pairs"
    return f"secrets: {listed(secrets)}; {what}: {named}"


def _unprotected(scenario: "Scenario") -> list[str]:
    """Return a note on the secrets that no pair names, with their rows where these are known."""
    left = [secret for secret in scenario.priors[0].secrets if secret not in scenario.protected]
    if not left:
        return []
    report = _report(scenario)
    rows = {} if report is None else dict(report.secrets)
    named = listed(f"{s} ({counted(rows[s], 'row')})" if s in rows else s for s in left)
    return [
        f"in no pair, and so not protected: {named}; whoever has "
        f"{'this secret' if len(left) == 1 else 'one of these secrets'} is promised nothing"
    ]


def _numbers_as_levels(rules: "Rules") -> list[str]:
    """Return a note where an order makes levels of what would have been numbers."""
    if rules.levels is not None or not isinstance(rules.order, tuple):
        return []
    try:
        for name in rules.order:
            parse_number(name, "a level")
    except InputError:
        return []
    codes = listed(f"{name} = {code}" for code, name in enumerate(rules.order))
    return [
        f"the values of {rules.public!r} are numbers, but --order makes levels of them: released "
        f"are their codes ({codes}); leave out --order to release the numbers"
    ]
