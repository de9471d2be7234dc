# SPDX-License-Identifier: Apache-2.0
"""The paper's figures that show results, drawn from what is computed here, with their claims.

The first one shows where the strict and the relaxed condition hold (``figure``). The others show
the scales of the table against epsilon: of the two simulations, and of the three data sets.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish.files import writing
from pufferfish.paper.figure import BINS, Claim, FigureOne
from pufferfish.paper.table import Reproduction
from pufferfish.plots import style
from pufferfish.plots.figures import draw_noise

#: A figure with what it claims, checked.
_Drawn = tuple[Any, tuple[Claim, ...]]


def draw(
    folder: str | Path, found: Reproduction, first: FigureOne | None = None, *, force: bool = False
) -> dict[str, tuple[Claim, ...]]:
    """Draw the figures as SVG files into a folder; return by file the claims of each, checked."""
    titles = list(dict.fromkeys(cell.title for cell in found.cells))
    drawn: dict[str, _Drawn] = {} if first is None else {"condition.svg": _condition(first)}
    drawn["simulations.svg"] = _scales(found, titles[:2])
    drawn["data-sets.svg"] = _scales(found, titles[2:])
    place = Path(folder)
    with writing(folder):
        place.mkdir(parents=True, exist_ok=True)
    for name, (figure, _) in drawn.items():
        style.write_svg(figure, place / name, force=force)
    return {str(place / name): claims for name, (_, claims) in drawn.items()}


@style.style()
def _scales(found: Reproduction, titles: Sequence[str]) -> _Drawn:
    """Draw scales against epsilon, a panel for each block: relaxed is lower, as is reported."""
    claims = []
    figure, panels = style.new("", width=4.2 * len(titles), ncols=len(titles))
    for title, axes in zip(titles, panels, strict=True):
        cells = [cell for cell in found.cells if cell.title == title]
        draw_noise(axes, [(cell.mechanism, float(cell.epsilon), cell.scale) for cell in cells])
        axes.set_title(title)
        strict = {cell.epsilon: cell.scale for cell in cells if cell.mechanism == "wasserstein"}
        lower = [c.scale < strict[c.epsilon] for c in cells if c.mechanism == "relaxed"]
        text = f"{title}: relaxed needs less noise than wasserstein at every epsilon"
        claims.append(Claim(text, all(lower), f"at {sum(lower)} of {len(lower)}"))
        for own in found.reductions:
            if own.title == title and own.reported is not None:
                text = f"{title}: relaxed is {' to '.join(own.reported)} % below {own.against}"
                seen = f"{min(own.percent):.1f} to {max(own.percent):.1f} %"
                claims.append(Claim(text, bool(own.agrees), seen))
    return figure, tuple(claims)


@style.style()
def _condition(first: FigureOne) -> _Drawn:
    """Draw the sign of I(x, x'; theta) of the coupling's cells at both scales."""
    figure, panels = style.new("", width=9.0, height=4.2, ncols=2)
    x, x_prime = np.array(first.x), np.array(first.x_prime)
    at = {"wasserstein": first.strict, "relaxed": first.relaxed}
    for axes, (name, own) in zip(panels, at.items(), strict=True):
        above = np.array(own.cells) > 0
        for kind, (these, text) in enumerate(((~above, "I at most 0"), (above, "I above 0"))):
            axes.scatter(x[these], x_prime[these], s=(14, 40)[kind], marker=style.MARKS[kind],
                         color=style.COLOURS[kind], label=text)  # fmt: skip
        axes.axline((0, 0), (BINS - 1, BINS - 1), color=style.INK, linewidth=0.6)
        axes.set_title(f"{name}, scale {own.scale:.4g}; largest sum {max(own.sums):.2g}")
        axes.set_xlabel("x (bin of Glucose, younger)")
    panels[0].set_ylabel("x' (older)")
    style.legend(figure, panels[1])
    return figure, first.claims
