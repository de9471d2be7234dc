# SPDX-License-Identifier: Apache-2.0
"""What is asked of a channel, in whole numbers: privacy, costs, outputs, weights, conditions."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms.channel import places, same_places, whole_weights
from pufferfish.numbers import CountArray, parse_number, show, show_short, text_of
from pufferfish.priors.ambiguity import AmbiguitySet
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MAX_CELLS, Lattice, Support, lattice_of

#: What each adversary holds possible under each secret. Beside previous releases there is an
#: adversary for each of their outputs, and points do not sum to their total.
Sets = tuple[tuple[AmbiguitySet, ...], ...]

#: Costs that are known by name.
NAMED = ("hamming", "squared", "absolute")
#: The largest cost is less than this times the least one above 0.
MOST_SPAN = 10**9
#: Finer alphabets than this make programs that are refused anyway.
_MOST_OUTPUTS = 100_000


@dataclass(frozen=True)
class Conditions:
    """What a channel must meet beside privacy (theory, section 4).

    ``invariant``: the frequencies mu stay what they are, mu M = mu. ``unbiased``: the expected
    output is the value. ``min_keep``: each value stays itself at least that often.
    """

    invariant: bool = False
    unbiased: bool = False
    min_keep: Fraction | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions as they are listed: ``invariant``, ``unbiased``, ``min_keep 0.6``."""
        names = [name for name in ("invariant", "unbiased") if getattr(self, name)]
        if self.min_keep is not None:
            names.append(f"min_keep {show(self.min_keep)}")
        return tuple(names)


@dataclass(frozen=True, eq=False)
class Cone:
    """What a column M(y|.) must meet for privacy: P_i.m <= E P_j.m, for all P of the sets."""

    sets: Sets  # over the n_x values
    pairs: Sequence[tuple[int, int]]  # the protected ones, by position, in both orders
    bound: Fraction  # E, with 1 < E <= e^epsilon


@dataclass(frozen=True, eq=False)
class Task(Cone):
    """Find the cheapest private channel from n_x values to n_y outputs, in whole numbers."""

    weights: CountArray  # shape (n_x,), in proportion to mu
    prices: CountArray  # shape (n_x, n_y): c(x, y)
    costs: CountArray  # shape (n_x, n_y): what M(y|x) adds to the expected cost, in the same unit
    unit: Fraction  # the expected cost is this times the sum of costs * M
    same: Sequence[int]  # for each value the output that equals it
    conditions: Conditions
    #: Where it is to be unbiased, the values and the outputs in a common step.
    places: tuple[CountArray, CountArray] | None = None

    def cost(self, rows: CountArray) -> Fraction:
        """Return the expected cost of a channel of integers, exactly."""
        spent = map(Fraction, (self.costs * rows).sum(axis=1), rows.sum(axis=1))
        return sum(spent, Fraction(0)) * self.unit


def read_conditions(
    support: Support, invariant: bool, unbiased: bool, min_keep: object
) -> Conditions:
    """Return the conditions that a user asked for."""
    keep = None if min_keep is None else parse_number(min_keep, "min_keep")
    if keep is not None and not 0 <= keep <= 1:
        raise InputError(f"min_keep must be between 0 and 1, but {show(keep)} was given")
    if unbiased:
        lattice_of(support, "an unbiased channel")
        if invariant:
            raise InputError(
                "ask for invariant or for unbiased: only a channel that changes nothing is both"
            )
    return Conditions(invariant, unbiased, keep)


@dataclass(frozen=True, eq=False)
class Costs:
    """c(x, y) as ``unit`` times whole numbers, shape (n_x, n_y)."""

    name: str
    whole: CountArray
    unit: Fraction


def read_costs(inputs: Support, outputs: Support, cost: Any) -> Costs:
    """Return the costs of a name (None: the default), a mapping ``{x: {y: cost}}`` or a matrix."""
    if cost is None:
        cost = "squared" if inputs.ordered else "hamming"
    if isinstance(cost, str):
        return _named_costs(inputs, outputs, cost.strip().lower())
    if isinstance(cost, Mapping):
        cost = by_value(inputs, cost, "the cost matrix", "row")
        if not all(isinstance(row, Mapping) for row in cost):
            raise InputError("each row of the cost matrix must be a mapping {y: cost}")
        names = (f"the row of {inputs.name(x)!r} in the cost matrix" for x in range(inputs.size))
        cost = [by_value(outputs, row, n, "entry") for n, row in zip(names, cost, strict=True)]
    known = f"a cost is {listed(NAMED)}, a mapping {{x: {{y: cost}}}} or"
    matrix = read_matrix(inputs, cost, known, outputs.size)
    least = min(map(min, matrix))
    if least < 0:
        raise InputError(f"the cost matrix has the negative entry {show(least)}")
    common = math.lcm(*(c.denominator for row in matrix for c in row))
    whole = np.array([[int(c * common) for c in row] for row in matrix], dtype=object)
    return Costs("own", whole, Fraction(1, common))


def read_matrix(
    support: Support, given: Any, known: str, width: int | None = None
) -> list[list[Fraction]]:
    """Return a row of numbers for each value; ``known`` begins the refusal of anything else."""
    given = given.to_numpy() if hasattr(given, "to_numpy") else given  # a frame lists its columns
    sequence = np.iterable(given) and not isinstance(given, bytes | bytearray | Set)
    rows = [list(row) if np.ndim(row) else [row] for row in given] if sequence else []
    widths = {len(row) for row in rows}
    if len(rows) != support.size or len(widths) != 1 or 0 in widths or width not in (None, *widths):
        raise InputError(
            f"{known} {support.size} rows of {width or 'as many'} numbers, one row for each value"
        )
    return [[parse_number(v, "an entry of the matrix") for v in row] for row in rows]


def _named_costs(inputs: Support, outputs: Support, name: str) -> Costs:
    if name not in NAMED:
        raise InputError(
            f"there is no cost {name!r}{did_you_mean(name, NAMED)}; "
            f"the costs are {listed(NAMED)}, or a matrix"
        )
    if name == "hamming":
        # Just what counts as kept: outputs between ordered levels are codes, and no names.
        whole = np.ones((inputs.size, outputs.size), dtype=object)
        whole[np.arange(inputs.size), np.array(same_places(inputs, outputs))] = 0
        return Costs(name, whole, Fraction(1))
    lattice_of(inputs, f"the cost {name}, unlike the cost hamming or a cost matrix,")
    step, xs, ys = places(inputs, outputs)
    power = 2 if name == "squared" else 1
    return Costs(name, np.abs(xs[:, None] - ys[None, :]) ** power, step**power)


def check_span(costs: Costs, unbiased: bool) -> None:
    """Refuse costs of such different sizes that the solver's doubles cannot tell the small ones.

    The outermost outputs of an unbiased channel are far away, and all of these need them.
    """
    positive = [c for row in costs.whole.tolist() for c in (row[1:-1] if unbiased else row) if c]
    if positive and max(positive) >= MOST_SPAN * min(positive):
        low, high = (show_short(c * costs.unit) for c in (min(positive), max(positive)))
        raise InputError(
            "the costs of a channel must span less than a factor of 1e9, but these go from "
            f"{low} to {high}; use the cost hamming, or fewer values"
        )


def by_value(support: Support, given: Mapping[Any, Any], what: str, entry: str) -> list[Any]:
    """Return the entries of a mapping by values, in the order of a support.

    Numbers are found by their value ("1", 1 and 1.0 are the same), levels by their name. Entries
    of further values do not matter.
    """
    numbers = isinstance(support, Lattice)
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = show(parse_number(key, f"a value in {what}")) if numbers else text_of(key)
        if name in found:
            raise InputError(f"{what} has the {entry} of {name!r} twice")
        found[name] = value
    names = dict.fromkeys(map(support.name, range(support.size)))
    missing = [name for name in names if name not in found]
    if missing:
        near = did_you_mean(missing[0], [name for name in found if name not in names])
        raise InputError(f"{what} has no {entry} for {listed(missing)}{near}")
    return [found[name] for name in names]


def read_weights(scenario: Scenario, weights: Any) -> list[int]:
    """Return how much each value counts in the expected cost: whole numbers in proportion to mu.

    By default the pooled counts of the secrets in the pairs, over all adversaries; the mean of
    their P_s where there are no counts.
    """
    if isinstance(weights, Mapping):
        weights = by_value(scenario.support, weights, "the mapping of weights", "weight")
    if weights is None:
        counted = all(prior.from_rows for prior in scenario.priors)
        weights = sum(
            prior.counts[row].astype(object) * Fraction(1, 1 if counted else prior.totals[row])
            for prior in scenario.priors
            for row in map(prior.row, scenario.protected)
        )
    return whole_weights(weights, scenario.support.size)


def output_alphabet(support: Support, outputs: object) -> Support:
    """Return the outputs: the values, and K points between every two neighbours for "fine:K"."""
    if outputs is None:
        return support
    try:
        between = int(str(outputs).lower().replace(" ", "").removeprefix("fine:"))
    except ValueError:
        between = 0
    if between < 1:
        raise InputError(
            "finer outputs need a whole number K of points between neighbours, at least 1, or the "
            f"text 'fine:K', but {outputs!r} was given"
        )
    lattice, parts = lattice_of(support, "a finer output"), between + 1
    # Nearer to 0 than 2**52 steps, all multiples of a step are different doubles.
    index, farthest = lattice.index, max(abs(lattice.values[end] / lattice.step) for end in (0, -1))
    if max(lattice.size - 1, 1) * parts > _MOST_OUTPUTS or farthest * parts > MAX_CELLS // 2:
        raise InputError(
            f"{between} points between neighbours make more than {_MOST_OUTPUTS} outputs, or "
            "some of more than 2**52 steps; ask for fewer, or give a coarser step (--step)"
        )
    inner = index[:-1, None] * parts + np.diff(index)[:, None] * np.arange(parts)
    units = np.append(inner, index[-1] * parts)
    shared = math.gcd(parts, *units.tolist())
    return Lattice(lattice.step * shared / parts, lattice.origin * parts // shared, units // shared)


def widened(outputs: Support, factor: Fraction) -> Lattice:
    """Return outputs with points at or beyond c -+ (d / 2) * factor added (theory, section 4).

    c is the midpoint, d the diameter of the outputs.
    """
    lattice = lattice_of(outputs)
    last = int(lattice.index[-1])
    beyond = math.ceil(last * (factor - 1) / 2)
    if last + 2 * beyond > MAX_CELLS:
        raise InputError(
            f"an unbiased channel needs outputs {show_short(lattice.step * beyond)} beyond the "
            "values, more than 2**53 steps apart; a larger epsilon or a coarser step (--step) helps"
        )
    index = np.unique([0, *(lattice.index + beyond), last + 2 * beyond])
    return Lattice(lattice.step, lattice.origin - beyond, index)
