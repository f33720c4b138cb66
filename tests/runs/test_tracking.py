"""Trackers get the metrics of every run; each of them is the real library, writing into the run's folder."""

import sqlite3
import sys
import time

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.core.trace import Trace
from fedcso.engines.loop import Progress
from fedcso.runs.tracking import TRACKERS, Forward, Silent

UNIT = "FCSG-M(momentum=0.5)"
LOSSES = {4: [8.0, 4.0], 7: [6.0, 3.0]}
"""By seed, the loss after rounds 1 and 2."""


def after(round):
    traces = [
        Trace(rows=[{"round": r, "loss": losses[r - 1], "bytes_up": 40} for r in range(1, round + 1)])
        for losses in LOSSES.values()
    ]
    return Progress(round, traces, None)


def track(name, folder, unit=UNIT):
    tracker = TRACKERS[name](folder)
    try:
        for round in (1, 2):
            tracker.log(unit, list(LOSSES), after(round))
    finally:
        tracker.close()


def noted(unit, seeds, progress):
    calls = []
    Forward(lambda *call: calls.append(call), lambda: None).log(unit, seeds, progress)
    return calls


def test_every_run_is_handed_on_with_its_newest_metrics():
    assert noted("A", [4, 7], after(2)) == [
        ("A/seed4", {"loss": 4.0, "bytes_up": 40}, 2),
        ("A/seed7", {"loss": 3.0, "bytes_up": 40}, 2),
    ]


def test_settings_of_a_grid_are_told_apart():
    assert [name for name, *_ in noted("A", [4], after(1))] == ["A/0/seed4", "A/1/seed4"]


def test_rounds_that_were_not_evaluated_say_nothing():
    assert noted("A", [4, 7], after(1)._replace(done=2)) == []


def test_by_default_nothing_is_tracked(tmp_path):
    assert isinstance(TRACKERS["none"](tmp_path), Silent)
    track("none", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_tracker_that_is_not_installed_says_what_to_install(tmp_path, monkeypatch, name):
    module = "torch.utils.tensorboard" if name == "tensorboard" else name
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FedcsoError, match=rf"'{name}' needs .*pip install 'fedcso\[track\]'"):
        TRACKERS[name](tmp_path)


THEIR_OWN_WARNINGS = pytest.mark.filterwarnings("ignore")


@THEIR_OWN_WARNINGS
def test_tensorboard_has_the_metrics(tmp_path):
    pytest.importorskip("tensorboard", reason="needs TensorBoard, of the extra `track`")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    track("tensorboard", tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    losses = {tag: values for tag, values in found.items() if tag.startswith("loss/")}
    assert sorted(losses.values()) == [[(1, 6.0), (2, 3.0)], [(1, 8.0), (2, 4.0)]]


@THEIR_OWN_WARNINGS
@pytest.mark.parametrize("unit", ["FCSG-M", UNIT])
def test_mlflow_has_the_metrics(tmp_path, unit):
    pytest.importorskip("mlflow", reason="needs MLflow, of the extra `track`")
    track("mlflow", tmp_path, unit)
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        rows = database.execute("SELECT step, value FROM metrics WHERE key LIKE '%/loss' ORDER BY key, step").fetchall()
    database.close()
    assert sorted(rows) == [(1, 6.0), (1, 8.0), (2, 3.0), (2, 4.0)]


@THEIR_OWN_WARNINGS
def test_wandb_has_the_metrics_and_stays_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs Weights & Biases, of the extra `track`")
    monkeypatch.setenv("WANDB_SILENT", "true")
    track("wandb", tmp_path)
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    # A process of wandb's own writes the file, and may be a little behind.
    patience = time.monotonic() + 20
    while f"{UNIT}/seed{max(LOSSES)}/loss".encode() not in file.read_bytes() and time.monotonic() < patience:
        time.sleep(0.1)
    content = file.read_bytes()
    for seed in LOSSES:
        assert f"{UNIT}/seed{seed}/loss".encode() in content
