# SPDX-License-Identifier: Apache-2.0
"""Plan: a calibrated mechanism and all that ``release`` and ``verify`` need of it."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Unpack

from pufferfish.errors import InputError, html_table, listed_pairs
from pufferfish.files import PRIVATE, PUBLIC, parse_strict, read_strict, write_json
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, float_up, parse_number, rounded_up, show
from pufferfish.plans import schema
from pufferfish.plans.distortion import OBJECTIVES, Distortion
from pufferfish.plans.sensitivity import Sensitivity, sensitivity_of
from pufferfish.plans.verify import Guarantee, own_column, verify, with_regions
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.release.spec import ReleaseOptions, ReleaseSpec
from pufferfish.support import Lattice
from pufferfish.tables.rules import Coding, make_rules


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
    weights: tuple[float, ...] = ()
    distortion: Distortion | None = None
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
    def mse(self) -> float | None:
        """Mean squared error of a released value; None for levels without an order."""
        if isinstance(self.applied, DiscreteLaplace):
            return self.applied.mse
        return None if self.distortion is None else self.distortion.mse

    @property
    def cost(self) -> float | None:
        """Expected cost of a channel, or its objective, rounded up; None for noise."""
        return None if self.distortion is None else self.distortion.cost

    @property
    def objective(self) -> float | None:
        """The objective of a channel that is best for estimates, rounded up; else None."""
        return self.cost if self.distortion and self.distortion.cost_name in OBJECTIVES else None

    @property
    def objective_bound(self) -> float | None:
        """What the objective of no private channel goes below, where that is proved."""
        return None if self.objective is None or not self.distortion else self.distortion.bound

    @property
    def keep_rate(self) -> float | None:
        """The chance that a channel publishes (labels) a value as itself; None for noise."""
        return None if self.distortion is None else self.distortion.keep_rate

    @property
    def loss(self) -> float:
        """The privacy loss of the certificate: an upper bound; inf where it claims none.

        That of noisy counts is included.
        """
        loss = self.certificate.loss
        if self.noisy is None or math.isinf(loss):
            return loss
        return min(float_up(self.noisy.total(Fraction(loss))), self.epsilon)

    @property
    def unchanged(self) -> bool:
        """Whether a release publishes the column as it is."""
        if self.label_channel is not None:
            # Rows of values that never occur are not looked at where the plan knows them; a claim,
            # by which only sentences are chosen: a release looks at the rows itself.
            return self.label_channel.unchanged or self.keep_rate == 1
        return self.scale == 0

    def __repr__(self) -> str:
        # The double nearest to epsilon stands for epsilon itself.
        loss = show(self.epsilon_exact) if self.loss == self.epsilon else rounded_up(self.loss)
        what = f"noise of scale {self.scale!r}"
        if self.channel is not None:
            what = f"a channel that keeps {100 * (self.keep_rate or 0):.4g} % of the values"
        column = "" if self.coding is None else f" on {self.coding.column!r}"
        state = "proved" if self.certificate.holds else "not proved"
        if self.loaded:
            state += ", says its file"
        return (
            f"<Plan: {self.mechanism} at epsilon {show(self.epsilon_exact)}: {what}{column}\n"
            f"  loss at most {loss} ({state})\n"
            f"  pairs {listed_pairs(self.pairs)}>"
        )

    def _repr_html_(self) -> str:
        proved = "proved" if self.certificate.holds else "not proved"
        size: list[object] = ["scale of the noise", self.scale]
        if self.channel is not None:
            size = ["values kept", f"{100 * (self.keep_rate or 0):.4g} %"]
        rows: list[list[object]] = [
            ["mechanism", self.mechanism], ["epsilon", show(self.epsilon_exact)], size,
            ["loss at most", f"{self.loss:.6g} ({proved})"],
            ["column", self.coding and self.coding.column], ["pairs", listed_pairs(self.pairs)],
        ]  # fmt: skip
        return html_table("Plan", ["", "this plan"], rows)

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

    def with_columns(
        self, public: str, secret: str | None = None, missing: Iterable[str] = (),
        step: Number | None = None, missing_as_level: bool = False,
        decimal: Literal[".", ","] = ".",
    ) -> "Plan":  # fmt: skip
        """Return a plan from a given prior that knows the columns of the tables to release.

        Parameters
        ----------
        public : str
            The column to release.
        secret : str, optional
            The column of the secret: rows whose secret is in no pair are then counted.
        missing : iterable of str
            Texts that mean "missing", beside the empty cell; none is a value of the support.
        step : number, optional
            The step that the prior was made with, if it was: values are then rounded to it. It
            must be the step of the support; without it values are taken as they are.
        missing_as_level : bool
            Rows without a public value are the level ``(missing)`` of the prior.
        decimal : "." or ","
            The decimal mark of the cells.
        """
        if self.coding is not None:
            raise InputError(
                f"the plan names its columns already: it releases {self.coding.column!r}"
            )
        rules = make_rules(secret=secret, public=public, missing=missing, decimal=decimal)
        own = self.support.step if isinstance(self.support, Lattice) else None
        if step is not None and own is not None and parse_number(step, "--step (step=...)") != own:
            raise InputError(
                f"--step must be {show(own)}, the step of the plan, but {step} was given"
            )
        column = rules.columns[0]
        coding = Coding(
            column.name, self.support, column.missing, step is not None, rules.decimal,
            missing_as_level,
        )  # fmt: skip
        return replace(self, coding=coding, secret=rules.secret, secret_missing=rules.missing)

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
        return with_regions(self, own_column(self, scenario)).digest == self.digest

    def with_sensitivity(self, scenario: Scenario | Prior) -> "Plan":
        """Return the same plan, with what errors of the prior would do to its loss.

        ``scenario`` is the one that the plan was computed from.
        """
        own = own_column(self, as_scenario(scenario))
        if self.noisy is not None:
            raise InputError("what errors of the prior do to a plan that is public is private")
        return replace(self, sensitivity=sensitivity_of(own, self.applied, self.epsilon_exact))

    def spec(self, **options: Unpack[ReleaseOptions]) -> ReleaseSpec:
        """Return what releasing and estimating need of this plan; options as in :meth:`release`."""
        protected = tuple(dict.fromkeys(secret for pair in self.pairs for secret in pair))
        return ReleaseSpec(
            self.coding, self.support, self.applied, self.labels, self.weights,
            secret=self.secret, unit=self.unit, rows_per_person=self.rows_per_person,
            unit_missing=self.secret_missing,
            # How many rows have a protected secret is not told where all else is public.
            protected=None if self.noisy else protected,
            **options,  # type: ignore[arg-type]  # numbers become exact there
        )  # fmt: skip

    def release(
        self, values: Any, *, output: str | Path | None = None, keep: Sequence[str] = (),
        seed: int | None = None, force: bool = False, sets: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Any:  # fmt: skip
        """Release values: an array for an array, a dataframe for a dataframe, a file for a file.

        An array and a series keep their length. A dataframe loses the rows without a public value
        and every column that is not kept. What comes from pandas comes back with a fresh index
        (0, 1, 2, ...), for the old one may tell as much as a column does.

        Where a channel publishes sets of values, the column holds labels, and a table has a further
        column ``NAME (set)``: estimates come from it.

        Parameters
        ----------
        values : array-like, shape (n,), dataframe or path
            The column, or a table that holds it (for a plan from a table, or one that was told its
            columns by :meth:`with_columns`).
        output : path, optional
            The file to write; a path needs one, and so does a PySpark or Dask dataframe, whose
            workers write parts into a folder of this name, which ends in .parquet.
        keep : sequence of str
            Columns of a dataframe to keep beside the released one; not protected.
        seed : int, optional
            For tests only; the noise is then not private, and a SeededWarning says so.
        force : bool
            Whether an existing output may be replaced.
        sets : bool
            Of an array return (labels, sets), not the labels alone.
        out_of_support : "refuse" or "clamp"
            What happens to a value outside the support. The guarantee does not cover a clamped
            one, and a warning counts them.
        bounds : (number, number), optional
            Clamp what is released, after the noise.
        round : bool
            Round what is released (the sum, or a number that a channel gives) to integers.
        allow_unchanged : bool
            Publish the column unchanged where the plan says so.
        min_scale : number, optional
            Add at least this much noise; not for a channel.
        labels_only : bool
            Leave out the sets. Estimates from labels alone have larger errors, or there are none.

        Returns
        -------
        array, dataframe or ReleaseReport
            The like of ``values``; for a file the report on what was written.
        """
        from pufferfish.release.pipeline import release_any, release_file  # slow to import

        spec = self.spec(**options)
        if output is None:
            return release_any(values, spec, keep, seed=seed, sets=sets)
        return release_file(values, output, spec, keep, seed=seed, force=force)

    def estimate(
        self, released: Any, *, column: str | None = None,
        quantiles: Sequence[Number] = ("0.25", "0.5", "0.75"),
        bins: int | Sequence[Any] | None = None, simplex: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Any:  # fmt: skip
        """Return unbiased estimates of the original column, from a release and noisy counts of it.

        Parameters
        ----------
        released : array-like, dataframe, or path
            What was released: a table, or an array. Where sets are published, estimates come from
            these (the column ``NAME (set)``), or with ``labels_only`` from the labels.
        column : str, optional
            The released column of a table; by default the plan's.
        quantiles : sequence of numbers
            Between 0 and 1, of numbers and of the codes of ordered levels.
        bins : int or sequence, optional
            So many bins of equal width, or their edges: a value on an edge lies in the bin above.
            By default there are bins only where most frequencies are below their standard errors.
        simplex : bool
            Move the frequencies to the nearest ones that are not negative, which biases them.
        bounds, round, min_scale, labels_only
            As they were given to :meth:`release`.

        Returns
        -------
        Estimate
            Mean, variance, quantiles and frequencies, each with its standard error.
        """
        from pufferfish.estimate.released import estimate_released  # slow to import

        return estimate_released(
            released, self.spec(**options), self.noisy, column=column, quantiles=quantiles,
            bins=bins, simplex=simplex,
        )  # fmt: skip
