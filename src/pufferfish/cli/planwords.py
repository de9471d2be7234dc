# SPDX-License-Identifier: Apache-2.0
"""What a plan is, in words for people, and its channel as JSON values for programs."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.digits import exact_number, share
from pufferfish.errors import listed

if TYPE_CHECKING:
    from pufferfish.mechanisms import Channel, Mechanism
    from pufferfish.plan import Plan
    from pufferfish.support import Support

#: Said where a release was made from the options of calibrate.
NO_PLAN = (
    "no plan was saved, and estimate needs one: to have it, calibrate with --save FILE first and "
    "release with --plan FILE"
)


def proved_by(method: str) -> str:
    """Return how a certificate was proved, in words."""
    words = {
        "ball": "ball arithmetic",
        "float-bound": "a floating-point bound",
        "exact": "exact rationals",
    }
    how, _, more = method.partition("+")
    return words.get(how, how) + (" and exact rationals" if more == "rational" else "")


def nearly_unchanged(mechanism: "Mechanism", keep_rate: float | None) -> str:
    """Return in words how often values are published as they are, where that needs a notice.

    For noise that is more than nine in ten, as nothing else tells of it; a channel, which is meant
    to keep values and whose kept share stands in the table, has to change fewer than one in a
    thousand. P(noise = 0) = (1 - a) / (1 + a) with
    a = exp(-step / scale) (theory, section 1); a channel's share is ``keep_rate``, if known.
    """
    from pufferfish.mechanisms import DiscreteLaplace

    kept, most = keep_rate or 0.0, 0.999
    if isinstance(mechanism, DiscreteLaplace):
        if mechanism.scale == 0:
            return ""
        rate = mechanism.step / Fraction(mechanism.scale)
        a = math.exp(-float(min(rate, Fraction(700))))
        # As a double it may be 1, but the noise is never 0 for all of the values.
        kept, most = min((1 - a) / (1 + a), math.nextafter(1, 0)), 0.9
    return share(kept) if kept > most else ""


def channel_words(plan: "Plan", with_cost: bool = True) -> list[str]:
    """Return what a channel's kept share and cost mean, and which conditions it meets.

    Parameters
    ----------
    plan : Plan
    with_cost : bool
        Whether the cost is shown.
    """
    from pufferfish.support import Levels

    distortion = plan.distortion
    if distortion is None:
        return []
    codes = " of the codes" if isinstance(plan.support, Levels) else ""
    what = {
        "hamming": "share of values that change",
        "squared": f"squared difference{codes}",
        "absolute": f"absolute difference{codes}",
    }.get(distortion.name, "cost by the file that was given")
    cost = f"; cost: the expected {what}" if with_cost else ""
    lines = [f"Kept: the expected share of values that stay{cost}."]
    told = []
    for condition in distortion.conditions:
        name, _, number = condition.partition(" ")
        kept = f"keeps each value with a chance of at least {number}"
        told.append(kept if name == "min_keep" else f"is {condition}")
    return [*lines, f"The channel {' and '.join(told)} (to 1e-9)."] if told else lines


def constant_words(channel: "Channel") -> str:
    """Return what a channel publishes in every row, or nothing where it publishes more."""
    from pufferfish.support import Levels

    used = _used(channel)
    if len(used) != 1 or channel.inputs.size == 1:
        return ""
    if isinstance(channel.outputs, Levels):
        return repr(channel.outputs.name(used[0]))
    return "one and the same number"


def never_published(channel: "Channel") -> str:
    """Return which values a channel publishes in no row, or nothing where there is none.

    Levels are named; numbers may be many, and are counted. Where others than the values may be
    published it says nothing of that kind.
    """
    from pufferfish.support import Levels

    used = set(_used(channel))
    lost = [x for x, y in enumerate(channel.same) if y not in used]
    if not lost or len(used) == 1 or not channel.inputs.same_as(channel.outputs):
        return ""
    if isinstance(channel.inputs, Levels):
        return listed(channel.inputs.name(x) for x in lost)
    return f"{len(lost)} of the {channel.inputs.size} values"


def _used(channel: "Channel") -> list[int]:
    return [y for y, column in enumerate(channel.rows.T.tolist()) if any(column)]


def channel_to_dict(channel: "Channel") -> dict[str, Any]:
    """Return a channel as JSON values: names or numbers, and the chances as doubles."""
    return {
        "inputs": _labels(channel.inputs),
        "outputs": _labels(channel.outputs),
        "rows": channel.matrix.tolist(),
    }


def _labels(support: "Support") -> list[Any]:
    from pufferfish.support import Levels

    if isinstance(support, Levels):
        return list(support.names)
    return [exact_number(support.value(k)) for k in range(support.size)]
