# SPDX-License-Identifier: Apache-2.0
"""A table becomes counts: it is opened, its cells are encoded by rules, its rows are counted.

``source`` opens files, queries and dataframes as a ``table``: ``scan`` is what DuckDB reads,
``text`` the strict reader of text files, ``partitions`` many files, ``query`` the answer to a
query, ``frames`` dataframes and arrays; ``groups`` counts their rows. ``rules`` holds what a
user declares. ``canonical`` is the one text of a cell, ``decide`` finds what values a column has,
``encode`` makes a cell an atom. ``count`` counts rows and people, ``identity`` knows a table again.
"""
