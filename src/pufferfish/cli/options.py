# SPDX-License-Identifier: Apache-2.0
"""Options as they stand in the help, how their texts are read, and the scenario they describe."""

import csv
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pufferfish.calibration.noisy_counts import noisy_counts
from pufferfish.calibration.registry import method_named
from pufferfish.errors import InputError, listed
from pufferfish.files import read_strict
from pufferfish.numbers import parse_epsilon, parse_number
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import scenario_of_priors, scenario_of_table
from pufferfish.priors.prior import Prior, read_prior_file
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MOST_CELLS, NAMED_ORDERS
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table

#: A usage, two blanks, and a meaning that goes on in the indented lines that follow.
_ENTRY = re.compile(r"^(-.*?)  (.*\n(?:  .*\n)*)", re.MULTILINE)

#: Options of several commands.
PRIOR = "--prior FILE ...  Prior file instead of a table; several files are several adversaries.\n"
DELIMITER = """\
--delimiter D  What separates the cells of a text file: , ; | or tab.
--memory-limit SIZE  Memory that reading TABLE may take, such as 2GB; by default a quarter of the
    machine's.
"""
READING = f"""\
--sql QUERY  SELECT statement whose answer is the table: asked of TABLE, a DuckDB or SQLite file, or
    without TABLE of the files that it names, as in "SELECT * FROM 'rows.parquet'".
{DELIMITER}"""
CLAMP = (
    "--out-of-support refuse|clamp  What happens to a value that is not in the plan's support.\n"
)
FORCE = "--force  Replace files that exist.\n"
#: Options of a table, and of a prior whose plan is for a table; options of a table alone; options
#: of a channel.
OF_BOTH = ("secret", "public", "missing", "step", "missing_as_level")
_OF_TABLES = ("exclude_secret", "levels", "range", "unit", "decimal", "confidence", "publishable")
_OF_READING = ("sql", "delimiter", "memory_limit")
#: Options that noisy counts cannot have.
_OF_ROWS = ("exclude_secret", "unit", "tv_radius", "prior")
_OF_CHANNELS = ("best_for", "cost", "outputs", "invariant", "unbiased", "min_keep")


def options(text: str) -> Callable[[Any], Any]:
    """Return the decorator of options that are written as in a help: usage, two blanks, meaning.

    An option without a value is a flag. After the value, ``...`` stands where the option may be
    repeated, and ``(required)`` where it must be given. A value ``a|b`` is one of these words, by
    default the first; ``N`` is an integer.
    """

    def decorated(function: Any) -> Any:
        for usage, meaning in reversed(_ENTRY.findall(text)):
            words = usage.split()
            names = [word for word in words if word.startswith("-")]
            values = [word for word in words if word not in (*names, "...", "(required)")]
            more: dict[str, Any] = {"is_flag": True}
            if values:
                more = {"metavar": " ".join(values), "nargs": len(values)}
                more |= {"multiple": "..." in words, "required": "(required)" in words}
            if values == ["N"]:
                more["type"] = int
            elif values and "|" in usage and values[0].islower():
                forms = values[0].split("|")
                more |= {"type": click.Choice(forms), "default": forms[0], "show_default": True}
            help_text = " ".join(meaning.split())
            function = click.option(*names, help=help_text, **more)(function)
        return function

    return decorated


def opened(
    table: str | None, options: dict[str, Any], needed: bool = False, ledger: Any = None
) -> Any:
    """Return TABLE, or the answer to --sql, or None; the options of both leave ``options``."""
    given = {name: options.pop(name, None) for name in _OF_READING}
    if table is None and given["sql"] is None:
        if needed:
            raise InputError("give a TABLE, or --sql")
        refuse_others(given, "not without a TABLE")
        return None
    if ledger is not None and given["sql"] is not None:
        raise InputError(
            "--sql: not with --ledger, whose datasets are tables that stay as they are; save the "
            "answer as a file"
        )
    people = options.get("format", "table") == "table"  # whom progress is for
    shows = people and sys.stdout is not None and sys.stdout.isatty()
    return open_table(table, progress=shows, **given)


def scenario_of(table: Table | None, options: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a table, or of prior files, with the pairs that were named."""
    pairs, files, order = options["pair"], options["prior"], options["order"]
    if order not in (None, *NAMED_ORDERS):
        order = name_list(order, "--order")
    if bool(files) == (table is not None) and not (table is None and options["publishable"]):
        raise InputError(
            "give a TABLE with --secret COL and --public COL, or a prior with --prior FILE, not "
            "both"
        )
    lacking = [f"--{name} COL" for name in ("secret", "public") if options[name] is None]
    if lacking and not files:
        raise InputError(f"{' and '.join(lacking)} must be given with a TABLE")
    if not files:
        given = {name: options[name] for name in (*OF_BOTH, *_OF_TABLES, "tv_radius")}
        epsilon, ends = given.pop("publishable"), given.pop("range")
        if ends is not None:
            given["support"] = _numbers(ends, options["step"] or "1")
        levels = None if options["levels"] is None else name_list(options["levels"], "--levels")
        given |= {"order": order, "levels": levels, "decimal": options["decimal"] or "."}
        given["exclude_secrets"] = given.pop("exclude_secret")
        if epsilon is not None:
            for name in ("exclude_secrets", "unit", "tv_radius"):
                del given[name]
            given["confidence"] = given["confidence"] or "0.95"
            return noisy_counts(table, epsilon, pairs=pairs, **given)
        return Scenario(Prior.from_table(table, **given), pairs=pairs or "all")
    refuse_others({name: options[name] for name in _OF_TABLES}, "not without a TABLE")
    found = [read_prior_file(path, order=order, step=options["step"]) for path in files]
    # A file without pairs means all of them: fewer would promise less than it asks for.
    named = {own and frozenset(map(frozenset, own)) for _, own in found}
    if len(named) > 1 and not pairs:
        raise InputError(f"{', '.join(files)} protect different pairs; say which with --pair A B")
    priors = [prior.with_region(tv_radius=options["tv_radius"]) for prior, _ in found]
    return Scenario(priors, pairs=pairs or found[0][1] or "all")


def scenario_known(plan: Plan, alone: bool, table: Table | None, files: Any) -> Scenario | None:
    """Return the scenario of a table or of prior files for a plan; ``alone``: it needs none."""
    if alone and (table or files):
        raise InputError("this is of PLAN alone: leave out TABLE and --prior")
    if not alone and (table is None) == (not files):
        raise InputError("give the prior: a TABLE (or --sql QUERY) or --prior FILE, and not both")
    scenario = scenario_of_priors(plan, files) if files else None
    return scenario if table is None else scenario_of_table(plan, table)


class WithMechanisms(click.Command):
    """A command whose help ends with its ``mechanisms``, by their names."""

    def __init__(self, *args: Any, mechanisms: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mechanisms = mechanisms

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each of the mechanisms is."""
        with formatter.section("Mechanisms"):
            formatter.write_dl(list(self.mechanisms.items()))


def epsilons(
    given: Iterable[str], note: Callable[[str], None] | None = None, budget: str | None = None
) -> tuple[str, ...]:
    """Read the texts after ``--epsilon``: numbers with commas between them.

    A ledger's budget stands for none and limits all. What may be a decimal comma is noted.
    """
    texts = tuple(given) or (() if budget is None else (budget,))
    found = {parse_epsilon(part): part for part in _parts(texts)}
    if not found:
        raise InputError("--epsilon is missing: give one or several, as in --epsilon 0.1,0.5,1")
    for text in texts:
        if note is not None and re.fullmatch(r"\d+,\d+", text):
            note(f"--epsilon {text} is the list {text.replace(',', ' and ')}")
    if budget is not None:
        return tuple(dict.fromkeys(min(t, budget, key=parse_epsilon) for t in found.values()))
    return tuple(found.values())


def mechanisms(given: Iterable[str]) -> tuple[str, ...]:
    """Read the texts after ``--mechanism``: names of the registry and 'all', each once."""
    names = (name if name == "all" else method_named(name).name for name in _parts(given))
    return tuple(dict.fromkeys(names))


def check_publishable(options: Mapping[str, Any]) -> None:
    """Refuse, before any noise is drawn, what a plan from noisy counts cannot have."""
    if options["publishable"] is None:
        raise InputError("--hold-out needs --publishable EPS1: a private plan has no EPS1 to save")
    if options["hold_out"] is not None and options["ledger"] is not None:
        raise InputError("--ledger: not with --hold-out, as REST is a dataset of its own")
    refuse_others({name: options[name] for name in _OF_ROWS}, "not with --publishable")
    if options["save"] is None:
        raise InputError("--publishable needs --save FILE, where the noisy counts are kept")


def channel_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked of the channel, as arguments of ``calibrate``; reads its files."""
    given = {name: options[name] for name in _OF_CHANNELS if options[name] not in (None, False)}
    for name, what in (("cost", "the cost file"), ("best_for", "the matrix of statistics")):
        if not given.get(name, "hamming").isalpha():  # names are letters alone, others are files
            given[name] = read_strict(Path(given[name]), what)
    return given


def refuse_others(others: Mapping[str, Any], why: str = "not for the plan of a query") -> None:
    """Refuse options that are not left at what they are by default."""
    by_default = (None, False, (), "refuse", "stationary")
    if wrong := [name for name, value in others.items() if value not in by_default]:
        raise InputError(f"{listed(f'--{name}'.replace('_', '-') for name in wrong)}: {why}")


def _parts(texts: Iterable[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",")]


def _numbers(ends: tuple[str, str], step: str) -> list[Fraction | int]:
    found = (parse_number(text, "--range and --step") for text in (*ends, step))
    # Of integers, which take less time, there may be many.
    first, last, each = (n if n.denominator > 1 else n.numerator for n in found)
    if not first < last or each <= 0 or (last - first) / each > MOST_CELLS or (last - first) % each:
        raise InputError(
            f"--range takes LO HI, such as 0 20, some steps of {step} apart and at most "
            f"{MOST_CELLS:,}, but {' '.join(ends)} was given"
        )
    return [first + k * each for k in range((last - first) // each + 1)]


def columns(given: Iterable[str], option: str) -> list[str]:
    """Read the texts after ``--secret`` or ``--public`` where they may name several columns."""
    return [name for text in given for name in name_list(text, option, "columns, as in age,sex")]


def name_list(text: str, option: str, what: str = "levels, as in low,mid,high") -> list[str]:
    """Read a list as one line of CSV: a level that holds a comma stands in double quotes."""
    try:
        found = [item.strip() for row in csv.reader([text], skipinitialspace=True) for item in row]
    except csv.Error:  # of a line end without quotes
        found = []
    if not found or "" in found:
        raise InputError(f"{option} takes {what}, but {text!r} was given")
    return found
