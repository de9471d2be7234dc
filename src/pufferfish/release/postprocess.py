# SPDX-License-Identifier: Apache-2.0
"""Postprocess: what becomes of a draw: exact sums in 64 bits, rounding, bounds, and doubles.

A released value is a whole number of steps. It stays an integer until it is shown, so that the
outputs which can occur are the same whatever the value was (a public lattice).
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import Entropy
from pufferfish.numbers import FloatArray, IntArray, show
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Lattice, Levels, lattice_of

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
#: Noise is beyond so many scales once in e**64 = 6e27 draws.
_REACH = 64


class Postprocess:
    """Draws for the atoms of a spec, and turns the draws into what is published.

    Options or results that no table could be released with are refused.

    ``mechanism`` is the one in force: noise with its scale raised to ``min_scale``, or the channel.
    ``step`` and ``bounds`` are of the released numbers, in steps. ``levels`` are those that are
    published, by a channel or where ``round`` and bounds inside the codes turn codes back. Where
    there are ``labels``, they are what is published, and ``sets`` the names of the sets beside
    them, unless these are left out.
    """

    def __init__(self, spec: ReleaseSpec) -> None:
        self.mechanism, self.labels, self.levels = spec.mechanism, spec.labels, None
        self.sets = spec.sets
        scale, outputs = 0.0, spec.support
        if isinstance(spec.mechanism, Channel):
            _check_channel(spec, spec.mechanism)
            outputs = spec.mechanism.outputs if spec.labels is None else spec.labels.outputs
        else:
            outputs = lattice_of(spec.support)
            if spec.mechanism.step != outputs.step:
                raise InputError(
                    f"the noise has the step {show(spec.mechanism.step)}, but the support has "
                    f"{show(outputs.step)}; noise belongs on the lattice of the support"
                )
            scale = max(spec.mechanism.scale, spec.min_scale or 0.0)
            self.mechanism = replace(spec.mechanism, scale=scale)
        self._fine = outputs.step if isinstance(outputs, Lattice) else Fraction(1)
        self._rounds = spec.round and self._fine.denominator != 1
        self.step = Fraction(1) if self._rounds else self._fine
        self.bounds = None if spec.bounds is None else _in_steps(spec.bounds, self.step)
        if isinstance(outputs, Lattice):
            _check_reach(outputs, scale, self.step)
            self._units = outputs.index + np.int64(outputs.origin)
            self._dense = outputs.index[-1] == outputs.size - 1
        else:
            self._units, self.levels = np.arange(outputs.size), outputs
        if isinstance(spec.support, Levels) and self.levels is None and spec.round and spec.bounds:
            low, high = spec.bounds
            self.levels = spec.support if low >= 0 and high < spec.support.size else None

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> tuple[IntArray, IntArray]:
        """Return released values for atoms, in steps or positions, and the outputs behind them."""
        if isinstance(self.mechanism, Channel):
            drawn = outputs = self.mechanism.draw(atoms, entropy)
            if self.labels is not None:
                drawn = self.labels.draw(outputs, entropy)
            return self.finish(self._units[drawn]), outputs
        total = self.mechanism.noise(len(atoms), entropy)
        low, high = (int(end(total, initial=0)) for end in (np.min, np.max))
        if low + int(self._units[0]) < INT64_MIN or high + int(self._units[-1]) > INT64_MAX:
            raise InputError(
                "a released value could lie beyond 64 bits; it is refused, not wrapped"
            )
        total += atoms + self._units[0] if self._dense else self._units.take(atoms)
        return self.finish(total), total

    def finish(self, values: IntArray) -> IntArray:
        """Round draws (in steps of the outputs) where asked for, then move them into bounds."""
        if self._rounds:
            values = rounded(values, self._fine)
        return values if self.bounds is None else np.clip(values, *self.bounds)

    def published(self, sets: bool = True) -> tuple[Mechanism, IntArray]:
        """Return what leads to the sets, or else to the labels, and what each output shows."""
        mechanism = self.mechanism
        if isinstance(mechanism, Channel) and self.labels is not None:
            if sets and self.sets is not None:
                return mechanism, np.arange(self.sets.size)
            mechanism = mechanism.then(self.labels)
        return mechanism, self.finish(self._units)

    def edge(self, value: int) -> int:
        """Return the least draw, in steps of the outputs, that is rounded to ``value`` or above."""
        if not self._rounds:
            return value
        unit = math.ceil((value - Fraction(1, 2)) / self._fine)
        return unit if round(unit * self._fine) >= value else unit + 1

    def numpy(self, values: IntArray) -> npt.NDArray[Any]:
        """Return released values as int64, as the nearest doubles, or as the names of levels."""
        if self.levels is not None:
            return np.array(self.levels.names)[values]
        if self.step.denominator == 1:
            return values if self.step == 1 else values * np.int64(self.step.numerator)
        return to_doubles(values, self.step)

    def reads_back(self, rows: IntArray) -> bool:
        """Return whether the released column can be read back as if it were published unchanged.

        ``rows`` are the released rows by input of a channel: it can where every input that occurs
        is always published as one value, or set, of its own.
        """
        for sets in (True, False):
            mechanism, shown = self.published(sets)
            if not isinstance(mechanism, Channel):
                return mechanism.scale == 0
            results = [{*shown[row].tolist()} for row in mechanism.rows[rows > 0] > 0]
            sure = all(len(result) == 1 for result in results)
            if results and sure and len(set().union(*results)) == len(results):
                return True
        return False


def rounded(units: IntArray, step: Fraction) -> IntArray:
    """Return the integers nearest to ``step * units``, ties to the even one."""
    return _by_distinct(units, lambda u: round(u * step), np.int64)


def to_doubles(units: IntArray, step: Fraction) -> FloatArray:
    """Return the doubles nearest to ``step * units``."""
    return _by_distinct(units, lambda u: u * step.numerator / step.denominator, np.float64)


def _by_distinct(units: IntArray, function: Callable[[int], Any], dtype: Any) -> npt.NDArray[Any]:
    """Apply an exact, slow function once to every distinct value."""
    distinct, place = np.unique(units, return_inverse=True)
    return np.array([function(u) for u in distinct.tolist()], dtype=dtype)[place]


def _check_channel(spec: ReleaseSpec, channel: Channel) -> None:
    if channel.inputs != spec.support:
        raise InputError(
            "a channel releases only the values that it was made for, but its inputs are not "
            "those of the support"
        )
    if spec.min_scale is not None:
        raise InputError(
            "--min-scale (min_scale) raises the scale of noise, but a channel has no scale; for "
            "more protection calibrate with a smaller epsilon"
        )
    if isinstance(channel.outputs, Levels) and (spec.round or spec.bounds is not None):
        name = "round" if spec.round else "bounds"
        raise InputError(
            f"--{name} ({name}) is for numbers, but this channel publishes levels, and every "
            "released value is one of them already"
        )


def _check_reach(outputs: Lattice, scale: float, step: Fraction) -> None:
    """Refuse draws that could leave 64 bits, or numbers beyond what can show them."""
    reach = math.ceil(_REACH * Fraction(scale) / outputs.step)
    low, high = outputs.origin - reach, outputs.origin + int(outputs.index[-1]) + reach
    least, most = INT64_MIN, INT64_MAX
    if step.denominator > 1:
        least, most = int(-sys.float_info.max), int(sys.float_info.max)
    fits = low >= INT64_MIN and high <= INT64_MAX and step.numerator <= most
    if not (fits and least <= low * outputs.step and high * outputs.step <= most):
        what = f"noise of scale {scale:.6g} on" if scale else "values of"
        raise InputError(
            f"{what} the step {show(outputs.step)} would lead beyond 64 bits; such results are "
            "refused, not wrapped: take a larger epsilon or a coarser step"
        )


def _in_steps(bounds: tuple[Fraction, Fraction], step: Fraction) -> tuple[int, int]:
    """Return the bounds in steps; bounds between two lattice points would be a new output."""
    low, high = (bound / step for bound in bounds)
    if low.denominator != 1 or high.denominator != 1:
        raise InputError(
            f"the bounds must be multiples of {show(step)}, as the released values are, but "
            f"{show(bounds[0])} and {show(bounds[1])} were given"
        )
    # Whole numbers are shown as integers of 64 bits too.
    if min(low, bounds[0]) < INT64_MIN or max(high, bounds[1]) > INT64_MAX:
        raise InputError("the bounds lie beyond 64 bits; such results are refused, not wrapped")
    return int(low), int(high)
