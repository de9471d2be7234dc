# SPDX-License-Identifier: Apache-2.0
"""The files around the code agree with it: one version, one licence, one list of targets."""

import re
import tomllib
from importlib.metadata import version

from pufferfish import __version__
from shared_data import CHECKOUT


def read(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def test_one_version() -> None:
    assert version("pufferfish-privacy") == __version__
    assert re.findall(r"^version: (.+)$", read("CITATION.cff"), re.M) == [__version__]
    released = re.findall(r"^## \[(\d[^\]]*)\]", read("CHANGELOG.md"), re.M)
    assert released[0] == __version__


def test_one_licence() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["license"] == "Apache-2.0"
    assert re.findall(r"^license: (.+)$", read("CITATION.cff"), re.M) == ["Apache-2.0"]
    assert "Version 2.0, January 2004" in read("LICENSE")


def test_every_source_file_names_the_licence() -> None:
    without = [
        path.relative_to(CHECKOUT).as_posix()
        for folder in ("src", "tests", "docs", "examples", "benchmarks")
        for path in (CHECKOUT / folder).rglob("*.py")
        if not path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: Apache-2.0")
    ]
    assert without == []


def test_the_makefile_lists_its_targets() -> None:
    makefile = read("Makefile")
    phony = re.findall(r"^\.PHONY: (\S+)$", makefile, re.M)
    listed = re.findall(r"^(\S+):.*## \S", makefile, re.M)
    assert phony == listed
    steps = re.findall(r"^step (\S+)$", read(".ci/run"), re.M)
    assert set(steps) == {
        "test", "lint", "docs", "examples", "demo", "test-browser", "test-slow", "test-lowest"
    }  # fmt: skip
    assert set(steps) <= set(phony)
