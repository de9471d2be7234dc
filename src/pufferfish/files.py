# SPDX-License-Identifier: Apache-2.0
"""Whole-or-nothing files, and strict JSON."""

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO
from pufferfish.errors import InputError
from __future__ import annotations
import json
import math
from collections.abc import Mapping
from typing import Any

_BUFFER = 1 << 20
#: Less the umask, the mode that any new file gets.
ANY_NEW_FILE = 0o666
#: Readable and writable by its owner only.
PRIVATE = 0o600


def write_whole(
    output: str | Path, data: bytes, *, force: bool = False, mode: int = ANY_NEW_FILE
) -> None:
    """Write a file that fits into memory.

    Parameters
    ----------
    output : str or Path
        Where to; a link is followed.
    data : bytes
        All that it holds.
    force : bool
        Whether an existing file is replaced.
    mode : int
        Its permissions, less the umask.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or it cannot be written.
    """
    target = checked_target(output, None, force)
    try:
        with PendingFile(target, force, mode) as pending:
            pending.file.write(data)
            pending.publish()
    except OSError as error:
        raise cannot_write(output, error) from None


def checked_target(
    output: str | Path, source: Path | None, force: bool, inputs: Iterable[str | Path] = ()
) -> Path:
    """Return the file that an output path means, links followed, after every check that is free.

    Parameters
    ----------
    output : str or Path
        Where to write.
    source : Path or None
        The file that is read, which the output must not be.
    force : bool
        Whether an existing file may be replaced.
    inputs : iterable of str or Path
        Further files that are read, such as a plan, which the output must not be either.

    Raises
    ------
    InputError
        If it is an input, a folder, no plain file, in a folder that does not exist, or exists
        already.
    """
    target = Path(os.path.realpath(output))
    try:
        if source is not None and _is_file(target, source):
            raise InputError(f"the output {output} is the input itself; give another name")
        for path in inputs:
            if _is_file(target, Path(path)):
                raise InputError(
                    f"the output {output} is {path}, which the release needs; give another name"
                )
        if target.is_dir():
            raise _folder(output)
        if not target.parent.is_dir():
            raise InputError(f"cannot write {output}: the folder {target.parent} does not exist")
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {output}: it is not a plain file")
        if target.exists() and not force:
            raise _exists(output)
    except OSError as error:
        raise cannot_write(output, error) from None
    return target


def home_expanded(path: Path) -> Path:
    """Return a path with its home folder in full, as tables are opened.

    A leading ``~`` is a home folder only where it stands alone (``~x.csv`` is a name like others)
    and somebody knows which one.
    """
    try:
        return path.expanduser() if path.parts[:1] == ("~",) else path
    except RuntimeError:
        return path


def _is_file(target: Path, path: Path) -> bool:
    """Whether a path, as it stands or with its home folder in full, leads to a file."""
    return any(
        target == Path(os.path.realpath(known))
        or (target.exists() and known.exists() and target.samefile(known))
        for known in (path, home_expanded(path))
    )


class PendingFile:
    """A new file under a temporary name in the same folder; a context manager.

    Leaving the context without :meth:`publish` removes it, whatever the reason. A process that is
    killed outright leaves at most the temporary name behind, never a part under the real one.

    Parameters
    ----------
    target : Path
        The file's name once it is complete, from :func:`checked_target`.
    force : bool
        Whether a file of that name is replaced. Without it none ever is, whenever it appeared: of
        several processes that write under one name, exactly one succeeds.
    mode : int
        Its permissions, less the umask.
    """

    def __init__(self, target: Path, force: bool = False, mode: int = ANY_NEW_FILE) -> None:
        self.target = target
        self.force = force
        self.mode = mode

    def __enter__(self) -> "PendingFile":
        name = f".{self.target.name[:40]}.{secrets.token_hex(8)}.part"
        self._temporary = self.target.with_name(name)
        try:
            descriptor = _created(self._temporary, self.mode)
        except OSError as error:
            raise cannot_write(self.target, error) from None
        self.file: BinaryIO = os.fdopen(descriptor, "wb", buffering=_BUFFER)
        return self

    def publish(self) -> None:
        """Put the complete file in its place: on the disk first, then under its name.

        Raises
        ------
        InputError
            If meanwhile somebody made a file of that name, and it must not be replaced, or a
            folder, which never is.
        OSError
            If the disk is full or fails.
        """
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        if not self.force:
            self._name_once()
        elif self.target.is_dir():
            raise _folder(self.target)
        else:
            os.replace(self._temporary, self.target)
        _sync_folder(self.target.parent)

    def _name_once(self) -> None:
        """Give the file its name in one step that fails where the name is taken."""
        try:
            os.link(self._temporary, self.target)
        except FileExistsError:
            raise _exists(self.target) from None
        except OSError:
            self._claim_name()

    def _claim_name(self) -> None:
        """Do the same where the file system has no links: an empty file takes the name first.

        Replacing any file that was not there a moment ago would be simpler, but wrong: another
        process may have made it in that moment.
        """
        try:
            os.close(_created(self.target, self.mode))
        except FileExistsError:
            raise _exists(self.target) from None
        try:
            os.replace(self._temporary, self.target)
        except BaseException:
            self.target.unlink(missing_ok=True)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):  # a full disk fails again when the rest is flushed
            self.file.close()
        with contextlib.suppress(FileNotFoundError):
            self._temporary.unlink()


def cannot_write(output: str | Path, error: OSError) -> InputError:
    """Return the one line that says why an output cannot be written."""
    return InputError(f"cannot write {output}: {error.strerror or error}; nothing was written")


def _created(path: Path, mode: int) -> int:
    """Return the descriptor of a file that did not exist before."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, mode)


def _exists(output: str | Path) -> InputError:
    return InputError(
        f"{output} exists already; give another name, or --force (force=True) to replace it"
    )


def _folder(output: str | Path) -> InputError:
    return InputError(f"cannot write {output}: it is a folder")


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_private(data: Mapping[str, Any], path: Path, force: bool) -> None:
    """Write JSON values into a file that only its owner can read (mode 0600).

    Parameters
    ----------
    data : mapping
        JSON values; no NaN or infinity.
    path : Path
        Where to.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the file exists and ``force`` is not set, or it cannot be written.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path} cannot be written: a name in it holds half a character (a surrogate)"
        ) from None
    write_whole(path, content, force=force, mode=PRIVATE)


def read_strict(path: Path, what: str) -> Any:
    """Read a JSON file; repeated keys, NaN and infinity are refused.

    Raises
    ------
    InputError
        If it cannot be read, or is no such JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{what} {path} cannot be read: it is not UTF-8 text") from None
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{what} {str(path)!r} cannot be read: {error}") from None
    try:
        return json.loads(text, object_pairs_hook=_without_repetitions, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} {path} is not valid JSON: {error}") from None


def entry(data: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return an entry of an object, checked to be of a kind.

    Raises
    ------
    InputError
        If it is missing or of another kind.
    """
    value = data.get(key)
    if not isinstance(value, kind):
        raise InputError(f"its {key!r} is missing or not of the right kind")
    return value


def number(data: Mapping[str, Any], key: str) -> float:
    """Return an entry that is a finite number, not negative.

    Raises
    ------
    InputError
        If it is missing or something else.
    """
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"its {key} must be one JSON number, but it is {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or found < 0:
        raise InputError(f"its {key} must be a finite number, not negative, but it is {value!r}")
    return found


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return an entry that is a list of texts.

    Raises
    ------
    InputError
        If it is missing or holds something else.
    """
    values = entry(data, key, list)
    if not all(isinstance(value, str) for value in values):
        raise InputError(f"its {key!r} must be a list of texts")
    return tuple(values)


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
