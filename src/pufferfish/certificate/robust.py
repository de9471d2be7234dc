# SPDX-License-Identifier: Apache-2.0
"""The robust loss, proved: the largest over every prior of a region, from the region's exact ends.

For one output y and an ordered pair (i, j), i != j, the largest ratio is the largest <P, k_y> over
the region of i divided by the smallest over that of j (theory, section 5). Both are found here by
filling from the end of the ranked cells, in whole numbers; only the likelihoods are balls.

For Laplace noise cells rank by their distance from y, and a whole stretch of them on either side
is full or empty. Its sum comes from two passes over the support, so that n outputs cost n log n
steps. For a channel every output ranks the cells by its own column, in exact rationals.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise

from flint import arb, fmpq

from pufferfish.certificate.arbs import exp_minus, log_bounds
from pufferfish.certificate.decide import AdditiveNoise
from pufferfish.certificate.record import Certificate, Witness
from pufferfish.certificate.statement import shown_down, shown_up
from pufferfish.errors import InputError
from pufferfish.precision import precision
from pufferfish.rationals import float_up, show
from pufferfish.regions import Box, Concrete, describe_regions
from pufferfish.scenario import Scenario

_BITS = 128
_TRIES = 3


@dataclass(frozen=True)
class Filling:
    """The priors of one secret's region: ``least <= P <= least + room``, sum P = 1.

    The ball of radius tau around P is the same with ``least`` 0 and ``room`` the masses, 1 - tau of
    which stay, and tau on one cell of choice.

    Attributes
    ----------
    least, room : tuple of int, shape (n,)
        Numerators over ``unit``.
    spread : int
        What is to be distributed over the rooms.
    free : int
        What goes to the best cell on top.
    unit : int
    """

    least: tuple[int, ...]
    room: tuple[int, ...]
    spread: int
    free: int
    unit: int


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


#: For one adversary and output: the largest and the smallest likelihood of every secret.
_Ends = tuple[list[arb], list[arb]]


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
    fillings = _checked(scenario, regions, epsilon)
    if mechanism.step <= 0 or (lattice.step / mechanism.step).denominator != 1:
        raise InputError(
            f"noise in steps of {show(mechanism.step)} does not reach every value in steps of "
            f"{show(lattice.step)}"
        )
    places = lattice.index.tolist()

    def ends() -> Iterator[Iterator[_Ends]]:
        for rows in fillings:
            if scale == 0:
                yield _unchanged_ends(rows)
            else:
                yield _laplace_ends(rows, places, lattice.step / Fraction(scale))

    return _prove(scenario, regions, epsilon, ends, scenario.support.name)


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
    fillings = _checked(scenario, regions, epsilon)
    size = scenario.support.size
    for column in columns:
        if len(column) != size or min(column) < 0:
            raise InputError(f"every output needs {size} likelihoods, none of them negative")

    def ends() -> Iterator[Iterator[_Ends]]:
        for rows in fillings:
            yield (_column_ends(rows, column) for column in columns)

    return _prove(scenario, regions, epsilon, ends, name)


def _checked(
    scenario: Scenario, regions: Sequence[Concrete], epsilon: Fraction | None
) -> list[list[Filling]]:
    if epsilon is not None and epsilon <= 0:
        raise InputError(f"epsilon must be above 0, but {show(epsilon)} was given")
    if len(regions) != len(scenario.priors):
        raise InputError(
            f"{len(scenario.priors)} adversaries need as many regions, but {len(regions)} were "
            "given"
        )
    shape = (len(scenario.protected), scenario.support.size)
    fillings = []
    for region in regions:
        rows = list(_fillings(region))
        if any(len(rows) != shape[0] or len(row.room) != shape[1] for row in rows):
            raise InputError(
                f"the regions must have {shape[0]} secrets and {shape[1]} cells each, as the "
                "scenario has"
            )
        for row in rows:
            if min(row.least) < 0 or min(row.room) < 0 or not 0 <= row.spread <= sum(row.room):
                raise InputError("a region holds no distribution")
        fillings.append(rows)
    return fillings


def _fillings(region: Concrete) -> Iterator[Filling]:
    if isinstance(region, Box):
        for lower, upper in zip(region.lower.tolist(), region.upper.tolist(), strict=True):
            room = tuple(b - a for a, b in zip(lower, upper, strict=True))
            yield Filling(
                tuple(lower), room, region.denominator - sum(lower), 0, region.denominator
            )
    else:
        tau = region.radius
        for masses, total in zip(region.centre.tolist(), region.totals, strict=True):
            room = tuple(int(c) * tau.denominator for c in masses)
            moved = tau.numerator * total
            unit = total * tau.denominator
            yield Filling((0,) * len(room), room, unit - moved, moved, unit)


def _column_ends(rows: Sequence[Filling], column: Sequence[Fraction]) -> _Ends:
    """Fill from the largest likelihood down, and from the smallest up, in exact rationals."""
    values = [fmpq(v.numerator, v.denominator) for v in column]
    upwards = sorted(range(len(values)), key=lambda x: column[x])
    top: list[arb] = []
    bottom: list[arb] = []
    for row in rows:
        for ranked, found in ((upwards[::-1], top), (upwards, bottom)):
            total = row.free * values[ranked[0]]
            left = row.spread
            for x in ranked:
                given = min(left, row.room[x])
                left -= given
                total += (row.least[x] + given) * values[x]
            found.append(arb(total / row.unit))
    return top, bottom


def _unchanged_ends(rows: Sequence[Filling]) -> Iterator[_Ends]:
    """Without noise the output y says that X = y: likelihood 1 there and 0 elsewhere."""
    size = len(rows[0].room)
    sums = [sum(row.room) for row in rows]
    for y in range(size):
        top, bottom = [], []
        for row, whole in zip(rows, sums, strict=True):
            most = row.least[y] + min(row.spread, row.room[y]) + row.free
            least = row.least[y] + max(0, row.spread - (whole - row.room[y]))
            # One cell alone: whatever is free has to stay there.
            least += row.free if size == 1 else 0
            top.append(arb(fmpq(most, row.unit)))
            bottom.append(arb(fmpq(least, row.unit)))
        yield top, bottom


def _laplace_ends(
    rows: Sequence[Filling], places: Sequence[int], unit: Fraction
) -> Iterator[_Ends]:
    decay = _Decay(unit)
    secrets = [_Secret(row, places, decay) for row in rows]
    for y in range(len(places)):
        yield [s.largest(y) for s in secrets], [s.smallest(y) for s in secrets]


class _Decay:
    """e^-(d steps)/theta for whole d; each is worked out once."""

    def __init__(self, unit: Fraction) -> None:
        self.unit = unit
        self.known: dict[int, arb] = {}

    def __call__(self, steps: int) -> arb:
        value = self.known.get(steps)
        if value is None:
            value = self.known[steps] = exp_minus(steps * self.unit)
        return value


class _Secret:
    """One secret's extreme likelihoods at every output, from sums of ``least`` and ``room``.

    Nearest first, all room within some distance is full; farthest first, all beyond one is.
    """

    def __init__(self, row: Filling, places: Sequence[int], decay: _Decay) -> None:
        self.row, self.places, self.decay = row, places, decay
        self.sums = [0, *accumulate(row.room)]
        steps = [decay(b - a) for a, b in pairwise(places)]
        self.left, self.right = _passes(row.room, steps)
        if any(row.least):
            least_left, least_right = _passes(row.least, steps)
            self.least = [
                a + b - c for a, b, c in zip(least_left, least_right, row.least, strict=True)
            ]
        else:
            self.least = [arb(0)] * len(places)

    def largest(self, y: int) -> arb:
        """Return the largest <P, k_y>: the spread goes to the nearest rooms, free mass to y."""
        full, rest, shell, _ = self._cut(y, self.row.spread)
        first, last = full
        value = self.least[y] + self.row.free
        if first <= y < last:
            value += self.left[y] + self.right[y] - self.row.room[y]
            value -= self._beyond(y, first, last)
        if rest:
            value += rest * self.decay(shell)
        return value / self.row.unit

    def smallest(self, y: int) -> arb:
        """Return the smallest <P, k_y>: the nearest rooms stay empty, free mass goes farthest."""
        empty = self.sums[-1] - self.row.spread
        _, rest, shell, held = self._cut(y, empty)
        first, last = self._within(y, shell)
        value = self.least[y] + self._beyond(y, first, last)
        if held - rest:
            value += (held - rest) * self.decay(shell)
        if self.row.free:
            place = self.places[y]
            value += self.row.free * self.decay(
                max(place - self.places[0], self.places[-1] - place)
            )
        return value / self.row.unit

    def _within(self, y: int, distance: int) -> tuple[int, int]:
        place = self.places[y]
        return (
            bisect_left(self.places, place - distance),
            bisect_right(self.places, place + distance),
        )

    def _cut(self, y: int, mass: int) -> tuple[tuple[int, int], int, int, int]:
        """Return the stretch that a mass fills nearest first, what is left, and the next shell.

        Returns
        -------
        stretch : (int, int)
            Atoms from the first to before the last; empty where the shell is y itself.
        rest : int
            The mass that remains for the shell; 0 where the stretch took it all.
        shell : int
            Distance of the next atoms.
        held : int
            The room of the shell.
        """
        low, high = -1, self.places[-1] - self.places[0]
        while high - low > 1:
            middle = (low + high) // 2
            first, last = self._within(y, middle)
            if self.sums[last] - self.sums[first] <= mass:
                low = middle
            else:
                high = middle
        stretch = self._within(y, low) if low >= 0 else (y, y)
        inside = self.sums[stretch[1]] - self.sums[stretch[0]]
        first, last = self._within(y, high)
        return stretch, mass - inside, high, self.sums[last] - self.sums[first] - inside

    def _beyond(self, y: int, first: int, last: int) -> arb:
        """Return the sum of room * likelihood before atom ``first`` and from ``last`` on."""
        value = arb(0)
        if first > 0:
            value += self.left[first - 1] * self.decay(self.places[y] - self.places[first - 1])
        if last < len(self.places):
            value += self.right[last] * self.decay(self.places[last] - self.places[y])
        return value


def _passes(weights: Sequence[int], steps: Sequence[arb]) -> tuple[list[arb], list[arb]]:
    """Return the sums of weight * e^-distance to the left and to the right, own atom included."""
    left, carried = [], arb(0)
    for k, weight in enumerate(weights):
        carried = (carried * steps[k - 1] if k else carried) + weight
        left.append(carried)
    right, carried = [], arb(0)
    for k in range(len(weights) - 1, -1, -1):
        carried = (carried * steps[k] if k < len(steps) else carried) + weights[k]
        right.append(carried)
    return left, right[::-1]


def _prove(
    scenario: Scenario,
    regions: Sequence[Concrete],
    epsilon: Fraction | None,
    ends: Callable[[], Iterator[Iterator[_Ends]]],
    name: Callable[[int], str],
) -> Certificate:
    """Evaluate at growing precision until the ball lies on one side of epsilon."""
    bits = _BITS + (0 if epsilon is None else max(0, _smallness(epsilon)))
    found = _attempt(scenario, epsilon, ends, bits)
    for _ in range(_TRIES - 1):
        if epsilon is None or found.holds or found.refuted:
            break
        bits *= 2
        found = _attempt(scenario, epsilon, ends, bits)
    worst, holds = found.worst, found.holds
    bare = Certificate(
        method="ball",
        loss=min(found.upper, float_up(epsilon)) if holds and epsilon else found.upper,
        loss_at_least=found.lower,
        epsilon=None if epsilon is None else show(epsilon),
        holds=holds,
        decided=holds or found.refuted,
        witness=Witness(name(worst.output), worst.pair, worst.adversary),
        precision=bits,
        error_bound=None,
        statement="",
    )
    return replace(bare, statement=_statement(bare, describe_regions(regions)))


def _attempt(
    scenario: Scenario,
    epsilon: Fraction | None,
    ends: Callable[[], Iterator[Iterator[_Ends]]],
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


def _worst(scenario: Scenario, adversaries: Iterator[Iterator[_Ends]]) -> _Worst:
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


def _statement(certificate: Certificate, regions: str) -> str:
    finite = math.isfinite(certificate.loss)
    text = f"at most {shown_up(certificate.loss)}" if finite else "without a finite bound"
    epsilon = certificate.epsilon
    if epsilon is None:
        claim = f"the privacy loss is {text}"
    elif certificate.holds:
        shown = min(Fraction(shown_up(certificate.loss)), Fraction(epsilon))
        text = epsilon if shown == Fraction(epsilon) else shown_up(certificate.loss)
        claim = f"the privacy loss is at most {text}, within epsilon = {epsilon}"
    elif certificate.decided:
        least = certificate.loss_at_least
        loss = f"at least {shown_down(least)}" if math.isfinite(least) else "infinite"
        claim = (
            f"it cannot be said that the loss is within epsilon = {epsilon}: for some it is {loss}"
        )
    else:
        claim = f"it was not decided whether the loss, {text}, is within epsilon = {epsilon}"
    where = ""
    if certificate.witness is not None:
        first, second = certificate.witness.pair
        where = (
            f"; the worst output is {certificate.witness.output}, for the pair ({first}, {second})"
        )
    return (
        f"For every prior of the region ({regions}) {claim}, in ball arithmetic at "
        f"{certificate.precision} bits, from the exact ends of the region{where}."
    )
