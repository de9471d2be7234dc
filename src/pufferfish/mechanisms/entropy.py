# SPDX-License-Identifier: Apache-2.0
"""Random bits from the operating system, fresh in every process."""

import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError

#: A source of random bytes: asked for ``n`` of them, it returns exactly ``n``.
Entropy = Callable[[int], bytes]


class EntropyStuck(InputError):
    """A source of entropy gave a row of words that random ones give less than once in 1e300."""

    def __init__(self) -> None:
        super().__init__("the source of entropy repeats itself; noise cannot be drawn from it")


def system_entropy(count: int) -> bytes:
    """Return bytes of the operating system's cryptographic generator; none is kept for later."""
    return os.urandom(count)


def seeded_entropy(seed: int) -> Entropy:
    """Return a source that repeats itself for the same seed: for tests only, it protects nobody.

    It hashes the seed and the number of calls before (SHAKE-256), the same on every machine.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise InputError(f"seed must be an integer, but {seed!r} was given")
    calls = 0

    def entropy(count: int) -> bytes:
        nonlocal calls
        calls += 1
        return hashlib.shake_256(f"{int(seed)}/{calls}".encode()).digest(count)

    return entropy


def read_words(entropy: Entropy, count: int, kind: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """Return ``count`` uniformly random words of an unsigned NumPy type."""
    dtype = np.dtype(kind)
    size = count * dtype.itemsize
    data = entropy(size)
    if len(data) != size:
        raise InputError(
            f"a source of entropy must give the {size} bytes it was asked for, not {len(data)}"
        )
    # Little-endian everywhere, so that a seed means the same noise on every machine.
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False)
