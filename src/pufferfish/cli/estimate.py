# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: the numbers of the original column, from a released one and its plan."""

import io
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from pufferfish.cli.answers import estimate_answer
from pufferfish.cli.options import FORCE, options, refuse_others
from pufferfish.cli.output import print_csv, print_json, print_lines, print_table
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError, listed, short_name
from pufferfish.estimate.estimate import LEVEL, Estimate
from pufferfish.estimate.released import estimate_released
from pufferfish.files import checked_target, read_strict, write_whole
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import read_record
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.release.postprocess import Postprocess
from pufferfish.report import brief, sentences

#: Figures, and characters of a level, that are printed for people; JSON and CSV hold them all.
_MOST_LINES, _LONGEST = 40, 30
_OPTIONS = f"""
--plan FILE  Plan that it was released by; or, for those who have no plan:
--record FILE  Public record of the release, with its scale or channel.
--column COL  The released column, where it was renamed since.
--bounds LO HI  The --bounds it was released with.
--round  It was released with --round.
--min-scale T  The --min-scale it was released with.
--labels-only  It was released with --labels-only; or sets are there, but labels are to be used,
    from which errors are larger.
--bins N|EDGES  Shares of N bins of equal width, or between EDGES such as 0,10,50.
--simplex  Move frequencies to the nearest ones that are not negative. This biases them.
-o --output FILE.csv  Write all estimates, also the distribution function, as CSV.
{FORCE}
--format table|json|csv  Form of what is printed on standard output.
"""


@click.command()
@click.argument("released")
@options(_OPTIONS)
@click.pass_obj
def estimate(
    messages: Messages, /, released: str, plan: str | None, record: str | None,
    column: str | None, labels_only: bool, bins: str | None, simplex: bool, output: str | None,
    force: bool, format: str, **stated: Any,
) -> None:  # fmt: skip
    """Estimate mean, variance, quartiles and frequencies of the original column from RELEASED.

    The estimates are unbiased, each with its standard error and 95 % interval, for the randomness
    of the release alone. They come from the column of sets where the channel publishes sets. With
    --plan, the options --bounds, --round, --min-scale and --labels-only must be those of the
    release; a record holds them.

    \b
    Examples:
      pufferfish estimate released.csv --plan plan.json
      pufferfish estimate released.csv --plan plan.json --round --bounds no yes
      pufferfish estimate released.csv --record record.json -o estimates.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    by = plan or record
    if by is None or (plan and record):
        raise InputError("give what it was released by with --plan FILE or --record FILE")
    data = read_strict(by, "the plan" if plan else "the record")
    if isinstance(data, dict) and "query" in data:  # the plan or the record of an answer
        bounds = stated.pop("bounds")
        others = stated | {"column": column, "labels_only": labels_only, "bins": bins,
                           "simplex": simplex, "output": output}  # fmt: skip
        refuse_others(others)
        estimate_answer(released, data, by, plan is not None, bounds, format)
        return
    loaded = Plan.of_values(data, by) if plan else None
    if loaded:
        spec = loaded.spec(allow_unchanged=True, **stated)
    else:
        refuse_others(stated, "not with --record, in which that stands")
        spec = read_record(by)
    spec = replace(spec, labels_only=labels_only or spec.labels_only)
    if output is not None:
        if not output.lower().endswith(".csv"):
            raise InputError(f"cannot write {output}: estimates are CSV, and the name ends in .csv")
        checked_target(output, force, [released, by])
    noisy = loaded.noisy if loaded else None
    found = estimate_released(released, spec, noisy, column=column, bins=bins, simplex=simplex)
    lines, notes = found.to_dicts(), _notes(found, bins is None, simplex, noisy)
    if output is not None:
        text = io.StringIO()
        print_csv(lines, text)
        write_whole(output, text.getvalue().encode(), force=force)
        messages.note(f"the estimates are saved as {output}")
    if format == "csv":
        print_csv(lines)
    elif format == "json":
        print_json({"rows": found.rows, "confidence": LEVEL, "figures": lines, "notes": notes})
    else:
        words = sentences.mechanism_words(Postprocess(spec).mechanism, spec.labels)
        if spec.labels_only:
            words += "; estimates are from labels alone, with larger errors"
        print_lines([f"{released}: {found.rows} rows, released by {by}", words, ""])
        left_out = ("cdf", "frequency" if found.bins else None)
        told = [line for line in lines if line["kind"] not in left_out]
        shown = [_cells(line) for line in told if line["estimate"] is not None]
        if shown:
            headers = ["", "estimate", "standard error", "95 % interval"]
            more = [[f"... {len(shown) - _MOST_LINES} more", "", "", ""]]
            print_table(headers, shown[:_MOST_LINES] + more * (len(shown) > _MOST_LINES), [0])
            print_lines([""])
        print_lines(f"note: {note}" for note in notes)


def _cells(line: Mapping[str, Any]) -> list[str]:
    """Return a row of the table, in digits that the error allows."""
    kind, label, *numbers = line.values()
    what = "quantile" if kind == "quantile" else "share of"
    name = kind if label is None else f"{what} {short_name(label, _LONGEST)}"
    error = numbers[1]
    places = 1 - math.floor(math.log10(error)) if error else 6
    value, _, low, high = (f"{round(number, places):.12g}" for number in numbers)
    exact = not error and kind != "quantile"  # whose ends may only be the same value
    interval = "published as it is" if exact else f"{low} to {high}"
    return [name, value, brief(error, 2), interval]


def _notes(found: Estimate, offered: bool, simplex: bool, noisy: NoisyCounts | None) -> list[str]:
    """Return what is to be known of some estimates; ``offered``: nobody asked for bins."""
    notes = ["these are estimates for the released rows before the release; errors and intervals "
             "are about its randomness alone"]  # fmt: skip
    if found.noisy_better is not None:
        better, of = found.noisy_better
        notes.append("the noisy counts in the plan are combined with the rows; alone they would be "
                     f"the better source for {better} of {of} figures")  # fmt: skip
    elif noisy is not None and not found.too_many_values:
        notes.append(f"the noisy counts in the plan are of {noisy.rows} rows other than these "
                     f"{found.rows}, and are not used")  # fmt: skip
    if simplex:
        notes.append("shares are moved to the nearest ones that are not negative, and so biased; "
                     "errors, intervals, mean and variance are those without this")  # fmt: skip
    if found.too_many_values:
        notes.append("no shares: there are too many values")
    if found.not_estimable:
        notes.append(f"cannot be estimated: {listed(found.not_estimable)}")
    if found.bins and offered:
        notes.append("most single shares are below their standard errors; neighbouring values are "
                     "taken together")  # fmt: skip
    if found.cdf or len(found.frequencies) > _MOST_LINES:
        also = " and the distribution function" if found.cdf else ""
        notes.append(f"--format csv prints all shares{also}")
    return notes
