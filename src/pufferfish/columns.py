# SPDX-License-Identifier: Apache-2.0
"""Columns of a plan: how it comes to know the two columns of a table and their cleaning."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from pufferfish.errors import InputError, listed
from pufferfish.prior import Prior
from pufferfish.rationals import parse_number, show
from pufferfish.support import Levels, Support
from pufferfish.tables.rules import MISSING_LEVEL, Rules, make_rules


def common_rules(priors: Sequence[Prior]) -> Rules | None:
    """Return the rules by which every prior was learnt from its table; None if one was given.

    Raises
    ------
    InputError
        If all priors came from tables, but not by the same rules: a release could follow only
        one of them.
    """
    reports = [prior.report for prior in priors]
    rules = [report.rules for report in reports if report is not None]
    if len(rules) < len(reports):
        return None
    first = rules[0]
    for other in rules[1:]:
        for field in fields(Rules):
            one, two = getattr(first, field.name), getattr(other, field.name)
            if one != two:
                raise InputError(
                    f"the tables of the priors were read with different {_option(field.name)}: "
                    f"{_shown(one)} and {_shown(two)}; a release can follow only one, so read all "
                    "tables in the same way"
                )
    return first


def rules_for(
    support: Support,
    *,
    public: str,
    secret: str | None = None,
    missing: Iterable[str] = (),
    step: Any = None,
    missing_as_level: bool = False,
) -> Rules:
    """Return the rules of a table that is released by a plan from a given prior.

    Parameters
    ----------
    support : Lattice or Levels
        The support of the plan.
    public : str
        The column to release.
    secret : str, optional
        The column of the secret; without it rows outside the promise are not counted.
    missing : iterable of str
        Texts that mean "missing", beside the empty cell.
    step : number, optional
        The step that the values of the prior were rounded to; those of the table then are too.
    missing_as_level : bool
        Whether rows without a public value have the level "(missing)", which then must be one of
        the prior's.

    Raises
    ------
    InputError
        If a name is empty, the step is not that of the support, an option contradicts the levels,
        or missing is to be a level that the support lacks.
    """
    if missing_as_level:
        _check_missing_level(support)
    if isinstance(support, Levels):
        order, levels = (support.names, None) if support.ordered else (None, support.names)
        return make_rules(
            secret=secret,
            public=public,
            order=order,
            levels=levels,
            missing=missing,
            step=step,
            missing_as_level=missing_as_level,
        )
    if step is not None and parse_number(step, "--step (step=...)") != support.step:
        raise InputError(
            f"--step must be {show(support.step)} (step={show(support.step)!r}), the step of the "
            f"plan, but {step} was given"
        )
    return make_rules(secret=secret, public=public, missing=missing, step=step)


def _check_missing_level(support: Support) -> None:
    if not isinstance(support, Levels):
        raise InputError(
            "the prior is about numbers, and a missing value is none, so it cannot be a level "
            "among them (--missing-as-level)"
        )
    if MISSING_LEVEL not in support.names:
        raise InputError(
            f"missing values are to be a level (--missing-as-level), but the prior has no level "
            f"{MISSING_LEVEL!r}; its levels are {listed(support.names)}"
        )


def _option(name: str) -> str:
    """Return a field of the rules as users write it."""
    if name == "decimal":
        return "decimal marks"  # which are found, not given
    if name == "missing_level":
        return "--missing-as-level (missing_as_level=...)"
    flags = {"exclude_secrets": "--exclude-secret"}
    return f"{flags.get(name, '--' + name)} ({name}=...)"


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(repr, value))
    return repr(value) if isinstance(value, str) else show(value)
