# SPDX-License-Identifier: Apache-2.0
"""Alignment: the priors of several adversaries on the union of their supports, axis by axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.arrays import CountArray, IntArray
from pufferfish.errors import InputError, listed
from pufferfish.prior import Prior
from pufferfish.product import make_product
from pufferfish.support import (
    AnySupport,
    Lattice,
    Levels,
    Product,
    Support,
    lattice_index,
    make_lattice,
    make_levels,
)


def aligned(priors: tuple[Prior, ...]) -> tuple[Prior, ...]:
    """Return the priors on the union of their supports, secrets in the order of the first.

    Columns of several together are in the order of the first prior too.

    Raises
    ------
    InputError
        If the kinds of support, the columns or the orders of levels differ.
    """
    first = priors[0]
    if all(p.support.same_as(first.support) and p.secrets == first.secrets for p in priors):
        return priors
    union: AnySupport
    if isinstance(first.support, Product):
        union, places = _union_of_products(priors)
    else:
        supports = [p.support for p in priors]
        single = [s for s in supports if not isinstance(s, Product)]
        if len(single) < len(supports):
            raise _differ()
        union, found = _union(single)
        places = [(place,) for place in found]
    return tuple(
        replace(
            Prior.from_numerators(
                union,
                first.secrets,
                _placed(prior, first, union, place),
                from_rows=prior.from_rows,
                notes=prior.notes,
                report=prior.report,
                region=prior.region,
            ),
            units=None
            if prior.units is None
            else prior.units.moved(
                _moved(prior, union, place), [prior.row(secret) for secret in first.secrets]
            ),
        )
        for prior, place in zip(priors, places, strict=True)
    )


def _moved(prior: Prior, union: AnySupport, places: tuple[IntArray, ...]) -> IntArray:
    """Return where on the union each atom of a prior is, as :func:`_placed` puts it."""
    if not (isinstance(union, Product) and isinstance(prior.support, Product)):
        return places[0]
    mine = np.unravel_index(np.arange(prior.support.size), prior.support.shape)
    axes = [prior.support.position(column) for column in union.columns]
    there = [place[mine[axis]] for place, axis in zip(places, axes, strict=True)]
    moved: IntArray = np.ravel_multi_index(there, union.shape)
    return moved


def _placed(
    prior: Prior, first: Prior, union: AnySupport, places: tuple[IntArray, ...]
) -> list[CountArray]:
    """Return the rows of a prior on the union, where its atoms lie at the places, per axis."""
    old: tuple[int, ...] = (prior.support.size,)
    shape: tuple[int, ...] = (union.size,)
    axes: tuple[int, ...] = (0,)
    if isinstance(union, Product) and isinstance(prior.support, Product):
        old, shape = prior.support.shape, union.shape
        axes = tuple(prior.support.position(column) for column in union.columns)
    rows = []
    for secret in first.secrets:
        counts = prior.counts[prior.row(secret)]
        row = np.zeros(shape, dtype=counts.dtype)
        row[np.ix_(*places)] = counts.reshape(old).transpose(axes)
        rows.append(row.reshape(-1))
    return rows


def _union_of_products(priors: tuple[Prior, ...]) -> tuple[Product, list[tuple[IntArray, ...]]]:
    """Return the product of the unions of all axes, and for each prior the places on them."""
    supports = [p.support for p in priors]
    products = [s for s in supports if isinstance(s, Product)]
    if len(products) < len(supports):
        raise _differ()
    columns = products[0].columns
    for other in products[1:]:
        if set(other.columns) != set(columns):
            raise InputError(
                "all adversaries' priors need the same columns, but one is on "
                f"{listed(columns)} and another on {listed(other.columns)}"
            )
    axes, places = [], []
    for column in columns:
        try:
            union, found = _union([p.axes[p.position(column)] for p in products])
        except InputError as error:
            raise InputError(f"column {column!r}: {error}") from None
        axes.append(union)
        places.append(found)
    return make_product(columns, axes), list(zip(*places, strict=True))


def _union(supports: Sequence[Support]) -> tuple[Support, list[IntArray]]:
    """Return the union of the supports of one column, and where the atoms of each lie on it."""
    union: Support
    places: list[Any]
    if all(isinstance(s, Lattice) for s in supports):
        lattices = [s for s in supports if isinstance(s, Lattice)]
        # The coarsest step that holds all lattices: a step that was chosen stays.
        step = Fraction(
            math.gcd(*(s.step.numerator for s in lattices)),
            math.lcm(*(s.step.denominator for s in lattices)),
        )
        union = make_lattice(dict.fromkeys(v for s in lattices for v in s.values), step)
        where = {union.origin + k: i for i, k in enumerate(union.index.tolist())}
        places = [[where[u] for u in lattice_index(s.values, union.step)] for s in lattices]
    elif all(isinstance(s, Levels) for s in supports):
        levels = [s for s in supports if isinstance(s, Levels)]
        if any(s.ordered for s in levels):
            names = {s.names for s in levels}
            if len(names) > 1 or not all(s.ordered for s in levels):
                raise InputError("all adversaries' priors need the same order of the same levels")
        union = levels[0] if levels[0].ordered else make_levels(n for s in levels for n in s.names)
        at = {name: k for k, name in enumerate(union.names)}
        places = [[at[name] for name in s.names] for s in levels]
    else:
        raise InputError("one adversary's prior is on numbers and another's on levels")
    return union, [np.array(place, dtype=np.int64) for place in places]


def _differ() -> InputError:
    return InputError(
        "one adversary's prior is on one column and another's on several together; make all of "
        "them joint (public=[...]), also those of a single column"
    )
