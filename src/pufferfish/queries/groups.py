# SPDX-License-Identifier: Apache-2.0
"""IndependentGroups: several groups of records, each independent of the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pufferfish.errors import InputError
from pufferfish.queries.household import Household
from pufferfish.queries.model import Law
from pufferfish.queries.tree import Tree

KINDS: dict[str, type[Tree | Household]] = {"tree": Tree, "household": Household}


@dataclass(frozen=True, init=False)
class IndependentGroups:
    """Groups that are independent of each other: noise for the worst one is enough for all.

    Parameters
    ----------
    models : sequence of Tree and Household
        The law of each group, on the same states; of equal ones the first is kept.
    """

    models: tuple[Tree | Household, ...]

    def __init__(self, models: Sequence[Any]) -> None:
        own = dict.fromkeys(map(_group, models if isinstance(models, list | tuple) else [models]))
        if len({each.states for each in own}) != 1:
            raise InputError("there must be one or more groups, all with the same states in order")
        object.__setattr__(self, "models", tuple(own))

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states."""
        return self.models[0].states

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of records in each distinct group."""
        return tuple(size for each in self.models for size in each.sizes(lengths))

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every record of each distinct group."""
        yield from (law for each in self.models for law in each.laws(weights, lengths))

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make these groups again, as JSON values."""
        names = {kind: name for name, kind in KINDS.items()}
        return {"models": [{"kind": names[type(m)], **m.to_json()} for m in self.models]}


def _group(given: Any) -> Tree | Household:
    """Return a group, or that which was written with its kind."""
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind](**{name: each for name, each in given.items() if name != "kind"})
    if isinstance(given, Tree | Household):
        return given
    raise InputError(f"a group must be a Tree or a Household, but {given!r} was given")
