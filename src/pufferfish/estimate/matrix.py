# SPDX-License-Identifier: Apache-2.0
"""The finite channel that a release is to those who estimate, and weights for its outputs.

Noise beyond the last value tells nothing more than the last output: the likelihoods of all values
are in the same proportions there. So one output on each side stands for all beyond it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.release.postprocess import Postprocess
from pufferfish.support import Support, lattice_of

#: More values than this and only sums that need no matrix are estimated.
MOST_VALUES = 2000
#: Outputs of noise beyond which neighbouring ones are taken together.
_MOST_OUTPUTS = 4096
#: Singular values below this share of the largest one are none.
_CLEAR = 1e-9
#: Squares of singular values above this share of the largest are known to some digits.
_FULL_RANK = 1e-11
#: The largest error of M w - a, in the largest entry of a, where a is estimable.
_SOLVED = 1e-7
#: A standard deviation per row above it needs 10**12 rows for one digit.
USELESS = 1e6


@dataclass(frozen=True, eq=False)
class FiniteChannel:
    """The probabilities of the outputs for each value.

    Attributes
    ----------
    matrix : float64 array, shape (n_x, n_y)
    values : int64 array, shape (n_y,) or (n_y - 1,)
        For a channel the released value of each output, increasing. For noise the least released
        value of each output but the first, which stands for all below.
    exact : bool
        Whether it is a channel, which publishes no other values.
    """

    matrix: FloatArray
    values: IntArray
    exact: bool

    def counts(self, released: Mapping[int, int]) -> FloatArray:
        """Return rows by output for rows by released value."""
        shown = np.array(list(released), dtype=np.int64)
        places = np.searchsorted(self.values, shown, side="left" if self.exact else "right")
        places = np.minimum(places, self.matrix.shape[1] - 1)
        never = self.matrix[:, places].max(axis=0) == 0
        if self.exact:
            never |= self.values[places] != shown
        if never.any():
            raise InputError(
                "the released column holds a value that the plan's mechanism never publishes; was "
                "the column released by this plan, with these options?"
            )
        rows = np.array(list(released.values()), dtype=np.float64)
        counts: FloatArray = np.zeros(self.matrix.shape[1])
        np.add.at(counts, places, rows)
        return counts


def finite_channel(post: Postprocess, support: Support) -> FiniteChannel:
    """Return the finite channel of a release from a support of at most ``MOST_VALUES``."""
    mechanism = post.mechanism
    if isinstance(mechanism, Channel):
        shown, place = np.unique(post.outcomes(), return_inverse=True)
        matrix = np.zeros((support.size, len(shown)))
        np.add.at(matrix.T, place, mechanism.matrix.T)
        return FiniteChannel(matrix, shown, True)
    lattice = lattice_of(support)
    atoms = lattice.index + np.int64(lattice.origin)
    cuts = _cuts(post, atoms)
    edges = np.array([post.edge(cut) for cut in cuts], dtype=np.int64)
    rate = float(mechanism.step / Fraction(mechanism.scale)) if mechanism.scale else np.inf
    return FiniteChannel(_noise_matrix(edges, atoms, rate), np.array(cuts, dtype=np.int64), False)


def _cuts(post: Postprocess, atoms: IntArray) -> list[int]:
    """Return the least released value of each output but the first."""
    points: list[int] = np.unique(post.finish(atoms)).tolist()
    pieces = max(1, _MOST_OUTPUTS // len(points))
    cuts = {points[0], points[-1] + 1}
    for left, right in pairwise(points):
        gap = right - left
        if gap <= pieces:
            cuts.update(range(left + 1, right + 1))
        else:  # outputs as wide as each other, those of the two values around them
            cuts.update(left + -(-gap * (2 * k + 1) // (2 * pieces)) for k in range(pieces))
    low, high = post.bounds or (points[0] - 1, points[-1] + 1)
    return sorted(cut for cut in cuts if low < cut <= high)


def _noise_matrix(edges: IntArray, atoms: IntArray, rate: float) -> FloatArray:
    """Return the probabilities of the outputs between edges, shape (n, edges + 1)."""
    distance = edges[None, :] - atoms[:, None]
    # P(Z >= d) for d > 0, and P(Z <= d - 1) for d <= 0: each on the side where it is small.
    far = np.where(distance > 0, distance, 1 - distance)
    tail = np.exp(-rate * far) / (1 + np.exp(-rate))
    ends = np.ones((len(atoms), 1)), np.zeros((len(atoms), 1))
    above = np.hstack([ends[0], np.where(distance > 0, tail, 1 - tail), ends[1]])
    below = np.hstack([ends[1], np.where(distance > 0, 1 - tail, tail), ends[0]])
    # An output between two edges: a difference of tails on one side, or 1 less both.
    matrix: FloatArray = np.where(
        above[:, :-1] <= 0.5, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]
    )
    return matrix


class Inverse:
    """Weights of the outputs for linear functions of the values' frequencies.

    M w = a has many solutions where there are more outputs than the rank of M. The one with the
    least sum of d_y w_y^2 has the least variance for outputs distributed as d. That must not
    depend on the released column, or the estimate would be biased: it is taken as if all values
    were equally frequent.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._roots = np.sqrt(matrix.mean(axis=0))[:, None]
        scaled = self._over_roots(matrix.T).T
        squares, self._left = np.linalg.eigh(scaled @ scaled.T)
        if squares[0] > _FULL_RANK * squares[-1]:
            self._right = scaled.T @ (self._left / squares)
        else:
            left, singular, right = np.linalg.svd(scaled, full_matrices=False)
            clear = singular > _CLEAR * singular[0]
            self._left, self._right = left[:, clear], right[clear].T / singular[clear]

    def _over_roots(self, array: FloatArray) -> FloatArray:
        positive = np.broadcast_to(self._roots > 0, array.shape)
        divided: FloatArray = np.divide(
            array, self._roots, out=np.zeros_like(array), where=positive
        )
        return divided

    def weights(self, functionals: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return w with M w = a for a of shape (n_x, k), and where that is solved and of use."""
        w = self._over_roots(self._right @ (self._left.T @ functionals))
        w += self._over_roots(self._right @ (self._left.T @ (functionals - self._matrix @ w)))
        image = self._matrix @ w
        size = np.abs(functionals).max(axis=0)
        solved = np.abs(image - functionals).max(axis=0) <= _SOLVED * size
        variance = (self._matrix @ w**2 - image**2).max(axis=0)
        return w, solved & (variance <= USELESS**2 * size**2)

    def groups(self) -> list[list[int]]:
        """Return the finest sets of values whose frequencies can be summed up to a known sum.

        Two values are in one set where something that no output shows can shift between them:
        the parts of I - U U' that are connected. The ones of each are orthogonal to all of it.
        """
        hidden = np.abs(np.eye(len(self._left)) - self._left @ self._left.T) > _SOLVED
        groups, left = [], set(range(len(hidden)))
        while left:
            group, fresh = set(), {min(left)}
            while fresh:
                group |= fresh
                fresh = set(np.flatnonzero(hidden[sorted(fresh)].any(axis=0)).tolist()) - group
            groups.append(sorted(group))
            left -= group
        return groups
