# SPDX-License-Identifier: Apache-2.0
"""From exceptions to one line on standard error and an exit status; never a traceback."""

import contextlib
import os
import signal
import sys
import traceback

import click

from pufferfish.cli import signals
from pufferfish.cli.app import OutputClosed, cli, near_name
from pufferfish.cli.messages import Messages
from pufferfish.errors import PufferfishError

#: Exit statuses beside those of the errors themselves.
WRONG_INPUT, BUG, INTERRUPTED, TERMINATED = 2, 70, 130, 143


def run(arguments: list[str], last: bool = False) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    arguments : list of str
        What follows the command's name.
    last : bool
        Whether the process ends afterwards.
    """
    messages = Messages()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal cannot show is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        with signals.listening(last), messages.showing_warnings():
            status = cli.main(
                arguments, prog_name="pufferfish", standalone_mode=False, obj=messages
            )
            if sys.stdout is not None:
                sys.stdout.flush()
            signals.check()
            if last:
                signals.deafen()
            messages.finish()
            return status if isinstance(status, int) else 0
    except (OutputClosed, BrokenPipeError):
        _silence_output()
        messages.finish()
        return 0
    except signals.Terminated:
        return _stopped(signal.SIGTERM, messages)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _stopped(signal.SIGINT, messages)
    except Exception as error:
        if os.environ.get("PUFFERFISH_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        number = signals.received()
        # What a library said of the signal is not what happened.
        return _explain(error, messages) if number is None else _stopped(number, messages)


def _stopped(number: int, messages: Messages) -> int:
    """Say that a signal ended the command, and return the exit status."""
    first = signals.received() or number
    messages.error("interrupted" if first == signal.SIGINT else "terminated")
    return INTERRUPTED if first == signal.SIGINT else TERMINATED


def _explain(error: Exception, messages: Messages) -> int:
    """Print the one line of an error and return its exit status."""
    if isinstance(error, PufferfishError):
        messages.error(str(error))
        return error.exit_status
    if isinstance(error, click.ClickException):
        messages.error(usage_line(error))
        return WRONG_INPUT
    if isinstance(error, OSError):
        name = getattr(error, "filename", None)
        if name is None:
            _silence_output()
        what = f"cannot use {os.fsdecode(name)}" if name else "cannot write standard output"
        messages.error(f"{what}: {error.strerror or error}")
        return WRONG_INPUT
    if isinstance(error, MemoryError):
        messages.error("there is not enough memory for this")
        return BUG
    messages.error(
        f"this is a fault of pufferfish, please report it: {type(error).__name__}: {error} "
        "(PUFFERFISH_DEBUG=1 shows where)"
    )
    return BUG


def usage_line(error: click.ClickException) -> str:
    """Return one line for a command line that click could not read.

    Parameters
    ----------
    error : click.ClickException
        What click raised.
    """
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        names = [
            n for p in context.command.get_params(context) for n in (*p.opts, *p.secondary_opts)
        ]
        options = [name for name in names if name.startswith("-")]
        text = f"there is no option {error.option_name}{near_name(error.option_name, options)}"
    else:
        text = error.format_message().strip().rstrip(".")
        text = text[:1].lower() + text[1:]
    return text if context is None else f"{text} (see '{context.command_path} --help')"


def _silence_output() -> None:
    """Send what is still in the buffers nowhere, so that closing them raises nothing."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
