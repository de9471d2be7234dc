# SPDX-License-Identifier: Apache-2.0
"""Estimates from a channel's release: the channel is inverted as far as it can be, no further."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.figures import (
    FloatArray,
    Sample,
    Weighted,
    checked_counts,
    condition_notes,
    few_notes,
    moments,
    rescaled,
)
from pufferfish.estimate.groups import Structure, structure_of
from pufferfish.estimate.record import Estimate, Figure, Frequency
from pufferfish.estimate.weights import least_variance
from pufferfish.mechanisms.channel import Channel
from pufferfish.support import Levels, Support, lattice_of

#: A standard deviation per row above it needs 10**12 rows for one digit: as good as merged.
_USELESS = 1e6
#: Levels that a note names.
_NAMED = 20


def estimate_channel(counts: Any, channel: Channel) -> Estimate:
    """Return estimates of the original column from one that a channel released.

    Parameters
    ----------
    counts : sequence of int, shape (n_y,)
        Released rows by output, in the order of ``channel.outputs``.
    channel : Channel
        What the column was released with.

    Returns
    -------
    Estimate
        Frequencies that can be estimated, or their sums for levels that the channel merges; mean
        and variance for numbers and ordered levels where they can be estimated.

    Raises
    ------
    InputError
        If the counts do not fit the channel: another number of them, an output that it never
        publishes, or no row at all.

    Notes
    -----
    Source: theory, section 4. Ranks are decided exactly; weights are computed to more than double
    precision; the estimates are then unbiased up to the rounding of doubles. Intervals cover 95 %
    of all releases, give or take 1.5 %; where fewer than some 20 rows are expected to be changed
    in a way that matters for a figure, 94 % or more, and a note says so.
    """
    whole = checked_counts(counts, channel.outputs.size)
    used = np.array([any(column) for column in channel.rows.T.tolist()])
    stray = [y for y, count in enumerate(whole) if count and not used[y]]
    if stray:
        raise InputError(
            f"the channel never publishes {channel.outputs.name(stray[0])!r}, but the released "
            f"column has {whole[stray[0]]} of it: this is not the channel it was released with"
        )
    rows: list[list[int]] = channel.rows[:, used].tolist()
    matrix = channel.matrix[:, used]
    sample = Sample(np.array(whole, dtype=np.float64)[used], sum(whole))
    structure = structure_of(rows)
    kept, weak = _told_apart(rows, matrix, structure)
    entries = tuple(_entry(sample, group, weighted, channel.inputs) for group, weighted in kept)
    own = {group[0] for group, _ in kept if len(group) == 1}
    rest = [x for x in range(channel.inputs.size) if x not in own]
    mean, variance, notes = _mean_and_variance(sample, rows, matrix, structure, channel.inputs)
    condition = None if rest else _condition(matrix, [weighted.weights for _, weighted in kept])
    return Estimate(
        rows=sample.rows,
        entries=entries,
        not_estimable=tuple(channel.inputs.name(x) for x in rest),
        mean=mean,
        variance=variance,
        condition_number=condition,
        notes=(
            *_merging_notes(structure, entries, weak, rest, channel.inputs),
            *notes,
            *few_notes(*entries, mean),
            *condition_notes(condition),
        ),
    )


def _entry(
    sample: Sample, group: tuple[int, ...], weighted: Weighted, inputs: Support
) -> Frequency:
    figure = weighted.figure(sample, sample.mean(weighted.weights))
    labels = tuple(inputs.name(x) for x in group)
    return Frequency(figure.estimate, figure.standard_error, figure.ends, labels)


def _told_apart(
    rows: list[list[int]], matrix: FloatArray, structure: Structure
) -> tuple[list[tuple[tuple[int, ...], Weighted]], list[int]]:
    """Return groups with weights for their sums, and the inputs told apart in theory only."""
    size = len(rows)
    # The frequencies of all inputs together are 1; nobody needs an estimate of that.
    groups = [group for group in structure.groups if len(group) < size or size == 1]
    kept, weak = _useful(groups, rows, matrix, structure)
    if len(weak) > 1:
        # What cannot be told apart may well be estimable together.
        together = tuple(sorted(x for group in weak for x in group))
        if len(together) < size:
            kept += _useful([together], rows, matrix, structure)[0]
    return sorted(kept, key=lambda pair: pair[0]), sorted(x for group in weak for x in group)


def _useful(
    groups: Sequence[tuple[int, ...]],
    rows: list[list[int]],
    matrix: FloatArray,
    structure: Structure,
) -> tuple[list[tuple[tuple[int, ...], Weighted]], list[tuple[int, ...]]]:
    """Return the groups with their weights, and apart those whose weights are beyond all use."""
    if not groups:
        return [], []
    indicators = [[int(x in group) for x in range(len(rows))] for group in map(set, groups)]
    weights = least_variance(rows, _basis(structure), indicators)
    both = [(group, Weighted.on(w, matrix)) for group, w in zip(groups, weights, strict=True)]
    useful = [pair for pair in both if pair[1].most <= _USELESS**2]
    return useful, [group for group, weighted in both if weighted.most > _USELESS**2]


def _mean_and_variance(
    sample: Sample,
    rows: list[list[int]],
    matrix: FloatArray,
    structure: Structure,
    inputs: Support,
) -> tuple[Figure | None, Figure | None, list[str]]:
    if isinstance(inputs, Levels) and not inputs.ordered:
        return None, None, []
    lattice = lattice_of(inputs)
    # Counted from the middle in half ranges, so that fourth powers lose no digits.
    last = int(lattice.index[-1])
    half = Fraction(max(last, 1), 2)
    t = [(k - Fraction(last, 2)) / half for k in lattice.index.tolist()]
    functionals = [[value**power for value in t] for power in (1, 2, 3, 4)]
    possible = [structure.estimable(values) for values in functionals]
    solved = iter(
        least_variance(
            rows,
            _basis(structure),
            [a for a, can in zip(functionals, possible, strict=True) if can],
        )
        if any(possible)
        else ()
    )
    powers: list[FloatArray | None] = [next(solved) if can else None for can in possible]
    powers = [None if w is None or Weighted.on(w, matrix).most > _USELESS**2 else w for w in powers]
    mean, variance, upper = moments(sample, powers, lambda w: Weighted.on(w, matrix))
    notes = []
    if mean is None or variance is None:
        lost = "the mean and the variance" if mean is None else "the variance"
        notes.append(
            f"{lost} of the original values cannot be estimated: the channel merges values"
        )
    if upper:
        notes.append(
            "the standard error of the "
            f"{'mean' if variance is None else 'variance'} is an upper estimate: the channel "
            "merges values, and a higher moment is missing"
        )
    unit = float(lattice.step * half)
    middle = float(lattice.step * (lattice.origin + Fraction(last, 2)))
    return rescaled(mean, unit, middle), rescaled(variance, unit**2), notes


def _basis(structure: Structure) -> list[int]:
    return [structure.classes[k][0] for k in structure.pivots]


def _condition(matrix: FloatArray, inverse: list[FloatArray]) -> float:
    """Return the condition number of M (2-norm); of a square one through its accurate inverse."""
    if matrix.shape[0] != matrix.shape[1]:
        return float(np.linalg.cond(matrix))
    return float(np.linalg.norm(matrix, 2) * np.linalg.norm(np.array(inverse), 2))


def _lost(entries: tuple[Frequency, ...], rest: list[str]) -> str:
    """Return in words what cannot be estimated, each level named once."""
    sums = [entry.labels for entry in entries if len(entry.labels) > 1]
    if not sums:
        return (
            f"the frequencies of {listed(rest, _NAMED)} cannot be estimated one by one, nor any "
            "sum of some of them"
        )
    named = "; ".join(listed(labels, _NAMED) for labels in sums)
    return (
        f"the frequencies of {named} cannot be estimated one by one; only their sum can"
        if len(sums) == 1
        else f"frequencies cannot be estimated one by one, only their sums over these: {named}"
    )


def _merging_notes(
    structure: Structure,
    entries: tuple[Frequency, ...],
    weak: list[int],
    rest: list[int],
    inputs: Support,
) -> list[str]:
    notes = []
    if rest:
        notes.append(
            f"the channel merges levels: {_lost(entries, [inputs.name(x) for x in rest])}; a "
            "channel that keeps each level more often than not (--min-keep above 0.5 in "
            "calibrating) leaves all of them estimable, but at a small epsilon there may be none"
        )
    if weak:
        notes.append(
            f"{listed((inputs.name(x) for x in weak), _NAMED)}: the channel tells these apart so "
            "little that no table has enough rows"
        )
    if not structure.searched:
        notes.append("more sums may be estimable: not every grouping of the levels was looked at")
    return notes
