# SPDX-License-Identifier: Apache-2.0
"""Estimate: analysts get frequencies, mean and variance of the original column back."""
