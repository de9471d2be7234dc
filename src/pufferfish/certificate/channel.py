# SPDX-License-Identifier: Apache-2.0
"""The loss of a channel, from its integers and the exact priors: rationals throughout.

Secret s puts out y with probability sum_x M(y|x) P_s(x). With P_s(x) = c_s(x) / N_s and
M(y|x) = r(x, y) / D_x that is a whole number over N_s L, where L is the least common multiple of
the D_x. So the outputs have an exact prior of their own, and the loss of the channel is the loss of
publishing *them* without noise. The largest ratio R of two secrets is found among whole numbers.
A ball is needed only for e^epsilon, which no rational R equals (Lindemann): more bits decide every
comparison, also of a channel that uses its budget to the last digit.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat

from pufferfish.certificate.record import Certificate, Finding, Witness
from pufferfish.certificate.statement import no_row_statement, statement_of
from pufferfish.certificate.unchanged import unchanged_finding
from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.rationals import show
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Support

#: Bits of the first try; each further one doubles them.
_BITS = 128
#: Tries without an epsilon, where only the digits of the loss are wanted.
_TRIES = 6


@runtime_checkable
class IntegerRows(Protocol):
    """What a certificate needs to know of a channel."""

    @property
    def inputs(self) -> Support:
        """The values that have a row."""

    @property
    def outputs(self) -> Support:
        """What may be published."""

    @property
    def rows(self) -> npt.NDArray[np.object_]:
        """Python integers, shape (n_x, n_y)."""

    @property
    def denominators(self) -> Sequence[int]:
        """The sum of each row."""


def certify_channel(
    scenario: Scenario, channel: IntegerRows, epsilon: Fraction | None
) -> Certificate:
    """Recompute the privacy loss of a channel exactly, and compare it with epsilon.

    Source: theory, sections 4 and 8.

    Parameters
    ----------
    scenario : Scenario
        The priors (exact) and pairs. A region of a prior is not looked at.
    channel : Channel
        Its integers are what is looked at, and checked to be a channel.
    epsilon : Fraction or None
        What to compare the loss with; None only bounds it.

    Returns
    -------
    Certificate
        Of the method ``exact``; ``holds`` if and only if loss <= epsilon. Of the method ``none``
        where the channel has no row for a value that a protected secret can take.

    Raises
    ------
    InputError
        If epsilon is not above 0, the rows are no integers or do not sum to their denominators,
        or the channel is for numbers and the scenario for levels (or the other way round).
    """
    if epsilon is not None and epsilon <= 0:
        raise InputError(f"epsilon must be above 0, but {show(epsilon)} was given")
    check_rows(channel)
    places = _row_of_atoms(scenario, channel)
    missing = _without_row(scenario, places)
    if missing is not None:
        return Certificate.of_nothing(epsilon, no_row_statement(scenario.support.name(missing)))
    published = output_scenario(scenario, channel, places)
    finding, bits = _decided(published, epsilon)
    holds = epsilon is not None and not finding.refuted
    loss = finding.upper
    if epsilon is not None and holds:
        loss = min(loss, float(epsilon))
    witness = None
    if finding.case is not None and finding.atom is not None:
        rho, pair = finding.case
        witness = Witness(channel.outputs.name(finding.atom), pair, rho)
    bare = Certificate(
        method="exact",
        loss=loss,
        loss_at_least=finding.lower,
        epsilon=None if epsilon is None else show(epsilon),
        holds=holds,
        decided=epsilon is not None,
        witness=witness,
        precision=bits,
        error_bound=None,
        statement="",
    )
    return replace(bare, statement=statement_of(bare, len(scenario.priors)))


def output_scenario(
    scenario: Scenario, channel: IntegerRows, places: npt.NDArray[np.int64]
) -> Scenario:
    """Return what the adversaries believe of the outputs, exactly.

    Parameters
    ----------
    scenario : Scenario
        The priors of the values.
    channel : Channel
        The channel that they go through.
    places : int64 array, shape (n,)
        The row of each atom of the scenario; -1 for none, where no protected secret has mass.

    Returns
    -------
    Scenario
        On the outputs, with the same pairs, and the protected secrets only.
    """
    secrets = scenario.protected
    priors = []
    for prior in scenario.priors:
        at = [prior.row(secret) for secret in secrets]
        counts = prior.counts[at].astype(object)
        used = np.flatnonzero(counts.any(axis=0))
        rows = places[used]
        denominators = [channel.denominators[x] for x in rows.tolist()]
        common = math.lcm(*denominators)
        factors = np.array([common // d for d in denominators], dtype=object)
        product = fmpz_mat((counts[:, used] * factors).tolist()) * fmpz_mat(
            channel.rows[rows].tolist()
        )
        masses = np.array([[int(v) for v in row] for row in product.tolist()], dtype=object)
        totals = tuple(prior.totals[row] * common for row in at)
        priors.append(Prior(channel.outputs, secrets, masses, totals))
    return Scenario(priors, scenario.pairs)


def _decided(published: Scenario, epsilon: Fraction | None) -> tuple[Finding, int]:
    """Return a finding that tells whether the loss is at most epsilon, and the bits it took."""
    bits, tries = _BITS, 1
    finding = unchanged_finding(published, epsilon, bits)
    while not _enough(finding, epsilon) and (epsilon is not None or tries < _TRIES):
        bits, tries = 2 * bits, tries + 1
        finding = unchanged_finding(published, epsilon, bits)
    return finding, bits


def _enough(finding: Finding, epsilon: Fraction | None) -> bool:
    if epsilon is not None:
        return finding.refuted or not finding.undecided
    tight = finding.upper - finding.lower <= 1e-15 * finding.upper
    return tight or math.isinf(finding.lower)


def check_rows(channel: IntegerRows) -> None:
    """Check that integers are a channel, whatever made them.

    Raises
    ------
    InputError
        If shapes disagree, or a row holds anything but whole numbers that sum to its denominator.
    """
    shape = channel.inputs.size, channel.outputs.size
    if channel.rows.shape != shape or len(channel.denominators) != shape[0]:
        raise InputError(f"a channel of shape {shape} has rows of shape {channel.rows.shape}")
    rows = zip(channel.rows.tolist(), channel.denominators, strict=True)
    for x, (row, denominator) in enumerate(rows):
        whole = {type(value) for value in (*row, denominator)} == {int}
        if not whole or min(row) < 0 or denominator <= 0 or sum(row) != denominator:
            raise InputError(
                f"row {x + 1} of the channel must be whole numbers, none negative, that sum to "
                "its denominator"
            )


def _row_of_atoms(scenario: Scenario, channel: IntegerRows) -> npt.NDArray[np.int64]:
    """Return the row of each atom of the scenario, or -1, shape (n,)."""
    support, inputs = scenario.support, channel.inputs
    if support.same_as(inputs):
        return np.arange(support.size, dtype=np.int64)
    if isinstance(support, Lattice) != isinstance(inputs, Lattice):
        raise InputError("the channel and the scenario must both be for numbers, or for levels")
    rows = {name: x for x, name in enumerate(_keys(inputs))}
    return np.array([rows.get(name, -1) for name in _keys(support)], dtype=np.int64)


def _keys(support: Support) -> Sequence[Any]:
    return support.values if isinstance(support, Lattice) else support.names


def _without_row(scenario: Scenario, places: npt.NDArray[np.int64]) -> int | None:
    """Return an atom that a protected secret can take but the channel does not know."""
    for prior in scenario.priors:
        at = [prior.row(secret) for secret in scenario.protected]
        lost = np.flatnonzero((places < 0) & (prior.counts[at] != 0).any(axis=0))
        if len(lost):
            return int(lost[0])
    return None
