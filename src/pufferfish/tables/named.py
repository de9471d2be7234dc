# SPDX-License-Identifier: Apache-2.0
"""Secrets: which ones a table has, and which of its rows are set aside for their secret."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.tables.atoms import exact_number
from pufferfish.tables.cells import BOOLEANS
from pufferfish.tables.column import Column
from pufferfish.tables.rules import Rules


def secrets_of(
    secret: Column,
    no_value: npt.NDArray[np.bool_],
    counts: IntArray,
    rules: Rules,
    table: str,
) -> tuple[tuple[str, ...], IntArray, tuple[tuple[str, int], ...]]:
    """Return the secrets, the one of every distinct secret cell (-1: none), and rows set aside.

    Groups without a public value are given by ``no_value``.
    """
    texts = secret.cells.texts
    present = set(secret.present)
    for name in rules.exclude_secrets:
        if name not in present:
            raise InputError(
                f"the excluded secret {name!r} does not occur in {table}"
                f"{did_you_mean(name, present)}; the secrets are {listed(sorted(present))}"
            )
    named = tuple(sorted(present - set(rules.exclude_secrets), key=_natural))
    if not named:
        raise InputError(f"no secret of {table} is left in column {rules.secret!r}")
    where = {name: k for k, name in enumerate(named)}
    who = np.array([where.get(t, -1) for t in texts], dtype=np.int64)
    no_secret = secret.missing[secret.places] & ~no_value
    aside = [
        ("no public value", int(counts[no_value].sum())),
        ("no secret value", int(counts[no_secret].sum())),
    ]
    for name in rules.exclude_secrets:
        these = np.array([t == name for t in texts], dtype=bool)[secret.places] & ~no_value
        aside.append((f"secret excluded: {name}", int(counts[these].sum())))
    return named, who, tuple((reason, rows) for reason, rows in aside if rows)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort secrets that are numbers by their value, before all others."""
    value = exact_number(text) if text.lower() not in BOOLEANS else None
    if value is None or len(text) > 30:
        return 1, 0.0, text
    return 0, float(value), text


def check_secrets(
    named: Sequence[str], totals: IntArray, rules: Rules, table: str, told: list[str]
) -> None:
    """Refuse secrets of which nothing is known, and add a warning about those of a single row."""
    empty = [name for name, total in zip(named, totals.tolist(), strict=True) if total == 0]
    if len(empty) == len(named):
        raise InputError(
            f"no row of {table} has both a secret in {rules.secret!r} and a value in "
            f"{rules.public!r}"
        )
    if empty:
        options = " ".join(f"--exclude-secret {name!r}" for name in empty[:3])
        several = len(empty) > 1
        raise InputError(
            f"the secret{'s' * several} {listed(repr(e) for e in empty)} of {table} "
            f"{'have' if several else 'has'} no row with a public value, so nothing is known "
            f"about {'them' if several else 'it'}; to go on without, exclude "
            f"{'them' if several else 'it'} ({options}), also where no pair names "
            f"{'them' if several else 'it'}"
        )
    single = [name for name, total in zip(named, totals.tolist(), strict=True) if total == 1]
    if single:
        told.append(
            f"the secret{'s' * (len(single) > 1)} {listed(repr(s) for s in single)} "
            f"{'have' if len(single) > 1 else 'has'} a single row: one row is no estimate of a "
            "distribution; if no pair names it, exclude it (--exclude-secret)"
        )
