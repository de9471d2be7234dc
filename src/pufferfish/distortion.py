# SPDX-License-Identifier: Apache-2.0
"""Distortion: what a calibrated channel does to the values, as its plan states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pufferfish.jsonfile import entry, number, texts


@dataclass(frozen=True)
class Distortion:
    """What a channel costs, for values as frequent as the weights say.

    Attributes
    ----------
    name : str
        The cost that was made least: ``hamming``, ``squared``, ``absolute``, or ``own``.
    cost : float
        The expected cost, rounded up.
    keep_rate : float
        The chance that a value is published unchanged, rounded down.
    mse : float or None
        The mean squared difference of output and value, rounded up; None for levels without an
        order, and where it is beyond every double.
    repair : float
        By how much the cost exceeds a proved lower bound, at most: what exactness, clean rows and
        the cap on epsilon added. Relative to that bound; where it is 0, or all but 0, the cost
        itself, in its unit.
    conditions : tuple of str
        The side conditions that hold, each to 1e-9.
    """

    name: str
    cost: float
    keep_rate: float
    mse: float | None
    repair: float
    conditions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self) | {"conditions": list(self.conditions)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Distortion:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If an entry is missing or not of the right kind.
        """
        return cls(
            name=entry(data, "name", str),
            cost=number(data, "cost"),
            keep_rate=number(data, "keep_rate"),
            mse=None if data.get("mse") is None else number(data, "mse"),
            repair=number(data, "repair"),
            conditions=texts(data, "conditions"),
        )
