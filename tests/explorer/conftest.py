# SPDX-License-Identifier: Apache-2.0
"""A session without its own processes, and a table of students."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer_cases import Session, commands_inside, student_table
from pufferfish.errors import PufferfishWarning


@pytest.fixture
def session(tmp_path: Path) -> Session:
    folder = tmp_path / "session"
    folder.mkdir()
    return Session(folder)


@pytest.fixture
def inside() -> Iterator[list[list[str]]]:
    with commands_inside() as ran:
        yield ran


@pytest.fixture
def table(session: Session) -> str:
    return session.upload(student_table(), name="student.csv")


@pytest.fixture(autouse=True)
def pages_show_warnings() -> None:
    """As the command does: what a table should be warned of stands on its page."""
    warnings.simplefilter("ignore", PufferfishWarning)
