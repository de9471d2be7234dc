# SPDX-License-Identifier: Apache-2.0
"""Words on ledgers: one function for each object turns its fields into lines for people."""

from fractions import Fraction

from pufferfish.cli.output import at_most, rounded_down
from pufferfish.errors import counted, quoted
from pufferfish.ledger.pricing import Price
from pufferfish.ledger.store import Dataset
from pufferfish.ledger.verify import Difference
from pufferfish.loss.certificate import LossBound
from pufferfish.numbers import float_down, float_up, rounded_up, show, show_short


def bound_words(bound: LossBound, budget: Fraction) -> str:
    """Return a bound of the joint loss, and how it is known."""
    return f"at most {spent_words(bound.upper, budget)} ({bound.kind})"


def spent_words(upper: Fraction | None, budget: Fraction) -> str:
    """Return a joint loss, rounded up but never above a budget that it is within."""
    if upper is None:
        return "infinity"
    exact = show(upper)
    if len(exact) <= 10:
        return exact
    return at_most(float_up(upper), budget) if upper <= budget else rounded_up(float_up(upper))


def dataset_words(dataset: Dataset) -> str:
    """Return what a dataset of a ledger is."""
    others = ", other people than before" if dataset.other_people else ""
    return (
        f"dataset {quoted(dataset.name)}, {counted(dataset.rows, 'row')}, secret "
        f"{quoted(dataset.secret)}, budget {show_short(dataset.budget)}{others}"
    )


def price_words(price: Price) -> str:
    """Return what is spent after a release."""
    budget = price.dataset.budget
    return (
        f"joint loss of the {counted(price.releases + 1, 'release')} of {price.dataset.name}: "
        f"{bound_words(price.bound, budget)}; budget {show_short(budget)}"
    )


def price_lines(price: Price) -> list[str]:
    """Return what a release would cost."""
    budget = price.dataset.budget
    out = f"charged already: {counted(price.releases, 'release')}, joint loss at most "
    lines = [
        f"{out}{spent_words(price.before, budget)}" if price.releases else "charged already: none",
        f"with this release of {quoted(price.column)}: {bound_words(price.bound, budget)}",
    ]
    if price.fits:
        lines.append(f"fits the budget {show_short(budget)}, and leaves "
                     f"{rounded_down(float_down(price.left), 6)}")  # fmt: skip
    else:
        lines.append(f"DOES NOT FIT the budget {show_short(budget)}: the release would be refused")
    if not price.own:
        lines.append("the plan is for other counts than those of this table: worst cases")
    if price.incomplete:
        rows = counted(price.incomplete, "row")
        lines.append(f"{rows} lack a value in some of the released columns: worst cases")
    if price.rows > 1:
        lines.append(f"one person may have {price.rows} rows: worst cases as often")
    return lines


def difference_words(difference: Difference) -> str:
    """Return what is not as it should be in a ledger."""
    bounds = [b for b in (difference.recorded, difference.computed) if b is not None]
    said = f" ({' against '.join(map(show_short, bounds))})" if bounds else ""
    why = f": {difference.reason}" if difference.reason else ""
    return f"{difference.dataset}, release {difference.release}: {difference.fault}{said}{why}"
