# SPDX-License-Identifier: Apache-2.0
"""One style for all plots: readable in grey, on light and on dark ground, and with any names.

Series differ in line and mark, not in colour alone. Each colour has a contrast of at least
3 to 1 with white and with near black. The ground is white, but that of :func:`svg` is the page's,
and so is the ink of text and axes. Names of levels are text, whatever is in them, and never
mathematics or markup.
"""

import contextlib
import html
import io
import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure

from pufferfish.errors import printable
from pufferfish.files import write_whole

COLOURS = ("#2f7ebc", "#c8641b", "#2b8a5f", "#9a5fc0", "#8a7418", "#c2527e")
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKS = ("o", "s", "^", "D", "v", "P")
#: No ink of any plot is the same by chance, so that it can be replaced.
INK = "#2a2b2c"
_RC: dict[str, Any] = {
    "text.parse_math": False, "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": "medium", "axes.titlelocation": "left", "axes.facecolor": "none",
    "legend.frameon": False, "svg.fonttype": "none", "svg.hashsalt": "pufferfish",
    "figure.constrained_layout.use": True, "font.size": 9.0, "lines.markersize": 5.0,
}  # fmt: skip
#: Characters of a name on an axis, inches of each, and ticks that fit.
_LONGEST, _CHARACTER, _MOST_TICKS = 16, 0.08, 24
#: Height of a label beside a line, as a share of that of the axes.
_LINE = 0.075


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Return the context in which figures are made and written, whatever the user's own style."""
    with matplotlib.style.context(["default", _RC]), warnings.catch_warnings():
        # The page may have the letters that the font for measuring has not.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def new(title: str, width: float = 4.8, height: float = 3.2, **panels: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, or with the options of ``Figure.subplots`` its panels."""
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(**panels)
    figure.axes[0].set_title(title)
    return figure, axes


def named(name: str) -> str:
    """Return a name as it is drawn: its ends where it is long, and no hidden characters."""
    text = printable(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 7]}…{text[-6:]}"


def name_ticks(axis: Any, names: Sequence[str], room: float = 0.8) -> None:
    """Put names at 0, 1, 2, ... of an axis; of many only some are written.

    Names for which ``room``, as a share of the width of the figure, is too little to stand side by
    side below the axis stand upright, and the figure becomes higher.
    """
    shown, most = list(map(named, names)), _MOST_TICKS
    longest, figure = _CHARACTER * max(map(len, shown)), axis.get_figure()
    if axis.axis_name == "x":
        fit = int(room * figure.get_figwidth() / (longest + _CHARACTER))
        if fit >= min(len(names), _MOST_TICKS // 2):
            most = fit
        else:
            axis.set_tick_params(labelrotation=90)
            figure.set_figheight(figure.get_figheight() + longest)
    steps = (digit * 10**zeros for zeros in itertools.count() for digit in (1, 2, 5))
    places = range(0, len(names), next(step for step in steps if len(names) <= step * most))
    axis.set_ticks(places, [shown[k] for k in places])


def legend(figure: Any, axes: Any, **options: Any) -> None:
    """Put the legend of some axes below them, where it hides nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=3, **options)


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) beside where lines end; the limits of the axes must be set.

    Lines that end in one place have one text; texts that would cover each other are moved up.
    """
    texts: dict[float, str] = {}
    colours = {}
    for y, text, colour in ends:
        # From the data to shares of the height.
        place = round(axes.transLimits.transform(axes.transScale.transform((1, y)))[1], 2)
        texts[place] = f"{texts[place]}, {text}" if place in texts else text
        colours[place] = colour  # the line that covers the others
    lowest = -1.0
    for place, text in sorted(texts.items()):
        lowest, look = max(place, lowest + _LINE), {"color": colours[place], "va": "center"}
        axes.annotate(text, (1.01, lowest), xycoords="axes fraction", **look)


def svg(figure: Any, description: str, prefix: str = "plot") -> str:
    """Return a figure as an SVG element of a page, whose ink it takes for text and axes.

    It has no element of style: of lines and their joins the page decides.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    description : str
        What a reader who does not see it is told.
    prefix : str
        Of all identifiers in it, one for each figure of a page.
    """

    def tag(found: re.Match[str]) -> str:
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", found[0])
        return text.replace(INK, "currentColor")

    text = _drawn(figure, facecolor="none").decode()
    text = re.sub(r"<style.*?</style>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", tag, text)  # names lie between the tags
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(description)}" ', 1)


def write_svg(figure: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a figure to an SVG file, the same bytes each time; its ground is white."""
    write_whole(path, _drawn(figure), force=force)


def _drawn(figure: Any, **options: Any) -> bytes:
    file, no_metadata = io.BytesIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style():
        figure.savefig(file, format="svg", metadata=no_metadata, **options)
    return file.getvalue()
