# SPDX-License-Identifier: Apache-2.0
"""The explorer: pages in the browser that do what the command line does (extra ``explorer``).

``explore`` is the command that serves it, and decides who may ask; ``app`` says what each
address shows or does, by the templates in ``pages``. What a form asks for becomes the options of a
command in ``preview``, which shows at once what they would give. ``workspace`` holds the tables,
plans and releases of a session, and runs each command in a process of its own.
"""
