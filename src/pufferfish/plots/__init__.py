# SPDX-License-Identifier: Apache-2.0
"""Plots of priors, plans and estimates, as matplotlib figures (extra ``plots``).

Each function computes what it draws from its arguments alone and returns a ``Figure``, which
``savefig`` writes to a file and a notebook shows. Nothing opens a window. ``figures`` draws them;
``style`` is how all of them look, and writes SVG for a page.
"""

from pufferfish.errors import InputError

try:
    from pufferfish.plots.figures import (
        belief,
        channel,
        distributions,
        frequencies,
        loss,
        noise,
        transport,
    )
    from pufferfish.plots.style import svg
except ImportError as error:
    raise InputError("plots need matplotlib: pip install 'pufferfish-privacy[plots]'") from error

__all__ = [
    "belief", "channel", "distributions", "frequencies", "loss", "noise", "svg", "transport",
]  # fmt: skip
