# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation build: `make docs`."""

from importlib.metadata import version as installed_version

project = "pufferfish-privacy"
author = "The pufferfish-privacy developers"
copyright = f"2026, {author}"
release = installed_version(project)
version = ".".join(release.split(".")[:2])

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# An example of output, or a table, is shown as it is.
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# autodoc lists the members; numpydoc would list them again, as pages of their own.
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autosummary_generate = False

html_theme = "furo"
html_title = f"pufferfish-privacy {release}"
html_show_sphinx = False
