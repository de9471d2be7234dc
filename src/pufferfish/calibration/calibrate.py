# SPDX-License-Identifier: Apache-2.0
"""calibrate: turn a scenario into a plan whose mechanism is proved to be private."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pufferfish.numbers import Number
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario


def calibrate(
    scenario: Scenario | Prior,
    epsilon: Number,
    mechanism: str | None = None,
    *,
    cost: Any = None,
    outputs: int | str | None = None,
    invariant: bool = False,
    unbiased: bool = False,
    min_keep: Number | None = None,
    weights: Sequence[Number] | Mapping[Any, Number] | None = None,
    already: Iterable[Any] | None = None,
    column: str | None = None,
) -> Any:
    """Return a certified plan: one mechanism for one epsilon."""
    raise NotImplementedError


def calibrate_together(
    scenario: Scenario | Prior,
    epsilon: Number,
    columns: int | Sequence[str | tuple[str, Number]] | Mapping[str, Number],
    *,
    already: Iterable[Any] = (),
) -> tuple[Any, ...]:
    """Return certified plans for several releases whose joint loss is at most epsilon."""
    raise NotImplementedError
