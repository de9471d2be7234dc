# SPDX-License-Identifier: Apache-2.0
"""Queries: a count, sum, mean or histogram of records, and the scenario of one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import Number, parse_number, parse_text, show, text_of
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.queries.model import Law, Model
from pufferfish.support import Lattice, Product, make_lattice

#: Records, times states, times values of the sum, up to which there is a scenario.
MOST_CELLS = 600_000
#: Records of one sequence at most.
MOST_RECORDS = 10_000_000

Protect = Literal["record", "sequence"]


@dataclass(frozen=True, init=False)
class Query:
    """What is asked of records, and what an adversary believes of them (theory, section 8).

    Made as :class:`CountQuery`, :class:`SumQuery`, :class:`MeanQuery` or :class:`HistogramQuery`.

    Attributes
    ----------
    models : tuple of models
        The joint laws that adversaries believe in, each on the same states.
    lengths : tuple of int or None
        How many records a sequence of a chain has; None: any number. Empty for models of a fixed
        number of records.
    numbers : tuple of Fraction
        What a record of each state adds to a sum; 0 for histograms.
    protect : "record" or "sequence"
        Whether the state of each single record is the secret, or all of a sequence.
    """

    models: tuple[Model, ...]
    lengths: tuple[int, ...] | None
    numbers: tuple[Fraction, ...]
    protect: Protect
    kind: ClassVar[str]

    def _set(self, model: Any, length: Any, numbers: Iterable[Fraction], protect: Any) -> None:
        models = read_models(model)
        if protect not in ("record", "sequence"):
            raise InputError(f"protect must be 'record' or 'sequence', but {protect!r} was given")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "lengths", _read_length(length, models))
        object.__setattr__(self, "numbers", tuple(numbers))
        object.__setattr__(self, "protect", protect)
        if self.lengths is None and protect == "sequence":
            raise InputError(
                "to hide a whole sequence (--user-level) takes noise for the longest one: state "
                "its number of records as the length, not 'any' (--any-length)"
            )
        if not self.vector and not self.range:
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

    @property
    def weights(self) -> tuple[int, ...]:
        """What each state adds beyond the least, in steps."""
        return tuple(int((n - min(self.numbers)) / self.step) for n in self.numbers)

    @property
    def spread(self) -> tuple[tuple[int, ...], ...]:
        """By how many steps the answer differs (in all) where one record has another state."""
        k, w = range(len(self.states)), self.weights
        return tuple(tuple(2 * (a != b) if self.vector else abs(w[a] - w[b]) for b in k) for a in k)

    @property
    def range(self) -> int:
        """By how many steps one record can change the answer."""
        return max(map(max, self.spread))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many dependent records there may be; empty where there is no limit."""
        found = (model.sizes(self.lengths or ()) for model in self.models)
        return tuple(sorted({size for sizes in found for size in sizes}))

    def of(self, model: Model) -> "Query":
        """Return the same query for one of the models."""
        if self.models == (model,):
            return self
        made = object.__new__(type(self))
        object.__setattr__(made, "__dict__", {**vars(self), "models": (model,)})
        return made

    @property
    def cells(self) -> int:
        """Records, times states, times values of the answer; 0 where there is no scenario."""
        each = (size * self.values(size) for size in self.sizes)
        return sum(each) * len(self.states) * len(self.models)

    def values(self, size: int) -> int:
        """Return how many values the answer to so many records has on the lattice."""
        most: int = (size + 1) ** len(self.states) if self.vector else size * self.range + 1
        return most

    @cached_property
    def own_scenario(self) -> Scenario:
        """The :meth:`scenario`, made once."""
        return self.scenario()

    def scenario(self) -> Scenario:
        """Return what this query is, as a scenario: one prior for each record.

        The secrets are the states. A state that is impossible at a record takes the law of another
        one there: among all pairs nothing is added to compare.

        Raises
        ------
        InputError
            If there are too many records or values, no number of records, or a class of chains.
        """
        if self.protect == "sequence":
            raise InputError("whole sequences are hidden by group noise, without a scenario")
        if not 0 < self.cells <= MOST_CELLS:
            raise InputError(
                f"a scenario needs at most {MOST_CELLS:,} cells (records times states times "
                f"values), but this query has {f'{self.cells:,}' if self.sizes else 'no limit'}"
            )
        size, product = max(self.sizes), self._product()
        weights = self.weights
        if self.vector:  # of each state its place among the digits of a number in C order
            weights = tuple((size + 1) ** k for k in reversed(range(len(self.states))))
        priors = []
        for model in self.models:
            for law in model.laws(weights, self.lengths or ()):
                rows = _rows(law, product.size)
                priors.append(
                    Prior.from_numerators(product, dict(zip(self.states, rows, strict=True)))
                )
        return Scenario(priors)

    def _product(self) -> Product:
        size = max(self.sizes)
        most = size if self.vector else size * self.range
        # With sequences of several lengths each sum is counted from its own least value.
        least = size * min(self.numbers) / self.step if len(self.sizes) == 1 else Fraction(0)
        lattice = Lattice(self.step, int(least), np.arange(most + 1, dtype=np.int64))
        names = self.states if self.vector else (None,)
        return Product(names, (lattice,) * len(names))

    def answer(self, codes: Any) -> tuple[list[Fraction], int]:
        """Return the exact answer for records given by the positions of their states, and its size.

        That of a mean is the sum.
        """
        counts = np.bincount(codes, minlength=len(self.states)).tolist()
        if self.vector:
            return list(map(Fraction, counts)), sum(counts)
        total = sum(
            (n * number for n, number in zip(counts, self.numbers, strict=True)), Fraction()
        )
        return [total], sum(counts)

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
        states, wanted = read_models(model)[0].states, text_of(state)
        if wanted not in states:
            raise InputError(
                f"there is no state {wanted!r}{did_you_mean(wanted, states)}; the states are "
                f"{listed(states)}"
            )
        self._set(model, length, (Fraction(s == wanted) for s in states), protect)


class SumQuery(Query):
    """The sum of a number for each record's state; parameters as for :class:`CountQuery`.

    ``weights`` is a mapping from every state to its number; without it the states are numbers.
    """

    kind = "sum"

    def __init__(
        self, model: Any, weights: Mapping[Any, Number] | None = None, length: Any = None,
        protect: Protect = "record",
    ) -> None:  # fmt: skip
        self._set(model, length, _read_numbers(weights, read_models(model)[0].states), protect)


class MeanQuery(SumQuery):
    """The mean over all records of a number for each state, as for :class:`SumQuery`.

    It is the sum over their number, which is public; so is the noise.
    """

    kind = "mean"


class HistogramQuery(Query):
    """How many records have each state; parameters as for :class:`CountQuery`."""

    kind = "histogram"

    def __init__(self, model: Any, length: Any = None, protect: Protect = "record") -> None:
        self._set(model, length, (Fraction(0) for _ in read_models(model)[0].states), protect)


KINDS: dict[str, type[Query]] = {
    each.kind: each for each in (CountQuery, SumQuery, MeanQuery, HistogramQuery)
}


def query_of(data: Mapping[str, Any], models: Sequence[Model]) -> Query:
    """Return the query that :meth:`Query.to_json` wrote, for these models."""
    if data.keys() != {"kind", "numbers", "lengths", "protect"} or data["kind"] not in KINDS:
        raise InputError("it must have the entries kind, numbers, lengths and protect")
    made = object.__new__(KINDS[data["kind"]])
    numbers = [parse_number(n, "a number of a state") for n in data["numbers"]]
    plain = {"count": {0, 1}, "histogram": {0}}.get(made.kind)
    if len(numbers) != len(models[0].states) or (plain and not plain.issuperset(numbers)):
        raise InputError("it must have one number for each state, of a count 0 or 1")
    made._set(models, data["lengths"] or None, numbers, data["protect"])
    return made


def read_models(given: Any) -> tuple[Model, ...]:
    """Return one model or several on the same states."""
    models = tuple(given) if isinstance(given, list | tuple) else (given,)
    wrong = [m for m in models if not hasattr(m, "laws")]
    if wrong or not models:
        raise InputError(
            "a query needs a model of its records, such as a MarkovChain, or several, but "
            f"{'none' if not models else type(wrong[0]).__name__} was given"
        )
    if len({model.states for model in models}) > 1:
        raise InputError("all models of a query need the same states, in the same order")
    return models


def _read_length(length: Any, models: Sequence[Model]) -> tuple[int, ...] | None:
    fixed = [bool(model.sizes(())) for model in models]
    if any(fixed):
        if length is not None or not all(fixed):
            raise InputError("a length is for chains; this model has its number of records")
        return ()
    if isinstance(length, str) and length == "any":
        for model in models:
            if not getattr(model, "any_length", False):
                raise InputError(
                    "length='any' needs a chain whose transitions lead from every state to every "
                    "other and that starts exactly in its stationary law, or in any law"
                )
        return None
    given = (
        list(length) if isinstance(length, Iterable) and not isinstance(length, str) else [length]
    )
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in given)
    if not given or not whole or not 1 <= min(given) <= max(given) <= MOST_RECORDS:
        raise InputError(
            "length must be the number of records of a sequence (or several, or 'any'), from 1 to "
            f"{MOST_RECORDS:,}, but {length!r} was given"
        )
    return tuple(sorted({int(n) for n in given}))


def _read_numbers(weights: Any, states: Sequence[str]) -> list[Fraction]:
    if weights is None:
        read = [parse_text(state) for state in states]
        if None in read:
            raise InputError(f"the states {listed(states)} are no numbers: give weights for them")
        return [number for number in read if number is not None]
    if not isinstance(weights, Mapping):
        raise InputError(
            f"weights must be a mapping from every state to its number, but {weights!r} was given"
        )
    named = {text_of(key): value for key, value in weights.items()}
    if named.keys() != set(states):
        wrong = sorted(named.keys() ^ set(states))
        raise InputError(
            f"weights must have a number for every state ({listed(states)}) and nothing else; "
            f"wrong: {listed(wrong)}"
        )
    return [parse_number(named[state], f"the weight of {state!r}") for state in states]


def _rows(law: Law, size: int) -> Iterator[list[int]]:
    """Return the numerators of each state; an impossible one has those of another one."""
    known = [each // each.content() for each in law if each is not None]
    possible = iter(known)
    for polynomial in law:
        row = list(map(int, (known[0] if polynomial is None else next(possible)).coeffs()))
        yield row + [0] * (size - len(row))
