# SPDX-License-Identifier: Apache-2.0
"""Price: what a release costs, together with everything that is out of the same table."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pufferfish.errors import counted
from pufferfish.ledger.account import Bound, remaining
from pufferfish.rationals import show

#: How the rows of a person are ordered, beside the releases that are out.
Order = Literal["same", "other", "mixed"]

#: A budget of which less than this share is left is used up: what rounding leaves is no budget.
LEAST_SHARE = Fraction(1, 10**9)
#: The joint loss before the first release.
NOTHING = Bound(Fraction(0), "nothing is out")


@dataclass(frozen=True)
class Price:
    """What a release costs, together with everything that is out.

    Attributes
    ----------
    secret : str
        The account.
    digest : str
        The identity of the table.
    rows : int
        Its rows.
    column : str
        What is released.
    releases : int
        How many releases of this table about this secret are charged already.
    before : Bound
        The joint loss of these, as it was charged.
    bound : Bound
        That of all of them and this one.
    budget : Fraction
    known : bool
        Whether this table was charged under this secret before.
    other_tables : int
        How many other tables were.
    incomplete : int
        Rows with a value in some of the released columns, but not in all.
    own : bool
        Whether the plan was calibrated for what this very table says.
    robust : bool
        Whether the plan is for a whole region of priors.
    person_rows : int
        How many rows one person may have, where a plan says whose rows they are; or else 1.
    order : "same", "other" or "mixed"
        Whether the rows are now in the order of all releases; or in another one, while those are in
        one; or were released in several orders already (or in none). Where persons do not count:
        "same".
    told : bool
        Whether the prior that the plan was calibrated for is at hand.
    """

    secret: str
    digest: str
    rows: int
    column: str
    releases: int
    before: Bound
    bound: Bound
    budget: Fraction
    known: bool
    other_tables: int
    incomplete: int
    own: bool
    robust: bool = False
    person_rows: int = 1
    order: Order = "same"
    told: bool = True

    @property
    def loss(self) -> float:
        """The joint loss of everything with this release, rounded up; may be infinite."""
        return float(self.bound)

    @property
    def fits(self) -> bool:
        """Whether that is within the budget, compared exactly."""
        return self.bound.fits(self.budget)

    @property
    def left(self) -> Fraction:
        """How far the joint loss may still rise after this release."""
        return remaining(self.budget, self.bound)

    @property
    def needs_new_table(self) -> bool:
        """Whether charging it takes the user's word that these are other people."""
        return not self.known and self.other_tables > 0

    @property
    def about_persons(self) -> str:
        """What to say of the rows of one person; empty where each row is a person of its own."""
        if self.person_rows == 1:
            return ""
        said = f"one person may have {self.person_rows} rows"
        worst = "is the sum of the worst cases of all releases, for all rows of a person"
        if self.order == "other":
            return (
                f"{said}, and the table has them in another order than for the earlier releases: "
                f"charged {worst}, now and from then on; release from the table in its first order "
                "instead"
            )
        if self.order == "mixed":
            return (
                f"{said}, and these were released in several orders (or in one that is not known, "
                f"as of a lazy frame): charged {worst}"
            )
        if self.own:
            return (
                f"{said}: everything that is released of the table is charged for all rows of a "
                "person together"
            )
        return (
            f"{said}, and the plan was not calibrated for the rows of these people in this order: "
            f"charged {worst}, whatever it was calibrated for"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of how the price came about."""
        found = []
        if self.incomplete:
            found.append(
                f"{self.incomplete} rows lack a value in some of the released columns: the joint "
                "loss holds for them too, given which values they lack, but that itself shows in "
                "the outputs, and no mechanism covers it"
            )
        if self.about_persons:
            found.append(self.about_persons)
        elif not self.own:
            found.append(
                "the plan was calibrated for another prior than that of this table: charged is "
                "the larger of the joint loss under the counts of this table and a bound for "
                "whoever has that prior"
            )
        if not (self.own or self.told or self.person_rows > 1):
            found.append(ABOUT_PRIORS)
        if self.robust:
            found.append(
                "the plan holds for a region of priors (confidence or tv_radius), and so does what "
                "is charged: other columns count with their worst cases, as no such prior says how "
                "they go together with this one"
            )
        return tuple(found)


#: What to say where the worst case is charged for a prior that was not given.
ABOUT_PRIORS = (
    "that prior was not given, so the bound is the sum of all worst cases; to have it computed "
    "give the prior file (--prior FILE) or the table (--prior-table FILE) that the plan was "
    "calibrated for"
)


def is_used_up(spent: Bound, budget: Fraction) -> bool:
    """Whether nothing of a budget is left, or no more than rounding leaves of it."""
    return spent.value is None or spent.value > budget * (1 - LEAST_SHARE)


def end_of_budget(secret: str, releases: int, budget: Fraction) -> str:
    """Return what to say where a budget is used up."""
    return (
        f"what is out ({counted(releases, 'release')}) uses up the budget {show(budget)}: it "
        f"leaves less than a billionth of it, and nothing more of this table about {secret!r} "
        "that tells anything can be released; files that were released may be handed out again "
        "as they are"
    )


def about_incomplete(rows: int) -> str:
    """Return what to say where rows that lack values may be why something does not fit."""
    if not rows:
        return ""
    return (
        f"; {rows} rows lack a value in some of the released columns, and the joint loss holds for "
        "them by themselves: where missing is a level of its own (--missing-as-level) or these "
        "rows are left out of the table from the start, there are none"
    )
