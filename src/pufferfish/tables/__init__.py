# SPDX-License-Identifier: Apache-2.0
"""Tables: files and dataframes are opened, counted and encoded here."""
