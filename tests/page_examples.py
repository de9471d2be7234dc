# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a Markdown page as a reader would: in order, in one folder.

Two kinds of fenced block are run:

- `python`: one namespace for the page. A block that starts with `>>>` is checked as a doctest.
- `console`: each line `$ command` is run by sh in the page's folder; lines that start with `> `
  right after it go on with it (a here-document, or a line that ended in a backslash). What follows
  up to the next command is the output it must print (both streams, as in a terminal); a command
  followed by nothing may print anything. A command must succeed unless it carries the comment
  `# exit status N`.

In expected output `...` stands for any text within a line, and alone on a line for any lines.
A block that is only to be read is marked `text`; names such as `bash` or `pycon` are refused,
so that nothing looks like an example and is not run.
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

RUNNABLE = frozenset({"python", "console"})
LOOKS_RUNNABLE = frozenset(
    {"py", "python3", "pycon", "ipython", "bash", "sh", "shell", "shell-session", "zsh", "doctest"}
)
TIMEOUT = 300  # seconds for one command, only to end one that hangs
_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
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


def blocks(page: str, offset: int = 0) -> Iterator[Block]:
    """Fenced blocks of a page in order, those inside a list or a directive such as a note too."""
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        start = _FENCE.match(lines[at])
        at += 1
        if start is None:
            continue
        ticks, indent = start["ticks"], len(start["indent"])
        closing = re.compile(rf"^ *{re.escape(ticks[0])}{{{len(ticks)},}}\s*$")
        first, body = at, []
        while at < len(lines) and not closing.match(lines[at]):
            body.append(lines[at][min(indent, len(lines[at]) - len(lines[at].lstrip(" "))) :])
            at += 1
        at += 1
        info, text = start["info"].strip(), "\n".join(body) + "\n"
        if info.startswith(("{code-block}", "{code}")):
            # The same example, written for Sphinx only; its options are blanked to keep the lines.
            info = info.partition("}")[2]
            text = re.sub(r"\A(?::\w[\w-]*:.*\n)+", lambda m: "\n" * m[0].count("\n"), text)
        elif info.startswith("{"):
            yield from blocks(text, offset + first)
            continue
        yield Block(info.split()[0].lower() if info else "", text, offset + first + 1)


def commands(block: Block) -> list[Command]:
    """Commands of a console block."""
    found: list[Command] = []
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            if lines[at].strip():
                raise ExampleError(f"line {block.line + at}: a console block begins with '$ '")
            at += 1
            continue
        line, command = block.line + at, [lines[at][2:]]
        at += 1
        while at < len(lines) and (lines[at].startswith("> ") or lines[at] == ">"):
            command.append(lines[at][2:])
            at += 1
        output = []
        while at < len(lines) and not lines[at].startswith("$ "):
            output.append(lines[at])
            at += 1
        status = _STATUS.search(command[0])
        shown = "\n".join(output).strip("\n")
        found.append(
            Command("\n".join(command), shown or None, int(status[1]) if status else 0, line)
        )
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

    Raises
    ------
    ExampleError
        At the first example that fails, prints something else than it shows, or is marked with a
        language that looks runnable and is not run.
    """
    ran = 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}, line {block.line}"
        if block.language in LOOKS_RUNNABLE:
            raise ExampleError(
                f"{where}: mark the block as python or console to have it run, "
                f"or as text to have it only read; {block.language!r} is neither"
            )
        if block.language == "python":
            _run_python(block, page, folder, namespace, where)
            ran += 1
        elif block.language == "console":
            found = commands(block)
            if not found:
                raise ExampleError(f"{where}: a console block without a command")
            for command in found:
                _run_command(command, folder, f"{page.name}, line {command.line}")
            ran += len(found)
    return ran


def _run_python(
    block: Block, page: Path, folder: Path, namespace: dict[str, Any], where: str
) -> None:
    with contextlib.chdir(folder), warnings.catch_warnings():
        # The package's own warnings are part of what it shows a reader; others are faults.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        if block.text.lstrip().startswith(">>>"):
            _run_doctest(block, page, namespace, where)
            return
        # Blank lines before the code make the lines of a traceback those of the page.
        source = "\n" * (block.line - 1) + block.text
        try:
            exec(compile(source, str(page), "exec"), namespace)
        except Exception as error:
            at = block.line
            trace = error.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == str(page):
                    at = trace.tb_lineno
                trace = trace.tb_next
            raise ExampleError(
                f"{page.name}, line {at}: {type(error).__name__}: {error}"
            ) from error


def _run_doctest(block: Block, page: Path, namespace: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line - 1)
    test.globs = namespace  # get_doctest copies; the page keeps one namespace
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.write, clear_globs=False)
    if runner.summarize(verbose=False).failed:
        raise ExampleError(f"{where}:\n{report.getvalue()}")


def _run_command(command: Command, folder: Path, where: str) -> None:
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": scripts + os.pathsep + os.environ.get("PATH", ""),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUTF8": "1",
    }
    try:
        done = subprocess.run(
            ["sh", "-c", command.text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExampleError(f"{where}: no end after {TIMEOUT} s: {command.text}") from None
    got = done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
    if done.returncode != command.status:
        raise ExampleError(
            f"{where}: exit status {done.returncode} instead of {command.status}: "
            f"{command.text}\n{got}"
        )
    if command.expected is not None and not matches(command.expected, got):
        raise ExampleError(
            f"{where}: {command.text}\n-- the page shows:\n{command.expected}\n-- it prints:\n{got}"
        )
