# SPDX-License-Identifier: Apache-2.0
"""Plan: a calibrated mechanism and all that ``release`` and ``verify`` need of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferfish.assumptions import assumption
from pufferfish.beside import Beside
from pufferfish.certificate import Certificate
from pufferfish.columns import common_rules, rules_for
from pufferfish.distortion import Distortion
from pufferfish.errors import InputError
from pufferfish.jsonfile import read_strict, write_private
from pufferfish.judge import is_for, judge
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.planfile import plan_entries, plan_to_dict
from pufferfish.prior import Prior
from pufferfish.rationals import show
from pufferfish.regions import Region, has_region
from pufferfish.robust.sensitivity import Sensitivity, sensitivity_of
from pufferfish.scenario import Pair, Scenario
from pufferfish.support import Support
from pufferfish.tables.rules import Rules
from pufferfish.unitcounts import UnitsClaim

if TYPE_CHECKING:
    from pufferfish.estimate import Estimate
    from pufferfish.release import ReleaseSpec


@dataclass(frozen=True, eq=False)
class Plan:
    """A calibrated mechanism, ready to release.

    Made by :func:`pufferfish.calibrate` or :meth:`load`.

    Attributes
    ----------
    mechanism : str
        Name of the calibration method.
    applied : DiscreteLaplace or Channel
        What happens to every value: noise of some scale, or a channel.
    epsilon_exact : Fraction
        epsilon, exactly.
    certificate : Certificate
        The proof that the loss is at most epsilon. In a loaded plan it is what the file claims, or
        one that does not hold where the file claims nothing; :meth:`verify` proves it again.
    support : Lattice or Levels
        Where the public value can lie.
    rules : Rules or None
        Column names and cleaning, for a plan from a table or after :meth:`with_columns`.
    secrets : tuple of str
        All secrets of the prior.
    pairs : tuple of (str, str)
        The protected pairs.
    digest : str
        SHA-256 of the scenario; as private as the counts.
    from_rows : bool
        Whether a prior was computed from numbers of rows, so that the plan depends on every row.
    notes : tuple of str
        What the user should know of how prior and mechanism came about.
    distortion : Distortion or None
        For a channel: what it costs.
    regions : tuple of (Confidence, TVBall or None)
        How far each adversary's prior may be from the one given, in the order of
        :attr:`pufferfish.Scenario.regions`; empty where all are exact.
    sensitivity : Sensitivity or None
        What errors of the prior would do, where :meth:`with_sensitivity` found it out.
    beside : Beside or None
        What was out when this was calibrated to fit beside it; epsilon is that of all together.
    units : UnitsClaim or None
        How many rows one person may have, and what all of them together cost, where the rules
        name a unit.
    loaded : bool
        Whether it was read from a file, so that its certificate is only a claim.
    """

    mechanism: str
    applied: Mechanism
    epsilon_exact: Fraction
    certificate: Certificate
    support: Support
    rules: Rules | None
    secrets: tuple[str, ...]
    pairs: tuple[Pair, ...]
    digest: str
    from_rows: bool
    notes: tuple[str, ...] = ()
    distortion: Distortion | None = None
    regions: tuple[Region | None, ...] = ()
    sensitivity: Sensitivity | None = None
    beside: Beside | None = None
    units: UnitsClaim | None = None
    loaded: bool = False

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        mechanism: str,
        applied: Mechanism,
        epsilon: Fraction,
        certificate: Certificate,
        notes: tuple[str, ...] = (),
        distortion: Distortion | None = None,
    ) -> Plan:
        """Return the plan of a mechanism that was calibrated for a scenario.

        Raises
        ------
        InputError
            If the priors came from tables that were cleaned in different ways.
        """
        return cls(
            mechanism=mechanism,
            applied=applied,
            epsilon_exact=epsilon,
            certificate=certificate,
            support=scenario.support,
            rules=common_rules(scenario.priors),
            secrets=scenario.priors[0].secrets,
            pairs=scenario.pairs,
            digest=scenario.digest,
            from_rows=any(prior.from_rows for prior in scenario.priors),
            notes=tuple(dict.fromkeys(n for p in scenario.priors for n in p.notes)) + notes,
            distortion=distortion,
            regions=scenario.regions if has_region(scenario) else (),
        )

    @property
    def noise(self) -> DiscreteLaplace | None:
        """The noise that is added; None for a channel."""
        return self.applied if isinstance(self.applied, DiscreteLaplace) else None

    @property
    def channel(self) -> Channel | None:
        """The channel that values go through; None for noise."""
        return self.applied if isinstance(self.applied, Channel) else None

    @property
    def scale(self) -> float | None:
        """theta, in the units of the data; None for a channel."""
        return None if self.noise is None else self.noise.scale

    @property
    def mse(self) -> float | None:
        """Mean squared error of a released value; None for levels without an order."""
        if self.noise is not None:
            return self.noise.mse
        return None if self.distortion is None else self.distortion.mse

    @property
    def std(self) -> float | None:
        """Standard deviation of the released noise; None for a channel."""
        return None if self.noise is None else self.noise.std

    @property
    def cost(self) -> float | None:
        """Expected cost of a channel, rounded up; None for noise."""
        return None if self.distortion is None else self.distortion.cost

    @property
    def keep_rate(self) -> float | None:
        """The chance that a channel publishes a value unchanged; None for noise."""
        return None if self.distortion is None else self.distortion.keep_rate

    @property
    def robust(self) -> bool:
        """Whether the plan holds for a whole region of priors."""
        return bool(self.regions)

    @property
    def loss(self) -> float:
        """The privacy loss of the certificate: an upper bound; inf where it claims none."""
        return float(self.certificate.loss)

    @property
    def epsilon(self) -> float:
        """Epsilon as a float; ``epsilon_exact`` is the number itself."""
        return float(self.epsilon_exact)

    @property
    def unchanged(self) -> bool:
        """Whether a release publishes the column as it is."""
        if isinstance(self.applied, Channel):
            # Rows of values that never occur are not looked at where the plan knows them.
            return self.applied.unchanged or self.keep_rate == 1
        return self.applied.scale == 0

    @property
    def assumption(self) -> str:
        """What the guarantee assumes, and how private the plan itself is."""
        return assumption(self.from_rows, None if self.rules is None else self.rules.unit)

    @property
    def protected(self) -> tuple[str, ...]:
        """The secrets that occur in the pairs."""
        named = {secret for pair in self.pairs for secret in pair}
        return tuple(s for s in self.secrets if s in named)

    def __repr__(self) -> str:
        size = f"cost={self.cost!r}" if self.noise is None else f"scale={self.scale!r}"
        return (
            f"Plan(mechanism={self.mechanism!r}, epsilon={show(self.epsilon_exact)}, "
            f"{size}, loss={self.loss!r}, pairs={self.pairs!r})"
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plan as JSON, readable by its owner only (mode 0600).

        Parameters
        ----------
        path : str or Path
            Where to.
        force : bool
            Whether an existing file may be replaced.

        Raises
        ------
        InputError
            If the file exists and ``force`` is not set, or it cannot be written.
        """
        write_private(self.to_dict(), Path(path), force)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that :meth:`save` wrote.

        Raises
        ------
        InputError
            If the file is no plan, or one of a newer version.
        """
        data = read_strict(Path(path), "the plan")
        try:
            return cls.from_dict(data)
        except InputError as error:
            raise InputError(f"{path} is no usable plan: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values, the scale under the key ``scale`` and nowhere else."""
        return plan_to_dict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Plan:
        """Read back what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            Names the first key that is missing or not of the right kind.
        """
        return cls(**plan_entries(data))

    def with_columns(
        self,
        public: str,
        secret: str | None = None,
        missing: Iterable[str] = (),
        step: object = None,
        missing_as_level: bool = False,
    ) -> Plan:
        """Return a plan from a given prior that knows the columns of the tables to release.

        Parameters
        ----------
        public : str
            The column to release.
        secret : str, optional
            The column of the secret: rows whose secret is in no pair are then counted.
        missing : iterable of str
            Texts that mean "missing", beside the empty cell.
        step : number, optional
            The step that the prior was made with, if it was: values are then rounded to it. It
            must be the step of the support; without it values are taken as they are.
        missing_as_level : bool
            Rows without a public value are the level ``(missing)`` of the prior.

        Raises
        ------
        InputError
            If the plan names its columns already, or an option does not fit its support.
        """
        if self.rules is not None:
            raise InputError(
                f"the plan names its columns already: it releases {self.rules.public!r}"
            )
        rules = rules_for(
            self.support,
            public=public,
            secret=secret,
            missing=missing,
            step=step,
            missing_as_level=missing_as_level,
        )
        return replace(self, rules=rules)

    def scenario_of(self, priors: Prior | Sequence[Prior]) -> Scenario:
        """Return the scenario of other priors with this plan's pairs."""
        return Scenario(priors, self.pairs)

    def verify(self, scenario: Scenario | Prior, *, other_prior: bool = False) -> Certificate:
        """Recompute the loss of the plan's mechanism from scratch, and return the certificate.

        The loss and the certificate of the plan are ignored; whether there is a better mechanism is
        not checked. A plan that is to hold for a region of priors is judged for all of them.

        Parameters
        ----------
        scenario : Scenario or Prior
            The scenario that the plan is for; a Prior is taken with the plan's pairs.
        other_prior : bool
            Accept a scenario that is not the one the plan was computed from, and judge the plan
            under it.

        Raises
        ------
        CheckFailed
            If the loss exceeds epsilon, or the scenario is another one than the plan's.
        InputError
            If it is no scenario.
        """
        if isinstance(scenario, Prior):
            scenario = self.scenario_of(scenario)
        if not isinstance(scenario, Scenario):
            raise InputError(
                f"verify needs a Scenario or a Prior, but a {type(scenario).__name__} was given"
            )
        return judge(self, scenario, other_prior)

    def is_for(self, scenario: Scenario) -> bool:
        """Whether this plan was computed from that scenario (regions of its priors aside).

        For a plan that holds with a confidence, the numbers of rows have to be the same too.
        """
        return is_for(self, scenario)

    def with_sensitivity(self, scenario: Scenario) -> Plan:
        """Return the same plan, with what errors of the prior would do to its loss.

        Parameters
        ----------
        scenario : Scenario
            The one that the plan was calibrated for.

        Notes
        -----
        A plan for the rows of one person is returned as it is: what errors of their joint prior
        would do is not known.
        """
        if self.units is not None:
            return self
        found = sensitivity_of(scenario, self.applied, self.epsilon_exact)
        return replace(self, sensitivity=found)

    def release(
        self,
        values: Any,
        *,
        out_of_support: str = "refuse",
        bounds: tuple[object, object] | None = None,
        round: bool = False,  # the option's name on the command line
        keep: Sequence[str] = (),
        allow_unchanged: bool = False,
        min_scale: object = None,
        seed: int | None = None,
    ) -> Any:
        """Release values: an array for an array, a dataframe for a dataframe.

        An array and a series keep their length. A dataframe loses the rows without a public value
        and every column that is not kept. What comes from pandas comes back with a fresh index
        (0, 1, 2, ...), for the old one may tell as much as a column does.

        Parameters
        ----------
        values : array-like, shape (n,), or dataframe
            The column, or a table that holds it (for a plan from a table, or one that was told its
            columns by :meth:`with_columns`).
        out_of_support : "refuse" or "clamp"
            What happens to a value outside the support. The guarantee does not cover a clamped
            one, and a warning counts them.
        bounds : (number, number), optional
            Clamp what is released, after the noise.
        round : bool
            Round what is released (the sum, or a number that a channel gives) to integers.
        keep : sequence of str
            Columns of a dataframe to keep beside the released one; not protected.
        allow_unchanged : bool
            Publish the column unchanged where the plan says so.
        min_scale : number, optional
            Add at least this much noise; not for a channel.
        seed : int, optional
            For tests only; the noise is then not private, and a SeededWarning says so.

        Raises
        ------
        InputError
            If a value is outside the support, or the column would be published unchanged and
            nobody allowed it.
        """
        from pufferfish.release import release_any

        spec = self.release_spec(
            out_of_support=out_of_support,
            bounds=bounds,
            round=round,
            allow_unchanged=allow_unchanged,
            min_scale=min_scale,
        )
        return release_any(values, spec, keep, seed=seed)

    def release_spec(self, **options: Any) -> ReleaseSpec:
        """Return what the release layer needs of this plan, with the given options."""
        from pufferfish.release import ReleaseSpec

        units = () if self.units is None else self.units.rows
        return ReleaseSpec(
            self.support, self.rules, self.applied, self.protected, units=units, **options
        )

    def estimate(
        self,
        released: Any,
        *,
        column: str | None = None,
        bounds: tuple[object, object] | None = None,
        round: bool = False,  # the option's name on the command line
        min_scale: object = None,
    ) -> Estimate:
        """Return unbiased estimates of the original column from what was released by this plan.

        Parameters
        ----------
        released : array-like, dataframe, or path
            What was released.
        column : str, optional
            The released column of a table; by default the plan's.
        bounds, round, min_scale
            As they were given to :meth:`release`.

        Raises
        ------
        InputError
            If it cannot have been released by this plan.
        """
        from pufferfish.estimate.released import estimate_released

        return estimate_released(
            released, self, column=column, bounds=bounds, round=round, min_scale=min_scale
        )
