# SPDX-License-Identifier: Apache-2.0
"""What is promised: a calibrated mechanism, its file, its verification, its public record.

``guarantee`` decides what a release does and says what it costs (theory, section 4), ``plan`` adds
the proof, ``schema`` is its file. ``verify`` proves the loss again (section 9), and what the prior
has to do with it (section 5); ``record`` says what others may know (section 7).
"""
