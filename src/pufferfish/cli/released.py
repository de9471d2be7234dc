# SPDX-License-Identifier: Apache-2.0
"""What ``pufferfish release`` prints: where the rows went, and what is promised of them."""

from typing import TYPE_CHECKING

from pufferfish.cli.digits import at_most, error_up, shown_epsilon, shown_scale
from pufferfish.cli.messages import Messages

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.release import ReleaseReport, ReleaseSpec


def print_release(
    plan: "Plan",
    spec: "ReleaseSpec",
    report: "ReleaseReport",
    plan_file: str | None,
    messages: Messages,
) -> None:
    """Print what a release did, by which mechanism, and what is promised of it.

    Parameters
    ----------
    plan : Plan
        What was released by. Where it came from a file, nothing that it says of its channel is
        printed: the file may have been edited, or be about another prior.
    spec : ReleaseSpec
        What was asked for.
    report : ReleaseReport
        What was done.
    plan_file : str or None
        The plan's file; None where the plan was made on the way.
    messages : Messages
        Takes the notes.
    """
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.cli.planwords import never_published
    from pufferfish.mechanisms import DiscreteLaplace

    lines = list(report.lines())
    applied = report.mechanism
    if isinstance(applied, DiscreteLaplace):
        # Ten digits are for people; the plan and --format json hold them all.
        shown = shown_scale(applied.scale)
        lines[0] = lines[0].replace(f"of scale {applied.scale!r} on", f"of scale {shown} on")
        raised = " (raised by --min-scale)" if applied.scale > (plan.scale or 0) else ""
        what = f", scale {shown}{raised}"
    else:
        moved = spec.round or spec.bounds is not None
        what = _channel(plan, moved) if plan_file is None else ""
    if report.outside_promise is None and (plan.rules is None or plan.rules.secret is None):
        messages.note(
            "rows outside the promise were not counted; give --secret COL to have them counted"
        )
    lines.append(f"mechanism {plan.mechanism}, epsilon {shown_epsilon(plan)}{what}")
    lost = "" if plan.channel is None or report.unchanged else never_published(plan.channel)
    if lost:
        lines.append(f"never published: {lost}")
    if report.seeded:
        pass  # the report says so already, and there is nothing to promise
    elif report.keep:
        lines.append("no certificate: the kept columns are not in the prior, and may give it away")
    else:
        # A plan file may have been edited, and the prior that would tell is not at hand.
        where = " for every prior of the region" if plan.robust else ""
        lines.append(
            f"certified loss at most {at_most(plan.loss, plan.epsilon_exact)}{where}"
            if plan_file is None
            else f"not proved again here: see pufferfish verify {plan_file}"
        )
        lines.append(plan.assumption)
    lines += _notices(plan, report)
    print_lines(stdout_console(), lines)


def _channel(plan: "Plan", moved: bool) -> str:
    """Return in a few words what the channel of a new plan costs; what it keeps is reported."""
    found = plan.distortion
    if found is None:
        return ""
    conditions = "".join(f", {condition}" for condition in found.conditions)
    before = " before rounding and bounds" if moved else ""
    return f", expected {found.name} cost{before} {error_up(found.cost)}{conditions}"


def _notices(plan: "Plan", report: "ReleaseReport") -> list[str]:
    from pufferfish.cli.planwords import constant_words, nearly_unchanged
    from pufferfish.mechanisms import DiscreteLaplace

    applied, rate = report.mechanism, report.keep_rate
    noise = isinstance(applied, DiscreteLaplace)
    constant = "" if isinstance(applied, DiscreteLaplace) else constant_words(applied)
    if constant:
        return [f"NOTICE: every row holds {constant}: nothing of the column is left"]
    if report.unchanged:
        if not noise and rate != 1:
            return [
                "NOTICE: every value was replaced by one of its own: the column can be read back"
            ]
        why = "the scale is 0" if noise else "the channel changes nothing"
        return [f"NOTICE: {why}: the column was PUBLISHED UNCHANGED"]
    often = nearly_unchanged(applied, rate)
    if not often:
        return []
    what = f"the noise is 0 for {often}" if noise else f"the channel keeps {often}"
    return [
        f"NOTICE: at epsilon {shown_epsilon(plan)} {what} of the values: these were published as "
        "they are"
    ]
