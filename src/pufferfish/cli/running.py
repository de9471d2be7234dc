# SPDX-License-Identifier: Apache-2.0
"""From exceptions to one line on standard error and an exit status; never a traceback."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType

import click

from pufferfish.cli.app import OutputClosed, cli
from pufferfish.cli.messages import Messages
from pufferfish.errors import PufferfishError, did_you_mean

#: Exit statuses beside those of the errors themselves.
WRONG_INPUT, BUG, INTERRUPTED, TERMINATED = 2, 70, 130, 143


class _Terminated(BaseException):
    """The process was asked to end: files in progress are removed on the way out."""


class _Signals:
    """Knows whether Ctrl-C was pressed, whatever a library made of it on the way."""

    def __init__(self) -> None:
        self.interrupted = False

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.default_int_handler(number, frame)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        raise _Terminated

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while a command runs, in the main thread; elsewhere Python has no handlers."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = []
        for number, handler in (
            (signal.SIGINT, self._interrupt),
            (signal.SIGTERM, self._terminate),
        ):
            # A signal that the parent told us to ignore stays ignored.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before.append((number, signal.signal(number, handler)))
        try:
            yield
        finally:
            for number, handler_before in before:
                signal.signal(number, handler_before)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    arguments : list of str
        What follows the command's name.
    """
    messages, signals = Messages(), _Signals()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal cannot show is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        with signals.listening(), messages.showing_warnings():
            status = cli.main(
                arguments, prog_name="pufferfish", standalone_mode=False, obj=messages
            )
            if sys.stdout is not None:
                sys.stdout.flush()
            messages.finish()
            return status if isinstance(status, int) else 0
    except (OutputClosed, BrokenPipeError):
        _silence_output()
        messages.finish()
        return 0
    except _Terminated:
        messages.error("terminated")
        return TERMINATED
    except (KeyboardInterrupt, click.exceptions.Abort):
        messages.error("interrupted")
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("PUFFERFISH_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        if signals.interrupted:
            messages.error("interrupted")
            return INTERRUPTED
        return _explain(error, messages)


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
        text = f"there is no option {error.option_name}{did_you_mean(error.option_name, options)}"
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
