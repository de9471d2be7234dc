# SPDX-License-Identifier: Apache-2.0
"""What a release does that the guarantee does not cover (theory, section 7), counted and said."""

import warnings
from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import OutsidePromiseWarning, SeededWarning, listed
from pufferfish.tables import Rules
from pufferfish.tables.cells import cells_of, distinct, is_missing

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


def warn_about_promise(keep: tuple[str, ...], outside: Counter[str], stacklevel: int = 3) -> None:
    """Warn of kept columns and of rows whose secret is in no pair."""
    if keep:
        warnings.warn(
            f"with the kept columns ({listed(keep)}) beside it the released column is no longer "
            "protected: together they may reveal the secret, even where each alone does not",
            OutsidePromiseWarning,
            stacklevel=stacklevel,
        )
    rows = sum(outside.values())
    if rows:
        reasons = ", ".join(f"{reason}: {outside[reason]}" for reason in sorted(outside))
        warnings.warn(
            f"{rows} released row{'s are' if rows > 1 else ' is'} outside the promise ({reasons})",
            OutsidePromiseWarning,
            stacklevel=stacklevel,
        )


def warn_about_missing(set_aside: tuple[tuple[str, int], ...], stacklevel: int = 3) -> None:
    """Warn that rows were left out, where no report is given that says so."""
    for reason, rows in set_aside:
        warnings.warn(
            f"{rows} row{'s were' if rows > 1 else ' was'} left out ({reason}); which rows are "
            "left out shows in the output, and no noise covers it",
            OutsidePromiseWarning,
            stacklevel=stacklevel,
        )


def warn_seeded(stacklevel: int = 3) -> None:
    """Warn that the noise came from a seed."""
    warnings.warn(
        "the noise was drawn from a seed: for tests only, it protects nobody",
        SeededWarning,
        stacklevel=stacklevel,
    )
