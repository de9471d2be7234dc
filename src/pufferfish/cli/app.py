# SPDX-License-Identifier: Apache-2.0
"""The command ``pufferfish`` itself: its version, its help and its subcommands."""

import click

from pufferfish._version import __version__
from pufferfish.cli.calibrate import calibrate
from pufferfish.cli.estimate import estimate
from pufferfish.cli.groups import Commands
from pufferfish.cli.groups import OutputClosed as OutputClosed
from pufferfish.cli.groups import near_name as near_name
from pufferfish.cli.ledger import ledger
from pufferfish.cli.release import release
from pufferfish.cli.reproduce import reproduce
from pufferfish.cli.verify import verify


@click.group(
    cls=Commands,
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


for command in (calibrate, release, verify, estimate, ledger, reproduce):
    cli.add_command(command)
