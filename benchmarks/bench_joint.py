# SPDX-License-Identifier: Apache-2.0
"""Speed of joint losses and of ledgers."""

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from timing import Given, Row, accumulate, seconds

import pufferfish as pf

COLUMNS = "uvwxyz"


def grid(columns: str, size: int) -> pf.Scenario:
    counts = np.random.default_rng(2).poisson(3, (2, *[size] * len(columns)))
    support = {column: range(size) for column in columns}
    return pf.Scenario(pf.Prior.from_counts(dict(zip("ab", counts, strict=True)), support=support))


def joint(of: pf.Scenario, columns: str, scales: list[float]) -> float:
    noise = [pf.DiscreteLaplace(scale, Fraction(1)) for scale in scales]
    return seconds(lambda: pf.joint_loss(of, zip(columns, noise, strict=True)), 3)


def releases(given: Given) -> Iterator[Row]:
    """Joint losses, prices in a ledger, and releases.

    Each release is of another column of 10 levels, so that the grid of all outputs has a million
    cells in the end, or all are of one column. A ledger prices a release beside the earlier ones,
    by the rows of the table. It may take twice as long as the joint loss alone, and half a second.
    """
    size, most, half = given.pick((100, 6, 50), (20, 3, 3))
    for scales in ([3.0, 7.0, 20.0], [0.1, 0.1, 0.1]):
        took, unit = joint(grid("xyz", size), "xyz", scales), accumulate(size**3)
        work = f"joint loss, {size} × {size} × {size}, scales {', '.join(map(str, scales))}"
        yield Row(work, "ours", took, unit, "accumulates", 20)
    for many in range(1, most + 1):
        for way, of in (("of a column each", COLUMNS[:many]), ("of one column", "u" * many)):
            took = joint(grid("".join(dict.fromkeys(of)), 10), of, [5.0] * many)
            yield Row("joint loss of releases", way, took, size=many)
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, 5000)
    values = rng.integers(0, 9, (most, 5000)) + secret
    lines = [",".join(["yn"[s], *map(str, row)]) for s, row in zip(secret, values.T, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        table, own = Path(folder) / "table.csv", COLUMNS[:most]
        table.write_text("\n".join([",".join(["s", *own]), *lines, ""]))
        priors = [pf.Prior.from_table(table, secret="s", public=column) for column in own]
        plans = [pf.calibrate(prior, "1/100", "l1") for prior in priors]
        for many in range(1, most + 1):
            took = price(table, plans[:many])
            yield Row("price in a ledger", "of a column each", took, size=many)
        known, out = pf.Prior.from_table(table, secret="s", public=list("uv")), plans[:2] * half
        once = seconds(lambda: pf.joint_loss(known, out), 3)
        work = f"price beside {2 * half - 1} releases"
        yield Row(work, "ours", price(table, out), target=2 * once + 0.5)


def price(table: Path, plans: list[pf.Plan]) -> float:
    """Return the time of the price of the last plan, beside all others."""
    with tempfile.TemporaryDirectory() as folder:
        books = pf.Ledger.create(Path(folder) / "books.db")
        books.dataset("bench", table, secret="s", budget=1000)
        for plan in plans[:-1]:
            with books.charge(table, plan):
                pass
        return seconds(lambda: books.price(table, plans[-1]), 3)
