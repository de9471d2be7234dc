# SPDX-License-Identifier: Apache-2.0
"""Whole-or-nothing files, and strict JSON."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pufferfish.errors import InputError

_BUFFER = 1 << 20
#: Less the umask, the mode that any new file gets.
ANY_NEW_FILE = 0o666
#: Readable and writable by its owner only.
PRIVATE = 0o600
#: A JSON file of more bytes is refused before it is read.
MOST_BYTES = 1 << 28


def checked_target(
    output: str | Path, source: Path | None, force: bool, inputs: Iterable[str | Path] = ()
) -> Path:
    """Return the file that an output path means, links followed, after every check that is free.

    It must be none of the inputs, nor a folder or special file, in a folder that exists, and new
    unless ``force`` is set.
    """
    fault = None
    try:
        target = Path(os.path.realpath(output))
        known = next((path for path in map(Path, inputs) if _is_file(target, path)), None)
        if source is not None and _is_file(target, source):
            fault = f"the output {output} is the input itself; give another name"
        elif known is not None:
            fault = f"the output {output} is {known}, which the release needs; give another name"
        elif str(output) == "-":
            fault = "cannot write -: give the name of a file"
        elif target.is_dir():
            fault = f"cannot write {output}: it is a folder"
        elif not target.parent.is_dir():
            fault = f"cannot write {output}: the folder {target.parent} does not exist"
        elif target.exists() and not target.is_file():
            fault = f"cannot write {output}: it is not a plain file"
        elif target.exists() and not force:
            raise _exists(output)
    except OSError as error:
        raise cannot_write(output, error) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        fault = f"cannot write {str(output)!r}: {error}"  # a name that no file can have
    else:
        if fault is None:
            return target
    raise InputError(fault)


def home_expanded(path: Path) -> Path:
    """Return a path with its home folder in full, where ``~`` stands alone and is known."""
    try:
        return path.expanduser() if path.parts[:1] == ("~",) else path
    except RuntimeError:
        return path


def _is_file(target: Path, path: Path) -> bool:
    return any(
        target == Path(os.path.realpath(known))
        or (target.exists() and known.exists() and target.samefile(known))
        for known in (path, home_expanded(path))
    )


class PendingFile:
    """A new file under a temporary name in the same folder; a context manager.

    Leaving the context without :meth:`publish` removes it, whatever the reason. A process that is
    killed outright leaves at most the temporary name behind, never a part under the real one.
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
        try:
            descriptor = _created(self._temporary, self.mode)
        except OSError as error:
            raise cannot_write(self.target, error) from None
        self.file: BinaryIO = os.fdopen(descriptor, "wb", buffering=_BUFFER)
        return self

    def publish(self) -> None:
        """Put the complete file in its place: on the disk first, then under its name."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        if not self.force:
            self._name_once()
        elif self.target.is_dir():
            raise InputError(f"cannot write {self.target}: it is a folder")
        else:
            os.replace(self._temporary, self.target)
        with contextlib.suppress(OSError):  # the name survives a power cut, where the system can
            descriptor = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _name_once(self) -> None:
        """Give the file its name in one step that fails where the name is taken.

        Where the file system has no links, an empty file takes the name first. Replacing any file
        that was not there a moment ago would be simpler, but wrong: another process may have made
        it in that moment.
        """
        try:
            os.link(self._temporary, self.target)
        except FileExistsError:
            raise _exists(self.target) from None
        except OSError:
            os.close(_created(self.target, self.mode))
        else:
            return
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
    try:
        return os.open(path, flags, mode)
    except FileExistsError:
        raise _exists(path) from None


def _exists(output: str | Path) -> InputError:
    return InputError(
        f"{output} exists already; give another name, or --force (force=True) to replace it"
    )


def write_whole(
    output: str | Path, data: bytes, *, force: bool = False, mode: int = ANY_NEW_FILE
) -> None:
    """Write a file that fits into memory; an existing one is replaced only with ``force``."""
    target = checked_target(output, None, force)
    try:
        with PendingFile(target, force, mode) as pending:
            pending.file.write(data)
            pending.publish()
    except OSError as error:
        raise cannot_write(output, error) from None


def write_json(
    output: str | Path, data: Mapping[str, Any], *, force: bool = False, mode: int = ANY_NEW_FILE
) -> None:
    """Write JSON values, whole or not at all."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{output} cannot be written: a name in it holds half a character (a surrogate)"
        ) from None
    write_whole(output, content, force=force, mode=mode)


def read_strict(path: Path, what: str, *, exact: bool = False) -> Any:
    """Read a JSON file; repeated keys, NaN, infinity and all but plain files are refused.

    Where it is to be ``exact``, numbers stay the texts that they are written as.
    """
    fault = text = ""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            fault = "it is a folder"
        elif not stat.S_ISREG(status.st_mode):
            fault = "it is not a plain file"
        elif status.st_size > MOST_BYTES:
            fault = f"it has {status.st_size:,} bytes, more than {MOST_BYTES:,}"
        else:
            text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        fault = error.strerror or str(error)
    except UnicodeDecodeError:
        fault = "it is not UTF-8 text"
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{what} {str(path)!r} cannot be read: {error}") from None
    if fault:
        raise InputError(f"{what} {path} cannot be read: {fault}")
    numbers: dict[str, Any] = {"parse_float": str, "parse_int": str} if exact else {}
    try:
        return parse_strict(text, **numbers)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} {path} is not valid JSON: {error}") from None


def parse_strict(text: str, **options: Any) -> Any:
    """Return the values of a JSON text; a ValueError says what is wrong with it."""
    return json.loads(
        text, object_pairs_hook=_without_repetitions, parse_constant=_no_constant, **options
    )


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the key {key!r} occurs twice")
        data[key] = value
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
