# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all, and JSON is read strictly."""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pufferfish import files
from pufferfish.errors import InputError
from pufferfish.files import (
    PRIVATE,
    PendingFile,
    checked_target,
    hidden_folder,
    publish_parts,
    read_strict,
    write_json,
    write_whole,
)  # fmt: skip
from release_cases import names


def test_an_unfinished_file_leaves_nothing(tmp_path: Path) -> None:
    with PendingFile(tmp_path / "out") as pending:
        pending.file.write(b"half")
        assert names(tmp_path) != []
    assert names(tmp_path) == []
    with PendingFile(tmp_path / "out") as pending:
        pending.file.write(b"whole")
        pending.publish()
    assert (tmp_path / "out").read_bytes() == b"whole"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("links", [True, False])
def test_of_two_writers_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def no_links(*paths: Any) -> None:
        raise OSError(95, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with PendingFile(tmp_path / "out") as one, PendingFile(tmp_path / "out") as two:
        one.file.write(b"one")
        two.file.write(b"two")
        one.publish()
        with pytest.raises(InputError, match="exists already"):
            two.publish()
    assert (tmp_path / "out").read_bytes() == b"one"
    assert names(tmp_path) == ["out"]


def loses_a_file(tmp_path: Path) -> bool:
    """Whether a file that appears at the last moment is replaced."""
    target = tmp_path / "out"
    with PendingFile(target) as pending, suppress(InputError):
        target.write_bytes(b"precious")
        pending.publish()
    return target.read_bytes() != b"precious"


def test_a_file_that_appears_late_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not loses_a_file(tmp_path)
    monkeypatch.setattr(os, "link", os.replace)  # the mutant
    assert loses_a_file(tmp_path)


def test_a_name_that_was_claimed_in_vain_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*paths: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"cannot write .*out: Input/output error"):
        write_whole(tmp_path / "out", b"x")
    assert names(tmp_path) == []


def test_file_and_folder_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    write_whole(tmp_path / "out", b"x")
    assert synced == [False, True]


def test_force_replaces_files_and_never_folders(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_whole(target, b"old")
    with pytest.raises(InputError, match=r"exists already; .* --force \(force=True\)"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    write_whole(target, b"new", force=True)
    assert target.read_bytes() == b"new"
    with PendingFile(tmp_path / "folder", force=True) as pending:
        (tmp_path / "folder").mkdir()
        with pytest.raises(IsADirectoryError):
            pending.publish()
    assert names(tmp_path) == ["folder", "out"]


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("x\n1\n")
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    (tmp_path / "link").symlink_to(source)
    os.mkfifo(tmp_path / "pipe")
    for output, message in (
        (source, "is the input itself"),
        (tmp_path / "link", "is the input itself"),
        (plan, "plan.json.; give another name"),
        (tmp_path, "it is a folder"),
        (tmp_path / "nowhere" / "x", "nowhere does not exist"),
        (tmp_path / "pipe", "not a plain file"),
        (tmp_path / "a\0b", "the name of a file is needed"),
        ("\ud800", "the name of a file is needed"),
        (None, "the name of a file is needed"),
        (source / "x", "cannot write|does not exist"),
    ):
        with pytest.raises(InputError, match=message):
            checked_target(output, True, [source, plan])
    no: Any = "no"
    with pytest.raises(InputError, match="force must be True or False"):
        checked_target(source / "x", no)
    new = checked_target(tmp_path / "new", False, [source, None])
    assert new == tmp_path / "new"
    with pytest.raises(InputError, match=r"File name too long"):
        checked_target("x" * 300, False)


def test_links_are_followed_and_names_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"
    for name in ("p" * 250, "😀" * 60):
        write_whole(tmp_path / name, b"x")


def test_private_json_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    mask = os.umask(0o022)
    try:
        write_json(path, {"a": "é"}, mode=PRIVATE)
        write_json(tmp_path / "record.json", {"a": 1})
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "record.json").stat().st_mode) == 0o644
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é"}
    path.chmod(0o644)
    write_json(path, {}, force=True, mode=PRIVATE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_json(tmp_path / "odd", {"a": "\ud800é"})
    assert read_strict(tmp_path / "odd", "it") == {"a": "\ud800é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "odd", {"a": float("inf")})
    assert names(tmp_path) == ["odd", "plan.json", "record.json"]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "as JSON"), (b'{"scale": NaN}', "NaN"), (b'{"scale": -Infinity}', "Infinity"),
        (b'{"scale": 1, "scale": 2}', "'scale' occurs twice"),
        (b'[{"a": {"b": 1, "b": 1}}]', "'b' occurs twice"), (b"\xff\xfe", "utf-8"),
        (b"[" * 100_000, "recursion"), (b"1" * 5000, "digits"),
    ],
    ids=lambda value: repr(value)[:25],
)  # fmt: skip
def test_json_that_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_strict(path, "the plan")


def test_what_is_read_is_a_plain_file_of_some_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1, 0.10]}')
    assert read_strict(path, "the plan") == {"a": [1, 0.1]}
    assert read_strict(path, "the plan", exact=True) == {"a": ["1", "0.10"]}
    os.mkfifo(tmp_path / "pipe")
    for odd, message in (
        *((odd, "cannot be read .*not a plain file")
          for odd in (Path("/dev/zero"), tmp_path / "pipe", tmp_path)),
        (tmp_path / "other", "there is no file .*other"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"the costs.* {message}"):
            read_strict(odd, "the costs")
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="of at most 10 bytes"):
        read_strict(path, "the plan")


# ---- folders of parts -------------------------------------------------------------------------


def test_stragglers_write_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, remove = tmp_path / "out", files.shutil.rmtree

    def late(gone: Path, **options: Any) -> None:
        with pytest.raises(FileNotFoundError):
            (folder / "e").touch()
        remove(gone, **options)

    monkeypatch.setattr(files.shutil, "rmtree", late)
    with hidden_folder(out) as folder:
        assert names(tmp_path)[0].startswith(".out.")
        for name in "abc":
            (folder / name).write_text(name)
        publish_parts(folder, ["b", "a"], out)
        (folder / "d").touch()
    assert names(tmp_path) == ["out"]
    assert [path.read_text() for path in sorted(out.iterdir())] == ["b", "a"]


def test_of_two_folders_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the other one comes between the last look and the naming."""
    out = tmp_path / "out"
    monkeypatch.setattr(files, "checked_target", lambda *_: out)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    for name in "ab":
        with suppress(OSError), hidden_folder(out) as folder:
            (folder / name).write_text(name)
            publish_parts(folder, [name], out)
    assert names(tmp_path) == ["out"]
    assert [path.read_text() for path in out.iterdir()] == ["a"]


def test_a_part_that_is_gone_publishes_nothing(tmp_path: Path) -> None:
    with hidden_folder(tmp_path / "out") as folder:
        (folder / "a").touch()
        with pytest.raises(FileNotFoundError):
            publish_parts(folder, ["a", "b"], tmp_path / "out")
    assert names(tmp_path) == []
