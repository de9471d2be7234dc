# SPDX-License-Identifier: Apache-2.0
"""The channel that is best for estimates: it publishes sets of values, or numbers for a mean.

The search is in doubles; what comes out of it is made a private channel of whole numbers. A label,
a value drawn from the set that is published, costs neither privacy nor accuracy of estimates.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from pufferfish.calibration.channel import cone_of, exponential_below, usable
from pufferfish.calibration.channel_repair import exact_columns, narrower
from pufferfish.calibration.channel_task import (
    Sets,
    by_value,
    read_conditions,
    read_matrix,
    read_weights,
)
from pufferfish.calibration.columns import MOST_LEVELS, best_of_region, rays_of, too_many
from pufferfish.calibration.design import Design, labelled, solve
from pufferfish.calibration.root import Proposal
from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import CountArray, FloatArray, float_down, precision
from pufferfish.plans.guarantee import Distortion
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support, lattice_of, set_name

#: What a channel can be best for by name, beside ``kept``: the costs of single values.
STATISTICS = ("frequencies", "mean", "cdf", "both")
KEPT = "kept"
#: The scales of the parts of "both" are searched so near.
_ROUGHLY = 0.02
#: Labels are drawn with shares of so many bits.
_LABEL_BITS = 48
#: Numbers are refined so often; their bias is below 1 / this, as a share of the range.
_REFINED, _FINE = 4, 10**10
#: A proven bound is stated lower by this share, for the rounding of doubles, and by so many times
#: what the objective was off in doubles.
_ROUNDING, _UNSURE = 1e-8, 4
#: Bits of what is computed of the channel itself, and of the entries of J.
_BITS, _FIXED = 192, 256
_NOT_TIGHT = "the bound of the objective is that of the priors themselves, not of their regions"


def best_for(
    scenario: Scenario, epsilon: Fraction, statistics: object = "frequencies", *,
    min_keep: object = None, weights: Sequence[object] | Mapping[Any, object] | None = None,
    beside: Sets | None = None,
) -> Proposal:  # fmt: skip
    """Return the private channel under which unbiased estimates have the least variance.

    Options are those of :func:`pufferfish.calibrate`; ``beside``: what previous releases make of
    the priors. With the ``statistics`` as a matrix F, a row for each value (of ``both``: each over
    its own least noise), the objective tr(D J^-1), D = F F^T, is N times their variance, plus what
    the sample itself varies.
    """
    support, (used, notes) = scenario.support, usable(epsilon)
    if support.size > MOST_LEVELS:
        raise too_many()
    mu = _frequencies(scenario, weights)
    name, parts, centre, unit = _statistics(support, statistics, mu)
    conditions = read_conditions(support, False, False, min_keep)
    if name == "mean" and conditions.min_keep is not None:
        raise InputError("min_keep is about labels, but best_for='mean' publishes numbers alone")
    masses = np.array([float(weight) for weight in mu])
    cone, points = (cone_of(each, exponential_below(used), beside) for each in (
        scenario, scenario.with_rules([None] * len(scenario.priors))
    ))  # fmt: skip
    rays = rays_of(narrower(points, Fraction(1, 2**40)))
    combined, scale = _combined(parts, rays, masses)
    design, constant = Design(rays, masses, combined), (centre * scale) ** 2
    found = solve(design)
    least = found.bound
    if scenario.has_region:
        notes = (_NOT_TIGHT, *notes)
        # Their columns are a solver's, and less exact.
        design, found = best_of_region(narrower(cone, Fraction(1, 2**20)), design)
    by_label, labels = None, None
    if name != "mean":
        found, by_label = labelled(design, found, conditions.min_keep)
    columns = exact_columns(cone, found.weights, found.rays)
    if by_label is None:
        made = kept = _numbers(support, columns, mu)
    else:
        made, labels = _sets(support, columns, by_label, int(masses.argmax()))
        kept = made.then(labels)
        if min(kept.probability(x, x) for x in range(support.size)) < (conditions.min_keep or 0):
            raise PufferfishError("no channel was found that meets min_keep; ask for a little less")
    with precision(_BITS):
        solved = _solved(columns, mu, design.given).entries()
        exact = sum(map(operator.mul, solved, design.given.ravel().tolist()))  # tr(D J^-1)
        objective = float(exact) * (1 + 1e-12)
    bound: float | None = None
    if used == epsilon:
        least = least if scenario.has_region else found.bound
        lost = _ROUNDING + _UNSURE * abs(found.objective / objective - 1)
        bound = max(0.0, min(least * (1 - lost), objective))
    gap = math.inf if bound is None else float((Fraction(objective) - Fraction(bound)) * unit**2)
    bound = bound and float_down(Fraction(bound + constant * (1 - _ROUNDING)) * unit**2)
    cost = Fraction(objective + constant * (1 + 1e-12)) * unit**2
    return Proposal(
        made, notes=notes, labels=labels, cost=cost, weights=mu,
        distortion=Distortion.of(kept, cost, name, mu, gap, conditions.names, bound),
    )  # fmt: skip


def _statistics(
    support: Support, given: Any, mu: Sequence[Fraction]
) -> tuple[str, list[FloatArray], float, Fraction]:
    """Return the name of what is asked for, and its matrices, with a row for each value.

    Values are taken from their mean, exactly, which comes then: J mu = 1, so that a shift by c
    changes x^T J^-1 x by c^2 alone. At last the unit of all of it.
    """
    if not isinstance(given, str):
        matrix, unit = _matrix(support, given)
        return "own statistics", [matrix], 0.0, unit
    name = given.strip().lower()
    if name not in STATISTICS:
        known = (KEPT, *STATISTICS)
        raise InputError(
            f"a channel cannot be best for {given!r}{did_you_mean(name, known)}; it can be best "
            f"for {listed(known)}, or for the statistics of a matrix"
        )
    each, centre = np.eye(support.size), Fraction(0)
    parts = [each]
    if name != "frequencies":
        lattice = lattice_of(support, f"best_for={name!r}, unlike 'frequencies',")
        if name == "cdf":
            parts = [np.triu(np.ones_like(each))]
        elif support.size > 1:  # of one value the mean is known
            centre = sum(map(operator.mul, mu, lattice.values), Fraction(0))
            mean = np.array([[float(value - centre)] for value in lattice.values])
            parts = [mean] if name == "mean" else [each, mean]
    return name, parts, float(centre), Fraction(1)


def _matrix(support: Support, given: Any) -> tuple[FloatArray, Fraction]:
    """Return the matrix of a mapping by values, or of rows of numbers, over its largest entry."""
    if isinstance(given, Mapping):
        given = by_value(support, given, "the matrix of statistics", "row")
    read = read_matrix(support, given, f"best_for is {listed((KEPT, *STATISTICS))}, or a matrix of")
    largest = max(abs(v) for row in read for v in row)
    if not largest:
        raise InputError("the matrix of statistics is all 0")
    return np.array([[float(v / largest) for v in row] for row in read]), largest


def _combined(
    parts: Sequence[FloatArray], rays: FloatArray, mu: FloatArray
) -> tuple[FloatArray, float]:
    """Return F, of several parts each over its least noise, if any; and the last one's factor."""
    if len(parts) == 1:
        return parts[0], 1.0
    factors = []
    for part in parts:
        design, sampling = Design(rays, mu, part), float((part**2).sum(axis=1) @ mu)
        least = solve(design, _ROUGHLY).objective
        needed = least - sampling > 1e-6 * (least - design.shift)
        factors.append(1 / math.sqrt(least - sampling) if needed else 1.0)
    return np.hstack([part * own for part, own in zip(parts, factors, strict=True)]), factors[-1]


def _frequencies(scenario: Scenario, weights: Any) -> tuple[Fraction, ...]:
    """Return mu > 0: where a count is 0, half a row counts; without counts half the least."""
    whole = read_weights(scenario, weights)
    counted = weights is None and all(prior.from_rows for prior in scenario.priors)
    half = Fraction(1 if counted else min(filter(None, whole)), 2)
    masses = [weight or half for weight in whole]
    return tuple(Fraction(mass) / sum(masses) for mass in masses)


def _shares(columns: CountArray, mu: Sequence[Fraction]) -> tuple[CountArray, int]:
    """Return q as whole numbers, and what they are over."""
    common = math.lcm(*(weight.denominator for weight in mu))
    return np.array([int(weight * common) for weight in mu], dtype=object) @ columns, common


def _solved(columns: CountArray, mu: Sequence[Fraction], right: FloatArray) -> Any:
    """Return J^-1 times a matrix in balls: for a small epsilon doubles cannot tell J from 1."""
    from flint import arb_mat  # slow to import

    shares, common = _shares(columns, mu)
    j = np.zeros((len(mu), len(mu)), dtype=object)
    for m, share in zip(columns.T, shares * columns[0].sum(), strict=True):
        at = np.flatnonzero(m)
        j[np.ix_(at, at)] += (np.outer(m[at], m[at]) * common << _FIXED) // share
    wanted = arb_mat(right.tolist()) * (1 << _FIXED)
    try:
        return arb_mat(j.tolist()).solve(wanted)
    except ZeroDivisionError:  # what is asked for lies in the range of J, but for its rounding
        j += np.eye(len(mu), dtype=object) * (1 << _FIXED - 72)
        return arb_mat(j.tolist()).solve(wanted)


def _sets(
    support: Support, columns: CountArray, by_label: FloatArray, rest: int
) -> tuple[Channel, Channel]:
    """Return the channel to sets of values, and that from sets to labels.

    Of different outputs with the same set the second is called ``{a, b} 2``. The label of the last
    output, if it has no share of labels, is ``rest``.
    """
    members = [tuple(np.flatnonzero(column).tolist()) for column in columns.T]
    order = sorted(range(len(members)), key=lambda y: (len(members[y]), members[y], -y))
    names: dict[str, None] = {}
    for y in order:
        name = set_name(support, members[y])
        numbered = (name if k == 1 else f"{name} {k}" for k in count(1))
        names[next(each for each in numbered if each not in names)] = None
    sets = Levels(tuple(names))
    shares = np.vstack([by_label / by_label.sum(axis=1)[:, None], np.eye(support.size)[rest]])
    labels = np.rint(shares[order] * 2.0**_LABEL_BITS).astype(np.int64).astype(object)
    return Channel(support, sets, columns[:, order]), Channel(sets, support, labels)


def _numbers(support: Support, columns: CountArray, mu: Sequence[Fraction]) -> Channel:
    """Return the channel to numbers whose means are the values: x^T J^-1 m / q, finely rounded."""
    lattice, n = lattice_of(support), support.size
    shares, common = _shares(columns, mu)
    weighted = (columns * common / shares).astype(float)
    with precision(_BITS):
        back = np.array(_solved(columns, mu, weighted).entries(), dtype=float).reshape(n, -1)
    # In parts of a step, from the first value, so that the numbers are exact where it is large.
    places = np.array([int(k) for k in lattice.index], dtype=object)
    span, parts = int(places[-1]) or 1, 1
    reach = float(np.abs(places.astype(float) @ back).max())
    # Of them 2^53 fit a support, and what is published 64 bits.
    widest = max(20 * reach, (abs(lattice.origin) + span) / 16)
    while parts * span < _FINE and widest * parts <= MAX_CELLS // 2:
        parts *= 10
    exact: CountArray = np.zeros(columns.shape[1], dtype=object)
    missing, allowed = places * parts, max(1, Fraction(span * parts, _FINE))
    for _ in range(_REFINED):
        exact = exact + [round(v) for v in (missing.astype(float) @ back).tolist()]
        missing = places * parts - (columns @ exact) / Fraction(int(columns[0].sum()))
        if max(abs(missing)) <= allowed:
            break
    if max(abs(exact)) > MAX_CELLS // 2 or max(abs(missing)) > allowed:
        raise InputError(
            "the numbers that average to the mean go beyond what doubles hold; take a larger "
            "epsilon, a coarser step (--step), or best_for='both' (--best-for both)"
        )
    made, at = np.unique(exact.astype(np.int64), return_inverse=True)
    merged: CountArray = np.zeros((len(columns), len(made)), dtype=object)
    np.add.at(merged.T, at, columns.T)
    first = int(made[0])
    outputs = Lattice(lattice.step / parts, lattice.origin * parts + first, made - first)
    return Channel(support, outputs, merged)
