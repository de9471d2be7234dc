# SPDX-License-Identifier: Apache-2.0
"""The page of the benchmarks holds what it should, names no machine, and judges by its figures."""

import re
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from shared_data import CHECKOUT

FOLDER = CHECKOUT / "benchmarks"
#: For each section the works of which it has a plot.
PLOTS = {
    "start": [], "noise": ["draw noise"],
    "counting": [f"count {two}, {kind}" for kind in ("csv", "parquet")
                 for two in ("ward by days", "code by cost")],
    "releasing": ["release days, csv", "release days, parquet"],
    "estimating": ["estimate grades, csv", "estimate grades, parquet"],
    "couplings": ["couple two secrets"], "levels": ["calibrate noise"],
    "channels": ["channel of 2 secrets", "channel of 7 secrets"],
    "secrets": ["calibrate for all pairs"],
    "releases": ["joint loss of releases", "price in a ledger"], "large_supports": [],
    "memory": [], "draws": ["draw from a channel"], "best_for_estimates": [],
    "queries": ["calibrate a count of a chain of two states"], "explorer_pages": [],
}  # fmt: skip


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "run.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sections_of(page: str) -> dict[str, str]:
    return {part.split('"', 1)[0]: part for part in page.split('<section aria-labelledby="')[1:]}


def text_of(page: str) -> str:
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module("timing"), import_module("page")


@pytest.mark.slow
def test_a_quick_run_writes_the_whole_page(tmp_path: Path) -> None:
    done = run("--quick", "--output", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    sections = sections_of(page)
    assert list(sections) == list(PLOTS)
    for name, works in PLOTS.items():
        assert len(re.findall(r'<tr><th scope="row">.+</td></tr>', sections[name])) > len(works)
        assert re.findall(r"<caption>(.+): time by", sections[name]) == works
        assert re.findall(r'<svg role="img" aria-label="(.+?): seconds', sections[name]) == works
    for peer in ("OpenDP", "diffprivlib", "DuckDB", "Polars", "pandas", "literal, dense", "POT"):
        assert peer in text_of(page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not re.search(r'(src|href)="(?!#)', page)
    text = text_of(page)
    assert not re.search(r"\b(nan|inf|None)\b", text)
    assert "processor" in text
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text)
    for path in (Path.home(), CHECKOUT, tempfile.gettempdir(), tmp_path, sys.prefix):
        assert str(path) not in page


def test_figures_growth_and_verdicts(modules: tuple[ModuleType, ModuleType]) -> None:
    timing, page = modules
    rows = [timing.Row("w", "ours", 1e-6 * n**2, size=n) for n in (10, 100, 1000)]
    rows += [timing.Row("w", "other", 3e-3, 1e-4, "times ours", size=10)]
    rows += [timing.Row("slow", "ours", 0.5, 0.1, "times it", 4)]
    rows += [timing.Row("fast", "ours", 0.4, 0.1, "times it", 4)]
    text = page.page({"a": ("Title.\n\nWords & more.", rows, "n")}, timing.Given(), 0, 0)
    words = " ".join(text_of(text).split())
    assert "1 of 2 targets are met. Not met: slow, 5 times it instead of at most 4." in words
    assert "slow 5 times it 100 ms 4 NOT MET fast 4 times it 100 ms 4 met" in words
    assert "ours 100 µs 10 ms 1 s 2.00 2.00 other 3 ms 30× – – – –" in words
    assert "A quick run" not in words
    assert "Words &amp; more." in text


def test_a_peer_that_cannot_be_imported_is_named_without_its_path(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "raise ImportError(\"cannot import name 'x' from 'y' (/home/me/y.so)\")\n"
    (tmp_path / "broken_peer.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    there, absent = modules[0].peers("w", a="broken_peer", b="no_such_peer", c="math")
    assert list(there) == ["c"]
    reasons = ["cannot import name 'x' from 'y'", "No module named 'no_such_peer'"]
    assert [row.verdict for row in absent] == [f"left out: {reason}" for reason in reasons]


def test_ways_that_differ_end_the_run(modules: tuple[ModuleType, ModuleType]) -> None:
    with pytest.raises(SystemExit, match="the ways differ"):
        modules[0].in_turn({"ours": lambda: 10**7, "theirs": lambda: 10**7 + 1}, 1)


def test_an_unknown_benchmark_is_refused() -> None:
    done = run("nose")
    assert done.returncode == 2
    assert "there is no benchmark 'nose'; there are start, noise, counting" in done.stderr
