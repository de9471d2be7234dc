# SPDX-License-Identifier: Apache-2.0
"""Options of the mechanism channel: what it minimises, what it publishes, what it must meet."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli.costfile import CostFile, read_cost_file
from pufferfish.cli.files import check_there
from pufferfish.cli.options import Function
from pufferfish.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from pufferfish.scenario import Scenario

#: Costs that are known by name; anything else is a file.
COSTS = ("hamming", "squared", "absolute")
#: The options by the names of their values.
_OPTIONS = ("cost", "outputs", "invariant", "unbiased", "min_keep")


def channel_options(function: Function) -> Function:
    """Add the options that only the mechanism channel understands."""
    for option in reversed(
        (
            click.option(
                "--cost", metavar="NAME|FILE",
                help="What the channel makes least: 'hamming' (share of changed values; the "
                "default for levels without an order), 'squared' (the default otherwise), "
                "'absolute', or a CSV file of costs: first row outputs, first column values.",
            ),
            click.option(
                "--outputs", metavar="fine:K",
                help="Let the channel publish K more values between every two neighbours.",
            ),
            click.option(
                "--invariant", is_flag=True,
                help="Let the channel keep the expected frequencies as they are.",
            ),
            click.option(
                "--unbiased", is_flag=True,
                help="Let the channel's expected output be the value; widens the outputs.",
            ),
            click.option(
                "--min-keep", metavar="P",
                help="Let the channel keep each value at least this often; above 0.5 the "
                "frequencies can be estimated from a release.",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def show_channel_option(function: Function) -> Function:
    """Add the option that has the channel itself printed; for a command that shows results."""
    return click.option(
        "--show-channel", "show_channel", is_flag=True,
        help="Show the channel too: for each value the chance of each output.",
    )(function)  # fmt: skip


def channel_given(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the channel's options that were used."""
    used = [name for name in _OPTIONS if options[name] not in (None, False)]
    return tuple(f"--{name.replace('_', '-')}" for name in used)


@dataclass(frozen=True)
class ChannelOptions:
    """What was asked of the channel, checked as far as it can be without a scenario.

    Attributes
    ----------
    given : tuple of str
        The names of the options that were used.
    cost : str, CostFile or None
    outputs : int or None
        So many further outputs between every two neighbours.
    invariant, unbiased : bool
    min_keep : str or None
    """

    given: tuple[str, ...] = ()
    cost: str | CostFile | None = None
    outputs: int | None = None
    invariant: bool = False
    unbiased: bool = False
    min_keep: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read."""
        return (self.cost.path,) if isinstance(self.cost, CostFile) else ()

    def check_used(self, mechanisms: Iterable[str], why: str = "") -> None:
        """Check that a channel is among the mechanisms, if anything was asked of it.

        Parameters
        ----------
        mechanisms : iterable of str
            The names of those that will be computed.
        why : str
            Why the channel is not among them, where that is not what was asked for.

        Raises
        ------
        InputError
            If it is not.
        """
        names = list(mechanisms)
        if self.given and "channel" not in names:
            raise InputError(
                f"{listed(self.given)} {'is' if len(self.given) == 1 else 'are'} for the mechanism "
                f"channel, which is left out: {why}"
                if why
                else f"{listed(self.given)} {'is' if len(self.given) == 1 else 'are'} for the "
                f"mechanism channel, but {listed(names)} is computed; ask for it with "
                "--mechanism channel"
            )

    def arguments(self, scenario: "Scenario") -> tuple[dict[str, Any], list[str]]:
        """Return the arguments for calibrate, and notes on what of a cost file is not used.

        Raises
        ------
        InputError
            If a cost file does not fit the values.
        """
        cost: object = self.cost
        notes: list[str] = []
        if isinstance(self.cost, CostFile):
            plain = self.outputs is None and not self.unbiased
            support = scenario.support
            cost, notes = self.cost.fitted(support, support if plain else None)
        every = {
            "cost": cost,
            "outputs": self.outputs,
            "invariant": self.invariant,
            "unbiased": self.unbiased,
            "min_keep": self.min_keep,
        }
        return {name: value for name, value in every.items() if value not in (None, False)}, notes


def make_channel_options(options: dict[str, Any]) -> ChannelOptions:
    """Return what the options of :func:`channel_options` ask for; reads a cost file.

    Raises
    ------
    InputError
        If one is not of that kind.
    """
    return ChannelOptions(
        given=channel_given(options),
        cost=_cost(options["cost"]),
        outputs=_outputs(options["outputs"]),
        invariant=options["invariant"],
        unbiased=options["unbiased"],
        min_keep=_min_keep(options["min_keep"]),
    )


def _cost(text: str | None) -> str | CostFile | None:
    if text is None:
        return None
    word = text.strip().casefold()
    if word in COSTS:
        return word
    if os.path.lexists(text):
        return read_cost_file(text)
    if os.path.basename(text) != text or os.path.splitext(text)[1]:
        check_there(text, "cost file")
    raise InputError(
        f"--cost must be {', '.join(COSTS)} or a CSV file, but {text!r} was given"
        f"{did_you_mean(word, COSTS)}"
    )


def _outputs(text: str | None) -> int | None:
    if text is None:
        return None
    # How large K may be depends on the values, and is told when they are known.
    match = re.fullmatch(r"\s*fine\s*:\s*(\d{1,300})\s*", text, re.ASCII | re.IGNORECASE)
    if not match or not int(match[1]):
        number = re.sub(r"\D", "", text, flags=re.ASCII)[:6]
        hint = f" (did you mean 'fine:{int(number)}'?)" if number and int(number) else ""
        raise InputError(
            "--outputs must be fine:K, K a whole number of values between neighbours, as in "
            f"fine:9, but {text!r} was given{hint}"
        )
    return int(match[1])


def _min_keep(text: str | None) -> str | None:
    if text is None:
        return None
    from pufferfish.rationals import parse_number, show

    keep = parse_number(text, "--min-keep")
    if not 0 <= keep <= 1:
        share = Fraction(keep, 100)
        # A percentage was meant, unless it is so small that it is not.
        hint = f" (did you mean {show(share)!r}?)" if 10 <= keep <= 100 else ""
        raise InputError(f"--min-keep must be from 0 to 1, but {text!r} was given{hint}")
    return text
