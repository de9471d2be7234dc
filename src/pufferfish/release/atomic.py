# SPDX-License-Identifier: Apache-2.0
"""A file that appears under its name only when it is complete, or not at all."""

import contextlib
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pufferfish.errors import InputError

_BUFFER = 1 << 20


def checked_target(output: str | Path, source: Path | None, force: bool) -> Path:
    """Return the file that an output path means, links followed, after every check that is free.

    Parameters
    ----------
    output : str or Path
        Where to write.
    source : Path or None
        The file that is read, which the output must not be.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If it is the input, a folder, no plain file, in a folder that does not exist, or exists
        already.
    """
    target = Path(os.path.realpath(output))
    try:
        if source is not None and (
            target == Path(os.path.realpath(source))
            or (target.exists() and source.exists() and target.samefile(source))
        ):
            raise InputError(f"the output {output} is the input itself; give another name")
        if target.is_dir():
            raise InputError(f"cannot write {output}: it is a folder")
        if not target.parent.is_dir():
            raise InputError(f"cannot write {output}: the folder {target.parent} does not exist")
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {output}: it is not a plain file")
        if target.exists() and not force:
            raise _exists(output)
    except OSError as error:
        raise cannot_write(output, error) from None
    return target


class PendingFile:
    """A new file under a temporary name in the same folder; a context manager.

    Leaving the context without :meth:`publish` removes it, whatever the reason. A process that is
    killed outright leaves at most the temporary name behind, never a part under the real one.

    Parameters
    ----------
    target : Path
        The file's name once it is complete, from :func:`checked_target`.
    force : bool
        Whether a file of that name is replaced.
    """

    def __init__(self, target: Path, force: bool = False) -> None:
        self.target = target
        self.force = force

    def __enter__(self) -> "PendingFile":
        name = f".{self.target.name[:40]}.{secrets.token_hex(8)}.part"
        self._temporary = self.target.with_name(name)
        try:
            # 0o666 less the umask: the mode that any new file gets.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            descriptor = os.open(self._temporary, flags, 0o666)
        except OSError as error:
            raise cannot_write(self.target, error) from None
        self.file: BinaryIO = os.fdopen(descriptor, "wb", buffering=_BUFFER)
        return self

    def publish(self) -> None:
        """Put the complete file in its place: on the disk first, then under its name.

        Raises
        ------
        InputError
            If meanwhile somebody made a file of that name, and it must not be replaced.
        OSError
            If the disk is full or fails.
        """
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        if self.force or not self._linked():
            os.replace(self._temporary, self.target)
        _sync_folder(self.target.parent)

    def _linked(self) -> bool:
        """Give the file its name unless that exists, in one step; False where links are unknown."""
        try:
            os.link(self._temporary, self.target)
        except FileExistsError:
            raise _exists(self.target) from None
        except OSError:
            if self.target.exists():
                raise _exists(self.target) from None
            return False
        return True

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


def _exists(output: str | Path) -> InputError:
    return InputError(
        f"{output} exists already; give another name, or --force (force=True) to replace it"
    )


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
