# SPDX-License-Identifier: Apache-2.0
"""Pufferfish privacy: publish a column while a correlated secret stays hidden.

A table becomes a :class:`Prior`; priors and the pairs of secrets make a :class:`Scenario`;
:func:`calibrate` returns a :class:`Plan`, whose ``release`` draws the noise and whose ``verify``
proves the loss again.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pufferfish.errors import CheckFailed, InputError, PufferfishError

if TYPE_CHECKING:
    from pufferfish.calibration.calibrate import calibrate_together
    from pufferfish.calibration.noisy_counts import noisy_counts
    from pufferfish.ledger.ledger import Ledger
    from pufferfish.loss.certificate import Certificate
    from pufferfish.loss.proof import certify, privacy_loss
    from pufferfish.mechanisms.channel import Channel
    from pufferfish.mechanisms.laplace import DiscreteLaplace
    from pufferfish.plans.plan import Plan
    from pufferfish.priors.prior import Prior
    from pufferfish.priors.scenario import Scenario
    from pufferfish.queries.calibrate import calibrate, joint_loss
    from pufferfish.queries.chain import MarkovChain
    from pufferfish.queries.chain_box import ChainBox
    from pufferfish.queries.household import Household
    from pufferfish.queries.plan import QueryPlan
    from pufferfish.queries.query import CountQuery, HistogramQuery, MeanQuery, SumQuery
    from pufferfish.queries.tree import Tree
    from pufferfish.report.compare import compare
    from pufferfish.report.sweep import sweep
    from pufferfish.tables.rules import Rules
    from pufferfish.tables.source import open_table

__version__ = "0.2.0"

# Names are imported when they are first used, so that `import pufferfish` stays quick.
_HOMES = {
    "Certificate": "pufferfish.loss.certificate",
    "ChainBox": "pufferfish.queries.chain_box",
    "Channel": "pufferfish.mechanisms.channel",
    "CountQuery": "pufferfish.queries.query",
    "DiscreteLaplace": "pufferfish.mechanisms.laplace",
    "HistogramQuery": "pufferfish.queries.query",
    "Household": "pufferfish.queries.household",
    "Ledger": "pufferfish.ledger.ledger",
    "MarkovChain": "pufferfish.queries.chain",
    "MeanQuery": "pufferfish.queries.query",
    "Plan": "pufferfish.plans.plan",
    "Prior": "pufferfish.priors.prior",
    "QueryPlan": "pufferfish.queries.plan",
    "Rules": "pufferfish.tables.rules",
    "Scenario": "pufferfish.priors.scenario",
    "SumQuery": "pufferfish.queries.query",
    "Tree": "pufferfish.queries.tree",
    "calibrate": "pufferfish.queries.calibrate",
    "calibrate_together": "pufferfish.calibration.calibrate",
    "certify": "pufferfish.loss.proof",
    "compare": "pufferfish.report.compare",
    "joint_loss": "pufferfish.queries.calibrate",
    "noisy_counts": "pufferfish.calibration.noisy_counts",
    "open_table": "pufferfish.tables.source",
    "privacy_loss": "pufferfish.loss.proof",
    "sweep": "pufferfish.report.sweep",
}

__all__ = [
    "Certificate", "ChainBox", "Channel", "CheckFailed", "CountQuery", "DiscreteLaplace",
    "HistogramQuery", "Household", "InputError", "Ledger", "MarkovChain",
    "MeanQuery", "Plan", "Prior", "PufferfishError", "QueryPlan", "Rules", "Scenario", "SumQuery",
    "Tree", "__version__", "calibrate", "calibrate_together", "certify", "compare", "joint_loss",
    "noisy_counts", "open_table", "privacy_loss", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pufferfish' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
