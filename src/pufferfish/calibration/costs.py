# SPDX-License-Identifier: Apache-2.0
"""What a channel costs: the distortion c(x, y) of publishing y for x, and the weights of the x."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms.channel import same_places
from pufferfish.rationals import parse_number, show
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels, Support, lattice_of
from pufferfish.texts import text_of

#: Costs that are known by name.
NAMED = ("hamming", "squared", "absolute")
ObjectArray = npt.NDArray[np.object_]


def default_cost(support: Support) -> str:
    """Return the cost that is used where none is asked for; only an order makes distances."""
    return "hamming" if isinstance(support, Levels) and not support.ordered else "squared"


def cost_matrix(inputs: Support, outputs: Support, cost: object) -> ObjectArray:
    """Return c(x, y) as integers and fractions, shape (n_x, n_y).

    Parameters
    ----------
    inputs, outputs : Lattice or Levels
        The two alphabets.
    cost : str or mapping or matrix
        ``hamming``, ``squared``, ``absolute``, or the user's own: a mapping
        ``{x: {y: cost}}`` by the names of the values, or rows of numbers.

    Raises
    ------
    InputError
        If the cost is unknown, a distance is asked for between levels without an order, or a
        matrix has a wrong shape or a negative entry.
    """
    if isinstance(cost, str):
        return _named(inputs, outputs, cost.strip().lower())
    if isinstance(cost, Mapping):
        rows = by_value(inputs, cost, "the cost matrix", "row")
        entries = []
        for x, row in enumerate(rows):
            name = inputs.name(x)
            if not isinstance(row, Mapping):
                raise InputError(f"the row of {name!r} in the cost matrix must be a mapping")
            what = f"the row of {name!r} in the cost matrix"
            entries.append(by_value(outputs, row, what, "entry"))
        return _checked(entries, inputs, outputs)
    return _checked(cost, inputs, outputs)


def by_value(
    support: Support, given: Mapping[Any, Any], what: str, entry: str, strict: bool = False
) -> list[Any]:
    """Return the entries of a mapping by values, in the order of a support.

    Parameters
    ----------
    support : Lattice or Levels
        Numbers are found by their value ("1", 1 and 1.0 are the same), levels by their name.
    given : mapping
    what, entry : str
        What the mapping and its entries are, for the error messages.
    strict : bool
        Refuse entries of values that are not in the support.

    Raises
    ------
    InputError
        If a value has no entry, or one is given twice.
    """
    keys: list[Any] = [support.name(k) for k in range(support.size)]
    names = list(keys)
    if isinstance(support, Lattice):
        keys = list(support.values)
    place = {key: k for k, key in enumerate(keys)}
    found: dict[int, Any] = {}
    others: list[str] = []
    for key, value in given.items():
        text = text_of(key).strip()
        known = parse_number(key, f"a value in {what}") if isinstance(support, Lattice) else text
        at = place.get(known)
        if at is None:
            others.append(text)
        elif at in found:
            raise InputError(f"{what} has the {entry} of {names[at]!r} twice")
        else:
            found[at] = value
    missing = [name for k, name in enumerate(names) if k not in found]
    if missing:
        every = f"; it needs one for each of {listed(map(repr, names))}" if found else ""
        raise InputError(
            f"{what} has no {entry} for {listed(map(repr, missing))}"
            f"{did_you_mean(missing[0], others)}{every}"
        )
    if strict and others:
        raise InputError(
            f"{what} has the {entry} of {others[0]!r}, which is none of the values"
            f"{did_you_mean(others[0], names)}"
        )
    return [found[k] for k in range(support.size)]


def _named(inputs: Support, outputs: Support, name: str) -> ObjectArray:
    if name not in NAMED:
        raise InputError(
            f"there is no cost {name!r}{did_you_mean(name, NAMED)}; "
            f"the costs are {listed(NAMED)}, or a matrix"
        )
    if name == "hamming":
        # Just what counts as kept: outputs between ordered levels are codes, and no names.
        costs = np.ones((inputs.size, outputs.size), dtype=object)
        for x, y in enumerate(same_places(inputs, outputs)):
            if y is not None:
                costs[x, y] = 0
        return costs
    if isinstance(inputs, Levels) and not inputs.ordered:
        raise InputError(
            f"the cost {name} needs numbers or levels with an order, but the levels "
            f"{listed(inputs.names)} have none; the cost hamming and a cost matrix of your own "
            "do not need one, or state an order with --order V1,V2,... (order=[...])"
        )
    first, second = lattice_of(inputs), lattice_of(outputs)
    # Whole numbers of a common step: they are quicker than fractions.
    step = Fraction(1, math.lcm(first.step.denominator, second.step.denominator))
    xs, ys = (
        np.array([int(v / step) for v in lattice.values], dtype=object)
        for lattice in (first, second)
    )
    apart = np.abs(xs[:, None] - ys[None, :])
    power = 2 if name == "squared" else 1
    return np.asarray(apart**power if step == 1 else apart**power * step**power)


def _checked(rows: Any, inputs: Support, outputs: Support) -> ObjectArray:
    try:
        listed_rows = [list(row) for row in rows]
    except TypeError:
        raise InputError(
            f"a cost is {listed(NAMED)}, a mapping {{x: {{y: cost}}}} or rows of numbers, but "
            f"{rows!r} was given"
        ) from None
    if len(listed_rows) != inputs.size or any(len(row) != outputs.size for row in listed_rows):
        raise InputError(
            f"the cost matrix must have {inputs.size} rows of {outputs.size} numbers, one for "
            "each value and output"
        )
    matrix = np.empty((inputs.size, outputs.size), dtype=object)
    for i, row in enumerate(listed_rows):
        for j, value in enumerate(row):
            entry = parse_number(value, "an entry of the cost matrix")
            if entry < 0:
                raise InputError(f"the cost matrix has the negative entry {value}")
            matrix[i, j] = entry.numerator if entry.denominator == 1 else entry
    return matrix


def weights_of(
    scenario: Scenario, weights: Sequence[object] | Mapping[Any, object] | None
) -> list[Fraction]:
    """Return mu(x): how much each value counts in the expected cost; sums to 1.

    By default the pooled counts of the secrets in the pairs, over all adversaries; the mean of
    their P_s where there are no counts.

    Raises
    ------
    InputError
        If given weights are of the wrong number, lack a value, are negative, or all 0.
    """
    n = scenario.support.size
    if weights is not None:
        if isinstance(weights, Mapping):
            weights = by_value(
                scenario.support, weights, "the mapping of weights", "weight", strict=True
            )
        try:
            exact = [parse_number(w, "a weight") for w in weights]
        except TypeError:
            raise InputError(f"weights must be {n} numbers, but {weights!r} was given") from None
        if len(exact) != n:
            raise InputError(f"weights must be {n} numbers, one for each value, not {len(exact)}")
        if min(exact) < 0 or not any(exact):
            raise InputError(
                f"weights must not be negative nor all 0, but the least is {show(min(exact))}"
            )
        total = sum(exact)
        return [w / total for w in exact]
    pooled = [Fraction(0)] * n
    counted = all(prior.from_rows for prior in scenario.priors)
    for prior in scenario.priors:
        for secret in scenario.protected:
            row = prior.row(secret)
            unit = Fraction(1) if counted else Fraction(1, prior.totals[row])
            for k, c in enumerate(prior.counts[row].tolist()):
                if c:
                    pooled[k] += int(c) * unit
    total = sum(pooled)
    return [w / total for w in pooled]


def expected_cost(
    rows: ObjectArray, sums: Sequence[int], costs: ObjectArray, mu: Sequence[Fraction]
) -> Fraction:
    """Return sum_x mu(x) sum_y c(x, y) M(y|x), exactly; ``sums`` are those of the rows."""
    total = Fraction(0)
    for weight, whole, prices, row in zip(mu, sums, costs.tolist(), rows.tolist(), strict=True):
        if weight:
            spent = sum(c * m for c, m in zip(prices, row, strict=True) if m and c)
            total += weight * Fraction(spent) / whole
    return total
