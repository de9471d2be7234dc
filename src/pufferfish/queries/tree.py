# SPDX-License-Identifier: Apache-2.0
"""Tree: records each of which depends on its parent; exact."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import mul
from typing import Any

from flint import fmpz_poly

from pufferfish.errors import InputError
from pufferfish.queries import model
from pufferfish.queries.model import Distribution, Law, Rows


@dataclass(frozen=True, init=False)
class Tree:
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

    states: tuple[str, ...]
    parents: tuple[int | None, ...]
    root: Distribution
    transition: tuple[Rows | None, ...]
    notes: tuple[str, ...] = field(compare=False, repr=False)

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
        """Yield the law of every node, by messages up and down the tree; theory, section 8.9."""
        z, one = model.monomials(weights), [fmpz_poly([1]) for _ in weights]
        order, children = _downwards(self.parents)
        steps = [model.numerators(rows or ()) for rows in self.transition]
        below, message, outside = ([one] * len(order) for _ in range(3))
        outside[order[0]] = [fmpz_poly([p]) for p in model.numerators([self.root])[0]]
        for v in reversed(order):  # a node and all below it, given its state; given its parent's
            below[v] = reduce(_product, (message[c] for c in children[v]), z)
            message[v] = [model.dot(row, below[v]) for row in steps[v]]
        for v in order:  # all other nodes, with its state
            later = [*accumulate((message[c] for c in children[v][:0:-1]), _product, initial=one)]
            rest = _product(outside[v], z)
            for c in children[v]:
                here = _product(rest, later.pop())
                outside[c] = [model.dot(column, here) for column in zip(*steps[c], strict=True)]
                rest = _product(rest, message[c])
        yield from ([a * b if a else None for a, b in zip(*both, strict=True)]
                    for both in zip(outside, below, strict=True))  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that make this tree again, as JSON values."""
        return {
            "states": list(self.states), "parents": list(self.parents),
            "root": model.written(self.root),
            "transition": [rows and list(map(model.written, rows)) for rows in self.transition],
        }  # fmt: skip


def _product(some: list[fmpz_poly], others: list[fmpz_poly]) -> list[fmpz_poly]:
    return list(map(mul, some, others))


def _read_parents(given: Any) -> tuple[int | None, ...]:
    parents = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    places = [parent for parent in parents if parent is not None]
    right = all(type(place) is int and 0 <= place < len(parents) for place in places)
    if not right or len(places) != len(parents) - 1 or len(_downwards(parents)[0]) < len(parents):
        raise InputError(
            f"parents must be positions that lead to one root (None), but {given!r} was given"
        )
    return parents


def _downwards(parents: Sequence[int | None]) -> tuple[list[int], list[list[int]]]:
    """Return the nodes that the root leads to, each after its parent, and the children of all."""
    children: list[list[int]] = [[] for _ in parents]
    for v, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(v)
    order = [parents.index(None)]
    for v in order:
        order += children[v]
    return order, children
