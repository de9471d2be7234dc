# SPDX-License-Identifier: Apache-2.0
"""One more mechanism of any kind, calibrated for as much of the budget as still fits.

A channel is not a member of a family with one parameter, and how it adds to what is already out
has no closed form. But any way to calibrate for an epsilon of its own gives a family: the largest
own epsilon whose mechanism keeps everything together within the budget is found by halving. What
is returned was proved; that no larger own epsilon would do is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.arrays import CountArray
from pufferfish.errors import InputError
from pufferfish.halving import largest_own
from pufferfish.joint.axes import Axis
from pufferfish.joint.loss import joint_loss_of
from pufferfish.joint.problem import LARGEST_GRID
from pufferfish.joint.record import DoesNotFit, JointLoss
from pufferfish.joint.solve import already_out, nothing_left, releases_on
from pufferfish.mechanisms import Mechanism
from pufferfish.rationals import show


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mechanism that fits beside what is already out.

    Attributes
    ----------
    mechanism : DiscreteLaplace or Channel
        What was calibrated.
    own : Fraction
        The epsilon that it was calibrated for.
    loss : JointLoss
        The proven loss of everything together.
    """

    mechanism: Mechanism
    own: Fraction
    loss: JointLoss


def fit(
    masses: Sequence[CountArray],
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    column: int,
    epsilon: Fraction,
    calibrate: Callable[[Fraction], Mechanism],
    tries: int = 12,
    limit: int = LARGEST_GRID,
) -> Fitted:
    """Return the mechanism of the largest own epsilon that keeps everything within epsilon.

    Parameters
    ----------
    masses : sequence of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary.
    axes : sequence of Axis
        The k columns, with what is already out.
    pairs : sequence of (int, int)
        Rows of secrets.
    column : int
        The axis that the mechanism is for.
    epsilon : Fraction
        Above 0; what the joint loss of everything together may be.
    calibrate : callable
        Returns the mechanism for an epsilon of its own.
    tries : int
        How many mechanisms are calibrated at most: the own epsilon is found to within
        ``epsilon * 2**(1 - tries)``.
    limit : int
        Cells that the grid of outputs may have.

    Raises
    ------
    DoesNotFit
        If what is out uses up epsilon, or no mechanism that was tried fits.
    GridTooLarge
        As :func:`pufferfish.joint.joint_loss_of`.
    """
    if epsilon <= 0 or tries < 1:
        raise InputError("epsilon must be above 0, and at least one mechanism must be tried")
    out = joint_loss_of(masses, axes, pairs, limit=limit)
    if not out.at_most(epsilon):
        raise nothing_left(releases_on(axes), out.value, epsilon)

    def attempt(own: Fraction) -> tuple[Mechanism, JointLoss] | None:
        mechanism = calibrate(own)
        added = [
            Axis(a.support, (*a.releases, mechanism)) if k == column else a
            for k, a in enumerate(axes)
        ]
        loss = joint_loss_of(masses, added, pairs, limit=limit)
        return (mechanism, loss) if loss.at_most(epsilon) else None

    best = largest_own(epsilon, attempt, tries)
    if best is None:
        raise DoesNotFit(
            f"{already_out(releases_on(axes), out.value)}; no further release was found that fits "
            f"within epsilon {show(epsilon)} beside that"
        )
    (mechanism, loss), own = best
    return Fitted(mechanism, own, loss)
