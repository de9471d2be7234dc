# SPDX-License-Identifier: Apache-2.0
"""One style for all plots: readable in grey, on light and on dark ground, and with any names.

Series differ in line, mark and hatch, not in colour alone. Each colour has a contrast of at least
3 to 1 with white and with near black. The ground is white, but that of :func:`svg` is the page's,
and so is the ink of text and axes. Names of levels are text, whatever is in them, and never
mathematics or markup.
"""

import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, printable
from pufferfish.files import write_whole
from pufferfish.support import Support

try:
    import matplotlib.style
    from matplotlib.figure import Figure
except ImportError as error:  # pragma: no cover  # the tests have it
    raise InputError("plots need matplotlib: pip install 'pufferfish-privacy[plots]'") from error

COLOURS = ("#2f7ebc", "#c8641b", "#2b8a5f", "#9a5fc0", "#8a7418", "#c2527e")
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo")
#: No ink of any plot is the same by chance, so that it can be replaced.
INK = "#2a2b2c"
_RC: dict[str, Any] = {
    "text.parse_math": False, "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": "medium", "axes.titlelocation": "left", "figure.facecolor": "white",
    "axes.facecolor": "none", "legend.frameon": False, "hatch.linewidth": 0.6,
    "svg.fonttype": "none", "svg.hashsalt": "pufferfish", "figure.constrained_layout.use": True,
    "font.size": 9.0,
}  # fmt: skip
#: Characters of a name on an axis, and ticks that fit.
_LONGEST, _MOST_TICKS = 16, 24
#: Height of a label beside a line, as a share of that of the axes.
_LINE = 0.075


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Return the context in which figures are made and written, whatever the user's own style."""
    with matplotlib.style.context(["default", _RC]), warnings.catch_warnings():
        # The page may have the letters that the font for measuring has not.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def new(title: str, panels: int = 1, width: float = 4.8, height: float = 3.2) -> tuple[Any, Any]:
    """Return a figure with some panels in a row, and these panels."""
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(1, panels, squeeze=False)[0]
    axes[0].set_title(title)
    return figure, axes if panels > 1 else axes[0]


def named(name: str) -> str:
    """Return a name as it is drawn: its ends where it is long, and no hidden characters."""
    text = printable(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 7]}…{text[-6:]}"


def name_ticks(axis: Any, names: Sequence[str]) -> None:
    """Put names at 0, 1, 2, ... of an axis; of many only some are written."""
    each = -(-len(names) // _MOST_TICKS)
    places = range(0, len(names), each)
    shown = [named(names[k]) for k in places]
    axis.set_ticks(places, shown)
    if axis.axis_name == "x" and sum(map(len, shown)) > 60:
        axis.set_tick_params(labelrotation=90)


def names_of(support: Support) -> list[str]:
    """Return the names of all values."""
    return [support.name(k) for k in range(support.size)]


def legend(figure: Any, axes: Any, **options: Any) -> None:
    """Put the legend of some axes below them, where it hides nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=3, **options)


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) at the right of the axes, beside where the lines end.

    Lines that end in one place have one label; labels that would cover each other are moved apart.
    The limits of the axes must be set.
    """
    # From the data to shares of the height.
    height = axes.transLimits.transform(axes.transScale.transform([(1, y) for y, *_ in ends]))[:, 1]
    labels: dict[float, tuple[str, str]] = {}
    for (_, text, colour), place in zip(ends, height.round(2).tolist(), strict=True):
        before, first = labels.get(place, ("", colour))
        labels[place] = f"{before}, {text}" if before else text, first
    lowest = -1.0
    for place in sorted(labels):
        text, colour = labels[place]
        lowest = max(place, lowest + _LINE)
        axes.annotate(text, (1.01, lowest), xycoords="axes fraction", color=colour, va="center")


def svg(figure: Any, description: str, prefix: str = "plot") -> str:
    """Return a figure as an SVG element of a page, whose ink it takes for text and axes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    description : str
        What a reader who does not see it is told.
    prefix : str
        Of all identifiers in it, one for each figure of a page.
    """
    text = _drawn(figure, facecolor="none").decode()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def write_svg(figure: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a figure to an SVG file, the same bytes each time; its ground is white."""
    write_whole(path, _drawn(figure), force=force)


def _drawn(figure: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    with style():
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, **options)
    return file.getvalue()
