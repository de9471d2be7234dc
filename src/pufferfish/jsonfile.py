# SPDX-License-Identifier: Apache-2.0
"""Private JSON files: written complete or not at all, read strictly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferfish.atomic import PRIVATE, write_whole
from pufferfish.errors import InputError


def write_private(data: Mapping[str, Any], path: Path, force: bool) -> None:
    """Write JSON values into a file that only its owner can read (mode 0600).

    Parameters
    ----------
    data : mapping
        JSON values; no NaN or infinity.
    path : Path
        Where to.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or it cannot be written.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path} cannot be written: a name in it holds half a character (a surrogate)"
        ) from None
    write_whole(path, content, force=force, mode=PRIVATE)


def read_strict(path: Path, what: str) -> Any:
    """Read a JSON file; repeated keys, NaN and infinity are refused.

    Raises
    ------
    InputError
        If it cannot be read, or is no such JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{what} {path} cannot be read: it is not UTF-8 text") from None
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{what} {str(path)!r} cannot be read: {error}") from None
    try:
        return json.loads(text, object_pairs_hook=_without_repetitions, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} {path} is not valid JSON: {error}") from None


def entry(data: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return an entry of an object, checked to be of a kind.

    Raises
    ------
    InputError
        If it is missing or of another kind.
    """
    value = data.get(key)
    if not isinstance(value, kind):
        raise InputError(f"its {key!r} is missing or not of the right kind")
    return value


def number(data: Mapping[str, Any], key: str) -> float:
    """Return an entry that is a finite number, not negative.

    Raises
    ------
    InputError
        If it is missing or something else.
    """
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"its {key} must be one JSON number, but it is {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or found < 0:
        raise InputError(f"its {key} must be a finite number, not negative, but it is {value!r}")
    return found


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return an entry that is a list of texts.

    Raises
    ------
    InputError
        If it is missing or holds something else.
    """
    values = entry(data, key, list)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"its {key!r} must be a list of texts")
    return tuple(values)


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
