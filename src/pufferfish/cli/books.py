# SPDX-License-Identifier: Apache-2.0
"""What ``pufferfish ledger show`` prints: accounts, their tables, and all releases."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.charging import exact_text, left_words, loss_words, number

if TYPE_CHECKING:
    from pufferfish.ledger.records import Account, ReleaseRecord, TableRecord

CSV_COLUMNS = (
    "sequence", "id", "time", "secret", "table", "columns", "mechanism", "epsilon", "joint_loss",
    "how", "budget", "state",
)  # fmt: skip


def row_of(record: "ReleaseRecord", budget: Fraction | None) -> dict[str, Any]:
    """Return a release as a row of a CSV file (with a budget), or as JSON values."""
    from pufferfish.ledger.account import read_bound

    bound = read_bound(record.bound, record.how)
    row: dict[str, Any] = {
        "sequence": record.sequence,
        "id": record.id,
        "time": record.time,
        "secret": record.secret,
        "table": record.digest,
        "columns": ", ".join(record.columns) if budget is not None else list(record.columns),
        "mechanism": record.mechanism,
        "epsilon": record.epsilon,
        "joint_loss": float(bound),
        "how": record.how,
        "state": record.state,
    }
    if budget is None:
        return row | {"joint_loss_exact": exact_text(bound.value)}
    return row | {"budget": exact_text(budget)}


def detail_to_dict(record: "ReleaseRecord") -> dict[str, Any]:
    """Return what else is remembered of a release; the priors, which are long, only as a number."""
    from pufferfish.ledger.state import Detail

    detail = Detail.from_json(record.detail)
    return {
        "rows": detail.rows,
        "without_value": detail.without_value,
        "without_secret": detail.without_secret,
        "incomplete_rows": detail.incomplete,
        "clamp": detail.clamp,
        "own_prior": detail.own,
    }


def account_to_dict(
    account: "Account", tables: "list[TableRecord]", releases: "list[ReleaseRecord]"
) -> dict[str, Any]:
    """Return an account with its tables as JSON values."""
    from pufferfish.ledger.account import remaining

    found = []
    for table in tables:
        bound, own = _spent(account, table, releases)
        found.append(
            {
                "table": table.digest,
                "rows": table.rows,
                "first_seen": table.first_seen,
                "releases": len(own),
                "joint_loss": float(bound),
                "joint_loss_exact": exact_text(bound.value),
                "left": float(remaining(account.budget, bound)),
            }
        )
    return {
        "secret": account.secret,
        "budget": float(account.budget),
        "budget_exact": exact_text(account.budget),
        "opened": account.opened,
        "tables": found,
    }


def _spent(
    account: "Account", table: "TableRecord", releases: "list[ReleaseRecord]"
) -> tuple[Any, "list[ReleaseRecord]"]:
    from pufferfish.ledger.account import read_bound
    from pufferfish.ledger.price import NOTHING

    own = [r for r in releases if (r.secret, r.digest) == (account.secret, table.digest)]
    return (read_bound(own[-1].bound, own[-1].how) if own else NOTHING), own


def print_books(
    path: str,
    notice: str,
    accounts: "list[Account]",
    tables: "dict[str, list[TableRecord]]",
    releases: "list[ReleaseRecord]",
) -> None:
    """Print accounts with their tables, then all releases, for people."""
    from pufferfish.cli.output import make_table, print_lines, print_table, stdout_console, text
    from pufferfish.errors import counted
    from pufferfish.ledger.account import read_bound, remaining

    console = stdout_console()
    lines = [f"{path}: {counted(len(accounts), 'account')}, {counted(len(releases), 'release')}"]
    budgets = {account.secret: account.budget for account in accounts}
    for account in accounts:
        lines.append(f"secret {account.secret!r}, budget {number(account.budget)}")
        for table in tables[account.secret]:
            bound, own = _spent(account, table, releases)
            lines.append(
                f"  table {table.digest[:12]} ({counted(table.rows, 'row')}): "
                f"{counted(len(own), 'release')}, joint loss at most "
                f"{loss_words(bound, account.budget)}, left "
                f"{left_words(remaining(account.budget, bound), account.budget)}"
            )
            lines += [f"    {line}" for line in _remarks(own)]
        if not tables[account.secret]:
            lines.append("  nothing charged")
    print_lines(console, lines)
    if releases:
        shown = make_table(
            (
                ("no.", "right"), ("id", "left"), ("time", "left"), ("table", "left"),
                ("secret", "text"), ("column", "text"), ("mechanism", "left"), ("epsilon", "right"),
                ("joint loss", "right"), ("how", "text"), ("state", "left"),
            )
        )  # fmt: skip
        for r in releases:
            loss = loss_words(read_bound(r.bound, r.how), budgets[r.secret])
            cells = (
                str(r.sequence), r.id, r.time, r.digest[:12], r.secret, ", ".join(r.columns),
                r.mechanism, r.epsilon, loss, r.how, r.state,
            )  # fmt: skip
            shown.add_row(*(text(cell) for cell in cells))
        console.print()
        print_table(console, shown)
        console.print()
    unfinished = sum(r.state == "charged" for r in releases)
    last = [notice]
    if unfinished:
        last.insert(
            0,
            f"{counted(unfinished, 'release')} charged, but not known to be in place: what failed "
            "or was ended counts all the same",
        )
    print_lines(console, last)


def _remarks(own: "list[ReleaseRecord]") -> list[str]:
    """Return what is to be known of the rows of a table that the joint loss is about."""
    from pufferfish.errors import counted
    from pufferfish.ledger.state import Detail

    if not own:
        return []
    details = [Detail.from_json(record.detail) for record in own]
    lines = []
    if details[-1].without_secret:
        lines.append(
            f"{counted(details[-1].without_secret, 'row')} without a secret: nothing is promised "
            "about these"
        )
    incomplete = max(detail.incomplete for detail in details)
    if incomplete:
        lines.append(
            f"{counted(incomplete, 'row')} without a value in some of the columns: the joint loss "
            "holds for them given which values they lack; that itself is not covered"
        )
    if not all(detail.own for detail in details):
        lines.append(
            "some plans were calibrated for another prior: the joint loss holds for it and for the "
            "counts of this table"
        )
    return lines
