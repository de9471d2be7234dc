# SPDX-License-Identifier: Apache-2.0
"""A session without its own processes, and a table of students."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer_cases import Session, commands_inside, student_table


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
