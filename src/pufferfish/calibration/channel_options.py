# SPDX-License-Identifier: Apache-2.0
"""What is asked of a channel: its cost, its outputs, the weights of the values, side conditions."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms.channel import places, same_places
from pufferfish.numbers import parse_number, show, show_short, text_of
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support, lattice_of

#: Costs that are known by name.
NAMED = ("hamming", "squared", "absolute")
#: The largest cost is less than this times the least one above 0.
MOST_SPAN = 10**9
#: Finer alphabets than this make programs that are refused anyway.
_MOST_OUTPUTS = 100_000
_FINE_OUTPUTS = re.compile(r"fine\s*:\s*(\d{1,300})", re.ASCII)


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


def read_conditions(
    support: Support, invariant: bool, unbiased: bool, min_keep: object
) -> Conditions:
    """Return the conditions that a user asked for."""
    keep = None if min_keep is None else parse_number(min_keep, "min_keep")
    if keep is not None and not 0 <= keep <= 1:
        raise InputError(f"min_keep must be between 0 and 1, but {show(keep)} was given")
    if unbiased and isinstance(support, Levels) and not support.ordered:
        raise InputError(
            "unbiased needs numbers or levels with an order: other levels have no expectation"
        )
    return Conditions(bool(invariant), bool(unbiased), keep)


def read_costs(inputs: Support, outputs: Support, cost: object) -> Costs:
    """Return the costs of a name, a mapping ``{x: {y: cost}}`` or a matrix.

    Without one they are squared, or hamming for levels without an order.
    """
    if cost is None:
        ordered = isinstance(inputs, Lattice) or inputs.ordered
        cost = "squared" if ordered else "hamming"
    if isinstance(cost, str):
        return _named_costs(inputs, outputs, cost.strip().lower())
    if not isinstance(cost, Mapping):
        return _own_costs(cost, inputs, outputs)
    entries = []
    for x, row in enumerate(by_value(inputs, cost, "the cost matrix", "row")):
        what = f"the row of {inputs.name(x)!r} in the cost matrix"
        if not isinstance(row, Mapping):
            raise InputError(f"{what} must be a mapping")
        entries.append(by_value(outputs, row, what, "entry"))
    return _own_costs(entries, inputs, outputs)


def check_span(costs: Costs) -> None:
    """Refuse costs of such different sizes that the solver's doubles cannot tell the small ones."""
    positive = [c for row in costs.whole.tolist() for c in row if c]
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
        for x, y in enumerate(same_places(inputs, outputs)):
            if y is not None:
                whole[x, y] = 0
        return Costs(name, whole, Fraction(1))
    if isinstance(inputs, Levels) and not inputs.ordered:
        raise InputError(
            f"the cost {name} needs numbers or levels with an order, but the levels "
            f"{listed(inputs.names)} have none; the cost hamming and a cost matrix of your own "
            "do not need one, or state an order with --order V1,V2,... (order=[...])"
        )
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
    matrix = [
        [parse_number(value, "an entry of the cost matrix") for value in row] for row in given
    ]
    least = min(min(row) for row in matrix)
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
    names: list[Any] = [support.name(k) for k in range(support.size)]
    keys = list(support.values) if isinstance(support, Lattice) else names
    place = {key: k for k, key in enumerate(keys)}
    found: dict[int, Any] = {}
    others: list[str] = []
    for key, value in given.items():
        text = text_of(key)
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
        every = f"; it needs one for each of {listed(names)}" if found else ""
        raise InputError(
            f"{what} has no {entry} for {listed(missing)}{did_you_mean(missing[0], others)}{every}"
        )
    if strict and others:
        raise InputError(
            f"{what} has the {entry} of {others[0]!r}, which is none of the values"
            f"{did_you_mean(others[0], names)}"
        )
    return [found[k] for k in range(support.size)]


def read_weights(
    scenario: Scenario, weights: Sequence[object] | Mapping[Any, object] | None
) -> tuple[Fraction, ...]:
    """Return mu(x): how much each value counts in the expected cost; the sum is 1.

    By default the pooled counts of the secrets in the pairs, over all adversaries; the mean of
    their P_s where there are no counts.
    """
    n = scenario.support.size
    if weights is None:
        exact = [Fraction(0)] * n
        counted = all(prior.from_rows for prior in scenario.priors)
        for prior in scenario.priors:
            for row in map(prior.row, scenario.protected):
                unit = Fraction(1, 1 if counted else prior.totals[row])
                for k, count in enumerate(prior.counts[row].tolist()):
                    exact[k] += int(count) * unit
    else:
        if isinstance(weights, Mapping):
            what = "the mapping of weights"
            weights = by_value(scenario.support, weights, what, "weight", strict=True)
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
    return tuple(w / total for w in exact)


def output_alphabet(support: Support, outputs: object) -> Support:
    """Return the outputs: the values, and K points between every two neighbours for "fine:K"."""
    if outputs is None:
        return support
    between = _points_between(outputs)
    if isinstance(support, Levels) and not support.ordered:
        raise InputError(
            "finer outputs need numbers or levels with an order, but the levels "
            f"{listed(support.names)} have none"
        )
    lattice = lattice_of(support)
    if (lattice.size - 1) * (between + 1) >= _MOST_OUTPUTS:
        raise InputError(
            f"{show(Fraction(between))} points between neighbours make more than {_MOST_OUTPUTS:,} "
            "outputs; ask for fewer"
        )
    index = lattice.index.tolist()
    fine = {
        a + Fraction((b - a) * k, between + 1)
        for a, b in pairwise(index)
        for k in range(between + 1)
    }
    fine.add(Fraction(index[-1]))
    denominator = math.lcm(*(f.denominator for f in fine))
    units = sorted(int(f * denominator) for f in fine)
    if units[-1] > MAX_CELLS:
        raise InputError(
            f"{between} points between neighbours need a lattice of more than 2**53 cells; ask "
            "for fewer, or give a coarser step (--step)"
        )
    return _distinct(lattice.step / denominator, lattice.origin * denominator, units)


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
    units = sorted({int(below), int(above), *(lattice.origin + int(k) for k in lattice.index)})
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
    hint = ""
    number = outputs
    if isinstance(outputs, str):
        match = _FINE_OUTPUTS.fullmatch(outputs.strip().lower())
        digits = re.search(r"[1-9]\d*", outputs)
        number = int(match[1]) if match else None
        hint = f" (did you mean 'fine:{digits[0]}'?)" if digits else ""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
        raise InputError(
            "finer outputs need a whole number K of points between neighbours, at least 1, or the "
            f"text 'fine:K', but {outputs!r} was given{hint}"
        )
    return int(number)
