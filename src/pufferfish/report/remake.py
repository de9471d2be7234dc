# SPDX-License-Identifier: Apache-2.0
"""The command, and the Python, that make a plan again."""

import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.numbers import show
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Confidence, TVBall
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, Support

#: Longer lists of values stand in Python as they are, and in a command only if a range names them.
_MOST_NAMED = 200


def command(plan: Plan, table: str | None = "TABLE") -> str:
    """Return the command that makes a plan again, from a table of this name or a prior file."""
    words = ["pufferfish", "calibrate", *(["--prior", "PRIOR"] if table is None else [table])]
    for name, value in {**_reading(plan, table), **_asked(plan)}.items():
        option = "--" + name.replace("_", "-")
        for each in value if isinstance(value, list) else [value]:
            texts = each if isinstance(each, tuple) else (str(each),)
            words += [option] if each is True else [option, *texts]
    return shlex.join([*words, "--save", "plan.json"])


def program(plan: Plan, table: str | None = "TABLE") -> str:
    """Return the Python that makes a plan again, as :func:`command` does."""
    given, asked, support = _reading(plan, table), _asked(plan), plan.support
    pairs, counted = given.pop("pair"), given.pop("publishable", None)
    given.pop("range", None)
    if given.pop("hold_out", None):
        given |= {"hold_out": "SHARE", "rest": "REST"}
    if isinstance(support, Levels):
        given |= {n: list(support.names) for n in ("order", "levels") if n in given}
    elif table is not None and _in_a_row(support) and support.step.denominator == 1:
        first, last = int(support.value(0)), int(support.value(support.size - 1))
        given["support"] = range(first, last + 1, int(support.step))
    elif table is not None and support.size <= _MOST_NAMED:
        given["support"] = [show(value) for value in support.values]
    if "exclude_secret" in given:
        given["exclude_secrets"] = given.pop("exclude_secret")
    epsilon, mechanism = asked.pop("epsilon"), asked.pop("mechanism")
    made = _call("pf.calibrate", "scenario", repr(epsilon), repr(mechanism), **asked)
    lines = ["import pufferfish as pf", ""]
    if counted is not None:
        read = _call("pf.noisy_counts", repr(table), repr(counted), pairs=pairs, **given)
        lines.append("scenario = " + read)
    else:
        read = _call("pf.Prior.from_table", repr(table), **given)
        if table is None:
            lines.append("from pufferfish.priors.prior import read_prior_file")
            read = "read_prior_file(PRIOR)[0]"
            read += _call(".with_region", **given) if given else ""
        lines.append("prior = " + read)
        lines.append("scenario = " + _call("pf.Scenario", "prior", pairs=pairs))
    return "\n".join([*lines, "plan = " + made])


def _call(function: str, *code: str, **named: Any) -> str:
    parts = (*code, *(f"{name}={value!r}" for name, value in named.items()))
    return f"{function}({', '.join(parts)})"


def _reading(plan: Plan, table: str | None) -> dict[str, Any]:
    """Return the options that say how a table is read, and which secrets are hidden."""
    coding, found = plan.coding, {}
    if table is not None and coding is not None:
        found = {
            "secret": plan.secret, "public": coding.column,
            **_values(plan.support, coding.rounds),
            "missing": sorted({*coding.missing, *plan.secret_missing}),
            "missing_as_level": coding.missing_as_level,
            "decimal": None if coding.decimal == "." else coding.decimal,
            "exclude_secret": list(plan.exclude_secrets), "unit": plan.unit,
        }  # fmt: skip
    for rule in plan.regions:
        if isinstance(rule, Confidence):
            found["confidence"] = show(rule.level)
        elif isinstance(rule, TVBall):
            found["tv_radius"] = show(rule.radius)
    if plan.noisy is not None:
        found |= {"publishable": show(plan.noisy.epsilon1), "confidence": show(plan.noisy.level)}
        if plan.noisy.held_out:  # a plan does not know which share it was
            found["hold_out"] = [("SHARE", "REST")]
    found["pair"] = [tuple(pair) for pair in plan.pairs]
    return {name: value for name, value in found.items() if value not in (None, False, [], ())}


def _values(support: Support, rounds: bool) -> dict[str, Any]:
    """Return the options that declare values, as far as they can be declared on a command line."""
    if isinstance(support, Levels):
        names = [name for name in support.names if support.ordered or name != MISSING_LEVEL]
        if len(names) > _MOST_NAMED:
            return {}
        return {"order" if support.ordered else "levels": level_list(names)}
    found: dict[str, Any] = {"step": show(support.step)} if rounds else {}
    if _in_a_row(support) and (rounds or support.step == 1):
        found["range"] = [(support.name(0), support.name(support.size - 1))]
    return found


def _in_a_row(support: Lattice) -> bool:
    return support.size > 1 and bool((np.diff(support.index) == 1).all())


def level_list(names: Sequence[str]) -> str:
    """Return levels as ``--order`` and ``--levels`` take them."""
    plain = [not any(c in name for c in ',"\r\n') and name == name.strip() for name in names]
    quoted = ('"' + name.replace('"', '""') + '"' for name in names)
    return ",".join(n if p else q for n, p, q in zip(names, plain, quoted, strict=True))


def _asked(plan: Plan) -> dict[str, Any]:
    """Return epsilon, the mechanism, and what was asked of a channel."""
    found: dict[str, Any] = {"epsilon": show(plan.epsilon_exact), "mechanism": plan.mechanism}
    if plan.distortion is None or plan.channel is None:
        return found
    name = plan.distortion.cost_name
    if plan.objective is not None:
        found["best_for"] = "FILE" if name == "own statistics" else name
    else:
        found |= {"best_for": "kept", "cost": "FILE" if name == "own" else name}
    for condition in plan.distortion.conditions:
        key, _, value = condition.partition(" ")
        found[key] = value or True
    inputs, outputs = plan.channel.inputs, plan.channel.outputs
    if plan.objective is None and "unbiased" not in found and isinstance(outputs, Lattice):
        step = inputs.step if isinstance(inputs, Lattice) else Fraction(1)
        if outputs.size != inputs.size:
            found["outputs"] = f"fine:{int(step / outputs.step) - 1}"
    return found
