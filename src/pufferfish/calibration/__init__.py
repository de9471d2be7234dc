# SPDX-License-Identifier: Apache-2.0
"""Calibration: functions ``(scenario, epsilon) -> mechanism``, one file each."""

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import DEFAULT, REGISTRY, Method, method_named

__all__ = ["DEFAULT", "REGISTRY", "Method", "calibrate", "method_named"]
