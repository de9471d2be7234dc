# SPDX-License-Identifier: Apache-2.0
"""From a released column and its plan to estimates: cells are decoded, counted and handed over.

A release writes nothing but outputs of its mechanism. A cell that is none of them shows that this
is another column, another plan or another set of options, and is refused: estimates from it would
be nonsense.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish.errors import InputError, UnchangedWarning, did_you_mean, listed
from pufferfish.estimate.channel import estimate_channel
from pufferfish.estimate.column import Column, read_column
from pufferfish.estimate.laplace import estimate_laplace
from pufferfish.estimate.plausible import check_plausible
from pufferfish.estimate.record import Estimate
from pufferfish.mechanisms import Channel
from pufferfish.rationals import NotFinite, parse_number, show
from pufferfish.release.arithmetic import atom_units
from pufferfish.release.csvtext import check_apart, written
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.releaser import Releaser
from pufferfish.support import Lattice, Levels, Support, lattice_of, nearest_unit
from pufferfish.tables.numerals import parse_point

if TYPE_CHECKING:
    from pufferfish.plan import Plan

_OTHER = "; was the column released by this plan, with these options?"


def estimate_released(
    released: Any,
    plan: Plan,
    *,
    column: str | None = None,
    bounds: tuple[object, object] | None = None,
    round: bool = False,  # the option's name on the command line
    min_scale: object = None,
) -> Estimate:
    """Return estimates of the original column from a released one and its plan.

    They are of the rows that were released: their frequencies, mean and variance. Standard errors
    and intervals count the noise of the release alone. Estimating costs no privacy.

    Parameters
    ----------
    released : array, list or series of shape (n,), dataframe, or path of a file
        What a release by the plan returned or wrote.
    plan : Plan
        The plan that it was released by.
    column : str, optional
        The released column of a dataframe or a file, where its name is not the plan's own.
    bounds : (number, number), optional
        The bounds that it was released with; for ordered levels also the names of two.
    round : bool
        Whether it was released with rounding.
    min_scale : number, optional
        The least scale that it was released with.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If the column cannot come from such a release, with the first row that shows it.

    Notes
    -----
    Source: theory, sections 1 and 4.
    """
    return estimate_column(
        read_column(released, plan.rules, column),
        plan,
        bounds=bounds,
        round=round,
        min_scale=min_scale,
    )


def estimate_column(
    column: Column,
    plan: Plan,
    *,
    bounds: tuple[object, object] | None = None,
    round: bool = False,
    min_scale: object = None,
) -> Estimate:
    """Do the work of :func:`estimate_released` for a column that has been read."""
    spec = release_of(plan, bounds=bounds, round=round, min_scale=min_scale)
    releaser = releaser_of(spec)
    units = _decoded(column, spec, releaser)
    if isinstance(releaser.mechanism, Channel):
        estimate = _from_channel(column, units, releaser, releaser.mechanism)
        distortion = plan.distortion
        if distortion and "invariant" in distortion.conditions and not (spec.round or spec.bounds):
            estimate = replace(estimate, notes=(*estimate.notes, _on_plain(estimate.rows)))
    else:
        lattice, noise = lattice_of(spec.support), releaser.mechanism
        rounded = releaser.step != lattice.step
        check_plausible(units, noise, lattice, bounded=spec.bounds is not None, rounded=rounded)
        estimate = estimate_laplace(
            list(units), list(units.values()), noise, spec.support,
            bounds=spec.bounds, rounded=rounded,
        )  # fmt: skip
    return estimate.with_notes_on_range()


def release_of(
    plan: Plan,
    *,
    bounds: tuple[object, object] | None = None,
    round: bool = False,
    min_scale: object = None,
) -> ReleaseSpec:
    """Return the release that the options describe.

    Raises
    ------
    InputError
        If an option is not of its kind.
    """
    return plan.release_spec(
        bounds=_as_codes(plan.support, bounds),
        round=bool(round),
        allow_unchanged=True,  # it was released, whoever allowed it
        min_scale=min_scale,
    )


def releaser_of(spec: ReleaseSpec) -> Releaser:
    """Return what knows how a release shows its values.

    Raises
    ------
    InputError
        If an option does not fit the mechanism.
    """
    with warnings.catch_warnings():
        # Nothing is published here.
        warnings.simplefilter("ignore", UnchangedWarning)
        return Releaser(spec)


def _decoded(column: Column, spec: ReleaseSpec, releaser: Releaser) -> dict[int, int]:
    """Return rows by released value, in steps or as positions of levels, in increasing order."""
    levels, step = releaser.levels, releaser.step
    read = _units(step) if levels is None else _positions(levels, column.text_file)
    units: dict[int, int] = {}
    strange = set()
    for text, rows in column.counts.items():
        value = read(text)
        if value is None:
            strange.add(text)
        else:
            units[value] = units.get(value, 0) + rows
    if not strange:
        return dict(sorted(units.items()))
    where = column.where(strange)
    if levels is not None:
        codes = not isinstance(releaser.mechanism, Channel) and all(
            _units(step)(text) is not None for text in strange
        )
        raise InputError(
            f"{where} holds a number, so that codes were not turned back into levels; leave out "
            "--round, or --bounds (bounds=...)"
            if codes
            else f"{where} is none of the released levels ({listed(levels.names)}){_OTHER}"
        )
    known: Callable[[str], int | None] = dict[str, int]().get
    if isinstance(spec.support, Levels):
        known = _positions(spec.support, column.text_file)
    if all(known(text) is not None for text in strange):
        raise InputError(
            f"{where} holds the name of a level, as a release with --round and --bounds writes it; "
            "give the same two here"
        )
    numbers = all(_number(text) is not None for text in strange)
    what = f"no multiple of {show(step)}, as released values are" if numbers else "no number"
    raise InputError(f"{where} is {what}{_OTHER}")


def _from_channel(
    column: Column, units: dict[int, int], releaser: Releaser, channel: Channel
) -> Estimate:
    shown, channel = _as_shown(releaser, channel)
    used = [any(entries) for entries in channel.rows.T.tolist()]
    places = {value: y for y, value in enumerate(shown) if used[y]}
    strange = {value for value in units if value not in places}
    if strange:
        levels = releaser.levels
        read = _units(releaser.step) if levels is None else _positions(levels, column.text_file)
        texts = {text for text in column.counts if read(text) in strange}
        named = f"holds {min(texts)!r}" if releaser.levels is not None else "holds a number"
        raise InputError(
            f"{column.where(texts)} {named}, which the plan's channel never publishes{_OTHER}"
        )
    counts = [0] * channel.outputs.size
    for value, rows in units.items():
        counts[places[value]] += rows
    return estimate_channel(counts, channel)


def _on_plain(rows: int) -> str:
    """Return what an invariant channel makes of the released column as it is."""
    return (
        "the channel is invariant: if the original column has the frequencies that it was "
        "calibrated for, the plain frequencies of the released column are unbiased, too, with far "
        f"smaller errors (standard errors of {0.5 / rows**0.5:.2g} at most); if it has others, "
        "they are biased towards those"
    )


def _as_shown(releaser: Releaser, channel: Channel) -> tuple[list[int], Channel]:
    """Return what each output is shown as, and the channel to what is shown.

    Rounding and bounds merge outputs that are numbers.
    """
    if isinstance(channel.outputs, Levels):
        return list(range(channel.outputs.size)), channel
    finished = releaser.finish(atom_units(channel.outputs))
    shown, place = np.unique(finished, return_inverse=True)
    if len(shown) == channel.outputs.size:
        return shown.tolist(), channel
    merged = np.zeros((channel.inputs.size, len(shown)), dtype=object)
    for y, to in enumerate(place.tolist()):
        merged[:, to] += channel.rows[:, y]
    outputs = Lattice(releaser.step, int(shown[0]), shown - shown[0])
    return shown.tolist(), Channel.of(channel.inputs, outputs, merged)


def _positions(levels: Levels, text_file: bool) -> Callable[[str], int | None]:
    """Return what finds the position of a level, as text files write it too.

    Elsewhere that is welcome where no level has such a name of its own.
    """
    if text_file:
        check_apart(levels.names)
    places = {name: k for k, name in enumerate(levels.names)}
    for k, name in enumerate(levels.names):
        places.setdefault(written(name), k)
    return places.get


def _units(step: Fraction) -> Callable[[str], int | None]:
    """Return what reads a released number in steps; None where it is no multiple of the step.

    Where doubles or decimals cannot hold the multiple (1/3, or many digits), a release shows the
    nearest double, and that is taken for it.
    """
    p, q = step.numerator, step.denominator

    def unit(text: str) -> int | None:
        ratio = _number(text)
        if ratio is None:
            return None
        top, bottom = ratio
        if bottom == 1 and q == 1 == p:
            return top
        nearest = nearest_unit(top * q, bottom * p)
        if nearest * p * bottom == top * q:
            return nearest
        return nearest if nearest * p / q == top / bottom else None

    return unit


def _number(text: str) -> tuple[int, int] | None:
    try:
        return None if "," in text else parse_point(text)
    except NotFinite:
        return None


def _as_codes(support: Support, bounds: Any) -> Any:
    """Return bounds with the codes of levels in the place of their names; numbers are codes."""
    if bounds is None or not isinstance(support, Levels):
        return bounds
    try:
        given = list(bounds)
    except TypeError:
        return bounds  # refused where bounds are checked
    codes = []
    for bound in given:
        text = bound.strip() if isinstance(bound, str) else bound
        if isinstance(text, str) and text in support.names:
            try:
                parse_number(text, "a bound")
            except InputError:
                text = support.names.index(text)
        elif isinstance(text, str) and _number(text) is None:
            raise InputError(
                f"a bound is a level or its code, but {bound!r} was given"
                f"{did_you_mean(text, support.names)}; the codes are "
                f"{listed(f'{name} = {k}' for k, name in enumerate(support.names))}"
            )
        codes.append(text)
    return tuple(codes)
