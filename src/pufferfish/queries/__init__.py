# SPDX-License-Identifier: Apache-2.0
"""Queries over correlated records: a count, sum, mean or histogram of records that depend.

A table becomes ``sequences``, and these a ``chain`` or a ``chain_box``, a class of chains; a
``tree`` and a ``household`` are given (``model``: what all of them are). A
``query`` of a model gives a scenario. The loss of its noise is known by ``routes``: the ``ends`` of
its law (theory, section 8.3); a ``contraction`` (8.5), for any number of records; a ``window``
(8.6), for stated numbers; or the scenario itself, for few. ``quilts`` are the published mechanisms;
``calibrate`` makes of each a ``plan``, which is verified, and released as an ``answer`` with its
``record``.
"""
