# SPDX-License-Identifier: Apache-2.0
"""Time of a price in a ledger with many releases: ``python benchmarks/bench_ledger.py``.

Set against what cannot be avoided: the joint loss of all these releases, computed twice, and half a
second to start (the table is read, and known again by its identity). As a command that is with the
start of Python.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import pufferfish as pf
from pufferfish.ledger.ledger import Ledger
from pufferfish.mechanisms import DiscreteLaplace

RELEASES = 1000
ROWS = 5000
RUNS = 3
START = 0.5


def seconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def write_table(path: Path) -> None:
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, ROWS)
    x = rng.integers(0, 50, ROWS) + secret
    z = (x // 5 + rng.integers(0, 10, ROWS)) % 20
    lines = [f"{'yn'[s]},{a},{b}" for s, a, b in zip(secret, x, z, strict=True)]
    path.write_text("s,x,z\n" + "\n".join(lines) + "\n")


def fill(ledger: Ledger, table: Path, plans: list[pf.Plan]) -> list[pf.Plan]:
    """Charge two releases, and then very many like them, whose bounds are of no interest here."""
    for plan in plans:
        with ledger.charge(table, plan):
            pass
    first = ledger.entries()
    rng = np.random.default_rng(2)
    made = list(plans)
    with ledger.store.begin_charge() as charge:
        for number in range(RELEASES - len(plans)):
            like, entry = plans[number % 2], first[number % 2]
            noise = DiscreteLaplace(float(rng.uniform(1e4, 2e4)), plans[0].noise.step)  # type: ignore[union-attr]
            plan = replace(like, applied=noise)
            charge.add_release(
                entry.secret, entry.digest, entry.columns, mechanism=entry.mechanism,
                plan=json.dumps(plan.to_dict()), epsilon=entry.epsilon, bound=first[-1].bound,
                how=entry.how, detail=entry.detail,
            )  # fmt: skip
            made.append(plan)
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, path = Path(folder) / "table.csv", Path(folder) / "books.db"
        write_table(table)
        ledger = Ledger.create(path)
        ledger.open_account("s", 1000)
        plans = [
            pf.calibrate(pf.Prior.from_table(table, secret="s", public=c), 1, "l1") for c in "xz"
        ]
        out = fill(ledger, table, plans)
        joint = pf.Scenario(pf.Prior.from_table(table, secret="s", public=["x", "z"]))
        once = seconds(lambda: pf.joint_loss(joint, [*out, plans[0]]))
        price = seconds(lambda: Ledger.open(path).price(table, plans[0]))
        plan = Path(folder) / "plan.json"
        plans[0].save(plan)
        command = [sys.executable, "-m", "pufferfish.cli", "ledger", "price"]
        whole = seconds(
            lambda: subprocess.run(
                [*command, str(path), str(table), "--plan", str(plan)],
                check=True, stdout=subprocess.DEVNULL,
            )
        )  # fmt: skip
        start = seconds(
            lambda: subprocess.run(
                [*command[:-2], "--version"], check=True, stdout=subprocess.DEVNULL
            )
        )
        print(f"a ledger with {len(ledger.entries())} releases of two columns, {ROWS} rows")
        print(f"{'joint loss of all of them':40}{once:8.3f} s")
        print(f"{'price':40}{price:8.3f} s   target {2 * once + START:.3f} s")
        print(
            f"{'pufferfish ledger price':40}{whole:8.3f} s   of which Python starts {start:.3f} s"
        )


if __name__ == "__main__":
    main()
