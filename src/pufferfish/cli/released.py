# SPDX-License-Identifier: Apache-2.0
"""What ``pufferfish release`` prints: where the rows went, and what is promised of them."""

from typing import TYPE_CHECKING, Any

from pufferfish.cli.digits import at_most, rounded_up, share, shown_epsilon, shown_scale
from pufferfish.cli.messages import Messages

if TYPE_CHECKING:
    from pufferfish.mechanisms import Mechanism
    from pufferfish.plan import Plan


def print_release(plan: "Plan", report: Any, plan_file: str | None, messages: Messages) -> None:
    """Print what a release did, by which mechanism, and what is promised of it."""
    from pufferfish.cli.describe import never_published
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.mechanisms import DiscreteLaplace

    lines = list(report.lines())
    applied = report.mechanism
    if isinstance(applied, DiscreteLaplace):
        # Ten digits are for people; the plan and --format json hold them all.
        shown = shown_scale(applied.scale)
        lines[0] = lines[0].replace(f"of scale {applied.scale!r} on", f"of scale {shown} on")
        raised = " (raised by --min-scale)" if applied.scale > (plan.scale or 0) else ""
        what = f"scale {shown}{raised}"
    else:
        what = _channel(plan)
    if report.outside_promise is None and (plan.rules is None or plan.rules.secret is None):
        messages.note(
            "rows outside the promise were not counted; give --secret COL to have them counted"
        )
    lines.append(f"mechanism {plan.mechanism}, epsilon {shown_epsilon(plan)}, {what}")
    lost = "" if plan.channel is None or plan.unchanged else never_published(plan.channel)
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
    lines += _notices(plan, applied)
    print_lines(stdout_console(), lines)


def _channel(plan: "Plan") -> str:
    """Return in a few words what the channel of a plan does to values."""
    found = plan.distortion
    if found is None:  # a plan file that does not say so
        return "a channel"
    conditions = "".join(f", {condition}" for condition in found.conditions)
    return (
        f"keeps {share(found.keep_rate)} of the values (expected), {found.name} cost "
        f"{rounded_up(found.cost, 5)}{conditions}"
    )


def _notices(plan: "Plan", applied: "Mechanism") -> list[str]:
    from pufferfish.cli.describe import constant_words, nearly_unchanged
    from pufferfish.mechanisms import DiscreteLaplace

    noise = isinstance(applied, DiscreteLaplace)
    constant = "" if isinstance(applied, DiscreteLaplace) else constant_words(applied)
    if constant:
        return [f"NOTICE: every row holds {constant}: nothing of the column is left"]
    if (applied.scale == 0) if isinstance(applied, DiscreteLaplace) else applied.unchanged:
        why = "the scale is 0" if noise else "the channel changes nothing"
        return [f"NOTICE: {why}: the column was PUBLISHED UNCHANGED"]
    often = nearly_unchanged(applied, plan.keep_rate)
    if not often:
        return []
    what = f"the noise is 0 for {often}" if noise else f"the channel keeps {often}"
    return [
        f"NOTICE: at epsilon {shown_epsilon(plan)} {what} of the values: these were published as "
        "they are"
    ]
