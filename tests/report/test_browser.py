# SPDX-License-Identifier: Apache-2.0
"""Reports in a browser, light and dark, narrow and wide: ``make test-browser``.

The system's Chromium is driven by Playwright; axe judges accessibility, and the Nu checker the
HTML. Each checker is given pages that are wrong, too: one that finds nothing there checks nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import WRONG, checker, isolated, launched, misfits, violations, watch
from report_cases import reports

NAMES = ["robust", "sample", "nothing", "channel", "public", "publishable", "hostile",
         "hostile-public"]  # fmt: skip


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
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with isolated() as enter, launched(enter, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def opened(browser: Any, path: Path, width: int, scheme: str) -> tuple[Any, list[str]]:
    """Return an open page, and the list of all that it asks, says and does."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    happened: list[str] = []
    watch(page, path.as_uri(), happened)
    page.goto(path.as_uri())
    return page, happened


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
        assert misfits(page) == []
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


def test_the_html_is_valid(pages: dict[str, Path]) -> None:
    assert checker(*pages.values()) == []


def test_the_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wrong.html").write_text(WRONG)
    assert any("Duplicate ID" in each for each in checker(tmp_path / "wrong.html"))
