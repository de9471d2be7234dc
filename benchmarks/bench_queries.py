# SPDX-License-Identifier: Apache-2.0
"""Speed of plans for queries over correlated records."""

from collections.abc import Iterator
from contextlib import suppress

from timing import Given, Row, seconds

import pufferfish as pf
from pufferfish.queries.calibrate import MECHANISMS

TWO = pf.MarkovChain(["0", "1"], [[".9", ".1"], [".4", ".6"]], ["1", "0"])
FOUR = pf.MarkovChain(
    list("abcd"),
    [[".9", ".05", ".03", ".02"], [".1", ".8", ".06", ".04"], [".05", ".1", ".75", ".1"],
     [".05", ".1", ".15", ".7"]],
)  # fmt: skip


def took(query: pf.CountQuery, *names: str) -> float:
    def work() -> None:
        for name in names:
            with suppress(pf.InputError):  # a mechanism that this chain has not
                pf.calibrate(query, 1, name)

    return seconds(work, 1)


def queries(given: Given) -> Iterator[Row]:
    """Plans for a count over a Markov chain, certificate included.

    The exact scale comes from the ends of the law, in time linear in the number of records; the
    exact Markov quilt mechanism is computed beside it, and proved in the same way. For any number
    of records one bound is proved.
    """
    work = "calibrate a count of a chain of two states"
    for size in given.pick((100, 1000, 10_000, 100_000), (100, 1000)):
        query = pf.CountQuery(TWO, "1", size)
        exact = took(query, "exact")
        yield Row(work, "exact", exact, target=10 if size == 100_000 else None, size=size)
        if size <= 10_000:
            yield Row(work, "mqm-exact", took(query, "mqm-exact"), size=size)
    settled = pf.MarkovChain(TWO.states, TWO.transition)
    size = given.pick(1_000_000, 200_000)
    yield Row(f"exact, {size} records", "ours", took(pf.CountQuery(settled, "1", size), "exact"))
    size = given.pick(300, 30)
    every = took(pf.CountQuery(FOUR, "d", size), *MECHANISMS)
    yield Row(f"all mechanisms, four states, {size} records", "ours", every, target=30)
