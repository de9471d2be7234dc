# SPDX-License-Identifier: Apache-2.0
"""The command ``pufferfish``: its subcommands, loaded when they are used, and its exit statuses."""

import contextlib
import importlib
import os
import signal
import sys
import traceback
from typing import Any

import click

from pufferfish import __version__
from pufferfish.cli import process
from pufferfish.cli.process import Messages
from pufferfish.errors import PufferfishError

#: The subcommands in the order of their use. A module is imported when its command is used, so
#: that help is quick.
_COMMANDS = {
    "calibrate": "Compute the noise or the channel that hides the secret.",
    "release": "Write the released table.",
    "verify": "Recompute the loss of a saved plan.",
    "estimate": "Estimate the original numbers from a released table.",
    "ledger": "Account for all releases of a dataset.",
    "reproduce": "Compute the paper's table again.",
}
WRONG_INPUT, FAULT = 2, 70
_ENDINGS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


class _OutputClosed(Exception):
    """Whoever read the output has gone, as `head` does."""


class _Commands(click.Group):
    """The subcommands, each imported when it is used."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would end the process
            raise _OutputClosed from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"pufferfish.cli.{cmd_name}")
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
            status = cli.main(arguments, "pufferfish", standalone_mode=False, obj=messages)
            if sys.stdout is not None:
                sys.stdout.flush()
            process.check()
            if last:
                process.ignore()
            messages.finish()
            return status if isinstance(status, int) else 0
    except (_OutputClosed, BrokenPipeError):
        _silence_output()
        messages.finish()
        return 0
    except (process.Stopped, KeyboardInterrupt, click.exceptions.Abort) as error:
        return _stopped(error, messages)
    except Exception as error:
        if os.environ.get("PUFFERFISH_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        # What a library said of a signal is not what happened.
        return (_explain if process.received() is None else _stopped)(error, messages)


def _stopped(error: BaseException, messages: Messages) -> int:
    """Say that a signal ended the command, and return the exit status."""
    status, word = _ENDINGS[signal.Signals(process.received() or signal.SIGINT)]
    messages.error(word, error)
    return status


def _explain(error: Exception, messages: Messages) -> int:
    """Print the one line of an error and return its exit status."""
    status = WRONG_INPUT
    if isinstance(error, PufferfishError):
        text, status = str(error), error.exit_status
    elif isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = "" if context is None else f" (see '{context.command_path} --help')"
        text = f"{error.format_message().strip().rstrip('.')}{where}"
    elif isinstance(error, OSError):
        what = "write standard output"
        if error.filename is None:
            _silence_output()
        else:
            what = f"use {os.fsdecode(error.filename)}"
        text = f"cannot {what}: {error.strerror or error}"
    elif isinstance(error, MemoryError):
        text, status = "there is not enough memory for this", FAULT
    else:
        what = f"{type(error).__name__}: {error} (PUFFERFISH_DEBUG=1 shows where)"
        text, status = f"this is a fault of pufferfish, please report it: {what}", FAULT
    messages.error(text, error)
    return status


def _silence_output() -> None:
    """Send what is still in the buffers nowhere, so that closing them raises nothing."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
