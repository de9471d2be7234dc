# SPDX-License-Identifier: Apache-2.0
"""What is asked of a channel: its cost, its outputs, the weights of the values, side conditions."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms.channel import places, same_places, whole_weights
from pufferfish.numbers import FloatArray, parse_number, show, show_short, text_of
from pufferfish.priors.ambiguity import AmbiguitySet, Point
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support, lattice_of

#: Costs that are known by name.
NAMED = ("hamming", "squared", "absolute")
#: The largest cost is less than this times the least one above 0.
MOST_SPAN = 10**9
#: Finer alphabets than this make programs that are refused anyway.
_MOST_OUTPUTS = 100_000
#: The largest cost in the program is below 2 to this: the solver's tolerances are absolute.
_HEADROOM = 9
#: By so much more is kept than asked for, which the repair may take; more for a small epsilon.
_KEPT_MORE = Fraction(1, 2**32)


@dataclass(frozen=True, eq=False)
class Costs:
    """c(x, y) as ``unit`` times whole numbers, shape (n_x, n_y)."""

    name: str
    whole: npt.NDArray[np.object_]
    unit: Fraction


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
        return (*names, *(() if self.min_keep is None else (f"min_keep {show(self.min_keep)}",)))


@dataclass(frozen=True, eq=False)
class Task:
    """What each adversary holds possible under each secret, the pairs of these, E, and the options.

    E, ``bound``, is rational with 1 < E <= e^epsilon; the weights mu sum to 1; the outputs include
    the values.
    """

    inputs: Support
    outputs: Support
    sets: tuple[tuple[AmbiguitySet, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    bound: Fraction
    costs: Costs
    weights: tuple[Fraction, ...]
    conditions: Conditions

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of values and of outputs."""
        return self.inputs.size, self.outputs.size

    @cached_property
    def same(self) -> list[int]:
        """For each value the output that equals it."""
        return [y for y in same_places(self.inputs, self.outputs) if y is not None]

    @property
    def both(self) -> tuple[tuple[int, int], ...]:
        """The pairs in both orders."""
        return (*self.pairs, *((j, i) for i, j in self.pairs))

    def by_ends(self, own: Sequence[AmbiguitySet]) -> bool:
        """Whether the extremes over all secrets say it all: points, every two of them a pair."""
        every = 2 * len(self.pairs) == len(own) * (len(own) - 1)
        return every and all(isinstance(belief, Point) for belief in own)

    @property
    def kept_more(self) -> Fraction:
        """By how much more than ``min_keep`` the program keeps."""
        return _KEPT_MORE * max(Fraction(1), 1 / (16384 * (self.bound - 1)))

    @cached_property
    def average(self) -> tuple[int, ...]:
        """The mean of all point priors, in whole numbers."""
        points = [s for secrets in self.sets for s in secrets if isinstance(s, Point)]
        common = math.lcm(*(point.total for point in points))
        rows = [point.masses.reshape(-1).astype(object) for point in points]
        scaled = [row * (common // p.total) for row, p in zip(rows, points, strict=True)]
        return tuple(np.sum(scaled, axis=0).tolist())

    @cached_property
    def averaged(self) -> dict[int, Fraction]:
        """The values that no protected secret can take, and the share of each that is kept.

        Privacy says nothing of their rows. They are published like the average: the rest of the
        share has the row avg(y), the mean over adversaries and secrets of sum_x P_s(x) M(y|x).
        Whoever has such a value is then protected too (theory, section 4): if all pairs of one
        adversary are protected, avg(y) lies between likelihoods that differ by a factor E at most.
        An unbiased channel, and values of positive weight in an invariant one, do without.
        """
        regions = any(not isinstance(s, Point) for own in self.sets for s in own)
        if self.conditions.unbiased or regions:  # regions reach all values
            return {}
        keep = self.conditions.min_keep or Fraction(0)
        kept = self.weights if self.conditions.invariant else (Fraction(0),) * self.shape[0]
        return {x: keep for x, mass in enumerate(self.average) if not mass and not kept[x]}

    @property
    def idle(self) -> list[int]:
        """The values that neither weigh anything nor are published like the average."""
        return [x for x, w in enumerate(self.weights) if not w and x not in self.averaged]

    @cached_property
    def _shift(self) -> int:
        return int(self.costs.whole.max()).bit_length() - _HEADROOM

    @property
    def unit(self) -> Fraction:
        """The cost that is 1 in the program."""
        return self.costs.unit * Fraction(2) ** self._shift

    @cached_property
    def prices(self) -> FloatArray:
        """The costs c(x, y) in units of ``unit``."""
        whole, shift = self.costs.whole.tolist(), self._shift
        up, down = 1 << max(0, -shift), 1 << max(0, shift)
        return np.array([[c * up / down for c in row] for row in whole])

    @cached_property
    def terms(self) -> FloatArray:
        """What M(y|x) adds to the cost, in units of ``unit`` (for averaged rows: nothing)."""
        terms: FloatArray = np.array([[float(w)] for w in self.weights]) * self.prices
        borne = np.zeros(self.shape[1])
        for x, share in self.averaged.items():
            borne += float(1 - share) * terms[x]
            terms[x] = 0.0
        if borne.any():  # the other rows bear what their average costs
            total = sum(self.average)
            terms += np.array([[mass / total] for mass in self.average]) * borne
        return terms

    @property
    def fixed(self) -> Fraction:
        """What the kept shares of averaged rows cost, in the costs' own unit."""
        whole = self.costs.whole
        spent = (self.weights[x] * p * whole[x, self.same[x]] for x, p in self.averaged.items())
        return sum(spent, Fraction(0)) * self.costs.unit


def read_conditions(
    support: Support, invariant: bool, unbiased: bool, min_keep: object
) -> Conditions:
    """Return the conditions that a user asked for."""
    keep = None if min_keep is None else parse_number(min_keep, "min_keep")
    if keep is not None and not 0 <= keep <= 1:
        raise InputError(f"min_keep must be between 0 and 1, but {show(keep)} was given")
    if unbiased:
        _check_ordered(support, "an unbiased channel")
    return Conditions(invariant, unbiased, keep)


def _check_ordered(support: Support, what: str) -> None:
    if isinstance(support, Levels) and not support.ordered:
        raise InputError(
            f"{what} needs numbers or levels with an order, but the levels {listed(support.names)} "
            "have none: state one with --order V1,V2,... (order=[...])"
        )


def read_costs(inputs: Support, outputs: Support, cost: object) -> Costs:
    """Return the costs of a name, a mapping ``{x: {y: cost}}`` or a matrix.

    Without one they are squared, or hamming for levels without an order.
    """
    if cost is None:
        ordered = isinstance(inputs, Lattice) or inputs.ordered
        cost = "squared" if ordered else "hamming"
    if isinstance(cost, str):
        return _named_costs(inputs, outputs, cost.strip().lower())
    if isinstance(cost, Mapping):
        rows = by_value(inputs, cost, "the cost matrix", "row")
        if not all(isinstance(row, Mapping) for row in rows):
            raise InputError("each row of the cost matrix must be a mapping {y: cost}")
        named = [
            (f"the row of {inputs.name(x)!r} in the cost matrix", r) for x, r in enumerate(rows)
        ]
        cost = [by_value(outputs, row, what, "entry") for what, row in named]
    return _own_costs(cost, inputs, outputs)


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
    _check_ordered(inputs, f"the cost {name}, unlike the cost hamming or a cost matrix,")
    step, xs, ys = places(inputs, outputs)
    power = 2 if name == "squared" else 1
    return Costs(name, np.abs(xs[:, None] - ys[None, :]) ** power, step**power)


def _own_costs(rows: Any, inputs: Support, outputs: Support) -> Costs:
    try:
        given = [list(row) for row in rows]
    except TypeError:
        raise InputError(
            f"a cost is {listed(NAMED)}, a mapping {{x: {{y: cost}}}} or rows of numbers, but "
            f"{rows!r} was given"
        ) from None
    if len(given) != inputs.size or any(len(row) != outputs.size for row in given):
        raise InputError(
            f"the cost matrix must have {inputs.size} rows of {outputs.size} numbers, one for "
            "each value and output"
        )
    matrix = [[parse_number(c, "an entry of the cost matrix") for c in row] for row in given]
    least = min(map(min, matrix))
    if least < 0:
        raise InputError(f"the cost matrix has the negative entry {show(least)}")
    common = math.lcm(*(c.denominator for row in matrix for c in row))
    whole = np.array([[int(c * common) for c in row] for row in matrix], dtype=object)
    return Costs("own", whole, Fraction(1, common))


def by_value(
    support: Support, given: Mapping[Any, Any], what: str, entry: str, strict: bool = False
) -> list[Any]:
    """Return the entries of a mapping by values, in the order of a support.

    Numbers are found by their value ("1", 1 and 1.0 are the same), levels by their name. Entries
    of values that are not in the support are refused where ``strict``.
    """
    names = [support.name(k) for k in range(support.size)]
    keys = dict(zip(support.values if isinstance(support, Lattice) else names, names, strict=True))
    found: dict[Any, Any] = {}
    others = []
    for key, value in given.items():
        known = (
            parse_number(key, f"a value in {what}")
            if isinstance(support, Lattice)
            else text_of(key)
        )
        if known in found:
            raise InputError(f"{what} has the {entry} of {keys[known]!r} twice")
        if known in keys:
            found[known] = value
        else:
            others.append(text_of(key))
    missing = [name for key, name in keys.items() if key not in found]
    if missing:
        near = did_you_mean(missing[0], others)
        raise InputError(f"{what} has no {entry} for {listed(missing)}{near}")
    if strict and others:
        near = did_you_mean(others[0], names)
        raise InputError(
            f"{what} has the {entry} of {others[0]!r}, which is none of the values{near}"
        )
    return [found[key] for key in keys]


def read_weights(scenario: Scenario, weights: Any) -> tuple[Fraction, ...]:
    """Return mu(x): how much each value counts in the expected cost; the sum is 1.

    By default the pooled counts of the secrets in the pairs, over all adversaries; the mean of
    their P_s where there are no counts.
    """
    if isinstance(weights, Mapping):
        weights = by_value(scenario.support, weights, "the mapping of weights", "weight", True)
    if weights is None:
        weights = [Fraction(0)] * scenario.support.size
        counted = all(prior.from_rows for prior in scenario.priors)
        for prior in scenario.priors:
            for row in map(prior.row, scenario.protected):
                unit = Fraction(1, 1 if counted else prior.totals[row])
                counts = prior.counts[row].tolist()
                weights = [w + int(c) * unit for w, c in zip(weights, counts, strict=True)]
    whole = whole_weights(weights, scenario.support.size)
    return tuple(Fraction(w, sum(whole)) for w in whole)


def output_alphabet(support: Support, outputs: object) -> Support:
    """Return the outputs: the values, and K points between every two neighbours for "fine:K"."""
    if outputs is None:
        return support
    parts = _points_between(outputs) + 1
    _check_ordered(support, "a finer output")
    lattice = lattice_of(support)
    index = lattice.index.tolist()
    if (lattice.size - 1) * parts > _MOST_OUTPUTS or index[-1] * parts > MAX_CELLS:
        raise InputError(
            f"{parts - 1} points between neighbours make more than {_MOST_OUTPUTS} outputs, or a "
            "lattice of more than 2**53 cells; ask for fewer, or give a coarser step (--step)"
        )
    fine = [a * parts + (b - a) * k for a, b in pairwise(index) for k in range(parts)]
    units = [*fine, index[-1] * parts]
    shared = math.gcd(parts, *units)
    units = [unit // shared for unit in units]
    return _distinct(lattice.step * shared / parts, lattice.origin * parts // shared, units)


def widened(outputs: Support, factor: Fraction) -> Support:
    """Return outputs with points at or beyond c -+ (d / 2) * factor added (theory, section 4).

    c is the midpoint, d the diameter of the outputs.
    """
    lattice = lattice_of(outputs)
    low, high = lattice.value(0), lattice.value(lattice.size - 1)
    middle, reach = (low + high) / 2, (high - low) / 2 * factor
    below = (middle - reach) // lattice.step
    above = -((-(middle + reach)) // lattice.step)
    if above - below > MAX_CELLS:
        raise InputError(
            f"an unbiased channel needs outputs as far as {show_short(reach)} from the middle of "
            "the values, more than 2**53 steps; a larger epsilon or a coarser step (--step) helps"
        )
    units = sorted({int(below), int(above), *(lattice.origin + k for k in lattice.index.tolist())})
    return _distinct(lattice.step, units[0], [unit - units[0] for unit in units])


def _distinct(step: Fraction, origin: int, units: list[int]) -> Lattice:
    """Return a lattice of outputs, and refuse those that would be published as the same double.

    Multiples of a step with a finite decimal are published as exact decimals, all others as the
    nearest doubles.
    """
    made = Lattice(step, origin, np.array(units, dtype=np.int64))
    finite = pow(10, step.denominator.bit_length(), step.denominator) == 0
    if not finite and any(float(low) == float(high) for low, high in pairwise(made.values)):
        raise InputError(
            f"the outputs would be multiples of {show(step)}, which is no finite decimal, and some "
            "of them the same double; ask for a number K of points for which K + 1 has no other "
            "prime factors than 2 and 5, or for fewer"
        )
    return made


def _points_between(outputs: object) -> int:
    """Read K, or "fine:K"."""
    number = outputs
    if isinstance(outputs, str):
        match = re.fullmatch(r"fine\s*:\s*(\d{1,300})", outputs.strip().lower(), re.ASCII)
        number = int(match[1]) if match else None
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
        raise InputError(
            "finer outputs need a whole number K of points between neighbours, at least 1, or the "
            f"text 'fine:K', but {outputs!r} was given"
        )
    return int(number)
