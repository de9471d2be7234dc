# SPDX-License-Identifier: Apache-2.0
"""``python -m pufferfish.cli``: the same as the command ``pufferfish``."""

from pufferfish.cli import main

main()
