# SPDX-License-Identifier: Apache-2.0
r"""One pass of L_s in doubles, in blocks, with a proved bound of its error.

The pass is A_k = P_k + e_k A_{k-1} with e_k = exp(-c d_k), d_k the whole number of steps between
neighbouring atoms and c = step / theta; from right to left it is the same on mirrored atoms. Done
one atom after the other it would cost n rounding errors and n calls. So the atoms are cut into
blocks of `WIDTH`, and all blocks advance together, one column of atoms at a time; a block starts
with what is carried over from the earlier ones, and these carries are the same recursion again, on
the blocks' totals (P weighted by exp(-c distance to the block's last atom)), about n / WIDTH of
them. Every factor is at most 1: nothing overflows, whatever the distances.

**Assumptions.** IEEE-754 doubles, rounded to nearest, unit u = 2^-53: every sum, product, quotient
and conversion from int64 is exact up to a relative error u. exp, log and log1p of NumPy err by at
most 4 units in the last place, that is 8 u relative. Results below the normal range may come out
as anything between 0 and eta = 2^-1022 (flushing to zero included).

**Theorem.** Let p_k = P_k exp(delta), |delta| <= mu u, be the masses as given, 0 <= P_k, sum of P_k
<= 1, and T = c (x_n - x_1) the whole range. Then the computed pass lies between
A_k exp(-lambda) - alpha and A_k exp(lambda) + alpha, where

    lambda = 1.001 u (mu + units(n) + 2.1 min(T, 800)),     alpha = 7.5 n eta,
    units(n) = 10 n                                            for n <= 2 WIDTH,
    units(n) = 11 WIDTH + 9 + units(floor(n / WIDTH))          otherwise.

*Proof.* All numbers are positive, so a computed A_k is the sum over i <= k of its true terms
P_i exp(-(t_k - t_i)), t = c x, each times a product of factors exp(delta_l) for the operations that
the term went through, plus what underflows add. A relative error r <= 8 u is a delta of at most
1.001 r (the spare thousandth also covers the second-order terms).

(1) *Arguments.* c is rounded (u), d_k is exact as a double (at most 2^53), their product is rounded
(u). So exp is applied to a number that errs by at most 2.1 u relative, a delta of 2.1 u times the
exact argument. A term goes through disjoint intervals (weights within its own block, gaps between
block ends, gaps within the last block) that together make up exactly t_k - t_i; so its arguments
contribute 2.1 u (t_k - t_i). (A subnormal c is an absolute error far below u in every argument.)
(2) *Values.* A step of the recursion multiplies by a computed exp (8 u), rounds the product (u) and
the sum (u): 10 u. For n <= 2 WIDTH there are at most n steps. Otherwise a term goes through the
weight (8 u), its product (u) and the sum of WIDTH products in any order (WIDTH u at most), then
through the pass over the blocks, units(floor(n / WIDTH)), then through at most WIDTH steps,
10 WIDTH u. (The atoms after the last whole block count as one more, shorter block, that starts
from the carry of the last whole one. Terms of the block's own atoms go through the steps only.)
(3) *Far terms.* Terms with t_k - t_i > 800 are, true or computed, below exp(-799) times the mass
and together below eta / 4. So 2.1 u min(T, 800) bounds (1) for all others.
(4) *Underflows.* Each operation adds at most eta; where a factor exp underflows, it multiplies a
state of at most 1.01. An atom takes part in at most 7 operations on each level (factor, product,
sum; weight, its product, sum; at the end a product again), and all later factors are at most
1 + 8 u. The levels have n, n / WIDTH, ... atoms, together at most 1.02 n: at most 7.3 n eta. ∎

The same holds for the exclusive pass (without P_k itself): it leaves out one sum.
"""

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import FloatArray

#: Atoms in a block. Near the cube root of 10**6, so that three levels share the errors; not a power
#: of two, or the columns of a block would compete for the same lines of the cache.
WIDTH = 100

#: The unit of rounding.
UNIT = 2.0**-53

#: The least normal double: what one operation can lose to underflow.
LEAST = 2.0**-1022

#: Far terms: exp(-800) is below every double.
_FAR = 800.0


def relative_error(size: int, rounded: int, span: float) -> float:
    """Return lambda of the theorem above.

    Parameters
    ----------
    size : int
        Number of atoms n.
    rounded : int
        mu, the errors of the masses in units of u.
    span : float
        T, the range of the support over theta.
    """
    return 1.001 * UNIT * (rounded + _units(size) + 2.1 * min(span, _FAR))


def absolute_error(size: int) -> float:
    """Return alpha of the theorem above."""
    return 7.5 * size * LEAST


def _units(size: int) -> int:
    if size <= 2 * WIDTH:
        return 10 * size
    return 11 * WIDTH + 9 + _units(size // WIDTH)


def scan(
    index: npt.NDArray[np.int64], masses: FloatArray, rate: float, *, inclusive: bool
) -> FloatArray:
    """Return the pass from left to right, for all secrets at once.

    Parameters
    ----------
    index : int64 array, shape (n,)
        Places of the atoms, increasing.
    masses : float64 array, shape (m, n)
        P_s of every secret.
    rate : float
        c, one step over theta.
    inclusive : bool
        Whether an atom's own mass counts.

    Returns
    -------
    float64 array, shape (m, n)
        Within the theorem's bounds of sum over i <= k (or i < k) of P_i exp(-c (x_k - x_i)).
    """
    secrets, size = masses.shape
    passed = np.empty((secrets, size))
    factors = np.zeros(size)
    np.multiply(np.diff(index), -rate, out=factors[1:])
    np.exp(factors[1:], out=factors[1:])
    width = size if size <= 2 * WIDTH else WIDTH
    blocks = size // width
    whole = blocks * width
    blocked = masses[:, :whole].reshape(secrets, blocks, width)
    state = np.zeros((secrets, blocks))
    tail = np.zeros((secrets, 1))
    if blocks > 1:
        carried = _carried(index[:whole].reshape(blocks, width), blocked, rate)
        state[:, 1:] = carried[:, :-1]
        tail = carried[:, -1:].copy()
    _advance(
        state,
        factors[:whole].reshape(blocks, width),
        blocked,
        passed[:, :whole].reshape(secrets, blocks, width),
        inclusive,
    )
    if whole < size:
        rest = (secrets, 1, size - whole)
        _advance(
            tail,
            factors[whole:].reshape(rest[1:]),
            masses[:, whole:].reshape(rest),
            passed[:, whole:].reshape(rest),
            inclusive,
        )
    return passed


def _carried(
    index: npt.NDArray[np.int64], masses: npt.NDArray[np.float64], rate: float
) -> FloatArray:
    """Return the pass at the last atom of every block."""
    ends = index[:, -1]
    weights = np.multiply(index - ends[:, None], rate)
    np.exp(weights, out=weights)
    totals: FloatArray = np.einsum("bj,sbj->sb", weights, masses)
    return scan(ends, totals, rate, inclusive=True)


def _advance(
    state: FloatArray,
    factors: npt.NDArray[np.float64],
    masses: npt.NDArray[np.float64],
    passed: npt.NDArray[np.float64],
    inclusive: bool,
) -> None:
    """Run the recursion in all blocks together, column by column; ``passed`` is filled in place."""
    for j in range(factors.shape[1]):
        state *= factors[:, j]
        if not inclusive:
            passed[:, :, j] = state
        state += masses[:, :, j]
        if inclusive:
            passed[:, :, j] = state
