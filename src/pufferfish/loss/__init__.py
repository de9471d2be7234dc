# SPDX-License-Identifier: Apache-2.0
"""What outputs tell: the loss of releases, searched in doubles and proved."""
