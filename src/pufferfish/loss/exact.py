# SPDX-License-Identifier: Apache-2.0
"""What whole numbers decide: losses that are infinite or 0, losses without noise, distances.

Whether the loss is infinite depends only on which outputs each secret can cause, and whether it is
0 only on the masses behind the channels (the kernel of Laplace noise is invertible). Without noise
the loss is ln of a rational number, which is found exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.loss.kernel import Axis, Problem
from pufferfish.loss.support_function import column_extremes, value_extremes
from pufferfish.numbers import INT64_SAFE, CountArray, IntArray
from pufferfish.priors.ambiguity import Point, Region

#: A ratio of two quotients of 64-bit integers in doubles is within 8 * 2**-53 of the true one.
_NEAR = 1 - 2.0**-48
#: Pairs times atoms up to which distances are found pair by pair.
_TRANSPORT = 1 << 23


@dataclass(frozen=True)
class Peak:
    """The largest ratio of two likelihoods and where it is; None: infinite."""

    ratio: Fraction | None
    cell: int
    pair: tuple[int, int]
    adversary: int


def infinite(problem: Problem) -> Peak | None:
    """Return an output that one point of a pair can cause and the other cannot, or None."""
    for rho, beliefs in enumerate(problem.adversaries):
        if not all(isinstance(own, Point) for own in beliefs):
            continue
        signs = [_possible(problem, own.masses != 0) for own in beliefs if isinstance(own, Point)]
        for i, j in problem.pairs:
            differ = signs[i] != signs[j]
            if differ.any():
                at = int(np.argmax(differ))
                pair = (i, j) if signs[i].reshape(-1)[at] else (j, i)
                return Peak(None, _spread(problem, at), pair, rho)
    return None


def _possible(problem: Problem, signs: Any) -> Any:
    """Return which outputs have positive likelihood; noise reaches every place (length 1)."""
    at = 0
    for axis in problem.axes:
        if axis.columns is not None:
            reached = np.array([[float(v > 0) for v in column] for column in axis.columns])
            # Sums of zeros and ones are exact in doubles.
            moved = np.moveaxis(signs, at, -1).astype(np.float64) @ reached.T
            signs = np.moveaxis(moved > 0, -1, at)
            at += 1
            if axis.noisy:
                signs, at = np.expand_dims(signs, at), at + 1
        else:
            signs = np.any(signs, axis=at, keepdims=True) if axis.noisy else signs
            at += 1
    return signs


def _spread(problem: Problem, at: int) -> int:
    """Return a cell of the whole grid for one of the grid whose noisy axes have length 1."""
    shape: list[int] = []
    for axis in problem.axes:
        shape += [*axis.shape[:-1], 1] if axis.noisy else axis.shape
    return int(np.ravel_multi_index(np.unravel_index(at, shape), problem.shape))


def loses_nothing(problem: Problem) -> bool:
    """Whether the loss is exactly 0: the points of all pairs are the same behind the channels."""
    bare = all(axis.columns is None for axis in problem.axes)
    for beliefs in problem.adversaries:
        points = [own for own in beliefs if isinstance(own, Point)]
        if len(points) < len(beliefs):
            return False
        # Equality is transitive: all pairs are the same if neighbours are.
        m = len(points)
        pairs = [(k, k + 1) for k in range(m - 1)] if problem.all_pairs else problem.pairs
        for i, j in pairs:
            one, other = points[i], points[j]
            if not _alike(one.masses, one.total, other.masses, other.total) and (
                bare
                or not _alike(behind(problem, one), one.total, behind(problem, other), other.total)
            ):
                return False
    return True


def _alike(one: CountArray, total: int, other: CountArray, other_total: int) -> bool:
    """Whether two points have the same probabilities."""
    if one.dtype != object and other.dtype != object:
        p, q = one / float(total), other / float(other_total)
        if bool((np.abs(p - q) > 2.0**-50 * p).any()):
            return False
    divisor = math.gcd(total, other_total)
    left, right = other_total // divisor, total // divisor
    if max(left, right) * max(total, other_total) >= INT64_SAFE:
        one, other = one.astype(object), other.astype(object)
    same: bool = (one * left == other * right).all()
    return bool(same)


def behind(problem: Problem, point: Point) -> CountArray:
    """Return what a point's masses become behind all channels, on the grid, before the noise.

    Up to a factor that is the same for all secrets.
    """
    array: CountArray = point.masses
    at = 0
    for axis in problem.axes:
        if axis.columns is not None:
            array = _through(array, at, axis, axis.columns)
        at += len(axis.shape)
    return array


def _through(
    array: CountArray, at: int, axis: Axis, columns: Sequence[tuple[int, ...]]
) -> CountArray:
    """Send one axis through its channel: to outputs, or to (outputs, atoms)."""
    from flint import fmpz_mat  # slow to import, and not needed without channels

    moved = np.moveaxis(array, at, -1).astype(object) * np.array(axis.weights, dtype=object)
    if axis.noisy:
        likelihoods = np.empty((len(columns), len(axis.atoms)), dtype=object)
        likelihoods[:] = columns
        spread: CountArray = moved[..., None, :] * likelihoods
        return np.moveaxis(spread, (-2, -1), (at, at + 1))
    lines = moved.reshape(-1, moved.shape[-1])
    product = fmpz_mat(lines.tolist()) * fmpz_mat([list(c) for c in zip(*columns, strict=True)])
    result = np.array([int(v) for v in product.entries()], dtype=object)
    return np.moveaxis(result.reshape(*moved.shape[:-1], len(columns)), -1, at)


def largest_ratio(problem: Problem) -> Peak:
    """Return the largest ratio of a problem without noise, at least 1, exactly."""
    best = Peak(Fraction(1), 0, problem.pairs[0], 0)
    for rho, beliefs in enumerate(problem.adversaries):
        ends = [_ends(problem, own) for own in beliefs]
        tops = [top.reshape(-1) for top, _ in ends]
        bottoms = [bottom.reshape(-1) for _, bottom in ends]
        units = [own.total if isinstance(own, Point) else own.unit for own in beliefs]
        for pairs in [None] if problem.all_pairs else [[pair] for pair in problem.pairs]:
            for cell in _candidates(tops, bottoms, units, pairs):
                top = [int(own[cell]) for own in tops]
                bottom = [int(own[cell]) for own in bottoms]
                found = _worst_of_cell(top, bottom, units, pairs)
                if found is None:
                    continue
                ratio, pair = found
                if ratio is None:
                    return Peak(None, cell, pair, rho)
                if best.ratio is not None and ratio > best.ratio:
                    best = Peak(ratio, cell, pair, rho)
    return best


def _ends(problem: Problem, belief: Point | Region) -> tuple[CountArray, CountArray]:
    """Return the largest and the smallest likelihood of every output, over the set's unit."""
    if isinstance(belief, Point):
        array = behind(problem, belief)
        return array, array
    axis = problem.axes[0]
    if axis.columns is None:
        top, bottom = value_extremes(belief)
    else:
        found = []
        for column in axis.columns:
            whole = [a * b for a, b in zip(column, axis.weights, strict=True)]
            found.append(column_extremes(belief, whole))
        top, bottom = [high for high, _ in found], [low for _, low in found]
    return np.array(top, dtype=object), np.array(bottom, dtype=object)


def _candidates(
    tops: Sequence[CountArray],
    bottoms: Sequence[CountArray],
    units: Sequence[int],
    pairs: Sequence[tuple[int, int]] | None,
) -> list[int]:
    """Return cells among which is one of the largest ratio, each ratio once."""
    rows = range(len(tops)) if pairs is None else sorted({k for pair in pairs for k in pair})
    if any(tops[k].dtype == object or bottoms[k].dtype == object for k in rows):
        cells = list(range(len(tops[0])))
    else:
        high = np.zeros(len(tops[0]))
        low = np.full(len(tops[0]), np.inf)
        for k in rows:
            np.maximum(high, tops[k] / float(units[k]), out=high)
            np.minimum(low, bottoms[k] / float(units[k]), out=low)
        alone = np.flatnonzero((high > 0) & (low == 0))
        if len(alone):
            return [int(alone[0])]
        with np.errstate(invalid="ignore"):
            ratio = np.where(high > 0, high / low, 0.0)
        cells = np.flatnonzero(ratio >= ratio.max() * _NEAR).tolist()
    if len(cells) <= 1:
        return cells
    seen: dict[tuple[int, ...], int] = {}
    chosen = np.array(cells)
    columns = [own[k][chosen].tolist() for own in (tops, bottoms) for k in rows]
    for cell, values in zip(cells, zip(*columns, strict=True), strict=True):
        seen.setdefault(values, cell)
    return list(seen.values())


def _worst_of_cell(
    top: Sequence[int],
    bottom: Sequence[int],
    units: Sequence[int],
    pairs: Sequence[tuple[int, int]] | None,
) -> tuple[Fraction | None, tuple[int, int]] | None:
    """Return the largest ratio of one output over pairs of different secrets; None for 0/0."""
    if pairs is None:
        common = math.lcm(*units)
        by_top = sorted(range(len(top)), key=lambda k: top[k] * (common // units[k]))
        by_bottom = sorted(range(len(top)), key=lambda k: bottom[k] * (common // units[k]))
        # The best two of each are enough: a secret is not compared with itself.
        ordered = [(i, j) for i in by_top[-2:] for j in by_bottom[:2] if i != j]
    else:
        ordered = [both for i, j in pairs for both in ((i, j), (j, i))]
    best: tuple[Fraction | None, tuple[int, int]] | None = None
    for i, j in ordered:
        if top[i] == 0:
            continue
        if bottom[j] == 0:
            return None, (i, j)
        ratio = Fraction(top[i] * units[j], bottom[j] * units[i])
        if best is None or (best[0] is not None and ratio > best[0]):
            best = ratio, (i, j)
    return best


def widest(problem: Problem) -> Fraction | None:
    """Return a rational bound of the loss where all axes are noise alone, None for others.

    It is the largest :func:`transport` on a single axis, else the sum of diameter / theta_eff.
    """
    if not problem.pure_noise:
        return None
    pairs = [(rho, pair) for rho in range(len(problem.adversaries)) for pair in problem.pairs]
    if len(problem.axes) > 1 or len(pairs) * problem.cells > _TRANSPORT:
        return sum((int(axis.places[-1]) * axis.rate for axis in problem.axes), Fraction(0))
    found = [transport(problem, rho, pair) for rho, pair in pairs]
    return max((bound for bound in found if bound is not None), default=None)


def transport(problem: Problem, rho: int, pair: tuple[int, int]) -> Fraction | None:
    """Return W/theta_eff for two points on a single axis with noise alone, None for others.

    Matched by equal quantiles, no mass travels further than W, the Wasserstein-infinity distance:
    e^-|y-x|/theta <= e^(W/theta) e^-|y-x'|/theta for all coupled x, x' and every y; summed over
    the coupling, the loss of the pair is at most W/theta. This is exact where balls never decide
    equality (theory, section 8).
    """
    axis = problem.axes[0]
    one, other = (problem.adversaries[rho][k] for k in pair)
    if not problem.pure_noise or len(problem.axes) > 1:
        return None
    if not (isinstance(one, Point) and isinstance(other, Point)):
        return int(axis.places[-1]) * axis.rate
    sums = _cumulated(one, other)
    longest = 0
    # Both quantile functions are constant between neighbouring levels of either.
    for levels in sums:
        first, second = (_quantiles(axis, own, levels[levels > 0]) for own in sums)
        longest = max(longest, int(np.abs(first - second).max()))
    return longest * axis.rate


def _quantiles(axis: Axis, sums: CountArray, levels: CountArray) -> IntArray:
    places: IntArray = axis.places[np.searchsorted(sums, levels)]
    return places


def _cumulated(one: Point, other: Point) -> tuple[CountArray, CountArray]:
    """Return both cumulated masses as whole numbers over one denominator."""
    divisor = math.gcd(one.total, other.total)
    first, second = one.masses, other.masses
    if one.total * (other.total // divisor) >= INT64_SAFE:
        first, second = first.astype(object), second.astype(object)
    return np.cumsum(first) * (other.total // divisor), np.cumsum(second) * (one.total // divisor)
