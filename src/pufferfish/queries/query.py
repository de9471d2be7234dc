# SPDX-License-Identifier: Apache-2.0
"""Queries: a count, sum, mean or histogram of records, and the scenario of one."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.numbers import Number, parse_number, parse_text, show, text_of
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.queries.model import Law, Model, set_fields
from pufferfish.queries.sequences import check_known
from pufferfish.support import Lattice, Product, make_lattice

#: Records, times states, times values of the sum, up to which there is a scenario.
MOST_CELLS = 600_000
#: Records of one sequence at most.
MOST_RECORDS = 10_000_000

Protect = Literal["record", "sequence"]


@dataclass(frozen=True)
class Query:
    """What is asked of records, and what an adversary believes of them (theory, section 8).

    Made as :class:`CountQuery`, :class:`SumQuery`, :class:`MeanQuery` or :class:`HistogramQuery`.
    """

    models: tuple[Model, ...]  # joint laws that adversaries believe in, on the same states
    lengths: tuple[int, ...] | None  # of sequences of chains; None: any; (): the models have theirs
    numbers: tuple[Fraction, ...]  # what a record of each state adds to a sum; 0 for histograms
    protect: Protect
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.protect not in ("record", "sequence"):
            raise InputError(f"protect must be 'record' or 'sequence', not {self.protect!r}")
        set_fields(self, lengths=_read_length(self.lengths, self.models))
        if self.lengths is None and self.protect == "sequence":
            raise InputError(
                "to hide a whole sequence (--user-level) takes noise for the longest one: state "
                "its number of records as the length, not 'any' (--any-length)"
            )
        if not self.range:
            raise InputError("all states add the same to the query: there is nothing to hide")

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states."""
        return self.models[0].states

    @property
    def vector(self) -> bool:
        """Whether the answer has one number for each state."""
        return self.kind == "histogram"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each number of the answer: the states counted, or ``sum`` or ``mean``."""
        if self.kind in ("sum", "mean"):
            return (self.kind,)
        pairs = zip(self.states, self.numbers, strict=True)
        return tuple(state for state, number in pairs if number or self.vector)

    @cached_property
    def step(self) -> Fraction:
        """The step of the lattice that all answers lie on: 1 for integers."""
        return make_lattice(self.numbers).step

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """For each number of the answer what the states add beyond the least, in steps."""
        k = range(len(self.states))
        if self.vector:
            return tuple(tuple(int(a == b) for b in k) for a in k)
        return (tuple(int((n - min(self.numbers)) / self.step) for n in self.numbers),)

    @cached_property
    def spread(self) -> tuple[tuple[int, ...], ...]:
        """By how many steps the answer differs (in all) where one record has another state."""
        k = range(len(self.states))
        return tuple(tuple(sum(abs(w[a] - w[b]) for w in self.weights) for b in k) for a in k)

    @property
    def range(self) -> int:
        """By how many steps one record can change the answer."""
        return max(map(max, self.spread))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many dependent records there may be; empty where there is no limit."""
        return tuple(sorted({n for model in self.models for n in model.sizes(self.lengths or ())}))

    def of(self, models: Sequence[Model], lengths: tuple[int, ...] | None) -> "Query":
        """Return the same query of other models on the same states, and records as many."""
        fixed = any(model.sizes(()) for model in models)
        made, length = copy(self), None if fixed else "any" if lengths is None else lengths
        set_fields(made, models=tuple(models), lengths=_read_length(length, models))
        return made

    def scenario(self) -> Scenario:
        """Return what this query is, as a scenario: one prior for each record.

        The secrets are the states. A state that is impossible at a record takes the law of another
        one there: among all pairs nothing is added to compare.

        Raises
        ------
        InputError
            If there are too many records or values, no number of records, or a class of chains.
        """
        return scenario_of((self,))

    def answer(self, codes: Any) -> list[Fraction]:
        """Return the exact answer for the places of records' states; of a mean the sum."""
        counts = np.bincount(codes, minlength=len(self.states)).tolist()
        if self.vector:
            return list(map(Fraction, counts))
        return [sum((n * own for n, own in zip(counts, self.numbers, strict=True)), Fraction())]

    def ends(self, records: int) -> tuple[Fraction, Fraction]:
        """Return the least and the largest answer to so many records; of a mean the sums."""
        if self.vector:
            return Fraction(0), Fraction(records)
        return records * min(self.numbers), records * max(self.numbers)

    def to_json(self) -> dict[str, Any]:
        """Return what makes this query again, as JSON values."""
        lengths: Any = "any" if self.lengths is None else list(self.lengths)
        return {
            "kind": self.kind, "numbers": [show(n) for n in self.numbers], "lengths": lengths,
            "protect": self.protect,
        }  # fmt: skip


class CountQuery(Query):
    """How many records have a state.

    Parameters
    ----------
    model : model or sequence of models
        What adversaries believe of the records. Several are several adversaries; or groups (such as
        households) that are independent of each other: noise for each alone will do for all.
    state : str
        The state whose records are counted.
    length : int, sequence of int, or "any"
        The number of records of a sequence of a chain; ``any``: of sequences of every length, which
        needs a chain that starts exactly in its stationary law, or a class of chains. Sequences
        are independent of one another. Left out for models with a number of records of their own.
    protect : "record" or "sequence"
        What the secret is: the state of each single record, or all states of a sequence.
    """

    kind = "count"

    def __init__(
        self, model: Any, state: Any, length: Any = None, protect: Protect = "record"
    ) -> None:
        models, wanted = read_models(model), text_of(state)
        check_known([wanted], models[0].states, "the count")
        super().__init__(
            models, length, tuple(Fraction(s == wanted) for s in models[0].states), protect
        )


class SumQuery(Query):
    """The sum of a number for each record's state; parameters as for :class:`CountQuery`.

    ``weights`` is a mapping from every state to its number; without it the states are numbers.
    """

    kind = "sum"

    def __init__(
        self, model: Any, weights: Mapping[Any, Number] | None = None, length: Any = None,
        protect: Protect = "record",
    ) -> None:  # fmt: skip
        models = read_models(model)
        super().__init__(models, length, _read_numbers(weights, models[0].states), protect)


class MeanQuery(SumQuery):
    """The mean over all records, that is the sum over their number, which is public.

    Parameters as for :class:`SumQuery`.
    """

    kind = "mean"


class HistogramQuery(Query):
    """How many records have each state; parameters as for :class:`CountQuery`."""

    kind = "histogram"

    def __init__(self, model: Any, length: Any = None, protect: Protect = "record") -> None:
        models = read_models(model)
        super().__init__(models, length, (Fraction(0),) * len(models[0].states), protect)


KINDS: dict[str, type[Query]] = {
    each.kind: each for each in (CountQuery, SumQuery, MeanQuery, HistogramQuery)
}


def query_of(data: Mapping[str, Any], models: Sequence[Model]) -> Query:
    """Return the query that :meth:`Query.to_json` wrote, for these models."""
    right = data.keys() == {"kind", "numbers", "lengths", "protect"} and data["kind"] in KINDS
    if not right or not isinstance(data["numbers"], list | tuple):
        raise InputError("query must have the entries kind, numbers, lengths and protect")
    kind, models = KINDS[data["kind"]], read_models(list(models))
    numbers = tuple(parse_number(n, "a number of a state") for n in data["numbers"])
    ones = {"count": 1, "histogram": 0}.get(kind.kind)  # of these kinds all other numbers are 0
    fits = ones is None or sorted(numbers) == [0] * (len(numbers) - ones) + [1] * ones
    if len(numbers) != len(models[0].states) or not fits:
        raise InputError(
            "query.numbers must have one number for each state: of a count 1 for one state and 0 "
            "for all others, of a histogram 0"
        )
    made = object.__new__(kind)
    Query.__init__(made, models, data["lengths"] or None, numbers, data["protect"])
    return made


def cells_of(queries: Sequence[Query]) -> int:
    """Return records times states times values of all answers; 0 for any number of records.

    The models and lengths are those of the first query.
    """
    most, first = [max(row) for query in queries for row in query.weights], queries[0]
    values = (n * math.prod(n * own + 1 for own in most) for n in first.sizes)
    return sum(values) * len(first.states) * len(first.models)


@lru_cache(maxsize=4)  # a search asks for it again and again
def scenario_of(queries: tuple[Query, ...]) -> Scenario:
    """Return the scenario of all answers together, for the models and lengths of the first query.

    There is an axis for each number of the answers.
    """
    first, cells = queries[0], cells_of(queries)
    if first.protect == "sequence":
        raise InputError("whole sequences are hidden by group noise, without a scenario")
    if not 0 < cells <= MOST_CELLS:
        raise InputError(
            f"a scenario needs at most {MOST_CELLS:,} cells (records times states times "
            f"values), but this query has {f'{cells:,}' if cells else 'no limit'}"
        )
    size, lattices, sums = max(first.sizes), list[Lattice](), [0] * len(first.states)
    for query in queries:
        # With sequences of several lengths each sum is counted from its own least value.
        least = size * min(query.numbers) / query.step if len(first.sizes) == 1 else Fraction(0)
        for row in query.weights:
            index = np.arange(size * max(row) + 1, dtype=np.int64)
            lattices.append(Lattice(query.step, int(least), index))
            # All numbers of the answers are the digits of one, in C order.
            sums = [total * len(index) + own for total, own in zip(sums, row, strict=True)]
    names: list[Any] = [str(n) for n in range(1, len(lattices) + 1)]
    if len(queries) == 1:
        names = list(first.names) if first.vector else [None]
    product = Product(tuple(names), tuple(lattices))
    laws = [law for model in first.models for law in model.laws(sums, first.lengths or ())]
    rows = ([*_rows(law, product.size)] for law in laws)
    named = (dict(zip(first.states, own, strict=True)) for own in rows)
    return Scenario([Prior.from_numerators(product, own) for own in named])


def read_models(given: Any) -> tuple[Model, ...]:
    """Return one model or several on the same states."""
    models = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not models or not all(isinstance(model, Model) for model in models):
        raise InputError(
            "a query needs a model of its records, such as a MarkovChain, or a list of several, "
            f"but {listed(type(m).__name__ for m in models) or 'none'} was given"
        )
    if len({model.states for model in models}) > 1:
        raise InputError("all models of a query need the same states, in the same order")
    return models


def _read_length(length: Any, models: Sequence[Model]) -> tuple[int, ...] | None:
    fixed = {bool(model.sizes(())) for model in models}
    if True in fixed:
        if length is not None or False in fixed:
            raise InputError("a length is for chains; this model has its number of records")
        return ()
    if isinstance(length, str) and length == "any":
        if not all(model.any_length for model in models):
            raise InputError(
                "length='any' needs a chain whose transitions lead from every state to every "
                "other and that starts exactly in its stationary law, or in any law"
            )
        return None
    several = isinstance(length, Iterable) and not isinstance(length, str)
    given = list(length) if several else [length]
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in given)
    if not given or not whole or not 1 <= min(given) <= max(given) <= MOST_RECORDS:
        raise InputError(
            "length must be the number of records of a sequence (or several, or 'any'), from 1 to "
            f"{MOST_RECORDS:,}, but {length!r} was given"
        )
    return tuple(sorted({int(n) for n in given}))


def _read_numbers(weights: Any, states: Sequence[str]) -> tuple[Fraction, ...]:
    """Return the number of each state: that of a mapping, or its name."""
    if weights is None:
        read = [number for state in states if (number := parse_text(state)) is not None]
        if len(read) < len(states):
            raise InputError(f"the states {listed(states)} are no numbers: give weights for them")
        return tuple(read)
    named = {text_of(s): n for s, n in weights.items()} if isinstance(weights, Mapping) else {}
    if named.keys() != set(states):
        wrong = listed(sorted(named.keys() ^ set(states)))
        raise InputError(
            f"weights must map every state ({listed(states)}) to its number, and nothing else; "
            f"wrong: {wrong}"
        )
    return tuple(parse_number(named[state], f"the weight of {state!r}") for state in states)


def _rows(law: Law, size: int) -> Iterator[list[int]]:
    """Return the numerators of each state; an impossible one has those of another one."""
    other = next(each for each in law if each is not None)
    for own in law:
        shown = other if own is None else own
        row = [int(n) for n in (shown // shown.content()).coeffs()]
        yield row + [0] * (size - len(row))
