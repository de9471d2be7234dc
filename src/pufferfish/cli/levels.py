# SPDX-License-Identifier: Apache-2.0
"""Levels on the command line of ``release``: bounds by their names, and cells that are none."""

from typing import TYPE_CHECKING

from pufferfish.cli.messages import Messages
from pufferfish.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from pufferfish.plan import Plan

#: How the library ends a message on a cell that is no level; it shows no cell.
_NO_LEVEL = "is none of the levels"
#: Longer texts are no levels that somebody forgot.
_SHORT = 40


def codes_of_bounds(
    plan: "Plan", given: tuple[str, str] | None, messages: Messages
) -> tuple[str, str] | None:
    """Return the bounds, with the codes of levels in the place of their names.

    Raises
    ------
    InputError
        If a bound is neither a number nor a level; names the codes. Or a channel publishes levels,
        which no bounds can move.
    """
    from pufferfish.rationals import parse_number
    from pufferfish.support import Levels

    if given and plan.channel is not None and isinstance(plan.channel.outputs, Levels):
        raise InputError(
            "--bounds is for numbers, but this channel publishes levels, and every released value "
            "is one of them already"
        )
    if not given or not isinstance(plan.support, Levels) or not plan.support.ordered:
        return given or None
    names = plan.support.names
    codes = listed(f"{name} = {code}" for code, name in enumerate(names))
    numbers = []
    for text in (part.strip() for part in given):
        try:
            parse_number(text, "a bound")
            numbers.append(text)
        except InputError:
            if text not in names:
                raise InputError(
                    f"--bounds takes two levels or their codes, but {text!r} was given"
                    f"{did_you_mean(text, names)}; the codes are {codes}"
                ) from None
            numbers.append(str(names.index(text)))
    if numbers == list(given) and any(text in names for text in given):
        messages.note(f"the bounds {given[0]} and {given[1]} are codes: {codes}")
    return numbers[0], numbers[1]


def unknown_level(plan: "Plan", table: str, error: str) -> str:
    """Return what to know of the first cell of a table that is none of a plan's levels.

    Parameters
    ----------
    plan : Plan
    table : str
    error : str
        What went wrong; for anything else there is nothing to say.

    Notes
    -----
    Levels are named. A text that stands in a single row, and is like no level, may be anything,
    and is not.
    """
    from pufferfish.support import Levels
    from pufferfish.tables import Coder, open_table
    from pufferfish.tables.cells import cells_of
    from pufferfish.tables.coder import OUTSIDE

    if _NO_LEVEL not in error or plan.rules is None or not isinstance(plan.support, Levels):
        return ""
    names = plan.support.names
    source = open_table(table)
    coder = Coder(plan.support, plan.rules, source)
    first, rows = None, 0
    for batch in source.batches([plan.rules.public]):
        texts = cells_of(batch.column(0), "the public column").texts
        if first is None:
            outside = (coder.code(batch.column(0)).state == OUTSIDE).nonzero()[0]
            first = texts[int(outside[0])] if outside.size else None
        rows += texts.count(first) if first is not None else 0
    if first is None:  # the table has changed since
        return ""
    near = did_you_mean(first, names)
    said = f"; it is {first!r}{near}" if near or (rows > 1 and len(first) <= _SHORT) else ""
    return f"{said}; the levels are {listed(names)}"
