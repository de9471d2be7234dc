# SPDX-License-Identifier: Apache-2.0
"""Choices: what a form asks for, as the options of ``pufferfish calibrate``.

A form cannot mean anything else than the command that its page shows: the command parses them.
"""

from typing import Any

from pufferfish.cli.calibrate import calibrate
from pufferfish.explorer.pages import Form
from pufferfish.report.remake import level_list

#: Fields whose option has their name; those of the sliders, which decide nothing that is counted.
_COUNTED, _SLIDERS = ("secret", "public", "unit", "step", "decimal"), ("confidence", "epsilon")


def words(form: Form, counting: bool = False) -> list[str]:
    """Return the options that a form asks for; ``counting``: those that decide what is counted."""
    found: list[str] = []
    for name in _COUNTED if counting else (*_COUNTED, *_SLIDERS):
        value = form.get(name, "").strip()
        found += [f"--{name}", value] if value else []
    for text in _lines(form.get("missing", "")):
        found += ["--missing", text]
    found += ["--missing-as-level"] * ("missing-as-level" in form)
    for pair in form.getlist("pair"):
        found += ["--pair", *[*_lines(pair), "", ""][:2]]  # two words, whatever was sent
    levels, order = _lines(form.get("levels", "")), form.get("order", "")
    if order in ("alphabetical", "appearance"):
        found += ["--order", order]
    if levels and (order == "listed" or "declared" in form):
        found += ["--order" if order == "listed" else "--levels", level_list(levels)]
    ends = [form.get(name, "").strip() for name in ("least", "greatest")]
    found += ["--range", *ends] if any(ends) else []
    name, _, purpose = form.get("mechanism", "").partition(" (")
    if name and not counting:
        found += ["--mechanism", name, *(["--best-for", purpose.removesuffix(")")] * bool(purpose))]
    return [word.replace("\0", "") for word in found]


def options(form: Form) -> dict[str, Any]:
    """Return the options that decide what is counted, as ``calibrate`` reads them."""
    return calibrate.make_context("calibrate", ["TABLE", *words(form, counting=True)]).params


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
