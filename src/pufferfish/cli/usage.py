# SPDX-License-Identifier: Apache-2.0
"""Options of a command, declared by the text of its help."""

import re
from collections.abc import Callable
from typing import Any

import click

#: A usage, two blanks, and a meaning that goes on in the indented lines that follow.
_ENTRY = re.compile(r"^(-.*?)  (.*\n(?:  .*\n)*)", re.MULTILINE)


def options(text: str) -> Callable[[Any], Any]:
    """Return the decorator of options that are written as in a help: usage, two blanks, meaning.

    An option without a value is a flag. After the value, ``...`` stands where the option may be
    repeated, and ``(required)`` where it must be given. A value ``a|b`` is one of these words, by
    default the first; ``N`` is an integer.
    """

    def decorated(function: Any) -> Any:
        for usage, meaning in reversed(_ENTRY.findall(text)):
            words = usage.split()
            names = [word for word in words if word.startswith("-")]
            values = [word for word in words if word not in (*names, "...", "(required)")]
            more: dict[str, Any] = {"is_flag": True}
            if values:
                more = {"metavar": " ".join(values), "nargs": len(values)}
                more |= {"multiple": "..." in words, "required": "(required)" in words}
            if values == ["N"]:
                more["type"] = int
            elif values and "|" in usage and values[0].islower():
                forms = values[0].split("|")
                more |= {"type": click.Choice(forms), "default": forms[0], "show_default": True}
            help_text = " ".join(meaning.split())
            function = click.option(*names, help=help_text, **more)(function)
        return function

    return decorated
