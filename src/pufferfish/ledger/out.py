# SPDX-License-Identifier: Apache-2.0
"""Out: a release as far as the price of all releases of a table depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from pufferfish.joint import Term, worst_case
from pufferfish.mechanisms import Mechanism
from pufferfish.regions import Region
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
    regions : tuple of (Confidence, TVBall or None)
        The regions that the plan is for, one per adversary; empty where it is for none.
    epsilon : Fraction or None
        What the plan was calibrated for.
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
    regions: tuple[Region | None, ...] = ()
    epsilon: Fraction | None = None
    manner: str = ""
    unit: str | None = None
    order: str = ""

    @property
    def robust(self) -> bool:
        """Whether the plan is for a whole region of priors."""
        return bool(self.regions)

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
