# SPDX-License-Identifier: Apache-2.0
"""The finite channel that a release is to those who estimate, weights for its outputs, and bins.

Noise beyond the last value tells nothing more than the last output: the likelihoods of all values
are in the same proportions there. So one output on each side stands for all beyond it.
"""

import copy
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, IntArray, parse_number
from pufferfish.release.postprocess import Postprocess
from pufferfish.support import Levels, Support, lattice_of

#: More values than this and only sums that need no matrix are estimated.
MOST_VALUES = 2000
#: More values than this, and errors of shares are not foretold, nor weights taken from the rows.
_MOST_REFINED = 400
#: Outputs of noise beyond which neighbouring ones are taken together.
_MOST_OUTPUTS = 4096
#: Singular values below this share of the largest one are none.
_CLEAR = 1e-9
#: The largest error of M w - a, in the largest entry of a, where a is estimable.
_SOLVED = 1e-7
#: No value is taken to be rarer than this.
_LEAST_WEIGHT = 1e-6
#: The projection ends at a gap of the one, or after so many steps.
_NO_GAP, _MOST_STEPS = 1e-16, 100
#: A standard deviation per row above it needs 10**12 rows for one digit.
_USELESS = 1e6
#: Numbers of bins that are tried.
_NUMBERS = (100, 80, 60, 50, 40, 30, 25, 20, 15, 12, 10, 8, 6, 5, 4, 3, 2)
#: Bins are worth a look where their standard error is below this part of the average share.
_STANDS_OUT = 0.5


class FiniteChannel:
    """The probabilities of the outputs (n_y) for each of at most ``MOST_VALUES`` values (n_x).

    ``values`` are for a channel the released value of each output, increasing; for noise the least
    released value of each output but the first, which stands for all below.
    """

    def __init__(self, post: Postprocess, support: Support) -> None:
        mechanism, shown = post.published()
        self._exact = isinstance(mechanism, Channel)
        if isinstance(mechanism, Channel):
            self.values, place = np.unique(shown, return_inverse=True)
            self.matrix: FloatArray = np.zeros((support.size, len(self.values)))
            np.add.at(self.matrix.T, place, mechanism.matrix.T)
        else:
            lattice = lattice_of(support)
            atoms = lattice.index + np.int64(lattice.origin)
            cuts = _cuts(np.unique(post.finish(atoms)).tolist())
            if post.bounds is not None:
                cuts = [cut for cut in cuts if post.bounds[0] < cut <= post.bounds[1]]
            self.values = np.array(cuts, dtype=np.int64)
            self.matrix = _noise_matrix([post.edge(cut) for cut in cuts], atoms, mechanism)

    def counts(self, released: Mapping[int, int]) -> FloatArray:
        """Return rows by output for rows by released value."""
        shown = np.array(list(released), dtype=np.int64)
        places = np.searchsorted(self.values, shown, side="left" if self._exact else "right")
        places = np.minimum(places, self.matrix.shape[1] - 1)
        never = self.matrix[:, places].max(axis=0) == 0
        if self._exact:
            never |= self.values[places] != shown
        if never.any():
            raise InputError(
                "the released column holds a value that the plan's mechanism never publishes; was "
                "the column released by this plan, with these options?"
            )
        return np.bincount(places, [*released.values()], self.matrix.shape[1]).astype(np.float64)


def _cuts(points: Sequence[int]) -> list[int]:
    """Return the least released value of each output but the first."""
    pieces = max(1, _MOST_OUTPUTS // len(points))
    cuts = {points[0], points[-1] + 1}
    for left, right in pairwise(points):
        gap = right - left
        if gap <= pieces:
            cuts.update(range(left + 1, right + 1))
        else:  # outputs as wide as each other, those of the two values around them
            cuts.update(left + -(-gap * (2 * k + 1) // (2 * pieces)) for k in range(pieces))
    return sorted(cuts)


def _noise_matrix(edges: Sequence[int], atoms: IntArray, noise: DiscreteLaplace) -> FloatArray:
    """Return the probabilities of the outputs between edges, shape (n, edges + 1)."""
    rate = float(noise.step / Fraction(noise.scale)) if noise.scale else math.inf
    distance = np.array(edges, dtype=np.int64)[None, :] - atoms[:, None]
    # P(Z >= d) for d > 0, and P(Z <= d - 1) for d <= 0: each on the side where it is small.
    tail = np.exp(-rate * np.where(distance > 0, distance, 1 - distance)) / (1 + math.exp(-rate))
    one = np.ones((len(atoms), 1))
    above = np.hstack([one, np.where(distance > 0, tail, 1 - tail), 0 * one])
    below = np.hstack([0 * one, np.where(distance > 0, 1 - tail, tail), one])
    # An output between two edges: a difference of tails on one side, or 1 less both.
    return np.asarray(np.where(above[:, :-1] <= 0.5, np.diff(-above), np.diff(below)))


class LeastSquares:
    """Weights of the outputs for linear functions of the values' frequencies.

    M w = a has many solutions where there are more outputs than the rank of M. The one with the
    least sum of q_y w_y^2 has the least variance of all unbiased ones for outputs distributed as
    q = mu M. These must not depend on what was drawn, or the estimate would be biased: ``weights``
    mu are those of the plan; else all values count as equally frequent, or see ``crossed``.
    """

    def __init__(self, matrix: FloatArray, weights: Sequence[float] = ()) -> None:
        self.matrix, self.given = matrix, len(weights) > 0
        self.first = self.second = matrix  # moments of w(Y): E w(Y) and E w(Y)^2 for each value
        mu = np.array(weights if self.given else np.ones(len(matrix)), dtype=np.float64)
        # None is 0: every output that any value can have has its weight.
        mu = np.maximum(mu / mu.sum(), max(mu[mu > 0].min() / mu.sum() / 2, _LEAST_WEIGHT))
        self.mu: FloatArray = mu / mu.sum()
        roots = np.sqrt(self.mu @ matrix)
        self._scale = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
        self._inverse = self._scale[:, None] * np.linalg.pinv(matrix * self._scale, rcond=_CLEAR)

    def crossed(self, counts: FloatArray) -> tuple["LeastSquares", FloatArray]:
        """Return weights for each half of the rows from the frequencies in the other, and the rows.

        A coin puts each row in a half, which is one more output of a channel; so estimates are
        unbiased, and about as sure as with the weights of the plan (theory, section 4).
        """
        if self.given or len(self.mu) > _MOST_REFINED or not self.single[1].all():
            return self, counts
        # Tossed anew for other rows, and the same for the same ones.
        whole = counts.astype(np.int64)
        first = np.random.default_rng(whole).binomial(whole, 0.5).astype(np.float64)
        halves = [first, counts - first]
        if not all(half.any() for half in halves):
            return self, counts
        # In rows, and half a row at least.
        found = (np.maximum(other @ self.single[0], 0.5).tolist() for other in reversed(halves))
        matrix = np.hstack([self.matrix / 2] * 2)
        inverse = np.vstack([LeastSquares(self.matrix, own)._inverse for own in found])
        scale = np.tile(math.sqrt(2) * self._scale, 2)
        return self._with(inverse, scale, matrix, matrix, matrix), np.concatenate(halves)

    def combined(self, p: FloatArray, rows: float, variance: float) -> "LeastSquares":
        """Return weights beside noisy frequencies, which estimate a - M w; best at shares p."""
        one, own = np.eye(len(p)), rows * variance
        basis = self._scale[:, None] * np.linalg.qr((self.matrix * self._scale).T)[0]
        image, p = self.matrix @ basis, (p + _LEAST_WEIGHT * self.mu) / (1 + _LEAST_WEIGHT)
        spread = (basis.T * (p @ self.matrix)) @ basis - (image.T * p) @ image
        w = basis @ np.linalg.solve(own * image.T @ image + spread, own * image.T)
        inverse = np.vstack([w, one - self.matrix @ w])
        scale = np.append(self._scale, np.full(len(p), 1 / math.sqrt(own)))
        # Noise is the same whatever a row holds.
        beside = (one, 0 * one, np.full_like(one, own))
        return self._with(inverse, scale, *(np.hstack([self.matrix, each]) for each in beside))

    def _with(
        self, inverse: FloatArray, scale: FloatArray, matrix: FloatArray, first: FloatArray,
        second: FloatArray,
    ) -> "LeastSquares":  # fmt: skip
        """Return the same for other outputs, whose weights are known."""
        other = copy.copy(self)
        other.__dict__.pop("single", None)
        other._inverse, other._scale, other.given = inverse, scale, True
        other.matrix, other.first, other.second = matrix, first, second
        return other

    def varied(self, w: FloatArray) -> FloatArray:
        """Return the variance of w(Y) for each value."""
        return np.asarray(self.second @ w**2 - (self.first @ w) ** 2)

    def weights(self, functionals: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return w with M w = a for a of shape (n_x, k), and where that is solved and of use."""
        w = self._inverse @ functionals
        w += self._inverse @ (functionals - self.matrix @ w)
        image = self.matrix @ w
        size = np.abs(functionals).max(axis=0)
        solved = np.abs(image - functionals).max(axis=0) <= _SOLVED * size
        variance = (self.matrix @ w**2 - image**2).max(axis=0)
        return w, solved & (variance <= _USELESS**2 * size**2)

    @cached_property
    def single(self) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The weights for the frequency of each value, and which of them are of use."""
        return self.weights(np.eye(len(self.matrix)))

    def error(self, functionals: FloatArray, rows: float, p: FloatArray) -> float | None:
        """Return the root mean square standard error at frequencies p, where all are of use."""
        w, usable = self.weights(functionals)
        return math.sqrt((p @ self.varied(w)).clip(0.0).mean() / rows) if usable.all() else None

    def on_simplex(self, shares: FloatArray) -> FloatArray:
        """Return the frequencies f >= 0 of sum 1 whose f M is nearest to the shares of outputs.

        Nearest in sum_y (f M - s)_y^2 / q_y: that is the estimate projected in the metric of J. A
        primal-dual interior-point method, which starts feasible and so stays.
        """
        scaled, n = self.matrix * self._scale, len(self.matrix)
        j, target = scaled @ scaled.T, scaled @ (self._scale * shares)
        f: FloatArray = np.full(n, 1 / n)
        small = 1e-14 * np.trace(j) / n * np.eye(n)  # J may be singular
        z = j @ f - target
        z += 1 - z.min()
        for _ in range(_MOST_STEPS):
            if f @ z < _NO_GAP:
                break
            rest = f @ z / (10 * n) / f - z
            solved = np.linalg.solve(j + small + np.diag(z / f), np.c_[rest, np.ones(n)])
            df = solved[:, 0] - solved[:, 0].sum() / solved[:, 1].sum() * solved[:, 1]
            dz = rest - z / f * df
            step = min(1.0, 0.99 / max((-df / f).max(), (-dz / z).max(), 0.1))
            f, z = f + step * df, z + step * dz
        return np.asarray(f / f.sum())


def read_bins(support: Support, bins: Any) -> FloatArray:
    """Return as 0 and 1 which value lies in which bin: on an edge in the one above.

    ``bins`` are a number of them, or edges; as text, with commas between edges.
    """
    lattice, names = lattice_of(support), support.names if isinstance(support, Levels) else ()
    if isinstance(bins, str):
        bins = int(bins) if bins.isdecimal() else [edge.strip() for edge in bins.split(",")]
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise InputError(f"bins must be at least 1, but {bins} was given")
        places = [at * int(bins) // (int(lattice.index[-1]) + 1) for at in lattice.index.tolist()]
    else:
        given = list(bins) if np.iterable(bins) else [bins]
        codes = (names.index(edge) if edge in names else edge for edge in given)
        edges = [parse_number(code, "an edge of bins") for code in codes]
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise InputError(f"bins are a number or two or more increasing edges, not {bins!r}")
        *lower, last = edges
        places = [bisect_right(lower, v) - 1 if v <= last else -1 for v in lattice.values]
    if max(places) < 0:
        raise InputError(f"no value lies within the bins {bins}")
    return np.asarray(np.equal.outer(places, np.unique([k for k in places if k >= 0])), float)


def offered_bins(support: Support, solve: LeastSquares, rows: float) -> FloatArray:
    """Return the most bins of equal width that stand out of the noise, whatever was drawn."""
    for number in _NUMBERS:
        sets = read_bins(support, number)
        if number < support.size:
            error = solve.error(sets, rows, solve.mu)
            if error is not None and error <= _STANDS_OUT / sets.shape[1]:
                return sets
    return np.zeros((support.size, 0))


@dataclass(frozen=True)
class Expected:
    """Expected errors of a release of so many rows, whose values have these frequencies.

    None stands where there is no such error, or it cannot be estimated or told.
    """

    #: The share of rows that publishing their commonest value for everybody would keep.
    constant: float
    #: Standard deviation of the column; None for levels without an order.
    spread: float | None = None
    #: Root of the mean squared error of a released value.
    noise: float | None = None
    #: Standard error of the mean that is estimated from the release.
    mean_error: float | None = None
    #: Root mean square, over the values, of the standard errors of their estimated frequencies.
    share_error: float | None = None
    #: Root mean square, over the values, of the standard errors of their distribution function.
    cdf_error: float | None = None

    @property
    def noise_to_spread(self) -> float | None:
        """The noise as a multiple of the column's own spread."""
        if self.noise is None or self.spread is None:
            return None
        return self.noise / self.spread if self.spread else (math.inf if self.noise else 0.0)


def solver_of(
    support: Support, mechanism: DiscreteLaplace | Channel, weights: Sequence[float] = ()
) -> LeastSquares:
    """Return the equations of estimates from a mechanism; noise is cut where it tells no more."""
    if isinstance(mechanism, Channel):
        return LeastSquares(mechanism.matrix, weights)
    atoms = lattice_of(support).index
    return LeastSquares(_noise_matrix(_cuts(atoms.tolist()), atoms, mechanism), weights)


def expected_errors(
    support: Support, mechanism: DiscreteLaplace | Channel, frequencies: FloatArray, rows: int,
    labels: Channel | None = None, weights: Sequence[float] = (),
) -> Expected:  # fmt: skip
    """Return what errors to expect at given frequencies, of estimates only if rows are known."""
    p = np.asarray(frequencies / frequencies.sum())
    functionals, spread, noise, mean = [np.eye(len(p))], None, None, None
    if support.ordered:
        lattice = lattice_of(support)
        numbers = lattice.index * float(lattice.step)
        centred = numbers - p @ numbers  # shares sum to 1, so this only rounds less
        spread = math.sqrt(p @ centred**2)
        functionals += [np.triu(np.ones((len(p), len(p)))), centred[:, None]]
    if isinstance(mechanism, DiscreteLaplace):
        noise = mechanism.std
        mean = noise / math.sqrt(rows) if rows else None
    elif spread is not None:
        shown = mechanism if labels is None else mechanism.then(labels)
        noise = math.sqrt(shown.mse(np.rint(p * 2**40).astype(int).tolist()))
    found: list[float | None] = [None]
    if rows and support.size <= _MOST_REFINED:
        solve = solver_of(support, mechanism, weights)
        found = [solve.error(each, rows, p) for each in functionals]
    share, cdf, exact = (*found, None, None)[:3]
    return Expected(float(p.max()), spread, noise, mean if exact is None else exact, share, cdf)
