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

#: More rays are refused.
MOST_RAYS = 20_000


def rays_of(cone: Cone) -> FloatArray:
    """Return all extreme rays of a cone of points, a row each that sums to 1; refuse too many.

    By double description in whole numbers: each constraint cuts off the rays that violate it, and
    adds those where it meets the edges between them and the others. Two rays span an edge if no
    third one is tight wherever both are; then at least n - 2 constraints are.
    """
    # P_i - E P_j of every adversary and pair, up to a factor.
    top, bottom, forms = cone.bound.numerator, cone.bound.denominator, []
    for own in cone.sets:
        points = [(e.masses.ravel().astype(object), e.total) for e in own if isinstance(e, Point)]
        for (p, of_p), (q, of_q) in ((points[i], points[j]) for i, j in cone.pairs):
            form = bottom * of_q * p - top * of_p * q
            forms.append(form // (math.gcd(*form) or 1))
    n = len(forms[0])
    rays: Any = np.eye(n, dtype=int).astype(object)
    # Where m_x = 0, and then where each constraint is tight; as numbers, for fast products.
    tight = 1 - np.eye(n, dtype=np.float32)
    for form in forms:
        values = rays @ form
        kept, under = np.flatnonzero(values <= 0), np.flatnonzero(values < 0)
        found, marks, of_under, count = [rays[kept]], [tight[kept]], tight[under], len(kept)
        for i in np.flatnonzero(values > 0):
            near = np.flatnonzero(of_under @ tight[i] >= n - 2)
            common = of_under[near] * tight[i]
            edge = (tight @ common.T >= common.sum(axis=1)).sum(axis=0) == 2
            near, common = under[near[edge]], common[edge]
            found.append(values[i] * rays[near] - values[near, None] * rays[i])
            marks.append(common)
            count += len(near)
            if count > MOST_RAYS:
                raise InputError(
                    f"the best channel for estimates is found among at most {MOST_RAYS:,} extreme "
                    "rays, and these values, secrets and pairs have more; name fewer pairs, merge "
                    "secrets or levels, or ask for best_for='kept' (--best-for kept)"
                )
        rays, tight = np.concatenate(found), np.concatenate(marks)
        rays[len(kept) :] //= np.gcd.reduce(rays[len(kept) :], axis=1)[:, None]
        on = np.append(values[kept] == 0, np.ones(count - len(kept), dtype=bool))
        tight = np.column_stack([tight, on.astype(np.float32)])
    return np.asarray((rays / rays.sum(axis=1)[:, None]).astype(float))
