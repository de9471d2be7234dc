# SPDX-License-Identifier: Apache-2.0
"""Ledger: what was released about a secret so far, and what of its budget is left."""

from pufferfish.ledger.ledger import Ledger

__all__ = ["Ledger"]
