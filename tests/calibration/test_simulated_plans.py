# SPDX-License-Identifier: Apache-2.0
"""Plans of simulated tables: how many lose more than epsilon under the law of the rows.

Walks have 5,000 tables in ``tests/loss``. Here are boxes and the channels that hold for them, and
walks of several pairs, each from a scenario as users make it: counts and a confidence, or noisy
counts. A test allows for chance: it fails with at most 1e-6 where a claim is true.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import pufferfish as pf
from noisy_cases import most_bad, noise_of, noisy_scenario
from pufferfish.errors import CheckFailed
from pufferfish.priors.ambiguity import UNIT

Floats = npt.NDArray[np.float64]
ALPHAS = [Fraction(1, 20), Fraction(1, 5)]


class Simulated(NamedTuple):
    laws: Floats
    scenario: pf.Scenario
    spent: Fraction  # by noisy counts, else 0


def simulated(
    most_values: int, most_secrets: int, alpha: Fraction, noisy: bool
) -> Iterator[Simulated]:
    """Yield tables of 50 to 50,000 rows from random laws on 3 values or more."""
    rng = np.random.default_rng(14)
    while True:
        n = int(np.exp(rng.uniform(np.log(3), np.log(most_values + 1))))
        secrets = int(rng.integers(2, most_secrets + 1))
        rows = int(np.exp(rng.uniform(np.log(50), np.log(50_000))))
        laws = rng.dirichlet(np.full(n, rng.choice([0.3, 1, 5])), size=secrets)
        laws[1:] = 0.5 * laws[0] + 0.5 * laws[1:]
        # One row of each at least, and rows of other secrets.
        own = 1 + rng.multinomial(rows - secrets, np.full(secrets + 1, 1 / (secrets + 1)))
        counts = np.array([rng.multinomial(k, p) for k, p in zip(own[1:], laws, strict=True)])
        if noisy:
            spent = Fraction(str(rng.choice(["0.3", "1", "4"])))
            counts += noise_of(spent, counts.shape, rng)
            yield Simulated(laws, noisy_scenario(counts, rows, spent, 1 - alpha), spent)
        else:
            named = dict(zip("abcdefgh", counts.tolist(), strict=False))
            prior = pf.Prior.from_counts(named, support=range(n), confidence=1 - alpha)
            yield Simulated(laws, pf.Scenario(prior), Fraction(0))


def loss_of(plan: pf.Plan, laws: Floats) -> float:
    """The true loss of a plan's mechanism, over all pairs of these laws and all outputs."""
    if plan.channel is not None:
        kernel: Floats = plan.channel.matrix[:, plan.channel.matrix.any(axis=0)]
    else:
        assert plan.scale is not None
        places = np.arange(laws.shape[1])
        kernel = np.exp(-np.abs(np.subtract.outer(places, places)) / plan.scale)
    likelihoods = laws @ kernel
    return float(np.log(likelihoods.max(axis=0) / likelihoods.min(axis=0)).max())


def bad_plans(
    tables: int,
    alpha: Fraction,
    noisy: bool,
    most_values: int,
    mutant: bool = False,
    **options: Any,
) -> int:
    """How many plans lose more than what is left of epsilon. ``mutant``: as if counts were laws."""
    bad = done = 0
    for laws, scenario, spent in simulated(most_values, 3, alpha, noisy):
        left = Fraction(("1/2", "1", "2")[done % 3])
        if np.log(laws.max(axis=0) / laws.min(axis=0)).max() <= left:
            continue  # nothing would lose more
        done += 1
        if mutant:
            scenario = pf.Scenario(scenario.priors[0].with_region())
        try:
            plan = pf.calibrate(scenario, spent + left, **options)
            bad += loss_of(plan, laws) > float(left) * (1 + 1e-12)
        except CheckFailed:  # no distribution fits
            pass
        if done == tables:
            break
    return bad


KINDS = {
    "walk": ({"mechanism": "exact"}, 12, 15),
    "kept": ({"mechanism": "channel"}, 5, 250),
    "frequencies": ({"mechanism": "channel", "best_for": "frequencies"}, 4, 10),
    "mean": ({"mechanism": "channel", "best_for": "mean"}, 4, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_few_plans_lose_more_than_epsilon(kind: str, alpha: Fraction, noisy: bool) -> None:
    options, most_values, tables = KINDS[kind]
    assert bad_plans(tables, alpha, noisy, most_values, **options) <= most_bad(tables, alpha)


@pytest.mark.parametrize("noisy", [False, True])
def test_few_of_some_channels_lose_more_than_epsilon(noisy: bool) -> None:
    found = bad_plans(30, ALPHAS[0], noisy, 5, mechanism="channel")
    assert found <= most_bad(30, ALPHAS[0])


def test_channels_by_the_counts_alone_are_caught() -> None:
    tables = 60
    found = bad_plans(tables, ALPHAS[1], False, 5, mutant=True, mechanism="channel")
    assert found > most_bad(tables, ALPHAS[1])


# Boxes --------------------------------------------------------------------------------------------


def missed_boxes(tables: int, alpha: Fraction, noisy: bool) -> int:
    """How many boxes, of all secrets together, miss a law; an empty one misses it, too."""
    missed = 0
    for laws, scenario, _ in itertools.islice(simulated(30, 3, alpha, noisy), tables):
        try:
            boxes = scenario.sets[0]
        except CheckFailed:
            missed += 1
            continue
        for law, box in zip(laws, boxes, strict=True):
            low, room = (np.array([x / UNIT for x in side]) for side in (box.least, box.room))
            if ((law < low) | (law > low + room)).any():
                missed += 1
                break
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_few_boxes_miss_the_law(alpha: Fraction, noisy: bool) -> None:
    assert missed_boxes(100, alpha, noisy) <= most_bad(100, alpha)
