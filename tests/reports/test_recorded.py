"""What reports know of a run: its metrics, what a random model gets, and which models are exported."""

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.reports.recorded import Record, record_of
from fedcso.reports.tables import as_csv
from fedcso.runs.folder import RunFolder
from tests.declared import CLASSIFIED, RANKED


def row(algorithm="A", seed=0, round=1, **metrics):
    return {"algorithm": algorithm, "seed": seed, "round": round, "step": 10, "seconds": 0.5, **metrics}


def names(metrics):
    return [metric.name for metric in metrics]


# ----------------------------------------------------------------------------------- metrics and curves


def test_metrics_come_in_the_order_in_which_they_are_declared_and_then_a_problems_own():
    """Test data first, then the mean over clients, then what was seen in training."""
    there = ["mine", "train_loss", "client_loss", "client_accuracy", "gradient_norm", "loss", "accuracy"]
    expected = ["accuracy", "loss", "client_accuracy", "client_loss", "gradient_norm", "train_loss", "mine"]
    assert names(Record([row(**dict.fromkeys(there, 1.0))], CLASSIFIED).metrics()) == expected


def test_curves_are_drawn_of_metrics_and_not_of_their_intervals():
    some = [row(train_loss=1.0, client_loss=2.0, loss=3.0, accuracy_interval=0.1, mine=1.0, accuracy=0.5)]
    assert names(Record(some, CLASSIFIED).curves()) == ["accuracy", "loss", "client_loss", "mine"]


def test_the_training_loss_is_drawn_where_nothing_else_is_known():
    assert names(Record([row(train_loss=1.0)], CLASSIFIED).curves()) == ["train_loss"]


def test_a_metric_without_any_value_has_no_curve():
    for missing in ("", None):
        assert names(Record([row(accuracy=missing, loss=1.0)] * 2, CLASSIFIED).curves()) == ["loss"]
    some = [row(accuracy="", loss=1.0), row(accuracy=0.5, loss=1.0)]
    assert names(Record(some, CLASSIFIED).curves()) == ["accuracy", "loss"]


def test_chance_is_a_number_or_what_another_metric_holds():
    some = Record([row(average_precision=0.7), row(average_precision=0.7, prevalence=0.1)], RANKED)
    assert some.chance(RANKED["average_precision"]) == 0.1
    assert some.chance(RANKED["auroc"]) is None
    assert some.chance(Metric("accuracy", chance=0.2)) == 0.2
    assert Record([row(average_precision=0.7)], RANKED).chance(RANKED["average_precision"]) is None


def test_clients_are_shown_by_the_metric_that_selects_if_they_have_measured_it():
    clients = [{"algorithm": "A", "seed": 0, "client": "east", "auroc": 0.7, "average_precision": "undefined"}]
    assert Record([row()], RANKED, clients=clients).at_clients().name == "average_precision"
    assert Record([row()], CLASSIFIED, clients=clients).at_clients() is None
    assert Record([row()], clients=clients).at_clients() is None


# ------------------------------------------------------------------------------------ exported models


def validated(seed, *values):
    return [row(seed=seed, round=5 * i, validation_average_precision=v) for i, v in enumerate(values)]


def test_it_is_said_which_model_is_exported_and_why():
    record = Record([*validated(3, 0.1, 0.7, 0.2), *validated(4, 0.1, 0.3)], RANKED)
    assert record.statements() == ["A: seed 3, after round 5 (best validation average precision, 0.7)"]


def test_it_is_said_that_no_validation_data_decided():
    some = [row(seed=seed, round=r, train_loss=5.0 - r - seed) for seed in (3, 4) for r in (0, 1)]
    assert Record(some, CLASSIFIED).statements() == [
        "A: seed 3, after round 1 (chosen without validation data: first seed, best training loss, 1)"
    ]


def test_nothing_is_said_of_runs_that_declared_nothing():
    assert Record([row(loss=1.0)]).statements() == []


# ------------------------------------------------------------------------------------------ from files


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, "run", {"problem": "auprc"}, {})


def test_a_record_is_read_back_from_the_folder(folder):
    rows, random = validated(3, 0.1, 0.7), [{"algorithm": "A", "seed": 3, "round": 2, "average_precision": 0.5}]
    clients = [{"algorithm": "A", "seed": 3, "client": "east", "average_precision": "undefined"}]
    ranked = [{"algorithm": "A", "seed": 3, "recall": 0.5, "precision": 0.25}]
    tables = {"metrics": rows, "random-iterate": random, "clients": clients, "precision-recall": ranked}
    for name, some in tables.items():
        folder.write(f"{name}.csv", as_csv(some))
    folder.write("metrics.json", RANKED.to_json())
    assert record_of(folder) == Record(rows, RANKED, random, clients, ranked)


def test_a_folder_of_a_version_that_declared_nothing_is_read_without_declarations(folder):
    folder.write("metrics.csv", as_csv([row(accuracy=0.5)]))
    assert record_of(folder) == Record([row(accuracy=0.5)], DeclaredMetrics(), [], [], [])


def test_a_folder_without_results_is_refused(folder):
    with pytest.raises(FedcsoError, match="has no results yet"):
        record_of(folder)
    folder.write("metrics.csv", "a,b\n1,2\n")
    with pytest.raises(FedcsoError, match="is not a table of metrics"):
        record_of(folder)
