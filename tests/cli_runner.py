# SPDX-License-Identifier: Apache-2.0
"""Runs the command line: inside this process for results, as a process of its own for the rest."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferfish.cli import main

COMMAND = [sys.executable, "-c", "import sys; from pufferfish.cli import main; sys.exit(main())"]


@dataclass(frozen=True)
class Outcome:
    """What a command did: its exit status and what it wrote to the two streams."""

    status: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The error lines, without their prefix."""
        prefix = "pufferfish: error: "
        return [
            line.removeprefix(prefix) for line in self.err.splitlines() if line.startswith(prefix)
        ]

    @property
    def data(self) -> dict[str, Any]:
        """The output as strictly valid JSON."""
        return strict_json(self.out)

    @property
    def scales(self) -> dict[str, float]:
        """The scale of every mechanism, for a single epsilon."""
        return {result["mechanism"]: result["scale"] for result in self.data["results"]}


def strict_json(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def run(*arguments: object) -> Outcome:
    """Run a command inside this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return Outcome(status, out.getvalue(), err.getvalue())


def run_process(*arguments: object, code: str | None = None, **options: Any) -> Outcome:
    """Run a command, or Python code that ends in one, as a process of its own."""
    start = COMMAND if code is None else [sys.executable, "-c", code]
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("env", os.environ | {"PYTHONUTF8": "1"})
    done = subprocess.run(
        [*start, *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
        **options,
    )
    out = (done.stdout or b"").decode()
    return Outcome(done.returncode, out, done.stderr.decode())


def check_refused(outcome: Outcome, *parts: str, status: int = 2) -> None:
    """Check that a command failed with one line that holds the parts, and nothing on stdout."""
    assert outcome.status == status, outcome
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("pufferfish: error: ")
    for part in parts:
        assert part in lines[0], (part, lines[0])


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(*lines: str, header: str = "s,x") -> str:
    """Return the text of a CSV file."""
    return "".join(f"{line}\n" for line in (header, *lines))
