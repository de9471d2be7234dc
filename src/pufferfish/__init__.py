# SPDX-License-Identifier: Apache-2.0
"""Pufferfish privacy: publish a column while a correlated secret stays hidden."""

__version__ = "0.1.0"
