# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, how their texts are read, and the scenario they describe."""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from pufferfish.calibration.registry import applicable, default_for, method_named, why_not
from pufferfish.errors import InputError, listed
from pufferfish.files import read_strict
from pufferfish.numbers import parse_epsilon
from pufferfish.priors.prior import Prior, read_prior_file
from pufferfish.priors.scenario import Scenario

Decorator = Callable[[Any], Any]
#: Options of a table and of a prior whose plan is for a table, and those of a table alone.
_OF_BOTH = ("secret", "public", "missing", "step", "missing_as_level")
_OF_TABLES = ("exclude_secrets", "levels", "unit", "delimiter", "decimal", "confidence")


def option(usage: str, text: str, *name: str, **more: Any) -> Decorator:
    """Return the decorator of an option; ``usage`` is as in the help, as in ``--pair A B``.

    An option without a value is a flag.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    values = usage.split()[len(names) :]
    if values:
        more |= {"metavar": " ".join(values), "nargs": len(values)}
    return click.option(*names, *name, help=text, is_flag=not values or None, **more)


def choice(name: str, forms: Sequence[str], text: str) -> Decorator:
    """Return the decorator of an option that takes one of some words, by default the first."""
    return click.option(
        *name.split(), type=click.Choice(forms), default=forms[0], show_default=True, help=text
    )


def format_option(*forms: str) -> Decorator:
    """Return the decorator of the option that chooses the form of the output."""
    return choice("--format form", forms, "Form of what is printed on standard output.")


def together(*decorators: Decorator) -> Decorator:
    """Return several decorators as one."""
    return lambda function: reduce(lambda f, decorator: decorator(f), decorators[::-1], function)


PUBLIC = option("--public COL", "Column to be published.")
SECRET = option("--secret COL", "Column that holds the secret.")
PRIOR = option(
    "--prior FILE", "Prior file instead of a table; several files are several adversaries.",
    "priors", multiple=True,
)  # fmt: skip
DELIMITER = option(
    "--delimiter D", "What separates the cells of a text file: , ; | or tab.",
    callback=lambda _, __, text: "\t" if text == "tab" else text,
)  # fmt: skip
CLAMP = choice(
    "--out-of-support", ("refuse", "clamp"),
    "What happens to a value that is not in the plan's support.",
)  # fmt: skip
FORCE = option("--force", "Replace files that exist.")
#: Where the scenario comes from.
source_options = together(
    SECRET,
    PUBLIC,
    PRIOR,
    option(
        "--pair A B", "Pair of secrets that nobody may tell apart; may be repeated. By default all "
        "pairs.", "pairs", multiple=True,
    ),
    option(
        "--order V1,V2,...", "Order of the levels, least first; or 'appearance' or 'alphabetical'. "
        "Noise on text needs one; levels without one go through a channel.",
    ),
    option(
        "--levels V1,...", "Levels of the public column, also those that no row has, and also "
        "where they look like numbers.",
    ),
    option(
        "--missing TEXT", "Text that means a missing value, besides the empty cell; may be "
        "repeated.", multiple=True,
    ),
    option(
        "--missing-as-level", "Make missing a level of the public column, released like any "
        "other. By default its rows are left out.",
    ),
    option(
        "--exclude-secret LEVEL", "Leave the rows of this secret out of the prior; may be "
        "repeated.", "exclude_secrets", multiple=True,
    ),
    option(
        "--step G", "Step of the lattice; numbers are rounded to it before they are counted."
    ),
    option("--decimal MARK", "Decimal mark of the numbers: . or ,", default="."),
    DELIMITER,
    option(
        "--unit COL", "Column whose equal values mark the rows of one person, who is protected in "
        "all of them together; by default each row is a person of its own.",
    ),
    option(
        "--confidence C", "Calibrate for every prior that the rows of TABLE leave possible with "
        "this confidence, such as 0.95; for 'exact' and 'channel'.",
    ),
    option(
        "--tv-radius R", "Calibrate for every prior within this total-variation distance, such as "
        "0.01; for 'exact' and 'channel'.",
    ),
)  # fmt: skip
#: What only the mechanism channel understands.
channel_options = together(
    option(
        "--cost NAME|FILE", "What the channel minimises: 'hamming' (share of changed values), "
        "'squared', 'absolute', or a JSON file {value: {output: cost}}.",
    ),
    option(
        "--outputs fine:K", "Let the channel publish K more values between every two neighbours."
    ),
    option("--invariant", "Let the channel keep the expected frequencies as they are."),
    option(
        "--unbiased", "Let the channel's expected output be the value; widens the outputs."
    ),
    option(
        "--min-keep P", "Let the channel keep each value at least this often; above 0.5 the "
        "frequencies can be estimated from a release.",
    ),
    option("--show-channel", "Print the channel too: for each value the chance of each output."),
)  # fmt: skip


def scenario_of(table: str | None, options: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a table, or of prior files, with the pairs that were named."""
    order, pairs, files = options["order"], options["pairs"], options["priors"]
    if order not in ("appearance", "alphabetical"):
        order = _levels(order, "--order")
    asked = None not in (table, options["secret"], options["public"])
    if bool(files) == (table is not None) or not (files or asked):
        raise InputError(
            "give a TABLE with --secret COL and --public COL, or a prior with --prior FILE, not "
            "both"
        )
    if not files:
        given = {name: options[name] for name in (*_OF_BOTH, *_OF_TABLES, "tv_radius")}
        given |= {"order": order, "levels": _levels(options["levels"], "--levels")}
        return Scenario(Prior.from_table(table, **given), pairs=pairs or "all")
    wrong = [name for name in _OF_TABLES if options[name] not in (None, (), ".")]
    if wrong:
        raise InputError(f"{listed(map(_option, wrong))} needs a TABLE, not a --prior FILE")
    found = [read_prior_file(path, order=order, step=options["step"]) for path in files]
    # A file without pairs means all of them: fewer would promise less than it asks for.
    named = {frozenset(map(frozenset, own or combinations(p.secrets, 2))) for p, own in found}
    if len(named) > 1 and not pairs:
        raise InputError(f"{', '.join(files)} protect different pairs; say which with --pair A B")
    priors = [prior.with_region(tv_radius=options["tv_radius"]) for prior, _ in found]
    return Scenario(priors, pairs=pairs or found[0][1] or "all")


def columns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells a plan from a given prior the columns of the tables to release."""
    return {name: options[name] for name in (*_OF_BOTH, "decimal")}


def epsilons(given: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """Read the texts after ``--epsilon``: numbers with commas between them, and a hint on 1,5."""
    hint = "; ".join(
        f" (--epsilon {text} is the list {text.replace(',', ' and ')}; for the number with a "
        f"decimal point write {text.replace(',', '.')})"
        for text in given
        if re.fullmatch(r"\d+,\d+", text)
    )
    try:
        found = {parse_epsilon(part): part for text in given for part in _parts(text)}
    except InputError as error:
        raise InputError(f"{error}{hint}") from None
    if not found:
        raise InputError("--epsilon is missing: give one or several, as in --epsilon 0.1,0.5,1")
    return tuple(found.values()), hint


def mechanisms(given: Iterable[str]) -> tuple[str, ...]:
    """Read the texts after ``--mechanism``: names of the registry and 'all', each once."""
    names = (part for text in given for part in _parts(text))
    return tuple(dict.fromkeys(n if n == "all" else method_named(n).name for n in names))


def check_one(epsilons: Sequence[str], hint: str, names: Sequence[str]) -> None:
    """Check that there is exactly one epsilon and one mechanism, as a plan has."""
    if len(epsilons) > 1 or len(names) > 1 or "all" in names:
        given = listed((*epsilons, *names))
        raise InputError(
            f"--save takes exactly one epsilon and one mechanism, but {given} were given{hint}"
        )


def resolve(names: Sequence[str], scenario: Scenario) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the mechanisms for a scenario, and why 'all' leaves out each other one."""
    reasons = [why_not(method_named(name), scenario) for name in names if name != "all"]
    for reason in filter(None, reasons):
        raise InputError(reason)
    if "all" in names:
        return applicable(scenario)
    return tuple(names) or (default_for(scenario),), {}


def channel_arguments(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return what was asked of the channel, as arguments of ``calibrate``; reads a cost file."""
    asked = ("cost", "outputs", "invariant", "unbiased", "min_keep")
    given = {name: options[name] for name in asked if options[name] not in (None, False)}
    if (given or options["show_channel"]) and "channel" not in names:
        words = listed(map(_option, given or ("show_channel",)))
        raise InputError(f"{words}: for --mechanism channel, but {listed(names)} is computed")
    if Path(given.get("cost", "")).suffix:
        given["cost"] = read_strict(Path(given["cost"]), "the cost file")
    return given


def _option(name: str) -> str:
    return f"--{name.replace('exclude_secrets', 'exclude_secret').replace('_', '-')}"


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _levels(text: str | None, option: str) -> list[str] | None:
    """Read a list as one line of CSV: a level that holds a comma stands in double quotes."""
    if text is None:
        return None
    found = [item.strip() for row in csv.reader([text], skipinitialspace=True) for item in row]
    if not found or "" in found:
        raise InputError(f"{option} takes levels, as in low,mid,high, but {text!r} was given")
    return found
