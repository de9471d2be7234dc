# SPDX-License-Identifier: Apache-2.0
"""The public record of a query's release: what those who receive the answer may see of the plan."""

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec

from pufferfish.errors import InputError
from pufferfish.files import write_json
from pufferfish.mechanisms.laplace import MAX_STEPS, DiscreteLaplace
from pufferfish.numbers import checked_flag, show
from pufferfish.plans import schema
from pufferfish.queries.answer import Bounds, QueryAnswer
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox
from pufferfish.queries.plan import QueryPlan

_NOTICE = (
    "PUBLIC. What those who receive the released answer may know of how it was made. It holds no "
    "model and no digest; the plan is private. It is a statement by whoever released the answer, "
    "not a proof."
)
_PROMISE = (
    "Whatever is released, its chance is the same for any two {0} up to a factor of e**epsilon: "
    "nobody learns more than that about which of them is the true one."
)
_SECRETS = {"record": "states of a record", "sequence": "courses of all states of a sequence"}


def write_query_record(
    path: str | Path, plan: QueryPlan, *, bounds: Bounds | None = None, seeded: bool = False,
    publish: bool = False, force: bool = False,
) -> None:  # fmt: skip
    """Write the public record of the release of an answer, whole or not at all.

    With ``publish`` it also tells the scale, from which errors follow; one that was computed from
    rows depends on every one of them. ``bounds``: what the answer was moved into.
    """
    query, source, holds = plan.query, plan.source, plan.certificate.holds and not seeded
    record: dict[str, Any] = {
        "notice": _NOTICE,
        "format": schema.FORMAT,
        "query": query.kind,
        "column": source and source.state,
        "names": query.names,
        "numbers": None if query.vector else dict(zip(query.states, query.numbers, strict=True)),
        "gaps": source and source.gaps,
        "bounds": bounds,
        "protected": query.protect,
        "epsilon": plan.epsilon_exact,
        "mechanism": "discrete Laplace noise",
        "certificate": {"claimed": holds},
        "promise": _PROMISE.format(_SECRETS[query.protect]) if holds else None,
        "assumptions": assumptions(plan) if holds else [],
    }
    if checked_flag(publish, "publish"):
        record |= {"scale": plan.scale, "step": query.step}
    write_json(path, schema.to_json_values(record), force=force)


class _Published(msgspec.Struct, frozen=True):
    """What of a record is read back."""

    format: Literal[2]
    query: str
    names: tuple[str, ...]
    bounds: tuple[Fraction, Fraction] | None = None
    scale: schema.Scale | None = None
    step: Fraction | None = None


def answer_of_record(data: Any, path: str | Path) -> QueryAnswer:
    """Return an answer without its numbers, from the values of a record that tells the scale."""
    try:
        file: _Published = schema.converted(data, _Published)
    except InputError as error:
        raise InputError(f"{path} is no usable record of an answer: {error}") from None
    if file.scale is None or file.step is None:
        raise InputError(
            f"{path} is a record that does not tell the scale; whoever released the answer can "
            "tell it with --publish-scale"
        )
    if file.scale > MAX_STEPS * file.step:
        raise InputError(f"{path}: noise of scale {file.scale!r} does not fit in 64 bits")
    noise = DiscreteLaplace(file.scale, file.step)
    return QueryAnswer(file.query, file.names, (), 1, noise, file.bounds)


def assumptions(plan: QueryPlan) -> list[str]:
    """Return under which assumptions the promise holds (theory, section 8.11)."""
    models = plan.query.models
    found = [
        "How many records each sequence has is public. All that is released of these records "
        "counts together: the joint loss of two answers can be larger than the sum of both.",
        "Different sequences (or groups) are independent of one another.",
    ]
    if plan.query.protect == "record":
        law = "records depend on each other as the model says"
        if all(isinstance(m, MarkovChain | ChainBox) for m in models):
            law = "a record depends on the one before it alone (a Markov chain)"
        box = any(isinstance(m, ChainBox) for m in models)
        which = "any probabilities of the class" if box else "the probabilities"
        found += [
            f"The promise is against those who believe that {law}, with {which} that were taken "
            "into account.",
            "It is for each single record, not for all records of a sequence together.",
        ]
    if plan.fit is not None and plan.fit.confidence is not None:
        found.append(
            f"The class is that of {show(plan.fit.confidence * 100)} % intervals around what was "
            "counted, which hold together for long tables only (asymptotically)."
        )
    if plan.from_rows:
        found.append(
            "The model was fitted to rows of a table, and the scale of the noise was computed from "
            "it: from the scale somebody may learn of every one of these rows."
        )
    return found
