# SPDX-License-Identifier: Apache-2.0
"""Prior files: every digit counts, and what is none is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from pufferfish.errors import InputError
from pufferfish.priors.prior import read_prior_file
from pufferfish.support import Lattice, Levels


def test_prior_files(tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    path.write_text('{"secrets": {"a": {"0": 0.10000000000000000001, "1": ".9"}, " b": {"0": 1}}}')
    prior, pairs = read_prior_file(path)
    assert pairs is None
    assert prior.secrets == ("a", "b")
    assert prior.notes != ()  # every digit counts
    path.write_text('{"secrets": {"a": {"hi": 1}, "b": {"lo": 1}}, "pairs": [["a ", "b"]]}')
    prior, pairs = read_prior_file(path, order=["lo", "hi"])
    assert pairs == [("a", "b")]
    assert prior.support == Levels(("lo", "hi"), ordered=True)
    path.write_text('{"secrets": {"a": {"0.1": 1}, "b": {"0.9": 1}}}')
    support = read_prior_file(path, step=1)[0].support
    assert isinstance(support, Lattice)
    assert support.values == (0, 1)


@pytest.mark.parametrize(
    "data, message",
    [
        ([1], "is not like .*Expected `object`"),
        ({"secret": {}}, "unknown field `secret`"), ({}, "missing required field `secrets`"),
        ({"secrets": {"a": {"0": 1}}, "pairs": [["a"]]}, r"at `\$.pairs"),
        ({"secrets": {"a": {"0": 1}}, "pairs": [["a", None]]}, r"at `\$.pairs"),
        ({"secrets": {"a": {"0": 0.5}}}, "'a' sum to 0.5"),
        ({"secrets": {"a": {"0": True}}}, "must be a number"),
        ({"secrets": {"a": {"0": None}}}, "must be a number"),
    ],
)  # fmt: skip
def test_prior_files_that_are_none(tmp_path: Path, data: Any, message: str) -> None:
    path = tmp_path / "prior.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        read_prior_file(path)
    with pytest.raises(InputError, match="there is no file"):
        read_prior_file(tmp_path / "other.json")
