# SPDX-License-Identifier: Apache-2.0
"""Calibration: functions ``(scenario, epsilon) -> mechanism``, one file each."""

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import (
    DEFAULT,
    DEFAULT_FOR_LEVELS,
    NOISE,
    REGISTRY,
    Method,
    applicable,
    default_for,
    method_named,
    why_not,
)
from pufferfish.calibration.together import calibrate_together

__all__ = [
    "DEFAULT",
    "DEFAULT_FOR_LEVELS",
    "NOISE",
    "REGISTRY",
    "Method",
    "applicable",
    "calibrate",
    "calibrate_together",
    "default_for",
    "method_named",
    "why_not",
]
