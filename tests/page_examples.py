# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a Markdown page as a reader would: in order, in one folder.

Two kinds of fenced block are run:

- `python`: one namespace for the page. A block that starts with `>>>` is checked as a doctest.
- `console`: each line `$ command` is run by sh in the page's folder; lines that start with `> `
  right after it go on with it (a here-document, or a line that ended in a backslash). What follows
  up to the next command is the output it must print (both streams, as in a terminal); a command
  followed by nothing may print anything. A command must succeed unless it carries the comment
  `# exit status N`. One that ends in `&& cd FOLDER` holds for all that follows.

In expected output `...` stands for any text within a line, and alone on a line for any lines.
A block that is only to be read is marked `text`, or is a directive such as `{toctree}`; any other
kind is refused, so that nothing looks like an example and is not run.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 300  # seconds for one command, only to end one that hangs
_BLOCK = re.compile(r"^```(?P<language>\S+)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)
_COMMAND = re.compile(r"^\$ (?P<text>.*\n(?:>(?: .*)?\n)*)(?P<output>(?:(?!\$ ).*\n)*)", re.M)
_STATUS = re.compile(r"#\s*exit status (\d+)\s*$")


class ExampleError(Exception):
    """An example that did not do what its page says; the message names the page and the line."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the page's line on which the text begins."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block with the output it must print; None: any output."""

    text: str
    expected: str | None
    status: int
    line: int


def blocks(page: str) -> Iterator[Block]:
    """Fenced blocks of a page in order."""
    for found in _BLOCK.finditer(page):
        yield Block(found["language"], found["text"], page.count("\n", 0, found.start("text")) + 1)


def commands(block: Block) -> list[Command]:
    """Commands of a console block."""
    found: list[Command] = []
    for each in _COMMAND.finditer(block.text):
        first, *more = each["text"].splitlines()
        status = _STATUS.search(first)
        line = block.line + block.text.count("\n", 0, each.start())
        text = "\n".join([first, *(part[2:] for part in more)])
        shown = each["output"].strip("\n") or None
        found.append(Command(text, shown, int(status[1]) if status else 0, line))
    if not block.text.lstrip("\n").startswith("$ "):
        raise ExampleError(f"line {block.line}: a console block begins with '$ '")
    return found


def matches(expected: str, got: str) -> bool:
    """Whether an output is the expected one, up to `...` and blanks at the ends of lines."""
    pattern = []
    for line in expected.strip("\n").split("\n"):
        if line.strip() == "...":
            pattern.append(r"(?:[^\n]*\n)*")
        else:
            pieces = line.rstrip().split("...")
            pattern.append(r"[^\n]*".join(map(re.escape, pieces)) + r"[^\S\n]*\n")
    return re.fullmatch("".join(pattern), got.strip("\n") + "\n") is not None


def run_page(page: Path, folder: Path) -> int:
    """Run every example of a page in a folder and return how many there were.

    An ExampleError is raised at the first example that fails, prints something else than it shows,
    or is of a kind that is not known.
    """
    ran = 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    if len(_FENCE.findall(text)) != 2 * len(list(blocks(text))):
        raise ExampleError(f"{page.name}: each block begins and ends with ``` at the left edge")
    for block in blocks(text):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            _run_python(block, page, folder, namespace, where)
            ran += 1
        elif block.language == "console":
            for command in commands(block):
                _run_command(command, folder, f"{page.name}, line {command.line}")
                ran += 1
                if moved := re.search(r"&& cd (\S+)$", command.text):
                    folder /= moved[1]
        elif block.language != "text" and not block.language.startswith("{"):
            raise ExampleError(f"{where}: {block.language!r} is neither python, console nor text")
    return ran


def _run_python(
    block: Block, page: Path, folder: Path, namespace: dict[str, Any], where: str
) -> None:
    with contextlib.chdir(folder), warnings.catch_warnings():
        # The package's own warnings are part of what it shows a reader; others are faults.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        if block.text.lstrip().startswith(">>>"):
            parser, report = doctest.DocTestParser(), io.StringIO()
            test = parser.get_doctest(block.text, {}, page.name, str(page), block.line - 1)
            test.globs = namespace  # get_doctest copies; the page keeps one namespace
            runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
            if runner.run(test, out=report.write, clear_globs=False).failed:
                raise ExampleError(f"{where}:\n{report.getvalue()}")
            return
        # Blank lines before the code make the lines of a traceback those of the page.
        source = "\n" * (block.line - 1) + block.text
        try:
            exec(compile(source, str(page), "exec"), namespace)
        except Exception as error:
            trace, at = error.__traceback__, block.line
            while trace is not None:
                at = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(page) else at
                trace = trace.tb_next
            said = f"{page.name}, line {at}: {type(error).__name__}: {error}"
            raise ExampleError(said) from error


def _run_command(command: Command, folder: Path, where: str) -> None:
    path = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")
    more = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    try:
        done = subprocess.run(
            ["sh", "-c", command.text], cwd=folder, env=os.environ | more | {"PATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ExampleError(f"{where}: no end after {TIMEOUT} s: {command.text}") from None
    got = done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
    if done.returncode != command.status:
        said = f"exit status {done.returncode} instead of {command.status}"
        raise ExampleError(f"{where}: {said}: {command.text}\n{got}")
    if command.expected is not None and not matches(command.expected, got):
        shown = f"-- the page shows:\n{command.expected}\n-- it prints:\n{got}"
        raise ExampleError(f"{where}: {command.text}\n{shown}")
