# SPDX-License-Identifier: Apache-2.0
"""Lookalikes: names that are likely one to people, but are several here, are told to the user."""

import unicodedata
from collections.abc import Callable, Hashable, Sequence

from pufferfish.errors import counted, listed
from pufferfish.tables.numerals import plain_number

#: Of more groups than this only the number is told.
_SHOWN = 3


def lookalikes(names: Sequence[str], noun: str) -> list[str]:
    """Return notes on names that differ only in how they are written.

    That is in the case of letters, in spaces or characters that do not show, in composed or
    decomposed accents; or numbers such as 1 and 1.0.

    Parameters
    ----------
    names : sequence of str
        The secrets or levels, all distinct.
    noun : str
        What they are, in the plural.
    """
    ways: tuple[tuple[Callable[[str], Hashable], str], ...] = (
        (_visible, "differ only in case, spaces, accents or characters that do not show"),
        (plain_number, "are one number"),
    )
    notes: list[str] = []
    for key, how in ways:
        groups: dict[Hashable, list[str]] = {}
        for name in names:
            groups.setdefault(key(name), []).append(name)
        alike = [group for seen, group in groups.items() if seen is not None and len(group) > 1]
        notes += [
            f"the {noun} {listed([_shown(name, group) for name in group])} {how}, but count as "
            f"{len(group)} {noun}; make them one in the table if they are one"
            for group in alike[:_SHOWN]
        ]
        if len(alike) > _SHOWN:
            notes.append(f"{counted(len(alike) - _SHOWN, 'other group')} of {noun} {how} as well")
    return notes


def _visible(name: str) -> str:
    return unicodedata.normalize("NFC", _look(name).casefold())


def _look(name: str) -> str:
    """Return what people see of a name."""
    shown = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", " ".join(shown.split()))


def _shown(name: str, group: Sequence[str]) -> str:
    """Return a name in quotes; as escapes where it would look like another one of its group."""
    return repr(name) if len({_look(other) for other in group}) == len(group) else ascii(name)
