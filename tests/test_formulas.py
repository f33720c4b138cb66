"""Formulas of the documentation are drawn by the build, in the colour of the text."""

from docs.formulas import draw


def test_a_formula_is_a_picture_without_background_in_the_colour_of_the_text():
    drawing = draw(r"\frac1N \sum_n \mathbb E\, f\big(g(x)\big)")
    assert drawing.startswith("<svg role='img' fill='currentColor'")
    assert drawing.endswith("</svg>\n")
    assert "#ffffff" not in drawing
    assert "metadata" not in drawing
