# SPDX-License-Identifier: Apache-2.0
"""What is promised: a calibrated mechanism, its file, its verification, its public record.

``plan`` is ready to release, ``schema`` is its file, ``verify`` proves its loss again,
``sensitivity`` says how much hangs on the prior, ``record`` what others may know (theory,
sections 7 and 8).
"""
