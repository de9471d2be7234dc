# SPDX-License-Identifier: Apache-2.0
"""Verify: the loss of what a plan does, proved again from scratch, whatever the plan claims."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from pufferfish.errors import CheckFailed, InputError, listed
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.proof import prove
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel, check_labels
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import checked_flag, rounded_up, show
from pufferfish.priors.ambiguity import NoisyCounts, Rule, TVBall
from pufferfish.priors.prior import Prior, read_prior_file
from pufferfish.priors.scenario import Pair, Scenario, as_scenario, scenario_of_noise
from pufferfish.support import Lattice, Levels, Product, Support
from pufferfish.tables.rules import Coding, Rules


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Guarantee:
    """The part of a :class:`Plan` that ``verify`` looks at: what decides what a release does.

    ``labels`` are drawn from what the channel publishes, so that they add nothing to its loss.
    """

    applied: Mechanism
    labels: Channel | None = None
    epsilon_exact: Fraction
    support: Support
    coding: Coding | None = None
    secret: str | None = None
    exclude_secrets: tuple[str, ...] = ()
    secret_missing: tuple[str, ...] = ()
    unit: str | None = None
    rows_per_person: tuple[int, ...] = ()
    pairs: tuple[Pair, ...]
    digest: str
    regions: tuple[Rule | None, ...] = ()

    def __post_init__(self) -> None:
        if self.labels is not None:
            check_labels(self.labels, self.applied, self.support)

    @property
    def channel(self) -> Channel | None:
        """The channel that values go through; None for noise."""
        return self.applied if isinstance(self.applied, Channel) else None

    @cached_property
    def label_channel(self) -> Channel | None:
        """The channel from values to labels, or to what is published where there are none."""
        channel = self.channel
        return channel if channel is None or self.labels is None else channel.then(self.labels)

    @property
    def scale(self) -> float | None:
        """theta, in the units of the data; None for a channel."""
        return self.applied.scale if isinstance(self.applied, DiscreteLaplace) else None

    @property
    def noisy(self) -> NoisyCounts | None:
        """The noisy counts that all of it was computed from, so that it may be published."""
        return next((rule for rule in self.regions if isinstance(rule, NoisyCounts)), None)

    @property
    def epsilon(self) -> float:
        """Epsilon as a float; ``epsilon_exact`` is the number itself."""
        return float(self.epsilon_exact)

    @property
    def rules(self) -> Rules | None:
        """How a table is read for this plan; None where it names no columns."""
        if self.coding is None:
            return None
        return Rules(
            self.secret, (self.coding.declared(),), self.exclude_secrets, self.coding.decimal,
            self.unit, self.secret_missing,
        )  # fmt: skip


def verify(
    promise: Guarantee, scenario: Scenario | Prior | None, other_prior: bool = False
) -> Certificate:
    """Return the certificate of a plan's mechanism under a scenario, or raise CheckFailed.

    A plan from noisy counts is judged under these.
    """
    if promise.noisy is not None:
        own = scenario_of_counts(promise)
        if scenario is not None and as_scenario(scenario, promise.pairs).digest != own.digest:
            raise CheckFailed("these are other noisy counts, pairs or values than the plan's")
        return _proved(promise, own)
    scenario = own_column(promise, as_scenario(scenario, promise.pairs))
    promised = with_regions(promise, scenario)
    mine, theirs = (set(map(frozenset, own.pairs)) for own in (promise, scenario))
    same = promised.digest == promise.digest and mine == theirs
    if not same and not checked_flag(other_prior, "other_prior"):
        raise CheckFailed(
            "this is another scenario: the prior, its region, the pairs or the rows of people are "
            "not those that the plan was computed from; to judge the plan under them all the same "
            "use --other-prior (other_prior=True)"
        )
    _check_support(promise, scenario, other_prior)
    if promise.unit is not None and not scenario.row_numbers:
        raise CheckFailed(
            f"the plan is for the rows of one person together (by column {promise.unit!r}), but "
            "the prior does not say which rows these are"
        )
    certificate = _proved(promise, promised)
    if scenario.has_region and scenario.rules != promised.rules:
        certificate = _proved(promise, scenario)  # more is asked for than the plan promises
    return certificate


def own_column(promise: Guarantee, scenario: Scenario) -> Scenario:
    """Return the scenario of the plan's column, of one on several."""
    return scenario.of_column(None if promise.coding is None else promise.coding.column)


def with_regions(promise: Guarantee, scenario: Scenario) -> Scenario:
    """Return the scenario with the regions that a plan is to hold for, and no others."""
    count, rules = len(scenario.priors), promise.regions or (None,)
    alike = len(set(rules)) == 1
    try:
        promised = scenario.with_rules(rules[:1] * count if alike else rules)
    except InputError as error:
        raise CheckFailed(f"the plan's region does not fit the prior: {error}") from None
    # Which region is whose is known only by the order of the priors it was made for.
    if alike or promised.digest == promise.digest:
        return promised
    raise CheckFailed(
        f"the plan holds for {len(rules)} adversaries with regions of their own, and it cannot be "
        "told which of them belongs to which of the priors given"
    )


def _check_support(promise: Guarantee, scenario: Scenario, other_prior: bool) -> None:
    """Check that a release codes values as the loss that is recomputed has it."""
    mine, theirs = promise.support, scenario.support
    exact = isinstance(promise.applied, Channel) or not other_prior
    alike = not other_prior or scenario.reads_alike(0, promise.coding)
    if exact or not alike or isinstance(mine, Levels) or isinstance(theirs, Levels):
        if mine != theirs or not alike:
            raise CheckFailed(
                "the support of the plan is not that of the prior: a release would code values "
                "in another way than the one whose loss is recomputed"
            )
    elif (theirs.step / mine.step).denominator != 1:
        raise CheckFailed(
            f"the values lie on a lattice of step {show(theirs.step)}, but the plan's noise on "
            f"one of step {show(mine.step)}"
        )


def _proved(promise: Guarantee, scenario: Scenario) -> Certificate:
    applied, epsilon = promise.applied, promise.epsilon_exact
    if promise.noisy is not None:
        epsilon = promise.noisy.left(epsilon)
    limit, certificate = show(epsilon), prove(scenario, {0: (applied,)}, epsilon)
    what = "of the channel" if promise.scale is None else f"at scale {promise.scale!r}"
    if not certificate.holds and certificate.method == "walk":
        levels = (show(100 * r.level) for r in scenario.rules if not isinstance(r, TVBall | None))
        raise CheckFailed(
            f"scale {promise.scale!r} is not reached by the walk with "
            f"{listed(dict.fromkeys(levels))} % confidence at epsilon {limit}"
        )
    if not certificate.holds and certificate.decided:
        where = " for some prior of the region" if scenario.has_region else ""
        loss = rounded_up(certificate.loss, 5)
        raise CheckFailed(f"the loss {what} is {loss}{where}, above epsilon {limit}")
    if not certificate.holds:
        raise CheckFailed(f"the loss {what} could not be proved to be at most epsilon {limit}")
    unknown = [str(k) for k in promise.rows_per_person if k not in certificate.rows]
    if promise.unit is not None and (unknown or not promise.rows_per_person):
        raise CheckFailed(
            f"the plan lets people with {listed(unknown) or 'any number of'} rows pass, of whom "
            "the prior knows nothing"
        )
    return certificate


def scenario_of_counts(promise: Guarantee) -> Scenario:
    """Return the scenario of the noisy counts that a plan holds."""
    if promise.noisy is None:
        raise InputError("the plan holds no noisy counts")
    column = None if promise.coding is None else promise.coding.column
    return scenario_of_noise(promise.noisy, Product((column,), (promise.support,)), promise.pairs)


def scenario_of_table(promise: Guarantee, table: Any) -> Scenario:
    """Return the scenario of a table, read, paired and with the regions as the plan says.

    A table that cannot be opened is an InputError, one that does not fit the plan a CheckFailed.
    """
    from pufferfish.tables.count import count_table  # slow to import
    from pufferfish.tables.source import open_table

    rules = promise.rules
    if rules is None or rules.secret is None:
        raise InputError(
            "the plan was computed from a given prior and does not name the columns of a table; "
            "verify it with that prior (--prior FILE)"
        )
    opened = open_table(table)
    try:
        scenario = Scenario(Prior.from_counted(count_table(opened, rules)), promise.pairs)
    except InputError as error:
        raise CheckFailed(f"the table does not fit the plan: {error}") from None
    return with_regions(promise, scenario)


def scenario_of_priors(promise: Guarantee, paths: Iterable[str | Path]) -> Scenario:
    """Return the scenario of prior files, paired and with the regions as the plan says.

    A file that cannot be read is an InputError, one that does not fit the plan a CheckFailed.
    """
    mine, files = promise.support, tuple(paths)
    order = mine.names if isinstance(mine, Levels) and mine.ordered else None

    def scenario(step: Fraction | None) -> Scenario:
        try:
            priors = [read_prior_file(path, order=order, step=step)[0] for path in files]
            return with_regions(promise, Scenario(priors, promise.pairs))
        except InputError as error:
            for path in files:
                read_prior_file(path)  # one that nobody can read is no failed check
            raise CheckFailed(f"the prior does not fit the plan: {error}") from None

    found = scenario(None)
    if found.digest != promise.digest and isinstance(mine, Lattice):
        rounded = scenario(mine.step)  # one that the values may have been rounded to
        found = rounded if rounded.digest == promise.digest else found
    return found
