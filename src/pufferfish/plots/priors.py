# SPDX-License-Identifier: Apache-2.0
"""P(X|S): how often each value occurs with each secret."""

from typing import Any

import numpy as np

from pufferfish.plots import style
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario


@style.style()
def distributions(scenario: Scenario | Prior) -> Any:
    """Draw P(X|S), the frequencies of the values with each protected secret.

    Each secret has a panel; the line in all of them is the mean of the secrets.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column; of several adversaries the first.
    """
    known = as_scenario(scenario)
    prior, support, secrets = known.priors[0], known.support, known.protected
    shares = prior.probabilities[[prior.row(secret) for secret in secrets]]
    figure, panels = style.new(
        "Share of each value, by secret", height=1.2 + 0.8 * len(secrets),
        nrows=len(secrets), sharex=True, sharey=True,
    )  # fmt: skip
    sides, mean = np.arange(support.size + 1) - 0.5, shares.mean(axis=0)
    # All bars, and the gaps as bars of 0, are one path: a picture of many values stays small.
    edges = np.add.outer(sides[:-1], (0.1, 0.9)).ravel()
    for axes, secret, share in zip(panels, secrets, shares, strict=True):
        heights = np.insert(share, range(1, support.size), 0)
        axes.stairs(heights, edges, fill=True, color=style.COLOURS[0], snap=False)
        axes.stairs(mean, sides, baseline=None, color=style.INK, linewidth=0.8,
                    label="mean of the secrets")  # fmt: skip
        axes.annotate(style.named(secret), (1, 1), xycoords="axes fraction", ha="right", va="top")
    column = style.named(known.product.columns[0] or "value")
    axes.set(ylim=(0, 1.3 * shares.max()), xlabel=column)
    style.name_ticks(axes.xaxis, [support.name(k) for k in range(support.size)])
    style.legend(figure, axes)
    return figure
