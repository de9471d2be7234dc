# SPDX-License-Identifier: Apache-2.0
"""What one release tells at most, whatever is known of the value: its max divergence."""

from collections.abc import Iterable
from fractions import Fraction

from pufferfish.loss.kernel import Mechanism
from pufferfish.numbers import IntArray
from pufferfish.support import Support


def worst_case(
    mechanism: Mechanism, support: Support, atoms: IntArray | None = None
) -> Fraction | None:
    """Return an upper bound of the largest ln k(y|x) / k(y|x'), exact for noise; None: infinite.

    ``atoms``: the positions that x and x' can have; by default the whole support. For noise it is
    diameter / theta, for a channel the logarithm of its largest ratio, rounded up (theory, 6).
    """
    raise NotImplementedError


def worst_cases(
    items: Iterable[tuple[Mechanism, Support]],
) -> Fraction | None:
    """Return the sum over several releases, one logarithm for all channels; None: infinite."""
    raise NotImplementedError
