# SPDX-License-Identifier: Apache-2.0
"""What outputs tell: the privacy loss of releases, searched in doubles and proved in balls.

One question for everything: kernel (``kernel``) x ambiguity (``support_function``) x arithmetic
(``doubles`` for searching; ``balls``, ``rounding`` and ``integers`` for proving), for a list of
problems (``problem``). ``proof`` answers it with a ``certificate`` (theory, sections 2, 5 and 8);
``composition`` bounds several releases together (section 6).
"""
