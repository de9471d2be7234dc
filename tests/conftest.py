# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole test suite: how hard hypothesis searches.

`HYPOTHESIS_PROFILE=slow pytest` or `pytest --hypothesis-profile=slow` chooses a profile. No profile
has a deadline, since a busy machine is no fault of the code, and none is derandomised, since a
search that never changes finds nothing new.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("fast", max_examples=50, deadline=None, derandomize=False)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "slow",
    max_examples=2000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
