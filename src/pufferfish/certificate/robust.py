# SPDX-License-Identifier: Apache-2.0
"""The robust loss, proved: the largest over every prior of a region, from the region's exact ends.

For one output y and an ordered pair (i, j), i != j, the largest ratio is the largest <P, k_y> over
the region of i divided by the smallest over that of j (theory, section 5). Both are found by
filling from the end of the ranked cells, in whole numbers; only the likelihoods are balls.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb

from pufferfish.certificate.arbs import exp_minus, log_bounds
from pufferfish.certificate.decide import AdditiveNoise
from pufferfish.certificate.ends import Ends, column_ends, laplace_ends, unchanged_ends
from pufferfish.certificate.fillings import checked_fillings
from pufferfish.certificate.record import Certificate, Witness
from pufferfish.certificate.statement import robust_statement_of
from pufferfish.errors import InputError
from pufferfish.precision import precision
from pufferfish.rationals import show
from pufferfish.regions import Concrete, describe_regions
from pufferfish.scenario import Scenario

_BITS = 128
_TRIES = 3


@dataclass(frozen=True)
class _Worst:
    """The largest ratio so far, and where it is; ``infinite``: a mass stands against none."""

    ratio: arb
    output: int
    adversary: int
    pair: tuple[str, str]
    infinite: bool = False


@dataclass(frozen=True)
class _Found:
    """What one evaluation found: bounds of the loss, and which side of epsilon it is on."""

    worst: _Worst
    lower: float
    upper: float
    holds: bool
    refuted: bool


def certify_robust(
    scenario: Scenario,
    mechanism: AdditiveNoise,
    regions: Sequence[Concrete],
    epsilon: Fraction | None,
) -> Certificate:
    """Prove the loss of additive Laplace noise for all priors of the regions.

    Source: theory, sections 5 and 8.

    Parameters
    ----------
    scenario : Scenario
        Numbers or ordered levels; every atom of the support is a witness.
    mechanism : DiscreteLaplace
        Only its scale and step are looked at.
    regions : sequence of Box or Ball
        One per adversary, over the protected secrets.
    epsilon : Fraction or None
        What to compare the robust loss with; None only bounds it.

    Returns
    -------
    Certificate
        ``holds`` only if the loss was proved to be at most epsilon for every prior of the regions.

    Raises
    ------
    InputError
        If the scale or epsilon is not of that kind, the regions do not fit the scenario, or the
        levels have no order.
    """
    scale = float(mechanism.scale)
    if not (math.isfinite(scale) and scale >= 0):
        raise InputError(f"the scale must be a finite number, at least 0, but it is {scale}")
    lattice = scenario.lattice
    fillings = checked_fillings(scenario, regions, epsilon)
    if mechanism.step <= 0 or (lattice.step / mechanism.step).denominator != 1:
        raise InputError(
            f"noise in steps of {show(mechanism.step)} does not reach every value in steps of "
            f"{show(lattice.step)}"
        )
    places = lattice.index.tolist()

    def ends() -> Iterator[Iterator[Ends]]:
        for rows in fillings:
            if scale == 0:
                yield unchanged_ends(rows)
            else:
                yield laplace_ends(rows, places, lattice.step / Fraction(scale))

    # Likelihoods of two values differ by at most e^(distance / theta), whatever the priors are.
    # A ball could not decide where that is e^epsilon itself.
    widest = places[-1] * lattice.step
    anyway = epsilon is not None and widest <= epsilon * Fraction(scale)
    return _prove(scenario, regions, epsilon, ends, scenario.support.name, anyway)


def certify_robust_columns(
    scenario: Scenario,
    columns: Sequence[Sequence[Fraction]],
    regions: Sequence[Concrete],
    epsilon: Fraction | None,
    name: Callable[[int], str] = str,
) -> Certificate:
    """Prove the loss of a channel for all priors of the regions.

    Parameters
    ----------
    scenario : Scenario
        n values or levels.
    columns : nested sequence of Fraction, shape (n_y, n)
        M(y | x) for all x, an entry for every output y; exact. Common factors of a column do not
        matter.
    regions : sequence of Box or Ball
        One per adversary, over the protected secrets.
    epsilon : Fraction or None
        What to compare the robust loss with.
    name : callable
        Gives the text of output y, for the witness.

    Returns
    -------
    Certificate
        As for :func:`certify_robust`.

    Raises
    ------
    InputError
        If the columns or the regions do not fit the scenario.
    """
    fillings = checked_fillings(scenario, regions, epsilon)
    size = scenario.support.size
    whole = []
    for column in columns:
        if len(column) != size or any(value.numerator < 0 for value in column):
            raise InputError(f"every output needs {size} likelihoods, none of them negative")
        common = math.lcm(*{value.denominator for value in column})
        whole.append([value.numerator * (common // value.denominator) for value in column])

    def ends() -> Iterator[Iterator[Ends]]:
        for rows in fillings:
            yield (column_ends(rows, column) for column in whole)

    return _prove(scenario, regions, epsilon, ends, name)


def _prove(
    scenario: Scenario,
    regions: Sequence[Concrete],
    epsilon: Fraction | None,
    ends: Callable[[], Iterator[Iterator[Ends]]],
    name: Callable[[int], str],
    anyway: bool = False,
) -> Certificate:
    """Evaluate at growing precision until the ball lies on one side of epsilon.

    ``anyway``: exact rationals say that no prior at all has a loss above epsilon.
    """
    bits = _BITS + (0 if epsilon is None else max(0, _smallness(epsilon)))
    found = _attempt(scenario, epsilon, ends, bits)
    for _ in range(_TRIES - 1):
        if epsilon is None or anyway or found.holds or found.refuted:
            break
        bits *= 2
        found = _attempt(scenario, epsilon, ends, bits)
    worst, holds = found.worst, found.holds or anyway
    bare = Certificate(
        method="ball" if found.holds or not anyway else "ball+rational",
        loss=min(found.upper, float(epsilon)) if holds and epsilon else found.upper,
        loss_at_least=found.lower,
        epsilon=None if epsilon is None else show(epsilon),
        holds=holds,
        decided=holds or found.refuted,
        witness=Witness(name(worst.output), worst.pair, worst.adversary),
        precision=bits,
        error_bound=None,
        statement="",
    )
    said = robust_statement_of(bare, len(scenario.priors), describe_regions(regions))
    return replace(bare, statement=said)


def _attempt(
    scenario: Scenario,
    epsilon: Fraction | None,
    ends: Callable[[], Iterator[Iterator[Ends]]],
    bits: int,
) -> _Found:
    with precision(bits):
        worst = _worst(scenario, ends())
        lower, upper = (math.inf, math.inf) if worst.infinite else log_bounds(worst.ratio)
        if epsilon is None:
            return _Found(worst, lower, upper, False, False)
        limit = 1 / exp_minus(epsilon)
        holds = not worst.infinite and bool(worst.ratio <= limit)
        return _Found(worst, lower, upper, holds, worst.infinite or bool(worst.ratio > limit))


def _smallness(epsilon: Fraction) -> int:
    return epsilon.denominator.bit_length() - epsilon.numerator.bit_length()


def _worst(scenario: Scenario, adversaries: Iterator[Iterator[Ends]]) -> _Worst:
    """Return the largest ratio over adversaries, outputs and ordered pairs, never i = j."""
    names = scenario.protected
    chosen = None
    if not scenario.is_all_pairs or len(names) == 2:
        at = {secret: k for k, secret in enumerate(names)}
        chosen = [(at[a], at[b]) for a, b in scenario.pairs]
        chosen += [(j, i) for i, j in chosen]
    worst = _Worst(arb(1), 0, 0, scenario.pairs[0])
    for rho, outputs in enumerate(adversaries):
        for y, (top, bottom) in enumerate(outputs):
            for i, j, high in _opponents(top, chosen):
                low = bottom[j]
                if high.is_zero():
                    continue
                pair = names[min(i, j)], names[max(i, j)]
                if low.is_zero():
                    return _Worst(worst.ratio, y, rho, pair, infinite=True)
                ratio = high / low
                if not ratio.is_finite():
                    # The ball of the smaller one reaches 0: nothing is known at this precision.
                    return _Worst(arb.pos_inf(), y, rho, pair)
                if ratio < worst.ratio:
                    continue
                larger = ratio.mid() > worst.ratio.mid()
                at_y, who, which = (
                    (y, rho, pair) if larger else (worst.output, worst.adversary, worst.pair)
                )
                worst = _Worst(worst.ratio.max(ratio), at_y, who, which)
    return worst


def _opponents(
    top: Sequence[arb], chosen: list[tuple[int, int]] | None
) -> Iterator[tuple[int, int, arb]]:
    """Yield for every j the largest top over the i != j (or for every chosen i), and that i."""
    if chosen is not None:
        for i, j in chosen:
            yield i, j, top[i]
        return
    # The largest before j and the largest after j: linear in the number of secrets.
    after: list[tuple[arb, int]] = [(top[-1], len(top) - 1)]
    for k in range(len(top) - 2, 0, -1):
        after.append(_larger((top[k], k), after[-1]))
    after.reverse()
    before: tuple[arb, int] | None = None
    for j in range(len(top)):
        sides = ([before] if before else []) + ([after[j]] if j < len(after) else [])
        high, i = sides[0] if len(sides) == 1 else _larger(*sides)
        yield i, j, high
        before = (top[j], j) if before is None else _larger(before, (top[j], j))


def _larger(one: tuple[arb, int], other: tuple[arb, int]) -> tuple[arb, int]:
    """Return a ball around the larger of two values, and whose it is by midpoints."""
    who = one[1] if one[0].mid() >= other[0].mid() else other[1]
    return one[0].max(other[0]), who
