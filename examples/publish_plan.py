# SPDX-License-Identifier: Apache-2.0
"""What does it cost to publish the plan, too? A table of scales of noise, for three tables.

The counts are of UCI Student Performance (Cortez and Silva, 2008, CC BY 4.0): final grades in
Portuguese by sex; and of UCI Census Income (Becker and Kohavi, 1996,
https://doi.org/10.24432/C5XW20, CC BY 4.0): hours a week by sex of adult.data, in steps of 5, and
the work classes of the paper for two marital statuses, in its order. The data are public: noise is
drawn from seeds here, so that the table is always the same.

Run: python examples/publish_plan.py
"""

import statistics
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path

import pandas as pd
from estimates import HOURS

import pufferfish as pf
from pufferfish.errors import PufferfishError, SeededWarning
from pufferfish.paper import block

GRADES = {  # grades from 0 to 20
    "F": "7 0 0 0 0 0 0 7 20 16 52 54 44 54 41 32 23 21 11 1 0",
    "M": "8 1 0 0 0 1 3 3 15 19 45 50 28 28 22 17 13 8 4 1 0",
}
EPSILONS, SHARE, DRAWS = ("0.5", "1", "2"), Fraction(3, 10), 5


def table_of(counts):
    """Return a table with a row for each one that is counted."""
    cells = [(s, x) for s, own in counts.items() for x, n in own.items() for _ in range(n)]
    return pd.DataFrame(cells, columns=["secret", "value"])


def median(make):
    """Return the median scale of several draws, some of which may leave no plan."""
    scales = []
    for seed in range(DRAWS):
        try:
            scales.append(make(seed).scale)
        except PufferfishError:
            scales.append(float("inf"))
    return statistics.median(scales)


def rows(title, counts, **declared):
    """Yield a line of the table for each epsilon."""
    table = table_of(counts)
    options = {"secret": "secret", "public": "value", **declared}
    values = [x if isinstance(x, int) else k for k, x in enumerate(next(iter(counts.values())))]

    def published(seed, epsilon, spent, **held_out):
        noisy = pf.noisy_counts(
            table, spent, pairs=[tuple(counts)], seed=seed, **options, **held_out
        )
        return pf.calibrate(noisy, epsilon)

    def from_others(seed, epsilon, folder):
        rest = Path(folder) / f"{title}{epsilon}{seed}.csv"
        return published(seed, epsilon, epsilon, hold_out="0.5", rest=rest)

    for epsilon in EPSILONS:
        exact = pf.calibrate(pf.Prior.from_table(table, **options), epsilon).scale
        sure = pf.calibrate(pf.Prior.from_table(table, confidence="0.95", **options), epsilon).scale
        public = median(lambda seed, e=epsilon: published(seed, e, SHARE * Fraction(e)))
        with tempfile.TemporaryDirectory() as folder:
            others = median(lambda seed, e=epsilon, at=folder: from_others(seed, e, at))
        none = (values[-1] - values[0]) / float(epsilon)
        yield [title, epsilon, *map(shown, (exact, sure, public, others, none))]


def shown(scale):
    """Return a scale with three digits."""
    return "no plan" if scale == float("inf") else f"{scale:.3g}"


def main():
    """Print the table."""
    warnings.simplefilter("ignore", SeededWarning)
    grades = {sex: dict(enumerate(map(int, n.split()))) for sex, n in GRADES.items()}
    hours = {sex: {5 * k: int(n) for k, n in enumerate(row.split())} for sex, row in HOURS.items()}
    census = block("census")
    work = {s: dict(zip(census.order, census.counts[s], strict=True)) for s in census.pair}
    head = ["", "epsilon", "private plan", "private, 95 %", "published, 95 %", "from held-out rows",
            "without a table"]  # fmt: skip
    lines = [
        *rows("final grade", grades, support=range(21)),
        *rows("hours a week", hours, support=range(0, 100, 5)),
        *rows("work class", work, order=list(census.order)),
    ]
    for line in (head, ["---"] * len(head), *lines):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
