# SPDX-License-Identifier: Apache-2.0
"""Where too much was asked of a channel: what is said, and figures that hold."""

import re
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

import pufferfish
from pufferfish.calibration.channel import channel
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.highs import Infeasible
from pufferfish.calibration.most_kept import most_kept
from pufferfish.certificate import certify_channel
from pufferfish.errors import InputError, PufferfishError
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario

BIT = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
#: Value 2 occurs under no secret.
COUNTS = {"a": [5, 3, 0, 9], "b": [0, 7, 0, 2], "c": [1, 0, 0, 4]}
SOME = Scenario(Prior.from_counts(COUNTS, support=["u", "v", "w", "x"]))
TENTH = Fraction(1, 10)


def refused(scenario: Scenario, epsilon: Fraction, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        channel(scenario, epsilon, **options)  # type: ignore[arg-type]
    return str(caught.value)


def figure(text: str) -> Fraction:
    found = re.search(r"min_keep (\S+) or less", text)
    assert found
    return Fraction(found[1])


def largest_share(scenario: Scenario, epsilon: Fraction, invariant: bool) -> float:
    """The largest p by another front end; values that nobody can take are no matter."""
    n, prior = scenario.support.size, scenario.priors[0]
    p = {s: [float(prior.probability(s, x)) for x in range(n)] for s in scenario.protected}
    rows, equations, ends = [], [], []
    for y in range(n):
        for i, j in permutations(scenario.protected, 2):
            entry = np.zeros((n, n))
            entry[:, y] = np.array(p[i]) - np.exp(float(epsilon)) * np.array(p[j])
            rows.append([*entry.ravel(), 0.0])
    for x in range(n):
        equations.append([*np.kron(np.eye(n)[x], np.ones(n)), 0.0])
        ends.append(1.0)
        if any(p[s][x] for s in p):
            entry = np.zeros((n, n))
            entry[x, x] = -1
            rows.append([*entry.ravel(), 1.0])
    if invariant:
        mu = prior.counts.sum(axis=0) / prior.counts.sum()
        for y in range(n):
            entry = np.zeros((n, n))
            entry[:, y] = mu
            equations.append([*entry.ravel(), 0.0])
            ends.append(mu[y])
    objective = np.zeros(n * n + 1)
    objective[-1] = -1
    found = linprog(objective, np.array(rows), np.zeros(len(rows)), np.array(equations), ends)
    assert found.status == 0
    return -float(found.fun)


@pytest.mark.parametrize("invariant", [False, True])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "0.1", "1", "2"])
def test_the_largest_min_keep_is_told(epsilon: str, invariant: bool) -> None:
    text = refused(SOME, Fraction(epsilon), min_keep="0.99", invariant=invariant)
    share, largest = figure(text), largest_share(SOME, Fraction(epsilon), invariant)
    assert share <= Fraction(largest) + Fraction(1, 10**8)
    assert share > Fraction(largest) * (1 - Fraction(1, 1000)) - Fraction(1, 10**8)
    solution = channel(SOME, Fraction(epsilon), min_keep=share, invariant=invariant)
    assert certify_channel(SOME, solution.channel, Fraction(epsilon)).holds
    assert "or less" in refused(
        SOME, Fraction(epsilon), min_keep=share + Fraction(1, 500), invariant=invariant
    )


def test_the_figure_has_four_digits_and_is_rounded_down() -> None:
    # 1 / (1 + e^-1) = 0.731058..., 1 / (1 + e^-0.1) = 0.524979...
    assert figure(refused(BIT, Fraction(1), min_keep=1)) == Fraction("0.7310")
    assert figure(refused(BIT, TENTH, min_keep=1)) == Fraction("0.5249")
    even = Scenario(Prior.from_mapping({s: {k: 1} for k, s in enumerate("abcdefgh")}))
    # 1 / (1 + 7 e^-0.1) = 0.136375...
    assert figure(refused(even, TENTH, min_keep=1)) == Fraction("0.1363")


def test_a_figure_that_no_channel_was_made_for_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the solver's figure is too large by a half."""
    from pufferfish.calibration import most_kept as module

    honest = module._largest
    monkeypatch.setattr(module, "_largest", lambda task, bound: 1.5 * honest(task, bound))
    assert "feasible with a smaller min_keep or a larger epsilon" in refused(
        BIT, TENTH, min_keep="0.9"
    )

    def fails(task: Task, bound: Fraction) -> float:
        raise PufferfishError("out of order")

    monkeypatch.setattr(module, "_largest", fails)
    assert "feasible with a smaller min_keep" in refused(BIT, TENTH, min_keep="0.9")


def test_no_figure_where_nothing_can_be_kept() -> None:
    """Both values stay at 0: one has no weight, so that nothing may be published as it."""
    text = refused(BIT, TENTH, min_keep="0.9", invariant=True, weights=[1, 0])
    assert "feasible with a smaller min_keep or a larger epsilon or fewer conditions" in text


def test_what_is_said() -> None:
    assert refused(BIT, TENTH, min_keep="0.9") == (
        "no channel that is private at epsilon 0.1 keeps every value at least 0.9 of the time; "
        "feasible with min_keep 0.5249 or less, or with a larger epsilon"
    )
    assert refused(BIT, TENTH, min_keep="0.9", invariant=True) == (
        "no channel that is private at epsilon 0.1 is invariant and keeps every value at least 0.9 "
        "of the time; feasible with min_keep 0.5249 or less, or with a larger epsilon, or with "
        "fewer conditions"
    )
    with pytest.raises(InputError, match=r"is unbiased and keeps every value at least 0\.99"):
        channel(BIT, TENTH, min_keep="0.99", unbiased=True)


def test_a_region_is_named_where_it_may_be_what_asks_for_too_much() -> None:
    said = r"for a whole region \(confidence or tv_radius\), without which it may be feasible"
    for rule in ({"confidence": "0.9"}, {"tv_radius": "0.05"}):
        regions = regions_of(SOME, **rule)
        text = refused(SOME, TENTH, min_keep="0.9", regions=regions)
        assert re.search(said, text)
        assert figure(text) < figure(refused(SOME, TENTH, min_keep="0.9"))
    exact = regions_of(SOME, tv_radius=0)
    assert "region" not in refused(SOME, TENTH, min_keep="0.9", regions=exact)


@pytest.mark.parametrize("epsilon", ["20", "25", "1e6"])
def test_the_cap_is_named_where_no_larger_epsilon_helps(epsilon: str) -> None:
    """The limit is about 1 - e^-20 = 1 - 2.1e-9 whatever the epsilon above."""
    near = 1 - Fraction(1, 10**10)
    text = refused(SOME, Fraction(epsilon), min_keep=near)
    assert "private at epsilon 20 keeps every value" in text
    assert "channels are computed for epsilon 20 at most" in text
    assert "larger epsilon" not in text
    with pytest.raises(PufferfishError) as caught:
        channel(BIT, Fraction(epsilon), min_keep=near)
    assert "channels are computed for epsilon 20 at most" in str(caught.value)
    assert "larger epsilon" not in str(caught.value)


def test_every_failure_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, message in ((PufferfishError, "out of order; "), (Infeasible, "no channel that ")):

        def fails(self: Task, bound: Fraction, kind: type[PufferfishError] = kind) -> None:
            raise kind("out of order")

        monkeypatch.setattr(Task, "solved", fails)
        with pytest.raises(PufferfishError, match=f"^{message}.*a larger epsilon"):
            channel(SOME, TENTH, min_keep="0.2")


def test_nothing_is_looked_for_where_no_value_must_be_kept() -> None:
    task = Task(SOME, None, SOME.support, np.ones((4, 4), dtype=object) - np.eye(4, dtype=int),
                [Fraction(1, 4)] * 4, Conditions(invariant=True), Fraction(11, 10))  # fmt: skip
    assert most_kept(task, Fraction(11, 10)) is None


@pytest.mark.parametrize("cost", ["hamming", "absolute"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "2", "25"])
def test_values_whose_squares_are_beyond_every_double(cost: str, epsilon: str) -> None:
    rows = {"a": {"0": ".6", "1e200": ".4"}, "b": {"0": ".3", "1e200": ".7"}}
    scenario = Scenario(Prior.from_mapping(rows, step="1e200"))
    plan = pufferfish.calibrate(scenario, epsilon, mechanism="channel", cost=cost)
    assert plan.certificate.holds
    assert plan.cost is not None
    unit = 1e200 if cost == "absolute" else 1.0
    assert (plan.cost == 0) == (plan.mse == 0) == (epsilon in ("2", "25"))
    assert plan.cost < unit
    assert plan.distortion is not None
    assert plan.distortion.repair <= 1e-6
    with pytest.raises(InputError, match="the costs of a channel reach 397 digits"):
        channel(scenario, Fraction(epsilon), cost="squared")
