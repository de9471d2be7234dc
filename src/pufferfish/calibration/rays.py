# SPDX-License-Identifier: Apache-2.0
"""The extreme rays of the private columns: what every private channel is made of.

A channel is private if and only if each column m_y = M(y|.) lies in the cone of all m >= 0 with
P_i.m <= E P_j.m for every protected pair, in both orders, and every adversary. It is then a sum of
extreme rays of that cone, so that a complete list of them describes every private channel.
"""

import math
from typing import Any

import numpy as np

from pufferfish.calibration.channel_task import Cone
from pufferfish.errors import InputError
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import Point

#: More rays are refused, and more levels, constraints, and comparisons on the way to them.
MOST_RAYS, MOST_LEVELS, _MOST_FORMS, _MOST_WORK = 20_000, 2000, 100_000, 2 * 10**8
#: What is below 0 by so much in doubles is below 0.
_CLEAR = 1e-9


def too_many() -> InputError:
    """Return the refusal of too many rays."""
    return InputError(
        f"the best channel for estimates is found among at most {MOST_RAYS:,} extreme rays, and "
        "these values, secrets and pairs need more; merge levels or take a coarser step (--step), "
        "name fewer pairs, merge secrets, or ask for best_for='kept' (--best-for kept)"
    )


def rays_of(cone: Cone) -> FloatArray:
    """Return all extreme rays of a cone of points, a row each that sums to 1; refuse too many.

    By double description in whole numbers: each constraint cuts off the rays that violate it, and
    adds those where it meets the edges between them and the others. Two rays span an edge if no
    third one is tight wherever both are; then at least n - 2 constraints are.
    """
    if len(cone.sets) * len(cone.pairs) > _MOST_FORMS:
        raise too_many()
    # P_i - E P_j of every adversary and pair, up to a factor.
    top, bottom, forms = cone.bound.numerator, cone.bound.denominator, []
    for own in cone.sets:
        points = [(e.masses.ravel().astype(object), e.total) for e in own if isinstance(e, Point)]
        for (p, of_p), (q, of_q) in ((points[i], points[j]) for i, j in cone.pairs):
            form = bottom * of_q * p - top * of_p * q
            forms.append(form // (math.gcd(*form) or 1))
    n, work = len(forms[0]), 0
    rays: Any = np.eye(n, dtype=int).astype(object)
    # Where m_x = 0, and then where each constraint is tight that cut something off.
    tight, doubles = ~np.eye(n, dtype=bool), np.eye(n)
    for form in forms:
        if (doubles @ (form / max(abs(form))).astype(float)).max() < -_CLEAR:
            continue
        values = rays @ form
        above, kept = np.flatnonzero(values > 0), np.flatnonzero(values <= 0)
        if not len(above):
            continue
        found, marks, count = [rays[kept]], [tight[kept]], len(kept)
        # For each ray a column of bits in whole numbers.
        bits = np.packbits(np.pad(tight, ((0, 0), (0, -tight.shape[1] % 64))), axis=1)
        bits = np.ascontiguousarray(bits.view(np.uint64).T)
        for i in above:
            # Whatever is tight wherever both ends of an edge are is near, too.
            common = bits & bits[:, i, None]
            near = np.flatnonzero(np.bitwise_count(common).sum(axis=0) >= n - 2)
            common, down = common[:, near, None], values[near] < 0
            ends = common[:, None, down, 0]
            work += bits.size + common.size * down.sum()
            if work * math.isqrt(len(cone.sets)) > _MOST_WORK:  # of many, numbers are long, too
                raise too_many()
            edge = ((common & ends) == ends).all(axis=0).sum(axis=0) == 2
            near = near[down][edge]
            found.append(values[i] * rays[near] - values[near, None] * rays[i])
            marks.append(tight[near] & tight[i])
            count += len(near)
            if count > MOST_RAYS:
                raise too_many()
        rays, tight = np.concatenate(found), np.concatenate(marks)
        rays[len(kept) :] //= np.gcd.reduce(rays[len(kept) :], axis=1)[:, None]
        on = np.append(values[kept] == 0, np.ones(count - len(kept), dtype=bool))
        tight = np.column_stack([tight, on])
        doubles = (rays / rays.sum(axis=1)[:, None]).astype(float)
    return doubles
