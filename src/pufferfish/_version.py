# SPDX-License-Identifier: Apache-2.0
"""The one place where the version stands; the build and the package both read it here."""

__version__ = "0.1.0"
