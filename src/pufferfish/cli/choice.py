# SPDX-License-Identifier: Apache-2.0
"""Which mechanisms are computed: what was asked for, resolved once the scenario is known."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pufferfish.cli.channeling import ChannelOptions
from pufferfish.cli.options import exactly_one
from pufferfish.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from pufferfish.scenario import Scenario

#: Asks for every mechanism that applies.
ALL = "all"


@dataclass(frozen=True)
class Chosen:
    """The mechanisms that are computed.

    Attributes
    ----------
    names : tuple of str
        Each once.
    notes : tuple of str
        Which ones ``all`` leaves out, and why.
    by_all : frozenset of str
        Those that only ``all`` asks for: one of them that fails does not hinder the others.
    """

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    by_all: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Request:
    """What was asked for with ``--mechanism``.

    Attributes
    ----------
    names : tuple of str
        Names of the registry and ``all``, each once, in the order in which they were given; empty
        where the scenario decides.
    """

    names: tuple[str, ...] = ()

    def check_one(self, what: str) -> None:
        """Check that it is one mechanism, for a command that takes no more.

        Raises
        ------
        InputError
            If it is not.
        """
        if self.names == (ALL,):
            raise InputError(
                f"{what} takes exactly one mechanism, but 'all' was given; name one, or leave out "
                "--mechanism"
            )
        if self.names:
            exactly_one(self.names, "mechanism", what)

    def check_options(self, channel: ChannelOptions) -> None:
        """Check the channel's options as far as that can be done without a scenario."""
        if self.names and ALL not in self.names:
            channel.check_used(self.names)

    def resolve(self, scenario: "Scenario", channel: ChannelOptions) -> Chosen:
        """Return the mechanisms for a scenario.

        Raises
        ------
        InputError
            If one that was asked for by name cannot be had (says why, and what to do), or the
            channel has options but is not among them.
        """
        from pufferfish.calibration import applicable, default_for, method_named, why_not

        if not self.names:
            default = (default_for(scenario),)
            channel.check_used(default)
            return Chosen(default)
        found: dict[str, None] = {}
        left_out: dict[str, str] = {}
        for name in self.names:
            if name == ALL:
                names, left_out = applicable(scenario)
                found.update(dict.fromkeys(names))
                continue
            reason = why_not(method_named(name), scenario)
            if reason is not None:
                raise InputError(reason)
            found[name] = None
        left_out = {name: why for name, why in left_out.items() if name not in found}
        channel.check_used(found, left_out.get("channel", ""))
        return Chosen(tuple(found), _notes(left_out), frozenset(found) - set(self.names))


def mechanisms(given: Iterable[str]) -> Request:
    """Read the texts after ``--mechanism``, each one name or several with commas between them.

    Raises
    ------
    InputError
        If one is unknown.
    """
    from pufferfish.calibration import REGISTRY, method_named

    found: dict[str, None] = {}
    for text in given:
        for part in text.split(","):
            word = part.strip()
            if word.casefold() == ALL:
                found[ALL] = None
                continue
            try:
                found[method_named(word).name] = None
            except InputError:
                raise InputError(
                    f"there is no mechanism {word!r}{did_you_mean(word, (*REGISTRY, ALL))}; "
                    f"the mechanisms are {listed(REGISTRY)}, or all of them with 'all'"
                ) from None
    return Request(tuple(found))


def _notes(left_out: dict[str, str]) -> tuple[str, ...]:
    """Return one note for each reason; reasons that differ in the name alone are one."""
    grouped: dict[tuple[bool, str], list[str]] = {}
    for name, why in left_out.items():
        said = why.removeprefix(f"{name} ")
        grouped.setdefault((said != why, said), []).append(name)
    notes = []
    for (of_it, why), names in grouped.items():
        who = "" if not of_it else "it " if len(names) == 1 else "each of them "
        notes.append(f"'all' leaves out {listed(names)}: {who}{why}")
    return tuple(notes)
