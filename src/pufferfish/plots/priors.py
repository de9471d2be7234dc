# SPDX-License-Identifier: Apache-2.0
"""P(X|S): how often each value occurs with each secret."""

from typing import Any

from pufferfish.numbers import FloatArray
from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario

#: Values up to which each one has bars.
_MOST_BARS = 25


def distributions(scenario: Scenario | Prior) -> Any:
    """Draw P(X|S), the frequencies of the values with each protected secret.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column; of several adversaries the first.
    """
    known = as_scenario(scenario)
    prior, support, secrets = known.priors[0], known.support, known.protected
    shares: list[FloatArray] = [prior.probabilities[prior.row(secret)] for secret in secrets]
    with style.style():
        figure, axes = style.new("How often each value occurs, by secret")
        places = range(support.size)
        for k, (secret, share) in enumerate(zip(secrets, shares, strict=True)):
            kind = k % len(style.COLOURS)
            look = {"label": style.named(secret), "color": style.COLOURS[kind]}
            if support.size <= _MOST_BARS:
                width = 0.8 / len(secrets)
                at = [x - 0.4 + width * (k + 0.5) for x in places]
                axes.bar(at, share, width, hatch=style.HATCHES[kind], edgecolor=style.INK, **look)
            else:
                axes.step(places, share, where="mid", linestyle=style.LINES[kind], **look)
        style.name_ticks(axes.xaxis, style.names_of(support))
        axes.set_xlabel(style.named(known.product.columns[0] or "value"))
        axes.set_ylabel("share with this secret")
        style.legend(figure, axes)
    return figure
