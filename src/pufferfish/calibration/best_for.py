# SPDX-License-Identifier: Apache-2.0
"""The channel that is best for estimates: it publishes sets of values, or numbers for a mean.

The search is in doubles; what comes out of it is made a private channel of whole numbers. A label,
a value drawn from the set that is published, costs neither privacy nor accuracy of estimates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.calibration.channel import LARGEST_EPSILON, LEAST_EPSILON, exponential_below
from pufferfish.calibration.channel_options import (
    by_value,
    read_conditions,
    read_weights,
)
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import (
    MOST_NEWTON,
    Design,
    Solution,
    pruned,
    solve,
    solve_labelled,
)
from pufferfish.calibration.exact_columns import exact_columns
from pufferfish.calibration.proposal import Proposal
from pufferfish.calibration.rays import Rays, rays_of
from pufferfish.calibration.region_columns import best_of_region, columns_of_region
from pufferfish.calibration.solver import LinearProgram
from pufferfish.calibration.solver import solve as solve_program
from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import CountArray, FloatArray, parse_number, show
from pufferfish.plans.distortion import Distortion
from pufferfish.priors.scenario import Scenario
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support, lattice_of, set_name

#: What a channel can be best for by name, beside ``kept``: the costs of single values.
STATISTICS = ("frequencies", "mean", "cdf", "both")
KEPT = "kept"
#: The scales of the parts of "both" are searched so near.
_ROUGHLY = 0.02
#: To keep more values counts so much as the least chance to be kept.
_RATHER = 1e-3
#: Labels are drawn with shares of so many bits.
_LABEL_BITS = 48
#: Numbers are refined so often.
_REFINED = 4
_LITTLE_LESS = "no channel was found that meets min_keep; ask for a little less"
_NOT_TIGHT = (
    "the bound of the objective is that of the priors themselves; what is private for all priors "
    "of a region may not come near it"
)
#: A proven bound is stated lower by this share, for the rounding of doubles.
_ROUNDING = 1e-8
#: Outputs of several levels up to which a program decides on labels.
_MOST_LABELLED = 3000
#: The bias of a published number, as a share of the range, is below it.
_BIAS = Fraction(1, 10**10)


def best_for(
    scenario: Scenario,
    epsilon: Fraction,
    statistics: object = "frequencies",
    *,
    min_keep: object = None,
    weights: Sequence[object] | Mapping[Any, object] | None = None,
) -> Proposal:
    """Return the private channel under which unbiased estimates have the least variance.

    ``statistics`` is ``frequencies``, ``mean``, ``cdf``, ``both`` (frequencies and mean, each over
    its own least noise) or a matrix F with a row for each value; the objective tr(D J^-1), with
    D = F F^T, is N times their variance, plus what the sample itself varies. ``min_keep``: a label
    is the value itself at least that often. ``weights`` are how frequent the values are, by default
    the pooled counts of the secrets in the pairs.
    """
    if epsilon < LEAST_EPSILON:
        raise InputError(f"a channel needs epsilon of at least 1e-6, but {show(epsilon)} was given")
    support = scenario.support
    read = _Statistics.of(support, statistics)
    conditions = read_conditions(support, False, False, min_keep)
    if read.name == "mean" and conditions.min_keep is not None:
        raise InputError("min_keep is about labels, but best_for='mean' publishes numbers alone")
    used = min(epsilon, LARGEST_EPSILON)
    cone = _cone_of(scenario, exponential_below(used))
    mu = _frequencies(scenario, weights)
    masses = np.array([float(weight) for weight in mu])
    rays = columns_of_region(cone) if scenario.has_region else rays_of(cone)
    chosen = read.matrix(rays, masses)
    notes, labels = [], None
    if scenario.has_region:
        solution = best_of_region(cone, rays, masses, chosen)
        least = _bound_of_points(scenario, cone.bound, masses, chosen)
        notes.append(_NOT_TIGHT)
    else:
        solution = solve(Design(rays, masses, chosen))
        least = solution.bound
    if read.name != "mean":
        solution, labels = _labelled(solution, rays, masses, chosen, conditions.min_keep)
        least = least if scenario.has_region else solution.bound
    columns = exact_columns(cone, solution, support.size)
    objective = _objective(columns, masses, chosen) * (1 + 1e-12)
    bound = None
    if used < epsilon:
        notes.append(
            f"the channel was computed for epsilon {show(used)}, and is private for larger ones"
        )
    elif least is not None:
        bound = min(least * (1 - _ROUNDING), objective)
    if labels is None:
        made, drawn = _numbers(support, columns, masses, chosen[:, 0]), None
    else:
        made, drawn = _sets(support, columns, solution.rays, labels, int(masses.argmax()))
        _check_kept(made, drawn, conditions.min_keep)
    gap = math.inf if bound is None else objective - bound
    cost = Fraction(objective)
    return Proposal(
        made, notes=tuple(notes), labels=drawn, cost=cost, weights=mu,
        distortion=Distortion.of(
            made, cost, read.name, mu, gap, conditions.names, labels=drawn, bound=bound
        ),
    )  # fmt: skip


def forecast(
    scenario: Scenario, epsilon: Fraction, statistics: object
) -> tuple[FloatArray, FloatArray]:
    """Return the chances of a channel that is nearly best for statistics, and the weights mu.

    In doubles and without proof: it only tells what errors to expect.
    """
    masses = np.array([float(weight) for weight in _frequencies(scenario, None)])
    rays = rays_of(_cone_of(scenario, exponential_below(min(epsilon, LARGEST_EPSILON))))
    chosen = _Statistics.of(scenario.support, statistics).matrix(rays, masses, finish=False)
    found = solve(Design(rays, masses, chosen), finish=False)
    return (found.rays.dense(len(masses)) * found.weights[:, None]).T, masses


# --- What is asked for --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Statistics:
    """Linear statistics: a name, and a matrix with a row for each value; of both, two of them."""

    name: str
    parts: tuple[FloatArray, ...]

    @classmethod
    def of(cls, support: Support, given: Any) -> "_Statistics":
        """Return what a name or a matrix stands for."""
        size = support.size
        if not isinstance(given, str):
            return cls("own statistics", (_matrix(support, given),))
        name = given.strip().lower()
        if name not in STATISTICS:
            known = (KEPT, *STATISTICS)
            raise InputError(
                f"a channel cannot be best for {given!r}{did_you_mean(name, known)}; it can be "
                f"best for {listed(known)}, or for the statistics of a matrix"
            )
        if name != "frequencies":
            lattice_of(support, f"best_for={name!r}, unlike 'frequencies',")
        if name == "cdf":
            return cls(name, (np.triu(np.ones((size, size))),))
        parts = [np.eye(size)] if name in ("frequencies", "both") else []
        if name in ("mean", "both"):
            parts.append(np.array([[float(value)] for value in lattice_of(support).values]))
        return cls(name, tuple(parts))

    def matrix(self, rays: Rays, mu: FloatArray, finish: bool = True) -> FloatArray:
        """Return F; of several parts each over the least noise that it can have."""
        if len(self.parts) == 1:
            return self.parts[0]
        scaled = []
        for part in self.parts:
            design, sampling = Design(rays, mu, part), float((part**2).sum(axis=1) @ mu)
            least = solve(design, _ROUGHLY, finish).objective
            noise = max(least - sampling, 1e-6 * (least - design.shift), 1e-300)
            scaled.append(part / math.sqrt(noise))
        return np.hstack(scaled)


def _matrix(support: Support, given: Any) -> FloatArray:
    """Return the matrix of a mapping by values, or of rows of numbers."""
    if isinstance(given, Mapping):
        given = by_value(support, given, "the matrix of statistics", "row")
    try:
        rows = [list(row) if np.ndim(row) else [row] for row in given]
    except TypeError:
        raise InputError(
            f"best_for is {listed((KEPT, *STATISTICS))}, or a matrix with a row of numbers for "
            f"each value, but {given!r} was given"
        ) from None
    widths = {len(row) for row in rows}
    if len(rows) != support.size or len(widths) != 1 or 0 in widths:
        raise InputError(
            f"the matrix of statistics must have {support.size} rows, one for each value, with as "
            "many numbers each"
        )
    read = [[float(parse_number(v, "an entry of the matrix")) for v in row] for row in rows]
    matrix = np.array(read)
    if not matrix.any():
        raise InputError("the matrix of statistics is all 0")
    return matrix


def _frequencies(scenario: Scenario, weights: Any) -> tuple[Fraction, ...]:
    """Return mu > 0: where a count is 0, half a row counts; without counts half the least."""
    whole = read_weights(scenario, weights)
    counted = weights is None and all(prior.from_rows for prior in scenario.priors)
    half = Fraction(1 if counted else min(filter(None, whole)), 2)
    masses = [weight or half for weight in whole]
    return tuple(Fraction(mass) / sum(masses) for mass in masses)


def _bound_of_points(
    scenario: Scenario, bound: Fraction, mu: FloatArray, statistics: FloatArray
) -> float | None:
    """Return what no channel goes below that is private for the priors themselves, if known."""
    points = scenario.with_rules([None] * len(scenario.priors))
    try:
        return solve(Design(rays_of(_cone_of(points, bound)), mu, statistics)).bound
    except InputError:
        return None


def _cone_of(scenario: Scenario, bound: Fraction) -> Cone:
    """Return the private columns of a scenario."""
    at = {secret: k for k, secret in enumerate(scenario.protected)}
    pairs = [(at[first], at[second]) for first, second in scenario.pairs]
    return Cone(scenario.sets(), (*pairs, *((j, i) for i, j in pairs)), bound)


# --- Labels -------------------------------------------------------------------------------------


def _labelled(
    found: Solution, rays: Rays, mu: FloatArray, chosen: FloatArray, least: Fraction | None
) -> tuple[Solution, FloatArray]:
    """Return a solution whose labels keep every value often enough, and the share of each label."""
    labels = _labels(found.rays, mu, found.weights)
    kept = _kept(found.rays, found.weights[:, None] * labels, len(mu)).min()
    if least is None or kept >= float(least) * (1 + 1e-9):
        return found, labels
    amounts = _labels(rays, mu)
    most = float(_kept(rays, amounts, len(mu)).min()) * (1 - 1e-9)
    if most < 1 - 1e-8 and float(least) > most * (1 - 1e-8):
        raise InputError(
            f"no channel that is private labels every value as itself with the chance "
            f"{show(least)}; at most min_keep={math.floor(most * 10**4) / 10**4} is possible"
        )
    wanted = min(float(least) * (1 + 1e-7), most)
    rows, places = np.nonzero(rays.value)
    if len(rows) + len(mu) <= MOST_NEWTON:
        copies, names = rays.take(rows), rays.index[rows, places]
        start = amounts[rows, places] + 1e-3
        w, bound = solve_labelled(Design(copies, mu, chosen), start, names, wanted)
        weights = np.asarray(np.bincount(rows, w, len(rays)), float)
        better = pruned(Design(rays, mu, chosen), weights, max(bound, found.bound))
        return better, _labels(better.rays, mu, better.weights)
    # A mixture of both is private, and keeps what lies between.
    free = found.weights[:, None] * labels
    low, high = _kept(found.rays, free, len(mu)), _kept(rays, amounts, len(mu))
    share = float(((wanted - low) / (high - low))[low < wanted].max())
    free = np.pad(free, ((0, 0), (0, rays.index.shape[1] - free.shape[1])))
    amounts = np.concatenate([share * amounts, (1 - share) * free])
    used = np.flatnonzero(amounts.any(axis=1))
    design, amounts = Design(rays.joined(found.rays).take(used), mu, chosen), amounts[used]
    balanced = design.balanced(amounts.sum(axis=1))
    if balanced is None:
        raise PufferfishError(_LITTLE_LESS)
    mixed = Solution(design.rays, balanced, design.objective(balanced), found.bound)
    return mixed, amounts / amounts.sum(axis=1, keepdims=True)


def _kept(rays: Rays, amounts: FloatArray, size: int) -> FloatArray:
    """Return how often each level is labelled as itself, with weights by ray and label."""
    return np.asarray(np.bincount(rays.index.ravel(), (rays.value * amounts).ravel(), size), float)


def _labels(rays: Rays, mu: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return labels that keep every value as often as can be, and then the most values.

    With the weights of an output given, the share of each of its labels; without, the best weights
    by ray and label. A linear program, but for many outputs: each label is the likeliest value.
    """
    rows, places = np.nonzero(rays.value)
    if weights is not None and len(rows) > _MOST_LABELLED:
        return np.asarray(np.eye(rays.index.shape[1])[rays.value.argmax(axis=1)])
    size, values, level = len(mu), rays.value[rows, places], rays.index[rows, places]
    # Variables between 0 and 1: shares of an output, or weights over the most they can be.
    if weights is None:
        unit = 1 / rays.value.max(axis=1)[rows]
        sums = rays.dense(size)[rows].T * unit
    else:
        unit = weights[rows]
        sums = (rows == np.arange(len(rays))[:, None]).astype(float)
    kept = (level == np.arange(size)[:, None]) * values * unit
    # The last variable is the least chance of all levels.
    matrix = np.block([[sums, np.zeros((len(sums), 1))], [-kept, np.ones((size, 1))]])
    filled = matrix != 0
    program = LinearProgram(
        cost=np.append(-_RATHER * (mu @ kept), -1.0),
        least=np.zeros(len(rows) + 1),
        start=np.append(0, filled.sum(axis=1).cumsum()),
        index=np.nonzero(filled)[1],
        value=matrix[filled],
        end=np.append(np.ones(len(sums)), np.zeros(size)),
        equal=np.arange(len(matrix)) < len(sums),
    )
    chosen = solve_program(program).values[:-1].clip(0, 1)
    amounts = np.zeros(rays.value.shape)
    amounts[rows, places] = chosen * (unit if weights is None else 1.0)
    if weights is not None:
        amounts /= amounts.sum(axis=1, keepdims=True)
    return amounts


def _check_kept(channel: Channel, labels: Channel, least: Fraction | None) -> None:
    """Refuse labels that keep a value less often than was asked for, exactly."""
    if least is None:
        return
    both = channel.then(labels)
    if min(both.probability(x, x) for x in range(both.inputs.size)) < least:
        raise PufferfishError(_LITTLE_LESS)


# --- What is published --------------------------------------------------------------------------


def _objective(columns: CountArray, mu: FloatArray, statistics: FloatArray) -> float:
    """Return tr(D J^-1) of a channel."""
    m = (columns / columns[0].sum()).astype(float)
    information = (m / (mu @ m)) @ m.T
    return float((statistics * np.linalg.solve(information, statistics)).sum())


def _sets(
    support: Support, columns: CountArray, rays: Rays, shares: FloatArray, rest: int
) -> tuple[Channel, Channel]:
    """Return the channel to sets of values, and that from sets to labels.

    Of different outputs with the same set the second is called ``{a, b} 2``.
    """
    members = [tuple(np.flatnonzero(column).tolist()) for column in columns.T]
    order = sorted(range(len(members)), key=lambda y: (len(members[y]), members[y], y < len(rays)))
    names: dict[str, int] = {}
    for y in order:
        name, times = set_name(support, members[y]), 1
        while (name if times == 1 else f"{name} {times}") in names:
            times += 1
        names[name if times == 1 else f"{name} {times}"] = y
    clash = {*names} & {*(support.names if isinstance(support, Levels) else ())}
    if clash:
        raise InputError(f"the level {min(clash)!r} has the name of a set of values; rename it")
    sets = Levels(tuple(names))
    drawn: CountArray = np.zeros((len(order), support.size), dtype=object)
    for row, y in zip(drawn, order, strict=True):
        if y == len(rays):  # the rest
            row[rest] = 1
            continue
        for x, share in zip(rays.index[y].tolist(), shares[y].tolist(), strict=True):
            row[x] += round(share * (1 << _LABEL_BITS))
    return Channel(support, sets, columns[:, order]), Channel(sets, support, drawn)


def _numbers(support: Support, columns: CountArray, mu: FloatArray, x: FloatArray) -> Channel:
    """Return the channel to numbers whose means are the values: x^T J^-1 m / q, finely rounded."""
    lattice, m = lattice_of(support), (columns / columns[0].sum()).astype(float)
    q = mu @ m
    back = np.linalg.solve((m / q) @ m.T, m / q)
    width = lattice.values[-1] - lattice.values[0] or lattice.step
    # In steps from the first value, so that the numbers are exact where values are large.
    places = np.array([int(k) for k in lattice.index], dtype=object)
    parts = 1
    while lattice.step / parts > width * _BIAS:
        parts *= 10
    reach = float(np.abs((x - x[0]) @ back).max() / float(lattice.step))
    while parts > 1 and reach * parts * 2 > MAX_CELLS // 2:
        parts //= 10
    exact: CountArray = np.zeros(columns.shape[1], dtype=object)
    for _ in range(_REFINED):
        missing = places * parts - (columns @ exact) / Fraction(int(columns[0].sum()))
        exact = exact + [round(v) for v in (missing.astype(float) @ back).tolist()]
    missing = places * parts - (columns @ exact) / Fraction(int(columns[0].sum()))
    if max(abs(missing)) * lattice.step > width * 10 * _BIAS * parts:
        raise PufferfishError("no numbers were found that average to the mean; please report it")
    made = np.unique(exact.astype(np.int64), return_inverse=True)
    merged: CountArray = np.zeros((len(columns), len(made[0])), dtype=object)
    np.add.at(merged.T, made[1], columns.T)
    step, first = lattice.step / parts, int(made[0][0])
    outputs = Lattice(step, lattice.origin * parts + first, made[0] - first)
    return Channel(support, outputs, merged)
