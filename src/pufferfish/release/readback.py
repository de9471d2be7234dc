# SPDX-License-Identifier: Apache-2.0
"""Read-back: what a channel does to the values of this very table, from the rows of each of them.

A row of the channel for a value that does not occur hides nothing. So whether a column would be
published unchanged is asked of the values that occur, before anything is drawn.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish.errors import InputError, UnchangedWarning, warn_user
from pufferfish.mechanisms import Channel, Mechanism
from pufferfish.rationals import float_down
from pufferfish.release import arithmetic
from pufferfish.support import IntArray, Levels, lattice_of
from pufferfish.tables import Coded
from pufferfish.tables.coder import OK, OUTSIDE

if TYPE_CHECKING:
    from pufferfish.release.job import ReleaseSpec
    from pufferfish.release.releaser import Releaser

#: Bits to which an expected share is computed: what is rounded away no double could hold.
_BITS = 256


class AtomCounter:
    """Counts the rows of every value of a channel; for noise it counts nothing.

    Parameters
    ----------
    mechanism : DiscreteLaplace or Channel
        What the rows are released through.

    Attributes
    ----------
    exact, clamped : int64 array, shape (n_x,)
        By atom: rows whose value it is, and rows that were moved there. Both are empty for noise.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        size = mechanism.inputs.size if isinstance(mechanism, Channel) else 0
        self.exact: IntArray = np.zeros(size, dtype=np.int64)
        self.clamped: IntArray = np.zeros(size, dtype=np.int64)

    def count(self, coded: Coded) -> None:
        """Add the cells of a batch, in time linear in its rows and the atoms."""
        if not self.exact.size:
            return
        for state, counts in ((OK, self.exact), (OUTSIDE, self.clamped)):
            atoms = coded.atoms[coded.state == state]
            if atoms.size:
                counts += np.bincount(atoms, minlength=counts.size)

    @property
    def occurring(self) -> list[int]:
        """The atoms that at least one row has."""
        found: list[int] = np.flatnonzero(self.exact + self.clamped).tolist()
        return found

    @property
    def rows(self) -> int:
        """The rows that were counted."""
        return int(self.exact.sum() + self.clamped.sum())


def check_read_back(spec: "ReleaseSpec", releaser: "Releaser", atoms: AtomCounter) -> None:
    """Refuse to publish a column that can be read back, unless that is allowed; then warn of it.

    Called once all rows are counted, and before anything is drawn. Noise of scale 0, and a channel
    that keeps every value whether it occurs or not, were refused or warned of before.

    Raises
    ------
    InputError
        If it can be read back and nobody allowed it.

    Warns
    -----
    UnchangedWarning
        If it can be read back.
    """
    channel = releaser.mechanism
    if not isinstance(channel, Channel) or channel.unchanged or not read_back(releaser, atoms):
        return
    if keep_rate(releaser, atoms) == 1:
        what, verb = "publishes every value that occurs in the table as it is", "is"
        then = "published unchanged"
    else:
        what = "always replaces each value that occurs in the table by one of its own"
        verb, then = "can", "be read back as if it were published unchanged"
    if not spec.allow_unchanged:
        verb = "would be" if verb == "is" else "could"
        raise InputError(
            f"the channel {what}: the column {verb} {then}; if that is wanted say so with "
            "--allow-unchanged (allow_unchanged=True)"
        )
    warn_user(f"the channel {what}: the column {verb} {then}", UnchangedWarning)


def read_back(releaser: "Releaser", atoms: AtomCounter) -> bool:
    """Return whether every value that occurs is always published as one value of its own.

    Where a single value occurs and another one would surely be published as the same, nothing
    shows which of them it was.
    """
    channel = releaser.mechanism
    occurring = atoms.occurring
    if not isinstance(channel, Channel) or not occurring:
        return False
    published = _published(releaser, channel)
    seen = set()
    for x in occurring:
        result = _sure(channel, x, published)
        if result is None or result in seen:
            return False
        seen.add(result)
    if len(occurring) > 1:
        return True
    others = (x for x in range(channel.inputs.size) if x != occurring[0])
    return all(_sure(channel, x, published) not in seen for x in others)


def keep_rate(releaser: "Releaser", atoms: AtomCounter) -> float | None:
    """Return which share of the rows a channel publishes as they are, on average, rounded down.

    Rounding and bounds are taken into account, and rows that were clamped are not as they were.
    None for noise, and where there is no row.
    """
    channel = releaser.mechanism
    rows = atoms.rows
    if not isinstance(channel, Channel) or not rows:
        return None
    published = _published(releaser, channel).tolist()
    values: Iterable[Any]
    results: Iterable[Any]
    if isinstance(channel.inputs, Levels) and isinstance(channel.outputs, Levels):
        values, results = channel.inputs.names, map(channel.outputs.names.__getitem__, published)
    else:  # in whole numbers of one unit
        inputs = lattice_of(channel.inputs)
        ratio = inputs.step / releaser.step
        values = ((inputs.origin + k) * ratio.numerator for k in inputs.index.tolist())
        results = (result * ratio.denominator for result in published)
    places: dict[Any, list[int]] = {}
    for y, result in enumerate(results):
        places.setdefault(result, []).append(y)
    total = 0
    counts = atoms.exact.tolist()
    for x, (value, count) in enumerate(zip(values, counts, strict=True)):
        kept = sum(channel.rows[x, y] for y in places.get(value, ())) if count else 0
        total += (count * kept << _BITS) // channel.denominators[x]
    return float_down(Fraction(total, rows << _BITS)) if total else 0.0


def _published(releaser: "Releaser", channel: Channel) -> IntArray:
    """Return for every output what is published for it, as :meth:`Releaser.draw` gives it."""
    outputs = channel.outputs
    if isinstance(outputs, Levels):
        return np.arange(outputs.size)
    return releaser.finish(arithmetic.atom_units(outputs))


def _sure(channel: Channel, x: int, published: IntArray) -> int | None:
    """Return what is published for a value whatever is drawn, or None if that is left to chance."""
    possible = np.unique(published[np.flatnonzero(channel.rows[x])])
    return int(possible[0]) if len(possible) == 1 else None
