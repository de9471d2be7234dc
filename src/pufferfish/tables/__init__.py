# SPDX-License-Identifier: Apache-2.0
"""A table becomes counts: it is opened, its cells are encoded by rules, its rows are counted.

``source`` opens a file or a dataframe as a ``table``; ``text`` is the strict reader of text files,
``frames`` that of dataframes and arrays. ``rules`` holds what a user declares. ``canonical`` is the
one text of a cell, ``decide`` finds what values a column has, ``encode`` makes a cell an atom.
``count`` counts rows and people, ``identity`` knows a table again.
"""
