# SPDX-License-Identifier: Apache-2.0
"""The explorer in a browser, by mouse and by keyboard, without a network: ``make test-browser``.

The command runs as a process, and Chromium walks through it. Whatever a tab asks of others, says in
its log, or fails with makes its test fail; refusals that a test provokes are counted.
"""

import itertools
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from browser import WRONG, checker, isolated, launched, misfits, violations, watch
from cli_runner import COMMAND, run_process
from pufferfish.paper import write_table
from shared_data import CHECKOUT

REFUSED = "says Failed to load resource: the server responded with a status of 4"
#: Columns of each table: the secret, what is published, and some value of it.
TABLES = {
    "student": ("higher", "romantic", "no"),
    "bank": ("loan", "marital", "single"),
    "big": ("ill", "visits", "3"),
    "slow": ("who", "what", "v07"),
}
BIG = """COPY (SELECT i AS id, 'person ' || i AS name, if(hash(i) % 10 < 4, 'yes', 'no') AS ill,
    hash(i * 7) % 5 + if(ill = 'yes', hash(i * 3) % 2, 0) AS visits, hash(i) % 100000 AS code,
    i % 97 AS age, 'town ' || i % 500 AS town, i * 37 % 100000 / 100.0 AS income,
    DATE '2000-01-01' + (i % 8000)::INT AS day, md5(i::VARCHAR) AS mark
    FROM range(3_200_000) AS rows(i)) TO '{}' (HEADER)"""
#: Its channel takes some seconds under a confidence.
SLOW = """COPY (SELECT 's' || i % 3 AS who, printf('v%02d', (hash(i) % 20 * (1 + hash(i * 5) % 2) +
    i % 3) % 20) AS what FROM range(6000) AS rows(i)) TO '{}' (HEADER)"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture
def tables(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Give tables by name, each at a path that no other test opens."""

    def path(name: str) -> Path:
        found, own = made / f"{name}.csv", tmp_path / f"{name}.csv"
        if not found.exists() and name in ("big", "slow"):
            duckdb.sql((BIG if name == "big" else SLOW).format(found))
        elif not found.exists():
            write_table(name, found)
        if not own.exists():
            os.link(found, own)
        return own

    return path


@contextmanager
def exploring(enter: list[str], folder: Path, *words: str) -> Iterator[str]:
    """Run the command, and give its address; it must end well and remove what it has written."""
    command = [*enter, *COMMAND, "explore", "--no-browser", *words]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    assert run.stdout is not None
    said = run.stdout.readline()
    yield said.split()[4]
    early = run.poll()
    run.terminate()
    fault = run.communicate(timeout=20)[1]
    assert (early, fault, run.returncode) == (None, "pufferfish: error: terminated\n", 143)
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, list[str]]]:
    """A browser, and the address of an explorer that it can reach, beside nothing else."""
    folder, browsers = tmp_path_factory.mktemp("explorer"), tmp_path_factory.mktemp("browser")
    with (
        isolated() as enter,
        launched(enter, browsers) as browser,
        exploring(enter, folder) as address,
    ):
        yield browser, address, enter


@dataclass
class Tabs:
    """Tabs of one window, all that happens in them, and whether a refusal is meant to."""

    context: Any
    address: str
    happened: list[str] = field(default_factory=list)
    refused: bool = False

    def open(self, place: str = "") -> Any:
        own = self.address.partition("?")[0]
        page = self.context.new_page()
        watch(page, own, self.happened)
        page.goto(own + place if place else self.address)
        return page


@pytest.fixture
def tabs(session: tuple[Any, str, list[str]]) -> Iterator[Tabs]:
    context = session[0].new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    found = Tabs(context, session[1])
    yield found
    context.close()
    assert [each for each in found.happened if not each.startswith(REFUSED)] == []
    assert bool(found.happened) == found.refused


def button(name: str) -> str:
    return f"button:text-is('{name}')"


def give(page: Any, path: Path, *, sent: bool = False) -> None:
    """Open a table on the start page, by its path or as an upload."""
    if sent:
        page.set_input_files("#send", path)
        page.click("form:has(#send) button")
    else:
        page.fill("#path", str(path))
        page.click(button("Open"))


def count(page: Any, name: str) -> None:
    """Choose the columns of a table, and count."""
    page.wait_for_selector("#choices")
    page.select_option("#secret", TABLES[name][0])
    page.select_option("#public", TABLES[name][1])
    page.click("#count")
    page.wait_for_selector("#epsilon")


def settle(page: Any) -> None:
    """Wait until no part of the preview is outdated."""
    asked = "String(new URLSearchParams(new FormData(choices))) === location.search.slice(1)"
    for _ in range(100):  # it is asked for a moment after the last key
        if page.evaluate(asked):
            break
        page.wait_for_timeout(50)
    page.wait_for_selector("[aria-busy=true]", state="detached")


def calibrate(page: Any, epsilon: str) -> None:
    """Choose an epsilon, and calibrate."""
    page.fill("#epsilon", epsilon)
    settle(page)
    page.click(button("Calibrate"))
    page.wait_for_url(re.compile("/plans/"))


def release(page: Any) -> None:
    page.click(button("Release"))
    page.wait_for_selector("text=/Download .*released-1.csv/")


def download(page: Any, link: str, folder: Path) -> Path:
    with page.expect_download() as found:
        page.click(f"a[download]:has-text('{link}')")
    path = folder / str(found.value.suggested_filename)
    found.value.save_as(path)
    return path


def value(page: Any, of: str) -> str:
    return str(page.get_attribute(f"[data-for={of}]", "aria-valuetext"))


def chosen(page: Any, *names: str) -> list[str]:
    return [page.input_value(f"#{name}") for name in names or ("secret", "public", "epsilon")]


def commanded(*words: Any) -> str:
    """Return what a command prints; it succeeds."""
    done = run_process(*words)
    assert done.status == 0, done.err
    return done.out


@pytest.mark.parametrize("name", ["student", "bank", "big", "big, sent"])
def test_a_table_is_published(
    tabs: Tabs, tables: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    name, _, sent = name.partition(", ")
    table, page = tables(name), tabs.open()
    assert name != "big" or table.stat().st_size > 300e6
    give(page, table, sent=bool(sent) or name == "bank")
    page.wait_for_selector("#choices")
    assert chosen(page, "secret", "public") == ["", ""]
    page.wait_for_selector("#count:disabled")
    assert page.inner_text("#count-why") == "Choose a secret and a column to publish first."
    count(page, name)
    # Nothing is preset, and a button says why it cannot be pressed.
    assert chosen(page) == [*TABLES[name][:2], ""]
    assert page.is_disabled(button("Calibrate"))
    assert "Choose an epsilon first" in page.inner_text("[data-part=offer]")
    page.fill("#epsilon", "0.05")
    settle(page)
    preview = page.inner_text("[data-part=rows]")
    assert TABLES[name][2] in preview
    assert "simulated" in preview
    # A reload, back and forward keep what was chosen.
    page.reload()
    settle(page)
    assert chosen(page) == [*TABLES[name][:2], "0.05"]
    assert page.inner_text("[data-part=rows]") == preview
    page.go_back()
    page.wait_for_selector("#count")
    page.go_forward()
    settle(page)
    assert chosen(page) == [*TABLES[name][:2], "0.05"]
    shown = page.inner_text("[data-part=offer] pre")
    calibrate(page, "0.050")
    assert "Proved: the loss is within epsilon 0.050" in page.inner_text("main")
    assert shown.replace("0.05", "0.050") in page.inner_text("main")
    page.go_back()
    settle(page)
    assert chosen(page) == [*TABLES[name][:2], "0.050"]
    page.go_forward()
    release(page)
    # What is downloaded is what the command line verifies and estimates from.
    plan = download(page, "The plan", tmp_path)
    released = download(page, "released-1.csv", tmp_path)
    assert "within epsilon 0.05\n" in commanded("verify", plan, table)
    assert TABLES[name][1] in released.read_text().partition("\n")[0]
    rows = duckdb.sql(f"SELECT count(*) FROM read_csv('{table}')").fetchall()
    estimated = commanded("estimate", released, "--plan", plan)
    assert f"{rows[0][0]} rows, released by" in estimated
    for link in ("private report", "public report"):
        report = download(page, link, tmp_path)
        other = tabs.context.new_page()
        watch(other, report.as_uri(), tabs.happened)
        other.goto(report.as_uri())
        assert TABLES[name][1] in other.inner_text("body")


def test_a_file_that_is_no_table(tabs: Tabs, tables: Callable[[str], Path], tmp_path: Path) -> None:
    page = tabs.open()
    disguised, document = tmp_path / "paper.csv", tmp_path / "letter.docx"
    disguised.write_bytes(page.pdf())
    document.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 9)
    for wrong in (disguised, document):
        give(page, wrong, sent=True)
        page.wait_for_selector("text=It is being sent", state="detached")
        said = page.locator("#send >> xpath=../.. >> [role=status]")
        said.filter(has_text=re.compile(r"\w+ \w+ \w+")).wait_for()
        assert wrong.name in said.inner_text()
        assert "\n" not in said.inner_text()
        give(page, wrong)
        page.wait_for_selector("h1:text('This did not work')")
        assert wrong.name in page.inner_text("[role=alert]")
        page.go_back()
    tabs.refused = True
    give(page, tables("student"), sent=True)
    page.wait_for_selector("#choices")


def test_a_mistyped_epsilon(tabs: Tabs, tables: Callable[[str], Path]) -> None:
    page, tabs.refused = tabs.open(), True
    give(page, tables("student"))
    count(page, "student")
    for wrong in ("0,5x", "-1", "0", "1e999"):
        page.fill("#epsilon", wrong)
        settle(page)
        assert "epsilon must be" in page.inner_text("[data-part=offer] [role=alert]")
        assert page.is_disabled(button("Calibrate"))
        assert "The choices must be mended first." in page.inner_text("[data-part=offer]")
        assert page.locator("[data-part=rows] figure").count() == 0
        assert page.evaluate("document.activeElement.id") == "epsilon"
    page.fill("#epsilon", "0.05")
    settle(page)
    assert page.is_enabled(button("Calibrate"))
    assert page.locator("[role=alert]").count() == 0
    assert page.locator("[data-part=rows] figure").is_visible()


def calibrate_slowly(page: Any) -> None:
    """Count the open table, and start a calibration that takes some seconds."""
    count(page, "slow")
    page.fill("#epsilon", "0.5")
    settle(page)
    page.fill("#confidence", "0.95")
    page.click(button("Calibrate"))


def test_a_calibration_is_cancelled(tabs: Tabs, tables: Callable[[str], Path]) -> None:
    page = tabs.open()
    give(page, tables("slow"))
    calibrate_slowly(page)
    page.wait_for_selector("text=It has run for 1 s.")
    page.click(button("Cancel"))
    page.wait_for_selector("h1:text('Cancelled')")
    back = page.get_attribute("a:text-is('Back')", "href")
    assert "secret=who&public=what&" in back
    assert "&epsilon=0.5&confidence=0.95" in back
    page.goto(tabs.address)
    listed = page.locator("section >> nth=0 >> li").all_inner_texts()
    assert [each for each in listed if str(tables("slow")) in each] == [str(tables("slow"))]
    page.goto(page.url + back[1:].replace("0.95", ""))
    assert chosen(page) == [*TABLES["slow"][:2], "0.5"]


def test_two_tabs(tabs: Tabs, tables: Callable[[str], Path], tmp_path: Path) -> None:
    one, other = tabs.open(), tabs.open()
    for page, epsilon in ((one, "0.05"), (other, "0.1")):
        give(page, tables("bank"))
        count(page, "bank")
        page.fill("#epsilon", epsilon)
    for page, epsilon in ((one, "0.05"), (other, "0.1")):
        settle(page)
        page.reload()
        assert chosen(page) == [*TABLES["bank"][:2], epsilon]
        calibrate(page, epsilon)
    release(one)
    # The table has been released since the other tab was opened: it is told, and asked again.
    tabs.refused = True
    other.click(button("Release"))
    other.wait_for_selector("h1:text('This did not work')")
    other.go_back()
    other.reload()
    other.check("[name=again]")
    other.click(button("Draw again"))
    other.wait_for_selector("a.button[download]")
    for page, epsilon in ((one, "0.05"), (other, "0.1")):
        plan = download(page, "The plan", tmp_path)
        assert f"within epsilon {epsilon}\n" in commanded("verify", plan, tables("bank"))
    assert one.url.partition("#")[0] != other.url.partition("#")[0]


def test_keys_move_the_sliders(tabs: Tabs, tables: Callable[[str], Path]) -> None:
    page = tabs.open()
    give(page, tables("student"))
    count(page, "student")
    settle(page)
    assert value(page, "epsilon") == "not chosen"
    page.focus("[data-for=epsilon]")
    numbers, leads = [], []
    for key, times in (("ArrowRight", 6), ("ArrowLeft", 8)):
        for _ in range(times):
            page.keyboard.press(key)
        settle(page)
        numbers.append(page.input_value("#epsilon"))
        leads.append(page.inner_text("[data-part=offer] .lead >> nth=0"))
        assert value(page, "epsilon") == numbers[-1]
        assert f"--epsilon {numbers[-1]}" in page.inner_text("[data-part=offer] pre")
        assert f"epsilon={numbers[-1]}" in page.url
        assert page.evaluate("document.activeElement.dataset.for") == "epsilon"
    assert 0 < float(numbers[1]) < float(numbers[0])
    assert leads[0] != leads[1]
    page.focus("[data-for=confidence]")
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.input_value("#confidence") == "0.5"
    assert "--confidence 0.5" in page.inner_text("[data-part=offer] pre")
    # A number that is typed moves the slider.
    page.fill("#epsilon", "0.01")
    assert page.input_value("[data-for=epsilon]") == "0"
    settle(page)


#: How the element with the focus is outlined; nothing where none has it.
OUTLINE = """() => {
    const found = document.activeElement, style = getComputedStyle(found);
    const box = found.getBoundingClientRect();
    return found === document.body || !box.width ? '' : style.outlineStyle + style.outlineWidth;
}"""


def to(page: Any, selector: str, key: str = "Tab") -> None:
    """Press a key until something has the focus; whatever has it on the way shows so."""
    for _ in range(80):
        page.keyboard.press(key)
        if not page.evaluate("document.activeElement === document.body"):  # the page has an end
            assert page.evaluate(OUTLINE).startswith(("solid", "auto")), page.content()
        if page.evaluate("chosen => document.activeElement.matches(chosen)", selector):
            return
    raise AssertionError(f"no key comes to {selector}")


def test_by_keyboard_alone(tabs: Tabs, tables: Callable[[str], Path]) -> None:
    page = tabs.open()
    keys = page.keyboard
    to(page, "#path")
    keys.type(str(tables("slow")))
    keys.press("Enter")
    page.wait_for_selector("#choices")
    to(page, "#secret")
    keys.type(TABLES["slow"][0])
    to(page, "#public")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    assert chosen(page, "secret", "public") == [*TABLES["slow"][:2]]
    to(page, "#count")
    keys.press("Enter")
    page.wait_for_selector("#epsilon")
    to(page, "[name=order]")
    keys.press("ArrowDown")  # by the alphabet: noise applies, and there is more to choose
    assert page.is_visible("#stale")
    to(page, "button:not(.plain)")
    keys.press("Space")
    page.wait_for_url(re.compile("order=alphabetical"))
    to(page, "[data-for=epsilon]")
    keys.press("ArrowRight")
    settle(page)
    to(page, "#epsilon")
    keys.press("Control+A")
    keys.type("0.5")
    settle(page)
    # A radio keeps the focus while its table is replaced.
    to(page, "[name=mechanism]")
    for _ in range(2):
        own = page.evaluate("document.activeElement.value")
        keys.press("ArrowDown")
        settle(page)
        now = page.evaluate("document.activeElement.value")
        assert now not in (own, None)
        assert page.is_checked(f"[value='{now}']")
        assert page.evaluate(OUTLINE).startswith(("solid", "auto"))
    assert f"--mechanism {now.partition(' ')[0]}" in page.inner_text("[data-part=offer] pre")
    to(page, "button[formaction$=calibrate]")
    keys.press("Space")
    page.wait_for_url(re.compile("/plans/"))
    to(page, "form[action$=release] button")
    keys.press("Enter")
    page.wait_for_selector("text=/Download .*released-1.csv/")
    to(page, "a[download]")
    with page.expect_download() as found:
        keys.press("Enter")
    assert found.value.suggested_filename.endswith("released-1.csv")
    to(page, "nav a[href='/']", "Shift+Tab")
    keys.press("Enter")
    page.wait_for_selector("#path")
    to(page, "#send")
    with page.expect_file_chooser() as choosing:
        keys.press("Space")
    choosing.value.set_files(tables("student"))
    to(page, "form:has(#send) button")
    keys.press("Enter")
    page.wait_for_selector("#choices")


def judge(page: Any, name: str, folder: Path) -> list[str]:
    """Return what is wrong with a page as it stands, light and dark, narrow and wide."""
    found = []
    for width, scheme in itertools.product((400, 1280), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        wrong = violations(page) + misfits(page)
        found += [f"{name}, {width} px, {scheme}: {each}" for each in wrong]
    html = page.evaluate("document.documentElement.outerHTML")
    (folder / f"{name}.html").write_text(f"<!DOCTYPE html>\n{html}", encoding="utf-8")
    # What was served, before the script has changed it.
    get = "async () => await (await fetch(location.href)).text()"
    (folder / f"{name}, served.html").write_text(page.evaluate(get), encoding="utf-8")
    return found


def test_every_page_is_accessible_and_valid(
    tabs: Tabs, tables: Callable[[str], Path], tmp_path: Path
) -> None:
    page, own, tabs.refused = tabs.open(), tables("slow"), True
    wrong = judge(page, "start", tmp_path)
    give(page, own)
    page.wait_for_selector("#choices")
    wrong += judge(page, "table", tmp_path)
    count(page, "slow")
    wrong += judge(page, "counted", tmp_path)
    page.fill("#epsilon", "0,5x")
    settle(page)
    wrong += judge(page, "mistyped", tmp_path)
    page.check("[value=alphabetical]")
    assert page.is_disabled(button("Calibrate"))
    wrong += judge(page, "stale", tmp_path)
    page.click(button("Apply"))
    page.wait_for_url(re.compile("order=alphabetical"))
    page.fill("#epsilon", "0.5")
    settle(page)
    page.wait_for_selector("[data-part=loss] figure")
    wrong += judge(page, "preview", tmp_path)
    page.select_option("#public", TABLES["slow"][0])
    wrong += judge(page, "same", tmp_path)
    page.reload()
    settle(page)
    page.click(button("Calibrate"))
    page.wait_for_selector("#releases")
    wrong += judge(page, "plan", tmp_path)
    page.click(button("Verify it again"))
    page.wait_for_selector("h1:text('Done')")
    assert "verified" in page.inner_text("main")
    wrong += judge(page, "verified", tmp_path)
    page.click("a:text-is('Back')")
    release(page)
    wrong += judge(page, "released", tmp_path)
    page.goto(tabs.address)
    wrong += judge(page, "start again", tmp_path)
    page.click(f"li >> text='{own}'")
    calibrate_slowly(page)
    page.wait_for_selector("[data-job]")
    wrong += judge(page, "running", tmp_path)
    page.click(button("Cancel"))
    page.wait_for_selector("h1:text('Cancelled')")
    wrong += judge(page, "cancelled", tmp_path)
    back = page.get_attribute("a:text-is('Back')", "href")
    page.goto(tabs.address.partition("/?")[0] + back.replace("0.95", ""))
    settle(page)
    own.rename(tmp_path / "gone.csv")
    page.click(button("Calibrate"))
    page.wait_for_selector("h1:text('This did not work')")
    wrong += judge(page, "failed", tmp_path)
    page.goto(page.url.partition("/jobs")[0] + "/plans/999")
    wrong += judge(page, "refused", tmp_path)
    pages = list(tmp_path.glob("*.html"))
    assert len(pages) == 30
    assert wrong + checker(*pages) == []


def test_the_judges_find_what_is_wrong(session: tuple[Any, str, list[str]]) -> None:
    page = session[0].new_page()
    wide = "<p style='width: 5000px'>wide"
    page.set_content(f"{WRONG}<div style='overflow-x: auto; width: 50px'>{wide}</div>{wide}")
    assert "image-alt" in " ".join(violations(page))
    assert len(misfits(page)) == 2
    page.close()


def test_a_request_elsewhere_is_noticed_and_comes_to_nothing(
    session: tuple[Any, str, list[str]],
) -> None:
    browser, address, enter = session
    tabs = Tabs(browser.new_context(), address)
    page = tabs.open()
    page.evaluate("fetch('http://192.0.2.1/').catch(() => 0)")
    page.wait_for_timeout(200)
    tabs.context.close()
    assert any("Content Security Policy" in each for each in tabs.happened), tabs.happened
    page, happened = browser.new_page(), list[str]()
    watch(page, address, happened)
    if enter:
        with pytest.raises(Exception, match=r"ERR_INTERNET_DISCONNECTED|ERR_ADDRESS_UNREACHABLE"):
            page.goto("http://192.0.2.1/")
        assert "asks for http://192.0.2.1/" in happened
    page.close()


#: Places of pictures: where each begins, and its height; all are 1000 pixels wide.
PICTURES = {"choose": ("#sliders", 788), "plan": ("main", 758)}


def picture(page: Any, name: str, folder: Path, scheme: str, width: int) -> Path:
    start, height = PICTURES[name]
    top = page.evaluate("id => document.querySelector(id).getBoundingClientRect().top", start)
    top += page.evaluate("scrollY")
    clip = {"x": 0, "y": max(top - 16, 0), "width": width, "height": height}
    path = folder / f"explorer-{name}{'' if scheme == 'light' else '-dark'}-{width}.png"
    page.screenshot(path=path, clip=clip, full_page=True)
    return path


def size(path: Path) -> tuple[int, ...]:
    """Return the width and the height of a picture."""
    return struct.unpack(">II", path.read_bytes()[16:24])


def test_the_screenshots_of_the_documentation(tabs: Tabs, tmp_path: Path) -> None:
    pages = {"choose": tabs.open(), "plan": tabs.open()}
    for page in pages.values():
        page.goto(f"{page.url.rpartition('/')[0]}/begin?now")  # the example
        page.select_option("#secret", "marital-status")
        page.select_option("#public", "workclass")
        page.click("#count")
        page.fill("#epsilon", "0.5")
        settle(page)
    pages["plan"].click(button("Calibrate"))
    pages["plan"].wait_for_selector("#releases")
    release(pages["plan"])
    given = os.environ.get("PUFFERFISH_PICTURES")
    for name, page in pages.items():
        page.evaluate("document.activeElement.blur()")
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            for width in (400, 1000):
                page.set_viewport_size({"width": width, "height": 900})
                drawn = picture(page, name, tmp_path, scheme, width)
        shown = CHECKOUT / "docs" / "pictures" / f"explorer-{name}.png"
        assert drawn.stat().st_size < 150_000
        if given:
            shutil.copy(drawn, Path(given) / shown.name)
        else:
            assert size(drawn) == size(shown), "make screenshots"


def test_a_double_click_makes_one_release(tabs: Tabs, tables: Callable[[str], Path]) -> None:
    page = tabs.open()
    give(page, tables("bank"))
    count(page, "bank")
    calibrate(page, "0.07")
    page.dblclick(button("Release"))
    page.wait_for_selector("text=/Download .*released-1.csv/")
    page.wait_for_timeout(1000)
    page.reload()
    assert page.locator("#releases h3").count() == 1
    # Another draw is asked for, and says what it is.
    assert "Another draw is another release" in page.inner_text("#releases [role=alert]")
    page.click(button("Draw again"))
    assert page.evaluate("document.activeElement.name") == "again"
    page.wait_for_timeout(500)
    assert page.locator("#releases h3").count() == 1
