# SPDX-License-Identifier: Apache-2.0
"""What every plan assumes and says of itself (theory, section 7)."""

#: What every plan says that knows no unit (theory, section 6).
EACH_ROW = " Each row is taken as a person of its own (--unit COL if not)."
_FROM_TABLE = (
    "The prior is taken as public knowledge. This plan depends on every row of the table that it "
    "was calibrated on: keep it private, or calibrate on a table that may be public. The losses of "
    "several releases do not add up."
)
#: What every plan from a table says (theory, section 7).
ASSUMPTION = _FROM_TABLE + EACH_ROW
_FROM_GIVEN = (
    "The guarantee is against adversaries with the given prior, for rows that are independent "
    "given it. This plan was computed from the given prior and is as private as that prior. The "
    "losses of several releases do not add up."
)
#: What a plan from a given prior says.
GIVEN_PRIOR = _FROM_GIVEN + EACH_ROW


def assumption(from_rows: bool, unit: str | None) -> str:
    """Return what a guarantee assumes, and how private the plan itself is.

    Parameters
    ----------
    from_rows : bool
        Whether the prior was counted from rows of a table.
    unit : str or None
        The column whose equal values mark the rows of one person.
    """
    said = _FROM_TABLE if from_rows else _FROM_GIVEN
    if unit is None:
        return said + EACH_ROW
    return (
        f"{said} The rows with the same {unit!r} are taken as one person's, in the order of "
        "the table; how many rows a person has is not protected."
    )
