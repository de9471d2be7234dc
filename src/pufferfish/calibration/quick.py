# SPDX-License-Identifier: Apache-2.0
"""The loss again, for the search: plain likelihoods instead of logarithms, in cache-sized pieces.

A search needs the worst outputs at a few u, not the loss at all distances. Where the likelihood
of a secret falls below 1e-250 at another secret's atom, the ratio there is far above any epsilon
that this module is used for, and its exact size does not matter. So the likelihoods stay plain
numbers: within a block of atoms, two cumulative sums of masses scaled to the block's start; from
the other blocks, two carries (kept as logarithms, theory, section 2).
"""

from __future__ import annotations

import math

import numpy as np

from pufferfish.arrays import FloatArray
from pufferfish.errors import PufferfishError
from pufferfish.loss import LARGEST_U, Attained, FloatLoss, block_size, carries

#: Largest epsilon for which a floor under the likelihoods cannot hide a violation.
LARGEST_EPSILON = 300.0
_FLOOR = 1e-250
_PADDING = 512
#: Elements worked on at a time: a few arrays of this size fit in a second-level cache.
_PIECE = 2**15


class QuickLoss:
    """The loss as a function of u = step / theta, relative to epsilon.

    Parameters
    ----------
    loss : FloatLoss
        Atoms, masses and pairs.
    epsilon : float
        At most :data:`LARGEST_EPSILON`.
    """

    def __init__(self, loss: FloatLoss, epsilon: float) -> None:
        self.loss = loss
        self.epsilon = epsilon
        n = len(loss.index)
        unit = min(_PADDING, 1 << max(0, (n - 1).bit_length()))
        padding = -n % unit
        self._index = np.concatenate([loss.index, np.full(padding, loss.index[-1])])
        self._masses = [
            np.concatenate([p, np.zeros((len(p), padding))], axis=1) if padding else p
            for p in loss.masses
        ]
        self._places = loss.index.astype(np.float64)

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        """Return the excess at u, and the worst witness of each piece of the support, worst first.

        The excess is (loss - epsilon) / epsilon.

        Raises
        ------
        PufferfishError
            If u is so large that distances overflow: no epsilon of this module's is reached there.
        """
        if not u <= LARGEST_U:
            raise PufferfishError(f"the loss does not reach epsilon {self.epsilon!r}")
        found: list[tuple[float, Attained]] = []
        size = block_size(self.loss.index, u)
        places = self._index.reshape(-1, size)
        starts = places[:, 0]
        grown = (places - starts[:, None]) * u
        np.exp(grown, out=grown)
        shrunk = 1.0 / grown
        step = max(1, _PIECE // size)
        for rho, masses in enumerate(self._masses):
            blocks = masses.reshape(len(masses), -1, size)
            with np.errstate(divide="ignore"):
                from_left = np.log(np.einsum("sbk,bk->sb", blocks, grown))
                from_right = np.log(np.einsum("sbk,bk->sb", blocks, shrunk))
            left = np.exp(carries(starts, from_left, u))
            mirrored = (starts[-1] - starts)[::-1]
            right = np.exp(carries(mirrored, from_right[:, ::-1], u))[:, ::-1]
            for at in range(0, len(starts), step):
                piece = slice(at, at + step)
                likelihoods = _likelihoods(
                    blocks[:, piece], grown[piece], shrunk[piece], left[:, piece], right[:, piece]
                )
                found += self._largest(likelihoods, rho, at * size)
        found.sort(key=lambda pair: -pair[0])
        worst = math.log(found[0][0])
        return (worst - self.epsilon) / self.epsilon, [w for _, w in found]

    def _largest(
        self, likelihoods: FloatArray, rho: int, first: int
    ) -> list[tuple[float, Attained]]:
        """Return the largest ratio of a piece and its witness, for each pair where not all."""
        likelihoods = likelihoods[:, : len(self.loss.index) - first]
        if self.loss.all_pairs:
            if len(likelihoods) == 2:
                ratio = likelihoods[0] / likelihoods[1]
                high, low = int(np.argmax(ratio)), int(np.argmin(ratio))
                return [
                    (float(ratio[high]), Attained(rho, 0, 1, first + high)),
                    (1 / float(ratio[low]), Attained(rho, 1, 0, first + low)),
                ]
            ratio = likelihoods.max(axis=0) / likelihoods.min(axis=0)
            k = int(np.argmax(ratio))
            column = likelihoods[:, k]
            witness = Attained(rho, int(np.argmax(column)), int(np.argmin(column)), first + k)
            return [(float(ratio[k]), witness)]
        best = []
        for i, j in self.loss.pairs:
            ratio = likelihoods[i] / likelihoods[j]
            high, low = int(np.argmax(ratio)), int(np.argmin(ratio))
            best.append((float(ratio[high]), Attained(rho, i, j, first + high)))
            best.append((1 / float(ratio[low]), Attained(rho, j, i, first + low)))
        return [max(best, key=lambda pair: pair[0])]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the excess at a witness and its slope in u, in one look at the support."""
        y = self._places[witness.atom]
        rows = self.loss.masses[witness.adversary]
        lo, hi = self._window(float(y), u)
        distance = np.abs(self._places[lo:hi] - y)
        weights = np.exp(distance * -u)
        # The last digits of these sums may differ between machines: they only guide the search.
        p = rows[[witness.numerator, witness.denominator], lo:hi]
        totals = p @ weights
        if totals.min() < _FLOOR:
            value, slope = self._at_far(witness, u)
        else:
            weights *= distance
            moments = p @ weights
            value = math.log(totals[0]) - math.log(totals[1])
            slope = float(moments[1] / totals[1] - moments[0] / totals[0])
        return (value - self.epsilon) / self.epsilon, slope / self.epsilon

    def _at_far(self, witness: Attained, u: float) -> tuple[float, float]:
        """Do the same where a secret's nearest mass is too far away for plain numbers."""
        distance = np.abs(self._places - self._places[witness.atom])
        logs, slopes = [], []
        for row in (witness.numerator, witness.denominator):
            p = self.loss.masses[witness.adversary][row]
            nearest = float(distance[p > 0].min())
            weights = p * np.exp(-np.maximum(distance - nearest, 0.0) * u)
            total = float(weights.sum())
            logs.append(math.log(total) - nearest * u)
            slopes.append(-float(weights @ distance) / total)
        return logs[0] - logs[1], slopes[0] - slopes[1]

    def reach(self, u: float) -> float:
        """Return the share of the support that :meth:`at` looks at."""
        lo, hi = self._window(float(self._places[len(self._places) // 2]), u)
        return (hi - lo) / len(self._places)

    def _window(self, y: float, u: float) -> tuple[int, int]:
        """Return the slice of atoms within 60 theta; the rest weighs below 1e-26.

        Only Newton steps use it; every scale is judged by a full evaluation afterwards.
        """
        if len(self._places) < 5000:
            return 0, len(self._places)
        lo = int(np.searchsorted(self._places, y - 60.0 / u))
        hi = int(np.searchsorted(self._places, y + 60.0 / u, side="right"))
        return lo, hi


def _likelihoods(
    masses: FloatArray, grown: FloatArray, shrunk: FloatArray, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Return L_s at the atoms of some blocks, shape (m, atoms), up to a constant per atom.

    ``left`` and ``right`` (m, blocks) are what all other blocks contribute at a block's start.
    """
    rising = masses * grown
    np.cumsum(rising, axis=2, out=rising)
    rising += left[:, :, None]
    rising *= shrunk
    falling = masses * shrunk
    backwards = falling[:, :, ::-1]
    np.cumsum(backwards, axis=2, out=backwards)
    # The atom's own mass is in `rising`: take what lies strictly to its right.
    falling[:, :, :-1] = falling[:, :, 1:]
    falling[:, :, -1] = 0.0
    falling += right[:, :, None]
    falling *= grown
    rising += falling
    flat = rising.reshape(len(masses), -1)
    return np.maximum(flat, _FLOOR, out=flat)
