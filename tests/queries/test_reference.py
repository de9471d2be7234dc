# SPDX-License-Identifier: Apache-2.0
"""Scales that were computed elsewhere, for every mechanism, law and epsilon; each is proved."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.queries.case import Case
from pufferfish.queries.plan import certify_query
from pufferfish.queries.query import Query
from pufferfish.queries.routes import lower_bound

CASES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
)
#: Relative errors of the values; those of others come from floats alone.
TOLERANCE = {"mqm-exact": 1e-6, "mqm-approx": 1e-6, "gk16": 1e-6}
LIMITS = "histogram, three states, every T"
#: Values of exact scales are rounded to their last digit.
ROUNDED = 1e-12


def query_of(case: dict[str, Any]) -> Query:
    weights = case.get("weights", [0, 1])
    if "counts" in case:
        return pf.CountQuery(pf.Household(range(2), counts=case["counts"]), 1)
    rows = case["transition"]
    if "parents" in case:
        return pf.CountQuery(pf.Tree(range(2), case["parents"], case["root"], rows), 1)
    chain = pf.MarkovChain(range(len(rows)), rows, case.get("initial", "stationary"))
    if len(rows) > 2 and "weights" not in case:
        return pf.HistogramQuery(chain, case["length"])
    return pf.SumQuery(chain, dict(enumerate(weights)), case["length"])


@pytest.mark.parametrize("name", CASES)
def test_every_known_scale(name: str) -> None:
    case = CASES[name]
    query = query_of(case)
    for mechanism, values in case["scales"].items():
        for epsilon, expected in zip(case["epsilon"], values, strict=True):
            if expected is None:  # the published condition is not met
                with pytest.raises(InputError, match="no finite scale"):
                    pf.calibrate(query, epsilon, mechanism)
                continue
            near = 1e-7 if name == LIMITS else TOLERANCE.get(mechanism, 1e-9)
            if mechanism == "ends":
                found = lower_bound(Case(query), Fraction(epsilon))
                assert found == pytest.approx(expected, rel=near)
                assert found <= expected * (1 + ROUNDED) or name == LIMITS
                continue
            if mechanism == "mqm-exact" and name == LIMITS:  # quilts need a number of records
                query = pf.HistogramQuery(query.models[0], 10**6)
            plan = pf.calibrate(query, epsilon, mechanism)
            assert plan.scale == pytest.approx(expected, rel=near), (mechanism, epsilon)
            assert plan.certificate.holds
            assert plan.loss <= plan.epsilon == float(epsilon)
            if mechanism == "exact":
                assert plan.scale >= expected * (1 - ROUNDED)
                assert plan.scale * (1 - 1e-9) <= plan.least_scale <= plan.scale
                less = certify_query(query, expected * (1 - 1e-6), plan.epsilon_exact)
                assert not less.holds


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.get("length") == "any"])
def test_what_holds_for_any_length_holds_for_each(name: str) -> None:
    query = query_of(CASES[name])
    [chain] = query.models
    for epsilon in CASES[name]["epsilon"]:
        plan = pf.calibrate(query, epsilon)
        for length in (1, 2, 40):
            if query.vector:
                own: Query = pf.HistogramQuery(chain, min(length, 4))
            else:
                own = pf.CountQuery(chain, 1, length)
            assert certify_query(own, plan.scale, plan.epsilon_exact).holds
            exact = pf.calibrate(own, epsilon, "exact").scale
            assert exact <= plan.scale * (1 + ROUNDED)
        if not query.vector:  # the limit is reached: no smaller scale does for long sequences
            long = pf.CountQuery(chain, 1, 3000)
            assert pf.calibrate(long, epsilon, "exact").scale == pytest.approx(plan.scale, rel=1e-9)


def test_no_mechanism_of_two_states_is_below_the_formula() -> None:
    """theory, section 8.4: sinh(1 / (2 theta)) = (1 - p) / p sinh(epsilon / 2)."""
    for stay in ("1/2", "3/5", ".999"):
        p = Fraction(stay)
        chain = pf.MarkovChain(range(2), [[p, 1 - p], [1 - p, p]])
        for epsilon in (0.01, 20):
            theta = 1 / (2 * math.asinh(float((1 - p) / p) * math.sinh(epsilon / 2)))
            plan = pf.calibrate(pf.CountQuery(chain, 1, "any"), epsilon)
            assert plan.mechanism == "exact"
            assert plan.scale == pytest.approx(theta, rel=1e-9)
            assert plan.scale >= theta * (1 - ROUNDED)
            twice = pf.calibrate(pf.HistogramQuery(chain, "any"), epsilon)
            assert twice.scale == pytest.approx(2 * theta, rel=1e-9)
