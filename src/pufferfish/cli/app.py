# SPDX-License-Identifier: Apache-2.0
"""The command ``pufferfish``: its subcommands, loaded when they are used, and its exit statuses."""

import contextlib
import importlib
import os
import signal
import sys
import traceback

import click

from pufferfish import __version__
from pufferfish.cli import process
from pufferfish.cli.process import Messages
from pufferfish.errors import PufferfishError

#: The subcommands in the order of their use. A module is imported when its command is used, so
#: that help is quick.
_COMMANDS = {
    "calibrate": "Compute the noise or the channel that hides the secret.",
    "query": "Compute the noise for a query over correlated records.",
    "sweep": "Compare mechanisms for many columns and secrets.",
    "release": "Write the released table.",
    "verify": "Recompute the loss of a saved plan.",
    "estimate": "Estimate the original numbers from a released table.",
    "report": "Write a report that explains a plan.",
    "ledger": "Account for all releases of a dataset.",
    "explore": "Do these things in the browser.",
    "reproduce": "Compute the paper's table again.",
}
_ENDINGS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        folder = "explorer" if cmd_name == "explore" else "cli"
        module = importlib.import_module(f"pufferfish.{folder}.{cmd_name}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 done, 1 a check failed, 2 wrong input, 130 interrupted, 143 ended.",
)
@click.version_option(__version__, prog_name="pufferfish")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Publish a column while a secret that is correlated with it stays hidden.

    \b
    The straight way through:
      pufferfish calibrate table.csv --secret higher --public romantic \\
          --order no,yes --epsilon 0.1 --save plan.json
      pufferfish release table.csv --plan plan.json -o released.csv
      pufferfish verify plan.json table.csv
      pufferfish estimate released.csv --plan plan.json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str], last: bool = False) -> int:
    """Run one command and return its exit status; ``last``: the process ends afterwards."""
    messages = Messages(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal lacks is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        with process.listening(last), messages.showing_warnings():
            with (
                contextlib.suppress(click.exceptions.Exit),  # --help and --version end by it
                cli.make_context("pufferfish", arguments, obj=messages) as context,
            ):
                cli.invoke(context)
            if sys.stdout is not None:
                sys.stdout.flush()
            process.check()
    except BrokenPipeError:  # whoever read the output has gone, as `head` does
        _silence_output()
    except (Exception, process.Stopped, KeyboardInterrupt) as error:
        if os.environ.get("PUFFERFISH_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        status, text = explain(error)
        if isinstance(error, OSError) and error.filename is None:
            _silence_output()
        messages.error(text, error)
        return status
    messages.finish()
    return 0


def explain(error: BaseException) -> tuple[int, str]:
    """Return the exit status of an error, and what it is in one line."""
    # After a signal, what a library said of it is not what happened.
    if process.received or not isinstance(error, Exception):
        return _ENDINGS[signal.Signals([*process.received, signal.SIGINT][0])]
    if isinstance(error, PufferfishError):
        return error.exit_status, str(error)
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = "" if context is None else f" (see '{context.command_path} --help')"
        return 2, f"{error.format_message().strip().rstrip('.')}{where}"
    if isinstance(error, OSError):
        named = error.filename is not None
        what = f"use {os.fsdecode(error.filename)}" if named else "write standard output"
        return 2, f"cannot {what}: {error.strerror or type(error).__name__}"
    if isinstance(error, MemoryError):
        return 70, "there is not enough memory for this"
    # Its text may quote cells.
    what = f"{type(error).__name__} (PUFFERFISH_DEBUG=1 shows the text, and where)"
    return 70, f"this is a fault of pufferfish, please report it: {what}"


def _silence_output() -> None:
    """Send what is still in the buffers nowhere, so that closing them raises nothing."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
