# SPDX-License-Identifier: Apache-2.0
"""The paper's table and figure on the command line."""

from pathlib import Path

from cli_runner import run
from shared_data import require_shared


def test_the_table_for_people():
    done = run("reproduce")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "149 of 150 cells agree" in lines
    assert sum("*0.54" in line for line in lines) == 1
    reductions = [line.split() for line in lines if line.startswith(("First", "Second", "Census"))]
    assert ["First", "simulation", "wasserstein", "73.6", "to", "92.2", "73.5", "to", "92.2",
            "yes"] in reductions  # fmt: skip
    assert sum(line.endswith("yes") for line in map(str.rstrip, lines)) == 7
    assert not any(line.rstrip().endswith(" no") for line in lines)


def test_the_first_figure():
    path = require_shared("data", "diabetes.csv")
    done = run("reproduce", "--diabetes", path)
    assert done.status == 0
    assert "149 of 150 cells agree" in done.out
    assert "wasserstein scale 22.00000000" in done.out
    assert done.out.count("holds: at the ") == 2
    data = run("reproduce", "--format", "json", "--diabetes", path).data
    assert (data["summary"], len(data["cells"])) == ("149 of 150 cells agree", 250)
    figure = data["figure_one"]
    assert figure["strict"]["scale"] == 22
    assert [claim["holds"] for claim in figure["claims"]] == [True, True]
    assert len(figure["relaxed"]["cells"]) == len(figure["x"]) > 100


def test_a_claim_of_the_figure_that_fails_is_a_failed_check(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("Age,Glucose\n20,0\n40,1\n")
    done = run("reproduce", "--diabetes", path)
    assert done.status == 1
    assert "claim of the figure fails" in done.err
