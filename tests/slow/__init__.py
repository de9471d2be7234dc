# SPDX-License-Identifier: Apache-2.0
"""The slow and obviously right reference: tests compare the package with it, it shares no code."""
