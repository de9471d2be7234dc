# SPDX-License-Identifier: Apache-2.0
"""Errors are one line each, and lists of names cannot be misread."""

import pytest

from pufferfish.errors import (
    CheckFailed,
    InputError,
    counted,
    did_you_mean,
    joined,
    listed,
    listed_pairs,
    quoted,
)


def test_exit_statuses() -> None:
    assert (InputError("x").exit_status, CheckFailed("x").exit_status) == (2, 1)
    assert isinstance(InputError("x"), ValueError)


@pytest.mark.parametrize(
    "name, shown",
    [
        ("c", "c"), ("Größe 2", "Größe 2"), ("c, d", "'c, d'"), ("it's", '"it\'s"'),
        ('say "x"', "'say \"x\"'"), (" c", "' c'"), ("c ", "'c '"), ("", "''"), ("a\nb", "'a\\nb'"),
        ("\x1b[31m", "'\\x1b[31m'"), ("x" * 61, "x" * 57 + "..."),
    ],
)  # fmt: skip
def test_names_that_could_be_misread_are_quoted(name: str, shown: str) -> None:
    assert quoted(name) == shown
    assert listed([name, "b"]) == f"{shown}, b"


def test_long_lists_are_cut() -> None:
    names = [f"n{k}" for k in range(248)]
    assert listed(names) == "n0, n1, n2, n3, n4, n5, n6, n7 and 240 more"
    assert listed(names[:8]) == "n0, n1, n2, n3, n4, n5, n6, n7"
    assert (listed(iter("abc"), limit=2), listed([])) == ("a, b and 1 more", "")


def test_only_what_is_shown_of_a_list_is_named() -> None:
    named: list[int] = []

    def name(k: int) -> str:
        named.append(k)
        return f"n {k},"

    assert listed(range(500_000), limit=2, name=name) == "'n 0,', 'n 1,' and 499998 more"
    assert joined(iter(range(9)), limit=1, text=name) == "n 0, and 8 more"
    assert named == [0, 1, 0]
    assert listed_pairs([("a", "b"), ("a, c", "d")], limit=1) == "(a, b) and 1 more"


def test_near_matches_and_plurals() -> None:
    near = [did_you_mean(word, ["ward", "days"]) for word in ("WRAD", "zzz")]
    assert near == [" (did you mean 'ward'?)", ""]
    assert [counted(k, "row") for k in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
