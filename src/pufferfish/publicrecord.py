# SPDX-License-Identifier: Apache-2.0
"""The public record: what those who receive a release may see of the plan, which is private.

Everything in it is either the custodian's own choice (epsilon, pairs, rounding), or shows in the
released data anyway, or is a sentence. What was worked out from the table (theory, section 7), such
as scale, channel, loss, counts and digest, stays out, and so does whether something happened to any
row: the record says what is done to such rows, whether there were any or not.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferfish import recordwords
from pufferfish._version import __version__
from pufferfish.atomic import write_whole
from pufferfish.errors import InputError, UnchangedWarning, counted, listed
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.rationals import show
from pufferfish.support import Levels

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.release import ReleaseReport, ReleaseSpec

#: Version of the record.
FORMAT = 1
#: What mechanisms are called here; their methods of calibration are nobody's concern.
NOISE, CHANNEL = "discrete Laplace noise", "channel"


def public_record(
    plan: Plan,
    report: ReleaseReport,
    *,
    publish_scale: bool = False,
    spec: ReleaseSpec | None = None,
    proved: bool = False,
) -> dict[str, Any]:
    """Return what those who receive a release may see, as JSON values.

    Parameters
    ----------
    plan : Plan
        What was released by.
    report : ReleaseReport
        On that release.
    publish_scale : bool
        Also tell how much noise there is: the scale in force, or the matrix of the channel with
        all its values. Where the plan was computed from rows it depends on every one of them; a
        plan from a given prior is as public as that prior.
    spec : ReleaseSpec, optional
        What was asked for, such as rounding. Without it the record says nothing of rounding and
        bounds (null), and claims no certificate: whether values were to be moved into the support
        is then known only from the rows, of which nothing may be told.
    proved : bool
        Whether a plan that was read from a file was verified for this release
        (:meth:`pufferfish.Plan.verify`): otherwise its certificate is only a claim, and no
        certificate is claimed here.

    Returns
    -------
    dict
        ``notice`` comes first. ``certificate`` has ``claimed``: whether what was released is the
        mechanism that the plan's certificate is about, and nothing beside it. ``values.levels``
        is null where the levels were read from the table rather than stated, and ``values.step``
        where it was and need not show in the data.

    Raises
    ------
    InputError
        If the report is on a release by another plan, or ``spec`` is not what was released.

    Notes
    -----
    Theory, section 7. What happened to rows, such as how many values were moved into the support,
    changes nothing in the record; what was to happen to them does. Neither cost nor kept share of
    a channel is ever in it: both depend on how frequent the values are.
    """
    told = _Told(plan, report, publish_scale, spec, proved)
    told.check()
    record: dict[str, Any] = {
        "notice": recordwords.NOTICE,
        "format": FORMAT,
        "version": __version__,
        "column": report.column,
        "kept_columns": list(report.keep),
        "secret": None if plan.rules is None else plan.rules.secret,
        "unit": told.unit,
        "pairs": sorted(sorted(pair) for pair in plan.pairs),
        "epsilon": show(plan.epsilon_exact),
        "mechanism": CHANNEL if plan.channel is not None else NOISE,
        "conditions": [] if plan.distortion is None else list(plan.distortion.conditions),
        "values": told.values(),
        "rounded": None if spec is None else spec.round,
        "bounds": None if spec is None or spec.bounds is None else [show(b) for b in spec.bounds],
        "certificate": told.certificate(),
        "promise": told.promise(),
        "assumptions": told.assumptions(),
        "not_covered": told.not_covered(),
    }
    if publish_scale:
        record |= told.strength()
    return record


def write_record(
    path: str | Path,
    plan: Plan,
    report: ReleaseReport,
    *,
    publish_scale: bool = False,
    spec: ReleaseSpec | None = None,
    proved: bool = False,
    force: bool = False,
) -> None:
    """Write the public record of a release as JSON, readable like any new file.

    Parameters
    ----------
    path : str or Path
        Where to.
    plan, report, publish_scale, spec, proved
        See :func:`public_record`.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        As for :func:`public_record`; or the file exists and ``force`` is not set, or it cannot be
        written. It appears complete or not at all.
    """
    record = public_record(plan, report, publish_scale=publish_scale, spec=spec, proved=proved)
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path} cannot be written: a name in it holds half a character (a surrogate)"
        ) from None
    write_whole(path, content, force=force)


@dataclass(frozen=True)
class _Told:
    """One release, and which of its facts may be told."""

    plan: Plan
    report: ReleaseReport
    publish_scale: bool
    spec: ReleaseSpec | None
    proved: bool

    def check(self) -> None:
        """Raise an InputError unless plan, report and spec belong together."""
        plan, report = self.plan, self.report
        if plan.rules is not None and plan.rules.public != report.column:
            raise InputError(
                f"the report is on the column {report.column!r}, but the plan is for "
                f"{plan.rules.public!r}"
            )
        if not _may_be(plan, report.mechanism):
            raise InputError("the report is on a release by another plan: its mechanism differs")
        if self.spec is not None and (
            self.spec.mechanism is not plan.applied or not self.spec.support.same_as(plan.support)
        ):
            raise InputError("the options given are those of a release by another plan")
        if self.spec is not None and not self._may_be_asked(self.spec):
            raise InputError("the options given are not those of the release")

    def _may_be_asked(self, spec: ReleaseSpec) -> bool:
        """Whether these options may have led to what was released."""
        noise = self.raised or _scale(self.report.mechanism) == _scale(self.plan.applied)
        return noise and (spec.out_of_support == "clamp" or not self.report.clamped)

    @property
    def unit(self) -> str | None:
        """The column whose equal values mark the rows of one person."""
        return None if self.plan.rules is None else self.plan.rules.unit

    @property
    def raised(self) -> bool:
        """Whether the noise need not be the plan's own, whether it is or not."""
        return self.spec is not None and self.spec.min_scale is not None

    @property
    def clamps(self) -> bool:
        """Whether values outside the support are moved, whether there are any or not."""
        return self.spec is not None and self.spec.out_of_support == "clamp"

    @property
    def protects(self) -> bool:
        """Whether anything is promised."""
        return not (self.report.seeded or self.report.keep)

    def values(self) -> dict[str, Any]:
        """Return what kind of values the released column holds, and where they lie."""
        plan = self.plan
        step, levels, codes = self._outputs()
        plain = "numbers" if codes is None else "codes of levels"
        named = levels or codes
        return {
            "kind": plain if levels is None else "levels",
            "levels": list(named.names)
            if named is not None and self._stated("levels", "order")
            else None,
            # Sums show their lattice; a channel's outputs need not.
            "step": step if plan.channel is None or self._stated("step", "support") else None,
        }

    def _outputs(self) -> tuple[str | None, Levels | None, Levels | None]:
        """Return the step, or the levels that come out, or those that the numbers stand for."""
        from pufferfish.release.releaser import Releaser

        support = self.plan.support
        spec = self.spec
        if spec is None:
            spec = self.plan.release_spec(allow_unchanged=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnchangedWarning)  # the release has warned of it
            releaser = Releaser(spec)
        if releaser.levels is not None:
            return None, releaser.levels, None
        codes = support if isinstance(support, Levels) else None
        if self.spec is None and codes is None and releaser.step.denominator != 1:
            return None, None, None  # they may have been rounded
        return show(releaser.step), None, codes

    def _stated(self, *options: str) -> bool:
        """Whether something is the custodian's own words by an option, and not read from a table.

        An order by name ("appearance") states no levels.
        """
        rules = self.plan.rules
        given = [] if rules is None else [getattr(rules, option) for option in options]
        named = any(value is not None and not isinstance(value, str) for value in given)
        return named or not self.plan.from_rows or self.publish_scale

    def certificate(self) -> dict[str, Any]:
        """Return whether the plan's certificate is about what was released, and why not."""
        why = self._why_no_certificate()
        if why:
            return {"claimed": False, "statement": f"No certificate is claimed: {why}."}
        return {
            "claimed": True,
            "statement": recordwords.CERTIFIED
            if self.plan.beside is None
            else recordwords.CERTIFIED_BESIDE.format(
                out=counted(self.plan.beside.releases, "release")
            ),
        }

    def _why_no_certificate(self) -> str:
        report = self.report
        if report.seeded:
            return "the release was drawn from a seed, for tests only, and protects nobody"
        if report.keep:
            return (
                f"the kept columns ({listed(report.keep)}) are not in the prior, and together "
                "with them the released column may give the secret away"
            )
        if not self.plan.certificate.holds:
            return "the plan has none that holds"
        if self.unit is not None and self.plan.units is None:
            return "the plan has none for all rows of a person together"
        if self.raised:
            return (
                "the plan's is about its own scale, and more noise was asked for (which never "
                "reveals more)"
            )
        if self.clamps:
            return "values that the prior holds impossible are moved to possible ones"
        if self.spec is None:
            return (
                "it is not stated whether values that the prior holds impossible were to be moved "
                "to possible ones, or more noise than the plan's was asked for"
            )
        # Last: with values that had to be moved it often cannot be, and that must not show.
        if self.plan.loaded and not self.proved:
            return "the plan was read from a file, and was not proved again for this release"
        return ""

    def promise(self) -> list[str]:
        """Return the sentences of what is promised; none where nothing is."""
        if not self.protects:
            return []
        promise = [recordwords.PROMISE.format(whom="row" if self.unit is None else "person")]
        if self.plan.beside is not None:
            promise.append(recordwords.BESIDE)
        return promise

    def assumptions(self) -> list[str]:
        """Return under which assumptions that is."""
        if not self.protects:
            return []
        said = [recordwords.PRIOR]
        if self.plan.from_rows:
            what = "channel" if self.plan.channel is not None else "scale of the noise"
            told = recordwords.PUBLISHED if self.publish_scale else recordwords.HIDDEN
            said.append((recordwords.FROM_ROWS + told).format(what=what))
        said += [
            recordwords.REGION.format(rule.describe())
            for rule in self.plan.regions
            if rule is not None
        ]
        people = (
            recordwords.INDEPENDENT
            if self.unit is None
            else recordwords.UNITS.format(unit=self.unit)
        )
        return [*dict.fromkeys(said), people]

    def not_covered(self) -> list[str]:
        """Return what the promise does not cover."""
        said = [recordwords.NO_SUM, recordwords.NO_PAIR]
        if self.plan.rules is None or self.plan.rules.missing_level is None:
            said.append(recordwords.LEFT_OUT)
        if self.clamps:
            said.append(recordwords.CLAMPED)
        elif self.spec is None:
            said.append(recordwords.MAY_CLAMP)
        if self.unit is not None:
            said.append(recordwords.HOW_MANY)
        return said

    def strength(self) -> dict[str, Any]:
        """Return how much noise there is."""
        applied = self.report.mechanism
        if isinstance(applied, Channel):
            return {"channel": applied.to_dict()}
        return {"scale": applied.scale, "noise_step": show(applied.step)}


def _may_be(plan: Plan, applied: object) -> bool:
    """Whether a release by a plan applies this: its own mechanism, or more noise of the kind."""
    own = plan.applied
    if isinstance(own, DiscreteLaplace) and isinstance(applied, DiscreteLaplace):
        return applied.step == own.step and applied.scale >= own.scale
    if isinstance(own, Channel) and isinstance(applied, Channel):
        return own is applied or own.to_dict() == applied.to_dict()
    return False


def _scale(applied: object) -> float | None:
    return applied.scale if isinstance(applied, DiscreteLaplace) else None
