# SPDX-License-Identifier: Apache-2.0
"""Reports in a browser, light and dark, narrow and wide: ``make test-browser``.

The system's Chromium is driven by Playwright; axe judges accessibility, and the Nu checker the
HTML. Each checker is given pages that are wrong, too: one that finds nothing there checks nothing.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report_cases import reports
from shared_data import CHECKOUT

# The target sets it once every tool is there, so that none of these tests is skipped in silence.
if "PUFFERFISH_BROWSER" not in os.environ:
    pytest.skip("make test-browser runs these", allow_module_level=True)

MODULES = CHECKOUT / ".venv-browser" / "node_modules"
AXE = MODULES / "axe-core" / "axe.min.js"
NU = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"
NAMES = ["robust", "sample", "nothing", "channel", "public", "publishable", "hostile",
         "hostile-public"]  # fmt: skip
WRONG = "<!DOCTYPE html><title>wrong</title><p style='color: #ccc' id=a>faint<img src=no.png id=a>"
#: What scrolls sideways by itself, and whether a key can reach it.
SCROLLING = """() => [...document.querySelectorAll('body *')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && !e.closest('svg')
                 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
    .map(e => e.tabIndex)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name, text in reports():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    assert list(found) == NAMES
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # of an extra of its own

    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play:
        path = os.environ["PUFFERFISH_BROWSER"]
        browser = play.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


def opened(browser: Any, path: Path, width: int, scheme: str) -> tuple[Any, list[str]]:
    """Return an open page, and the list of all that it asks, says and does."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    happened: list[str] = []
    page.on("request", lambda asked: happened.append(f"asks for {asked.url}"))
    page.on("console", lambda line: happened.append(f"says {line.text}"))
    page.on("pageerror", lambda error: happened.append(f"fails with {error}"))
    page.on("popup", lambda other: happened.append(f"opens {other.url}"))

    def dialog(found: Any) -> None:
        happened.append(f"shows a dialog: {found.message}")
        found.dismiss()

    page.on("dialog", dialog)
    page.goto(path.as_uri())
    happened.remove(f"asks for {path.as_uri()}")
    return page, happened


def violations(page: Any) -> list[str]:
    """Return what axe finds wrong, after it has looked at something."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"]
    return [f"{each['id']} ({each['impact']}): {each['nodes'][0]['html']}"
            for each in found["violations"]]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", NAMES)
def test_accessibility(
    chromium: Any, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    page, happened = opened(chromium, pages[name], width, scheme)
    with_axe = violations(page)
    page.close()
    assert with_axe == []
    assert happened == []


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_and_can_be_reached(chromium: Any, pages: dict[str, Path], name: str) -> None:
    for width in (400, 1200):
        page, happened = opened(chromium, pages[name], width, "light")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert min(page.evaluate(SCROLLING), default=0) == 0
        # The tabulator comes to everything that can be focused, and on to the end.
        every = page.evaluate("[...document.querySelectorAll('[tabindex=\"0\"]')].length")
        reached = set()
        for _ in range(every):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(
                "[...document.querySelectorAll('*')].indexOf(document.activeElement)"
            ))  # fmt: skip
            assert page.evaluate("document.activeElement.tabIndex") == 0
        assert len(reached) == every > 0
        page.close()
        assert happened == []


@pytest.mark.parametrize("name", NAMES)
def test_it_prints_dark_on_light(chromium: Any, pages: dict[str, Path], name: str) -> None:
    page, happened = opened(chromium, pages[name], 1200, "dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
    printed = page.pdf()
    page.close()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") >= 2
    assert len(printed) > 10_000
    assert happened == []


def test_axe_and_the_browser_find_what_is_wrong(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.html").write_text(WRONG + "<script>alert(1)</script>")
    page, happened = opened(chromium, tmp_path / "wrong.html", 400, "light")
    found = " ".join(violations(page))
    page.close()
    for rule in ("color-contrast", "html-has-lang", "image-alt"):
        assert rule in found
    assert any(each.startswith("asks for") for each in happened)
    assert "shows a dialog: 1" in happened


def checker(*paths: Path) -> list[str]:
    """Return the errors and warnings of the Nu checker."""
    words = ["java", "-jar", NU, "--format", "json", "--exit-zero-always", *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return [
        f"{Path(m['url']).name}:{m.get('lastLine')}: {m['message']} {m.get('extract', '')[:200]}"
        for m in json.loads(done.stderr)["messages"]
    ]


def test_the_html_is_valid(pages: dict[str, Path]) -> None:
    assert checker(*pages.values()) == []


def test_the_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wrong.html").write_text(WRONG)
    assert any("Duplicate ID" in each for each in checker(tmp_path / "wrong.html"))
