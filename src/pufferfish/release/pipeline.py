# SPDX-License-Identifier: Apache-2.0
"""Release: table batches to atoms, through the mechanism, into an array, a frame or a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pufferfish.release.report import ReleaseReport
from pufferfish.release.spec import ReleaseSpec

#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A release into a file of which everything that can refuse has been asked."""

    report: ReleaseReport
    digest: str

    @property
    def rows(self) -> int:
        """Rows that will be released."""
        return self.report.rows_released

    def write(self, progress: Progress | None = None) -> ReleaseReport:
        """Draw, write the file, and publish it if the table is still the same."""
        raise NotImplementedError


def prepare(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str | Path] = (),
) -> Prepared:
    """Read a table once and refuse whatever can be refused; nothing is drawn or written."""
    raise NotImplementedError


def release_file(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str | Path] = (),
    before_write: Callable[[Prepared], None] | None = None,
) -> ReleaseReport:
    """Release the public column of a table into a file; with ``before_write`` after a dry pass."""
    raise NotImplementedError


def release_any(
    values: Any,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    seed: int | None = None,
    output: str | Path | None = None,
    force: bool = False,
) -> Any:
    """Release a dataframe, a series, an array or a list; its like comes back."""
    raise NotImplementedError


def check_releasable(spec: ReleaseSpec) -> None:
    """Refuse a mechanism whose results could not be released, whatever the table holds."""
    raise NotImplementedError
