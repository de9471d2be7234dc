# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation build: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

project = "pufferfish-privacy"
author = "The pufferfish-privacy developers"
copyright = f"2026, {author}"
release = installed_version(project)
version = ".".join(release.split(".")[:2])

# Extensions of our own stand beside this file.
sys.path.insert(0, str(Path(__file__).parent))
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "offline_math"]
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_update_mathjax = False
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
html_static_path = ["_static"]
html_css_files = ["math.css"]
html_title = f"pufferfish-privacy {release}"
html_show_sphinx = False
