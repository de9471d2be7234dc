# SPDX-License-Identifier: Apache-2.0
"""Priors that are only estimated: the loss over a whole region of priors (theory, section 5)."""

from pufferfish.robust.columns import columns_loss, extreme_prior, extreme_values
from pufferfish.robust.loss import RobustLoss, RobustWitness, robust_loss
from pufferfish.robust.radius import robustness_radius
from pufferfish.robust.sensitivity import Sensitivity, sensitivity_of

__all__ = [
    "RobustLoss",
    "RobustWitness",
    "Sensitivity",
    "columns_loss",
    "extreme_prior",
    "extreme_values",
    "robust_loss",
    "robustness_radius",
    "sensitivity_of",
]
