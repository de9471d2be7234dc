# SPDX-License-Identifier: Apache-2.0
"""The loss of several releases together: exact where it can be computed, bounded where not."""

from pufferfish.joint.axes import Axis
from pufferfish.joint.bounds import Bound, Known, smallest_bound
from pufferfish.joint.fitted import Fitted, fit
from pufferfish.joint.loss import joint_loss_of
from pufferfish.joint.problem import LARGEST_GRID, grid_size
from pufferfish.joint.record import DoesNotFit, GridTooLarge, JointLoss, JointWitness
from pufferfish.joint.solve import Further, common_scale, least_scales, next_scale
from pufferfish.joint.worst import Reach, Term, worst_case

__all__ = [
    "LARGEST_GRID",
    "Axis",
    "Bound",
    "DoesNotFit",
    "Fitted",
    "Further",
    "GridTooLarge",
    "JointLoss",
    "JointWitness",
    "Known",
    "Reach",
    "Term",
    "common_scale",
    "fit",
    "grid_size",
    "joint_loss_of",
    "least_scales",
    "next_scale",
    "smallest_bound",
    "worst_case",
]
