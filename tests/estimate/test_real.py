# SPDX-License-Identifier: Apache-2.0
"""Releases of real tables by channels that are best for estimates, two thousand times."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from estimate_cases import formula
from pufferfish.estimate.estimate import by_matrix
from pufferfish.estimate.matrix import FiniteChannel, LeastSquares
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.release.postprocess import Postprocess
from pufferfish.support import lattice_of
from shared_data import require_shared

TIMES, FEWER = 2000, 100
#: File, secret column and two of its secrets, public column, and what the channel is best for.
REAL = {
    "census": ("adult.data.gz", 5, ("Married-civ-spouse", "Never-married"), 1, "frequencies"),
    "hours by sex": ("adult.data.gz", 9, ("Female", "Male"), 12, "both"),
    "G3 by higher": ("student-por.csv", 20, ("no", "yes"), 32, "both"),
}


@pytest.mark.slow
@pytest.mark.parametrize("other", [False, True], ids=["these rows", "other rows"])
@pytest.mark.parametrize("file, secret, secrets, public, best_for", REAL.values(), ids=REAL)
def test_numbers_come_back(
    file: str, secret: int, secrets: tuple[str, str], public: int, best_for: Any, other: bool
) -> None:
    """Unbiased, also for other rows; as sure as the formula and the intervals say."""
    comma = file.startswith("adult")
    table = pd.read_csv(require_shared("data", file), dtype=str, sep=", " if comma else ";",
                        header=None if comma else 0, engine="python")  # fmt: skip
    table = table.iloc[:, [secret, public]].set_axis(["s", "x"], axis=1)
    table = table[table["s"].isin(secrets)]
    plan = pf.calibrate(pf.Prior.from_table(table, secret="s", public="x"), "0.5", "channel",
                        best_for=best_for)  # fmt: skip
    support, spec = plan.support, plan.spec()
    found = table["x"].value_counts()
    counts = np.array([found.get(support.name(x), 0) for x in range(support.size)])
    if other:
        counts = counts[::-1]
    atoms, rows = np.repeat(np.arange(support.size), counts), int(counts.sum())
    post, entropy, p = Postprocess(spec), seeded_entropy(7), counts / rows
    matrix = FiniteChannel(post, support).matrix
    solve = LeastSquares(matrix, plan.weights)
    drawn = [np.bincount(post.draw(atoms, entropy)[1], minlength=matrix.shape[1]).astype(float)
             for _ in range(TIMES)]  # fmt: skip
    bins = 1 if support.ordered else None
    estimates = [by_matrix(each, solve, support, (), bins) for each in drawn]
    # From a record, without the weights of the plan: about as sure, also of other rows.
    even = LeastSquares(matrix)
    found = [by_matrix(each, even, support, (), bins).frequencies for each in drawn[:FEWER]]
    alone = np.array([[f.estimate for f in shares.values()] for shares in found])
    expected = formula(matrix, p if other else plan.weights, np.eye(support.size), p, rows).sum()
    assert ((alone - p) ** 2).sum(axis=1).mean() < 1.2 * expected
    parts = {"share": np.eye(support.size)}
    if support.ordered:
        parts["cdf"] = np.triu(np.ones((support.size, support.size)))[:, :-1]
        parts["mean"] = np.array([float(v) for v in lattice_of(support).values])[:, None]
    for name, sets in parts.items():
        shown: Any = [{"share": [*e.frequencies.values()], "cdf": [*e.cdf.values()][:-1],
                       "mean": [e.mean]}[name] for e in estimates]  # fmt: skip
        values = np.array([[f.estimate for f in line] for line in shown])
        low, high = np.array([[f.interval for f in line] for line in shown]).transpose(2, 0, 1)
        truth, own = p @ sets, values.std(axis=0)
        variances = formula(matrix, plan.weights, sets, p, rows)
        reach = 4 * np.sqrt(np.maximum(variances, own**2) / TIMES) + 1e-9
        assert (np.abs(values.mean(axis=0) - truth) <= reach).all()
        assert abs(own @ own / variances.sum() - 1) < 0.06
        # Few changed rows give so few different estimates that no interval fits.
        inside = ((low <= truth) & (truth <= high)).mean(axis=0)[variances * rows**2 > 4]
        assert inside.min() > 0.93
        assert inside.max() < 0.97
