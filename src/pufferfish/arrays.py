# SPDX-License-Identifier: Apache-2.0
"""Array types: what the exact counts and the doubles of the package are kept in."""

from typing import Any

import numpy as np
import numpy.typing as npt

#: int64 while no sum can overflow, Python integers (dtype object) otherwise.
CountArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Cumulative sums and cross products of counts stay exact in 64 bits below this total.
INT64_SAFE = 2**62
