# SPDX-License-Identifier: Apache-2.0
"""Speed of joint losses and of ledgers, as ratios: ``python benchmarks/bench_joint.py``.

One *accumulate* is one ``np.logaddexp.accumulate`` over as many doubles as the grid has cells.
"""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from timing import accumulate, seconds, verdict

import pufferfish as pf

ROWS = 5000
RELEASES = 100


def noise(scale: float) -> pf.DiscreteLaplace:
    return pf.DiscreteLaplace(scale, Fraction(1))


def three_columns() -> None:
    size = 100
    counts = np.random.default_rng(2).poisson(3, (2, size, size, size))
    support = {column: range(size) for column in "xyz"}
    prior = pf.Prior.from_counts({"a": counts[0], "b": counts[1]}, support=support)
    scenario, unit = pf.Scenario(prior), accumulate(size**3)
    for scales in ((3.0, 7.0, 20.0), (0.1, 0.1, 0.1)):
        items = [(column, noise(scale)) for column, scale in zip("xyz", scales, strict=True)]
        took = seconds(lambda items=items: pf.joint_loss(scenario, items), 3)
        method = pf.joint_loss(scenario, items).method
        print(f"{f'100 x 100 x 100, scales {scales}':45}{verdict(took / unit, 20)}  {method}")


def ledger() -> None:
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, ROWS)
    x = rng.integers(0, 50, ROWS) + secret
    z = (x // 5 + rng.integers(0, 10, ROWS)) % 20
    lines = [f"{'yn'[s]},{a},{b}" for s, a, b in zip(secret, x, z, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("s,x,z\n" + "\n".join(lines) + "\n")
        books = pf.Ledger.create(Path(folder) / "books.db")
        books.dataset("bench", table, secret="s", budget=1000)
        plans = [
            pf.calibrate(pf.Prior.from_table(table, secret="s", public=column), "1/100", "l1")
            for column in "xz"
        ]
        for number in range(RELEASES):
            with books.charge(table, plans[number % 2]):
                pass
        joint = pf.Scenario(pf.Prior.from_table(table, secret="s", public=["x", "z"]))
        out = [plans[number % 2] for number in range(RELEASES + 1)]
        once = seconds(lambda: pf.joint_loss(joint, out), 3)
        price = seconds(lambda: books.price(table, plans[0]), 3)
    print(f"{f'price beside {RELEASES} releases, s':45}{verdict(price, 2 * once + 0.5)}")


def main() -> None:
    three_columns()
    ledger()


if __name__ == "__main__":
    main()
