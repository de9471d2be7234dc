# SPDX-License-Identifier: Apache-2.0
"""What commands say of a ledger: prices in words, how to open one, and how it is exposed."""

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli import signals
from pufferfish.cli.digits import at_most, nearest
from pufferfish.cli.messages import Messages, command_line_words
from pufferfish.errors import InputError
from pufferfish.rationals import show

if TYPE_CHECKING:
    from pufferfish.ledger.account import Bound
    from pufferfish.ledger.ledger import Ledger
    from pufferfish.ledger.price import Price
    from pufferfish.plan import Plan
    from pufferfish.release import ReleaseSpec
    from pufferfish.scenario import Scenario


def open_ledger(path: str, messages: Messages) -> "Ledger":
    """Open a ledger; a signal is noticed while another process holds it.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    from pufferfish.ledger.ledger import Ledger

    found = Ledger.open(path, waiting=_waiting)
    warn_if_exposed(found, messages)
    return found


def ledger_of(options: dict[str, Any], messages: Messages) -> "Ledger | None":
    """Return the ledger that a release is charged to, before anything long is computed.

    Raises
    ------
    InputError
        If it cannot be used, or something is asked for that no ledger can account for.
    """
    if options["ledger_file"] is None:
        for name in ("new_table", "prior_table"):
            if options[name]:
                raise InputError(f"--{name.replace('_', '-')} is for --ledger FILE")
        return None
    if options["prior_table"] is not None and options["plan_file"] is None:
        raise InputError("--prior-table says what a plan was calibrated for: give it with --plan")
    if options["keep"]:
        raise InputError(
            "--keep cannot be given with --ledger: kept columns are published as they are, and the "
            "joint loss does not cover them"
        )
    if options["seed"] is not None:
        raise InputError("--seed cannot be given with --ledger: its noise protects nobody")
    return open_ledger(options["ledger_file"], messages)


def charged(
    ledger: "Ledger",
    table: str,
    plan: "Plan",
    spec: "ReleaseSpec",
    write: Callable[[], Any],
    messages: Messages,
    *,
    new_table: bool,
    scenario: "Scenario | None",
) -> tuple[Any, "Price"]:
    """Charge a release with what is in force, write it, and return what that gave and its price.

    Raises
    ------
    DoesNotFit
        If the joint loss would exceed the budget.
    InputError
        If it cannot be charged; or written, and then it stays charged, as is said.
    """
    from pufferfish.release import check_release
    from pufferfish.release.releaser import Releaser

    applied = replace(plan, applied=Releaser(spec).mechanism)
    # What cannot be released is refused before it is paid for.
    check_release(table, spec)
    with (
        ledger.charge(
            table,
            applied,
            new_table=new_table,
            out_of_support=spec.out_of_support,
            prior=scenario,
        ) as done,
        messages.lasting(ledger.stays_charged(done)),
    ):
        signals.check()
        return write(), done.price


def uncharged(releases: int) -> str:
    """Return what to say of a plan that fits beside others and is released without a ledger."""
    from pufferfish.errors import counted

    return (
        "the plan's epsilon is that of several releases together: it was made to fit beside "
        f"{counted(releases, 'other release')}; nothing was charged (--ledger FILE), and what was "
        "released since the plan was made is not accounted for"
    )


def print_price(price: "Price", messages: Messages) -> None:
    """Print what is spent after a release."""
    from pufferfish.cli.output import print_lines, stdout_console

    print_lines(stdout_console(), [spent_line(price)])
    for note in price.notes:
        messages.note(note)


def _waiting(seconds: float) -> None:
    signals.check()


def warn_if_exposed(ledger: "Ledger", messages: Messages) -> None:
    """Warn of a ledger that others than its owner can read."""
    if ledger.store.exposed:
        messages.warning(
            f"others can read or write the ledger {ledger.path}, which holds counts of the tables; "
            f"make it private with: chmod 600 {os.fspath(ledger.path)}"
        )


def loss_words(bound: "Bound", budget: Fraction) -> str:
    """Return a joint loss for people: rounded up, but never above a budget that it is within."""
    from pufferfish.rationals import float_down

    if bound.value is None:
        return "infinity"
    # Exact decimals stay what they are: the double above one would be rounded up once more.
    text = nearest(float_down(bound.value), 8)
    if bound.value <= Fraction(text) <= budget:
        return text
    return at_most(float(bound), budget)


def number(value: Fraction) -> str:
    """Return an exact number for people, or the double below it where it is long."""
    from pufferfish.rationals import float_down

    exact = show(value)
    return exact if len(exact) <= 20 else f"{float_down(value):.8g}"


def left_words(left: Fraction, budget: Fraction) -> str:
    """Return how far the joint loss may still rise, rounded down."""
    from pufferfish.ledger.price import LEAST_SHARE
    from pufferfish.rationals import float_down

    if left < budget * LEAST_SHARE:  # what rounding leaves of a budget is none
        return "nothing"
    exact = show(left)
    if len(exact) <= 12:
        return exact
    text = f"{float_down(left):.8g}"
    if Fraction(text) > left:  # the eighth digit was rounded up
        text = f"{float_down(Fraction(text) * (1 - Fraction(1, 10**7))):.8g}"
    return text


def spent_line(price: "Price") -> str:
    """Return what is spent after a release."""
    from pufferfish.errors import counted

    releases = counted(price.releases + 1, "release")
    return (
        f"joint loss of the {releases} of this table about {price.secret!r}: at most "
        f"{loss_words(price.bound, price.budget)} ({price.bound.how}); budget "
        f"{number(price.budget)}, left {left_words(price.left, price.budget)}"
    )


def price_lines(table: str, price: "Price") -> list[str]:
    """Return what a release would cost, for people."""
    from pufferfish.errors import counted

    known = "known to the ledger" if price.known else "new to the ledger"
    lines = [f"{table}: {counted(price.rows, 'row')}, {known}, secret {price.secret!r}"]
    if price.releases:
        lines.append(
            f"out already: {counted(price.releases, 'release')}, joint loss at most "
            f"{loss_words(price.before, price.budget)}"
        )
    else:
        lines.append("out already: nothing")
    lines.append(
        f"with this release of {price.column!r}: at most {loss_words(price.bound, price.budget)} "
        f"({price.bound.how})"
    )
    budget = number(price.budget)
    if price.fits:
        lines.append(f"fits the budget {budget}, and leaves {left_words(price.left, price.budget)}")
    else:
        lines.append(f"DOES NOT FIT the budget {budget}: the release would be refused")
    if price.needs_new_table:
        lines.append(
            f"other tables were charged under {price.secret!r} ({price.other_tables}): it would be "
            "refused without --new-table, which says that these are other people"
        )
    return [*lines, *(f"note: {note}" for note in price.notes)]


def exact_text(value: Fraction | None) -> str:
    """Return a number as text without anything rounded."""
    return "inf" if value is None else show(value)


def price_to_dict(price: "Price") -> dict[str, Any]:
    """Return a price as JSON values."""
    return {
        "secret": price.secret,
        "table": price.digest,
        "rows": price.rows,
        "column": price.column,
        "releases": price.releases,
        "joint_loss_before": float(price.before),
        "joint_loss": price.loss,
        "joint_loss_exact": exact_text(price.bound.value),
        "how": price.bound.how,
        "budget": float(price.budget),
        "budget_exact": exact_text(price.budget),
        "left": float(price.left),
        "fits": price.fits,
        "known_table": price.known,
        "needs_new_table": price.needs_new_table,
        "incomplete_rows": price.incomplete,
        "own_prior": price.own,
        "notes": list(map(command_line_words, price.notes)),
    }
