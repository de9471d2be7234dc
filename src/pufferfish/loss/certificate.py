# SPDX-License-Identifier: Apache-2.0
"""What was proved about a loss, as fields: LossBound, Certificate, and the Witness of both."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pufferfish.numbers import Number, float_up, parse_number, show_short

Kind = Literal["joint loss", "joint loss + worst cases", "worst-case sum"]


@dataclass(frozen=True)
class Witness:
    """Where a loss is attained.

    Attributes
    ----------
    outputs : tuple of str
        One output for each release, as text; columns in order, then releases, row after row.
    pair : (str, str)
        The two secrets that these outputs tell apart best; they are likelier under the first.
    adversary : int
        Position of the prior in the scenario, counted from 0.
    rows : int
        Rows of one person that the outputs belong to.
    """

    outputs: tuple[str, ...]
    pair: tuple[str, str]
    adversary: int
    rows: int = 1


@dataclass(frozen=True)
class LossBound:
    """A proven upper bound of the loss of one or several releases together.

    Attributes
    ----------
    upper : Fraction or None
        The bound, exact; None: infinite.
    lower : Fraction or None
        A proven lower bound of the loss, exact; None: infinite.
    kind : str
        Whether it is the joint loss, the joint loss of some releases and the worst cases of the
        others, or a sum of worst cases.
    method : str
        ``exact``, ``ball``, ``float-bound``, with ``+rational`` where exact rationals decided;
        ``none`` for a sum of worst cases. Of queries also ``ends+ball``, ``contraction+ball``,
        ``group+rational``, or ``window+`` one of those.
    within : tuple of str
        The releases whose joint loss it holds.
    terms : tuple of (str, Fraction or None)
        The releases whose worst cases were added, with these.
    rows : int
        Rows of one person at which it is attained.
    witness : Witness or None
        Where the loss is attained, where that is known.
    precision : int or None
        Bits of the ball arithmetic.
    error_bound : float or None
        For ``float-bound``: the bound of its error in the loss.
    """

    upper: Fraction | None
    lower: Fraction | None
    kind: Kind = "joint loss"
    method: str = "none"
    within: tuple[str, ...] = ()
    terms: tuple[tuple[str, Fraction | None], ...] = ()
    rows: int = 1
    witness: Witness | None = None
    precision: int | None = None
    error_bound: float | None = None

    @property
    def value(self) -> float:
        """The bound as a double, rounded up; may be infinite."""
        return math.inf if self.upper is None else float_up(self.upper)

    def __float__(self) -> float:
        return self.value

    def at_most(self, epsilon: Number) -> bool:
        """Whether the loss was proved to be at most epsilon, compared exactly."""
        return self.upper is not None and self.upper <= parse_number(epsilon, "epsilon")


@dataclass(frozen=True, repr=False)
class Certificate:
    """A proven statement about the privacy loss of releases in a scenario.

    It does not hold the mechanism: whoever keeps its scale or channel does so in one place only.

    Attributes
    ----------
    method : str
        ``exact``, ``ball`` or ``float-bound``, with ``+rational`` where exact rationals decided;
        ``none`` where nothing could be proved.
    loss : float
        A proven upper bound of the loss, rounded up; may be inf. Where the certificate holds, it
        is at most the double nearest to epsilon, which stands for epsilon itself.
    loss_at_least : float
        A proven lower bound of the loss, rounded down.
    epsilon : Fraction or None
        The exact epsilon it was compared with.
    holds : bool
        Whether loss <= epsilon was proved.
    decided : bool
        Whether loss <= epsilon was either proved or refuted.
    witness : Witness or None
        Where the loss is attained (where that is known).
    precision : int or None
        Bits of the ball arithmetic.
    error_bound : float or None
        For ``float-bound``: the bound of its error in the loss.
    rows : tuple of int
        All numbers of rows of one person that it holds for; empty where rows count one by one.
    """

    method: str
    loss: float
    loss_at_least: float
    epsilon: Fraction | None = None
    holds: bool = False
    decided: bool = False
    witness: Witness | None = None
    precision: int | None = None
    error_bound: float | None = None
    rows: tuple[int, ...] = ()

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else "refuted" if self.decided else "not decided"
        limit = "" if self.epsilon is None else f"\n  epsilon {show_short(self.epsilon)}: {verdict}"
        where = "" if self.witness is None else f"\n  attained at {self.witness!r}"
        return (
            f"<Certificate of a loss from {self.loss_at_least!r} to {self.loss!r}, by "
            f"{self.method}{limit}{where}>"
        )


def added(terms: Iterable[Fraction | None], rows: int = 1) -> Fraction | None:
    """Return the sum of worst cases, for so many rows of one person; None: infinite."""
    found = list(terms)
    finite = [term for term in found if term is not None]
    return rows * sum(finite, Fraction(0)) if len(finite) == len(found) or not rows else None


def rank(upper: Fraction | None) -> tuple[bool, Fraction]:
    """Return what upper bounds compare by; None: infinite."""
    return upper is None, upper or Fraction(0)
