# SPDX-License-Identifier: Apache-2.0
"""FLINT's working precision, one thread at a time.

FLINT keeps one precision (and one number of terms of a power series) for the whole process. A ball
stays true whatever they are, but it may be too wide to say anything, and code that looks at its
midpoint would go astray. So whoever needs a precision holds it until done: other threads wait.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

_lock = threading.RLock()


@contextmanager
def precision(bits: int, terms: int | None = None) -> Iterator[None]:
    """Work at a precision of so many bits, alone, then put the old one back.

    Parameters
    ----------
    bits : int
        The working precision.
    terms : int, optional
        Power series keep at least so many terms.
    """
    with _lock:
        before = ctx.prec, ctx.cap
        ctx.prec = bits
        if terms is not None:
            ctx.cap = max(terms, ctx.cap)
        try:
            yield
        finally:
            ctx.prec, ctx.cap = before


# A process forked while another thread held the lock would wait for a thread that it has not got.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
