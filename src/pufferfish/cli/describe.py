# SPDX-License-Identifier: Apache-2.0
"""What a scenario is, in words for people and as JSON values for programs."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.digits import exact_number, rounded_up
from pufferfish.cli.options import Source
from pufferfish.errors import InputError, counted, listed
from pufferfish.rationals import float_up, parse_number, show

if TYPE_CHECKING:
    from pufferfish.scenario import Scenario
    from pufferfish.tables import Rules, TableReport

#: What a report says of declared values that no row has; false under a region.
OF_NO_ROW = "of probability 0 but"


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
        "warnings": [],
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
        "step": exact_number(support.step),
        "least": exact_number(support.value(0)),
        "greatest": exact_number(support.value(support.size - 1)),
        "levels": None,
    }


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
