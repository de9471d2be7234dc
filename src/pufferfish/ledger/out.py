# SPDX-License-Identifier: Apache-2.0
"""Out: a release as far as the price of all releases of a table depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pufferfish.joint import Term, worst_case
from pufferfish.mechanisms import Mechanism
from pufferfish.support import Support

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Out:
    """One release, as far as its price depends on it.

    Attributes
    ----------
    label : str
        The axis of the joint counts that it is of.
    mechanism : DiscreteLaplace or Channel
    support : Lattice or Levels
        That of the plan.
    pairs : tuple of (str, str)
        The pairs that the plan protects.
    digest : str
        The digest of the scenario that the plan was calibrated for.
    own : bool
        Whether that is what this table says.
    rows : int
        How many rows one person may have, by the plan.
    clamp : bool
        Whether numbers outside the support were moved to the nearest atom.
    robust : bool
        Whether the plan is for a whole region of priors.
    manner : str
        How cells are read, whatever the support: equal ones read alike what both supports hold.
    unit : str or None
        The column that tells whose rows they are, where the plan names one.
    order : str
        The digest of the table's rows in the order in which they are released; empty: unknown.
    """

    label: str
    mechanism: Mechanism
    support: Support
    pairs: tuple[Pair, ...]
    digest: str
    own: bool
    rows: int = 1
    clamp: bool = False
    robust: bool = False
    manner: str = ""
    unit: str | None = None
    order: str = ""

    @cached_property
    def worst(self) -> Term:
        """What it tells at most of the values of its own support, whatever is known of them."""
        return worst_case(self.mechanism, self.support, label=self.label)


def pairs_of(outs: Sequence[Out]) -> list[Pair]:
    """Return all protected pairs, each once."""
    pairs: dict[frozenset[str], Pair] = {}
    for out in outs:
        for pair in out.pairs:
            pairs.setdefault(frozenset(pair), pair)
    return list(pairs.values())
