# SPDX-License-Identifier: Apache-2.0
"""A column is released: one pipeline for arrays, data frames and files.

``pipeline`` reads rows (``rows``), draws, rounds and bounds (``postprocess``), and writes
(``sinks``) what a ``spec`` asks for (theory, section 7); ``parts`` has it done by many workers.
"""
