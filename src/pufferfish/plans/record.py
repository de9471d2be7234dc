# SPDX-License-Identifier: Apache-2.0
"""The public record: what those who receive a release may see of the plan, which is private.

Everything in it is the custodian's own choice (epsilon, pairs, rounding), or shows in the released
data anyway, or is a sentence. What was worked out from the table (theory, section 7), such as
scale, channel, loss, counts and digest, stays out unless it is to be published. Nothing in it
depends on the rows that were released: it says what is done to rows, whether there were any or not.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from pufferfish.errors import InputError, listed
from pufferfish.files import read_strict, write_json
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import checked_flag, show, show_short
from pufferfish.plans import schema
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Confidence, NoisyCounts, Rule
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseReport, ReleaseSpec
from pufferfish.support import Levels
from pufferfish.tables.rules import Coding

#: Version of the record.
FORMAT = 2
_NOTICE = (
    "PUBLIC. What those who receive the released data may know of how they were made. It holds no "
    "count, no prior, no path and no digest; the {0} private. It is a "
    "statement by whoever released the data, not a proof."
)
_PROMISE = (
    "Whatever is released for a {0}, its chance is the same for both secrets of a pair up to a "
    "factor of e**epsilon: nobody learns more than that about which of the two the {0} has."
)


def write_record(
    path: str | Path, plan: Plan, report: ReleaseReport, spec: ReleaseSpec, *,
    publish: bool = False, force: bool = False, plans: int = 0,
) -> None:  # fmt: skip
    """Write the public record of a release that was made, whole or not at all.

    With ``publish`` it also tells the mechanism in force (its scale or its channel) and its values,
    from which :func:`read_record` makes what estimates need. A mechanism that was computed from
    rows depends on every one of them. ``plans``: how many from its noisy counts a ledger has.
    """
    if spec.mechanism is not plan.applied:
        raise InputError("the options are those of a release by another plan")
    why_not = _why_no_certificate(plan, report, spec)
    certified = (
        "When the plan was made its privacy loss was proved to be at most epsilon"
        + (", says its file; the release did not prove it again" if plan.loaded else "")
        + "; whoever has the plan and the prior can prove it again (pufferfish verify)."
    )
    if plan.noisy is not None:
        spent, both = show(plan.noisy.epsilon1), "together with"
        if plan.noisy.held_out:
            both = "and so, for the rows that were held out, is that of"
        certified = (
            f"The loss is at most epsilon {both} the noisy counts in the plan (epsilon {spent}). "
            "The plan is public; whoever has it can prove it again (pufferfish verify)."
        )
    promised = not (report.seeded or report.keep)
    record: dict[str, Any] = {
        "notice": _NOTICE.format("ledger is" if plan.noisy else "plan and the ledger are"),
        "format": FORMAT,
        "column": report.column,
        "set_column": report.set_column,
        "kept_columns": list(report.keep),
        "secret": plan.secret,
        "unit": plan.unit,
        "pairs": sorted(sorted(pair) for pair in plan.pairs),
        "epsilon": show(plan.epsilon_exact),
        "mechanism": "channel" if plan.channel else "discrete Laplace noise",
        "conditions": list(plan.distortion.conditions) if plan.distortion else [],
        "values": _values(plan, spec, publish),
        "rounded": spec.round,
        "bounds": spec.bounds and [show(bound) for bound in spec.bounds],
        "certificate": {
            "claimed": why_not is None,
            "statement": f"No certificate is claimed: {why_not}." if why_not else certified,
        },
        "promise": _PROMISE.format("person" if plan.unit else "row") if promised else None,
        "assumptions": assumptions(plan, publish, plans) if promised else [],
        "not_covered": not_covered(plan, spec),
    }
    if checked_flag(publish, "publish"):
        told: dict[str, Any] = {"support": schema.support_file(plan.support)}
        if isinstance(report.mechanism, Channel):
            told["channel"] = schema.channel_file(report.mechanism)
            told["labels"] = plan.labels and schema.channel_file(plan.labels)
        else:
            told["scale"] = report.mechanism.scale
        record |= {name: schema.to_json_values(entry) for name, entry in told.items()}
    write_json(path, record, force=force)


class _Published(msgspec.Struct, frozen=True):
    """What of a record is read back."""

    format: Literal[2]
    column: str
    rounded: bool
    set_column: str | None = None
    bounds: tuple[str, str] | None = None
    support: schema.Numbers | schema.LevelNames | None = None
    scale: float | None = None
    channel: schema.Matrix | None = None
    labels: schema.Matrix | None = None


def read_record(path: str | Path) -> ReleaseSpec:
    """Return what estimates need of a record that tells the mechanism."""
    data = read_strict(path, "the record")
    try:
        file: _Published = schema.converted(data, _Published)
        if file.support is not None and (file.scale is None) != (file.channel is None):
            support = schema.support_of(file.support)
            return ReleaseSpec(
                Coding(file.column, support), support, *schema.mechanism_of(file, support),
                bounds=file.bounds,  # type: ignore[arg-type]  # they become exact there
                round=file.rounded, labels_only=bool(file.labels and file.set_column is None),
            )  # fmt: skip
    except InputError as error:
        raise InputError(f"{path} is no usable record: {error}") from None
    raise InputError(
        f"{path} is a record that does not tell the mechanism; whoever released the data can tell "
        "it with --publish-scale or --publish-channel"
    )


def _values(plan: Plan, spec: ReleaseSpec, published: bool) -> dict[str, Any]:
    """Return what kind of values come out; what was read from a table only if it is published."""
    post = Postprocess(spec)
    told = published or not plan.from_rows
    codes = plan.support if isinstance(plan.support, Levels) else None
    named = post.levels or codes
    shows = post.levels is None and (told or plan.channel is None)  # sums show their lattice
    return {
        "kind": "levels" if post.levels else "codes of levels" if codes else "numbers",
        "levels": list(named.names) if named is not None and told else None,
        "step": show(post.step) if shows else None,
    }


def _why_no_certificate(plan: Plan, report: ReleaseReport, spec: ReleaseSpec) -> str | None:
    """Return why the plan's certificate is not about what was released; None where it is."""
    if report.seeded:
        return "the release was drawn from a seed, for tests only, and protects nobody"
    if report.keep:
        return (
            f"the kept columns ({listed(report.keep)}) are not in the prior, and together with "
            "them the released column may give the secret away"
        )
    if not plan.certificate.holds:
        return "the plan has none that holds"
    if spec.min_scale is not None:  # whether it is above the plan's scale depends on rows
        return "more noise than the plan's may have been asked for (which never reveals more)"
    if spec.out_of_support == "clamp":
        return "values that the prior holds impossible are moved to possible ones"
    return None


def assumptions(plan: Plan, published: bool, plans: int = 0) -> list[str]:
    """Return under which assumptions the promise holds, regions first."""
    said = [
        f"The prior need not be exact: the promise holds for {_described(rule, plan)}, as long as "
        "no other value can occur."
        for rule in dict.fromkeys(plan.regions)
        if rule is not None
    ]
    if plans:
        said[0] += f" Plans from these noisy counts so far: {plans}; each scale has its own chance "
        said[0] += "to fail, and channels share one."
    if plan.composition is not None:
        said.append(
            "epsilon is for this release together with the other releases of the same rows that "
            "were taken into account; verify judges this release alone."
        )
    said.append(
        "The promise is against those whose prior (what they know beforehand of how the column "
        "depends on the secret) is one of the priors that were taken into account; these are taken "
        "as public knowledge."
    )
    if plan.from_rows:
        what = "channel" if plan.channel else "scale of the noise"
        kept = "It is in this record because whoever released the data decided so."
        said.append(
            f"A prior was counted from rows of a table, and the {what} was computed from it, so "
            f"that it depends on every one of these rows: from the {what} somebody who knows all "
            "rows but one may learn the secret of that one. "
            + (kept if published else f"That is why the {what} stays out of everything public.")
        )
    rows = "Rows are independent of one another given the prior, and each is its own person."
    people = (
        f"The rows with the same {plan.unit!r} are one person's, and the promise is for all of "
        "them together; people are independent of one another given the prior."
    )
    return [*said, people if plan.unit else rows]


def _described(rule: Rule, plan: Plan) -> str:
    around = "all priors in a region around it"
    if isinstance(rule, NoisyCounts):
        return f"what the rows were drawn from, with {show_short(rule.level * 100)} % confidence"
    if not isinstance(rule, Confidence):
        return f"{around} (total-variation balls of radius {show_short(rule.radius)})"
    sure = f"with {show_short(rule.level * 100)} % confidence"
    if plan.channel is None and not rule.box:
        return f"what the rows were drawn from, {sure}"
    return f"{around} (Clopper-Pearson intervals that hold together {sure})"


def not_covered(plan: Plan, spec: ReleaseSpec) -> list[str]:
    """Return what the promise does not cover."""
    missing_is_covered = plan.coding is not None and plan.coding.missing_as_level
    cases = (
        (True, "Losses of several releases about the same people do not add up; two releases that "
         "each keep a promise may together break any."),
        (True, "Rows whose secret is in none of the pairs are released like the others, and "
         "nothing is promised for them."),
        (not missing_is_covered, "Rows without a value are left out; that they are missing shows, "
         "and no mechanism covers it."),
        (spec.out_of_support == "clamp", "A value that the prior holds impossible is moved to the "
         "nearest possible one first; nothing is promised for such a row."),
        (plan.unit is not None, "How many rows a person has shows to whoever can tell whose they "
         "are."),
    )  # fmt: skip
    return [text for holds, text in cases if holds]
