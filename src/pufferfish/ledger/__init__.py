# SPDX-License-Identifier: Apache-2.0
"""Budgets: releases of a dataset are charged with their joint loss before anything is drawn.

``ledger`` is what users call, ``store`` its file with the locks, ``records`` what stands in it.
``pricing`` bounds what everything tells together (theory, section 6), ``counts`` adds noisy counts,
``calibrate`` finds the plan that still fits, and ``verify`` checks all that was charged.
"""
