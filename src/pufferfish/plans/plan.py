# SPDX-License-Identifier: Apache-2.0
"""Plan: a guarantee and its proof, from a calibration or a file; ``verify`` proves it again."""

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, html_table, listed_pairs
from pufferfish.files import PRIVATE, PUBLIC, parse_strict, read_strict, write_json
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.numbers import float_up, rounded_up, show
from pufferfish.plans import schema
from pufferfish.plans.guarantee import Guarantee
from pufferfish.plans.verify import Sensitivity, sensitivity_of, verify, with_regions
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Plan(Guarantee):
    """A calibrated mechanism, ready to release.

    Made by :func:`pufferfish.calibrate` or :meth:`load`.

    Attributes
    ----------
    mechanism : str
        Name of the calibration method.
    applied : DiscreteLaplace or Channel
        What happens to every value: noise of some scale, or a channel.
    labels : Channel or None
        For a channel that publishes sets of values: how a value, the label, is drawn from a set.
    weights : tuple of float
        How frequent the values were taken to be for a channel: estimates are best for these.
    epsilon_exact : Fraction
    support : Lattice or Levels
        Where the public value can lie; step, order and levels are said here and nowhere else.
    coding : Coding or None
        Name and cleaning of the public column, where they are known.
    secret, exclude_secrets, secret_missing
        The column of the secret, its levels that are left out, and its texts for "missing".
    unit, rows_per_person
        The column whose equal values mark the rows of one person, and how many one may have.
    pairs : tuple of (str, str)
        The protected pairs.
    regions : tuple of (Confidence, TVBall, NoisyCounts or None)
        How far each adversary's prior may be from the one given; empty where all are exact.
    digest : str
        SHA-256 of the scenario; as private as the counts.
    certificate : Certificate
        The proof that the loss is at most epsilon; in a loaded plan (``loaded``) only a claim of
        the file, which :meth:`verify` proves again.
    from_rows : bool
        Whether a prior was counted from rows of a table, every one of which the plan depends on.
    distortion : Distortion or None
        For a channel: what it costs.
    sensitivity : Sensitivity or None
        What errors of the prior would do, where :meth:`with_sensitivity` found it out.
    composition : LossBound or None
        Earlier releases this plan composes with; epsilon bounds their joint loss.
    notes : tuple of str
        What the user should know of how prior and mechanism came about.
    """

    mechanism: str
    certificate: Certificate
    from_rows: bool
    sensitivity: Sensitivity | None = None
    composition: LossBound | None = None
    notes: tuple[str, ...] = ()
    loaded: bool = False

    @classmethod
    def of(
        cls, scenario: Scenario, mechanism: str, applied: Mechanism, epsilon: Fraction,
        certificate: Certificate, **claims: Any,
    ) -> "Plan":  # fmt: skip
        """Return the plan of a mechanism that was calibrated for a scenario of one column.

        ``claims`` are distortion, sensitivity, composition, and notes on the mechanism.
        """
        rules, coding = scenario.common_reading()
        if rules is not None:
            claims |= {
                "coding": coding, "secret": rules.secret, "exclude_secrets": rules.exclude_secrets,
                "secret_missing": rules.missing,
            }  # fmt: skip
        notes = dict.fromkeys(note for prior in scenario.priors for note in prior.notes)
        claims["notes"] = (*notes, *claims.get("notes", ()))
        noisy = scenario.noisy
        if noisy is not None:
            epsilon, certificate = noisy.total(epsilon), replace(certificate, witness=None)
        return cls(
            mechanism=mechanism, applied=applied, epsilon_exact=epsilon, certificate=certificate,
            support=scenario.support, unit=scenario.unit, pairs=scenario.pairs,
            rows_per_person=certificate.rows if scenario.unit else (),
            regions=scenario.rules if scenario.has_region else (),
            # Whoever has noisy counts has the scenario.
            digest="" if noisy else scenario.digest,
            from_rows=noisy is None and any(prior.from_rows for prior in scenario.priors),
            **claims,
        )  # fmt: skip

    @property
    def loss(self) -> float:
        """The privacy loss of the certificate: an upper bound; inf where it claims none.

        That of noisy counts is included.
        """
        loss = self.certificate.loss
        if self.noisy is None or math.isinf(loss):
            return loss
        return min(float_up(self.noisy.total(Fraction(loss))), self.epsilon)

    def __repr__(self) -> str:
        return "<Plan: " + "\n  ".join(map(" ".join, self._facts())) + ">"

    def _repr_html_(self) -> str:
        return html_table("Plan", ["", "this plan"], self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return what is shown of a plan, by name."""
        # The double nearest to epsilon stands for epsilon itself.
        loss = show(self.epsilon_exact) if self.loss == self.epsilon else rounded_up(self.loss)
        size = "noise of scale", repr(self.scale)
        if self.channel is not None:
            size = "channel that keeps", f"{100 * (self.keep_rate or 0):.4g} % of the values"
        proved = "proved" if self.certificate.holds else "not proved"
        facts = [
            ("mechanism", self.mechanism), ("epsilon", show(self.epsilon_exact)), size,
            ("loss at most", f"{loss} ({proved}{', says its file' if self.loaded else ''})"),
            ("column", "" if self.column is None else repr(self.column)),
            ("pairs", listed_pairs(self.pairs)),
        ]  # fmt: skip
        return [(name, value) for name, value in facts if value]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plan as JSON, readable by its owner only (mode 0600).

        A plan from noisy counts is public, and readable by everybody (mode 0644). An existing file
        is replaced with ``force`` only.
        """
        mode = PRIVATE if self.noisy is None else PUBLIC
        write_json(path, schema.values(self), force=force, mode=mode)

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan that :meth:`save` wrote."""
        return cls.of_values(read_strict(path, "the plan"), path)

    @classmethod
    def of_values(cls, data: Any, path: str | Path) -> "Plan":
        """Return the plan that JSON values stand for, which were read from a file."""
        try:
            return cls(loaded=True, **schema.facts_of(data))
        except InputError as error:
            raise InputError(f"{path} is no usable plan: {error}") from None

    def to_json(self) -> str:
        """Return the text of the plan's file."""
        return json.dumps(schema.values(self), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Return the plan of such a text."""
        try:
            return cls(loaded=True, **schema.facts_of(parse_strict(text)))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"not the text of a plan: {error}") from None

    def verify(
        self, scenario: Scenario | Prior | None = None, *, other_prior: bool = False
    ) -> Certificate:
        """Recompute the loss of the plan's mechanism from scratch, and return the certificate.

        The loss and the certificate of the plan are ignored; whether there is a better mechanism is
        not checked. A plan that is to hold for a region of priors is judged for all of them.

        Parameters
        ----------
        scenario : Scenario or Prior, optional
            The scenario that the plan is for; a Prior is taken with the plan's pairs. A plan from
            noisy counts holds them, and needs none.
        other_prior : bool
            Accept a scenario that is not the one the plan was computed from, and judge the plan
            under it.

        Raises
        ------
        CheckFailed
            If the loss exceeds epsilon, or the scenario is another one than the plan's.
        """
        return verify(self, scenario, other_prior)

    def is_for(self, scenario: Scenario) -> bool:
        """Return whether this plan was computed from a scenario, with the plan's own regions."""
        return with_regions(self, scenario.of_column(self.column)).digest == self.digest

    def with_sensitivity(self, scenario: Scenario | Prior) -> "Plan":
        """Return the same plan, with what errors of the prior would do to its loss.

        ``scenario`` is the one that the plan was computed from.
        """
        own = as_scenario(scenario).of_column(self.column)
        if self.noisy is not None:
            raise InputError("what errors of the prior do to a plan that is public is private")
        return replace(self, sensitivity=sensitivity_of(own, self.applied, self.epsilon_exact))
