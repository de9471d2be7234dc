# SPDX-License-Identifier: Apache-2.0
"""Scenario: priors of one or several adversaries, and the pairs of secrets to protect."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from pufferfish.errors import InputError, counted, did_you_mean, listed, listed_pairs
from pufferfish.numbers import INT64_SAFE, CountArray, IntArray, text_of
from pufferfish.priors.ambiguity import AmbiguitySet, Confidence, Point, Rule, ball_around, box_of
from pufferfish.priors.prior import Prior, sealed
from pufferfish.support import (
    Lattice,
    Levels,
    Product,
    Support,
    lattice_of,
    make_lattice,
    make_levels,
)
from pufferfish.tables.rules import Stratum

Pair = tuple[str, str]
#: With more secrets than this the pairs have to be named.
MOST_SECRETS = 200


@dataclass(frozen=True, eq=False)
class PairView:
    """One pair under one adversary, over the k atoms that have mass under one of the two."""

    index: IntArray  # their places on the lattice, in steps
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
    """

    priors: tuple[Prior, ...]
    pairs: tuple[Pair, ...]

    def __init__(
        self,
        priors: Prior | Sequence[Prior],
        pairs: Literal["all"] | Sequence[Sequence[str]] = "all",
    ) -> None:
        given = tuple(priors) if isinstance(priors, Iterable) else (priors,)
        wrong = [p for p in given if not isinstance(p, Prior)]
        if not given or wrong:
            kind = f"an object of type {type(wrong[0]).__name__}" if given else "none"
            raise InputError(f"a scenario needs a Prior or a list of them, but {kind} was given")
        # Before anything else: a table whose columns were swapped has very many secrets.
        object.__setattr__(self, "pairs", _checked_pairs(pairs, given[0].secrets))
        object.__setattr__(self, "priors", _aligned(given))

    def __repr__(self) -> str:
        priors = "\n".join(map(repr, self.priors)).replace("\n", "\n  ")
        return (
            f"<Scenario of {counted(len(self.pairs), 'pair')}: {listed_pairs(self.pairs)}\n"
            f"  {priors}>"
        )

    @property
    def product(self) -> Product:
        """The support that all priors share: one axis per column."""
        return self.priors[0].product

    @property
    def support(self) -> Support:
        """The support of the only column; an InputError where there are several."""
        return self.product.only

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice for additive noise on the only column."""
        return lattice_of(self.support)

    @property
    def unit(self) -> str | None:
        """The column whose equal values mark the rows of one person."""
        return next((prior.unit for prior in self.priors if prior.unit is not None), None)

    @property
    def strata(self) -> tuple[tuple[Stratum, ...], ...]:
        """For each adversary the people by their number of rows."""
        return tuple(prior.strata for prior in self.priors)

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

    @property
    def cells(self) -> int:
        """Adversaries times protected secrets times atoms: what the work and memory grow with."""
        return len(self.priors) * len(self.protected) * self.product.size

    def of_column(self, column: str | None) -> "Scenario":
        """Return the scenario of one of several columns, summed over the others.

        Parameters
        ----------
        column : str or None
            Its name; None for the only one, whose scenario is returned as it is.
        """
        self.product.position(column)
        if len(self.product.axes) == 1:
            return self
        return Scenario([prior.marginal(column) for prior in self.priors], self.pairs)

    @property
    def has_region(self) -> bool:
        """Whether any adversary's prior is only known to lie in a region."""
        return any(prior.rule is not None for prior in self.priors)

    @property
    def rules(self) -> tuple[Rule | None, ...]:
        """The rules of all adversaries' regions, in an order that does not depend on the given."""
        return tuple(self.priors[rho].rule for rho in self._order)

    def with_rules(self, rules: Sequence[Rule | None]) -> "Scenario":
        """Return the same scenario, its priors known to lie in these regions and no better.

        Parameters
        ----------
        rules : sequence of (Confidence, TVBall or None)
            In the order of :attr:`rules`.
        """
        if len(rules) != len(self.priors):
            raise InputError(f"{len(rules)} regions were given for {len(self.priors)} priors")
        at = dict(zip(self._order, rules, strict=True))
        priors = [replace(prior, rule=at[rho]) for rho, prior in enumerate(self.priors)]
        return Scenario(priors, self.pairs)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        keys = [(self._fingerprint(prior), prior.totals) for prior in self.priors]
        return tuple(sorted(range(len(keys)), key=keys.__getitem__))

    def sets(self) -> tuple[tuple[AmbiguitySet, ...], ...]:
        """Return what each adversary holds possible under each protected secret.

        Returns
        -------
        tuple of tuples of Point or Region
            By adversary, then by protected secret, over the whole support.

        Notes
        -----
        Theory, section 5. The level of each Clopper-Pearson interval is 1 - alpha / cells, and
        cells counts every atom of every protected secret, for all adversaries whose prior was
        counted: together they hold with the stated confidence.
        """
        boxes = sum(isinstance(prior.rule, Confidence) for prior in self.priors)
        cells = self.product.size * len(self.protected) * boxes
        found = []
        for prior in self.priors:
            sets: list[AmbiguitySet] = []
            for secret in self.protected:
                row = prior.row(secret)
                counts, total = prior.counts[row], prior.totals[row]
                if prior.rule is None:
                    sets.append(Point(counts.reshape(self.product.shape), total))
                elif isinstance(prior.rule, Confidence):
                    sets.append(box_of(counts.tolist(), total, (1 - prior.rule.level) / cells))
                else:
                    sets.append(ball_around(counts.tolist(), total, prior.rule.radius))
            found.append(tuple(sets))
        return tuple(found)

    def views(self) -> Iterator[PairView]:
        """Yield every pair under every adversary, restricted to the pair's own atoms."""
        lattice = self.lattice
        for prior in self.priors:
            for first, second in self.pairs:
                i, j = prior.row(first), prior.row(second)
                p, q = prior.counts[i], prior.counts[j]
                own = np.flatnonzero((p != 0) | (q != 0))
                totals = prior.totals[i], prior.totals[j]
                yield PairView(lattice.index[own], p[own], q[own], *totals, lattice.step)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of support, pairs, exact probabilities, regions and the rows of people.

        Equal scenarios have equal digests, in whatever order adversaries and secrets are written.
        It depends on the counts of the table and is as private as they are.
        """
        h = hashlib.sha256()
        columns = self.product.columns if len(self.product.columns) > 1 else ("",)
        for column, axis in zip(columns, self.product.axes, strict=True):
            h.update(f"column {column!r}\n".encode() + _written(axis))
        h.update(repr(sorted(tuple(sorted(pair)) for pair in self.pairs)).encode())
        for identity in sorted(map(self._identity, self.priors)):
            h.update(identity)
        return f"sha256:{h.hexdigest()}"

    def _identity(self, prior: Prior) -> bytes:
        """Return what tells a prior from others: its probabilities, region and people."""
        h = hashlib.sha256(self._fingerprint(prior))
        own = [prior.row(secret) for secret in sorted(self.protected)]
        h.update(repr(prior.rule).encode())
        if isinstance(prior.rule, Confidence):  # how wide its intervals are depends on the totals
            h.update(repr([prior.totals[row] for row in own]).encode())
        for stratum in prior.strata:
            counts = stratum.counts[own]
            used = np.flatnonzero(counts.any(axis=0))
            used = used[np.lexsort(stratum.sequences[used].T[::-1])]
            h.update(f"people {prior.unit!r} {stratum.rows} {len(used)}\n".encode())
            h.update(_bytes(stratum.sequences[used]) + _bytes(counts[:, used]))
        return h.digest()

    def _fingerprint(self, prior: Prior) -> bytes:
        h = hashlib.sha256()
        for secret in sorted(self.protected):
            row = prior.row(secret)
            counts, total = prior.counts[row], prior.totals[row]
            # In lowest terms, so that counts and probabilities of the same prior agree.
            divisor = math.gcd(total, int(np.gcd.reduce(counts)))
            lowest = total // divisor
            # Python prints no decimals of more than 4,300 digits.
            h.update(f"{secret!r} {lowest:#x}\n".encode())
            if lowest < INT64_SAFE:
                h.update(_bytes(counts // divisor))
            else:
                h.update(",".join(f"{int(c) // divisor:x}" for c in counts).encode())
        return h.digest()


def _bytes(numbers: CountArray) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _written(support: Support) -> bytes:
    """Return the support of one column as bytes, for the digest."""
    if isinstance(support, Lattice):
        head = f"lattice {support.step} {support.origin} {support.size}\n"
        return head.encode() + _bytes(support.index)
    return f"levels {support.ordered} {support.names!r}\n".encode()


def _checked_pairs(pairs: Any, secrets: tuple[str, ...]) -> tuple[Pair, ...]:
    if len(secrets) < 2:
        raise InputError(
            f"a scenario needs at least two secrets to tell apart, but there is only "
            f"{listed(secrets) or 'none'}"
        )
    if isinstance(pairs, str) and pairs == "all":
        m = len(secrets)
        if m > MOST_SECRETS:
            raise InputError(
                f"there are {m:,} secrets, which make {m * (m - 1) // 2:,} pairs, and at most "
                f"{MOST_SECRETS} secrets are compared without naming pairs; the columns may be "
                "swapped, or name the pairs with --pair A B (pairs=[...])"
            )
        return tuple(combinations(secrets, 2))
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(f"pairs must be 'all' or a list of pairs, but {pairs!r} was given")
    known = set(secrets)
    checked: dict[frozenset[str], Pair] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(f"a pair names two secrets, but {pair!r} was given")
        first, second = map(text_of, pair)
        unknown = [secret for secret in (first, second) if secret not in known]
        if unknown:
            raise InputError(
                f"the pair ({listed((first, second))}) names the unknown secret {unknown[0]!r}"
                f"{did_you_mean(unknown[0], secrets)}; the secrets are {listed(secrets)}"
            )
        if first == second:
            raise InputError(f"the pair ({listed(pair)}) names the same secret twice")
        checked.setdefault(frozenset((first, second)), (first, second))
    if not checked:
        raise InputError("there is no pair of secrets to protect")
    return tuple(checked.values())


def _aligned(priors: tuple[Prior, ...]) -> tuple[Prior, ...]:
    """Return the priors on the union of their supports, columns and secrets as in the first."""
    first, columns = priors[0], priors[0].product.columns
    for other in priors[1:]:
        theirs = other.product.columns
        if set(other.secrets) != set(first.secrets):
            what, mine, others = "secrets", first.secrets, other.secrets
        elif len(theirs) != len(columns) or (len(columns) > 1 and set(theirs) != set(columns)):
            what, mine, others = "columns", tuple(map(str, columns)), tuple(map(str, theirs))
        else:
            continue
        raise InputError(
            f"all adversaries' priors need the same {what}, but one has {listed(mine)} and "
            f"another {listed(others)}"
        )
    if all(p.product.same_as(first.product) and p.secrets == first.secrets for p in priors):
        return priors
    axes, places = [], []
    for name in columns:
        where = f"column {name!r}: " if len(columns) > 1 else ""
        union, found = _union([p.axes[_axis(p, name)] for p in priors], where)
        axes.append(union)
        places.append(found)
    product = Product(columns, tuple(axes))
    return tuple(
        _moved(prior, product, first.secrets, own)
        for prior, own in zip(priors, zip(*places, strict=True), strict=True)
    )


def _axis(prior: Prior, name: str | None) -> int:
    return prior.product.position(name) if len(prior.axes) > 1 else 0


def _moved(
    prior: Prior, product: Product, secrets: tuple[str, ...], places: Sequence[IntArray]
) -> Prior:
    """Return a prior on a larger product; ``places`` are where its atoms lie on each axis."""
    axes = [_axis(prior, name) for name in product.columns]
    mine = np.unravel_index(np.arange(prior.product.size), prior.product.shape)
    at = [place[mine[k]] for place, k in zip(places, axes, strict=True)]
    to: Any = np.ravel_multi_index(at, product.shape)
    rows = [prior.row(secret) for secret in secrets]
    counts = np.zeros((len(rows), product.size), dtype=prior.counts.dtype)
    counts[:, to] = prior.counts[rows]
    return replace(
        prior,
        product=product,
        secrets=secrets,
        counts=sealed(counts),
        totals=tuple(prior.totals[row] for row in rows),
        codings=tuple(prior.codings[k] for k in axes if prior.codings),
        strata=tuple(
            replace(stratum, sequences=to[stratum.sequences], counts=stratum.counts[rows])
            for stratum in prior.strata
        ),
    )


def _union(supports: Sequence[Support], where: str) -> tuple[Support, list[IntArray]]:
    """Return the union of the supports of one column, and where the atoms of each lie on it."""
    if all(support.same_as(supports[0]) for support in supports):
        return supports[0], [np.arange(supports[0].size, dtype=np.int64)] * len(supports)
    lattices = [s for s in supports if isinstance(s, Lattice)]
    levels = [s for s in supports if isinstance(s, Levels)]
    if lattices and levels:
        raise InputError(f"{where}one adversary's prior is on numbers and another's on levels")
    if any(s.ordered for s in levels):  # and not all are the same
        raise InputError(f"{where}all adversaries' priors need the same order of the same levels")
    if levels:
        union = make_levels(name for s in levels for name in s.names)
        named = {name: k for k, name in enumerate(union.names)}
        return union, [np.array([named[name] for name in s.names], dtype=np.int64) for s in levels]
    # The coarsest step that holds all of them: a step that was chosen stays.
    step = Fraction(
        math.gcd(*(s.step.numerator for s in lattices)),
        math.lcm(*(s.step.denominator for s in lattices)),
    )
    ratios = [int(s.step / step) for s in lattices]
    units = [
        [ratio * (s.origin + k) for k in s.index.tolist()]
        for s, ratio in zip(lattices, ratios, strict=True)
    ]
    merged = sorted(set().union(*units))
    origin = merged[0]
    make_lattice((step * origin, step * merged[-1]), step)  # refuses a range of too many steps
    index, *found = (
        np.array([unit - origin for unit in each], dtype=np.int64) for each in (merged, *units)
    )
    return Lattice(step, origin, index), [np.searchsorted(index, each) for each in found]
