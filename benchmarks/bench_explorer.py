# SPDX-License-Identifier: Apache-2.0
"""How long somebody waits for the explorer: its first page, and what a slider shows.

The command is started as a user starts it, and asked by HTTP as a browser asks it.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

from bench_start import _COMMAND, process
from timing import Given, Row

LEVELS, SECRETS, ROWS = 100, "abcde", 20_000
#: What a page asks for after a move, in this order, and what of it is shown.
PARTS = {
    "offer": "what noise would give",
    "all": "what channels would give, too",
    "rows": "simulated rows, and pictures",
}


class Browser:
    """It keeps cookies, follows redirects, and times what it gets."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._open = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar())).open
        told = server.stdout.readline()
        if "http:" not in told:
            raise SystemExit(told)
        self.first = next(word for word in told.split() if word.startswith("http:"))

    def get(self, address: str) -> tuple[float, str]:
        """Return how long an answer took, and its address in the end; no error is one."""
        start = time.perf_counter()
        with self._open(address) as answer:
            answer.read()
        return time.perf_counter() - start, answer.url


@contextmanager
def explorer(*words: str) -> Iterator[Browser]:
    """Start the explorer, and end it."""
    command = [sys.executable, "-c", _COMMAND, "explore", "--no-browser", *words]
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdout=pipe, stderr=both, text=True) as server:
        try:
            yield Browser(server)
        finally:
            server.terminate()


def first_pages(*words: str) -> tuple[float, float]:
    """Return the seconds from the start of the command to its first page, and to its table."""
    start = time.perf_counter()
    with explorer(*words) as browser:
        first, table = (time.perf_counter() - start for _ in opened(browser))
        return first, table


def opened(browser: Browser) -> Iterator[str]:
    """Yield the address of the first page, and that of the table: a page that leads to it."""
    _, page = browser.get(browser.first)
    yield page
    yield browser.get(f"{page}?now")[1] if page.endswith("/begin") else page


def moves(table: Path, many: int) -> dict[str, float]:
    """Return how long each part of the preview takes after a move of the slider of epsilon."""
    took: dict[str, list[float]] = {part: [] for part in PARTS}
    with explorer(str(table)) as browser:
        _, page = opened(browser)
        browser.get(f"{page}?secret=s&public=x")  # rows are counted before there are sliders
        for k in range(many + 1):
            asked = {"secret": "s", "public": "x", "epsilon": f"{0.1 + k / 20:.2f}"}
            for part, own in took.items():
                own.append(browser.get(f"{page}/preview/{part}?{urlencode(asked)}")[0])
    return {part: median(own[1:]) for part, own in took.items()}


def explorer_pages(given: Given) -> Iterator[Row]:
    """The explorer: its first page, and a move of a slider.

    From the start of the command to the whole of the first page, and to that of the table, to which
    the first one leads; beside a process that imports NumPy. Then numbers of 100 values and 5
    secrets, for another epsilon each time: the parts of the page, in the order in which it asks for
    them.
    """
    runs = given.pick(9, 1)
    with tempfile.TemporaryDirectory() as folder:
        table, draw = Path(folder) / "table.csv", random.Random(5)
        lines = [f"{s},{x}\n" for s in SECRETS for x in range(LEVELS)]  # each value, and then more
        for s in draw.choices(SECRETS, k=given.pick(ROWS, 1000)):
            near = draw.gauss(50 + SECRETS.index(s), 15)
            lines.append(f"{s},{min(max(round(near), 0), LEVELS - 1)}\n")
        table.write_text("s,x\n" + "".join(lines))
        for named, *words in [["no table"], ["a table", str(table)], ["--demo", "--demo"]]:
            many = [first_pages(*words) for _ in range(runs + 1)][1:]
            first, whole = map(median, zip(*many, strict=True))
            yield Row(f"first page, {named}", "ours", first, target=0.5)
            if words:
                yield Row(f"columns of the table, {named}", "ours", whole)
        yield Row("import numpy", "python", process(runs, "-c", "import numpy"))
        for part, took in moves(table, given.pick(20, 3)).items():
            target = 0.15 if part == "offer" else None
            yield Row(f"slider: {PARTS[part]}", "ours", took, target=target)
