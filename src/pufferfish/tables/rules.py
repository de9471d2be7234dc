# SPDX-License-Identifier: Apache-2.0
"""Rules: what a user declares of the columns of a table, and the coding of one public column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pufferfish.support import Lattice, Levels, Order, Support

DecimalMark = Literal[".", ","]


@dataclass(frozen=True)
class Column:
    """What is declared of one public column.

    Attributes
    ----------
    name : str
        The name of the column, trimmed and in NFC.
    order : tuple of str, "appearance", "alphabetical" or None
        The order of the levels, least first; None leaves levels unordered.
    levels : tuple of str or None
        All levels that may occur; None: those that do occur.
    missing : tuple of str
        Canonical texts that mean "missing", besides the empty cell.
    step : Fraction or None
        Step that numbers are rounded to before they are counted; None: as they are.
    support : Lattice, Levels or None
        Exactly the values that may occur, structural ones included.
    missing_as_level : bool
        Whether missing cells are a level of their own.
    """

    name: str
    order: Order = None
    levels: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    step: Fraction | None = None
    support: Support | None = None
    missing_as_level: bool = False


@dataclass(frozen=True)
class Rules:
    """How the rows of a table become secrets and public values.

    Attributes
    ----------
    secret : str or None
        The column of the secret.
    columns : tuple of Column
        The public columns, in the order of the axes.
    exclude_secrets : tuple of str
        Secrets that are left out of the counts.
    decimal : "." or ","
        The decimal mark of numbers in text cells.
    unit : str or None
        The column whose equal values mark the rows of one person.
    missing : tuple of str
        Canonical texts that mean "missing" in the secret column, besides the empty cell.
    """

    secret: str | None
    columns: tuple[Column, ...]
    exclude_secrets: tuple[str, ...] = ()
    decimal: DecimalMark = "."
    unit: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coding:
    """Everything that counting, releasing and verifying need to code a cell of one column.

    Attributes
    ----------
    column : str
        The name of the public column.
    support : Lattice or Levels
        Step, order and levels are said here, and nowhere else.
    missing : tuple of str
        Canonical texts that mean "missing", besides the empty cell.
    rounds : bool
        Whether numbers are rounded to ``support.step``.
    decimal : "." or ","
        The decimal mark of numbers in text cells.
    missing_as_level : bool
        Whether missing cells are the level ``MISSING_LEVEL`` of the support.
    """

    column: str
    support: Support
    missing: tuple[str, ...] = ()
    rounds: bool = False
    decimal: DecimalMark = "."
    missing_as_level: bool = False

    def declared(self) -> Column:
        """Return the declaration under which counting yields exactly this support."""
        step = self.support.step if self.rounds and isinstance(self.support, Lattice) else None
        return Column(
            self.column,
            missing=self.missing,
            step=step,
            support=self.support,
            missing_as_level=self.missing_as_level,
        )


def make_rules(
    *,
    secret: str | None,
    public: str | Sequence[str],
    order: Any = None,
    levels: Any = None,
    missing: Iterable[Any] | Mapping[str, Iterable[Any]] | None = (),
    exclude_secrets: Iterable[Any] | None = (),
    step: Any = None,
    support: Any = None,
    missing_as_level: bool | Mapping[str, bool] = False,
    unit: str | None = None,
    decimal: str = ".",
) -> Rules:
    """Return checked rules; options of several columns are mappings ``{column: option}``."""
    raise NotImplementedError
