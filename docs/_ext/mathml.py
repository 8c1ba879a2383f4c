"""Mathematics as MathML, which browsers draw themselves: no script, no font, nothing to fetch."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def mathml(text: str, block: bool) -> str:
    """LaTeX as MathML; what cannot be read ends the build and is shown."""
    try:
        return str(tex2mathml(text, as_block=block))
    except (MathError, SyntaxError) as error:
        raise ExtensionError(f"mathematics that cannot be read: {text!r} ({error})") from error


def inline(visitor: Any, node: nodes.math) -> None:
    """A formula within a line."""
    visitor.body.append(f'<span class="math">{mathml(node.astext(), block=False)}</span>')
    raise nodes.SkipNode


def display(visitor: Any, node: nodes.math_block) -> None:
    """A formula by itself, which scrolls where it is wider than the page."""
    visitor.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
