# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and how their texts are read."""

import csv
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import click

from pufferfish.errors import InputError, did_you_mean, listed

Function = TypeVar("Function", bound=Callable[..., Any])

#: What an order may be instead of a list of levels.
NAMED_ORDERS = ("appearance", "alphabetical")


def one_of(*words: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return the callback of an option that takes one of a few words.

    click has a type for this, but its messages name no near match.
    """

    def check(ctx: click.Context, param: click.Parameter, value: str) -> str:
        word = str(value).strip().casefold()
        if word not in words:
            raise InputError(
                f"{param.opts[-1]} must be {', '.join(words[:-1])} or {words[-1]}, but {value!r} "
                f"was given{did_you_mean(word, words)}"
            )
        return word

    return check


@dataclass(frozen=True)
class Source:
    """Where a scenario comes from: a table or prior files, and the options that go with them.

    Attributes
    ----------
    table : str or None
    priors : tuple of str
        Prior files, one for each adversary.
    secret, public : str or None
        Columns of the table.
    pairs : tuple of (str, str)
        Empty: all, or those of the prior files.
    order : str, list of str or None
    levels : list of str or None
    missing, exclude_secrets : tuple of str
    step : str or None
    missing_as_level : bool
    unit : str or None
        Column whose equal values mark the rows of one person.
    confidence, tv_radius : str or None
        How far the true distributions may be from the prior.
    """

    table: str | None = None
    priors: tuple[str, ...] = ()
    secret: str | None = None
    public: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    order: str | list[str] | None = None
    levels: list[str] | None = None
    missing: tuple[str, ...] = ()
    exclude_secrets: tuple[str, ...] = ()
    step: str | None = None
    missing_as_level: bool = False
    unit: str | None = None
    confidence: str | None = None
    tv_radius: str | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the options that were used."""
        used = {
            "--prior": self.priors,
            "--secret": self.secret,
            "--public": self.public,
            "--pair": self.pairs,
            "--order": self.order,
            "--levels": self.levels,
            "--missing": self.missing,
            "--exclude-secret": self.exclude_secrets,
            "--step": self.step,
            "--missing-as-level": self.missing_as_level,
            "--unit": self.unit,
            "--confidence": self.confidence,
            "--tv-radius": self.tv_radius,
        }
        return tuple(name for name, value in used.items() if value not in (None, (), False))


def source_options(function: Function) -> Function:
    """Add the options that say where the scenario comes from."""
    for option in reversed(
        (
            click.option("--secret", metavar="COL", help="Column that holds the secret."),
            click.option("--public", metavar="COL", help="Column to be published."),
            click.option(
                "--prior", "priors", multiple=True, metavar="FILE",
                help="Prior file instead of what a table says; several files are several "
                "adversaries.",
            ),
            click.option(
                "--pair", "pairs", nargs=2, multiple=True, metavar="A B",
                help="Pair of secrets that nobody may tell apart; may be repeated. By default all "
                "pairs.",
            ),
            click.option(
                "--order", metavar="V1,V2,...",
                help="Order of the levels, least first; or 'appearance' or 'alphabetical'. Noise "
                "on text needs one; without it levels go through a channel.",
            ),
            click.option(
                "--levels", metavar="V1,...",
                help="Levels of the public column: also those that no row has, and also where they "
                "look like numbers.",
            ),
            click.option(
                "--missing", multiple=True, metavar="TEXT",
                help="Text that means a missing value, beside the empty cell; may be repeated.",
            ),
            click.option(
                "--missing-as-level", is_flag=True,
                help="Make missing a level of the public column, released like any other; not for "
                "numbers. By default its rows are left out.",
            ),
            click.option(
                "--exclude-secret", "exclude_secrets", multiple=True, metavar="LEVEL",
                help="Leave the rows of this secret out of the prior; may be repeated.",
            ),
            click.option(
                "--step", metavar="G",
                help="Step of the lattice; values are rounded to it before they are counted.",
            ),
            click.option(
                "--unit", metavar="COL",
                help="Column whose equal values mark the rows of one person, who is then protected "
                "in all of them together; by default each row is a person of its own.",
            ),
            click.option(
                "--confidence", metavar="C",
                help="Calibrate for every prior that the rows of TABLE leave possible with this "
                "confidence, such as 0.95; only 'exact' and 'channel' can.",
            ),
            click.option(
                "--tv-radius", metavar="R",
                help="Calibrate for every prior within this total-variation distance of the one "
                "counted or given, such as 0.01; only 'exact' and 'channel' can.",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def format_option(function: Function) -> Function:
    """Add the option that chooses the form of the output."""
    return click.option(
        "--format",
        "form",
        callback=one_of("table", "json", "csv"),
        metavar="[table|json|csv]",
        default="table",
        show_default=True,
        help="Form of what is printed on standard output.",
    )(function)


def make_source(table: str | None, options: dict[str, Any]) -> Source:
    """Return the source that the options of :func:`source_options` describe.

    Raises
    ------
    InputError
        If a list of levels cannot be read.
    """
    return Source(
        table=table,
        priors=options["priors"],
        secret=options["secret"],
        public=options["public"],
        pairs=options["pairs"],
        order=_order(options["order"]),
        levels=None if options["levels"] is None else _listed_texts(options["levels"], "--levels"),
        missing=options["missing"],
        exclude_secrets=options["exclude_secrets"],
        step=options["step"],
        missing_as_level=options["missing_as_level"],
        unit=options["unit"],
        confidence=options["confidence"],
        tv_radius=options["tv_radius"],
    )


def check_given(source: Source) -> None:
    """Check that there is something to calibrate for, before any other option is looked at.

    Raises
    ------
    InputError
        If neither a table nor a prior is given.
    """
    if source.table is None and not source.priors:
        raise InputError("give a TABLE with --secret and --public, or a prior with --prior FILE")


@dataclass(frozen=True)
class Epsilons:
    """Every epsilon that was asked for.

    Attributes
    ----------
    texts : tuple of str
        As they were written, each number once.
    hint : str
        Said to the user where a comma may have been meant as a decimal point; else empty.
    """

    texts: tuple[str, ...]
    hint: str = ""

    def only(self, what: str) -> str:
        """Return the only one, for a command that takes no more.

        Raises
        ------
        InputError
            If there are several, or a comma may have been meant as a decimal point.
        """
        if self.hint and len(self.texts) == 1:
            raise InputError(f"{what} takes exactly one epsilon; {self.hint}")
        hint = f" ({self.hint})" if self.hint else ""
        return exactly_one(self.texts, "epsilon", what, hint)


def epsilons(given: Iterable[str]) -> Epsilons:
    """Read the texts after ``--epsilon``, each one number or several with commas between them.

    Raises
    ------
    InputError
        If there is none, or one is no number above 0.
    """
    from pufferfish.rationals import parse_epsilon

    found: dict[Fraction, str] = {}
    hints = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        hint = ""
        if re.fullmatch(r"\s*\d+,\d+\s*", text):
            what = (
                f"{parts[0]} twice" if parts[0] == parts[1] else f"the list {' and '.join(parts)}"
            )
            hint = (
                f"--epsilon {text.strip()} is {what}; for the number with a decimal point write "
                f"{'.'.join(parts)}"
            )
        if "" in parts:
            raise InputError(
                f"--epsilon takes numbers with commas and no blanks between them, as in "
                f"0.1,0.5,1, but {text!r} was given"
            )
        try:
            exact = [parse_epsilon(part) for part in parts]
        except InputError as error:
            raise InputError(f"{error} ({hint})" if hint else str(error)) from None
        for number, part in zip(exact, parts, strict=True):
            found.setdefault(number, part)
        hints.append(hint)
    if not found:
        raise InputError("--epsilon is missing: give one or several, as in --epsilon 0.1,0.5,1")
    return Epsilons(tuple(found.values()), "; ".join(hint for hint in hints if hint))


def one_text(option: str, given: Iterable[str], error: str) -> str:
    """Return a hint for an option that was given several texts at once, or nothing.

    Parameters
    ----------
    option : str
        An option that takes one text and may be repeated.
    given : iterable of str
        What it was given.
    error : str
        What went wrong; the hint is for those texts with a comma that it names.
    """
    several = [text for text in given if "," in text and text in error]
    if not several:
        return ""
    parts = [part.strip() for part in several[0].split(",")]
    repeated = " ".join(f"{option} {shlex.quote(part)}" for part in parts if part)
    return f"; {option} takes one text; repeat the option: {repeated}"


def exactly_one(items: Sequence[str], kind: str, what: str, hint: str = "") -> str:
    """Return the only item.

    Raises
    ------
    InputError
        If there are several.
    """
    if len(items) != 1:
        raise InputError(f"{what} takes exactly one {kind}, but {listed(items)} were given{hint}")
    return items[0]


def _order(text: str | None) -> str | list[str] | None:
    if text is None:
        return None
    word = text.strip().casefold()
    if word in NAMED_ORDERS:
        return word
    levels = _listed_texts(text, "--order")
    if len(levels) == 1:
        raise InputError(
            f"--order must be a list of levels, 'appearance' or 'alphabetical', but {text!r} was "
            f"given{did_you_mean(word, NAMED_ORDERS)}"
        )
    return levels


def _listed_texts(text: str, option: str) -> list[str]:
    """Read a list as one line of CSV: a level that holds a comma stands in double quotes."""
    rows = list(csv.reader([text], skipinitialspace=True))
    texts = [item.strip() for row in rows for item in row]
    if not texts or "" in texts:
        raise InputError(
            f"{option} takes levels with commas between them, as in low,mid,high, but {text!r} "
            "was given"
        )
    return texts
