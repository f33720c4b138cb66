"""Formulas as pictures inside the page, so that they are shown without a network: LaTeX by Matplotlib's mathtext."""

import re
from io import StringIO
from typing import Any


def draw(latex: str, size: float = 13.0) -> str:
    """Return a formula as an SVG element in the colour of the text around it."""
    from matplotlib.mathtext import math_to_image

    output = StringIO()
    math_to_image(f"${_for_mathtext(latex)}$", output, dpi=72, format="svg", prop=_font(size), color="black")
    _, _, drawing = output.getvalue().partition("<svg")
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.S)
    drawing = drawing.replace("fill: #ffffff", "fill: none")  # the background
    return "<svg role='img' fill='currentColor'" + drawing


def setup(app: Any) -> None:
    """Make it the way in which Sphinx shows formulas."""
    app.add_html_math_renderer("svg", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None))


def _font(size: float) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size, math_fontfamily="cm")


def _for_mathtext(latex: str) -> str:
    r"""Write what mathtext understands: \frac{1}{N} for \frac1N, \mathbb{E} for \mathbb E, \left( for \big(."""
    latex = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", " ".join(latex.split()))
    latex = re.sub(r"\\(mathbb|mathcal) (\w)", r"\\\1{\2}", latex)
    return latex.replace(r"\big(", r"\left(").replace(r"\big)", r"\right)")


def _visit_inline(writer: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    writer.body.append(draw(node.astext()))
    raise SkipNode


def _visit_block(writer: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    writer.body.append(f'<div class="math formula">{draw(node.astext())}</div>')
    raise SkipNode
