# SPDX-License-Identifier: Apache-2.0
"""Commands that notice a forgotten value, and help that lists the mechanisms."""

import click

from pufferfish.errors import InputError


class StrictCommand(click.Command):
    """A command in which an option is never taken for the value of the one before it.

    A value that looks like one of the command's options can still be given as ``--option=value``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, after a look for options that lack their values."""
        options = {
            name: param.nargs if not getattr(param, "is_flag", False) else 0
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            for name in param.opts
        }
        place = 0
        while place < len(args) and args[place] != "--" and not ctx.resilient_parsing:
            name, wanted = args[place], options.get(args[place], 0)
            values = args[place + 1 : place + 1 + wanted]
            taken = [value for value in values if value in options]
            if taken:
                need = "a value" if wanted == 1 else f"{wanted} values"
                raise InputError(f"{name} needs {need}, but the option {taken[0]} follows it")
            place += 1 + wanted
        return super().parse_args(ctx, args)


class WithMechanisms(StrictCommand):
    """A command whose help lists the mechanisms from the registry."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of mechanisms, from the most noise to the least."""
        from pufferfish.calibration import DEFAULT, REGISTRY

        with formatter.section("Mechanisms, from the most noise to the least"):
            formatter.write_dl(
                [
                    (name, method.summary + (" (the default)" if name == DEFAULT else ""))
                    for name, method in REGISTRY.items()
                ]
            )
        super().format_epilog(ctx, formatter)
