# SPDX-License-Identifier: Apache-2.0
"""Tree: records each of which depends on its parent; exact."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pufferfish.errors import InputError
from pufferfish.queries import model
from pufferfish.queries.model import Distribution, Law, Rows


@dataclass(frozen=True, init=False)
class Tree(model.Model):
    """Records at the nodes of a tree; given its parent, a node depends on none that is not below.

    Parameters
    ----------
    states : sequence of k names
    parents : sequence of int or None
        For each node the position of its parent; None for the only root.
    root : k probabilities
        The law of the root: numbers or strings such as "3/4", or a mapping from state.
    transition : k rows of k probabilities, or a list of such rows for each node
        Row s holds the law of a node whose parent has state s. In a list the root has None.
    """

    parents: tuple[int | None, ...]
    root: Distribution
    transition: tuple[Rows | None, ...]

    def __init__(self, states: Iterable[Any], parents: Any, root: Any, transition: Any) -> None:
        names, above, notes = model.read_states(states), _read_parents(parents), list[str]()
        law = model.read_distribution(root, names, "the law of the root", notes)
        if not isinstance(transition, list | tuple) or all(rows is not None for rows in transition):
            transition = [None if parent is None else transition for parent in above]
        if [rows is None for rows in transition] != [parent is None for parent in above]:
            raise InputError("transitions of nodes need one for each, and None for the root")
        read = [
            None if rows is None else model.read_rows(rows, names, notes) for rows in transition
        ]
        model.set_fields(
            self, states=names, parents=above, root=law, transition=tuple(read),
            notes=tuple(dict.fromkeys(notes)),
        )  # fmt: skip

    def sizes(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the number of nodes."""
        return (len(self.parents),)

    def laws(self, weights: Sequence[int], lengths: Sequence[int]) -> Iterator[Law]:
        """Yield the law of every node; theory, section 8.9."""
        yield from model.tree_laws(self.parents, self.root, self.transition, weights)


def _read_parents(given: Any) -> tuple[int | None, ...]:
    parents = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    places = [parent for parent in parents if parent is not None]
    right = all(type(place) is int and 0 <= place < len(parents) for place in places)
    if (
        not right
        or len(places) != len(parents) - 1
        or len(model.downwards(parents)[0]) < len(parents)
    ):
        raise InputError(
            f"parents must be positions that lead to one root (None), but {given!r} was given"
        )
    return parents
