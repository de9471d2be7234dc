# SPDX-License-Identifier: Apache-2.0
"""Plots of priors, plans and estimates, as matplotlib figures (extra ``plots``).

Each function computes what it draws from its arguments alone and returns a ``Figure``, which
``savefig`` writes to a file and a notebook shows. Nothing opens a window. ``shares`` draws P(X|S)
and estimated frequencies, ``matrices`` the transport plan and the channel, ``losses`` noise, loss
and beliefs; ``style`` is how all of them look, and writes SVG for a page.
"""

from pufferfish.plots.losses import belief, loss, noise
from pufferfish.plots.matrices import channel, transport
from pufferfish.plots.shares import distributions, frequencies
from pufferfish.plots.style import svg

__all__ = [
    "belief", "channel", "distributions", "frequencies", "loss", "noise", "svg", "transport",
]  # fmt: skip
