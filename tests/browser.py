# SPDX-License-Identifier: Apache-2.0
"""The system's Chromium, driven by Playwright, and what judges its pages: axe and the Nu checker.

Browser and explorer run where there is no network but the loopback device, if the system allows it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared_data import CHECKOUT

# The target sets it once every tool is there, so that none of these tests is skipped in silence.
if "PUFFERFISH_BROWSER" not in os.environ:
    pytest.skip("make test-browser runs these", allow_module_level=True)

MODULES = CHECKOUT / ".venv-browser" / "node_modules"
AXE = MODULES / "axe-core" / "axe.min.js"
NU = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"
WRONG = "<!DOCTYPE html><title>wrong</title><p style='color: #ccc' id=a>faint<img src=no.png id=a>"
#: What scrolls sideways by itself, and whether a key can reach it.
SCROLLING = """() => [...document.querySelectorAll('body *')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && !e.closest('svg')
                 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
    .map(e => e.tabIndex)"""
_ALONE = """
import fcntl, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x41))  # the device is up
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def isolated() -> Iterator[list[str]]:
    """Give the words before a command that let it run without a network; none where that fails."""
    words = ["unshare", "-rn", sys.executable, "-c", _ALONE]
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        yield []
        return
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as alone:
        assert alone.stdin is not None
        assert alone.stdout is not None
        up = alone.stdout.readline().strip() == "up"
        enter = ["nsenter", f"--target={alone.pid}", "--user", "--net", "--preserve-credentials"]
        yield enter if up else []
        alone.stdin.close()


@contextmanager
def launched(enter: Sequence[str], folder: Path) -> Iterator[Any]:
    """Launch Chromium, with some words before its command."""
    from playwright.sync_api import sync_playwright  # of an extra of its own

    program = folder / "chromium.sh"
    program.write_text(f'#!/bin/sh\nexec {" ".join(enter)} "$PUFFERFISH_BROWSER" "$@"\n')
    program.chmod(0o755)
    flags = ["--no-sandbox"] if enter or os.geteuid() == 0 else []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def watch(page: Any, own: str, happened: list[str]) -> None:
    """Note all that a page asks for, other than what begins with ``own``, says and does."""

    def asks(request: Any) -> None:
        if not request.url.startswith(own):
            happened.append(f"asks for {request.url}")

    def dialog(found: Any) -> None:
        happened.append(f"shows a dialog: {found.message}")
        found.dismiss()

    page.on("request", asks)
    page.on("console", lambda line: happened.append(f"says {line.text}"))
    page.on("pageerror", lambda error: happened.append(f"fails with {error}"))
    page.on("popup", lambda other: happened.append(f"opens {other.url}"))
    page.on("dialog", dialog)


def violations(page: Any) -> list[str]:
    """Return what axe finds wrong, after it has looked at something."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"]
    return [f"{each['id']} ({each['impact']}): {each['nodes'][0]['html']}"
            for each in found["violations"]]  # fmt: skip


def misfits(page: Any) -> list[str]:
    """Return whether a page is wider than its window, or scrolls where no key comes."""
    wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    unreached = min(page.evaluate(SCROLLING), default=0) < 0
    return ["the page scrolls sideways"] * wide + ["a part scrolls, and no key"] * unreached


def checker(*paths: Path) -> list[str]:
    """Return the errors and warnings of the Nu checker."""
    words = ["java", "-jar", NU, "--format", "json", "--exit-zero-always", *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return [
        f"{Path(m['url']).name}:{m.get('lastLine')}: {m['message']} {m.get('extract', '')[:200]}"
        for m in json.loads(done.stderr)["messages"]
    ]
