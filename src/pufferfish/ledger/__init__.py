# SPDX-License-Identifier: Apache-2.0
"""Budgets: releases of a dataset are charged with their joint loss before anything is drawn.

``ledger`` is what users call, ``pricing`` bounds what everything tells together (theory, section
6), ``verify`` does so again, ``store`` is their file and its locks, ``records`` what stands in it.
"""
