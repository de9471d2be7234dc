# SPDX-License-Identifier: Apache-2.0
"""Read-back: whether what a mechanism publishes of the values that occur shows each of them."""

from fractions import Fraction

import numpy as np

from pufferfish.errors import InputError, UnchangedWarning, warn_user
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import IntArray, float_down
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseSpec


def check_read_back(spec: ReleaseSpec, post: Postprocess, rows: IntArray | None = None) -> bool:
    """Return whether the column can be read back: refuse that unless allowed, else warn.

    ``rows`` are the released rows by input of a channel. Before any row is read there are none:
    then noise of scale 0 is refused, and a channel that keeps every value, and nobody is warned.
    """
    channel = post.mechanism
    if not isinstance(channel, Channel):
        found, what = channel.scale == 0, "the scale is 0: the column is published unchanged"
        more = ", or give --min-scale T (min_scale=T)"
    else:
        found = channel.unchanged if rows is None else _read_back(post, channel, rows)
        what, more = "the channel keeps every value: the column is published unchanged", ""
        if found and not channel.unchanged:
            what = (
                "the channel always publishes every value that occurs in the table as one of its "
                "own: the column can be read back as if it were published unchanged"
            )
    if found and not spec.allow_unchanged:
        raise InputError(
            f"{what}; if that is wanted say so with --allow-unchanged (allow_unchanged=True){more}"
        )
    if found and rows is not None:
        warn_user(what, UnchangedWarning)
    return found


def _read_back(post: Postprocess, channel: Channel, rows: IntArray) -> bool:
    """Return whether every input that occurs is always published as one value of its own.

    Where a single input occurs and another one would surely be published as the same, nothing
    shows which of them it was.
    """
    outcomes = post.outcomes().tolist()

    def sure(x: int) -> int | None:
        published = {outcomes[y] for y, entry in enumerate(channel.rows[x].tolist()) if entry}
        return published.pop() if len(published) == 1 else None

    occurring: list[int] = np.flatnonzero(rows).tolist()
    results = [sure(x) for x in occurring]
    if not occurring or None in results or len(set(results)) < len(results):
        return False
    others = (x for x in range(channel.inputs.size) if x != occurring[0])
    return len(occurring) > 1 or all(sure(x) != results[0] for x in others)


def keep_rate(post: Postprocess, exact: IntArray, moved: IntArray) -> float | None:
    """Return which share of the rows a channel publishes as they are, on average, rounded down.

    ``exact`` are the rows by input, ``moved`` those that were clamped there. None for noise,
    where no row is as it was, and where rounding or bounds change what is published.
    """
    channel, rows = post.mechanism, int(exact.sum())
    if not isinstance(channel, Channel) or not rows or post.reshapes:
        return None
    share = Fraction(rows, rows + int(moved.sum()))
    return float_down(Fraction(channel.keep_rate(exact)) * share)
