# SPDX-License-Identifier: Apache-2.0
"""Weights of rays under which unbiased estimates have the least variance, with a proven bound.

Minimise tr(D J^-1), D = F F^T and J = sum_r w_r r r^T / mu.r, over weights w >= 0 with
sum_r w_r r = 1: the channel with the columns w_r r. It is convex. With B = J^-1 D J^-1,
h_r = r^T B r / mu.r and any nu with nu.r >= h_r for all rays, no private channel has less than
tr(D J^-1)^2 / (1.nu), for sum_r w'_r h_r = tr(B J') bounds tr(D J^-1)^2 / tr(D J'^-1) by
Cauchy and Schwarz.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from pufferfish.calibration.rays import Rays
from pufferfish.errors import PufferfishError
from pufferfish.numbers import FloatArray, IntArray

#: Rays, one for each of their labels, up to which Newton's method ends the search.
MOST_NEWTON = 1000
#: Multiplicative steps: before Newton's method, for a forecast, and where there is neither.
_FIRST_STEPS, _FEW_STEPS, _MOST_STEPS = 30, 200, 5000
#: How near to the bound Newton's method comes, and the multiplicative steps do.
_NEAR, _NEAR_STEPS = 1e-9, 5e-3
#: Statistics of low rank, by their singular values, are made regular by so much of them.
_FULL_RANK, _REGULAR, _REGULAR_STEPS = 1e-5, 1e-7, 1e-3
#: The power of a multiplicative step, and the errors of sums in the search and at its end.
_POWER, _PROJECTED, _SUMS, _CORRECTIONS = 0.9, 1e-9, 1e-13, 20
_NEWTON_STEPS = 120


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights of rays, their objective tr(D J^-1), and what no weights go below."""

    rays: Rays
    weights: FloatArray
    objective: float
    bound: float


class Design:
    """The program of some rays, for frequencies mu > 0 and statistics F, one in each column.

    Where D = F F^T has low rank, the statistics are centred, which changes the objective by
    ``shift``, and the search adds a little of the identity. Objective and bound are of D itself.
    """

    def __init__(self, rays: Rays, mu: FloatArray, statistics: FloatArray) -> None:
        self.rays, self.mu, self.size = rays, mu, len(mu)
        self.shares = (rays.value * mu[rays.index]).sum(axis=1)
        sizes = np.linalg.svd(statistics, compute_uv=False)
        self.given = self.statistics = self.searched = statistics
        self.shift = 0.0
        if len(sizes) < self.size or sizes[-1] < _FULL_RANK * sizes[0]:
            means = mu @ statistics
            self.statistics, self.shift = statistics - means, float(means @ means)
            spread = float((self.statistics**2).sum(axis=1) @ mu) or 1.0
            share = _REGULAR if len(rays) <= MOST_NEWTON else _REGULAR_STEPS
            regular = np.sqrt(share * spread) * np.eye(self.size)
            self.searched = np.hstack([self.statistics, regular])
        # Sums over rays of c r r^T, and r^T B r, by pairs of places in a ray.
        index, value, places = rays.index, rays.value, range(rays.index.shape[1])
        both = [(a, b) for a in places for b in places if a <= b]
        self._cells = np.concatenate([index[:, a] * self.size + index[:, b] for a, b in both])
        self._products = np.array([value[:, a] * value[:, b] * (1 + (a < b)) for a, b in both])
        self._levels, self._values = index.T.ravel(), value.T.copy()

    def gram(self, c: FloatArray) -> FloatArray:
        """Return sum_r c_r r r^T."""
        found = np.bincount(self._cells, (self._products * c).ravel(), self.size**2)
        half = found.reshape(self.size, self.size) / 2
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
        return float((self.statistics * self.solved(w, self.statistics)).sum()) + self.shift

    def searched_at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective that is searched, and its h_r."""
        solved = self.solved(w, self.searched)
        entries = (solved @ solved.T).ravel()[self._cells].reshape(self._products.shape)
        h = (entries * self._products).sum(axis=0) / self.shares
        return float((self.searched * solved).sum()), np.maximum(h, 1e-14 * h.max())

    def bound(self, w: FloatArray, y: FloatArray, total: float) -> float:
        """Return what no weights go below, by any w and by nu with y = nu.r, total = 1.nu."""
        solved = self.solved(w, self.statistics)
        along = np.einsum("kt,ktd->kd", self.rays.value, solved[self.rays.index])
        h = np.square(along).sum(axis=1) / self.shares
        least = float((self.statistics * solved).sum())
        if not least > 0 or y.min() <= 0 or total <= 0:
            return self.shift
        return least**2 / (total * float((h / y).max())) + self.shift

    def balanced(self, w: FloatArray) -> FloatArray | None:
        """Return weights close by that meet sum_r w_r r = 1, if there are."""
        try:
            for _ in range(_CORRECTIONS):
                missing = 1 - self.total(w)
                if np.abs(missing).max() < _SUMS:
                    return w
                factor = 1 + self.dot(np.asarray(np.linalg.solve(self.gram(w), missing)))
                if not factor.min() > 0:
                    return None
                w = w * factor
        except np.linalg.LinAlgError:
            pass
        return None


def solve(design: Design, near: float = _NEAR_STEPS, finish: bool = True) -> Solution:
    """Return the best weights: to 1e-9 of the objective of a few rays, else to a share ``near``.

    Without ``finish`` to about a share ``near``, in a few hundred steps.
    """
    few = finish and len(design.rays) <= MOST_NEWTON
    steps = _FIRST_STEPS if few else _MOST_STEPS if finish else _FEW_STEPS
    w, bound = _multiplied(design, steps, near)
    if few:
        ones = np.ones(design.size)
        w, bound = _newton(design, w, design.rays.dense(design.size).T, ones)
    return pruned(design, w, bound)


def solve_labelled(
    design: Design, start: FloatArray, labels: IntArray, least: float
) -> tuple[FloatArray, float]:
    """Return the best weights of rays of which each has a label, and a bound.

    With at least the chance ``least`` every level is labelled as itself: sum_r w_r r_x over the
    rays labelled x. Needs Newton's method; ``start``: weights > 0 that nearly do that.
    """
    size, count = design.size, len(design.rays)
    dense = design.rays.dense(size)
    kept = np.zeros((size, count))
    kept[labels, np.arange(count)] = dense[np.arange(count), labels]
    left = np.vstack([np.zeros((size, size)), -np.eye(size)])
    a = np.hstack([np.vstack([dense.T, kept]), left])
    over = np.maximum(kept @ start - least, 1e-6)
    ends = np.append(np.ones(size), np.full(size, least))
    w, bound = _newton(design, np.append(start, over), a, ends)
    return w[:count], bound


def _multiplied(design: Design, steps: int, near: float) -> tuple[FloatArray, float]:
    """Return weights after multiplicative steps, and a bound, once that is near.

    w_r <- w_r sqrt(h_r / nu.r), with nu such that sum_r w_r r = 1, never raises the objective;
    larger powers are faster, and are taken as long as they do not.
    """
    w, nu = _projected(design, np.ones(len(design.rays)), design.mu) or _lost()
    best, last, power = 0.0, np.inf, 0.5
    for step in range(steps):
        found, h = design.searched_at(w)
        if step == 0:
            nu = nu * (found / nu.sum())
        if step == _FIRST_STEPS // 2:
            power = _POWER
        elif found > last * (1 + 1e-12):
            power = 0.5
        last, y = found, design.dot(nu)
        best = max(best, found**2 / float(nu.sum() * (h / y).max()))
        if found - best <= near * found:
            break
        faster = np.clip(h / y, 0.1, 10) ** (power - 0.5)
        following = _projected(design, w * np.sqrt(h) * faster, nu)
        if following is None:  # beyond what doubles can do
            break
        w, nu = following
    return w, design.bound(w, design.dot(nu), float(nu.sum()))


def _projected(
    design: Design, c: FloatArray, nu: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return w = c / sqrt(nu.r) with sum_r w_r r = 1: Newton's method on 1.nu - 2 c.sqrt(nu.r)."""
    w = c
    for _ in range(100):
        y = design.dot(nu)
        if not y.min() > 0:
            return None
        w = c / np.sqrt(y)
        slope = 1 - design.total(w)
        if np.abs(slope).max() < _PROJECTED:
            break
        step = np.asarray(np.linalg.solve(design.gram(w / y / 2), -slope))
        moved = design.dot(step)
        length = min(1.0, 0.9 / max(-float((moved / y).min()), 1e-300))
        while length > 1e-9:
            rise = length * step.sum() - 2 * (c * (np.sqrt(y + length * moved) - np.sqrt(y))).sum()
            if rise <= 1e-4 * length * (slope @ step) + 1e-15:
                break
            length /= 2
        else:  # beyond what doubles can do
            break
        nu = nu + length * step
    return w, nu


def _newton(
    design: Design, w: FloatArray, a: FloatArray, ends: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise the objective with a barrier for w >= 0, where a w = ends; return w and a bound.

    The barrier falls with each good step. Variables beyond the rays have no objective.
    """
    count = len(design.rays)
    w = np.maximum(w, 1e-12 * w.max())
    vectors = design.rays.dense(design.size) / np.sqrt(design.shares)[:, None]
    barrier, best, bound = 0.0, 0.0, design.shift
    for _ in range(_NEWTON_STEPS):
        found, h = design.searched_at(w[:count])
        barrier = barrier or 1e-2 * found / len(w)
        solved = design.solved(w[:count], np.hstack([vectors.T, design.searched]))
        along = vectors @ solved
        # The second derivatives in u, where w changes by the share u.
        second = np.zeros((len(w), len(w)))
        second[:count, :count] = (
            2
            * along[:, :count]
            * (along[:, count:] @ along[:, count:].T)
            * np.outer(w[:count], w[:count])
        )
        second[np.diag_indices(len(w))] += barrier
        slope = np.full(len(w), -barrier)
        slope[:count] -= h * w[:count]
        scaled, missing = a * w, ends - a @ w
        both = np.linalg.solve(second, np.column_stack([scaled.T, slope]))
        nu = np.linalg.lstsq(scaled @ both[:, :-1], missing + scaled @ both[:, -1], None)[0]
        change = both[:, :-1] @ nu - both[:, -1]
        nu = -nu
        nu[design.size :] = np.minimum(nu[design.size :], 0)
        y, total = (nu @ a)[:count], float(nu @ ends)
        if y.min() > 0 and total > 0:
            best = max(best, found**2 / (total * float((h / y).max())))
            bound = max(bound, design.bound(w[:count], y, total))
        length = min(1.0, 0.95 / max(-float(change.min()), 1e-300))
        w = w * (1 + length * change)
        if found - best <= _NEAR * found and np.abs(missing).max() < _NEAR:
            break
        if length > 0.5:
            barrier *= 0.3
    return w, bound


def pruned(design: Design, w: FloatArray, bound: float) -> Solution:
    """Return the weights without those that hardly matter."""
    balanced = design.balanced(w)
    w = w if balanced is None else balanced
    objective, most = design.objective(w), w * design.rays.value.max(axis=1)
    allowed = max(1e-8, (objective - bound) / objective / 50)
    for least in 10.0 ** -np.arange(4, 13):
        kept = np.flatnonzero(most >= least)
        less = Design(design.rays.take(kept), design.mu, design.given)
        found = less.balanced(w[kept])
        if found is not None:
            reached = less.objective(found)
            if reached <= objective * (1 + allowed):
                return Solution(less.rays, found, reached, min(bound, reached))
    return _lost()


def _lost() -> NoReturn:
    raise PufferfishError("the search for the best channel lost its way; please report it")
