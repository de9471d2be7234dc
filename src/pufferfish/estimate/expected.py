# SPDX-License-Identifier: Apache-2.0
"""Expected: how well a column can be used after a release, before anything is released."""

import math
from dataclasses import dataclass

import numpy as np

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
from pufferfish.support import Levels, Support, lattice_of

#: So many values, and entries of the matrix, are looked at for the error of a share.
_MOST_VALUES, _MOST_ENTRIES = 400, 2_000_000


@dataclass(frozen=True)
class Expected:
    """Expected errors of a release of so many rows, whose values have these frequencies.

    Attributes
    ----------
    constant : float
        The share of rows that publishing their commonest value for everybody would keep.
    spread : float or None
        Standard deviation of the column; None for levels without an order.
    noise : float or None
        Root of the mean squared error of a released value.
    mean_error : float or None
        Standard error of the mean that is estimated from the release; None where there is no mean
        or it cannot be estimated.
    share_error : float or None
        Root mean square, over the values, of the standard errors of their estimated frequencies;
        None where these cannot be estimated, or the values are too many to tell.
    """

    constant: float
    spread: float | None
    noise: float | None
    mean_error: float | None
    share_error: float | None

    @property
    def noise_to_spread(self) -> float | None:
        """The noise as a multiple of the column's own spread."""
        if self.noise is None or self.spread is None:
            return None
        return self.noise / self.spread if self.spread else (math.inf if self.noise else 0.0)


def expected_errors(
    support: Support, mechanism: DiscreteLaplace | Channel, weights: FloatArray, rows: int
) -> Expected:
    """Return what errors to expect of a mechanism on values of given frequencies.

    Without a number of rows (0) there are no errors of a mean or a share.

    Notes
    -----
    Outputs have frequencies q = M'p. Weighted least squares with weights 1/q estimates p with the
    covariance (J^-1 - diag p) / rows, J = M diag(1/q) M', given the rows themselves. Outputs of
    noise beyond the support have the likelihoods of its ends, and count as these.
    """
    p = np.asarray(weights, dtype=np.float64)
    p = p / p.sum()
    numbers = None
    if not (isinstance(support, Levels) and not support.ordered):
        lattice = lattice_of(support)
        numbers = lattice.index * float(lattice.step)
    spread = None if numbers is None else math.sqrt(max(0.0, p @ (numbers - p @ numbers) ** 2))
    matrix = _matrix(support, mechanism)
    covariance = None if matrix is None else _covariance(matrix, p)
    mean = share = noise = None
    if isinstance(mechanism, DiscreteLaplace):
        noise = mechanism.std
        mean = noise / math.sqrt(rows) if rows else None
    elif numbers is not None:
        noise = math.sqrt(mechanism.mse(np.rint(p * 2**40).astype(int).tolist()))
    if covariance is not None and rows:
        share = math.sqrt(max(0.0, float(np.mean(np.diag(covariance)))) / rows)
        if numbers is not None:
            centred = numbers - p @ numbers  # shares sum to 1, so this only rounds less
            mean = math.sqrt(max(0.0, float(centred @ covariance @ centred)) / rows)
    return Expected(float(p.max()), spread, noise, mean, share)


def _matrix(support: Support, mechanism: DiscreteLaplace | Channel) -> FloatArray | None:
    """Return the finite channel of a mechanism, shape (n, outputs), or None where it is large."""
    if support.size > _MOST_VALUES:
        return None
    if isinstance(mechanism, Channel):
        return mechanism.matrix
    index = lattice_of(support).index
    last = int(index[-1])
    if (last + 1) * support.size > _MOST_ENTRIES:
        return None
    if mechanism.scale == 0:
        return np.eye(last + 1)[index]
    rate = float(mechanism.step) / mechanism.scale
    a = math.exp(-rate)
    distance = np.abs(index[:, None] - np.arange(last + 1)[None, :])
    matrix = -math.expm1(-rate) / (1 + a) * np.exp(-rate * distance)
    if last:
        for end in (0, last):
            matrix[:, end] /= -math.expm1(-rate)
    else:
        matrix[:] = 1.0
    return np.asarray(matrix, dtype=np.float64)


def _covariance(matrix: FloatArray, p: FloatArray) -> FloatArray | None:
    """Return the covariance of the estimated frequencies times the rows; None if singular."""
    q = p @ matrix
    used = q > 0
    scaled = matrix[:, used] / np.sqrt(q[used])
    information = scaled @ scaled.T
    values, vectors = np.linalg.eigh(information)
    if values[0] <= 1e-11 * values[-1]:
        return None
    return np.asarray((vectors / values) @ vectors.T - np.diag(p), dtype=np.float64)
