# SPDX-License-Identifier: Apache-2.0
"""Groups of commands: listed in the order of their use; a wrong name is told the nearest one."""

from collections.abc import Iterable
from typing import Any

import click

from pufferfish.errors import InputError, did_you_mean, listed


class OutputClosed(Exception):
    """Whoever read the output has gone, as ``head`` does."""


def near_name(given: str, names: Iterable[str]) -> str:
    """Return ``' (did you mean ...?)'`` for a name: what it begins comes first, then the nearest.

    Parameters
    ----------
    given : str
        What the user wrote.
    names : iterable of str
        The commands or options that exist.
    """
    allowed = list(names)
    begun = [name for name in allowed if len(given.lstrip("-")) > 1 and name.startswith(given)]
    return f" (did you mean {begun[0]!r}?)" if begun else did_you_mean(given, allowed)


class Commands(click.Group):
    """The subcommands, in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; the word ``help`` asks for help, as elsewhere."""
        if args[:1] == ["help"] and "help" not in self.commands:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or name the nearest."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            raise InputError(
                f"there is no command {name!r}{near_name(name, self.commands)}; "
                f"the commands are {listed(self.commands)}"
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that has gone is told apart from click's own errors."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosed from None
        except KeyboardInterrupt:
            # click would print an empty line of its own.
            raise click.exceptions.Abort from None
