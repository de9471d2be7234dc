# SPDX-License-Identifier: Apache-2.0
"""Queries over correlated records: a count, sum, mean or histogram of records that depend.

``model`` says what a law of records is; there are a ``chain``, a ``chain_box`` of chains, a
``tree``, a ``household`` and independent ``groups``; ``fitting`` learns a chain from a table. A
``query`` of a model gives a scenario. The loss of its noise is known by ``routes``: its ``ends``
(theory, section 8.3), a ``contraction`` (8.5) or a ``window`` (8.6) for any number of records, and
the scenario itself for few. ``quilts`` are the published mechanisms; ``calibrate`` makes of each a
``plan``, which is released and verified.
"""
