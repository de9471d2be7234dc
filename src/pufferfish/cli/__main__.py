# SPDX-License-Identifier: Apache-2.0
"""``python -m pufferfish.cli``: the same as the command ``pufferfish``."""

import sys

from pufferfish.cli import main

sys.exit(main())
