"""The gallery of the documentation: its figures are those of its page, and their curves are right."""

from pathlib import Path

import pytest
import torch

from docs import gallery
from fedcso.core.task import Task
from fedcso.problems import PROBLEMS, NestedQuadratic

PAGE = (Path(__file__).parent.parent / "docs" / "gallery.md").read_text()


def test_every_problem_of_the_gallery_is_on_the_page_with_its_figure_and_a_command():
    for name in gallery.DRAWN:
        assert name in PROBLEMS
        assert f"gallery/{name}.svg" in PAGE
        assert f"fedcso run {name}" in PAGE
    assert PAGE.count("{image}") == len(gallery.DRAWN)


def test_a_curve_has_the_bias_of_the_formula():
    """Of the nested quadratic, E F̂ = F + τ² ‖x‖² / 2m."""
    problem = NestedQuadratic(dimension=3, noise=1.2)
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    curve = gallery.bias_curve(Task(problem, problem.centres(2)), x)
    for m, mean, error in zip(gallery.SIZES, curve.means, curve.errors, strict=True):
        expected = curve.exact + 1.2**2 * float(x.square().sum()) / (2 * m)
        assert mean == pytest.approx(expected, abs=4 * error)
    assert curve.means[0] - curve.exact > 20 * curve.errors[0]


def test_a_figure_is_drawn_once(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "DRAWN", ("policy_evaluation",))
    gallery.write(tmp_path)
    (file,) = tmp_path.iterdir()
    drawn = file.read_text()
    assert drawn.startswith("<?xml")
    gallery.draw("policy_evaluation", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawn
    file.write_text("kept")
    gallery.write(tmp_path)
    assert file.read_text() == "kept"
