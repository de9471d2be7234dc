# SPDX-License-Identifier: Apache-2.0
"""Joint rules: how several public columns and the secret are cleaned, each by rules of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pufferfish.errors import InputError, listed
from pufferfish.jointinput import per_column
from pufferfish.product import check_columns
from pufferfish.tables.rules import Rules, make_rules


@dataclass(frozen=True)
class JointRules:
    """How the cells of several columns become secrets and public values.

    Attributes
    ----------
    columns : tuple of Rules
        Those of each public column, all with the same secret column; a plan for one of them has
        the same. Their ``missing`` is about the public column here, not about the secret.
    missing : tuple of str
        Texts that mean "missing" in the column of the secret.
    exclude_secrets : tuple of str
        Secrets that are left out of the prior.
    unit : str or None
        The column whose equal values mark the rows of one person.
    """

    columns: tuple[Rules, ...]
    missing: tuple[str, ...] = ()
    exclude_secrets: tuple[str, ...] = ()
    unit: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the public columns."""
        return tuple(rules.public for rules in self.columns)

    @cached_property
    def secret(self) -> Rules:
        """The rules of the secret column; its ``public`` names all the public columns."""
        return Rules(
            self.columns[0].secret,
            ", ".join(self.names),
            missing=self.missing,
            exclude_secrets=self.exclude_secrets,
            unit=self.unit,
        )

    @classmethod
    def of(cls, columns: Sequence[Rules]) -> "JointRules":
        """Return the joint rules that clean every column as its own rules do.

        A text that means a missing secret in one of them does so in all.

        Parameters
        ----------
        columns : sequence of Rules
            Such as those of the plans of several columns of one table.

        Raises
        ------
        InputError
            If they are about different secrets or units, leave out different secrets, or two are
            about one column.
        """
        check_columns([rules.public for rules in columns])
        first = columns[0]
        for other in columns[1:]:
            if other.secret != first.secret:
                raise InputError(
                    f"columns are counted together about one secret, but the secret is "
                    f"{first.secret!r} for {first.public!r} and {other.secret!r} for "
                    f"{other.public!r}"
                )
            if set(other.exclude_secrets) != set(first.exclude_secrets):
                raise InputError(
                    f"{first.public!r} and {other.public!r} leave out different secrets "
                    f"({_names(first)} and {_names(other)}), so they cannot be counted together"
                )
            if other.unit != first.unit:
                raise InputError(
                    f"columns are counted together by one unit, but the unit is {first.unit!r} for "
                    f"{first.public!r} and {other.unit!r} for {other.public!r}"
                )
        absent = dict.fromkeys(text for rules in columns for text in rules.missing)
        return cls(tuple(columns), tuple(absent), first.exclude_secrets, first.unit)


def make_joint_rules(
    *,
    secret: str,
    public: Iterable[str],
    order: Any = None,
    levels: Any = None,
    missing: Iterable[Any] | Mapping[str, Iterable[Any]] | None = (),
    exclude_secrets: Iterable[Any] | None = (),
    step: Any = None,
    support: Any = None,
    missing_as_level: bool | Mapping[str, bool] = False,
    unit: Any = None,
) -> JointRules:
    """Return checked rules of several columns; see :func:`make_rules` for what each one means.

    Parameters
    ----------
    secret : str
        The column of the secret.
    public : iterable of str
        The public columns; their order is that of the axes.
    order, levels, step, support : mapping ``{column: option}``, optional
        For a single column the option alone will do.
    missing : iterable of str, or mapping ``{column: texts}``
        Texts that mean "missing": in all columns and in the secret, or in those named.
    exclude_secrets : iterable of str
        Secrets that are left out.
    missing_as_level : bool, or mapping ``{column: bool}``
        For all columns, or for those named.
    unit : str, optional
        The column whose equal values mark the rows of one person.

    Raises
    ------
    InputError
        If an option is for no column, and where :func:`make_rules` does.
    """
    columns = check_columns(list(public))
    options: dict[str, dict[str, Any]] = {
        "order": per_column(order, columns, "order"),
        "levels": per_column(levels, columns, "levels"),
        "step": per_column(step, columns, "step"),
        "support": per_column(support, columns, "support"),
        "missing_as_level": per_column(missing_as_level, columns, "missing_as_level")
        if isinstance(missing_as_level, Mapping)
        else dict.fromkeys(columns, missing_as_level),
    }
    own_name = secret.strip() if isinstance(secret, str) else ""
    if isinstance(missing, Mapping):
        absent = per_column(missing, [*columns, own_name], "missing")
    else:
        texts = (missing,) if isinstance(missing, str) else tuple(missing or ())
        absent = dict.fromkeys([*columns, own_name], texts)
    rules = [
        make_rules(
            secret=secret,
            public=column,
            missing=absent.get(column),
            exclude_secrets=exclude_secrets,
            unit=unit,
            **{what: given[column] for what, given in options.items() if column in given},
        )
        for column in columns
    ]
    own = make_rules(secret=secret, public=columns[0], missing=absent.get(own_name))
    return JointRules(tuple(rules), own.missing, rules[0].exclude_secrets, rules[0].unit)


def _names(rules: Rules) -> str:
    return listed(map(repr, rules.exclude_secrets)) or "none"
