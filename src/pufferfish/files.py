# SPDX-License-Identifier: Apache-2.0
"""Whole-or-nothing files, and strict JSON."""

import contextlib
import json
import os
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO

from pufferfish.errors import InputError, did_you_mean
from pufferfish.numbers import checked_flag

#: Modes of any new file, less the umask; of one for its owner only; of one that all may read.
ANY_NEW_FILE, PRIVATE, PUBLIC = 0o666, 0o600, 0o644
#: Among inputs: whatever file there is.
ANY_FILE = Path("*")
#: A JSON file of more bytes is refused before it is read.
MOST_BYTES = 1 << 28


def checked_target(
    output: str | Path, force: bool, inputs: Iterable[str | Path | None] = ()
) -> Path:
    """Resolve an output path, and check all that can be checked without writing.

    It must be none of the inputs, nor a folder or special file, in a folder that exists, and new
    unless ``force`` is set.
    """
    checked_flag(force, "force")
    with writing(output):
        target = Path(os.path.realpath(named_path(output)))
        fault = _fault(target, [path for path in inputs if path is not None])
    if fault or str(output) == "-":
        raise InputError(f"cannot write {output}: {fault or 'give the name of a file'}")
    if target.exists() and not force:
        raise _exists(output)
    return target


def _fault(target: Path, inputs: Iterable[str | Path]) -> str:
    """Return why a file cannot be written, or nothing."""
    for given in map(Path, inputs):
        if given == ANY_FILE and target.exists():
            return "it is there already, and a query may read it; give the name of a new file"
        if given != ANY_FILE and not given.exists() and fnmatch(str(target), str(given)):
            return f"it would be one more file of the input {given}; give another name"
        for known in (given, home_expanded(given)):
            if known.exists() and target.exists() and target.samefile(known):
                return f"it is the input itself ({given}); give another name"
    if target.exists() and not target.is_file():
        return "it is a folder" if target.is_dir() else "it is not a plain file"
    return "" if target.parent.is_dir() else f"the folder {target.parent} does not exist"


def named_path(path: Any) -> Path:
    """Return the path of a file, or refuse what no file can be called."""
    with contextlib.suppress(UnicodeEncodeError):
        if isinstance(path, str | Path) and b"\0" not in os.fsencode(path):
            return Path(path)
    raise InputError(f"the name of a file is needed, but {str(path)!r} was given")


def home_expanded(path: Path) -> Path:
    """Return a path with its home folder in full, where ``~`` stands alone and is known."""
    return Path(os.path.expanduser(path)) if path.parts[:1] == ("~",) else path


class PendingFile:
    """A new file under a temporary name in the same folder; a context manager.

    Leaving the context without :meth:`publish` removes it, whatever the reason. A process that is
    killed outright leaves at most the temporary name behind, never a part under the real one; on
    a file system without links, in the moment of naming, at most an empty file there.
    Without ``force`` no file is ever replaced, whenever it appeared: of several processes that
    write under one name, exactly one succeeds.
    """

    def __init__(self, target: Path, force: bool = False, mode: int = ANY_NEW_FILE) -> None:
        self.target = target
        self.force = force
        self.mode = mode

    def __enter__(self) -> "PendingFile":
        name = f".{self.target.name[:40]}.{secrets.token_hex(8)}.part"
        self._temporary = self.target.with_name(name)
        with writing(self.target):
            self.file = self._new(self._temporary)
        return self

    def publish(self) -> None:
        """Put the complete file in its place: on the disk first, then under its name."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        try:
            self._name()
        except FileExistsError:
            raise _exists(self.target) from None
        _sync(self.target.parent)

    def _name(self) -> None:
        """Give the file its name; without ``force`` in one step that fails where it is taken.

        Where the file system has no links, an empty file takes the name first. Replacing any file
        that was not there a moment ago would be simpler, but wrong: another process may have made
        it in that moment.
        """
        if not self.force:
            try:
                os.link(self._temporary, self.target)
                return
            except OSError:  # without links, or the name is taken
                self._new(self.target).close()
        try:
            os.replace(self._temporary, self.target)
        except BaseException:
            if not self.force:
                self.target.unlink(missing_ok=True)
            raise

    def _new(self, path: Path) -> BinaryIO:
        return open(path, "xb", 1 << 20, opener=lambda p, flags: os.open(p, flags, self.mode))

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk fails again when the rest is flushed
            self.file.close()
        self._temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside the target, and remove it at the end with all that is in it."""
    folder = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    folder.mkdir()
    try:
        yield folder
    finally:
        gone = folder.with_suffix(".gone")  # where no straggler adds to it
        with contextlib.suppress(OSError):
            os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


def publish_parts(folder: Path, names: Sequence[str], output: str | Path) -> None:
    """Give a folder of some files of a hidden folder its name, in one step, on the disk first."""
    whole = folder / "whole"
    whole.mkdir()
    for place, name in enumerate(names):
        os.rename(folder / name, whole / f"part-{place:05}.parquet")
    _sync(whole)
    target = checked_target(output, False)  # again: meanwhile the name may be taken
    os.rename(whole, target)
    _sync(target.parent)


@contextlib.contextmanager
def writing(output: str | Path) -> Iterator[None]:
    """Turn a failure of the disk into one line."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"cannot write {output}: {why}; nothing was written") from None


def _exists(output: str | Path) -> InputError:
    return InputError(
        f"{output} exists already; give another name, or --force (force=True) to replace it"
    )


def write_whole(
    output: str | Path, data: bytes, *, force: bool = False, mode: int = ANY_NEW_FILE
) -> None:
    """Write a file that fits into memory; an existing one is replaced only with ``force``."""
    target = checked_target(output, force)
    with writing(output), PendingFile(target, force, mode) as pending:
        pending.file.write(data)
        pending.publish()


def write_json(
    output: str | Path, data: Mapping[str, Any], *, force: bool = False, mode: int = ANY_NEW_FILE
) -> None:
    """Write JSON values, whole or not at all."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    content = text.encode(errors="backslashreplace")  # half a character as JSON writes it: \ud800
    write_whole(output, content, force=force, mode=mode)


def read_strict(path: str | Path, what: str, *, exact: bool = False) -> Any:
    """Read a JSON file; repeated keys, NaN, infinity and all but plain files are refused.

    Where it is to be ``exact``, numbers stay the texts that they are written as.
    """
    numbers: dict[str, Any] = {"parse_float": str, "parse_int": str} if exact else {}
    path = named_path(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise ValueError(f"it is not a plain file of at most {MOST_BYTES:,} bytes")
        return parse_strict(path.read_text(encoding="utf-8-sig"), **numbers)
    except FileNotFoundError:
        raise InputError(f"{what}: {no_file(path)}") from None
    except (OSError, ValueError, RecursionError) as error:
        fault = getattr(error, "strerror", None) or error
        raise InputError(f"{what} {str(path)!r} cannot be read as JSON: {fault}") from None


def no_file(path: Path) -> str:
    """Return that there is no such file, and the nearest name of one beside it."""
    beside = (p.name for p in path.parent.glob("*") if p.is_file())
    return f"there is no file {path}{did_you_mean(path.name, beside)}"


def parse_strict(text: str, **options: Any) -> Any:
    """Return the values of a JSON text; a ValueError says what is wrong with it."""
    return json.loads(
        text, object_pairs_hook=_without_repetitions, parse_constant=_no_constant, **options
    )


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} occurs twice")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
