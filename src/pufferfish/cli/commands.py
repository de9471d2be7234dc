# SPDX-License-Identifier: Apache-2.0
"""Commands that notice a forgotten or an overridden value, and help that lists the mechanisms."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import click

from pufferfish.cli.options import NAMED_ORDERS
from pufferfish.errors import InputError

#: Options whose values stand in one word with commas, and those that are repeated instead.
_WITH_COMMAS = ("--epsilon", "--mechanism", "--order", "--levels")
_REPEATED = ("--prior", "--missing", "--exclude-secret", "--keep")
#: What to do instead of giving one of these options twice.
_INSTEAD = {
    "--public": "a plan is for one column: make one plan for each, and count what their releases "
    "tell together with pufferfish ledger, or in Python with Prior.from_table(..., public=[...])",
}


@dataclass(frozen=True)
class _Loose:
    """A word that is no option and no option's value, and the option right before it."""

    word: str
    option: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Given:
    """An option with the values that belong to it."""

    option: str
    values: tuple[str, ...]


class StrictCommand(click.Command):
    """A command in which no option is taken for a value, and no value silently overrides another.

    A value that looks like one of the command's options can still be given as ``--option=value``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, after a look for values that are too few or too many."""
        if not ctx.resilient_parsing:
            found, loose = self._look_through(ctx, args)
            self._check_once(ctx, found)
            hint = self._hint(loose, "--prior" in {arg.partition("=")[0] for arg in args})
            if hint:
                raise click.UsageError(hint, ctx)
        return super().parse_args(ctx, args)

    def _look_through(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[list[_Given], list[_Loose]]:
        options = {
            name: param.nargs if not getattr(param, "is_flag", False) else 0
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            for name in param.opts
        }
        found: list[_Given] = []
        loose: list[_Loose] = []
        option, place = "", 0
        values: tuple[str, ...] = ()
        while place < len(args) and args[place] != "--":
            word, wanted = args[place], options.get(args[place], 0)
            given = tuple(args[place + 1 : place + 1 + wanted])
            _check_values(word, wanted, given, options)
            place += 1 + wanted
            name, equals, value = word.partition("=")
            if word in options:
                option, values = word, given
                found.append(_Given(option, values))
            elif equals and name in options and not name.startswith("--"):
                raise InputError(
                    f"write {name} {shlex.quote(value)}: in {word!r} the sign = would be part of "
                    "the value"
                )
            elif equals and name in options:
                rest = max(options[name] - 1, 0)
                option, values = name, (value, *args[place : place + rest])
                taken = [other for other in values[1:] if other in options]
                if taken:
                    raise InputError(
                        f"{name} needs {options[name]} values, but the option {taken[0]} follows it"
                    )
                place += rest
                found.append(_Given(option, values))
            elif word[:2] != "--" and options.get(word[:2]):
                option, values = word[:2], (word[2:],)
                found.append(_Given(option, values))
            elif word.startswith("-"):
                option, values = "", ()
            else:
                loose.append(_Loose(word, option, values))
                # What follows a loose word belongs to the same option, until a file comes.
                values = (*values, word) if option and not os.path.exists(word) else ()
                option = option if values else ""
        return found, loose

    def _check_once(self, ctx: click.Context, found: Iterable[_Given]) -> None:
        """Refuse an option of one value that was given twice, instead of forgetting the first."""
        once = {
            name: param.opts[-1]
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.multiple
            for name in param.opts
        }
        given: dict[str, list[_Given]] = {}
        for each in found:
            if each.values and each.option in once:
                given.setdefault(once[each.option], []).append(each)
        for name, several in given.items():
            if len(several) > 1:
                texts = [" ".join(map(repr, each.values)) for each in several]
                said = f"{', '.join(texts[:-1])} and {texts[-1]}"
                instead = _instead(name, [each.values[0] for each in several])
                raise InputError(
                    f"{several[0].option} can be given only once, but {said} were given{instead}"
                )

    def _hint(self, loose: list[_Loose], from_prior: bool) -> str:
        """Return what is wrong with the first word that was meant for the option before it."""
        places = [param for param in self.params if isinstance(param, click.Argument)]
        # With --prior nobody can mean a table where one is not needed.
        allowed = sum(1 for param in places if param.required or not from_prior)
        for found in loose:
            option = found.option
            if option not in (*_WITH_COMMAS, *_REPEATED) or not found.values:
                continue
            if os.path.exists(found.word) and option != "--prior":
                continue
            number = option == "--epsilon" and _is_number(found.word)
            if not number and (len(loose) <= allowed or option == "--epsilon"):
                continue
            last = [other for other in loose if other.option == option][-1]
            words = [*last.values, last.word]
            if option != "--prior":
                words = [word for word in words if not os.path.exists(word)]
            if option in _WITH_COMMAS:
                how = f"separate several by commas: {option} {shlex.quote(','.join(words))}"
            else:
                how = "repeat the option: " + " ".join(f"{option} {shlex.quote(w)}" for w in words)
            return f"unexpected {found.word!r} after {option} {found.values[0]}; {how}"
        return ""


def _instead(option: str, values: list[str]) -> str:
    """Return what to do instead of giving an option several times."""
    if option in _WITH_COMMAS:
        # One that is a list already, or a name, is rather a second choice than another level.
        if any("," in value or value in NAMED_ORDERS for value in values):
            return ""
        several = list(dict.fromkeys(values))
        if len(several) == 1:
            return ""
        return f"; separate several by commas: {option} {shlex.quote(','.join(several))}"
    return f"; {_INSTEAD[option]}" if option in _INSTEAD else ""


def _check_values(
    option: str, wanted: int, given: tuple[str, ...], options: dict[str, int]
) -> None:
    """Refuse an option that lacks a value, instead of taking the next option for it."""
    taken = [value for value in given if value in options]
    one = given[0] if wanted == 2 and given and given[0] not in options else ""
    if "," in one and (len(given) < 2 or taken or os.path.exists(given[1])):
        parts = " ".join(shlex.quote(part.strip()) for part in one.split(","))
        raise InputError(f"{option} takes two words: {option} {parts}, not {one!r}")
    if taken:
        need = "a value" if wanted == 1 else f"{wanted} values"
        raise InputError(f"{option} needs {need}, but the option {taken[0]} follows it")


def _is_number(word: str) -> bool:
    from pufferfish.rationals import parse_number

    try:
        parse_number(word, "")
    except InputError:
        return False
    return True


class WithMechanisms(StrictCommand):
    """A command whose help lists the mechanisms from the registry."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of mechanisms, noise from the most to the least."""
        from pufferfish.calibration import DEFAULT, DEFAULT_FOR_LEVELS, REGISTRY

        defaults = {
            DEFAULT_FOR_LEVELS: " (the default for levels without an order)",
            DEFAULT: " (the default for numbers and ordered levels)",
        }
        with formatter.section("Mechanisms"):
            formatter.write_dl(
                [(name, m.summary + defaults.get(name, "")) for name, m in REGISTRY.items()]
            )
        super().format_epilog(ctx, formatter)
