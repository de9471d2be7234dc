# SPDX-License-Identifier: Apache-2.0
"""The public record of a query's release: what those who receive the answer may see of the plan."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from pufferfish.errors import InputError
from pufferfish.files import write_json
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import checked_flag, parse_number, show
from pufferfish.plans import schema
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
    "nobody learns more than that about which of them holds."
)
_SECRETS = {"record": "states of a record", "sequence": "sequences of states of one and the same"}


def write_query_record(
    path: str | Path, plan: QueryPlan, *, seeded: bool = False, publish: bool = False,
    force: bool = False,
) -> None:  # fmt: skip
    """Write the public record of the release of an answer, whole or not at all.

    With ``publish`` it also tells the scale, from which errors follow; one that was computed from
    rows depends on every one of them.
    """
    query = plan.query
    record: dict[str, Any] = {
        "notice": _NOTICE,
        "format": schema.FORMAT,
        "query": query.kind,
        "names": query.names,
        "protected": query.protect,
        "epsilon": show(plan.epsilon_exact),
        "mechanism": "discrete Laplace noise",
        "certificate": {"claimed": plan.certificate.holds and not seeded},
        "promise": None if seeded else _PROMISE.format(_SECRETS[query.protect]),
        "assumptions": [] if seeded else assumptions(plan),
    }
    if checked_flag(publish, "publish"):
        record |= {"scale": plan.scale, "step": show(query.step)}
    write_json(path, schema.to_json_values(record), force=force)


class _Published(msgspec.Struct, frozen=True):
    """What of a record is read back."""

    format: Literal[2]
    names: tuple[str, ...]
    scale: schema.Scale | None = None
    step: str | None = None


def noise_of_record(data: Any, path: str | Path) -> tuple[tuple[str, ...], DiscreteLaplace]:
    """Return the names of an answer's numbers, and their noise, from the values of a record."""
    try:
        file: _Published = schema.converted(data, _Published)
    except InputError as error:
        raise InputError(f"{path} is no usable record of a query: {error}") from None
    if file.scale is None or file.step is None:
        raise InputError(
            f"{path} is a record that does not tell the scale; whoever released the answer can "
            "tell it with --publish-scale"
        )
    return file.names, DiscreteLaplace(file.scale, parse_number(file.step, "the step"))


def assumptions(plan: QueryPlan) -> list[str]:
    """Return under which assumptions the promise holds (theory, section 8.11)."""
    chains = all(isinstance(m, MarkovChain | ChainBox) for m in plan.query.models)
    what = "records of a sequence are a Markov chain, each depending on the one before alone"
    found = [
        "How many records there are is public; all that is released of them, this answer included, "
        "counts together.",
    ]
    if plan.query.protect == "record":
        group = what if chains else "records depend on each other as the model says"
        found.append(
            f"The promise is against those who believe that {group}, with the probabilities that "
            "were taken into account, and that different sequences or groups are independent."
        )
        found.append("It is for each single record, not for all records of a sequence together.")
    if plan.from_rows:
        found.append(
            "The model was fitted to rows of a table, and the scale of the noise was computed from "
            "it: from the scale somebody may learn of every one of these rows."
        )
    return found
