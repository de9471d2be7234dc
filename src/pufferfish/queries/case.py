# SPDX-License-Identifier: Apache-2.0
"""Case: one model and all answers about its records, and which routes know their loss."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from pufferfish.errors import InputError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox
from pufferfish.queries.ends import is_tp2
from pufferfish.queries.query import MOST_CELLS, Query, cells_of

#: Records above which a contraction is tried first, and above which there are no ends.
MANY, _MOST_FOR_ENDS = 100_000, 2_000_000
#: Cells of a scenario up to which it is quicker than a contraction.
_FEW = 20_000
#: Queries of the same records, with the noise of their answers.
Answers = tuple[tuple[Query, DiscreteLaplace], ...]


@dataclass(frozen=True, eq=False)
class Case:
    """What is released of the records of one model: a query, beside earlier answers."""

    query: Query  # for this model alone
    earlier: Answers = ()
    attained: bool = True  # whether the model is one of the query's, or a member of a class of them

    @property
    def model(self) -> Any:
        """The model, one of those in queries/."""
        return self.query.models[0]

    def reach(self, rate: Any) -> list[list[Any]]:
        """Return by how much each two states of a record move all answers, in units of their noise.

        That is the spread of each query times the rate of its noise (a step over the scale), exact
        for an exact ``rate`` of the query's own.
        """
        k = range(len(self.query.states))
        return [[self._known[a][b] + rate * self.query.spread[a][b] for b in k] for a in k]

    @cached_property
    def _known(self) -> list[list[Fraction]]:
        parts = [(noise.step / Fraction(noise.scale), own.spread) for own, noise in self.earlier]
        k = range(len(self.query.states))
        return [[sum((r * spread[a][b] for r, spread in parts), Fraction()) for b in k] for a in k]

    @cached_property
    def end(self) -> int | None:
        """The first state where all answers rise or fall along one order of the states.

        Then the reach from it is a number for each state whose differences are all others.
        """
        reach = self.reach(Fraction(1))
        k = range(len(reach))
        end = max(k, key=lambda state: max(reach[state]))
        fits = all(abs(reach[end][a] - reach[end][b]) == reach[a][b] for a in k for b in k)
        return end if fits else None

    def tilt(self, rate: Any) -> list[Any]:
        """Return the reach from the first state."""
        return self.reach(rate)[self.end or 0]

    @property
    def queries(self) -> tuple[Query, ...]:
        """All queries, the new one first."""
        return (self.query, *(query for query, _ in self.earlier))

    @cached_property
    def rising(self) -> bool:
        """Whether the ends of the model are its loss: an MTP2 chain, along one order."""
        if not self.has_start or self.end is None:
            return False
        return is_tp2(self.model.transition, self.tilt(Fraction(1)))

    @property
    def has_start(self) -> bool:
        """Whether the model is a chain with an initial law."""
        return isinstance(self.model, MarkovChain) and self.model.start is not None

    @property
    def has_scenario(self) -> bool:
        """Whether the model is one law, and the scenario of all answers is small enough."""
        one = self.has_start or not isinstance(self.model, MarkovChain | ChainBox)
        return one and 0 < cells_of(self.queries) <= MOST_CELLS

    @property
    def has_windows(self) -> bool:
        """Whether windows bound the loss: of one number, for a chain with an initial law."""
        single = not self.query.vector and not self.earlier
        return self.has_start and single and bool(self.query.lengths)

    @property
    def exact_route(self) -> str | None:
        """The route whose loss is the model's own; None: there is none."""
        if self.rising and max(self.query.lengths or [0]) <= _MOST_FOR_ENDS:
            return "contraction" if self.query.lengths is None else "ends"
        return "scenario" if self.has_scenario else None

    def routes(self) -> Iterator[str]:
        """Yield the routes that may prove a loss, the exact and quick ones first."""
        own, most = self.exact_route, max(self.query.lengths or [0])
        chain = isinstance(self.model, MarkovChain | ChainBox)
        slow = most > MANY or (own == "scenario" and cells_of(self.queries) > _FEW)
        bounds = ["contraction"] if chain and own != "contraction" else []
        exact_ones = [] if own is None else [own]
        yield from bounds + exact_ones if chain and slow else exact_ones + bounds
        if own is None and self.has_windows:
            yield "window"


def cases_of(query: Query, earlier: Answers = ()) -> list[Case]:
    """Return the cases whose losses bound that of all answers: of each model of each query.

    A class of chains counts with its worst chain, where that is known.
    """
    cases, queries = list[Case](), [query, *(own for own, _ in earlier)]
    lengths = None if query.lengths is None else query.sizes
    for model in dict.fromkeys(model for own in queries for model in own.models):
        worst = model.chains() if isinstance(model, ChainBox) else None
        if isinstance(model, ChainBox) and worst is not None:
            cases += [Case(query.of([own], lengths), earlier, own in model) for own in worst]
        else:
            cases.append(Case(query.of([model], lengths), earlier))
    return cases


def read_answers(plans: Any, query: Query) -> Answers:
    """Return the answers of plans, which are about the records of a query."""
    given = list(plans) if isinstance(plans, Iterable) else [plans]
    for plan in given:
        if not isinstance(getattr(plan, "query", None), Query):
            raise InputError("a list of plans of queries is needed")
        if plan.query.states != query.states:
            raise InputError("the plans are about other states, or these are in another order")
        if plan.scale == 0:
            raise InputError("an answer that is published without noise counts in no joint loss")
    return tuple((plan.query, plan.noise) for plan in given)
