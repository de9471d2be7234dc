# SPDX-License-Identifier: Apache-2.0
"""Verify: the loss of what a plan does, proved from scratch, whatever the plan claims.

``Sensitivity`` is what would be proved if the prior, taken as exact, was only estimated.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.errors import CheckFailed, InputError, listed
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.proof import loss_bound, prove
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import checked_flag, rounded_up, show
from pufferfish.plans.guarantee import Guarantee
from pufferfish.priors.ambiguity import Confidence, TVBall
from pufferfish.priors.prior import Prior, read_prior_file
from pufferfish.priors.scenario import Scenario, as_scenario, scenario_of_noise
from pufferfish.support import Lattice, Levels, Product

#: The confidence of ``loss_at_95``.
CONFIDENCE = Confidence(Fraction(19, 20))
#: Work (cells; for a channel, cells times outputs) beyond which it takes more than about a second:
#: the loss, and a radius.
_MOST_FOR_LOSS, _MOST_FOR_RADIUS = 30_000, 1_000
#: A radius is found to this part of itself; below 2**_LEAST it is 0.
_NEAR, _LEAST = 2.0**-20, -40.0


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
    scenario = as_scenario(scenario, promise.pairs).of_column(promise.column)
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
    certificate = _proved(promise, promised)
    if scenario.has_region and scenario.rules != promised.rules:
        certificate = _proved(promise, scenario)  # more is asked for than the plan promises
    return certificate


def with_regions(promise: Guarantee, scenario: Scenario) -> Scenario:
    """Return the scenario with the regions that a plan is to hold for, and no others."""
    rules = promise.regions or (None,)
    alike = len(set(rules)) == 1
    try:
        promised = scenario.with_rules(rules[:1] * len(scenario.priors) if alike else rules)
    except InputError as error:
        raise CheckFailed(f"the plan's region does not fit the prior: {error}") from None
    # Which region is whose is known only by the order of the priors it was made for.
    if not alike and promised.digest != promise.digest:
        raise CheckFailed("the plan's regions differ, and which prior has which is not known")
    return promised


def _check_support(promise: Guarantee, scenario: Scenario, other_prior: bool) -> None:
    """Check that a release codes values as the loss that is recomputed has it."""
    mine, theirs = promise.support, scenario.support
    fits = mine == theirs
    if other_prior:
        if isinstance(mine, Lattice) and isinstance(theirs, Lattice) and promise.channel is None:
            fits = (theirs.step / mine.step).denominator == 1  # on the lattice of the noise
        fits = fits and scenario.reads_alike(0, promise.coding)
    if not fits:
        raise CheckFailed(
            "the support of the plan is not that of the prior: a release would code values in "
            "another way than the one whose loss is recomputed"
        )


def _proved(promise: Guarantee, scenario: Scenario) -> Certificate:
    noisy, epsilon = promise.noisy, promise.epsilon_exact
    limit = epsilon if noisy is None else noisy.left(epsilon)
    certificate = prove(scenario, {0: (promise.applied,)}, limit)
    if not certificate.holds:
        what = "of the channel" if promise.scale is None else f"at scale {promise.scale!r}"
        said = "could not be proved to be at most"
        if certificate.decided and certificate.method != "walk":
            where = " for some prior of the region" if scenario.has_region else ""
            said = f"is {rounded_up(certificate.loss, 5)}{where}, above"
        raise CheckFailed(f"the loss {what} {said} epsilon {show(limit)}")
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
    product = Product((promise.column,), (promise.support,))
    return scenario_of_noise(promise.noisy, product, promise.pairs)


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
        priors = [read_prior_file(path, order=order, step=step)[0] for path in files]
        return with_regions(promise, Scenario(priors, promise.pairs))

    for path in files:
        read_prior_file(path)
    try:
        found = scenario(None)
        if found.digest != promise.digest and isinstance(mine, Lattice):
            rounded = scenario(mine.step)  # one that the values may have been rounded to
            found = rounded if rounded.digest == promise.digest else found
    except InputError as error:
        raise CheckFailed(f"the prior does not fit the plan: {error}") from None
    return found


@dataclass(frozen=True)
class Sensitivity:
    """How a plan's loss depends on the prior being right."""

    #: The largest loss over the intervals that hold together with 95 % confidence, rounded up; inf
    #: where they leave a level open that shows a secret; None where nobody counted rows.
    loss_at_95: float | None
    #: The largest total variation by which the prior may be wrong with a loss of at most epsilon,
    #: rounded down, proved; None where the support is too large.
    radius: float | None
    #: The same for a loss of at most twice epsilon.
    radius_at_double: float | None


def sensitivity_of(scenario: Scenario, mechanism: Mechanism, epsilon: Fraction) -> Sensitivity:
    """Return how the loss of a mechanism depends on the prior being right (theory, section 5).

    Only the priors count, not their regions. Of a prior that knows the rows of people, or of
    several columns, nothing is known.
    """
    if scenario.row_numbers or len(scenario.product.axes) > 1:
        return Sensitivity(None, None, None)
    work = len(scenario.priors) * len(scenario.protected) * scenario.product.size
    work *= mechanism.outputs.size if isinstance(mechanism, Channel) else 1
    loss_at_95 = None
    if all(prior.from_rows for prior in scenario.priors) and work <= _MOST_FOR_LOSS:
        sampled = scenario.with_rules([CONFIDENCE] * len(scenario.priors))
        loss_at_95 = loss_bound(sampled, {0: (mechanism,)}).value
    if work > _MOST_FOR_RADIUS:
        return Sensitivity(loss_at_95, None, None)
    radii = [robustness_radius(scenario, mechanism, limit) for limit in (epsilon, 2 * epsilon)]
    return Sensitivity(loss_at_95, radii[0], max(radii))


def robustness_radius(scenario: Scenario, mechanism: Mechanism, limit: Fraction) -> float:
    """Return the largest total variation for which a loss within a limit is proved.

    The loss never falls with the radius, for the balls are nested.
    """

    def holds(radius: float) -> bool:
        within = scenario.with_rules([TVBall(Fraction(radius))] * len(scenario.priors))
        return prove(within, {0: (mechanism,)}, limit).holds

    if holds(1.0):
        return 1.0
    low, high = _LEAST, 0.0  # powers of two
    while high - low > _NEAR:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(math.exp2(middle)) else (low, middle)
    return math.exp2(low) * (low > _LEAST)
