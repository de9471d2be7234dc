# SPDX-License-Identifier: Apache-2.0
"""Mechanisms by name: which there are, which apply, and a new one in one line."""

from typing import Any, get_args

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from pufferfish import calibrate
from pufferfish.calibration import best_for
from pufferfish.calibration.registry import (
    NOISE,
    REGISTRY,
    MechanismName,
    applicable,
    default_for,
    method_named,
)
from pufferfish.errors import InputError
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

NUMBERS = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
LEVELS = Scenario(Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}}))


def test_names() -> None:
    assert list(REGISTRY) == ["l1", "wasserstein", "relaxed", "one-sided", "exact", "channel"]
    assert list(NOISE) == list(REGISTRY)[:-1]
    assert get_args(MechanismName) == tuple(REGISTRY)
    assert all(method.name == name for name, method in REGISTRY.items())
    assert [name for name, method in REGISTRY.items() if method.least] == ["exact"]
    assert method_named("One_Sided").name == "one-sided"
    with pytest.raises(InputError, match="did you mean 'wasserstein'"):
        method_named("waserstein")
    with pytest.raises(InputError, match="no mechanism 3"):
        method_named(3)  # type: ignore[arg-type]  # wrong on purpose


def test_the_search_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads for small matrices make it many times slower wherever others work, too."""
    honest, seen = best_for.best_for, []

    def watched(*given: Any, **options: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return honest(*given, **options)

    monkeypatch.setattr(best_for, "best_for", watched)
    with threadpool_limits(2, "blas"):
        before = threadpool_info()
        calibrate(LEVELS, "0.5")
        assert threadpool_info() == before
    assert set(seen) <= {1}


def test_levels_without_an_order_have_a_channel_only() -> None:
    assert (default_for(NUMBERS, {}), default_for(LEVELS, {})) == ("exact", "channel")
    assert default_for(NUMBERS, {"cost": None, "invariant": False}) == "exact"
    assert default_for(NUMBERS, {"invariant": True}) == "channel"
    assert default_for(NUMBERS, {"cost": 0}) == "channel"
    ordered = Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}}, order=["x", "y"])
    assert default_for(Scenario(ordered), {}) == "exact"
    assert applicable(NUMBERS) == (tuple(REGISTRY), {})
    names, left_out = applicable(LEVELS)
    assert names == ("channel",)
    assert list(left_out) == list(NOISE)
    assert all("order" in reason for reason in left_out.values())


def test_only_some_mechanisms_honour_a_region() -> None:
    prior = NUMBERS.priors[0].with_region(tv_radius="0.1")
    names, left_out = applicable(Scenario(prior))
    assert names == ("exact", "channel")
    assert "the mechanisms that can are exact, channel" in left_out["l1"]
