# SPDX-License-Identifier: Apache-2.0
"""What a release does that the guarantee does not cover (theory, section 7), counted and said."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import OutsidePromiseWarning, SeededWarning, listed, warn_user
from pufferfish.tables import Rules
from pufferfish.tables.cells import cells_of, distinct, is_missing

if TYPE_CHECKING:
    from pufferfish.release.rows import Columns, Tally

NO_SECRET, EXCLUDED, NO_PAIR = "no secret value", "secret excluded", "secret in no pair"


class SecretCounter:
    """Counts rows whose secret is in no pair; the secret is read for this alone.

    Parameters
    ----------
    rules : Rules
        How secrets are cleaned.
    protected : tuple of str or None
        The secrets that occur in the pairs; None: nothing is counted.
    """

    def __init__(self, rules: Rules, protected: tuple[str, ...] | None) -> None:
        self._rules = rules
        self._protected = None if protected is None else frozenset(protected)

    def count(self, cells: pa.Array, released: npt.NDArray[np.bool_], totals: Counter[str]) -> None:
        """Add the released rows of a batch that are outside the promise, by reason.

        Parameters
        ----------
        cells : Arrow array, shape (rows,)
            Raw cells of the secret column.
        released : bool array, shape (rows,)
            Which of the rows are released.
        totals : Counter
            Rows by reason, added to.
        """
        if self._protected is None or not len(cells):
            return
        values, places = distinct(cells)
        texts = cells_of(values, f"column {self._rules.secret!r}").texts
        rows = np.bincount(places[released], minlength=len(texts)).tolist()
        missing = is_missing(texts, self._rules).tolist()
        for text, absent, number in zip(texts, missing, rows, strict=True):
            if number and (absent or text not in self._protected):
                totals[self._reason(text, absent)] += number

    def _reason(self, text: str, absent: bool) -> str:
        if absent:
            return NO_SECRET
        return EXCLUDED if text in self._rules.exclude_secrets else NO_PAIR


def warn_about_promise(columns: "Columns", tally: "Tally") -> None:
    """Warn of kept columns and of rows outside the promise, or that nobody could count them."""
    if columns.keep:
        warn_user(
            f"with the kept columns ({listed(columns.keep)}) beside it the released column is no "
            "longer protected: together they may reveal the secret, even where each alone does not",
            OutsidePromiseWarning,
        )
    if columns.absent is not None:
        warn_user(
            f"the secret column {columns.absent!r} is not in the table, so rows outside the "
            "promise were not counted",
            OutsidePromiseWarning,
        )
    outside = tally.outside
    rows = sum(outside.values())
    if rows:
        reasons = ", ".join(f"{reason}: {outside[reason]}" for reason in sorted(outside))
        warn_user(
            f"{rows} released row{'s are' if rows > 1 else ' is'} outside the promise ({reasons})",
            OutsidePromiseWarning,
        )
    warn_about_clamped(tally.clamped)


def warn_about_clamped(clamped: int) -> None:
    """Warn of released values that the prior says cannot occur."""
    if clamped:
        warn_user(
            f"{clamped} released value{'s were' if clamped > 1 else ' was'} not in the support and "
            "moved to the nearest value of it; the prior gives such values probability 0, so the "
            "guarantee does not cover these rows",
            OutsidePromiseWarning,
        )


def warn_about_missing(set_aside: tuple[tuple[str, int], ...]) -> None:
    """Warn that rows were left out, where no report is given that says so."""
    for reason, rows in set_aside:
        warn_user(
            f"{rows} row{'s were' if rows > 1 else ' was'} left out ({reason}); which rows are "
            "left out shows in the output, and no mechanism covers it",
            OutsidePromiseWarning,
        )


def warn_seeded() -> None:
    """Warn that a release was drawn from a seed."""
    warn_user(
        "the release was drawn from a seed: for tests only, it protects nobody", SeededWarning
    )
