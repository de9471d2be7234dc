# SPDX-License-Identifier: Apache-2.0
"""A hostile table is text everywhere: in reports, plots, notebooks, terminals, CSV and JSON."""

import csv
import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from matplotlib.mathtext import MathTextParser

import pufferfish as pf
from cli_runner import Outcome, run, strict_json
from html_reader import Html
from pufferfish import plots
from pufferfish.errors import PufferfishWarning, listed_pairs, printable, quoted, short_name
from pufferfish.plots.style import named, write_svg
from pufferfish.release.sinks import guarded, texts, unguarded
from pufferfish.report.page import page
from pufferfish.report.remake import command
from report_cases import COLUMN, LEVELS, OBEYED, SECRET, SECRETS, hostile_table

SOURCE = "<u>\u202e.csv"
#: A column that is kept beside the released one.
KEPT = "@note\x1b"
#: The same table with names of nothing but letters, as long as an axis shows and in the same order.
NAMES = [*LEVELS, *SECRETS, SECRET, COLUMN]
TAME = {name: f"name {chr(97 + k)}" for k, name in enumerate(sorted(NAMES))}
KINDS = ["channel", "kept", "noise", "publishable"]


@cache
def made(kind: str, tame: bool = False) -> tuple[pf.Scenario, pf.Plan]:
    """Return a plan for the hostile table, or for its tame copy."""
    name: Callable[[str], str] = TAME.__getitem__ if tame else str
    table, levels = hostile_table(), LEVELS
    if kind == "publishable":  # more take long
        levels = LEVELS[::5]
        table = table[table[COLUMN].isin(levels)]
    table = table.map(name).rename(columns=name)
    given: Any = {"secret": name(SECRET), "public": name(COLUMN)}
    if kind == "publishable":
        given |= {"pairs": list(itertools.combinations(map(name, SECRETS), 2))}
        with pytest.warns(PufferfishWarning):
            scenario = pf.noisy_counts(table, 1, seed=1, levels=list(map(name, levels)), **given)
        return scenario, pf.calibrate(scenario, 2)
    order = list(map(name, levels)) if kind == "noise" else None
    scenario = pf.Scenario(pf.Prior.from_table(table, order=order, **given))
    return scenario, pf.calibrate(scenario, 1, **({"best_for": "kept"} if kind == "kept" else {}))


@cache
def estimated(tame: bool = False) -> Any:
    plan = made("kept", tame)[1]
    column = hostile_table()[COLUMN].map(TAME.__getitem__ if tame else str)
    with pytest.warns(PufferfishWarning):
        return plan.estimate(plan.release(column, seed=1))


# Reports -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_reports(kind: str, public: bool) -> None:
    scenario, plan = made(kind)
    about = None if public else scenario
    source = page(plan, about, public=public, source=SOURCE)
    tame, known = made(kind, True)
    found = Html(source)
    expected = Html(page(known, None if public else tame, public=public))
    assert found.shapes == expected.shapes
    assert "script" not in found.tags
    assert not OBEYED.search(source)
    title = printable(f"How {quoted(COLUMN)} hides {quoted(SECRET)}")
    assert found.texts["h1"] == found.texts["title"] == [title]
    (lead,) = (text for text in found.texts["p"] if "Nobody who knows" in text)
    assert printable(listed_pairs(plan.pairs)) in lead
    if not public:
        again = "\n".join(map(printable, command(plan, SOURCE).split("\n")))
        assert again in found.texts["code"]


# Plots -------------------------------------------------------------------------------------------


def drawn(tame: bool = False) -> Iterator[tuple[Any, set[str]]]:
    """Yield figures, and names that each shows."""
    name: Callable[[str], str] = TAME.__getitem__ if tame else str
    scenario, plan = made("kept", tame)
    ordered, noise = made("noise", tame)
    # Of so many values every other one is named.
    levels = {scenario.support.name(k) for k in range(0, len(LEVELS), 2)}
    secrets = set(map(name, SECRETS))
    yield plots.distributions(scenario), secrets | levels | {name(COLUMN)}
    yield plots.channel(plan), levels
    yield plots.frequencies(estimated(tame)), levels
    yield plots.transport(ordered), {ordered.support.name(k) for k in range(0, len(LEVELS), 2)}
    for figure in (plots.belief(plan), plots.loss(ordered, noise), plots.noise([noise])):
        yield figure, set()


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*given: Any, **options: Any) -> Any:
        raise AssertionError("a name is read as mathematics")

    assert named(LEVELS[0]) == "<script>a…cript>"
    monkeypatch.setattr(MathTextParser, "parse", parse)
    for (figure, names), (tame, _) in zip(drawn(), drawn(True), strict=True):
        write_svg(figure, tmp_path / "plot.svg", force=True)
        drawing = plots.svg(figure, 'a "figure" of <levels> & more')
        assert elements(drawing)[0].get("aria-label") == 'a "figure" of <levels> & more'
        allowed = {(each.tag, *sorted(each.attrib)) for each in elements(plots.svg(tame, "tame"))}
        assert {(each.tag, *sorted(each.attrib)) for each in elements(drawing)} <= allowed
        for source in (drawing, (tmp_path / "plot.svg").read_text(encoding="utf-8")):
            assert not OBEYED.search(source)
            assert not any(each.tag.endswith("script") for each in elements(source))
            words = {"".join(each.itertext()).strip() for each in elements(source)}
            assert {named(name).strip() for name in names} <= words
        figure.savefig(tmp_path / "plot.png", dpi=50)
        assert imread(tmp_path / "plot.png").size > 10_000


def elements(source: str) -> list[Any]:
    return list(ET.fromstring(source).iter())


# Notebooks and interpreters ----------------------------------------------------------------------


def test_notebooks_and_interpreters() -> None:
    scenario, plan = made("channel")
    prior, noise = scenario.priors[0], made("noise")[1]
    compared = pf.compare(scenario, ["0.5", "1"])
    found = estimated()
    for known in (prior, plan, noise, found, compared):
        source = known._repr_html_()
        tags = {each for shape in Html(source).shapes for each in shape}
        assert tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "scope"}
        assert not OBEYED.search(source)
    for known in (prior, scenario, plan, noise, found, compared, made("noise")[0]):
        assert not OBEYED.search(repr(known))
    cells = {printable(short_name(name)) for name in (*prior.support.names, *SECRETS)}
    assert cells <= set(Html(prior._repr_html_()).texts["th"])
    figures = {printable(short_name(f"frequency {name}")) for name in prior.support.names}
    assert figures <= set(Html(found._repr_html_()).texts["th"])
    assert printable(quoted(COLUMN)) in repr(plan)


# Terminals, CSV and JSON -------------------------------------------------------------------------


def quiet(*words: Any) -> Outcome:
    """Run a command, and check that a terminal obeys nothing of what it prints."""
    done = run(*words)
    assert done.status == 0, done.err
    assert not OBEYED.search(done.out + done.err)
    return done


def safe(source: str) -> list[list[str]]:
    """Return the rows of a CSV file, after a check that no cell is a formula."""
    rows = list(csv.reader(io.StringIO(source, newline="")))
    for cell in itertools.chain(*rows):
        assert guarded(texts([unguarded(cell)]))[0].as_py() == cell
        assert not re.match(r"[=+\-@\t\r\n]", cell) or re.fullmatch(r"[-+][\d.e-]+", cell), cell
    return rows


@pytest.mark.parametrize("kind", ["frequencies", "kept"])
def test_what_commands_print_and_write(kind: str, tmp_path: Path) -> None:
    table, plan, out, other, record, books = (
        tmp_path / f"{name}" for name in ("t.parquet", "p.json", "r.csv", "r.parquet", "r", "b.db")
    )
    frame = hostile_table()
    frame[KEPT] = frame[COLUMN]
    frame.to_parquet(table)
    names = set(made("kept")[0].support.names)
    words = ("calibrate", table, "--secret", SECRET, "--public", COLUMN, "--epsilon", 1)
    quiet(*words, "--best-for", kind, "--save", plan, "--explain")
    quiet(*words, "--epsilon", 2, "--mechanism", "all")
    safe(quiet(*words, "--format", "csv").out)
    data = quiet(*words, "--format", "json", "--show-channel").data
    assert set(data["scenario"]["support"]["levels"]) == names
    assert (data["scenario"]["secret"], data["scenario"]["public"]) == (SECRET, COLUMN)
    quiet("verify", plan, table)
    quiet("ledger", "open", books, table, "--dataset", "d", "--secret", SECRET, "--budget", 9)
    quiet("ledger", "price", books, table, "--plan", plan)
    given = ("release", table, "--plan", plan)
    quiet(*given, "-o", other, "--record", record, "--publish-channel", "--ledger", books)
    quiet(*given, "--keep", KEPT, "-o", out)
    quiet("ledger", "show", books)
    quiet("ledger", "verify", books, table)
    told = strict_json(record.read_text())
    assert (told["column"], told["secret"]) == (COLUMN, SECRET)
    assert told["pairs"] == sorted(map(list, itertools.combinations(sorted(SECRETS), 2)))
    assert set(told["support"]["names"]) == names
    rows = safe(out.read_text(encoding="utf-8"))
    assert {unguarded(row[0]) for row in rows[1:]} <= names
    assert [unguarded(row[-1]) for row in rows] == [KEPT, *frame[KEPT]]
    for by in (("--plan", plan), ("--record", record)):
        quiet("estimate", other, *by)
    figures = quiet("estimate", other, *by, "--format", "json").data["figures"]
    cells = safe(run("estimate", other, *by, "--format", "csv").out)  # as exact as a file
    quiet("estimate", other, *by, "-o", tmp_path / "e.csv")
    assert safe((tmp_path / "e.csv").read_text(encoding="utf-8")) == cells
    assert names == {each["label"] for each in figures if each["kind"] == "frequency"}
    assert names == {unguarded(row[1]) for row in cells if row[0] == "frequency"}
