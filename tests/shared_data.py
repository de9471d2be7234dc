# SPDX-License-Identifier: Apache-2.0
"""The one way for a test to reach files that are too large, or not ours, to be committed.

They are looked for in a folder `shared` beside the checkout, or where the environment variable
`PUFFERFISH_SHARED` says. A test that needs one is skipped, with the reason, where it is absent:

    def test_census(): table = require_shared("data", "adult.data.gz")
"""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


def shared_path(*parts: str) -> Path | None:
    """Path of a file or folder of the shared folder, or None where there is no such thing."""
    given = os.environ.get("PUFFERFISH_SHARED")
    folder = Path(given) if given else CHECKOUT.parent / "shared"
    path = folder.joinpath(*parts)
    return path if path.exists() else None


def require_shared(*parts: str) -> Path:
    """Like `shared_path`, but skips the running test where the file is absent."""
    path = shared_path(*parts)
    if path is None:
        pytest.skip(f"needs {'/'.join(parts)} in a folder 'shared' beside the checkout")
    return path
