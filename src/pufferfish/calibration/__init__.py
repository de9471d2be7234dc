# SPDX-License-Identifier: Apache-2.0
"""The least that hides it: one file for each mechanism, one root finder, one linear program.

``registry`` lists the mechanisms: ``l1``, ``wasserstein``, ``relaxed`` and ``one_sided`` (by
``coupling``; theory, section 3), ``exact`` (by ``root``; section 2) and ``channel`` (section 4).
``calibrate`` turns a proposal into a proved plan, ``further`` fits one in beside other releases
(section 6).
"""
