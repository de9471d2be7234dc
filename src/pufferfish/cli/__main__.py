# SPDX-License-Identifier: Apache-2.0
"""``python -m pufferfish.cli``: the command where no script of its name is installed."""

import sys

from pufferfish.cli import main

sys.exit(main())
