# SPDX-License-Identifier: Apache-2.0
"""Rows of a prior: what users write for each secret, as exact numerators on one support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.fitting import fit_probabilities
from pufferfish.priorinput import (
    brief,
    integer_row,
    integer_support,
    mapping_values,
    one_dimension,
    placed,
    scattered,
)
from pufferfish.rationals import parse_number
from pufferfish.support import Support
from pufferfish.texts import text_of


@dataclass(frozen=True, eq=False)
class Rows:
    """One row of numerators per secret.

    Attributes
    ----------
    support : Lattice or Levels
        The n atoms.
    secrets : tuple of str
        The m secrets.
    numerators : list of sequences of integers, shape (m, n)
        The numerator of every atom, or its count.
    notes : tuple of str
        What was done to the input.
    """

    support: Support
    secrets: tuple[str, ...]
    numerators: list[list[int]] | list[npt.NDArray[Any]]
    notes: tuple[str, ...] = ()


def rows_of_mapping(
    secrets: Mapping[Any, Mapping[Any, Any]], order: Sequence[Any] | str | None, step: Any
) -> Rows:
    """Read ``{secret: {value: probability}}``; see :meth:`pufferfish.Prior.from_mapping`.

    Raises
    ------
    InputError
        If a row does not sum to 1 (within 1e-6), has a negative entry, or is no mapping.
    """
    if not isinstance(secrets, Mapping) or not secrets:
        raise InputError(
            "a prior needs a mapping {secret: {value: probability}} with at least one secret, "
            f"but {brief(secrets)} was given"
        )
    parsed: dict[str, dict[Any, Fraction]] = {}
    notes: list[str] = []
    values = mapping_values(secrets)
    for secret, row in secrets.items():
        name = text_of(secret)
        if name in parsed:
            raise InputError(f"the secret {name!r} is given twice")
        masses = {
            values[key]: parse_number(p, f"the probability of {key!r} under secret {name!r}")
            for key, p in row.items()
        }
        if len(masses) < len(row):
            raise InputError(f"secret {name!r} gives the same value twice")
        given = list(row.values())
        fitted, note = fit_probabilities(name, given, list(masses.values()))
        parsed[name] = dict(zip(masses, fitted, strict=True))
        notes += note
    support, place = placed(values.values(), order, step)
    counts: list[list[int]] = []
    for row_masses in parsed.values():
        denominator = math.lcm(1, *{p.denominator for p in row_masses.values()})
        numerators = [0] * support.size
        for value, p in row_masses.items():
            numerators[place[value]] += p.numerator * (denominator // p.denominator)
        counts.append(numerators)
    return Rows(support, tuple(parsed), counts, tuple(notes))


def rows_of_counts(
    counts: Mapping[Any, Sequence[int] | npt.NDArray[Any]],
    support: Sequence[Any] | npt.NDArray[Any],
    order: Sequence[Any] | str | None,
    step: Any,
) -> Rows:
    """Read integer counts, one list or array per secret; see :meth:`pufferfish.Prior.from_counts`.

    Raises
    ------
    InputError
        If lengths differ, a count is negative or no integer, or a value is given twice.
    """
    if not isinstance(counts, Mapping) or not counts:
        raise InputError(
            "counts must be a mapping {secret: [count, ...]} with at least one secret, "
            f"but {brief(counts)} was given"
        )
    integers = one_dimension(support, "the support")
    rows = {}
    for secret, row in counts.items():
        name = text_of(secret)
        if name in rows:
            raise InputError(f"the secret {name!r} is given twice")
        rows[name] = integer_row(name, row, len(integers))
    if order is None and step is None and integers.dtype.kind in "iu" and integers.size:
        # The quick way for large integer supports; the general one below agrees with it.
        lattice, at = integer_support(integers)
        numerators = [scattered(row, at, lattice.size) for row in rows.values()]
        return Rows(lattice, tuple(rows), numerators)
    if len(support) == 0:
        raise InputError("the support is empty: no value was given")
    keys = dict.fromkeys(support)
    if len(keys) < len(support):
        raise InputError("the support gives the same value twice")
    values = mapping_values({"support": keys})
    if len(set(values.values())) < len(values):
        raise InputError("the support gives the same value twice")
    found, place = placed(values.values(), order, step)
    at = np.array([place[values[key]] for key in keys], dtype=np.int64)
    numerators = [scattered(row, at, found.size) for row in rows.values()]
    return Rows(found, tuple(rows), numerators)
