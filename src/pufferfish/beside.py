# SPDX-License-Identifier: Apache-2.0
"""Beside: what a plan that was calibrated beside other releases says of all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pufferfish.errors import InputError
from pufferfish.jsonfile import entry, number


@dataclass(frozen=True)
class Beside:
    """What a plan was made to fit beside, and what everything together costs.

    Attributes
    ----------
    releases : int
        How many others it was made to fit beside: out already, or planned with it.
    loss : float
        An upper bound of the loss of all of them and this one together, rounded up.
    how : str
        What the bound is made of.
    """

    releases: int
    loss: float
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Beside:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If an entry is missing or not of the right kind.
        """
        releases = data.get("releases")
        if type(releases) is not int or releases < 0:
            raise InputError("its number of 'releases' is missing or not of the right kind")
        return cls(releases, number(data, "loss"), entry(data, "how", str))
