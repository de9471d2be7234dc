# SPDX-License-Identifier: Apache-2.0
"""How often values occur: P(X|S), with each secret; and as it is estimated from a release."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate
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


@style.style()
def frequencies(
    estimate: Estimate, original: Mapping[Any, float] | None = None,
    released: Mapping[Any, float] | None = None,
) -> Any:  # fmt: skip
    """Draw estimated frequencies with their 95 % intervals.

    Where neighbouring values were taken together, the shares of these bins are drawn.

    Parameters
    ----------
    estimate : Estimate
        What ``Plan.estimate`` returned.
    original, released : mapping of value to share or count, optional
        The frequencies before and after the release, scaled to sum 1; the original ones are
        private.
    """
    drawn = dict(estimate.bins or estimate.frequencies)
    if not drawn:
        raise InputError("no frequency can be estimated from this release")
    names, places = list(drawn), range(len(drawn))
    figure, axes = style.new("Frequencies, with 95 % intervals")
    if original is not None:
        axes.bar(places, _shares(original, names), 0.7, color="none", edgecolor=style.INK,
                 label="original")  # fmt: skip
    if released is not None:
        axes.plot(places, _shares(released, names), style.MARKS[1], fillstyle="none",
                  color=style.COLOURS[1], label="released")  # fmt: skip
    values = np.array([own.estimate for own in drawn.values()])
    ends = np.array([own.interval for own in drawn.values()])
    axes.errorbar(places, values, abs(ends.T - values), fmt=style.MARKS[0], capsize=3,
                  color=style.COLOURS[0], label="estimated")  # fmt: skip
    axes.axhline(0, color=style.INK, linewidth=0.6)
    style.name_ticks(axes.xaxis, names)
    axes.set_ylabel("share of rows")
    style.legend(figure, axes)
    return figure


def _shares(given: Mapping[Any, float], names: Sequence[str]) -> list[float]:
    """Return shares in the order of names; what is not named is part of the whole."""
    by_name = {str(name): float(share) for name, share in given.items()}
    shares = [by_name.get(name, 0.0) for name in names]
    if sum(shares) <= 0:
        raise InputError(f"no frequency above 0 was given of {listed(names)}")
    return [share / sum(by_name.values()) for share in shares]
