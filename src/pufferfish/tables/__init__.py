# SPDX-License-Identifier: Apache-2.0
"""A table becomes counts: it is opened, its cells are encoded by rules, its rows are counted.

``source`` opens files, queries and dataframes as a ``table``, whose rows are counted in groups:
``scan`` is what DuckDB reads, ``text`` the strict reader of text files, ``query`` the answer to a
query, ``frames`` dataframes and arrays. ``rules`` holds what a user declares. ``encode`` finds what
values a column has and makes a cell an atom. ``count`` counts rows and people, ``identity`` knows a
table again.
"""
