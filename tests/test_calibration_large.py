# SPDX-License-Identifier: Apache-2.0
"""``exact`` on large supports: in doubles, with a margin that is needed and no more than that."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

import pufferfish as pf
import pufferfish.calibration.exact as module
from pufferfish.calibration import NOISE
from pufferfish.calibration.exact import exact
from pufferfish.calibration.search import find_root
from pufferfish.errors import PufferfishError
from pufferfish.loss import Attained, FloatLoss
from pufferfish.precise import PRECISE_CELLS

N = 12_000
EPSILONS = ("20", "3", "1", "0.7", "0.3", "0.1", "0.03", "0.01", "0.004", "0.001", "1e-6")


def scenario_of(first: npt.ArrayLike, second: npt.ArrayLike) -> pf.Scenario:
    counts = {"a": np.asarray(first), "b": np.asarray(second)}
    return pf.Scenario(pf.Prior.from_counts(counts, support=np.arange(len(counts["a"]))))


def smooth(n: int = N) -> pf.Scenario:
    x = np.linspace(-4, 4, n)
    rng = np.random.default_rng(11)
    return scenario_of(
        rng.poisson(1000 * np.exp(-(x**2) / 2)), rng.poisson(1000 * np.exp(-((x - 0.2) ** 2) / 2.4))
    )


def rough() -> pf.Scenario:
    rng = np.random.default_rng(12)
    return scenario_of(rng.integers(0, 1000, N), rng.integers(0, 1000, N))


def point() -> pf.Scenario:
    """One secret has a single value: one side of the coupling is all that there is to gain."""
    alone = np.zeros(N, dtype=np.int64)
    alone[0] = 1
    return scenario_of(alone, np.random.default_rng(13).integers(0, 1000, N))


def shifted() -> pf.Scenario:
    """All mass travels 7 steps: the scales of all mechanisms but l1 are the same."""
    counts = np.random.default_rng(14).integers(0, 50, N)
    counts[-7:] = 0
    return scenario_of(counts, np.roll(counts, 7))


SHAPES = [smooth, rough, point, shifted]


def check_least(scenario: pf.Scenario, epsilon: str, within: float = 2e-11) -> None:
    """The proposal itself, judged by balls: private, and hardly more than it takes."""
    assert scenario.cells > PRECISE_CELLS
    proposal = exact(scenario, Fraction(epsilon))
    assert pf.certify(scenario, proposal, epsilon, "ball").holds
    shaved = pf.DiscreteLaplace(proposal.scale * (1 - within), Fraction(1))
    refused = pf.certify(scenario, shaved, epsilon, "ball")
    assert refused.decided
    assert not refused.holds


@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_scale_in_doubles(shape) -> None:  # type: ignore[no-untyped-def]
    scenario = shape()
    for epsilon in EPSILONS:
        check_least(scenario, epsilon)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_on_large_supports(shape) -> None:  # type: ignore[no-untyped-def]
    scenario = shape()
    for epsilon in ("5", "1", "0.01", "0.002"):
        scales = [pf.calibrate(scenario, epsilon, name).scale for name in reversed(NOISE)]
        for smaller, larger in pairwise(scales):
            assert smaller <= larger * (1 + 1e-12)


def test_the_order_where_the_certificate_is_a_bound() -> None:
    counts = np.random.default_rng(15).integers(0, 50, 130_000)
    counts[-7:] = 0
    scenario = scenario_of(counts, np.roll(counts, 7))
    for epsilon in ("1", "0.05"):
        least = pf.calibrate(scenario, epsilon)
        assert least.scale <= pf.calibrate(scenario, epsilon, "wasserstein").scale * (1 + 1e-12)


def test_the_bound_confirms_the_proposal_at_once() -> None:
    scenario = smooth(130_000)
    for epsilon in ("1", "0.1"):
        plan = pf.calibrate(scenario, epsilon)
        assert plan.certificate.method == "float-bound"
        assert plan.scale == exact(scenario, Fraction(epsilon)).scale
        shaved = pf.DiscreteLaplace(plan.scale * (1 - 1e-9), Fraction(1))
        assert not pf.certify(scenario, shaved, epsilon, "ball").holds


def fails(scenario: pf.Scenario, epsilon: str) -> bool:
    try:
        check_least(scenario, epsilon)
    except (AssertionError, PufferfishError):
        return True
    return False


def test_mutant_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module._above

    def bare(scenario, epsilon, found, margin):  # type: ignore[no-untyped-def]
        return honest(scenario, epsilon, found, 0.0)

    monkeypatch.setattr(module, "_above", bare)
    assert any(fails(shape(), epsilon) for shape in (smooth, rough) for epsilon in EPSILONS)


def test_mutant_a_step_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root in balls that lies on the side that is not private."""
    honest = module._polished

    def beyond(*given):  # type: ignore[no-untyped-def]
        found = honest(*given)
        return module.Found(found.u * (1 + 2e-14), found.slope, found.witness)

    scenario = smooth()
    check_least(scenario, "1e-6")
    monkeypatch.setattr(module, "_polished", beyond)
    assert fails(scenario, "1e-6")


def alike() -> pf.Scenario:
    """Every ratio is within 1 %: from epsilon 0.01 on the column needs no noise."""
    counts = np.full(N, 10_000)
    return scenario_of(counts, counts + np.random.default_rng(16).integers(-30, 30, N))


def test_large_supports_that_need_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = alike()

    plan = pf.calibrate(scenario, "0.01")
    assert plan.scale == 0
    assert plan.certificate.holds
    assert pf.calibrate(scenario, "0.001").scale > 0
    # A doubt is left to balls; a wrong yes is no plan.
    monkeypatch.setattr(module, "_unchanged_is_private", lambda *_: False)
    assert pf.calibrate(scenario, "0.01").scale == 0
    monkeypatch.setattr(module, "_unchanged_is_private", lambda *_: True)
    with pytest.raises(PufferfishError, match="certified"):
        pf.calibrate(scenario, "0.001")


def test_searches_start_on_smaller_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide noise on gathered atoms, narrow noise on stretches; neither changes the answer."""
    used = []
    for name in ("_gathered", "_stretches"):
        honest = getattr(module, name)

        def spy(*given, honest=honest, name=name):  # type: ignore[no-untyped-def]
            used.append(name)
            return honest(*given)

        monkeypatch.setattr(module, name, spy)
    for scenario, epsilon, expected in (
        (smooth(), 0.5, ["_gathered"]),
        (rough(), 10.0, ["_gathered", "_stretches"]),
    ):
        used.clear()
        loss = FloatLoss.of(scenario)
        low = epsilon / N
        found = module._search(loss, epsilon, low, 1e-13)
        assert used == expected
        plain = find_root(module._in_doubles(loss, epsilon), low, low, 1e-13)
        assert found.u == pytest.approx(plain.u, rel=1e-12)


# The search itself, on functions that are known ---------------------------------------------------


@dataclass
class Known:
    """An excess that rises from -1 through 0 at a root, there with a jump of some size."""

    root: float
    jump: float

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        return self.at(Attained(0, 0, 1, 0), u)[0], [Attained(0, 0, 1, 0)]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        rise = u / self.root - 1
        return rise + (self.jump if u > self.root else -self.jump), 1 / self.root

    def reach(self, u: float) -> float:
        return 1.0


def roots() -> Iterator[float]:
    yield from (1e-9, 0.1, 1 / 3, 1.0, 12345.678)


@pytest.mark.parametrize("jump", [0.0, 1e-6, 0.01, 0.5])
def test_the_search_ends_on_the_private_side(jump: float) -> None:
    for root in roots():
        known = Known(root, jump)
        for start in (0.0, root / 2, root, 3 * root):
            found = find_root(known, root / 1000, start, 1e-14, noise=0.0)
            assert known.worst(found.u)[0] <= 1e-15
            assert found.u >= root * (1 - 1e-14)


def test_a_search_that_meets_no_number_is_an_error() -> None:
    with pytest.raises(PufferfishError, match="did not converge"):
        find_root(Known(1.0, float("nan")), 0.1, 0.5, 1e-12)
