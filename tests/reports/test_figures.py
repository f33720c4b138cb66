"""Figures: the same bytes from the same input, every method in them, and told apart in grey."""

import math
import re

import pytest
from matplotlib.figure import Figure

from fedcso.algorithms import ALGORITHMS
from fedcso.core.metric import Metric
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.recorded import Record
from tests.declared import CLASSIFIED, RANKED

METHODS = ["FCSG", "FCSG-M(momentum=0.5)", "SCAFFOLD"]


def rows(methods=METHODS, seeds=(0, 1), rounds=range(4), metrics=("loss",)):
    """Curves that fall, each a little different."""
    return [
        {"algorithm": name, "seed": seed, "round": r} | dict.fromkeys(metrics, (number + 1 + 0.1 * seed) / (r + 1))
        for number, name in enumerate(methods)
        for seed in seeds
        for r in rounds
    ]


def curves(rows, declared=CLASSIFIED):
    return figures.curves(Record(rows, declared), "title")


def legend(figure):
    (only,) = figure.legends
    return [text.get_text() for text in only.get_texts()]


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_input_gives_the_same_bytes(kind):
    first, second = (figures.render(curves(rows()), kind) for _ in range(2))
    assert first == second
    assert figures.render(curves(rows(methods=["Other"])), kind) != first


def test_no_time_is_in_the_files():
    pdf = figures.render(curves(rows()), "pdf")
    assert not re.search(rb"CreationDate|ModDate", pdf)


def test_every_method_is_in_the_legend_once():
    figure = curves(rows(metrics=("accuracy", "loss", "gradient_norm")))
    assert len(figure.axes) == 3
    assert legend(figure) == METHODS


@pytest.mark.parametrize("metrics", [("loss",), ("accuracy", "loss", "gradient_norm")], ids=len)
@pytest.mark.parametrize("methods", [1, 3, 24])
def test_the_legend_covers_no_curve_and_fits_into_the_figure(methods, metrics):
    """Regression: it stood inside a panel, in front of the curves."""
    names = [f"Acc-FCSG-M(learning_rate={number})" for number in range(methods)]
    figure = curves(rows(names, metrics=metrics))
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert all(axes.get_legend() is None and not box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    panels = [axes.get_window_extent().height for axes in figure.axes]
    assert min(panels) > 0.65 * 3.4 * figure.dpi  # however many names there are, the panels keep their size


def test_bands_of_many_methods_are_lighter_than_those_of_few():
    few, many = (curves(rows([str(n) for n in range(number)])).axes[0] for number in (3, 24))
    assert {band.get_alpha() for band in few.collections} == {0.18}
    assert {band.get_alpha() for band in many.collections} == {0.7 / 24}


def test_every_metric_has_a_panel_with_its_name_in_words_but_the_training_loss_beside_others():
    figure = curves(rows(metrics=("train_loss", "accuracy", "gradient_norm")))
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["test accuracy", "true gradient norm ‖∇F(x)‖"]
    assert all(axes.get_xlabel() == "communication rounds" for axes in figure.axes)


def test_the_training_loss_has_a_panel_where_there_is_nothing_else():
    figure = curves(rows(metrics=("train_loss",)))
    assert [axes.get_ylabel() for axes in figure.axes] == ["training loss"]


def test_a_curve_is_the_mean_over_seeds_with_its_band():
    axes = Figure().subplots()
    values = {0: [1.0, 3.0], 1: [2.0, 2.0]}
    figures.curve(axes, [{"round": r, "loss": v} for r, both in values.items() for v in both], Metric("loss"), "A", 0)
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0.0, 2.0], [1.0, 2.0]]
    corners = axes.collections[0].get_paths()[0].vertices
    half = 12.706204736432095  # Student's t for two values, times a standard error of 1
    assert corners[:, 1].max() == pytest.approx(2 + half)
    assert corners[:, 1].min() == pytest.approx(2 - half)


def test_one_seed_has_no_band():
    figure = curves(rows(seeds=[0]))
    assert len(figure.axes[0].collections) == 0


def test_a_band_below_zero_does_not_spoil_a_logarithmic_axis():
    noisy = [{"algorithm": "A", "seed": s, "round": 0, "gradient_norm": v} for s, v in enumerate([0.01, 1.0])]
    axes = curves(noisy).axes[0]
    assert axes.get_yscale() == "log"
    assert axes.collections[0].get_paths()[0].vertices[:, 1].min() > 0


def test_a_run_that_broke_off_is_drawn_as_far_as_it_came():
    some = [row for row in rows(seeds=[0]) if row["algorithm"] != "FCSG" or row["round"] < 2]
    first = curves(some).axes[0].lines[0]
    assert first.get_xdata().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("missing", ["", None, math.nan])
def test_missing_values_are_left_out(missing):
    some = [row | {"loss": missing if row["round"] == 0 else row["loss"]} for row in rows(seeds=[0])]
    for line in curves(some).axes[0].lines:
        assert line.get_xdata().tolist() == [1.0, 2.0, 3.0]


def test_a_metric_that_is_never_a_number_is_drawn_without_a_warning():
    never = [row | {"accuracy": math.nan} for row in rows()]
    assert figures.render(curves(never), "png")


def test_the_nth_curve_has_the_nth_look():
    axes = curves(rows(ALGORITHMS)).axes[0]
    drawn = [(line.get_color(), line.get_marker(), line.get_linestyle() == "-") for line in axes.lines]
    looks = [look(number) for number in range(len(ALGORITHMS))]
    assert drawn == [(one.colour, one.marker, one.dashes == ()) for one in looks]


def test_a_star_marks_the_exported_model_of_each_method():
    """Validation data choose the first seed's model after round 2 for A, the second seed's after round 1 for B."""
    validated = {("A", 0): [0.1, 0.2, 0.9], ("A", 1): [0.1, 0.8, 0.2], ("B", 0): [0.3, 0.2, 0.1], ("B", 1): [0, 0.4, 0]}
    some = [
        {"algorithm": name, "seed": seed, "round": r, "average_precision": v / 2, "validation_average_precision": v}
        for (name, seed), values in validated.items()
        for r, v in enumerate(values)
    ]
    figure = curves(some, RANKED)
    stars = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
    assert [star.get_xydata().tolist() for star in stars[:2]] == [[[2.0, 0.45]], [[1.0, 0.2]]]
    assert [star.get_color() for star in stars[:2]] == [look(0).colour, look(1).colour]
    assert legend(figure) == ["A", "B", "exported"]


def test_without_a_chosen_model_there_is_no_star():
    assert "exported" not in legend(curves(rows(), RANKED))


def test_a_stretched_axis_shows_all_of_the_highest_curve_and_no_less_than_asked():
    axes = Figure().subplots()
    axes.plot([0, 1], [0.4, 0.99])
    axes.plot([0, 1], [0.5, 0.999])
    figures.stretch_towards_one(axes, 0.45)
    low, high = axes.get_ylim()
    assert low == 0.45
    assert 0.999 < high < 1
    shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
    assert {0.5, 0.9, 0.99, 0.999} <= set(shown)
