# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, how their texts are read, and the scenario they describe."""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import click

from pufferfish.calibration.registry import applicable, default_for, method_named, why_not
from pufferfish.errors import InputError, listed
from pufferfish.files import read_strict
from pufferfish.numbers import parse_epsilon
from pufferfish.priors.prior import Prior, read_prior_file
from pufferfish.priors.scenario import Scenario

Function = TypeVar("Function", bound=Callable[..., Any])
#: Options of a table and of a prior whose plan is for a table, and those of a table alone.
_OF_BOTH = ("secret", "public", "missing", "step", "missing_as_level", "tv_radius")
_OF_TABLES = ("exclude_secrets", "levels", "unit", "delimiter", "decimal", "confidence")

PUBLIC = click.option("--public", metavar="COL", help="Column to be published.")
SECRET = click.option("--secret", metavar="COL", help="Column that holds the secret.")
PRIOR = click.option(
    "--prior", "priors", multiple=True, metavar="FILE",
    help="Prior file instead of a table; several files are several adversaries.",
)  # fmt: skip
DELIMITER = click.option(
    "--delimiter", metavar="D", callback=lambda _, __, text: "\t" if text == "tab" else text,
    help="What separates the cells of a text file: , ; | or tab.",
)  # fmt: skip
CLAMP = click.option(
    "--out-of-support", type=click.Choice(("refuse", "clamp")), default="refuse",
    show_default=True, help="What happens to a value that is not in the plan's support.",
)  # fmt: skip
_SOURCE = (
    SECRET,
    PUBLIC,
    PRIOR,
    click.option(
        "--pair", "pairs", nargs=2, multiple=True, metavar="A B",
        help="Pair of secrets that nobody may tell apart; may be repeated. By default all pairs.",
    ),
    click.option(
        "--order", metavar="V1,V2,...",
        help="Order of the levels, least first; or 'appearance' or 'alphabetical'. Noise on text "
        "needs one; levels without one go through a channel.",
    ),
    click.option(
        "--levels", metavar="V1,...",
        help="Levels of the public column, also those that no row has, and also where they look "
        "like numbers.",
    ),
    click.option(
        "--missing", multiple=True, metavar="TEXT",
        help="Text that means a missing value, besides the empty cell; may be repeated.",
    ),
    click.option(
        "--missing-as-level", is_flag=True,
        help="Make missing a level of the public column, released like any other. By default its "
        "rows are left out.",
    ),
    click.option(
        "--exclude-secret", "exclude_secrets", multiple=True, metavar="LEVEL",
        help="Leave the rows of this secret out of the prior; may be repeated.",
    ),
    click.option(
        "--step", metavar="G",
        help="Step of the lattice; numbers are rounded to it before they are counted.",
    ),
    click.option(
        "--decimal", metavar="MARK", default=".", help="Decimal mark of the numbers: . or ,"
    ),
    DELIMITER,
    click.option(
        "--unit", metavar="COL",
        help="Column whose equal values mark the rows of one person, who is protected in all of "
        "them together; by default each row is a person of its own.",
    ),
    click.option(
        "--confidence", metavar="C",
        help="Calibrate for every prior that the rows of TABLE leave possible with this "
        "confidence, such as 0.95; for 'exact' and 'channel'.",
    ),
    click.option(
        "--tv-radius", metavar="R",
        help="Calibrate for every prior within this total-variation distance, such as 0.01; for "
        "'exact' and 'channel'.",
    ),
)  # fmt: skip
_CHANNEL = (
    click.option(
        "--cost", metavar="NAME|FILE",
        help="What the channel minimises: 'hamming' (share of changed values), 'squared', "
        "'absolute', or a JSON file {value: {output: cost}}.",
    ),
    click.option(
        "--outputs", metavar="fine:K",
        help="Let the channel publish K more values between every two neighbours.",
    ),
    click.option(
        "--invariant", is_flag=True,
        help="Let the channel keep the expected frequencies as they are.",
    ),
    click.option(
        "--unbiased", is_flag=True,
        help="Let the channel's expected output be the value; widens the outputs.",
    ),
    click.option(
        "--min-keep", metavar="P",
        help="Let the channel keep each value at least this often; above 0.5 the frequencies can "
        "be estimated from a release.",
    ),
    click.option(
        "--show-channel", is_flag=True,
        help="Print the channel too: for each value the chance of each output.",
    ),
)  # fmt: skip


def source_options(function: Function) -> Function:
    """Add the options that say where the scenario comes from."""
    return _with(_SOURCE, function)


def channel_options(function: Function) -> Function:
    """Add the options that only the mechanism channel understands."""
    return _with(_CHANNEL, function)


def format_option(*forms: str) -> Callable[[Function], Function]:
    """Return the decorator of the option that chooses the form of the output."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default="table", show_default=True,
        help="Form of what is printed on standard output.",
    )  # fmt: skip


def _with(options: Sequence[Callable[[Any], Any]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def scenario_of(table: str | None, options: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a table, or of prior files, with the pairs that were named."""
    order, pairs = options["order"], options["pairs"]
    if order not in ("appearance", "alphabetical"):
        order = _levels(order, "--order")
    if not options["priors"]:
        if None in (table, options["secret"], options["public"]):
            raise InputError(
                "give a TABLE with --secret COL and --public COL, or a prior with --prior FILE"
            )
        given = {name: options[name] for name in (*_OF_BOTH, *_OF_TABLES)}
        levels = _levels(options["levels"], "--levels")
        prior = Prior.from_table(table, order=order, **given | {"levels": levels})
        return Scenario(prior, pairs=pairs or "all")
    if table is not None:
        raise InputError("the prior comes from a TABLE or from --prior FILE, not both")
    wrong = [name for name in _OF_TABLES if options[name] not in (None, (), ".")]
    if wrong:
        raise InputError(f"{listed(map(_option, wrong))} needs a TABLE, not a --prior FILE")
    files = [read_prior_file(path, order=order, step=options["step"]) for path in options["priors"]]
    priors = [prior.with_region(tv_radius=options["tv_radius"]) for prior, _ in files]
    # A file without pairs means all of them: fewer would promise less than it asks for.
    named = {frozenset(map(frozenset, own or combinations(p.secrets, 2))) for p, own in files}
    if len(named) > 1 and not pairs:
        paths = ", ".join(options["priors"])
        raise InputError(f"{paths} protect different pairs; say which with --pair A B")
    return Scenario(priors, pairs=pairs or files[0][1] or "all")


def columns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells a plan from a given prior the columns of the tables to release."""
    return {name: options[name] for name in (*_OF_BOTH, "decimal") if name != "tv_radius"}


def epsilons(given: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """Read the texts after ``--epsilon``: numbers with commas between them, and a hint on 1,5."""
    found: dict[Fraction, str] = {}
    hints = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        hint = ""
        if re.fullmatch(r"\s*\d+,\d+\s*", text):
            hint = (
                f"--epsilon {text.strip()} is the list {' and '.join(parts)}; for the number with "
                f"a decimal point write {'.'.join(parts)}"
            )
            hints.append(hint)
        try:
            for part in parts:
                found.setdefault(parse_epsilon(part), part)
        except InputError as error:
            raise InputError(f"{error} ({hint})" if hint else str(error)) from None
    if not found:
        raise InputError("--epsilon is missing: give one or several, as in --epsilon 0.1,0.5,1")
    return tuple(found.values()), "; ".join(hints)


def mechanisms(given: Iterable[str]) -> tuple[str, ...]:
    """Read the texts after ``--mechanism``: names of the registry and 'all', each once."""
    names = (part.strip() for text in given for part in text.split(","))
    return tuple(dict.fromkeys(n if n == "all" else method_named(n).name for n in names))


def check_one(epsilons: Sequence[str], hint: str, names: Sequence[str]) -> None:
    """Check that there is exactly one epsilon and one mechanism, as a plan has."""
    if len(epsilons) != 1 or hint:
        more = f" ({hint})" if hint else ""
        raise InputError(
            f"--save takes exactly one epsilon, but {listed(epsilons)} were given{more}"
        )
    if len(names) > 1 or "all" in names:
        raise InputError(f"--save takes exactly one mechanism, but {listed(names)} was given")


def resolve(names: Sequence[str], scenario: Scenario) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the mechanisms for a scenario, and why 'all' leaves out each other one."""
    for name in names:
        reason = None if name == "all" else why_not(method_named(name), scenario)
        if reason is not None:
            raise InputError(reason)
    if "all" in names:
        return applicable(scenario)
    return tuple(names) or (default_for(scenario),), {}


def channel_arguments(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return what was asked of the channel, as arguments of ``calibrate``; reads a cost file."""
    asked = ("cost", "outputs", "invariant", "unbiased", "min_keep")
    given = {name: options[name] for name in asked if options[name] not in (None, False)}
    words = [_option(name) for name in (*given, "show_channel") if options[name]]
    if words and "channel" not in names:
        raise InputError(
            f"{listed(words)}: for the mechanism channel, but {listed(names)} is computed; ask for "
            "it with --mechanism channel"
        )
    if Path(given.get("cost", "")).suffix:
        given["cost"] = read_strict(Path(given["cost"]), "the cost file")
    return given


def _option(name: str) -> str:
    return f"--{name.replace('exclude_secrets', 'exclude_secret').replace('_', '-')}"


def _levels(text: str | None, option: str) -> list[str] | None:
    """Read a list as one line of CSV: a level that holds a comma stands in double quotes."""
    if text is None:
        return None
    found = [item.strip() for row in csv.reader([text], skipinitialspace=True) for item in row]
    if not found or "" in found:
        raise InputError(
            f"{option} takes levels with commas between them, as in low,mid,high, but {text!r} "
            "was given"
        )
    return found
