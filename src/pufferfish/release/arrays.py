# SPDX-License-Identifier: Apache-2.0
"""Release of arrays and columns in memory: as many values out as in, each at its place."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.errors import InputError
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.promise import warn_about_clamped, warn_seeded
from pufferfish.release.readback import AtomCounter, check_read_back
from pufferfish.release.releaser import Releaser
from pufferfish.release.rows import settle
from pufferfish.sampling import Entropy, seeded_entropy
from pufferfish.support import IntArray
from pufferfish.tables import Coder
from pufferfish.tables.coder import MISSING
from pufferfish.tables.frames import raw_cells

#: Values coded at a time.
_CHUNK = 1 << 18


def release_array(
    values: Any, spec: ReleaseSpec, *, seed: int | None = None, entropy: Entropy | None = None
) -> npt.NDArray[Any]:
    """Release an array of public values.

    Parameters
    ----------
    values : array, list or series, shape (n,)
        Numbers (floats are read as the decimal they print as) or levels; none may be missing, as
        the answer has one value for each.
    spec : ReleaseSpec
        What is released, and how.
    seed : int, optional
        Makes the release repeatable, for tests only.
    entropy : Entropy, optional
        Where random bits come from, for tests only; by default the operating system.

    Returns
    -------
    array, shape (n,)
        int64 if every released value is an integer, otherwise the nearest doubles; text where a
        channel publishes levels, and where ordered levels are rounded into bounds.

    Raises
    ------
    InputError
        If a value is missing, is outside the support, or is no number, with its position counted
        from 0; if a released value is beyond 64 bits, the plan is for units, or the column would
        be published unchanged or so that it can be read back.

    Warns
    -----
    OutsidePromiseWarning
        For clamped values.
    UnchangedWarning
        If the column is published unchanged, or so that it can be read back, as was allowed.
    SeededWarning
        For a seed.
    """
    releaser, drawn = draw_array(values, spec, seed, entropy)
    return releaser.numpy(drawn)


def draw_array(
    values: Any, spec: ReleaseSpec, seed: int | None, entropy: Entropy | None
) -> tuple[Releaser, IntArray]:
    """Return what was drawn for an array, shape (n,), and the releaser that shows it."""
    cells = _as_cells(values)
    if spec.rules is not None and spec.rules.unit is not None:
        raise InputError(
            "an array does not say which rows are one person's; release a dataframe or a file with "
            f"the unit column {spec.rules.unit!r}"
        )
    releaser = Releaser(spec)
    if seed is not None:
        entropy = seeded_entropy(seed)
        warn_seeded()
    counter = AtomCounter(releaser.mechanism)
    coded, clamped = _atoms(cells, spec, counter)
    check_read_back(spec, releaser, counter)
    warn_about_clamped(clamped)
    chunks = [releaser.draw(atoms, entropy) for atoms in coded]
    return releaser, np.concatenate([np.empty(0, dtype=np.int64), *chunks])


def _atoms(
    cells: pa.Array | pa.ChunkedArray, spec: ReleaseSpec, counter: AtomCounter
) -> tuple[list[IntArray], int]:
    """Count the atoms; return them chunk by chunk, and how many are clamped, nothing yet drawn."""
    coder = Coder(spec.support, spec.rules)
    chunks, clamped = [], 0
    for start in range(0, len(cells), _CHUNK):
        part = cells.slice(start, _CHUNK)
        coded = coder.code(part)

        def where(place: int, start: int = start) -> str:
            return _where(start + place)

        hint = "; if it stands for a missing value, leave it out"
        clamped += settle(coded, part, spec, coder, where, hint)
        missing = coded.state == MISSING
        if missing.any():
            raise _missing(start + int(missing.argmax()))
        counter.count(coded)
        chunks.append(coded.atoms)
    return chunks, clamped


def _as_cells(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return the values as raw cells, without changing any of them."""
    if isinstance(values, str | bytes):
        raise InputError(f"an array or a list of values is needed, but {values!r} was given")
    if isinstance(values, np.ma.MaskedArray):
        present = pa.array(~np.ma.getmaskarray(values))
        cells = _as_cells(values.data)
        return pc.if_else(present, cells, pa.scalar(None, cells.type))
    if isinstance(values, range | map | filter | Iterator):
        values = list(values)
    try:
        return raw_cells(values)
    except pa.ArrowException:
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"an array of numbers or text is needed, but {kind} was given") from None


def _missing(place: int) -> InputError:
    return InputError(
        f"{_where(place)} is missing, and an array keeps its length; leave out missing values "
        "first, or release a dataframe"
    )


def _where(place: int) -> str:
    return f"the value at position {place} (counted from 0)"
