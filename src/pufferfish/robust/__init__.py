# SPDX-License-Identifier: Apache-2.0
"""Robust calibration: the loss over a whole region of priors (theory, section 5)."""

from pufferfish.robust.calibrate import robust_exact
from pufferfish.robust.columns import columns_loss, extreme_prior, extreme_values
from pufferfish.robust.loss import RobustLoss, RobustWitness, robust_loss
from pufferfish.robust.radius import robustness_radius, robustness_radius_of_columns

__all__ = [
    "RobustLoss",
    "RobustWitness",
    "columns_loss",
    "extreme_prior",
    "extreme_values",
    "robust_exact",
    "robust_loss",
    "robustness_radius",
    "robustness_radius_of_columns",
]
