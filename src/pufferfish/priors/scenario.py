# SPDX-License-Identifier: Apache-2.0
"""Scenario: priors of one or several adversaries on one support, and the pairs to protect."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from pufferfish.errors import CheckFailed, InputError, counted, did_you_mean, listed, listed_pairs
from pufferfish.numbers import CountArray, IntArray, show, text_of
from pufferfish.priors.ambiguity import (
    AmbiguitySet,
    Confidence,
    NoisyCounts,
    Point,
    Rule,
    TVBall,
    ball_around,
    box_of,
)
from pufferfish.priors.given import support_of
from pufferfish.priors.prior import Prior, sealed
from pufferfish.support import Lattice, Product, Support, lattice_of
from pufferfish.tables.rules import Coding, Rules

Pair = tuple[str, str]
#: With more secrets than this the pairs have to be named.
MOST_SECRETS = 200
#: Values of noisy counts, whose bounds take some seconds.
_MOST_OF_BOX = 3000


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
        One prior per adversary, all with the same secrets. Where their supports differ, those of
        one column are widened to their union: numbers, or levels without an order.
    pairs : "all" or sequence of (str, str)
        The pairs of secrets that nobody may tell apart; by default all of them. Repetitions are
        left out: (a, b) and (b, a) are the same pair.
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
        object.__setattr__(self, "priors", _on_one_support(given))

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
    def row_numbers(self) -> tuple[int, ...]:
        """How many rows one person may have, increasing; empty where each row is a person."""
        return tuple(sorted({s.rows for prior in self.priors for s in prior.strata}))

    def common_reading(self) -> tuple[Rules | None, Coding | None]:
        """Return how the tables of all priors were read; nothing where one was given."""
        rules = [prior.rules for prior in self.priors if prior.rules is not None]
        if len(rules) < len(self.priors):
            return None, None
        # What values there are the scenario knows of all of them together.
        free: dict[str, Any] = {"order": None, "support": None}
        ways = {replace(each, columns=(replace(each.columns[0], **free),)) for each in rules}
        if len(ways) > 1:
            raise InputError(
                "the tables of the priors were read with different options (columns, missing "
                "texts, step, ...); a release can follow only one, so read all tables in the same "
                "way"
            )
        return rules[0], replace(self.priors[0].codings[0], support=self.support)

    def reads_alike(self, at: int, coding: Coding | None) -> bool:
        """Return whether a release reads cells of a column as the tables were read, if known."""
        known = {prior.codings[at].reading for prior in self.priors if prior.codings}
        return coding is None or known <= {coding.reading}

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

    def of_column(self, column: str | None) -> "Scenario":
        """Return the scenario of one of several columns; None: of the only one, as it is."""
        self.product.position(column)
        if len(self.product.axes) == 1:
            return self
        return self._of(prior.marginal(column) for prior in self.priors)

    @property
    def has_region(self) -> bool:
        """Whether any adversary's prior is only known to lie in a region."""
        return any(prior.rule is not None for prior in self.priors)

    @property
    def noisy(self) -> NoisyCounts | None:
        """The noisy counts that are all that is used of the rows, if it is so."""
        found = [p.rule for p in self.priors if isinstance(p.rule, NoisyCounts)]
        if found and len(self.priors) > 1:
            raise InputError("beside noisy counts there can be no other prior")
        return found[0] if found else None

    @property
    def rules(self) -> tuple[Rule | None, ...]:
        """The rules of all adversaries' regions, in an order that does not depend on the given."""
        return tuple(self.priors[rho].rule for rho in self._order)

    def with_rules(self, rules: Sequence[Rule | None]) -> "Scenario":
        """Return the same scenario under other :attr:`rules`, in the order of its own."""
        if len(rules) != len(self.priors):
            raise InputError(f"{len(rules)} regions were given for {len(self.priors)} priors")
        at = dict(zip(self._order, rules, strict=True))
        return self._of(replace(prior, rule=at[rho]) for rho, prior in enumerate(self.priors))

    def _of(self, priors: Iterable[Prior]) -> "Scenario":
        """Return the scenario of other priors of the same secrets; its pairs were checked."""
        made = object.__new__(Scenario)
        object.__setattr__(made, "priors", tuple(priors))
        object.__setattr__(made, "pairs", self.pairs)
        return made

    @cached_property
    def _order(self) -> list[int]:
        keys = [(self._masses(prior), prior.totals) for prior in self.priors]
        return sorted(range(len(keys)), key=keys.__getitem__)

    @cached_property
    def sets(self) -> tuple[tuple[AmbiguitySet, ...], ...]:
        """What each adversary holds possible under each protected secret (theory, section 5).

        The level of each Clopper-Pearson interval is 1 - alpha / cells, and cells counts every atom
        of every protected secret, for all adversaries whose prior was counted: together they hold
        with the stated confidence. Of noisy counts each end of an interval is a betting bound of
        its own.
        """
        boxes = sum(isinstance(prior.rule, Confidence) for prior in self.priors)
        cells = self.product.size * len(self.protected) * boxes

        def held(prior: Prior, secret: str) -> AmbiguitySet:
            counts, total = prior.counts[prior.row(secret)], prior.totals[prior.row(secret)]
            match prior.rule:
                case Confidence(level):
                    return box_of(counts.tolist(), total, (1 - level) / cells)
                case TVBall(radius):
                    return ball_around(counts.tolist(), total, radius)
                case NoisyCounts() as noisy:
                    return _noisy_box(noisy, secret)
            return Point(counts.reshape(self.product.shape), total)

        return tuple(tuple(held(prior, s) for s in self.protected) for prior in self.priors)

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
        columns = self.product.columns if len(self.product.columns) > 1 else ("",)
        axes = list(zip(columns, map(_written, self.product.axes), strict=True))
        pairs = sorted(tuple(sorted(pair)) for pair in self.pairs)
        whole = repr((axes, pairs, sorted(map(self._written_prior, self.priors))))
        return f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}"

    def _written_prior(self, prior: Prior) -> str:
        """Return what tells a prior from others: its probabilities, region and people."""
        own = [prior.row(secret) for secret in sorted(self.protected)]
        counted = isinstance(prior.rule, Confidence)  # how wide its box is depends on the totals
        totals = [hex(prior.totals[row]) for row in own if counted]
        people = []
        for stratum in prior.strata:
            counts = stratum.counts[own].T
            used = counts.any(axis=1)
            sequences = zip(stratum.sequences[used].tolist(), counts[used].tolist(), strict=True)
            people.append((prior.unit, stratum.rows, sorted(sequences)))
        return repr((self._masses(prior), prior.rule, totals, people))

    def _masses(self, prior: Prior) -> list[tuple[str, str]]:
        """Return every protected secret with its masses in lowest terms.

        So counts and probabilities of the same prior agree.
        """
        rows = [(secret, prior.counts[prior.row(secret)]) for secret in sorted(self.protected)]
        return [(secret, _hash(row // np.gcd.reduce(row))) for secret, row in rows]


def positions(pairs: Iterable[Pair], secrets: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return pairs of secrets as those of their positions."""
    place = {secret: k for k, secret in enumerate(secrets)}
    return tuple((place[first], place[second]) for first, second in pairs)


def as_scenario(given: Any, pairs: Any = "all") -> Scenario:
    """Return a scenario, or that of a prior and these pairs; anything else is refused."""
    if isinstance(given, Prior):
        given = Scenario(given, pairs)
    if not isinstance(given, Scenario):
        raise InputError(f"a Scenario or a Prior is needed, but a {type(given).__name__} was given")
    return given


def scenario_of_noise(
    rule: NoisyCounts, product: Product, pairs: Iterable[Pair], **reading: Any
) -> Scenario:
    """Return the scenario of noisy counts; its prior, where one is needed, has none below 0."""
    counts = np.maximum(np.array(rule.counts, dtype=object), 0)
    counts[~counts.any(axis=1)] = 1
    rows = dict(zip(rule.secrets, counts.tolist(), strict=True))
    prior = Prior.from_numerators(product, rows, from_rows=True, rule=rule, **reading)
    return Scenario(prior, tuple(pairs))


def _noisy_box(noisy: NoisyCounts, secret: str) -> AmbiguitySet:
    from pufferfish.priors.betting import box_of_bounds  # slow to import

    if len(noisy.others) > _MOST_OF_BOX:
        raise InputError(
            f"a plan from noisy counts is for at most {_MOST_OF_BOX:,} values, but there are "
            f"{len(noisy.others):,}; a coarser step (--step) makes fewer"
        )

    found = box_of_bounds(noisy.belief(secret, len(noisy.secrets) * len(noisy.counts[0])))
    if found is None:
        raise CheckFailed(
            f"no distribution fits the noisy counts of {secret!r}: there is no plan, but their "
            f"epsilon {show(noisy.epsilon1)} is spent"
        )
    return found


def _hash(numbers: CountArray) -> str:
    """Return the SHA-256 of integers of any size."""
    if numbers.max() < 2**63:
        return hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()
    # Python prints no decimals of more than 4,300 digits.
    return hashlib.sha256(",".join(map(hex, numbers.tolist())).encode()).hexdigest()


def _written(support: Support) -> tuple[Any, ...]:
    """Return what tells the support of one column from others."""
    if isinstance(support, Lattice):
        return support.step, support.origin, _hash(support.index)
    return support.names, support.ordered


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
            raise InputError(f"the pair ({listed((first, second))}) names the same secret twice")
        checked.setdefault(frozenset((first, second)), (first, second))
    if not checked:
        raise InputError("there is no pair of secrets to protect")
    return tuple(checked.values())


def _on_one_support(priors: tuple[Prior, ...]) -> tuple[Prior, ...]:
    """Return the priors of several adversaries on the union of their supports."""
    first = priors[0]
    for other in priors[1:]:
        if set(other.secrets) != set(first.secrets):
            raise InputError(
                f"all adversaries' priors need the same secrets, but one has "
                f"{listed(first.secrets)} and another {listed(other.secrets)}"
            )
    different = [prior.product for prior in priors if prior.product != first.product]
    if not different:
        return priors
    supports = [axis for prior in priors for axis in prior.product.axes]
    one_column = len(supports) == len(priors)
    if one_column and all(support == supports[0] for support in supports):
        return tuple(replace(prior, product=first.product) for prior in priors)  # other names
    lattices = [s for s in supports if isinstance(s, Lattice)]
    unordered = [s for s in supports if not s.ordered]
    people = any(prior.strata for prior in priors)
    if not one_column or people or len(supports) not in (len(lattices), len(unordered)):
        raise InputError(
            "all adversaries' priors need the same columns and values, in the same order, but one "
            f"has {first.product!r} and another {different[0]!r}; only numbers, or levels without "
            "an order, of one column without a unit may differ"
        )
    # The coarsest step that holds all of them: a step that was chosen stays.
    step = Fraction(
        math.gcd(*(lattice.step.numerator for lattice in lattices)),
        math.lcm(*(lattice.step.denominator for lattice in lattices)),
    )
    values = [v for s in supports for v in (s.values if isinstance(s, Lattice) else s.names)]
    union, at = support_of(values, step=step if lattices else None)
    product = Product(first.product.columns, (union,))
    places = np.split(at, np.cumsum([support.size for support in supports])[:-1])
    moved = []
    for prior, place in zip(priors, places, strict=True):
        counts = np.zeros((len(prior.secrets), product.size), dtype=prior.counts.dtype)
        counts[:, place] = prior.counts
        moved.append(replace(prior, product=product, counts=sealed(counts)))
    return tuple(moved)
