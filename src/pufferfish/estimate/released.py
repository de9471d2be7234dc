# SPDX-License-Identifier: Apache-2.0
"""From a released column and its ReleaseSpec to estimates."""

from typing import Any

from pufferfish.estimate.estimate import Estimate
from pufferfish.release.spec import ReleaseSpec


def estimate_released(released: Any, spec: ReleaseSpec, *, column: str | None = None) -> Estimate:
    """Return estimates of the original column from a released one."""
    raise NotImplementedError
