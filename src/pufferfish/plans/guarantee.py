# SPDX-License-Identifier: Apache-2.0
"""Guarantee: what a plan does to a column, and for whom; it releases and estimates."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from pufferfish.errors import InputError
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel, check_labels
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, float_up, parse_number, show
from pufferfish.priors.ambiguity import NoisyCounts, Rule
from pufferfish.priors.scenario import Pair
from pufferfish.release.spec import ReleaseOptions, ReleaseSpec
from pufferfish.support import Lattice, Support
from pufferfish.tables.rules import Coding, Rules, make_rules

#: What a channel that is best for estimates makes least: the noise of all of these together.
OBJECTIVES = ("frequencies", "mean", "cdf", "both", "own statistics")


@dataclass(frozen=True)
class Distortion:
    """What a channel does to values that are as frequent as its weights say."""

    cost_name: str  # what was made least: hamming, squared, absolute, own, or one of OBJECTIVES
    cost: float  # its expectation, or the objective, rounded up
    keep_rate: float  # the chance that a value is published unchanged, rounded down
    mse: float | None  # rounded up; None for levels without an order, and beyond doubles
    gap: float  # by how much at most the cost exceeds that of the best channel
    conditions: tuple[str, ...] = ()
    bound: float | None = None  # no private channel has a lesser objective; None: no claim

    @classmethod
    def of(
        cls, channel: Channel, cost: Fraction, cost_name: str, weights: Sequence[Fraction],
        gap: float, conditions: Sequence[str] = (), bound: float | None = None,
    ) -> "Distortion":  # fmt: skip
        """Return what a channel (to labels) of a known cost does to values of these weights."""
        ordered = channel.inputs.ordered and channel.outputs.ordered
        mse = channel.mse(weights) if ordered else math.inf
        return cls(
            cost_name, float_up(cost), channel.keep_rate(weights),
            mse if math.isfinite(mse) else None, gap, tuple(conditions), bound,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Guarantee:
    """The part of a :class:`Plan` that decides what a release does, and what ``verify`` proves.

    ``labels`` are drawn from what the channel publishes, so that they add nothing to its loss.
    ``weights`` and ``distortion`` say what a channel was made for; no proof looks at them.
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
    weights: tuple[float, ...] = ()
    distortion: Distortion | None = None

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
    def column(self) -> str | None:
        """The public column; None where the plan names none."""
        return None if self.coding is None else self.coding.column

    @property
    def rules(self) -> Rules | None:
        """How a table is read for this plan; None where it names no columns."""
        if self.coding is None:
            return None
        return Rules(
            self.secret, (self.coding.declared(),), self.exclude_secrets, self.coding.decimal,
            self.unit, self.secret_missing,
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
    def unchanged(self) -> bool:
        """Whether a release publishes the column as it is."""
        if self.label_channel is not None:
            # Rows of values that never occur are not looked at where the plan knows them; a claim,
            # by which only sentences are chosen: a release looks at the rows itself.
            return self.label_channel.unchanged or self.keep_rate == 1
        return self.scale == 0

    def with_columns(
        self, public: str, secret: str | None = None, missing: Iterable[str] = (),
        step: Number | None = None, missing_as_level: bool = False,
        decimal: Literal[".", ","] = ".",
    ) -> Self:  # fmt: skip
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
