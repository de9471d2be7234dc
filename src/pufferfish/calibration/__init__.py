# SPDX-License-Identifier: Apache-2.0
"""The least noise, or the least distortion, that hides a secret."""
