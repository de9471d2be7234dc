# SPDX-License-Identifier: Apache-2.0
"""The plan file: its JSON schema, and how strictly it is read back.

Read strictly are those entries that decide what a release does, and the composition, which says
what else epsilon is for. The notice and the loss are not read. The other claims (certificate,
distortion, sensitivity) decide nothing that is released, only what is said of it, as words of the
file; one that cannot be read is not there. Sizes are checked before anything is allocated.
"""

import json
import math
import sys
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import parse_epsilon, parse_number, show
from pufferfish.plans.guarantee import Distortion
from pufferfish.plans.verify import Sensitivity
from pufferfish.priors.ambiguity import Confidence, NoisyCounts, Rule, TVBall, region_rule
from pufferfish.support import MAX_CELLS, MOST_CELLS, Lattice, Levels, Support
from pufferfish.tables.rules import Coding

#: Version of the plan file.
FORMAT = 2
#: A channel of more entries is refused before its matrix is made.
_MOST_ENTRIES = 4_000_000
FROM_ROWS = (
    "PRIVATE. This plan was computed from the rows of a table and depends on every one of them; "
    "keep it with the table and do not publish it."
)
FROM_GIVEN_PRIOR = (
    "PRIVATE. This plan was computed from the given prior and is as private as that prior; keep "
    "it with the prior."
)
_FROM_NOISY_COUNTS = (
    "PUBLIC. This plan was computed from the noisy counts in it and from what was declared "
    "beforehand. It may be published with the released data: epsilon is for both together; or "
    "for each, if the counted rows are held out, and so in no other output. Anyone can verify it "
    "and estimate with it. True counts, and what is computed from them, are private."
)
_T = TypeVar("_T")
Some = Annotated[tuple[_T, ...], msgspec.Meta(min_length=1)]
_Position = Annotated[int, msgspec.Meta(ge=0)]
_Hexadecimal = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-f]{1,4096}\Z")]
Scale = Annotated[float, msgspec.Meta(ge=0.0, le=sys.float_info.max)]
_Weight = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Name = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9_-]{0,39}\Z")]  # printed as it stands


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Part of a plan file: nothing but the entries that are named."""


class Numbers(_Entry, frozen=True, tag_field="kind", tag="numbers"):
    """A lattice: runs of neighbouring atoms, first and last, in steps from the origin."""

    step: Fraction
    origin: Fraction
    runs: Some[tuple[int, int]]


class LevelNames(_Entry, frozen=True, tag_field="kind", tag="levels"):
    """Levels; an order is that of the names."""

    ordered: bool
    names: Some[str]


class Cleaning(_Entry, frozen=True):
    """How a cell of the public column is read; what its values are is said by the support."""

    column: str
    missing: tuple[str, ...] = ()
    rounds: bool = False
    decimal: Literal[".", ","] = "."
    missing_as_level: bool = False


class Region(_Entry, frozen=True, omit_defaults=True):
    """How far a prior may be from the one given: a confidence or a radius."""

    confidence: Fraction | None = None
    tv_radius: Fraction | None = None
    region: Literal["box"] | None = None


class Matrix(_Entry, frozen=True):
    """A channel: outputs, and for each input its entries [output, hexadecimal integer]."""

    outputs: Numbers | LevelNames
    rows: tuple[tuple[tuple[_Position, _Hexadecimal], ...], ...]


class PlanFile(_Entry, frozen=True, kw_only=True):
    """All entries of a plan file, in their order; under the names that they have in a plan."""

    notice: Any = None
    format: Literal[2]
    mechanism: Name
    epsilon_exact: Fraction = msgspec.field(name="epsilon")
    scale: Scale | None
    channel: Matrix | None = None
    labels: Matrix | None = None
    weights: tuple[_Weight, ...] = ()
    loss: Any = None
    from_rows: bool
    secret: str | None = None
    exclude_secrets: tuple[str, ...] = ()
    secret_missing: tuple[str, ...] = ()
    unit: str | None = None
    rows_per_person: tuple[int, ...] = ()
    pairs: Some[tuple[str, str]]
    regions: tuple[Region | None, ...] = ()
    noisy: NoisyCounts | None = None
    support: Numbers | LevelNames
    coding: Cleaning | None = msgspec.field(name="cleaning", default=None)
    digest: str
    certificate: Any = None
    distortion: Any = None
    sensitivity: Any = None
    composition: Any = None
    notes: tuple[str, ...] = ()


#: What a file claims: believed by nobody, and said only as what the file says.
_CLAIMS: dict[str, Any] = {
    "certificate": Certificate, "distortion": Distortion, "sensitivity": Sensitivity,
    "composition": LossBound,
}  # fmt: skip


def facts_of(data: Any) -> dict[str, Any]:
    """Return the fields of a plan that JSON values stand for, checked entry by entry."""
    form = data.get("format") if isinstance(data, dict) else None
    if form != FORMAT:
        raise InputError(f"its format is {form!r}, but this version reads format {FORMAT}")
    if "query" in data:
        raise InputError(
            "it is of a query: take QueryPlan.load, or pufferfish release, verify or estimate"
        )
    file = converted(data, PlanFile)
    if (file.scale is None) == (file.channel is None):
        raise InputError("it must have a scale or a channel, and the other one must be null")
    columns = [n for n in (file.secret, file.unit, file.coding and file.coding.column) if n]
    if len(set(columns)) < len(columns):
        raise InputError("its columns (cleaning, secret, unit) must differ")
    support = support_of(file.support)
    applied, labels = mechanism_of(file, support)
    if file.weights and (len(file.weights) != support.size or not any(file.weights)):
        raise InputError("its weights must be numbers from 0 to 1, one for each value, not all 0")
    facts = msgspec.structs.asdict(file) | {
        "epsilon_exact": parse_epsilon(file.epsilon_exact), "applied": applied, "labels": labels,
        "support": support,
        "coding": file.coding and Coding(support=support, **msgspec.structs.asdict(file.coding)),
        "regions": tuple(each and _rule(each) for each in file.regions),
    }  # fmt: skip
    facts |= {name: claim(facts[name], kind) for name, kind in _CLAIMS.items()}
    if file.composition is not None and facts["composition"] is None:
        raise InputError("its composition (the other releases that epsilon is for) makes no sense")
    facts["certificate"] = facts["certificate"] or Certificate("none", math.inf, 0.0)
    if file.noisy is not None:
        file.noisy.check(file.pairs, support.size)
        file.noisy.left(facts["epsilon_exact"])
        more = {*data["noisy"]} - {*NoisyCounts.__match_args__}
        if more or file.regions or file.unit is not None or file.rows_per_person:
            raise InputError(f"noisy counts go without {', '.join(more) or 'regions or a unit'}")
        facts |= {"regions": (file.noisy,), "digest": "", "from_rows": False}
    for derived in ("notice", "format", "scale", "channel", "loss", "noisy"):
        del facts[derived]
    return facts


def values(plan: Any) -> dict[str, Any]:
    """Return a plan as JSON values, the scale under the key ``scale`` and nowhere else."""
    coding, epsilon = plan.coding, plan.epsilon_exact
    notice = FROM_ROWS if plan.from_rows else FROM_GIVEN_PRIOR
    own: dict[str, Any] = {name: getattr(plan, name, None) for name in PlanFile.__struct_fields__}
    own |= {
        "notice": _FROM_NOISY_COUNTS if plan.noisy else notice,
        "format": FORMAT,
        "channel": plan.channel and channel_file(plan.channel),
        "labels": plan.labels and channel_file(plan.labels),
        "regions": () if plan.noisy else tuple(map(_rule_file, plan.regions)),
        "support": support_file(plan.support),
        "coding": coding and Cleaning(*[getattr(coding, n) for n in Cleaning.__struct_fields__]),
    }
    written: dict[str, Any] = to_json_values(PlanFile(**own))
    if parse_epsilon(float(epsilon)) == epsilon:  # then a JSON number
        written["epsilon"] = float(epsilon)
    return written


def converted(data: Any, kind: type[_T], strict: bool = True) -> _T:
    """Return JSON values as a struct or dataclass."""
    try:
        # What msgspec does not know are fractions.
        return msgspec.convert(
            data, kind, strict=strict, dec_hook=lambda _, value: parse_number(value, "a number")
        )
    except msgspec.ValidationError as error:
        raise InputError(" ".join(str(error).split())) from None


def claim(data: Any, kind: Any) -> Any:
    """Return what a file claims, or None where it makes no sense."""
    try:
        # Not strictly, "inf" is a number; "nan" is none that could be written again.
        found = None if data is None else converted(data, kind, strict=False)
        json.dumps(to_json_values(found), allow_nan=False)
        return found
    except (ValueError, OverflowError, RecursionError):
        return None


def to_json_values(value: Any) -> Any:
    """Return structs and dataclasses as JSON values; fractions are text, infinity is ``inf``."""
    return _finite(msgspec.to_builtins(value, enc_hook=show))


def support_file(support: Support) -> Numbers | LevelNames:
    """Return a support as its entry; a million integers in a row are one run."""
    if isinstance(support, Levels):
        return LevelNames(support.ordered, support.names)
    index = support.index
    starts = np.flatnonzero(np.diff(index, prepend=-2, append=index[-1] + 2) > 1)
    runs = zip(index[starts[:-1]].tolist(), index[starts[1:] - 1].tolist(), strict=True)
    return Numbers(support.step, Fraction(support.origin), tuple(runs))


def support_of(file: Numbers | LevelNames, most: int = MOST_CELLS) -> Support:
    """Return the support that an entry stands for, of at most so many atoms."""
    if isinstance(file, LevelNames):
        if len(file.names) > most:
            raise InputError(f"its support must name at most {most} levels")
        return Levels(file.names, file.ordered)
    if file.step <= 0 or file.origin.denominator != 1:
        raise InputError("its step must be above 0 and its origin a whole number of steps")
    ends = [end for run in file.runs for end in run]
    if ends[0] != 0 or ends != sorted(ends) or ends[-1] > MAX_CELLS:
        raise InputError("the runs of its support must be increasing pairs of integers from 0")
    if sum(last - first + 1 for first, last in file.runs) > most:
        raise InputError(f"the runs of its support must hold at most {most} atoms")
    runs = [np.arange(first, last + 1, dtype=np.int64) for first, last in file.runs]
    return Lattice(file.step, int(file.origin), np.unique(np.concatenate(runs)))


def channel_file(channel: Channel) -> Matrix:
    """Return a channel as its entry."""
    rows = tuple(
        tuple((y, hex(value)) for y, value in enumerate(row) if value)
        for row in channel.rows.tolist()
    )
    return Matrix(support_file(channel.outputs), rows)


def mechanism_of(file: Any, support: Support) -> tuple[Channel | DiscreteLaplace, Channel | None]:
    """Return the mechanism and the labels that the entries scale, channel and labels stand for."""
    if file.channel is not None:
        channel = _channel_of(file.channel, support, "channel")
        return channel, file.labels and _channel_of(file.labels, channel.outputs, "label matrix")
    if file.labels is not None:
        raise InputError("it has labels, but no channel of sets")
    step = support.step if isinstance(support, Lattice) else Fraction(1)
    return DiscreteLaplace(file.scale or 0.0, step), None


def _channel_of(file: Matrix, inputs: Support, what: str) -> Channel:
    if len(file.rows) != inputs.size:
        raise InputError(f"its {what} needs {inputs.size} rows, but has {len(file.rows)}")
    outputs = support_of(file.outputs, _MOST_ENTRIES // inputs.size)
    rows = np.zeros((inputs.size, outputs.size), dtype=object)
    for x, row in enumerate(file.rows):
        entries = dict(row)
        if len(entries) < len(row) or max(entries, default=0) >= outputs.size:
            raise InputError(f"the entries of its {what} must be of its outputs, each once")
        for y, written in row:
            rows[x, y] = int(written, 16)
    return Channel(inputs, outputs, rows)


def _rule_file(rule: Rule | None) -> Region | None:
    if isinstance(rule, Confidence):
        return Region(confidence=rule.level, region="box" if rule.box else None)
    return Region(tv_radius=rule.radius) if isinstance(rule, TVBall) else None


def _rule(file: Region) -> Rule | None:
    if file == Region():
        raise InputError("a region needs a confidence or a tv_radius")
    return region_rule(**msgspec.structs.asdict(file))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return "inf" if data == math.inf else data
