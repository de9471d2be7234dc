# SPDX-License-Identifier: Apache-2.0
"""Processes that spend from a ledger, for the tests that run many of them and kill some.

A line on standard input gives a task: `spend PATH AMOUNT TIMES` tries to charge so often (and says
"refused" where it does not fit), `hammer PATH AMOUNT SIZE` charges for ever. Each charge that is
durable is told by its id on standard output, and the end of a task by "done".
"""

import contextlib
import sys
import time
from fractions import Fraction
from pathlib import Path

from pufferfish.errors import InputError
from pufferfish.ledger import database
from pufferfish.ledger.account import Bound, parse_budget, total
from pufferfish.ledger.store import Charge, Store

SECRET = "higher"
DIGEST = "d" * 64


def charge_once(store: Store, amount: Fraction, plan: str = "{}", pause: float = 0.0) -> str | None:
    """Charge a release whose worst case is the amount; None where the budget does not allow it."""
    with store.begin_charge() as charge:
        before = charge.releases(SECRET)
        spent = total(Bound(parse_budget(release.epsilon), "") for release in before)
        after = total([spent, Bound(amount, "")])
        if not after.fits(charge.account(SECRET).budget):
            return None
        time.sleep(pause)  # so that whoever does not wait for others does harm
        return add(charge, amount, after, plan)


def add(charge: Charge, amount: Fraction, after: Bound, plan: str = "{}") -> str:
    charge.add_table(SECRET, DIGEST, 100)
    release = charge.add_release(
        SECRET,
        DIGEST,
        ["x"],
        mechanism="l1",
        plan=plan,
        epsilon=str(amount),
        bound=after.text,
        how="worst case",
    )
    return release.id


def without_transaction() -> None:
    """A wrong variant: each statement stands alone."""
    database._begin = lambda wait: None  # type: ignore[assignment]  # wrong on purpose
    database._commit = lambda wait: None  # type: ignore[assignment]  # wrong on purpose


def with_late_lock() -> None:
    """A wrong variant: the lock of those who write is taken when something is written."""
    database._begin = lambda wait: wait("BEGIN")  # type: ignore[assignment]  # wrong on purpose


def telling_too_early() -> None:
    """A wrong variant: a charge is told before it is durable, as a release would come too early."""
    commit = database._commit

    def late_commit(wait: database._Patient) -> None:
        (id,) = wait("SELECT id FROM release ORDER BY sequence DESC").fetchone() or ("refused",)
        say(id)
        time.sleep(0.05)
        commit(wait)

    database._commit = late_commit


MUTANTS = {
    "none": lambda: None,
    "without": without_transaction,
    "late": with_late_lock,
    "early": telling_too_early,
}


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    MUTANTS[sys.argv[1]]()
    say("ready")
    for line in sys.stdin:
        kind, path, amount, number = line.rstrip("\n").split("\t")
        store, each = Store(Path(path)), Fraction(amount)
        if kind == "hammer":
            while True:
                say(charge_once(store, each, plan="p" * int(number)) or "refused")
        for _ in range(int(number)):
            try:
                say(charge_once(store, each, pause=0.003) or "refused")
            except InputError as error:
                say(f"failed: {error}")
        say("done")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
