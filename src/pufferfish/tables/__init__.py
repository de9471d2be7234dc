# SPDX-License-Identifier: Apache-2.0
"""A table becomes counts: it is opened, its cells are encoded by rules, its rows are counted.

``source`` opens files and data frames, ``rules`` holds what a user declares, ``encode`` makes a
cell an atom, ``count`` counts rows and people, ``identity`` knows a table again.
"""
