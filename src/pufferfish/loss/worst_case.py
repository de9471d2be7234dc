# SPDX-License-Identifier: Apache-2.0
"""What one release tells at most, whatever is known of the value: its max divergence.

diameter / theta for noise, the largest ln M(y|x) / M(y|x') for a channel, infinite where a zero
stands against a positive chance (theory, section 6). Diameters over scales stay fractions: ten
times a tenth is one.
"""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from pufferfish.loss.balls import log_ends
from pufferfish.loss.kernel import likelihoods
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import precision
from pufferfish.priors.betting import ball
from pufferfish.support import Support, lattice_of

_BITS = 128


def worst_case(mechanism: Mechanism, support: Support) -> Fraction | None:
    """Return the largest ln k(y|x) / k(y|x') of one mechanism; None: infinite.

    x and x' are any values of the support. It is exact for noise, and rounded up for a channel.
    """
    if isinstance(mechanism, DiscreteLaplace):
        lattice = lattice_of(support)
        diameter = int(lattice.index[-1]) * lattice.step
        if diameter and (mechanism.scale == 0 or (lattice.step / mechanism.step).denominator != 1):
            return None
        return diameter / Fraction(mechanism.scale) if diameter else Fraction(0)
    columns, _ = likelihoods(support, mechanism, np.arange(support.size))
    columns = [column for column in columns if any(column)]
    if any(min(column) == 0 for column in columns):
        return None
    ratio = max(Fraction(max(column), min(column)) for column in columns)
    with precision(_BITS):
        return log_ends(ball(ratio))[1]


def added(terms: Iterable[Fraction | None], rows: int = 1) -> Fraction | None:
    """Return the sum of worst cases, for so many rows of one person; None: infinite."""
    found = list(terms)
    finite = [term for term in found if term is not None]
    return rows * sum(finite, Fraction(0)) if len(finite) == len(found) or not rows else None


def rank(upper: Fraction | None) -> tuple[bool, Fraction]:
    """Return what upper bounds compare by; None: infinite."""
    return upper is None, upper or Fraction(0)
