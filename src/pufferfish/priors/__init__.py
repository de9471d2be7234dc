# SPDX-License-Identifier: Apache-2.0
"""Counts become a prior: P(X | S) of every adversary, exact, and what else he may hold possible.

``prior`` is one adversary, ``given`` reads what users write, ``ambiguity`` holds the sets of priors
(theory, section 5), ``betting`` proves bounds of shares, ``scenario`` has the adversaries and the
pairs to protect (section 1).
"""
