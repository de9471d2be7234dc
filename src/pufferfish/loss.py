# SPDX-License-Identifier: Apache-2.0
"""The exact loss of additive Laplace noise, in floating point: linear in the support.

By the witness theorem (theory, section 2) the loss is the largest log-ratio of the likelihoods
``L_s(y) = sum_k P_s(x_k) exp(-|y - x_k| / theta)`` over the atoms y = x_1 .. x_n. All of them come
from one pass in each direction of a first-order recursion. The passes run on blocks: inside a
block the recursion is a cumulative sum of masses scaled to the block's start, between blocks the
carry is kept as a logarithm, so that nothing underflows at any distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pufferfish.arrays import FloatArray, IntArray
from pufferfish.scenario import Scenario

#: Largest span of a block in units of theta: exp(+-600) is far from overflow and underflow.
_SPAN_LIMIT = 600.0
#: Span that a block should have: an exponent of 64 costs 64 units in the last place.
_SPAN_GOAL = 64.0
_LARGEST_BLOCK = 512
_SMALLEST_GOOD_BLOCK = 64
#: Below this carry a sum with it is taken in logarithms.
_CARRY_LIMIT = -600.0
#: Beyond this distances in units of theta overflow; the loss is then beyond 1e289 or does not rise.
LARGEST_U = 1e290
#: Masses below this are left to ball arithmetic.
_LEAST_MASS = 1e-200


@dataclass(frozen=True)
class Attained:
    """Where a loss is attained: secret ``numerator`` is likelier there than ``denominator``.

    Attributes
    ----------
    adversary : int
        Position of the prior in the scenario.
    numerator, denominator : int
        Rows among the scenario's protected secrets.
    atom : int
        Position of the output on the support.
    """

    adversary: int
    numerator: int
    denominator: int
    atom: int


def log_likelihoods(index: IntArray, masses: FloatArray, u: float) -> FloatArray:
    """Return ln L_s at every atom, up to a constant common to all secrets.

    Parameters
    ----------
    index : int64 array, shape (n,)
        The atoms in units of the lattice step, strictly increasing.
    masses : float64 array, shape (m, n)
        P_s(x_k), not negative; each row has mass somewhere.
    u : float
        step / theta, above 0.

    Returns
    -------
    float64 array, shape (m, n)

    Notes
    -----
    Theory, section 2. Masses below 1e-290 lose precision here; the certificate does not.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left: FloatArray = _pass(index, masses, u)
        mirrored = (index[-1] - index)[::-1]
        right = _pass(mirrored, masses[:, ::-1], u)[:, ::-1]
        # The atom's own mass is in `left`; what comes from its right is one gap further away.
        strictly_right = right[:, 1:] - np.diff(index) * u
        _log_add(left[:, :-1], strictly_right)
    return left


def _log_add(into: FloatArray, other: FloatArray) -> None:
    """Set ``into`` to ln(exp(into) + exp(other)); at most one of them may be -inf."""
    larger = np.maximum(into, other)
    np.minimum(into, other, out=into)
    into -= larger
    np.exp(into, out=into)
    np.log1p(into, out=into)
    into += larger


def _pass(index: IntArray, masses: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_{j <= k} P(x_j) exp(-(x_k - x_j) u) for every k, shape (m, n)."""
    m, n = masses.shape
    size = block_size(index, u)
    blocks = -(-n // size)
    padding = blocks * size - n
    if padding:
        index = np.concatenate([index, np.full(padding, index[-1])])
        masses = np.concatenate([masses, np.zeros((m, padding))], axis=1)
    places = index.reshape(blocks, size)
    starts = places[:, 0]
    exponents = (places - starts[:, None]) * u
    sums = masses.reshape(m, blocks, size) * np.exp(exponents)
    np.cumsum(sums, axis=2, out=sums)
    carry = carries(starts, np.log(sums[:, :, -1]), u)
    far = (carry < _CARRY_LIMIT) & (carry > -np.inf)
    logs = np.log(sums + np.exp(carry)[:, :, None])
    if far.any():
        logs[far] = np.logaddexp(np.log(sums[far]), carry[far][:, None])
    logs -= exponents
    flat: FloatArray = logs.reshape(m, blocks * size)[:, :n]
    return flat


def block_size(index: IntArray, u: float) -> int:
    """Return the largest power of two for which every block spans little enough."""
    size = min(_LARGEST_BLOCK, 1 << max(0, int(len(index) - 1).bit_length()))
    while size > 1:
        starts = index[::size]
        last = np.minimum(np.arange(size - 1, len(index) + size - 1, size), len(index) - 1)
        span = float((index[last[: len(starts)]] - starts).max()) * u
        if span <= _SPAN_GOAL or (span <= _SPAN_LIMIT and size <= _SMALLEST_GOOD_BLOCK):
            break
        size //= 2
    return size


def carries(starts: IntArray, block_sums: FloatArray, u: float) -> FloatArray:
    """Return ln of what all earlier blocks contribute at the start of each block, shape (m, b).

    A scan by doubling: after the step with shift d each entry covers the 2 d blocks before it.
    """
    m, blocks = block_sums.shape
    carry = np.full((m, blocks), -np.inf)
    if blocks == 1:
        return carry
    carry[:, 1:] = block_sums[:, :-1] - np.diff(starts) * u
    shift = 1
    while shift < blocks - 1:
        distance = (starts[1 + shift :] - starts[1:-shift]) * u
        carry[:, 1 + shift :] = np.logaddexp(carry[:, 1 + shift :], carry[:, 1:-shift] - distance)
        shift *= 2
    return carry


class FloatLoss:
    """Loss of Laplace noise for one scenario as a function of u = step / theta, in logarithms.

    Attributes
    ----------
    index : int64 array, shape (n,)
        Atoms with mass under some protected secret, in units of the lattice step.
    atoms : int64 array, shape (n,)
        Their positions on the scenario's support.
    masses : list of float64 arrays, shape (m, n)
        One per adversary.
    pairs : list of (int, int)
        Rows of ``masses``.
    all_pairs : bool
        Whether every two rows are a pair: then max - min over the rows suffices.
    """

    def __init__(
        self,
        index: IntArray,
        masses: list[FloatArray],
        pairs: list[tuple[int, int]],
        all_pairs: bool,
        atoms: IntArray | None = None,
    ) -> None:
        self.index = index
        self.masses = masses
        self.pairs = pairs
        self.all_pairs = all_pairs
        self.atoms = np.arange(len(index)) if atoms is None else atoms

    @classmethod
    def of(cls, scenario: Scenario) -> FloatLoss:
        """Take the protected secrets' probabilities and the pairs from a scenario."""
        secrets = scenario.protected
        masses = []
        for prior in scenario.priors:
            rows = [prior.row(s) for s in secrets]
            whole = rows == list(range(len(prior.secrets)))
            masses.append(prior.probabilities if whole else prior.probabilities[rows])
        place = {s: k for k, s in enumerate(secrets)}
        pairs = [(place[a], place[b]) for a, b in scenario.pairs]
        index = scenario.lattice.index
        # Outputs that no secret of a pair can cause are no witnesses.
        seen = np.zeros(len(index), dtype=bool)
        for rows_of_masses in masses:
            for row in rows_of_masses:
                seen |= row > 0
        atoms = np.flatnonzero(seen)
        if len(atoms) < len(index):
            index, masses = index[atoms], [p[:, atoms] for p in masses]
        return cls(index, masses, pairs, scenario.is_all_pairs, atoms)

    def worst(self, u: float) -> tuple[float, Attained]:
        """Return the loss at u > 0, and where it is attained."""
        found = [
            self._largest(log_likelihoods(self.index, masses, u), rho)
            for rho, masses in enumerate(self.masses)
        ]
        return max(found, key=lambda pair: pair[0])

    def unchanged(self) -> tuple[float, Attained]:
        """Return the loss of publishing without noise (theta = 0); 0/0 is skipped."""
        everyone = [list(range(len(self.masses[0])))]
        groups = everyone if self.all_pairs else [[i, j] for i, j in self.pairs]
        found = [
            _largest_unchanged(masses, group, rho)
            for rho, masses in enumerate(self.masses)
            for group in groups
        ]
        return max(found, key=lambda pair: pair[0])

    def _largest(self, logs: FloatArray, rho: int) -> tuple[float, Attained]:
        if self.all_pairs:
            gap = logs.max(axis=0) - logs.min(axis=0)
            atom = int(np.argmax(gap))
            column = logs[:, atom]
            witness = Attained(rho, int(np.argmax(column)), int(np.argmin(column)), atom)
            return float(gap[atom]), witness
        best = (-1.0, Attained(rho, 0, 0, 0))
        for i, j in self.pairs:
            with np.errstate(invalid="ignore"):
                gap = np.abs(logs[i] - logs[j])
            atom = int(np.argmax(np.where(np.isnan(gap), -1.0, gap)))
            if gap[atom] > best[0]:
                first = logs[i, atom] >= logs[j, atom]
                witness = Attained(rho, i if first else j, j if first else i, atom)
                best = (float(gap[atom]), witness)
        return best


def _largest_unchanged(masses: FloatArray, group: list[int], rho: int) -> tuple[float, Attained]:
    """Return the largest log-ratio between two secrets of a group at one atom, and where."""
    chosen = masses if len(group) == len(masses) else masses[group]
    high = np.maximum.reduce(chosen)
    low = np.minimum.reduce(chosen)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = high / low
    # An atom that no secret of the group has (0/0) says nothing.
    atom = int(np.argmax(np.where(np.isnan(ratio), 0.0, ratio)))
    column = chosen[:, atom]
    witness = Attained(rho, group[int(np.argmax(column))], group[int(np.argmin(column))], atom)
    return math.log(ratio[atom]), witness


def fits_doubles(scenario: Scenario) -> bool:
    """Whether no mass is so small that likelihoods would vanish in doubles."""
    return not any(
        bool(((prior.probabilities < _LEAST_MASS) & (prior.counts != 0)).any())
        for prior in scenario.priors
        if prior.counts.dtype == object
    )
