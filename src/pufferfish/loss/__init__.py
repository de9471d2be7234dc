# SPDX-License-Identifier: Apache-2.0
"""What outputs tell: the privacy loss of releases, searched in doubles and proved in balls.

One question for everything: kernel x ambiguity x arithmetic. ``kernel`` merges the releases of a
column, ``support_function`` finds the extremes of an ambiguity set (theory, section 5), and a
``problem`` is both for one adversary. Searching: ``doubles``, on the ``passes`` of noise. Proving:
``bounds`` in whole numbers, ``balls``, and ``rounding`` on large grids (section 9). ``proof``
answers with a ``certificate``. Scales that hold with a confidence are found and proved by a
``walk``. ``composition`` bounds several releases together (section 6).
"""
