# SPDX-License-Identifier: Apache-2.0
"""Units of a release: no person may have a number of rows that the plan knows nothing of.

The unit column is read for this alone, and never written: it says which rows are one person's.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, counted, listed
from pufferfish.tables import Rules, Table
from pufferfish.tables.identity import canonical
from pufferfish.tables.units import Names, without_unit

_SHOWN = 20


class UnitCounter:
    """Counts the rows with a public value of every unit that may have a protected secret.

    Parameters
    ----------
    rules : Rules
        They name the unit.
    numbers : tuple of int
        How many rows a unit may have.
    protected : tuple of str or None
        The secrets that occur in the pairs; None: every unit counts.
    table : Table
        For messages.
    """

    def __init__(
        self,
        rules: Rules,
        numbers: tuple[int, ...],
        protected: tuple[str, ...] | None,
        table: Table,
    ) -> None:
        self._rules, self._numbers, self._table = rules, numbers, table
        self._protected = None if protected is None else frozenset(protected)
        self._units = Names(rules, f"column {rules.unit!r}", canonical)
        self._secrets = Names(rules, f"column {rules.secret!r}")
        self._rows: IntArray = np.zeros(0, dtype=np.int64)
        self._first: IntArray = np.zeros(0, dtype=np.int64)
        self._counts: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._seen = 0

    def count(
        self, cells: pa.Array, secrets: pa.Array | None, usable: npt.NDArray[np.bool_]
    ) -> None:
        """Count a batch of rows.

        Parameters
        ----------
        cells : Arrow array, shape (rows,)
            Raw cells of the unit column.
        secrets : Arrow array, shape (rows,), or None
            Raw cells of the secret column, where the table has it.
        usable : bool array, shape (rows,)
            Which rows have a public value.

        Raises
        ------
        InputError
            If one of these has no unit.
        """
        units = self._units.numbers(cells)
        lost = np.flatnonzero(usable & (units < 0))
        if len(lost):
            without_unit(len(lost), self._seen + int(lost[0]) + 1, self._rules, self._table)
        new = len(self._units.known) - len(self._rows)
        self._rows = np.concatenate([self._rows, np.zeros(new, dtype=np.int64)])
        self._counts = np.concatenate([self._counts, np.zeros(new, dtype=bool)])
        self._first = np.concatenate([self._first, np.zeros(new, dtype=np.int64)])
        named = units >= 0
        fresh, place = np.unique(units[named], return_index=True)
        before = self._first[fresh] == 0
        rows = np.flatnonzero(named)[place] + self._seen + 1
        self._first[fresh[before]] = rows[before]
        np.add.at(self._rows, units[usable], 1)
        self._counts[units[named & self._may_be_protected(secrets, len(units))]] = True
        self._seen += len(units)

    def check(self) -> None:
        """Check all that was counted.

        Raises
        ------
        InputError
            If a unit has more rows than any that the plan knows, or another number of them.
        """
        wrong = self._counts & (self._rows > 0) & ~np.isin(self._rows, self._numbers)
        if not wrong.any():
            return
        worst = int(np.flatnonzero(wrong)[np.argmax(self._rows[wrong])])
        known = listed([str(k) for k in self._numbers], _SHOWN).replace(", ", " or ")
        raise InputError(
            f"{counted(int(wrong.sum()), 'unit')} of {self._table.name} (by column "
            f"{self._rules.unit!r}) with a number of rows that the plan knows nothing of, such as "
            f"{int(self._rows[worst])} (first in data row {int(self._first[worst])}); the plan "
            + (
                f"knows units with {known} row{'s' * (known != '1')}: leave the others out, or "
                "calibrate from a table that has such units"
                if self._numbers
                else "does not say how many rows a unit may have; calibrate it again"
            )
        )

    def _may_be_protected(self, secrets: pa.Array | None, rows: int) -> npt.NDArray[np.bool_]:
        if secrets is None or self._protected is None:
            return np.ones(rows, dtype=bool)
        numbers = self._secrets.numbers(secrets)
        inside = [name in self._protected for name in self._secrets.known]
        found: npt.NDArray[np.bool_] = np.array([*inside, False])[numbers]
        return found
