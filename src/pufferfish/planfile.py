# SPDX-License-Identifier: Apache-2.0
"""The plan file: a plan as JSON values, and how strictly they are read back.

Read are those entries that decide what a release does. The others (notice, version, assumption,
loss) are for people, and certificate, distortion and sensitivity are claims: none of them can make
a plan unreadable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from pufferfish._version import __version__
from pufferfish.beside import Beside
from pufferfish.certificate import Certificate
from pufferfish.distortion import Distortion
from pufferfish.errors import InputError
from pufferfish.jsonfile import entry, number, texts
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.rationals import parse_epsilon, show
from pufferfish.regions import Confidence, Region, region_rule
from pufferfish.robust.sensitivity import Sensitivity
from pufferfish.support import Lattice, Levels, Support
from pufferfish.supportfile import support_from_dict, support_to_dict
from pufferfish.tables.rules import Rules
from pufferfish.unitcounts import UnitsClaim

if TYPE_CHECKING:
    from pufferfish.plan import Plan

_NAME = re.compile("[a-z][a-z0-9-]{0,39}")
#: Version of the plan file.
FORMAT = 1
_FROM_ROWS = (
    "PRIVATE. This plan was computed from the rows of a table and depends on every one of them; "
    "keep it with the table and do not publish it."
)
_FROM_GIVEN_PRIOR = (
    "PRIVATE. This plan was computed from the given prior and is as private as that prior; keep "
    "it with the prior."
)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values.

    The scale stands under the key ``scale`` and nowhere else; for a channel it is null, and the
    integers stand under ``channel``. Loss, certificate and distortion follow from them, but only
    for people to read: an edited scale is judged by ``verify`` on its merits.
    """
    epsilon = plan.epsilon_exact
    prints = Fraction(repr(float(epsilon))) == epsilon
    return {
        "notice": _FROM_ROWS if plan.from_rows else _FROM_GIVEN_PRIOR,
        "format": FORMAT,
        "version": __version__,
        "mechanism": plan.mechanism,
        "epsilon": float(epsilon) if prints else show(epsilon),
        "scale": plan.scale,
        "channel": None if plan.channel is None else plan.channel.to_dict(),
        "distortion": None if plan.distortion is None else plan.distortion.to_dict(),
        "loss": plan.loss if math.isfinite(plan.loss) else "inf",
        "from_rows": plan.from_rows,
        "assumption": plan.assumption,
        "secrets": list(plan.secrets),
        "pairs": [list(pair) for pair in plan.pairs],
        "regions": [_region_to_dict(rule) for rule in plan.regions],
        "support": support_to_dict(plan.support),
        "rules": None if plan.rules is None else plan.rules.to_dict(),
        "certificate": plan.certificate.to_dict(),
        "sensitivity": None if plan.sensitivity is None else plan.sensitivity.to_dict(),
        "beside": None if plan.beside is None else plan.beside.to_dict(),
        "units": None if plan.units is None else plan.units.to_dict(),
        "digest": plan.digest,
        "notes": list(plan.notes),
    }


def plan_entries(data: Any) -> dict[str, Any]:
    """Return the attributes of the plan that JSON values stand for.

    Raises
    ------
    InputError
        Names the first key that is missing or not of the right kind.
    """
    if not isinstance(data, Mapping) or "scale" not in data or "support" not in data:
        raise InputError("it lacks the keys of a plan (notice, format, scale, support, ...)")
    if type(data.get("format")) is not int or data["format"] != FORMAT:  # true is 1, too
        raise InputError(
            f"its format is {data.get('format')!r}, but this version reads format {FORMAT}"
        )
    support = support_from_dict(entry(data, "support", Mapping))
    applied = _applied(data, support)
    secrets = texts(data, "secrets")
    if not secrets or len(set(secrets)) < len(secrets):
        raise InputError("its 'secrets' must name each secret once, at least one")
    return {
        "mechanism": _mechanism(entry(data, "mechanism", str)),
        "applied": applied,
        "epsilon_exact": parse_epsilon(data.get("epsilon")),
        "certificate": _claimed(data.get("certificate")),
        "support": support,
        "rules": _rules(data.get("rules"), support),
        "secrets": secrets,
        "pairs": _pairs(entry(data, "pairs", list), secrets),
        "digest": entry(data, "digest", str),
        "from_rows": entry(data, "from_rows", bool),
        "notes": texts(data, "notes"),
        "loaded": True,
        "distortion": _claim(Distortion, data.get("distortion")),
        "regions": _regions(entry(data, "regions", list)),
        "sensitivity": _claim(Sensitivity, data.get("sensitivity")),
        "beside": _claim(Beside, data.get("beside")),
        # Without it a release by units is refused, and verify proves the loss anyway.
        "units": _units(data),
    }


def _units(data: Mapping[str, Any]) -> Any:
    """Return what it says of the rows of one person, which the rules must name."""
    claim = _claim(UnitsClaim, data.get("units"))
    rules = data.get("rules")
    if claim is not None and not (isinstance(rules, Mapping) and rules.get("unit")):
        raise InputError("it speaks of the rows of one person, but its rules name no unit")
    return claim


def _mechanism(name: str) -> str:
    """Check that a name is one that a mechanism could have: it is printed as it stands."""
    if not _NAME.fullmatch(name):
        raise InputError(f"its mechanism has the impossible name {name!r}")
    return name


def _applied(data: Mapping[str, Any], support: Support) -> Mechanism:
    channel = data.get("channel")
    if channel is None:
        step = support.step if isinstance(support, Lattice) else Fraction(1)
        return DiscreteLaplace(number(data, "scale"), step)
    if data["scale"] is not None:
        raise InputError("it has both a scale and a channel; one of them must be null")
    if not isinstance(channel, Mapping):
        raise InputError("its 'channel' is not of the right kind")
    made = Channel.from_dict(channel)
    if not made.inputs.same_as(support):
        raise InputError("the inputs of its channel are not its support")
    return made


def _region_to_dict(rule: Region | None) -> dict[str, str] | None:
    if rule is None:
        return None
    if isinstance(rule, Confidence):
        return {"confidence": show(rule.level)}
    return {"tv_radius": show(rule.radius)}


def _regions(rules: list[Any]) -> tuple[Region | None, ...]:
    found = []
    for rule in rules:
        known = rule is None or (
            isinstance(rule, Mapping)
            and len(rule) == 1
            and set(rule) <= {"confidence", "tv_radius"}
            and all(isinstance(number, str) for number in rule.values())
        )
        if not known:
            raise InputError(
                'its regions must be null, {"confidence": "0.95"} or {"tv_radius": "0.1"}, one '
                "for each adversary"
            )
        found.append(None if rule is None else region_rule(**rule))
    if found and not any(found):
        raise InputError("its regions must be an empty list where every prior is exact")
    return tuple(found)


def _pairs(pairs: list[Any], secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(s in secrets for s in pair)):
            raise InputError("its pairs must be a list of pairs of its secrets")
    if any(first == second for first, second in pairs):
        raise InputError("its pairs must be of two different secrets each")
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise InputError("its pairs must name each pair once")
    if not pairs:
        raise InputError("its pairs must be a list of pairs of its secrets, at least one")
    return tuple((first, second) for first, second in pairs)


def _rules(data: Any, support: Support) -> Rules | None:
    if data is None:
        return None
    if isinstance(data, Mapping):
        _check_lists(data)
    try:
        rules = Rules.from_dict(data)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError("its rules are not of the right kind") from None
    if isinstance(rules.order, tuple) and support != Levels(rules.order, ordered=True):
        # A release codes by the support and cleans by the rules: both must mean the same.
        raise InputError("the order of its rules is not that of the levels of its support")
    if rules.missing_level is not None and not (
        isinstance(support, Levels) and rules.missing_level in support.names
    ):
        raise InputError(f"its support lacks the level {rules.missing_level!r} of its rules")
    return rules


def _check_lists(rules: Mapping[str, Any]) -> None:
    """Check what the rules take from people in more forms than a plan file ever holds."""
    for key in ("order", "levels", "missing", "exclude_secrets"):
        value = rules.get(key, [])
        if (value is None and key in ("order", "levels")) or (
            isinstance(value, str) and key == "order"
        ):
            continue
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise InputError(f"the {key!r} of its rules must be a list of texts")
    step = rules.get("step")
    if step is not None and not isinstance(step, str):
        raise InputError("the 'step' of its rules must be a number written as text")


_Claim = TypeVar("_Claim", Beside, Distortion, Sensitivity, UnitsClaim)


def _claim(kind: type[_Claim], data: Any) -> _Claim | None:
    """Return what a file claims, or nothing; like the certificate it is no input."""
    try:
        return None if data is None else kind.from_dict(data)
    except (AttributeError, InputError):
        return None


def _claimed(data: Any) -> Certificate:
    """Return the certificate that a file claims, or one that claims nothing."""
    try:
        return Certificate.from_dict(data)
    except (InputError, OverflowError):
        statement = "The plan file holds no certificate; verify proves the loss."
        return Certificate.of_nothing(None, statement)
