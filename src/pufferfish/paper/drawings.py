# SPDX-License-Identifier: Apache-2.0
"""The paper's figures that show results, drawn from what is computed here, with their claims.

The first one shows where the strict and the relaxed condition hold (``figure``). The others show
the scales of the table against epsilon: of the two simulations, and of the three data sets.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.paper.figure import BINS, Claim, Condition, FigureOne
from pufferfish.paper.table import Reproduction
from pufferfish.plots import style
from pufferfish.plots.losses import draw_noise

_SIMULATIONS = 2


def draw(
    folder: str | Path, found: Reproduction, first: FigureOne | None = None, *, force: bool = False
) -> dict[str, tuple[Claim, ...]]:
    """Draw the figures as SVG files into a folder, which is made if it is not there.

    Parameters
    ----------
    folder : str or Path
    found : Reproduction
        The whole table.
    first : FigureOne, optional
        The first figure, which needs a table that the package does not carry.
    force : bool
        Whether existing files may be replaced.

    Returns
    -------
    dict of str to tuple of Claim
        By file, the claims of the figure, checked.
    """
    names = list(dict.fromkeys(cell.title for cell in found.cells))
    parts = {"simulations.svg": names[:_SIMULATIONS], "data-sets.svg": names[_SIMULATIONS:]}
    drawn: dict[str, tuple[Any, tuple[Claim, ...]]] = {}
    if first is not None:
        drawn["condition.svg"] = _condition(first), first.claims
    for name, titles in parts.items():
        drawn[name] = _scales(found, titles), _claims(found, titles)
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    for name, (figure, _) in drawn.items():
        style.write_svg(figure, place / name, force=force)
    return {str(place / name): claims for name, (_, claims) in drawn.items()}


def _scales(found: Reproduction, titles: Sequence[str]) -> Any:
    """Draw scales against epsilon, a panel for each block."""
    with style.style():
        figure, panels = style.new("", len(titles), width=4.2 * len(titles))
        for title, axes in zip(titles, panels, strict=True):
            lines: dict[str, list[tuple[float, float]]] = {}
            for cell in (cell for cell in found.cells if cell.title == title):
                lines.setdefault(cell.mechanism, []).append((float(cell.epsilon), cell.scale))
            draw_noise(axes, lines)
            axes.set_title(title)
    return figure


def _claims(found: Reproduction, titles: Sequence[str]) -> tuple[Claim, ...]:
    """Return what the figure claims: the relaxed scale is lower, by as much as is reported."""
    claims = []
    for title, cells in groupby(found.cells, key=lambda cell: cell.title):
        if title not in titles:
            continue
        scales: dict[str, list[float]] = {}
        for cell in cells:
            scales.setdefault(cell.mechanism, []).append(cell.scale)
        pairs = list(zip(scales["relaxed"], scales["wasserstein"], strict=True))
        lower = sum(relaxed < strict for relaxed, strict in pairs)
        text = f"{title}: relaxed needs less noise than wasserstein at every epsilon"
        claims.append(Claim(text, lower == len(pairs), f"at {lower} of {len(pairs)}"))
    for own in found.reductions:
        if own.title in titles and own.reported is not None:
            least, most = own.reported
            text = f"{own.title}: relaxed is {least} to {most} % below {own.against}"
            claims.append(Claim(text, bool(own.agrees), f"{own.least:.1f} to {own.most:.1f} %"))
    return tuple(claims)


def _condition(first: FigureOne) -> Any:
    """Draw I(x, x'; theta) of the coupling's cells at both scales, and its sums over x."""
    with style.style():
        figure, panels = style.new("", 2, width=9.0, height=4.2)
        at: tuple[tuple[str, Condition], ...]
        at = (("wasserstein", first.strict), ("relaxed", first.relaxed))
        for axes, (name, own) in zip(panels, at, strict=True):
            cells, x, x_prime = np.array(own.cells), np.array(first.x), np.array(first.x_prime)
            for above, kind, text in ((False, 0, "I at most 0"), (True, 1, "I above 0")):
                these = (cells > 0) == above
                axes.scatter(
                    x[these], x_prime[these], s=14, marker=style.MARKS[kind], label=text,
                    color=style.COLOURS[kind],
                )  # fmt: skip
            axes.plot([0, BINS - 1], [0, BINS - 1], color=style.INK, linewidth=0.6)
            axes.set_title(f"{name}, scale {own.scale:.4g}; largest sum {max(own.sums):.2g}")
            axes.set_xlabel("x (bin of Glucose, younger)")
        panels[0].set_ylabel("x' (older)")
        style.legend(figure, panels[1])
    return figure
