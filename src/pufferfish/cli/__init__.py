# SPDX-License-Identifier: Apache-2.0
"""The command line: one file for each command, ``options`` in, ``sentences`` and ``output`` out.

``app`` finds the command: ``calibrate``, ``sweep``, ``release``, ``verify``, ``estimate``,
``report``, ``ledger`` or ``reproduce``. ``process`` keeps the messages of a command and hears the
signals that end it.
"""

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``pufferfish``, by default with the arguments of the process.

    The exit status is 0, 1 for a failed check, 2 for wrong input, 130 for Ctrl-C, 143 for SIGTERM,
    and 70 for a fault of the package.
    """
    if arguments is None:  # matrices are small: threads cost more than they save
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from pufferfish.cli.app import run

        return run(list(sys.argv[1:] if arguments is None else arguments), arguments is None)
    except KeyboardInterrupt:  # before or after the command itself
        print("pufferfish: error: interrupted", file=sys.stderr)
        return 130
