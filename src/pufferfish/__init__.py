# SPDX-License-Identifier: Apache-2.0
"""Pufferfish privacy: publish a column while a correlated secret stays hidden.

The straight way through: a table becomes a :class:`Prior`, one or more of them and the pairs of
secrets a :class:`Scenario`; :func:`calibrate` makes a :class:`Plan`, whose ``release`` adds the
noise and whose ``verify`` proves the loss again.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pufferfish._version import __version__

if TYPE_CHECKING:
    from pufferfish.accountant import joint_loss
    from pufferfish.calibration import calibrate, calibrate_together
    from pufferfish.certificate import Certificate, certify
    from pufferfish.errors import CheckFailed, InputError, PufferfishError
    from pufferfish.ledger import Ledger
    from pufferfish.mechanisms import Channel, DiscreteLaplace
    from pufferfish.plan import Plan
    from pufferfish.prior import Prior
    from pufferfish.privacy import privacy_loss
    from pufferfish.scenario import Scenario

# Names are imported when they are first used: `import pufferfish` stays quick.
_HOMES = {
    "Certificate": "pufferfish.certificate",
    "Channel": "pufferfish.mechanisms",
    "CheckFailed": "pufferfish.errors",
    "DiscreteLaplace": "pufferfish.mechanisms",
    "InputError": "pufferfish.errors",
    "Ledger": "pufferfish.ledger",
    "Plan": "pufferfish.plan",
    "Prior": "pufferfish.prior",
    "PufferfishError": "pufferfish.errors",
    "Scenario": "pufferfish.scenario",
    "calibrate": "pufferfish.calibration",
    "calibrate_together": "pufferfish.calibration",
    "certify": "pufferfish.certificate",
    "joint_loss": "pufferfish.accountant",
    "privacy_loss": "pufferfish.privacy",
}

__all__ = [
    "Certificate",
    "Channel",
    "CheckFailed",
    "DiscreteLaplace",
    "InputError",
    "Ledger",
    "Plan",
    "Prior",
    "PufferfishError",
    "Scenario",
    "__version__",
    "calibrate",
    "calibrate_together",
    "certify",
    "joint_loss",
    "privacy_loss",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pufferfish' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
