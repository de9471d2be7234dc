# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page in the browser that does what the command line does (extra ``explorer``).

``explore`` is the command that serves it, ``guard`` decides who may ask and what pages may load,
``app`` has the pages. What a form asks for becomes the options of a command in ``choices``;
``preview`` shows at once what they would give, and ``jobs`` runs the command in a process of its
own. ``workspace`` holds the tables, plans and releases of a session. Pages are in ``pages``, the
script and the style in ``static``.
"""
