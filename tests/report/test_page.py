# SPDX-License-Identifier: Apache-2.0
"""The report: it holds what it should and nothing else, as text, and asks for nothing."""

import os
import re
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import pufferfish as pf
from cli_runner import run
from html_reader import Html
from pufferfish.errors import CheckFailed, InputError
from pufferfish.report.page import page, write_report
from report_cases import noisy, numbers


def checked(source: str) -> Html:
    """Return what a report holds, after the checks that every report must pass."""
    found = Html(source)
    assert len(found.values("id")) == len({*found.values("id")})
    addresses = found.values("src", "href", "xlink:href", "action", "data")
    assert all(each.startswith(("#", "data:image/png;base64,")) for each in addresses)
    assert "script" not in found.tags
    assert "http" not in source.replace("http-equiv", "").replace("http://www.w3.org/", "")
    assert source.startswith("<!DOCTYPE html>")
    assert '<html lang="en">' in source
    assert source.count("<h1") == 1
    for svg in re.findall(r"<svg.*?</svg>", source, flags=re.DOTALL):
        assert ET.fromstring(svg).get("aria-label")
    return found


@pytest.fixture(scope="module")
def prior() -> pf.Prior:
    return pf.Prior.from_table(numbers().head(300), secret="s", public="x")


def test_what_a_report_says(prior: pf.Prior) -> None:
    plan = pf.calibrate(prior, "0.5")
    words = " ".join(checked(page(plan, prior, source="my.csv")).words)
    for text in (
        "PRIVATE.", "x", "(s: a, b)", "1.65 times", "epsilon 0.5", "Proved: the loss is within",
        "if these 300 rows are all there is", f"{plan.scale:.10g}"[:8], "37.8 %", "62.2 %",
        "pufferfish calibrate my.csv --secret s --public x", "pf.Prior.from_table('my.csv'",
        "Keep the plan with the table", "ball arithmetic", "numpy", "mean",
    ):  # fmt: skip
        assert text in words, text


@pytest.mark.parametrize("options", [{"confidence": "0.9"}, {"tv_radius": "0.1"}, {}])
def test_reports_of_all_kinds(options: dict[str, str]) -> None:
    counts = {"a": [5, 9, 2], "b": [7, 3, 3], "c": [6, 6, 6]}
    for support in (range(3), ["x", "y", "z"]):
        known = pf.Prior.from_counts(counts, support=support, **options)
        for given in ({}, {"best_for": "frequencies"}, {"best_for": "kept"}):
            plan = pf.calibrate(known, 1, **given)
            checked(page(plan, known))
            checked(page(plan, public=True))


def test_a_public_report_is_of_the_plan_alone(prior: pf.Prior) -> None:
    plan = pf.calibrate(prior, "0.5")
    source = page(plan, public=True)
    assert "PUBLIC." in source
    assert str(plan.scale)[:6] not in source
    with pytest.raises(InputError, match="of the plan alone"):
        page(plan, prior, public=True)
    with pytest.raises(InputError, match="needs the TABLE or prior"):
        page(plan)


def test_a_plan_from_noisy_counts_is_reported_whole() -> None:
    known = noisy(numbers())
    plan = pf.calibrate(known, 2)
    found = checked(page(plan, public=True))
    words = " ".join(found.words)
    for text in ("PUBLIC.", f"{plan.scale:.6g}"[:5], "--publishable 1", "--range 0 3", "verify"):
        assert text in words, text
    assert page(plan) == page(plan, public=True)


def test_a_report_is_of_a_plan_that_holds(prior: pf.Prior) -> None:
    plan = pf.calibrate(prior, "0.5")
    other = pf.Prior.from_counts({"a": [9, 1, 1, 1], "b": [1, 1, 1, 9]}, support=range(4))
    with pytest.raises(CheckFailed):
        page(plan, other)


def test_files(prior: pf.Prior, tmp_path: Path) -> None:
    plan = pf.calibrate(prior, "0.5")
    write_report(tmp_path / "r.html", plan, prior)
    assert stat.S_IMODE(os.stat(tmp_path / "r.html").st_mode) == 0o600
    write_report(tmp_path / "p.html", plan, public=True)
    assert stat.S_IMODE(os.stat(tmp_path / "p.html").st_mode) & 0o044
    with pytest.raises(InputError, match="exists"):
        write_report(tmp_path / "p.html", plan, public=True)


def test_by_the_command_line(tmp_path: Path) -> None:
    table, plan, out = (str(tmp_path / name) for name in ("t.csv", "p.json", "r.html"))
    numbers().head(300).to_csv(table, index=False)
    words = ("calibrate", table, "--secret", "s", "--public", "x", "--report", out, "--epsilon")
    done = run(*words, "0.5", "--save", plan)
    assert done.status == 0, done.err
    assert f"the report is saved as {out}" in done.err
    assert "--report" not in done.out, "the command for a sample"
    known = pf.Prior.from_table(table, secret="s", public="x")
    assert Path(out).read_text() == page(pf.calibrate(known, "0.5"), known, source=table)
    assert run(*words, "0.5").status == 2
    assert run(*words, "0.5,1", "--force").status == 2
    for given, message in (
        ((table, "-o", out), "exists"),
        (("-o", out, "--force"), "or --prior FILE, and not both"),
        ((table, "-o", out, "--force", "--public"), "of PLAN alone"),
        ((table, "-o", str(tmp_path / "r.txt")), "its name ends in .html"),
    ):
        done = run("report", plan, *given)
        assert done.status == 2
        assert message in done.err
    for about, end in ((table, "it is private\n"), ("--public", "it is public\n")):
        assert run("report", plan, about, "-o", out, "--force").err.endswith(end)
        checked(Path(out).read_text())


def test_the_notebook_runs() -> None:
    script = Path(__file__).parents[2] / "examples" / "notebook.py"
    if not script.exists():
        pytest.skip("a built distribution may come without the examples")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "['public.html', 'released.csv', 'report.html', 'stays.csv']" in done.stdout


def test_what_the_plan_does_not_know_and_errors_of_a_given_prior() -> None:
    prior = pf.Prior.from_counts({"a": [5, 3, 1], "b": [3, 4, 5]}, support=range(3))
    first = pf.calibrate(prior, "0.2")
    text, beside = (
        page(plan, prior) for plan in (first, pf.calibrate(prior, "0.6", already=[first]))
    )
    assert "nor what stands here in capital letters" in text
    assert "beside other releases of the same rows" in beside
    assert "beside other releases" not in text
    text = page(pf.calibrate(prior, 1, "channel"), prior)
    (table,) = re.findall(r"<caption>Standard errors.*?</table>", text, flags=re.DOTALL)
    assert "spread" not in table
    assert "published as they are" not in table
    assert re.search(r"<p>The spread of the column is 0\.\d+\.</p>", text)
    assert re.search(r"<p>Values published as they are: \d+\.\d %\.</p>", text)


def test_reports_and_plots_need_no_network(tmp_path: Path) -> None:
    apart = ["unshare", "-rn"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("no namespace without routes can be made here")
    numbers().head(60).to_csv(tmp_path / "t.csv", index=False)
    code = (
        "import socket, pufferfish as pf\n"
        "from pufferfish import plots\n"
        "from pufferfish.report.page import write_report\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), 1)\n"
        "except OSError as error:\n    assert error.errno == 101, error  # unreachable\n"
        "else:\n    raise SystemExit('there is a network')\n"
        "prior = pf.Prior.from_table('t.csv', secret='s', public='x')\n"
        "plan = pf.calibrate(prior, 1)\n"
        "plots.transport(prior).savefig('plot.png')\n"
        "write_report('private.html', plan, prior, source='t.csv')\n"
        "write_report('public.html', plan, public=True)\n"
    )
    command = [*apart, sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name in ("private.html", "public.html", "plot.png"):
        assert (tmp_path / name).stat().st_size > 5000


def test_the_command_for_a_sample_stands_where_the_verdict_speaks_of_it() -> None:
    prior = pf.Prior.from_table(numbers().head(30), secret="s", public="x", support=range(4))
    text = page(pf.calibrate(prior, "0.3"), prior)
    (command,) = re.findall(
        r"makes a plan that holds then, too[^<]*:</p>\s*<pre[^>]*><code>(.*?)</code>", text
    )
    assert command.startswith("pufferfish calibrate TABLE --secret s --public x --range 0 3")
    assert "--confidence 0.95" in command
