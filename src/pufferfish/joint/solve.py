# SPDX-License-Identifier: Apache-2.0
"""Scales for further releases, such that everything together stays within epsilon.

**One column** needs no search: releases of scales theta_1 .. theta_k cost loss(theta_eff) with
1/theta_eff = sum 1/theta_l, so they stay within epsilon if and only if that sum is at most
1 / theta*(epsilon) (theory, section 6). k equal releases need k theta* each, and what is left for
the next one is 1/theta* - sum 1/theta_l.

**Several columns**, with given ratios of the scales: the joint loss never rises with the common
factor t. *Proof.* For t_2 > t_1 the noise of scale t_2 r is that of scale t_1 r plus independent
noise (theory, section 2), column by column. So what is released at t_2 is computed from what is
released at t_1, the releases that are already out among it, without looking at the values again;
and the likelihood of an output is then a mixture of the likelihoods of outputs at t_1, none of
which has a ratio beyond e^loss(t_1). So there is a least factor, and a bisection finds it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pufferfish.arrays import CountArray
from pufferfish.errors import InputError, PufferfishError, counted
from pufferfish.joint.axes import Axis
from pufferfish.joint.fast import BeyondDoubles, FastLoss
from pufferfish.joint.loss import joint_loss_of
from pufferfish.joint.problem import LARGEST_GRID, make_problem
from pufferfish.joint.record import DoesNotFit, JointLoss
from pufferfish.joint.root import last_inside
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.rationals import float_up, show
from pufferfish.support import lattice_of

#: Attempts at the proof; each raises the factor further.
_TRIES = 60
#: A factor that has to be raised by more than this was not found at all.
_LARGEST_RISE = Fraction(1, 100)


def already_out(releases: int, loss: float, how: str = "") -> str:
    """Return how a refusal begins: what is out, and what that costs.

    Parameters
    ----------
    releases : int
        How many there are.
    loss : float
        A bound of their joint loss; may be infinite.
    how : str
        What the bound is made of, where it is not the joint loss itself.
    """
    value = "infinity" if math.isinf(loss) else f"{loss:.6g}"
    made = f" ({how})" if how else ""
    return (
        f"what is already out ({counted(releases, 'release')}) has a joint loss of up to "
        f"{value}{made}"
    )


def nothing_left(
    releases: int, loss: float, epsilon: Fraction, how: str = "", hint: str = ""
) -> DoesNotFit:
    """Return the refusal where what is out uses up epsilon; ``hint`` ends its text."""
    out = already_out(releases, loss, how)
    return DoesNotFit(f"{out}, which leaves nothing of epsilon {show(epsilon)}{hint}")


def releases_on(axes: Sequence[Axis]) -> int:
    """Return how many releases there are of all columns."""
    return sum(len(axis.releases) for axis in axes)


def common_scale(theta_star: float, releases: int) -> float:
    """Return the least scale that lets one column be released several times within epsilon.

    Parameters
    ----------
    theta_star : float
        theta*(epsilon), or any scale at which one release alone is within epsilon; 0: unchanged.
    releases : int
        How many, each with independent noise of that scale.

    Returns
    -------
    float
        releases * theta_star, rounded up.
    """
    if releases < 1:
        raise InputError(f"the number of releases must be at least 1, but {releases} was given")
    return next_scale(theta_star, (), releases)


def next_scale(theta_star: float, already: Iterable[float], releases: int = 1) -> float:
    """Return the least scale for further releases of one column, given the scales already out.

    Parameters
    ----------
    theta_star : float
        theta*(epsilon), or any scale at which one release alone is within epsilon; 0: unchanged.
    already : iterable of float
        Scales of the Laplace noise of the releases that are out.
    releases : int
        How many more, all of the scale that is returned.

    Returns
    -------
    float
        Rounded up: with it, sum 1/theta <= 1/theta_star in exact rationals.

    Raises
    ------
    DoesNotFit
        If what is out uses up epsilon, or leaves so little that no scale is a finite double.
    """
    if theta_star == 0:
        return 0.0
    scales = [Fraction(scale) for scale in already]
    left = 1 / Fraction(theta_star) if 0 not in scales else Fraction(0)
    left -= sum((1 / scale for scale in scales if scale), Fraction(0))
    scale = float_up(releases / left) if left > 0 else math.inf
    if math.isinf(scale):
        raise DoesNotFit(
            f"what is already out of this column ({counted(len(scales), 'release')}) leaves no "
            "room for another release"
        )
    return scale


@dataclass(frozen=True)
class Further:
    """Further releases that fit.

    Attributes
    ----------
    mechanisms : tuple of DiscreteLaplace
        One for each (axis, ratio) that was asked for.
    loss : JointLoss
        The proven loss of everything together.
    least : bool
        Whether the scales are the least ones (up to rounding); where doubles cannot find them,
        larger ones that are safe whatever the correlation are taken.
    """

    mechanisms: tuple[DiscreteLaplace, ...]
    loss: JointLoss
    least: bool = True


def least_scales(
    masses: Sequence[CountArray],
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    further: Sequence[tuple[int, Fraction]],
    epsilon: Fraction,
    limit: int = LARGEST_GRID,
) -> Further:
    """Return noise of the least scales in given ratios that keeps everything within epsilon.

    Parameters
    ----------
    masses : sequence of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary.
    axes : sequence of Axis
        The k columns, with what is already out.
    pairs : sequence of (int, int)
        Rows of secrets.
    further : sequence of (int, Fraction)
        One for each further release: the position of its axis, and the ratio of its scale, above
        0. One axis may come several times.
    epsilon : Fraction
        Above 0; what the joint loss of all releases together may be.
    limit : int
        Cells that the grid of outputs may have.

    Returns
    -------
    Further
        Scales are 0 where the unchanged columns fit.

    Raises
    ------
    DoesNotFit
        If what is already out uses up epsilon.
    GridTooLarge
        As :func:`pufferfish.joint.joint_loss_of`.
    InputError
        If a ratio is not above 0, or noise does not suit a column.
    """
    if epsilon <= 0 or not further or any(ratio <= 0 for _, ratio in further):
        raise InputError("epsilon and the ratio of every further release must be above 0")
    steps = [lattice_of(axes[a].support).step for a, _ in further]

    def mechanisms(factor: Fraction) -> tuple[DiscreteLaplace, ...]:
        return tuple(
            DiscreteLaplace(float_up(factor * ratio), step)
            for (_, ratio), step in zip(further, steps, strict=True)
        )

    def judged(factor: Fraction) -> Further:
        chosen = mechanisms(factor)
        return Further(
            chosen, joint_loss_of(masses, _with(axes, further, chosen), pairs, limit=limit)
        )

    unchanged = judged(Fraction(0))
    if unchanged.loss.at_most(epsilon):
        return unchanged
    out = joint_loss_of(masses, axes, pairs, limit=limit)
    if out.upper is None or out.upper >= epsilon:
        raise nothing_left(releases_on(axes), out.value, epsilon)
    one = make_problem(masses, _with(axes, further, mechanisms(Fraction(1))), pairs, limit=limit)
    # Per unit of 1 / factor: what the further releases add to the rates, and to the loss at most.
    bases, rises, widest = [], [], Fraction(0)
    for axis, column in zip(one.merged, one.columns, strict=True):
        if axis.noisy:
            step = lattice_of(axis.axis.support).step
            rises.append(sum((step / ratio for a, ratio in further if a == column), Fraction(0)))
            bases.append(step * _rate(axes[column]))
            widest += int(axis.index[-1]) * rises[-1]
    if widest == 0:
        raise DoesNotFit(f"what is already out leaves nothing of epsilon {show(epsilon)}")
    enough = widest / (epsilon - out.upper)
    try:
        loss = FastLoss(one)
    except BeyondDoubles:
        return replace(_proved(judged, enough, epsilon), least=False)
    start, least = _searched(loss, bases, rises, epsilon, enough)
    return replace(_proved(judged, start, epsilon), least=least)


def _rate(axis: Axis) -> Fraction:
    """Return 1 / theta_eff of the noise that is out."""
    scales = [m.scale for m in axis.releases if isinstance(m, DiscreteLaplace)]
    return sum((1 / Fraction(scale) for scale in scales), Fraction(0))


def _with(
    axes: Sequence[Axis],
    further: Sequence[tuple[int, Fraction]],
    mechanisms: Sequence[DiscreteLaplace],
) -> list[Axis]:
    """Return the axes with the further releases added."""
    added: dict[int, list[DiscreteLaplace]] = {}
    for (a, _), mechanism in zip(further, mechanisms, strict=True):
        added.setdefault(a, []).append(mechanism)
    return [Axis(axis.support, (*axis.releases, *added.get(a, ()))) for a, axis in enumerate(axes)]


def _searched(
    loss: FastLoss,
    bases: Sequence[Fraction],
    rises: Sequence[Fraction],
    epsilon: Fraction,
    enough: Fraction,
) -> tuple[Fraction, bool]:
    """Return the factor that doubles find, and whether it is the least one.

    ``enough`` is one that is within epsilon for sure.
    """
    goal = float(epsilon)

    def excess(inverse: float) -> float:
        rates = [b + Fraction(inverse) * r for b, r in zip(bases, rises, strict=True)]
        return loss.at(rates).value - goal

    inside = float(1 / enough)
    try:
        value = excess(inside)
        if value > 0:  # by rounding only: here the worst case is the loss
            return enough, True
        outside, beyond = inside, value
        while beyond <= 0:
            inside, value = outside, beyond
            outside = 4 * inside
            beyond = excess(outside)
    except BeyondDoubles:
        return 1 / Fraction(inside), False
    return 1 / Fraction(last_inside(excess, (inside, value), (outside, beyond), goal)), True


def _proved(judged: Callable[[Fraction], Further], factor: Fraction, epsilon: Fraction) -> Further:
    """Return the first proven choice at or above a factor, raised by as little as it takes."""
    raised = factor
    for attempt in range(_TRIES):
        found = judged(raised)
        if found.loss.at_most(epsilon):
            return found
        rise = Fraction(2) ** (attempt - 52)
        if found.loss.upper is not None:
            # A rise of the factor lowers the loss by about as much, relative to each.
            rise = max(rise, min(2 * (found.loss.upper / epsilon - 1), Fraction(1, 1000)))
        raised *= 1 + rise
        if raised > factor * (1 + _LARGEST_RISE):
            break
    raise PufferfishError(
        f"no scales near the factor {float(factor):.6g} could be proved at epsilon "
        f"{show(epsilon)}; please report it"
    )
