# SPDX-License-Identifier: Apache-2.0
"""The least that hides it: one file for each mechanism, one root finder, one linear program.

``registry`` lists the mechanisms: ``l1``, ``wasserstein``, ``relaxed`` and ``one_sided`` (the last
three by ``coupling``; theory, section 3), ``exact`` (by ``root``; sections 2 and 3) and ``channel``
(section 4): its ``channel_task`` in whole numbers, the ``channel_program`` for the ``solver``, and
the ``channel_repair`` of what that finds. ``best_for`` is the channel of the best estimates
(section 11): its ``columns`` and their ``design``. ``calibrate`` turns a proposal into a proved
plan, ``further`` fits one in beside other releases (section 6).
"""
