# SPDX-License-Identifier: Apache-2.0
"""Weights of rays under which unbiased estimates have the least variance, with a proven bound.

Minimise tr(D J^-1), D = F F^T and J = sum_r w_r r r^T / mu.r, over weights w >= 0 with
sum_r w_r r = 1: the channel with the columns w_r r. It is convex. With B = J^-1 D J^-1,
h_r = r^T B r / mu.r and any nu with nu.r >= h_r for all rays, no private channel has less than
tr(D J^-1)^2 / (1.nu), for sum_r w'_r h_r = tr(B J') bounds tr(D J^-1)^2 / tr(D J'^-1) by
Cauchy and Schwarz.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.calibration.solver import LinearProgram
from pufferfish.calibration.solver import solve as solve_program
from pufferfish.errors import InputError
from pufferfish.numbers import FloatArray, IntArray, show

#: Variables up to which Newton's method ends the search.
MOST_NEWTON = 1000
#: Multiplicative steps: before Newton's method, and where there is none.
_FIRST_STEPS, _MOST_STEPS = 30, 5000
#: How near to the bound Newton's method comes, and the multiplicative steps do.
_NEAR, _NEAR_STEPS = 1e-7, 5e-3
#: Statistics of low rank, by their singular values, are made regular by so much of them.
_FULL_RANK, _REGULAR, _REGULAR_STEPS = 1e-5, 1e-7, 1e-3
#: The power of a multiplicative step, its least weights, and errors of sums on the way and at last.
_POWER, _FLOOR, _PROJECTED, _SUMS, _CORRECTIONS = 0.9, 1e-9, 1e-9, 1e-13, 20
#: Steps of Newton's method, and its last barrier, of all variables, as a share of the objective:
#: with a lesser one doubles lose their way.
_NEWTON_STEPS, _BARRIER = 120, 3e-8
#: To keep more values counts so much as the least chance to be kept; a linear program decides on
#: labels up to so many outputs and levels of them.
_RATHER, _MOST_LABELLED = 1e-3, 3000


@dataclass(frozen=True, eq=False)
class Solution:
    """The rays with a weight, where they were ``at``; tr(D J^-1), and what it never is below."""

    rays: FloatArray
    weights: FloatArray
    at: IntArray
    objective: float
    bound: float


class Design:
    """The program of some rays, for frequencies mu > 0 and statistics F, one in each column.

    Where D = F F^T has low rank, the statistics are centred, which changes the objective by
    ``shift``, and the search adds a little of the identity. Objective and bound are of D itself.
    """

    def __init__(self, rays: FloatArray, mu: FloatArray, statistics: FloatArray) -> None:
        self.rays, self.mu, self.size, self.given = rays, mu, len(mu), statistics
        self.shares = rays @ mu
        self.statistics = self.searched = statistics
        self.shift = 0.0
        sizes = np.linalg.svd(statistics, compute_uv=False)
        if len(sizes) < self.size or sizes[-1] < _FULL_RANK * sizes[0]:
            means = mu @ statistics
            self.statistics, self.shift = statistics - means, float(means @ means)
            spread = float((self.statistics**2).sum(axis=1) @ mu) or 1.0
            share = _REGULAR if len(rays) <= MOST_NEWTON else _REGULAR_STEPS
            self.searched = np.hstack([self.statistics, np.sqrt(share * spread) * np.eye(len(mu))])
        # Rays have few levels: sums of c r r^T, and r^T B r, are by pairs of places in a ray.
        most = int((rays > 0).sum(axis=1).max())
        index = np.argsort(rays <= 0, axis=1, kind="stable")[:, :most].T
        value = np.take_along_axis(rays.T, index, axis=0)
        first, last = np.triu_indices(most)
        self._cells = index[first] * self.size + index[last]
        self._products = value[first] * value[last] * np.where(first < last, 2, 1)[:, None]
        self._levels, self._values = index.ravel(), value

    def gram(self, c: FloatArray) -> FloatArray:
        """Return sum_r c_r r r^T."""
        sums = np.bincount(self._cells.ravel(), (self._products * c).ravel(), self.size**2)
        half = sums.reshape(self.size, self.size) / 2
        return np.asarray(half + half.T)

    def dot(self, x: FloatArray) -> FloatArray:
        """Return x.r of all rays."""
        return np.asarray((self._values * x[self._levels].reshape(self._values.shape)).sum(axis=0))

    def total(self, w: FloatArray) -> FloatArray:
        """Return sum_r w_r r."""
        return np.asarray(np.bincount(self._levels, (self._values * w).ravel(), self.size))

    def solved(self, w: FloatArray, statistics: FloatArray) -> FloatArray:
        """Return J^-1 F."""
        return np.asarray(np.linalg.solve(self.gram(w / self.shares), statistics))

    def objective(self, w: FloatArray) -> float:
        """Return tr(D J^-1)."""
        return self.at(w, self.statistics)[0] + self.shift

    def at(self, w: FloatArray, statistics: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return tr(D J^-1) of the statistics, h_r > 0 of all rays, and B."""
        solved = self.solved(w, statistics)
        b = solved @ solved.T
        h = (b.ravel()[self._cells] * self._products).sum(axis=0) / self.shares
        return float((statistics * solved).sum()), np.maximum(h, 1e-14 * h.max()), b

    def bound(self, w: FloatArray, y: FloatArray, total: float) -> float:
        """Return what no weights go below, by any w and by nu with y = nu.r, total = 1.nu."""
        least, h, _ = self.at(w, self.statistics)
        if not least > 0 or y.min() <= 0 or total <= 0:
            return self.shift
        return least**2 / (total * float((h / y).max())) + self.shift

    def balanced(self, w: FloatArray) -> FloatArray | None:
        """Return weights close by that meet sum_r w_r r = 1, if there are."""
        for _ in range(_CORRECTIONS):
            missing = 1 - self.total(w)
            if np.abs(missing).max() < _SUMS:
                return w
            w = w * (1 + self.dot(np.asarray(np.linalg.lstsq(self.gram(w), missing, None)[0])))
            if not w.min() > 0:
                break
        return None


def solve(design: Design, near: float = _NEAR_STEPS) -> Solution:
    """Return the best weights: of a few rays to 1e-7 of the objective, else to a share ``near``."""
    few = len(design.rays) <= MOST_NEWTON
    w, bound = _multiplied(design, _FIRST_STEPS if few else _MOST_STEPS, near)
    if few:
        ends = np.ones(design.size)
        w, bound = _newton(design, w, design.rays.T, ends, ends)
    return _pruned(design, w, bound)


def labelled(
    design: Design, found: Solution, least: Fraction | None
) -> tuple[Solution, FloatArray]:
    """Return the best weights whose labels keep every value often enough, and these by label.

    ``found`` are the best ones without labels. Of many rays those are taken that keep the most, and
    then those that have a weight there.
    """
    rays, mu, eye = design.rays, design.mu, np.eye(design.size)
    labels = _labels(found.rays, mu, found.weights)
    if least is None or (labels * found.rays).sum(axis=0).min() >= float(least) * (1 + 1e-9):
        return found, labels
    amounts = _labels(rays, mu)
    most = float((amounts * rays).sum(axis=0).min()) * (1 - 1e-9)
    if most < 1 - 1e-8 and float(least) > most * (1 - 1e-6):
        raise InputError(
            f"no private channel was found that labels every value as itself with the chance "
            f"{show(least)}; at most min_keep={math.floor(most * 9999.99) / 10**4} is possible"
        )
    wanted = min(float(least) * (1 + 1e-7), most)
    rows, names = np.nonzero(rays)
    heavy = np.bincount(found.at, found.weights, len(rays))[rows]
    some = np.lexsort((-heavy, amounts[rows, names] <= 0))[: MOST_NEWTON - design.size]
    at, names = rows[some], names[some]
    copies, start = Design(rays[at], mu, design.given), amounts[at, names] + 1e-3
    kept = copies.rays.T * eye[:, names]
    a = np.block([[copies.rays.T, 0 * eye], [kept, -eye]])
    over = np.maximum(kept @ start - wanted, 1e-6)
    ends, asked = (np.repeat([1, end], design.size) for end in (wanted, float(least)))
    w, own = _newton(copies, np.append(start, over), a, ends, asked)
    bound = max(found.bound, own) if len(at) == len(rows) else found.bound
    better = _pruned(design, np.bincount(at, w, len(rays)).astype(float), bound)
    # Where there is hardly any room the search ends early; the channel that keeps most has it all.
    labels = 0 * amounts
    labels[better.at] = _labels(better.rays, mu, better.weights)
    short = wanted - float((labels * rays).sum(axis=0).min())
    labels += min(1.0, max(0.0, short) / max(most - wanted + short, 1e-300)) * (amounts - labels)
    w, at = labels.sum(axis=1), np.flatnonzero(labels.any(axis=1))
    return Solution(rays[at], w[at], at, design.objective(w), better.bound), labels[at]


def _labels(rays: FloatArray, mu: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return by ray the weights of labels that keep every value, and then most, as often as can be.

    Of given weights of rays, or of any. A linear program, but for many rays of given weights: each
    label is the likeliest value.
    """
    size = len(mu)
    rows, level = np.nonzero(rays)
    if weights is None:
        most, sums = 1 / rays.max(axis=1)[rows], rays[rows].T
    elif len(rows) > _MOST_LABELLED:
        return np.asarray(np.eye(size)[rays.argmax(axis=1)] * weights[:, None])
    else:
        most, sums = weights[rows], (rows == np.arange(len(rays))[:, None]) / weights[rows]
    # The variables are shares of the most they can be, and the least chance of all levels.
    kept = (level == np.arange(size)[:, None]) * rays[rows, level] * most
    matrix = np.block([[sums * most, np.zeros((len(sums), 1))], [-kept, np.ones((size, 1))]])
    filled = matrix != 0
    program = LinearProgram(
        cost=np.append(-_RATHER * (mu @ kept), -1.0), least=np.zeros(len(rows) + 1),
        start=np.append(0, filled.sum(axis=1).cumsum()), index=np.nonzero(filled)[1],
        value=matrix[filled], end=np.repeat([1.0, 0.0], [len(sums), size]),
        equal=np.arange(len(matrix)) < len(sums),
    )  # fmt: skip
    labels = np.zeros(rays.shape)
    labels[rows, level] = solve_program(program)[0][:-1].clip(0, 1) * most
    return labels


def _multiplied(design: Design, steps: int, near: float) -> tuple[FloatArray, float]:
    """Return weights after multiplicative steps, and a bound, once that is near.

    w_r <- w_r sqrt(h_r / nu.r), with nu such that sum_r w_r r = 1, never raises the objective;
    larger powers are faster, and are taken as long as they do not.
    """
    w, nu = _projected(design, np.ones(len(design.rays)), design.mu)
    nu = nu * (design.at(w, design.searched)[0] / nu.sum())
    best, last, power = 0.0, np.inf, 0.5
    for step in range(steps):
        found, h, _ = design.at(w, design.searched)
        if step == _FIRST_STEPS // 2:
            power = _POWER
        elif found > last * (1 + 1e-12):
            power = 0.5
        last, y = found, design.dot(nu)
        best = max(best, found**2 / float(nu.sum() * (h / y).max()))
        if found - best <= near * found:
            break
        c = w * np.sqrt(h) * np.clip(h / y, 0.1, 10) ** (power - 0.5)
        # A ray of no weight at all would never come back, and nu.r would be anything.
        w, nu = _projected(design, np.maximum(c, _FLOOR * c.max()), nu)
    return w, design.bound(w, design.dot(nu), float(nu.sum()))


def _projected(design: Design, c: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return w = c / sqrt(nu.r) with sum_r w_r r = 1: Newton's method on 1.nu - 2 c.sqrt(nu.r)."""
    w = c
    for _ in range(100):
        y = design.dot(nu)
        w = c / np.sqrt(y)
        slope = 1 - design.total(w)
        if np.abs(slope).max() < _PROJECTED:
            break
        step = np.asarray(np.linalg.solve(design.gram(w / y / 2), -slope))
        nu = nu + step * min(1.0, 0.9 / max(-float((design.dot(step) / y).min()), 1e-300))
    return w, nu


def _newton(
    design: Design, w: FloatArray, a: FloatArray, ends: FloatArray, asked: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise the objective with a barrier for w >= 0, where a w = ends; return w and a bound.

    The bound is that of a w = ``asked``. The barrier falls with each good step. Variables beyond
    the rays have no objective.
    """
    count, size = len(design.rays), design.size
    w = np.maximum(w, 1e-12 * w.max())
    vectors = design.rays / np.sqrt(design.shares)[:, None]
    barrier = 1e-2 * design.at(w[:count], design.searched)[0] / len(w)
    best, bound = 0.0, design.shift
    for _ in range(_NEWTON_STEPS):
        own = w[:count]
        found, h, b = design.at(own, design.searched)
        # The second derivatives in u, where w changes by the share u.
        both = (vectors @ design.solved(own, vectors.T)) * (vectors @ b @ vectors.T)
        second = barrier * np.eye(len(w))
        second[:count, :count] += 2 * both * np.outer(own, own)
        slope = np.full(len(w), -barrier)
        slope[:count] -= h * own
        scaled, missing = a * w, ends - a @ w
        both = np.linalg.solve(second, np.column_stack([scaled.T, slope]))
        nu = np.linalg.lstsq(scaled @ both[:, :-1], missing + scaled @ both[:, -1], None)[0]
        change = both[:, :-1] @ nu - both[:, -1]
        nu = np.append(-nu[:size], np.minimum(-nu[size:], 0))
        y, total = (nu @ a)[:count], float(nu @ ends)
        if y.min() > 0 and total > 0:
            best = max(best, found**2 / (total * float((h / y).max())))
            bound = max(bound, design.bound(own, y, float(nu @ asked)))
        length = min(1.0, 0.95 / max(-float(change.min()), 1e-300))
        w = w * (1 + length * change)
        if found - best <= _NEAR * found:
            break
        if length > 0.5:
            barrier = max(0.3 * barrier, _BARRIER * found / len(w))
    return w[:count], bound


def _pruned(design: Design, w: FloatArray, bound: float) -> Solution:
    """Return the weights without those that hardly matter."""
    w = w if (balanced := design.balanced(w)) is None else balanced
    objective, most = design.objective(w), w * design.rays.max(axis=1)
    allowed = max(1e-8, (objective - bound) / objective / 50)
    for least in 10.0 ** -np.arange(4, 13):
        at = np.flatnonzero(most >= least)
        less = Design(design.rays[at], design.mu, design.given)
        found = less.balanced(w[at])
        if found is not None and (reached := less.objective(found)) <= objective * (1 + allowed):
            return Solution(less.rays, found, at, reached, min(bound, reached))
    raise ArithmeticError("the search for the best channel lost its way")
