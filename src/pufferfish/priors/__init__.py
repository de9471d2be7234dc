# SPDX-License-Identifier: Apache-2.0
"""Counts become a prior: P(X | S) of every adversary, exact, and what else he may hold possible.

``prior`` is one adversary, ``given`` reads what users write and ``prior_file`` their files,
``ambiguity`` holds the sets of priors (theory, section 5), ``scenario`` the adversaries and the
pairs to protect (section 1).
"""
