# SPDX-License-Identifier: Apache-2.0
"""The linear program of the optimal channel, exact.

Variables are M(y|x), x-major. For every output y, adversary and ordered pair,

    sum_x M(y|x) (P_i(x) - E P_j(x)) <= 0,        E a rational just below e^epsilon.

Where all pairs of three or more secrets are protected, one more variable per output and
adversary (the least likelihood l_y) says the same with 2 m rows instead of m (m - 1):
l_y <= sum_x M(y|x) P_s(x) <= E l_y for every secret s (theory, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

#: Larger programs take more than some minutes, or more memory than there is.
MOST_COEFFICIENTS = 4_000_000
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One constraint: ``lower <= coefficients . variables <= upper``, exact.

    Attributes
    ----------
    columns : list of int
        Variables with a coefficient.
    coefficients : list of Fraction
        Their coefficients; rows that differ only in the output share one list.
    lower, upper : Fraction or None
        None where there is none.
    """

    columns: list[int]
    coefficients: list[Fraction]
    lower: Fraction | None
    upper: Fraction | None


@dataclass(frozen=True)
class Program:
    """The program: minimise ``cost . variables`` within ``rows``, variables >= ``least``.

    Attributes
    ----------
    shape : (int, int)
        n_x, n_y: the first n_x * n_y variables are the channel; further ones lie between 0 and 1
        in some solution.
    cost : float64 array
        One entry per variable, the largest about 1; only the solver uses it.
    rows : list of Row
        Among them for every x that its row sums to 1, from row ``sums`` on.
    least : dict of int to Fraction
        Lower bounds other than 0.
    sums : int
    weights : list of Fraction
        For each row before ``sums`` how much it may come to, in units of E - 1, where it must be
        0 at most at epsilon 0.
    """

    shape: tuple[int, int]
    cost: FloatArray
    rows: list[Row]
    least: dict[int, Fraction]
    sums: int
    weights: list[Fraction]


def check_size(scenario: Scenario, outputs: int, regions: Sequence[Concrete] | None) -> None:
    """Refuse a program that is too large, before anything of it is built.

    Raises
    ------
    InputError
        If it would have more than ``MOST_COEFFICIENTS``.
    """
    n, secrets, pairs = scenario.support.size, len(scenario.protected), len(scenario.pairs)
    if regions is not None:
        # Two duals, each with about four coefficients per value.
        each = 8 * secrets
    elif scenario.is_all_pairs and secrets > 2:
        each = 2 * secrets
    else:
        each = 2 * pairs
    coefficients = n * outputs * (1 + each * len(scenario.priors))
    if coefficients > MOST_COEFFICIENTS:
        support = scenario.support
        advice = "merge levels" if isinstance(support, Levels) else "give a coarser step (--step)"
        if outputs > n:
            advice += ", ask for fewer outputs"
        if not isinstance(support, Levels) or support.ordered:
            advice += ", or use the mechanism exact"
        raise InputError(
            f"a channel from {n} values to {outputs} outputs needs a linear program of "
            f"{coefficients:,} coefficients, more than {MOST_COEFFICIENTS:,}; {advice}"
        )


def privacy_rows(scenario: Scenario, outputs: int, bound: Fraction) -> tuple[list[Row], int]:
    """Return the privacy constraints, and how many further variables they use."""
    n = scenario.support.size
    rows: list[Row] = []
    further = 0
    secrets = scenario.protected
    for prior in scenario.priors:
        masses = {
            s: [(x, prior.probability(s, x)) for x in range(n) if prior.counts[prior.row(s), x]]
            for s in secrets
        }
        if scenario.is_all_pairs and len(secrets) > 2:
            above = {s: [*(p for _, p in masses[s]), Fraction(-1)] for s in secrets}
            below = {s: [*(p for _, p in masses[s]), -bound] for s in secrets}
            for y in range(outputs):
                least = n * outputs + further
                further += 1
                for s in secrets:
                    columns = [*(x * outputs + y for x, _ in masses[s]), least]
                    rows.append(Row(columns, above[s], Fraction(0), None))
                    rows.append(Row(columns, below[s], None, Fraction(0)))
            continue
        for first, second in scenario.pairs:
            for i, j in ((first, second), (second, first)):
                difference = dict(masses[i])
                for x, p in masses[j]:
                    difference[x] = difference.get(x, Fraction(0)) - bound * p
                atoms = sorted(x for x, d in difference.items() if d != 0)
                coefficients = [difference[x] for x in atoms]
                rows += [
                    Row([x * outputs + y for x in atoms], coefficients, None, Fraction(0))
                    for y in range(outputs)
                ]
    return rows, further
