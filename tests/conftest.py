# SPDX-License-Identifier: Apache-2.0
"""The whole test suite: how hard hypothesis searches, and a referee for every plan that is saved.

`HYPOTHESIS_PROFILE=slow pytest` or `pytest --hypothesis-profile=slow` chooses a profile. `fast` and
`search` draw new examples each time; `ci` and `slow` draw the same ones, so that what is refused is
refused again. A busy machine is no fault of the code.
"""

import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import referee

for name, examples in (("fast", 50), ("ci", 100), ("slow", 2000), ("search", 2000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=name in ("ci", "slow"),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

#: Likelihoods, and cells of a confidence region times rows, that a referee computes in some ms.
MOST_WORK, MOST_CELLS = 20_000, 2_000
#: Values of a plan from noisy counts, of which it makes the whole walk.
MOST_NOISY = 5


@pytest.fixture(scope="session", autouse=True)
def referee_of_saved_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[Any]]:
    """Let the referee judge every plan that is saved, against the scenario it was made for.

    The scenario is what `Plan.of` was called with; its priors are written down in exact fractions.
    What was judged already, by digest and mechanism, is not judged again.
    """
    from pufferfish.plans.plan import Plan

    scenarios: dict[str, Any] = {}
    judged: set[Any] = set()
    made, save = Plan.of.__func__, Plan.save  # type: ignore[attr-defined]  # a class method
    folder = tmp_path_factory.mktemp("referee")

    def remembering(cls: type[Plan], scenario: Any, *given: Any, **claims: Any) -> Plan:
        plan: Plan = made(cls, scenario, *given, **claims)
        if refereed(plan, scenario):
            scenarios[plan.digest] = scenario
        return plan

    def judging(plan: Plan, path: Any, **options: Any) -> None:
        save(plan, path, **options)
        if plan.noisy is not None and not plan.loaded and plan.support.size <= MOST_NOISY:
            loss = referee.judge(Path(path))
            if not referee.within(loss, Path(path)):
                pytest.fail(f"the referee finds a loss of {loss} for {plan!r}")
        scenario, key = scenarios.get(plan.digest), (plan.digest, plan.applied, plan.labels)
        # A plan that came from a file may be one that a test made worse.
        if scenario is None or plan.loaded or key in judged:
            return
        judged.add(key)
        files = []
        for number, prior in enumerate(scenario.priors):
            files.append(folder / f"{number}.json")
            files[-1].write_text(json.dumps(prior_file(prior)), encoding="utf-8")
        regions = [rule and region_of(rule) for rule in scenario.rules]
        loss = referee.judge(Path(path), priors=files, regions=regions)
        if not referee.within(loss, Path(path)):
            pytest.fail(f"the referee finds a loss of {loss} for {plan!r}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "of", classmethod(remembering))
        patch.setattr(Plan, "save", judging)
        yield judged


def refereed(plan: Any, scenario: Any) -> bool:
    """Whether a scenario is one of which a prior file tells everything, and small enough."""
    if plan.noisy is not None:  # its file tells all that the plan was made from
        return False
    if scenario.unit is not None:  # the rows of one person: only a table has them
        return False
    if len(set(scenario.rules)) > 1:  # adversaries with regions of their own
        return False
    size = scenario.support.size
    outputs = size if plan.channel is None else plan.channel.outputs.size
    if size * outputs * len(scenario.pairs) * len(scenario.priors) > MOST_WORK:
        return False
    rows = max(sum(prior.totals) for prior in scenario.priors)
    confident = any(hasattr(rule, "level") for rule in scenario.rules)
    return not confident or size * len(scenario.protected) * rows <= MOST_CELLS


def prior_file(prior: Any) -> dict[str, Any]:
    """The contents of a prior file, in exact fractions, and from how many rows they come."""
    support, secrets = prior.support, {}
    for secret in prior.secrets:
        row = prior.row(secret)
        total = int(prior.totals[row])
        secrets[secret] = {
            support.name(x): str(Fraction(int(count), total))
            for x, count in enumerate(prior.counts[row].tolist())
        }
    rows = {s: int(prior.totals[prior.row(s)]) for s in prior.secrets if prior.from_rows}
    return {"secrets": secrets, "rows": rows}


def region_of(rule: Any) -> dict[str, str]:
    """A region as a plan file names it."""
    if hasattr(rule, "level"):
        return {"confidence": str(rule.level)} | ({"region": "box"} if rule.box else {})
    return {"tv_radius": str(rule.radius)}
