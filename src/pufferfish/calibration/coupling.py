# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling of a pair, with exact ties.

The sorted coupling has the joint distribution function min(F_i(x), F_j(x')) and at most
n_i + n_j - 1 cells. Cumulative sums that are equal must be seen to be equal: a rounding error would
leave a sliver of mass that travels across the whole range (theory, section 3).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import fmpz

from pufferfish.numbers import INT64_SAFE, CountArray, IntArray
from pufferfish.priors.scenario import PairView

#: Quotients of products of totals below this are found in doubles and mended in 64 bits.
_PRODUCT_SAFE = 2**112


@dataclass(frozen=True, eq=False)
class Coupling:
    """The c cells of the comonotone coupling of P_i (x) and P_j (x'), in increasing order.

    ``first`` and ``second`` are the positions of x and x' among the pair's atoms, ``distance`` is
    |x - x'| in steps. The mass of all cells up to one is ``(whole + rest / N_i) / N_j`` exactly,
    where N_i and N_j are the totals of the two secrets. All arrays are integers of shape (c,).
    """

    view: PairView
    first: IntArray
    second: IntArray
    distance: IntArray
    whole: CountArray
    rest: CountArray

    @cached_property
    def largest_distance(self) -> int:
        """The Wasserstein-infinity distance of the pair, in steps."""
        return int(self.distance.max())

    @property
    def total(self) -> int:
        """What all masses sum to, N_i N_j."""
        return self.view.total_first * self.view.total_second

    @cached_property
    def mass(self) -> CountArray:
        """The mass of each cell over ``total``: exact integers, or doubles where these are long."""
        total = self.view.total_first
        whole, rest = np.diff(self.whole, prepend=0), np.diff(self.rest, prepend=0)
        if whole.dtype == object or self.total < INT64_SAFE:
            return whole * total + rest
        # A small mass is a small integer: there, the rest may cancel the whole.
        small = np.minimum(whole, 1) * total + rest
        return np.where(whole <= 1, small, whole * float(total) + rest)


def comonotone(view: PairView) -> Coupling:
    """Return the comonotone coupling of a pair, exactly and in linear time.

    The paper's pi*, its last term read as F(x-1, x'-1); theory, section 3. With
    ``C_i N_j = whole N_i + rest`` two cumulative sums compare as ``C_j`` and ``whole`` do, and they
    tie where these are equal and ``rest`` is 0: no product of counts is ever sorted.
    """
    at_first, at_second = np.flatnonzero(view.counts_first), np.flatnonzero(view.counts_second)
    ends_second = np.cumsum(view.counts_second[at_second])
    whole, rest = _quotients(
        np.cumsum(view.counts_first[at_first]), view.total_second, view.total_first
    )
    # A stable sort of two increasing runs is a merge. On equal keys the second's ends come first.
    keys = np.concatenate([ends_second, whole])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    rests = np.concatenate([np.zeros(len(ends_second), dtype=rest.dtype), rest])[order]
    last = np.flatnonzero(np.append((np.diff(keys) != 0) | (np.diff(rests) != 0), True))
    # A cell belongs to the atoms that were open before its cut.
    before = np.append(0, last[:-1] + 1)
    closed = np.append(0, np.cumsum(order >= len(ends_second)))[before]
    first, second = at_first[closed], at_second[before - closed]
    distance = np.abs(view.index[first] - view.index[second])
    return Coupling(view, first, second, distance, keys[last], rests[last])


def _quotients(ends: CountArray, factor: int, divisor: int) -> tuple[CountArray, CountArray]:
    """Return quotient and remainder of ``ends * factor`` by a divisor, exactly; ends <= divisor."""
    if ends.dtype == object or factor * divisor >= _PRODUCT_SAFE:
        times, by = fmpz(factor), fmpz(divisor)  # quicker than Python's own where these are long
        pairs = [divmod(fmpz(end) * times, by) for end in ends.tolist()]
        whole, rest = np.array([[*map(int, pair)] for pair in pairs], dtype=object).T
        return whole, rest
    # The product may wrap in 64 bits. What is left of it after the estimate does not, for the
    # estimate is off by less than factor * 2**-50 + 1, and so what is left is below 2**62 + 2**62.
    quotient = (ends * (factor / divisor)).astype(np.int64)
    left = ends * np.int64(factor) - quotient * np.int64(divisor)
    missing = left // divisor
    return quotient + missing, left - missing * divisor
