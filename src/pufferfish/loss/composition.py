# SPDX-License-Identifier: Apache-2.0
"""Composition: the loss of several releases together, exact where it is known, bounded elsewhere.

Losses of releases do not add up (theory, section 6). For releases R whose joint loss is known and
others with worst cases w_l, which hold whatever else is known of a value,

    sum_x P_i(x) k_R(y|x) prod_l k_l(y_l|x)  <=  e^(sum w_l) e^loss(R)  times the same for P_j.

*Proof.* Over the x of the pair prod_l k_l lies between some c and c e^(sum w_l): the left side is at
most c e^(sum w_l) sum_x P_i(x) k_R(y|x), and c sum_x P_j(x) k_R(y|x) is at most the right one. With
k rows of one person every release is k of them, and so is its worst case.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from pufferfish.errors import InputError
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.kernel import Mechanism
from pufferfish.loss.problem import LARGEST_GRID, Releases
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Support


class Other(NamedTuple):
    """A release of a column that the scenario does not know: it counts with its worst case."""

    label: str
    mechanism: Mechanism
    support: Support


class PlanLike(Protocol):
    """What is read of a plan."""

    @property
    def applied(self) -> Mechanism: ...
    @property
    def support(self) -> Support: ...
    @property
    def coding(self) -> Any: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def rows_per_person(self) -> tuple[int, ...]: ...


#: One release: a plan, or the column and what was applied to it.
Item = PlanLike | tuple[str, PlanLike | Mechanism]


@dataclass(frozen=True, eq=False)
class Composition:
    """Releases by column: of columns that the scenario knows, and others.

    Attributes
    ----------
    scenario : Scenario
    releases : mapping of int to tuples of mechanisms
        By the position of the column on the scenario's product.
    labels : mapping of int to tuples of str
        What each of these is called.
    others : tuple of Other
    rows : tuple of int
        Numbers of rows that one person may have by the plans.
    """

    scenario: Scenario
    releases: Mapping[int, tuple[Mechanism, ...]]
    labels: Mapping[int, tuple[str, ...]]
    others: tuple[Other, ...] = ()
    rows: tuple[int, ...] = ()

    def position(self, column: str | None) -> int:
        """Return the position of a column of the scenario; None: the only one."""
        raise NotImplementedError

    def with_release(self, at: int, mechanism: Mechanism, label: str = "new") -> "Composition":
        """Return the same with one further release of the column at a position."""
        return replace(
            self,
            releases={**self.releases, at: (*self.releases.get(at, ()), mechanism)},
            labels={**self.labels, at: (*self.labels.get(at, ()), label)},
        )

    def bound(self, limit: int = LARGEST_GRID) -> LossBound:
        """Return the bound of everything together."""
        return compose(
            self.scenario, self.releases, self.others, self.rows, self.labels, limit=limit
        )


def joint_loss(scenario: Scenario | Prior, items: Iterable[Item]) -> LossBound:
    """Return the loss of several releases together, or the least bound of it that is found."""
    return gather(scenario, items).bound()


def gather(scenario: Scenario | Prior, items: Iterable[Item]) -> Composition:
    """Return the releases by column."""
    raise NotImplementedError


def compose(
    scenario: Scenario,
    releases: Releases,
    others: Sequence[Other] = (),
    rows: Sequence[int] = (),
    labels: Mapping[int, Sequence[str]] | None = None,
    *,
    limit: int = LARGEST_GRID,
) -> LossBound:
    """Return the least bound that is found of the loss of a whole set of releases."""
    raise NotImplementedError


def added(terms: Iterable[Fraction | None]) -> Fraction | None:
    """Return a sum of worst cases; None: infinite."""
    values = list(terms)
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) else sum(known, Fraction(0))
