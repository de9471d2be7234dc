# SPDX-License-Identifier: Apache-2.0
"""Reading: how a plan reads the cells of its column, and which values of a table that gives.

The ledger counts what the releases really put in: cells are read by the rules, the support and the
coder of the plan itself. Two plans that read one column alike, whatever their rules say, are about
one axis of the joint counts, where their noise merges; two that read it differently (rounded to
another step, or with other codes) are about two.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError
from pufferfish.plan import Plan
from pufferfish.release.rows import settle
from pufferfish.support import Lattice, Levels, Support
from pufferfish.supportfile import support_to_dict
from pufferfish.tables import Coder, Rules, Table
from pufferfish.tables.coder import MISSING
from pufferfish.tables.source import row_of


@dataclass(frozen=True, eq=False)
class Reading:
    """How the cells of one column become atoms.

    Attributes
    ----------
    plan : Plan
        One that reads them so; it names its columns.
    clamp : bool
        Whether numbers outside the plan's support become the nearest atom.
    """

    plan: Plan
    clamp: bool = False

    @property
    def rules(self) -> Rules:
        """The cleaning rules of the plan."""
        return rules_of_charge(self.plan)

    @property
    def column(self) -> str:
        """The column that is released."""
        return self.rules.public

    @cached_property
    def key(self) -> str:
        """A digest of all that decides how cells are read: equal keys read alike in any table."""
        rules = self.rules
        said = [
            rules.public,
            support_to_dict(self.plan.support),
            sorted(rules.missing),
            rules.step is not None,
            rules.decimal,
            rules.missing_level,
            self.clamp,
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:24]

    @property
    def manner(self) -> str:
        """What decides how cells are read, but for the support."""
        rules, support = self.rules, self.plan.support
        rounded = rules.step is not None and isinstance(support, Lattice)
        said = [
            rules.public,
            sorted(rules.missing),
            str(support.step) if rounded and isinstance(support, Lattice) else None,
            rules.decimal,
            rules.missing_level,
            self.clamp,
        ]
        return json.dumps(said)

    def atoms(self, cells: pa.ChunkedArray, table: Table) -> IntArray:
        """Return the atom of the plan's support for each cell, -1 where it is missing.

        Parameters
        ----------
        cells : pyarrow.ChunkedArray, shape (groups,)
            Raw cells of the column.
        table : Table
            Where they come from.

        Raises
        ------
        InputError
            For a cell that a release by this plan would refuse, with its row.
        """
        spec = self.plan.release_spec(out_of_support="clamp" if self.clamp else "refuse")
        coder = Coder(self.plan.support, self.rules, table)
        coded = coder.code(cells)

        def where(place: int) -> str:
            row = row_of(table, table.column(self.column), cells[place].as_py())
            return f"data row {row} of {table.name}, column {self.column!r},"

        settle(coded, cells, spec, coder, where)
        return np.where(coded.state == MISSING, -1, coded.atoms)


def rules_of_charge(plan: Plan) -> Rules:
    """Return the rules of a plan that can be charged.

    Raises
    ------
    InputError
        If it does not say which column is released and which holds the secret.
    """
    rules = plan.rules
    if rules is None or rules.secret is None:
        raise InputError(
            "the plan came from a given prior and does not name the column of the secret, so "
            "nobody knows which account to charge; give --secret COL (plan.with_columns(public=, "
            "secret=))"
        )
    return rules


def table_support(support: Support, atoms: IntArray) -> tuple[Support, IntArray]:
    """Return the values that occur, on a support that depends on nothing else, and their places.

    Numbers get the coarsest lattice through zero that holds them; it is as good for all noise, for
    they all lie on the lattice of each plan, and so the step is a multiple of that of each. Levels
    without an order are those that occur, sorted; with an order they stay as they are, since their
    codes count.

    Parameters
    ----------
    support : Lattice or Levels
        The plan's.
    atoms : int64 array
        Positions there, -1 for none.

    Returns
    -------
    support : Lattice or Levels
    atoms : int64 array
        The same values there.
    """
    if isinstance(support, Levels) and support.ordered:
        return support, atoms
    used = np.unique(atoms[atoms >= 0])
    if not len(used):
        return support, atoms
    places = np.full(support.size, -1, dtype=np.int64)
    found: Support
    if isinstance(support, Levels):
        order = sorted(used.tolist(), key=lambda k: support.names[k])
        places[order] = np.arange(len(order))
        found = Levels(tuple(support.names[k] for k in order))
    else:
        places[used] = np.arange(len(used))
        found = _coarsest([support.value(int(k)) for k in used])
    return found, np.where(atoms < 0, -1, places[atoms])


def embedded(axis: Support, support: Support) -> IntArray | None:
    """Return the place in a support of every atom of an axis; None where one is not there."""
    if isinstance(axis, Lattice) != isinstance(support, Lattice):
        return None
    keys: Any = axis.values if isinstance(axis, Lattice) else axis.names
    there: Any = support.values if isinstance(support, Lattice) else support.names
    where = {key: k for k, key in enumerate(there)}
    places = np.array([where.get(key, -1) for key in keys], dtype=np.int64)
    return None if (places < 0).any() else places


def _coarsest(values: list[Fraction]) -> Lattice:
    """Return the lattice of increasing values whose step is their greatest common divisor."""
    common = math.lcm(*(value.denominator for value in values))
    whole = [int(value * common) for value in values]
    divisor = math.gcd(*whole) or common
    units = [value // divisor for value in whole]
    index = np.array([unit - units[0] for unit in units], dtype=np.int64)
    return Lattice(Fraction(divisor, common), units[0], index)
