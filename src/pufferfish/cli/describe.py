# SPDX-License-Identifier: Apache-2.0
"""What a scenario is, in words for people and as JSON values for programs."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.options import Source
from pufferfish.errors import InputError, listed
from pufferfish.rationals import parse_number, show
from pufferfish.texts import counted

if TYPE_CHECKING:
    from pufferfish.mechanisms import DiscreteLaplace
    from pufferfish.scenario import Scenario
    from pufferfish.tables import Rules, TableReport


def notes_of(scenario: "Scenario") -> tuple[str, ...]:
    """Return what was decided about the input, each once."""
    notes = [note for prior in scenario.priors for note in prior.notes]
    for prior in scenario.priors:
        if prior.report is not None:
            notes += [*prior.report.notes, *_numbers_as_levels(prior.report.rules)]
    return tuple(dict.fromkeys([*notes, *_unprotected(scenario)]))


def proved_by(method: str) -> str:
    """Return how a certificate was proved, in words."""
    words = {"ball": "ball arithmetic", "float-bound": "a floating-point bound"}
    how, _, more = method.partition("+")
    return words.get(how, how) + (" and exact rationals" if more == "rational" else "")


def nearly_unchanged(noise: "DiscreteLaplace") -> str:
    """Return in words how often the noise is 0, or nothing where that is at most nine in ten times.

    P(noise = 0) = (1 - a) / (1 + a) with a = exp(-step / scale) (theory, section 1).
    """
    if noise.scale == 0:
        return ""
    rate = noise.step / Fraction(noise.scale)
    a = math.exp(-float(min(rate, Fraction(700))))
    if (1 - a) / (1 + a) <= 0.9:
        return ""
    # Cut off, not rounded: the noise is never 0 for 100 % of the values.
    share = math.floor(1000 * (1 - a) / (1 + a)) / 10
    return f"for {share:.1f} %" if share < 99.9 else "for more than 99.9 %"


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


def _report(scenario: "Scenario") -> "TableReport | None":
    return scenario.priors[0].report


def _support(scenario: "Scenario") -> dict[str, Any]:
    from pufferfish.support import Levels

    support = scenario.support
    if isinstance(support, Levels):
        kind = "ordered levels" if support.ordered else "unordered levels"
        return {"kind": kind, "size": support.size, "step": 1, "levels": list(support.names)}
    return {
        "kind": "numbers",
        "size": support.size,
        "step": _number(support.step),
        "least": _number(support.value(0)),
        "greatest": _number(support.value(support.size - 1)),
        "levels": None,
    }


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
        order = "with an order" if support.ordered else "without an order"
        return f"support: {support.size} levels {order}, step 1: {listed(support.names)}"
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
