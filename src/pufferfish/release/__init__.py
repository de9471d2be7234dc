# SPDX-License-Identifier: Apache-2.0
"""Release: a column goes through a mechanism, exactly as it was calibrated."""
