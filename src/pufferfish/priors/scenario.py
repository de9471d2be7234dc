# SPDX-License-Identifier: Apache-2.0
"""Scenario: priors of one or several adversaries, and the pairs of secrets to protect."""

from __future__ import annotations
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
import numpy as np
from pufferfish.numbers import CountArray, IntArray
from pufferfish.errors import InputError, listed
from pufferfish.priors.prior import Prior
from pufferfish.support import make_product
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
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pufferfish.numbers import INT64_SAFE, CountArray
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.priors.ambiguity import Confidence, Region
from pufferfish.support import Lattice, Product, Support, lattice_of, one_column
from pufferfish.numbers import text_of

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


Pair = tuple[str, str]


@dataclass(frozen=True)
class PairView:
    """One pair under one adversary, over that pair's own atoms.

    Attributes
    ----------
    adversary : int
        Position of the prior in the scenario.
    first, second : str
        The two secrets.
    atoms : int64 array, shape (k,)
        The atoms of the support that have mass under one of the two.
    index : int64 array, shape (k,)
        Their places on the lattice, in steps.
    counts_first, counts_second : integer arrays, shape (k,)
        Exact numerators.
    total_first, total_second : int
        Their denominators.
    step : Fraction
        Step of the lattice.
    """

    adversary: int
    first: str
    second: str
    atoms: Any
    index: Any
    counts_first: CountArray
    counts_second: CountArray
    total_first: int
    total_second: int
    step: Fraction


@dataclass(frozen=True, eq=False, init=False)
class Scenario:
    """What is protected against whom: aligned priors, and discriminative pairs.

    Parameters
    ----------
    priors : Prior or sequence of Prior
        One prior per adversary, all with the same secrets. Supports that differ are widened to
        their union, those of several columns axis by axis.
    pairs : "all" or sequence of (str, str)
        The pairs of secrets that nobody may tell apart; by default all of them.

    Attributes
    ----------
    priors : tuple of Prior
    pairs : tuple of (str, str)
        In the order given, without repetitions; (a, b) and (b, a) are the same pair.

    Raises
    ------
    InputError
        If there are fewer than two secrets, the secrets, columns or kinds of support of the priors
        differ, or a pair names an unknown secret or the same one twice.
    """

    priors: tuple[Prior, ...]
    pairs: tuple[Pair, ...]

    def __init__(
        self, priors: Prior | Sequence[Prior], pairs: str | Sequence[Sequence[str]] = "all"
    ) -> None:
        if isinstance(priors, Prior) or not isinstance(priors, Iterable):
            given: tuple[Any, ...] = (priors,)
        else:
            given = tuple(priors)
        wrong = next((p for p in given if not isinstance(p, Prior)), None)
        if not given or wrong is not None:
            raise InputError(
                "a scenario needs a Prior or a list of them"
                + (
                    f", but an object of type {type(wrong).__name__} was given"
                    if given
                    else ", but none was given"
                )
            )
        secrets = given[0].secrets
        for other in given[1:]:
            if set(other.secrets) != set(secrets):
                raise InputError(
                    "all adversaries' priors need the same secrets, but one has "
                    f"{listed(secrets)} and another {listed(other.secrets)}"
                )
        object.__setattr__(self, "priors", aligned(given))
        object.__setattr__(self, "pairs", _checked_pairs(pairs, secrets))

    @property
    def support(self) -> Support:
        """The support that all priors share, where they are on one column.

        Raises
        ------
        InputError
            If they are on several columns together (:attr:`product`): what is for one column
            refuses such a scenario, instead of taking its combinations for values.
        """
        return one_column(self.priors[0].support)

    @property
    def product(self) -> Product | None:
        """The support that all priors share, where they are on several columns together."""
        support = self.priors[0].support
        return support if isinstance(support, Product) else None

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice for additive noise (numbers, or the codes of ordered levels).

        Raises
        ------
        InputError
            For levels without an order, and for several columns together.
        """
        return lattice_of(self.support)

    @cached_property
    def protected(self) -> tuple[str, ...]:
        """The secrets that occur in the pairs, in the order of the first prior."""
        named = {secret for pair in self.pairs for secret in pair}
        return tuple(s for s in self.priors[0].secrets if s in named)

    @cached_property
    def is_all_pairs(self) -> bool:
        """Whether every two of the protected secrets form a pair: then max - min suffices."""
        m = len(self.protected)
        return len(self.pairs) == m * (m - 1) // 2

    def of_column(self, column: str | None) -> Scenario:
        """Return the scenario of one of several columns, summed over the others.

        A scenario of one column is returned as it is.

        Raises
        ------
        InputError
            If there are several columns and none or an unknown one is named.
        """
        if self.product is None:
            return self
        if column is None:
            raise InputError(
                "noise and channels are calibrated for one column at a time: name one of "
                f"{listed(map(repr, self.product.columns))} with column="
            )
        return Scenario([prior.marginal(column) for prior in self.priors], self.pairs)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The adversaries sorted by what they believe, in whatever order they were given."""
        keys = [(self._fingerprint(prior), prior.totals) for prior in self.priors]
        return tuple(sorted(range(len(keys)), key=lambda rho: keys[rho]))

    @property
    def regions(self) -> tuple[Region | None, ...]:
        """The regions of all adversaries, in an order that does not depend on the one given."""
        return tuple(self.priors[rho].region for rho in self._order)

    def with_regions(self, rules: Sequence[Region | None]) -> Scenario:
        """Return the same scenario, its priors known to lie in these regions and no better.

        Parameters
        ----------
        rules : sequence of (Confidence, TVBall or None)
            In the order of :attr:`regions`.
        """
        at = dict(zip(self._order, rules, strict=True))
        priors = [replace(prior, region=at[rho]) for rho, prior in enumerate(self.priors)]
        return Scenario(priors, self.pairs)

    @property
    def cells(self) -> int:
        """Adversaries times protected secrets times atoms: what the work and memory grow with."""
        return len(self.priors) * len(self.protected) * self.priors[0].support.size

    def views(self) -> Iterator[PairView]:
        """Yield every pair under every adversary, restricted to the pair's own atoms."""
        lattice = self.lattice
        for rho, prior in enumerate(self.priors):
            for first, second in self.pairs:
                i, j = prior.row(first), prior.row(second)
                p, q = prior.counts[i], prior.counts[j]
                atoms = np.flatnonzero((p != 0) | (q != 0))
                if len(atoms) == lattice.size:
                    index = lattice.index
                else:
                    p, q, index = p[atoms], q[atoms], lattice.index[atoms]
                yield PairView(
                    rho, first, second, atoms, index, p, q,
                    prior.totals[i], prior.totals[j], lattice.step,
                )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """SHA-256 of support, pairs and exact probabilities; equal scenarios have equal digests.

        It depends on the counts of the table and is therefore as private as they are. Counts
        themselves, and not only frequencies, count where a prior is to hold with a confidence.
        """
        h = hashlib.sha256()
        product = self.product
        if product is None:
            h.update(_written(self.support))
        else:
            for name, k in sorted(zip(product.columns, range(len(product.columns)), strict=True)):
                axis = product.axes[k]
                h.update(f"column {name!r} {axis.size}\n".encode())
                h.update(_written(axis))
        h.update(repr(sorted(tuple(sorted(pair)) for pair in self.pairs)).encode())
        for fingerprint in sorted(map(self._identity, self.priors)):
            h.update(fingerprint)
        return f"sha256:{h.hexdigest()}"

    def _identity(self, prior: Prior) -> bytes:
        """Return a prior's fingerprint, with its numbers of rows where its region needs them."""
        if not isinstance(prior.region, Confidence):
            return self._fingerprint(prior)
        totals = [prior.totals[prior.row(secret)] for secret in sorted(self.protected)]
        return self._fingerprint(prior) + repr(totals).encode()

    def _fingerprint(self, prior: Prior) -> bytes:
        h = hashlib.sha256()
        product = self.product
        for secret in sorted(self.protected):
            row = prior.row(secret)
            counts, total = prior.counts[row], prior.totals[row]
            if product is not None:
                # By the names of the columns: their order is only a way of writing.
                by_name = sorted(range(len(product.columns)), key=product.columns.__getitem__)
                counts = counts.reshape(product.shape).transpose(by_name).reshape(-1)
            # In lowest terms, so that counts and probabilities of the same prior agree.
            divisor = math.gcd(total, *_few_distinct(counts))
            lowest = total // divisor
            if lowest < INT64_SAFE:
                h.update(f"{secret!r} {lowest}\n".encode())
                h.update(np.ascontiguousarray(counts // divisor, dtype="<i8").tobytes())
            else:
                # Python prints no decimals of more than 4,300 digits.
                h.update(f"{secret!r} {lowest:#x}\n".encode())
                h.update(",".join(f"{int(c) // divisor:x}" for c in counts).encode())
        return h.digest()


def _written(support: Support) -> bytes:
    """Return the support of one column as bytes, for the digest."""
    if isinstance(support, Lattice):
        index = np.ascontiguousarray(support.index, dtype="<i8").tobytes()
        return f"lattice {support.step} {support.origin}\n".encode() + index
    return f"levels {support.ordered} {support.names!r}\n".encode()


def _few_distinct(counts: CountArray) -> list[int]:
    """Return integers with the same greatest common divisor as the counts, and few of them."""
    if counts.dtype == object:
        return [int(c) for c in counts]
    # The divisor is soon small, and then only remainders by it can make it smaller still.
    divisor = int(np.gcd.reduce(counts[:64]))
    if divisor > 1:
        divisor = math.gcd(divisor, *np.unique(counts % divisor).tolist())
    return [divisor] if divisor else [int(c) for c in counts]


def _checked_pairs(pairs: str | Sequence[Sequence[str]], secrets: tuple[str, ...]) -> Any:
    if len(secrets) < 2:
        raise InputError(
            f"a scenario needs at least two secrets to tell apart, but there is only "
            f"{listed(secrets) or 'none'}"
        )
    if isinstance(pairs, str):
        if pairs != "all":
            raise InputError(f"pairs must be 'all' or a list of pairs, but {pairs!r} was given")
        return tuple(combinations(secrets, 2))
    if not isinstance(pairs, Iterable):
        raise InputError(f"pairs must be 'all' or a list of pairs, but {pairs!r} was given")
    checked: dict[frozenset[str], Pair] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(f"a pair names two secrets, but {pair!r} was given")
        first, second = (text_of(secret) for secret in pair)
        for secret in (first, second):
            if secret not in secrets:
                raise InputError(
                    f"the pair ({first}, {second}) names the unknown secret {secret!r}"
                    f"{did_you_mean(secret, secrets)}; the secrets are {listed(secrets)}"
                )
        if first == second:
            raise InputError(f"the pair ({first}, {second}) names the same secret twice")
        checked.setdefault(frozenset((first, second)), (first, second))
    if not checked:
        raise InputError("there is no pair of secrets to protect")
    return tuple(checked.values())
