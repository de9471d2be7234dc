# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of releasing: small jobs, exact laws of outputs, a slow release by rows."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Levels, Support, make_lattice
from pufferfish.tables.rules import Coding

#: Levels with and without an order, and a channel of three values.
JOBS = Levels(("Private", "Self, not inc", "Without-pay"))
ORDERED = Levels(("low", "mid", "high"), ordered=True)
CHANNEL_ROWS = [[7, 2, 1], [3, 5, 2], [0, 1, 3]]


def job(
    values: Iterable[Any],
    scale: float = 1.0,
    step: Any = None,
    missing: Sequence[str] = (),
    **options: Any,
) -> ReleaseSpec:
    """A release of numbers in column x, secret column s, the secrets a and b being protected."""
    exact_step = None if step is None else Fraction(step)
    support = make_lattice([Fraction(v) for v in values], exact_step)
    options.setdefault("coding", Coding("x", support, tuple(missing), exact_step is not None))
    return spec_of(support, DiscreteLaplace(scale, support.step), **options)


def level_job(names: Sequence[str], scale: float = 1.0, **options: Any) -> ReleaseSpec:
    """A release of ordered levels in column x."""
    support = Levels(tuple(names), ordered=True)
    return spec_of(support, DiscreteLaplace(scale, Fraction(1)), **options)


def channel_job(
    support: Support, rows: Any, outputs: Support | None = None, **options: Any
) -> ReleaseSpec:
    """A release through a channel of some rows of integers; outputs are the support by default."""
    channel = Channel(support, support if outputs is None else outputs, rows)
    return spec_of(support, channel, **options)


def spec_of(support: Support, mechanism: Any, **options: Any) -> ReleaseSpec:
    """A release of column x, with the secret column s and the pair of a and b."""
    defaults = {"coding": Coding("x", support), "secret": "s", "protected": ("a", "b")}
    return ReleaseSpec(support=support, mechanism=mechanism, **(defaults | options))


def prepare(
    source: Any, output: Path, spec: ReleaseSpec, *, progress: Any = None, **options: Any
) -> Any:
    """A release into a file, after its dry pass."""
    from pufferfish.release.pipeline import Prepared  # slow to import

    prepared = Prepared(source, output, spec, **options)
    prepared.rehearse(progress)
    return prepared


def cells(frame: Any) -> dict[str, list[Any]]:
    """The cells of a dataframe of any kind, by column."""
    import narwhals as nw  # slow to import, as above

    frame = nw.from_native(frame).lazy().collect()
    return {column.name: column.to_list() for column in frame.iter_columns()}


def names(folder: Path) -> list[str]:
    """The names in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


def write_csv(path: Path, rows: Iterable[Iterable[Any]], header: str = "s,x") -> Path:
    """Write a plain CSV file without anything to quote."""
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def one_by_one(
    value: Fraction,
    noise: int,
    step: Fraction,
    *,
    rounding: bool = False,
    bounds: tuple[Fraction, Fraction] | None = None,
) -> Fraction:
    """The released value of one row, in fractions: the sum, rounded, then moved into the bounds."""
    total = value + noise * step
    if rounding:
        total = Fraction(round(total))
    return total if bounds is None else min(max(total, bounds[0]), bounds[1])


def exact_law(
    value: Fraction, spec: ReleaseSpec, finish: Callable[[Fraction], Fraction]
) -> dict[Fraction, float]:
    """The chances of all outputs for one value, the far tails (below 1e-30) left out."""
    units = float(Fraction(spec.mechanism.scale) / spec.mechanism.step)
    a = math.exp(-1 / units)
    chances: dict[Fraction, float] = {}
    for k in range(-int(70 * units) - 2, int(70 * units) + 3):
        output = finish(value + k * spec.mechanism.step)
        mass = (1 - a) / (1 + a) * math.exp(-abs(k) / units)
        chances[output] = chances.get(output, 0.0) + mass
    return chances
