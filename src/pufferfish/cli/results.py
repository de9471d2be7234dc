# SPDX-License-Identifier: Apache-2.0
"""The table of the results of ``calibrate``, for a terminal."""

from collections.abc import Sequence

from pufferfish.cli.output import print_lines, print_table
from pufferfish.mechanisms.channel import Channel
from pufferfish.report.digits import brief
from pufferfish.report.results import HEADERS, Result, lines_of

#: Columns of a terminal.
_WIDTH = 80


def print_results(results: Sequence[Result], channels: bool) -> None:
    """Print the table: how strong each mechanism is, and how good a release will be."""
    one = len({r.epsilon for r in results}) == 1
    rows = lines_of(results)
    columns = [c for c in zip(HEADERS, *rows, strict=True) if {*c[1:]} != {"-"}][one:]
    headers, *lines = zip(*columns, strict=True)
    print_table(headers, lines, [1 - one])
    for r in results:
        if channels and r.plan.channel is not None:
            print_lines(["", f"channel at epsilon {r.epsilon}: chance of each output by value"])
            _print_channel(r.plan.channel)
            if r.plan.labels is not None:
                print_lines(["", "labels: chance of each value by set"])
                _print_channel(r.plan.labels)


def _print_channel(channel: Channel) -> None:
    """Print a channel: a line for each input, and as many columns of outputs as fit beside it."""
    names = list(map(channel.outputs.name, range(channel.outputs.size)))
    most = max(1, _WIDTH // (max(8, *map(len, names)) + 2) - 1)
    for k in range(0, len(names), most):
        rows = [
            [channel.inputs.name(x), *map(_chance, chances[k : k + most])]
            for x, chances in enumerate(channel.matrix.tolist())
        ]
        print_table(["value", *names[k : k + most]], rows, [0])


def _chance(p: float) -> str:
    """Return a chance; none that is not 0 or 1 is printed as if it were."""
    return "<1e-9" if 0 < p < 1e-9 else brief(min(p, 0.9999) if p < 1 else p, 4)
