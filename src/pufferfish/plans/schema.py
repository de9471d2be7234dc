# SPDX-License-Identifier: Apache-2.0
"""The plan file: its JSON schema, and how strictly it is read back.

Read are those entries that decide what a release does. What is for people (notice, version, loss)
and what is claimed (certificate, distortion, sensitivity, composition) is no input to anything, so
none of it can make a plan unreadable. Sizes are checked before anything is allocated.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import parse_epsilon, parse_number, show
from pufferfish.priors.ambiguity import Confidence, Rule, region_rule
from pufferfish.support import MAX_CELLS, MOST_CELLS, Lattice, Levels, Support
from pufferfish.tables.rules import Coding

_Any = TypeVar("_Any")
#: Version of the plan file.
FORMAT = 2
#: A channel of more entries is refused before its matrix is made.
_MOST_ENTRIES = 4_000_000
_NAME = re.compile("[a-z][a-z0-9_-]{0,39}")


_FROM_ROWS = (
    "PRIVATE. This plan was computed from the rows of a table and depends on every one of them; "
    "keep it with the table and do not publish it."
)
_FROM_GIVEN_PRIOR = (
    "PRIVATE. This plan was computed from the given prior and is as private as that prior; keep "
    "it with the prior."
)


class Numbers(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="numbers"
):
    """A lattice: runs of neighbouring atoms, first and last, in steps from the origin."""

    step: Fraction
    origin: Fraction
    runs: tuple[tuple[int, int], ...]


class LevelNames(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="levels"
):
    """Levels; an order is that of the names."""

    ordered: bool
    names: tuple[str, ...]


class Cleaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a cell of the public column is read; what its values are is said by the support."""

    column: str
    missing: tuple[str, ...] = ()
    rounds: bool = False
    decimal: Literal[".", ","] = "."
    missing_as_level: bool = False


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A channel from the support: outputs, and for each value its [output, integer] entries.

    Integers are hexadecimal; the denominators are their sums, so nothing is said twice.
    """

    outputs: Numbers | LevelNames
    rows: tuple[tuple[tuple[int, str], ...], ...]


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rule of a region: one of the two."""

    confidence: Fraction | None = None
    tv_radius: Fraction | None = None


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All entries of a plan file, in their order."""

    notice: Any = None
    format: Literal[2]
    mechanism: str
    epsilon: Fraction
    scale: float | None
    channel: Matrix | None = None
    loss: Any = None
    from_rows: bool
    secret: str | None = None
    exclude_secrets: tuple[str, ...] = ()
    secret_missing: tuple[str, ...] = ()
    unit: str | None = None
    rows_per_person: tuple[int, ...] = ()
    secrets: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    regions: tuple[RuleFile | None, ...] = ()
    support: Numbers | LevelNames
    cleaning: Cleaning | None = None
    digest: str
    certificate: Any = None
    distortion: Any = None
    sensitivity: Any = None
    composition: Any = None
    notes: tuple[str, ...] = ()


#: Entries that are attributes of the plan as they stand.
_SAME = (
    "mechanism", "from_rows", "secret", "exclude_secrets", "secret_missing", "unit",
    "rows_per_person", "secrets", "pairs", "digest", "notes",
)  # fmt: skip


def read_plan_file(data: Any) -> PlanFile:
    """Return JSON values as a plan file, checked entry by entry."""
    if not isinstance(data, dict) or "scale" not in data or "support" not in data:
        raise InputError("it lacks the keys of a plan (notice, format, scale, support, ...)")
    if type(data.get("format")) is not int or data["format"] != FORMAT:  # true is 1, too
        raise InputError(
            f"its format is {data.get('format')!r}, but this version reads format {FORMAT}"
        )
    file = converted(data, PlanFile)
    if not _NAME.fullmatch(file.mechanism):  # it is printed as it stands
        raise InputError(f"its mechanism has the impossible name {file.mechanism!r}")
    if (file.scale is None) == (file.channel is None):
        raise InputError("it must have a scale or a channel, and the other one must be null")
    if file.scale is not None and not (math.isfinite(file.scale) and file.scale >= 0):
        raise InputError(f"its scale must be a finite number, not negative, but is {file.scale}")
    if not file.secrets or len(set(file.secrets)) < len(file.secrets):
        raise InputError("its secrets must name each secret once, at least one")
    _check_pairs(file.pairs, set(file.secrets))
    _check_people(file)
    return file


def values(plan: Any) -> dict[str, Any]:
    """Return a plan as JSON values, the scale under the key ``scale`` and nowhere else."""
    own = {name: getattr(plan, name) for name in PlanFile.__struct_fields__ if hasattr(plan, name)}
    special = {
        "notice": _FROM_ROWS if plan.from_rows else _FROM_GIVEN_PRIOR,
        "format": FORMAT,
        "epsilon": plan.epsilon_exact,
        "channel": None if plan.channel is None else channel_file(plan.channel),
        "regions": tuple(map(rule_file, plan.regions)),
        "support": support_file(plan.support),
        "cleaning": None if plan.coding is None else _cleaning(plan.coding),
    }
    return {
        **to_json_values(PlanFile(**(own | special))),
        "epsilon": _number_written(plan.epsilon_exact),
    }


def attributes(file: PlanFile) -> dict[str, Any]:
    """Return the attributes of the plan that a file stands for, but for its claims."""
    support = support_of(file.support)
    applied: Channel | DiscreteLaplace
    if file.channel is not None:
        applied = channel_of(file.channel, support)
    else:
        step = support.step if isinstance(support, Lattice) else Fraction(1)
        applied = DiscreteLaplace(file.scale or 0.0, step)
    coding = None
    if file.cleaning is not None:
        coding = Coding(support=support, **msgspec.structs.asdict(file.cleaning))
    return {name: getattr(file, name) for name in _SAME} | {
        "applied": applied,
        "epsilon_exact": parse_epsilon(file.epsilon),
        "support": support,
        "coding": coding,
        "regions": _rules_of(file.regions),
    }


def _check_pairs(pairs: Sequence[tuple[str, str]], secrets: set[str]) -> None:
    if not pairs:
        raise InputError("its pairs must name at least one pair of its secrets")
    for first, second in pairs:
        if first == second or first not in secrets or second not in secrets:
            raise InputError("its pairs must be of two different of its secrets each")
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise InputError("its pairs must name each pair once")


def _check_people(file: PlanFile) -> None:
    rows = file.rows_per_person
    if any(k < 1 for k in rows) or list(rows) != sorted(set(rows)):
        raise InputError("its rows_per_person must be increasing numbers of rows")
    if bool(rows) and file.unit is None:
        raise InputError("it speaks of the rows of one person, but names no unit")


def converted(data: Any, kind: type[_Any]) -> _Any:
    """Return JSON values as a struct."""
    try:
        return msgspec.convert(data, kind, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None


def to_json_values(value: Any) -> Any:
    """Return structs and dataclasses as JSON values; fractions are text, infinity is ``inf``."""
    return _without_infinity(msgspec.to_builtins(value, enc_hook=_encoded))


def claim(kind: type[_Any], data: Any) -> _Any | None:
    """Return what a file claims, or nothing."""
    try:
        return None if data is None else msgspec.convert(_infinite(data), kind, dec_hook=_decoded)
    except (msgspec.ValidationError, InputError, OverflowError, RecursionError):
        return None


def support_file(support: Support) -> Numbers | LevelNames:
    """Return a support as its entry; a million integers in a row are one run."""
    if isinstance(support, Levels):
        return LevelNames(support.ordered, support.names)
    index = support.index
    breaks = np.flatnonzero(np.diff(index) > 1)
    firsts = index[np.concatenate([[0], breaks + 1])].tolist()
    lasts = index[np.concatenate([breaks, [len(index) - 1]])].tolist()
    runs = tuple(zip(firsts, lasts, strict=True))
    return Numbers(support.step, Fraction(support.origin), runs)


def support_of(file: Numbers | LevelNames, most: int = MOST_CELLS) -> Support:
    """Return the support that an entry stands for, of at most so many atoms."""
    if isinstance(file, LevelNames):
        if not file.names or len(set(file.names)) < len(file.names):
            raise InputError("its support must name each level once")
        return Levels(file.names, file.ordered)
    if file.step <= 0 or file.origin.denominator != 1:
        raise InputError("its step must be above 0 and its origin a whole number of steps")
    ends = [end for run in file.runs for end in run]
    apart = all(a < b for (_, a), (b, _) in zip(file.runs, file.runs[1:], strict=False))
    if not ends or ends[0] != 0 or ends[-1] > MAX_CELLS or ends != sorted(ends) or not apart:
        raise InputError("the runs of its support must be increasing pairs of integers from 0")
    if sum(last - first + 1 for first, last in file.runs) > most:
        raise InputError(f"the runs of its support must hold at most {most} atoms")
    runs = [np.arange(first, last + 1, dtype=np.int64) for first, last in file.runs]
    return Lattice(file.step, int(file.origin), np.concatenate(runs))


def _cleaning(coding: Coding) -> Cleaning:
    return Cleaning(**{name: getattr(coding, name) for name in Cleaning.__struct_fields__})


def channel_file(channel: Channel) -> Matrix:
    """Return a channel as its entry."""
    rows = tuple(
        tuple((y, hex(value)) for y, value in enumerate(row) if value)
        for row in channel.rows.tolist()
    )
    return Matrix(support_file(channel.outputs), rows)


def channel_of(file: Matrix, inputs: Support) -> Channel:
    """Return the channel that an entry stands for."""
    if len(file.rows) != inputs.size:
        raise InputError(f"its channel needs {inputs.size} rows, but has {len(file.rows)}")
    outputs = support_of(file.outputs, _MOST_ENTRIES // inputs.size)
    if inputs.size * outputs.size > _MOST_ENTRIES:
        raise InputError(f"its channel has more than {_MOST_ENTRIES} entries")
    rows = np.zeros((inputs.size, outputs.size), dtype=object)
    for x, row in enumerate(file.rows):
        places = [y for y, _ in row]
        if not all(0 <= y < outputs.size for y in places) or len(set(places)) < len(places):
            raise InputError("the entries of its channel must be of its outputs, each once")
        for y, written in row:
            rows[x, y] = _hexadecimal(written)
    return Channel.of(inputs, outputs, rows)


def rule_file(rule: Rule | None) -> RuleFile | None:
    """Return the rule of a region as its entry."""
    if rule is None:
        return None
    if isinstance(rule, Confidence):
        return RuleFile(confidence=rule.level)
    return RuleFile(tv_radius=rule.radius)


def _rules_of(file: Sequence[RuleFile | None]) -> tuple[Rule | None, ...]:
    """Return the rules that entries stand for, one for each adversary; none where all are exact."""
    rules = tuple(
        None if rule is None else region_rule(rule.confidence, rule.tv_radius) for rule in file
    )
    for rule, written in zip(rules, file, strict=True):
        if rule is None and written is not None:
            raise InputError("a region is given by its confidence, or by its tv_radius above 0")
    if rules and not any(rules):
        raise InputError("its regions must be an empty list where every prior is exact")
    return rules


def _number_written(value: Fraction) -> float | str:
    """Return an exact number as the JSON number that prints it, or as text where there is none."""
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) == value else show(value)


def _hexadecimal(text: str) -> int:
    if not re.fullmatch("0x[0-9a-f]{1,4096}", text):
        raise InputError(f"an entry of its channel must be hexadecimal, but is {text[:40]!r}")
    return int(text, 16)


def _decoded(kind: type, value: Any) -> Any:
    if kind is Fraction and isinstance(value, int | float | str):
        return parse_number(value, "a number")
    raise InputError(f"a number or a text that holds one is needed, but {value!r} was found")


def _encoded(value: Any) -> Any:
    if isinstance(value, Fraction):
        return show(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def _without_infinity(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_infinity(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_infinity(value) for value in data]
    return "inf" if isinstance(data, float) and math.isinf(data) else data


def _infinite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _infinite(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_infinite(value) for value in data]
    return math.inf if data == "inf" else data
