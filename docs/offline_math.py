# SPDX-License-Identifier: Apache-2.0
"""Sphinx extension: formulas become MathML when the pages are built.

Browsers draw MathML themselves, so a page needs no script and no network to show its formulas. A
formula that cannot be translated is a warning, which fails the build.
"""

import html
import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOG = logging.getLogger(__name__)
_TO_MATHML = LatexToMathML(fancy_error=False)
# The number goes beside the formula, so that a narrow screen does not push it out of sight.
_TAG = re.compile(r"\\tag\{(\w+)\}\s*\Z")
_JOINER = "&#8288;"


def translated(node: nodes.Element, latex: str, *, block: bool) -> str:
    """MathML of one formula; the formula's own text where it cannot be translated."""
    try:
        return _TO_MATHML.convert_with_local_state(latex, displaystyle=block)
    except LatexError as error:
        _LOG.warning("formula %r: %s", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"


def visit_inline(page: HTML5Translator, node: nodes.math) -> None:
    mathml = translated(node, node.astext(), block=False)
    # A line must not end between a formula and the comma or full stop that follows it.
    page.body.append(f'<span class="math">{mathml}</span>{_JOINER}')
    raise nodes.SkipNode


def visit_block(page: HTML5Translator, node: nodes.math_block) -> None:
    latex = node.astext().strip()
    tag = _TAG.search(latex)
    number = f'<span class="eqno">({tag[1]})</span>' if tag else ""
    mathml = translated(node, latex[: tag.start()] if tag else latex, block=True)
    page.body.append(page.starttag(node, "div", CLASS="math"))
    page.body.append(f"{mathml}{number}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
