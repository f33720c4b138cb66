"""What clients with rare positives measure, in tables and figures: undefined in words, chance as a line."""

import math
from collections import Counter

import pytest
import torch

from fedcso.core.judge import ByClient
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.problems import AUPRC
from fedcso.problems.scores import ranking_judge
from fedcso.reports import figures
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate, client_rows, client_summary, summary
from tests.declared import CLASSIFIED, RANKED
from tests.helpers import nested_quadratic
from tests.rare import ITSELF, identity, scored

PROBLEM = AUPRC(identity())
EAST, WEST = scored([0.9, 0.1, 0.5], [1, 0, 0]), scored([0.2, 0.3], [0, 0])


JUDGE = ranking_judge(PROBLEM.scores)


def rows_of(clients, test, participation, names=()):
    task = Task(PROBLEM, clients, test, judge=JUDGE, names=names)
    trace = Trace(best=ITSELF, participation=Counter(dict(enumerate(participation))))
    return client_rows({"A": [[trace]]}, [4], task, lambda run: run.best)


# ---------------------------------------------------------------------------------------- rows of clients


def test_what_is_undefined_at_a_client_is_told_in_words():
    names = ["east", "west"]
    east, west = rows_of([EAST, WEST], ByClient(EAST, [EAST, WEST], names), [3, 0], names)
    assert (east["client"], east["size"], east["rounds"]) == ("east", 3, 3)
    assert (east["average_precision"], east["auroc"]) == (1.0, 1.0)
    assert (west["average_precision"], west["auroc"]) == ("undefined", "undefined")
    assert (west["rounds"], west["prevalence"], west["size"]) == (0, 0.0, 2)


def test_who_does_not_train_but_measures_has_a_row_too():
    found = rows_of([EAST], ByClient(EAST, [EAST, WEST], ["east", "west"]), [3], ["east"])
    assert [(row["client"], row["size"], row["rounds"]) for row in found] == [("east", 3, 3), ("west", 0, 0)]
    assert found[1]["average_precision"] == "undefined"


def test_without_names_clients_have_numbers():
    found = rows_of([EAST, WEST], ByClient(EAST, [EAST, WEST]), [1, 0])
    assert [row["client"] for row in found] == ["0", "1"]


# ------------------------------------------------------------------------------------------- the summary


def measured(client, **metrics):
    return {"algorithm": "A", "seed": 0, "client": client, "size": 5, "rounds": 1, "dropped": 0} | metrics


def summary_of(clients, declared=RANKED):
    return client_summary(Record([], declared, clients=clients))


def test_a_client_has_a_line_with_the_mean_over_seeds_of_each_method():
    found = summary_of(
        [
            measured("east", average_precision=0.5, auroc=0.9),
            measured("west", average_precision="undefined", auroc="undefined"),
            measured("east", average_precision=0.7, auroc=0.9) | {"seed": 1},
            measured("west", average_precision="undefined", auroc="undefined") | {"seed": 1},
            measured("east", average_precision=0.1, auroc=0.9) | {"algorithm": "B"},
            measured("west", average_precision="undefined", auroc="undefined") | {"algorithm": "B"},
        ]
    )
    east, west = found
    assert list(east) == ["client", "examples", "average_precision of A", "average_precision of B"]
    assert (east["client"], east["examples"]) == ("east", 5)
    assert east["average_precision of A"].mean == pytest.approx(0.6)
    assert east["average_precision of A"].half_width == pytest.approx(0.1 * 12.706204736432095)  # Student's t
    assert str(east["average_precision of B"]) == "0.1000"
    assert west == {
        "client": "west",
        "examples": 5,
        "average_precision of A": "undefined",
        "average_precision of B": "undefined",
    }


def test_a_client_with_one_positive_where_all_seeds_agree_has_no_interval():
    """Regression: 1.0000 ± 0.0000 looked like certainty."""
    (line,) = summary_of([measured("east", average_precision=1.0) | {"seed": seed} for seed in range(3)])
    assert str(line["average_precision of A"]) == "1.0000"


def test_a_metric_defined_for_some_seeds_only_is_the_mean_over_those():
    values = ["undefined", 0.4, ""]
    (line,) = summary_of([measured("east", accuracy=v) | {"seed": s} for s, v in enumerate(values)], CLASSIFIED)
    assert line["accuracy of A"].mean == 0.4


def test_without_metrics_there_are_sizes_only():
    assert summary_of([measured("east")]) == [{"client": "east", "examples": 5}]
    assert summary_of([]) == []


def test_clients_that_draw_from_distributions_have_no_examples_to_count():
    """Regression: the page said that each had 1.00 examples."""
    case = nested_quadratic(clients=2)
    trace = Trace(last=torch.zeros(3), participation=Counter([0, 1]))
    found = client_rows({"A": [[trace]]}, [0], Task(case.problem, case.clients))
    assert [row["size"] for row in found] == [None, None]
    assert summary_of(found) == []
    (line,) = summary_of([found[0] | {"accuracy": 0.5}], CLASSIFIED)
    assert list(line) == ["client", "accuracy of A"]


def test_the_metric_that_selects_is_shown():
    (line,) = summary_of([measured("east", loss=1.0, mine=2.0, auroc=0.5, average_precision=0.7)])
    assert [name for name in line if " of " in name] == ["average_precision of A"]


# --------------------------------------------------------------------------------------------- figures


def evaluations(precisions, **more):
    return [
        {"algorithm": "A", "seed": seed, "round": r, "average_precision": value} | more
        for seed, values in enumerate(precisions)
        for r, value in enumerate(values)
    ]


def panel(rows, declared=RANKED):
    return figures.curves(Record(rows, declared), "title").axes[0]


def test_chance_is_a_line_where_it_is_known():
    figure = figures.curves(Record(evaluations([[0.3, 0.6]], prevalence=0.25), RANKED), "title")
    assert list(figure.axes[0].lines[-1].get_ydata()) == [0.25, 0.25]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "chance"]
    assert len(panel(evaluations([[0.3, 0.6]])).lines) == 1


def test_chance_belongs_to_average_precision_alone():
    some = evaluations([[0.3, 0.6]], prevalence=0.25, auroc=0.7, saturated=0.0)
    figure = figures.curves(Record(some, RANKED), "title")
    assert [axes.get_ylabel() for axes in figure.axes] == ["test average precision", "test AUROC"]
    assert [len(axes.lines) for axes in figure.axes] == [2, 1]


@pytest.mark.parametrize(
    ("metric", "declared"),
    [("average_precision", RANKED), ("client_average_precision", RANKED), ("auroc", RANKED), ("accuracy", CLASSIFIED)],
)
def test_bands_of_shares_end_at_nothing_and_everything(metric, declared):
    both = [{"algorithm": "A", "seed": s, "round": 0, metric: value} for s, value in enumerate([0.1, 0.95])]
    corners = panel(both, declared).collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == (0.0, 1.0)


def test_bands_of_other_metrics_do_not():
    both = [{"algorithm": "A", "seed": s, "round": 0, "loss": value} for s, value in enumerate([0.1, 0.95])]
    corners = panel(both).collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() < 0
    assert corners.max() > 1


def test_a_narrow_band_stays_as_it_is():
    corners = panel(evaluations([[0.5], [0.51]])).collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx(0.505 + 0.005 * 12.706204736432095)


def test_what_explains_is_in_no_curve_and_in_no_table():
    some = evaluations([[0.3, 0.6]], prevalence=0.25, saturated=0.5)
    assert [metric.name for metric in Record(some, RANKED).curves()] == ["average_precision"]
    costs = dict.fromkeys(("outer_samples", "inner_samples", "gradients", "bytes_up", "bytes_down", "seconds"), 1)
    (line,) = summary(Record([row | costs for row in some], RANKED))
    assert "saturated" not in line
    assert line["average_precision"] == Estimate(0.6, line["average_precision"].half_width)
    assert line["prevalence"].mean == 0.25


def test_an_average_precision_that_is_never_defined_is_a_dash():
    costs = dict.fromkeys(("outer_samples", "inner_samples", "gradients", "bytes_up", "bytes_down", "seconds"), 1)
    (line,) = summary(Record([row | costs for row in evaluations([[math.nan]])], RANKED))
    assert str(line["average_precision"]) == "–"
    assert torch.isnan(torch.tensor(line["average_precision"].mean))
