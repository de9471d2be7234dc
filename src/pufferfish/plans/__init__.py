# SPDX-License-Identifier: Apache-2.0
"""What is promised: a calibrated mechanism, its file, its verification, its public record.

``plan`` is ready to release, ``schema`` is its file, ``verify`` proves its loss again (theory,
section 9). ``distortion`` says what a channel costs (section 4), ``sensitivity`` how much hangs on
the prior (section 5), ``record`` what others may know (section 7).
"""
