# SPDX-License-Identifier: Apache-2.0
"""Numbers come back: to those who estimate, every mechanism is a finite channel.

``matrix`` is that channel, ``estimate`` holds weighted least squares on it, ``released`` reads a
released column (theory, section 4).
"""
