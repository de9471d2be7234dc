# SPDX-License-Identifier: Apache-2.0
"""``python -m pufferfish.cli`` is the command ``pufferfish``."""

import sys

from pufferfish.cli import main

sys.exit(main())
