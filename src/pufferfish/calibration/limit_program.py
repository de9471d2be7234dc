# SPDX-License-Identifier: Apache-2.0
"""The program of epsilon 0: the likelihoods of two secrets are the same, for every output.

That is sum_x M(y|x) (P_i(x) - P_j(x)) = 0 for all pairs and adversaries: the differences' row
space counts, not the differences. Reduced to echelon form in rationals they are few and
independent, however near to each other the priors are.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import flint

from pufferfish.calibration.channel_program import Row
from pufferfish.scenario import Scenario


def limit_rows(scenario: Scenario, outputs: int) -> tuple[list[Row], list[Fraction]]:
    """Return the equations of epsilon 0, and how much each counts.

    Parameters
    ----------
    scenario : Scenario
    outputs : int
        n_y.

    Returns
    -------
    rows : list of Row
        At most n_x for every output.
    weights : list of Fraction
        Each equation is a combination of differences of likelihoods; the sum of its coefficients'
        sizes. Where a difference is not 0 but at most d, it comes to at most d times that.
    """
    n = scenario.support.size
    pairs = list(pairwise(scenario.protected)) if scenario.is_all_pairs else scenario.pairs
    differences = [
        [prior.probability(i, x) - prior.probability(j, x) for x in range(n)]
        for prior in scenario.priors
        for i, j in pairs
    ]
    many = len(differences)
    extended = [
        [flint.fmpq(d.numerator, d.denominator) for d in row] + [int(k == r) for k in range(many)]
        for r, row in enumerate(differences)
    ]
    reduced, _ = flint.fmpq_mat(extended).rref()
    rows: list[Row] = []
    weights: list[Fraction] = []
    zero = Fraction(0)
    for entries in reduced.tolist():
        exact = [Fraction(int(e.p), int(e.q)) for e in entries]
        atoms = [x for x in range(n) if exact[x]]
        if not atoms:
            break  # what is left combines differences to 0
        coefficients = [exact[x] for x in atoms]
        rows += [
            Row([x * outputs + y for x in atoms], coefficients, zero, zero) for y in range(outputs)
        ]
        weights += [sum(map(abs, exact[n:]), zero)] * outputs
    return rows, weights
