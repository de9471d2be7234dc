# SPDX-License-Identifier: Apache-2.0
"""What is told of plans: ``results``, ``sentences``, the ``digits`` of numbers, and the ``page``.

``remake`` writes the command and the Python that make a plan again, ``sweep`` calibrates many.
"""
