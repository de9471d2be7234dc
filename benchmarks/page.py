# SPDX-License-Identifier: Apache-2.0
"""The page about a run: this machine, and for each benchmark its tables and plots."""

import math
import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from timing import Given, Row, digits, shown

from pufferfish.plots import style

LIBRARIES = (
    "pufferfish-privacy", "numpy", "duckdb", "pyarrow", "polars", "pandas", "opendp", "diffprivlib",
    "POT", "highspy", "python-flint", "matplotlib",
)  # fmt: skip
#: Seconds by size, of each way.
Lines = dict[str, dict[float, float]]
#: What a benchmark says of itself, its rows, and what their sizes are.
Found = tuple[str, list[Row], str]


def page(found: dict[str, Found], given: Given, start: float, load: float) -> str:
    """Return the page as HTML."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(Path(__file__).with_name("report.html.j2").read_text())
    judged = [row for _, rows, _ in found.values() for row in rows if "met" in row.verdict.lower()]
    return template.render(
        sections=[section(name, *own) for name, own in found.items()], machine=machine(load),
        quick=given.quick, judged=len(judged),
        missed=[row for row in judged if row.verdict != "met"],
        date=time.strftime("%d %B %Y, %H:%M", time.localtime(start)),
        minutes=f"{(time.time() - start) / 60:.1f}",
    )  # fmt: skip


def section(name: str, about: str, rows: Sequence[Row], axis: str) -> dict[str, Any]:
    title, _, text = about.partition("\n")
    plots = []
    for number, work in enumerate(dict.fromkeys(row.work for row in rows if row.size)):
        lines: Lines = {}
        for row in rows:
            if row.work == work and row.size and row.took:
                lines.setdefault(row.way, {})[row.size] = row.took
        sizes = sorted({size for own in lines.values() for size in own})
        plots.append({
            "caption": f"{work}: time by {axis}", "rows": [*by_size(lines, sizes)],
            "heads": [*(digits(size, 12) for size in sizes), "exponent", "last two"],
            "svg": plot(work, axis, lines, sizes, f"{name}-{number}"),
        })  # fmt: skip
    listed = [
        (row.name, digits(row.size, 12) if row.size else "", row.figure, shown(row.base),
         "–" if row.target is None else digits(row.target), row.verdict)
        for row in rows if not row.size or row.target is not None
    ]  # fmt: skip
    return {"name": name, "title": title[:-1], "text": text, "rows": listed, "plots": plots}


def by_size(lines: Lines, sizes: Sequence[float]) -> Iterator[list[str]]:
    """Yield a row for each line: times, how often they are ours, and how they grow."""
    ours = lines.get("ours", {})
    for way, own in lines.items():
        cells: list[str] = [way]
        for size in sizes:
            cells.append(shown(own.get(size)))
            if way != "ours" and size in own and size in ours:
                cells[-1] += Markup("<small>{}×</small>").format(digits(own[size] / ours[size], 2))
        for ends in (sorted(own), sorted(own)[-2:]):
            known = len(ends) > 1
            cells.append(f"{growth(own, ends):z.2f}".replace("-", "−") if known else "–")
        yield cells


def growth(own: dict[float, float], sizes: Sequence[float]) -> float:
    """Return the exponent k of the best c * size**k, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log([own[size] for size in sizes]), 1)[0])


def plot(work: str, axis: str, lines: Lines, sizes: Sequence[float], prefix: str) -> Markup:
    with style.style():
        figure, axes = style.new(work, 4.4, 3.4)
        looks = zip(style.COLOURS, style.LINES, style.MARKS, strict=True)
        for (way, own), (colour, line, mark) in zip(lines.items(), looks, strict=False):
            took = [own[size] for size in sorted(own)]
            axes.plot(sorted(own), took, color=colour, linestyle=line, marker=mark, label=way)
        axes.set(xscale="log", yscale="log", xlabel=axis)
        axes.set_xticks(sizes, [digits(size, 12) for size in sizes])
        every = [took for own in lines.values() for took in own.values()]
        low, high = (math.floor(math.log10(end)) for end in (min(every), max(every)))
        axes.set_yticks(at := [10.0**k for k in range(low, high + 2)], [*map(shown, at)])
        axes.set_ylim(at[0], at[-1])
        axes.minorticks_off()
        figure.legend(loc="outside lower left", ncols=2)
        words = f"{work}: seconds against {axis}, for {', '.join(lines)}"
        return Markup(style.svg(figure, words, prefix))


def machine(load: float) -> list[tuple[str, str]]:
    """Return facts of this machine, none of which names it or a person."""
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    have = {each.name.lower(): each.version for each in distributions()}
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        ("processor", found[1] if found else platform.processor() or platform.machine()),
        ("cores", f"{os.cpu_count()}, with a load of {load:.1f} before the run"),
        ("memory", f"{gib:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        (
            "libraries",
            ", ".join(f"{each} {have.get(each.lower(), '(none)')}" for each in LIBRARIES),
        ),
    ]
