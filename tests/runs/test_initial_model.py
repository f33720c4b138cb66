"""`--init`: a run starts from the chosen model of another, also after that has gone."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.reports import outputs
from fedcso.runs.initial_model import FILE, read_initial
from tests.command_line import (
    BAD_INPUT,
    FINE,
    INTERRUPTED,
    assert_same_contents,
    call,
    interrupt_after,
    read_csv,
    run,
    without_drawing,
)

TINY = ["--clients", "3", "--seeds", "2", "--rounds", "2", "--local-steps", "2", "--evaluate-every", "1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Leave out what takes longest and is not the point."""
    without_drawing(monkeypatch)
    monkeypatch.setattr(outputs, "as_onnx", lambda network: b"")


@pytest.fixture
def source(tmp_path):
    methods = ["--algorithm", "FedAvg(learning_rate=0.1)", "FedAvg(learning_rate=0.0001)"]
    return run("run", "cross_entropy", *methods, *TINY, out=tmp_path / "source")


def chosen(folder, method, seed):
    models = load_file(folder / "model-best.safetensors")
    return {name.rsplit("/", 1)[1]: leaf for name, leaf in models.items() if name.startswith(f"{method}/{seed}/")}


def same(leaves, others):
    assert leaves.keys() == others.keys()
    return all(torch.equal(leaf, others[path]) for path, leaf in leaves.items())


def test_of_several_methods_the_best_on_validation_data_is_taken_and_any_can_be_named(source):
    rows = read_csv(source / "metrics.csv")
    best = max(rows, key=lambda row: float(row["validation_average_precision"]))
    assert same(read_initial(str(source)).leaves, chosen(source, best["algorithm"], best["seed"]))
    other = "FedAvg(learning_rate=0.0001)"
    seeds = [same(read_initial(f"{source}:{other}").leaves, chosen(source, other, seed)) for seed in (0, 1)]
    assert sum(seeds) == 1
    with pytest.raises(FedcsoError, match="unknown method"):
        read_initial(f"{source}:FCSG")


@pytest.mark.parametrize("problem", [["auprc"], ["auroc", "--algorithm", "CODA+"]])
def test_another_problem_starts_from_its_network(source, problem, tmp_path):
    folder = run("run", *problem, *TINY, "--init", source, out=tmp_path / "runs")
    first = [row for row in read_csv(folder / "metrics.csv") if row["round"] == "0"]
    best = max(float(row["validation_average_precision"]) for row in read_csv(source / "metrics.csv"))
    assert {float(row["validation_average_precision"]) for row in first} == {best}
    assert same(read_initial(str(folder / FILE)).leaves, read_initial(str(source)).leaves)
    again = run("run", "cross_entropy", *TINY, "--init", f"{folder}", out=tmp_path / "runs")  # and back
    assert (again / FILE).is_file()


def test_it_resumes_bit_identically_although_its_source_has_gone(source, tmp_path, monkeypatch):
    command = ["run", "auprc", "--algorithm", "FCSG-M", *TINY, "--init", source, "--fresh-last-layer"]
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    whole = run(*command, out=Path("runs")).resolve()
    monkeypatch.chdir(tmp_path / "stopped")
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        stopped = run(*command, out=Path("runs"), code=INTERRUPTED)
    shutil.rmtree(source)
    for old in (stopped / "checkpoints").rglob("*.safetensors"):
        old.unlink()  # it even starts again from the same weights
    assert call("resume", stopped).code == FINE
    assert_same_contents(stopped, whole)


def test_changed_weights_are_refused(source, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        folder = run("run", "auprc", *TINY, "--init", source, out=tmp_path / "runs", code=INTERRUPTED)
    weights = load_file(folder / FILE)
    save_file({path: leaf + 1 for path, leaf in weights.items()}, folder / FILE)
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "the weights that the run started from, is missing or has changed" in outcome.err


def test_a_file_with_the_weights_of_a_network(tmp_path):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    path = tmp_path / "net.safetensors"
    save_file(network.state_dict(), path)
    folder = run("run", "auprc", "--net", "linear", *TINY, "--init", path, out=tmp_path / "runs")
    assert torch.equal(read_initial(str(folder / FILE)).leaves["1.weight"], network[1].weight)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--init", "nowhere"], "there is no run folder and no file nowhere"),
        (["--init", "nowhere.safetensors"], "there is no file nowhere.safetensors"),
        (["--init", "."], "is not a run folder"),
        (["--fresh-last-layer"], "left out without init"),
    ],
)
def test_mistakes_are_told_before_a_folder_is_made(options, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = call("run", "auprc", *TINY, *options, "--out", "runs")
    assert outcome.code == BAD_INPUT
    assert told in outcome.err
    assert not (tmp_path / "runs").exists()


def test_a_shape_that_does_not_fit_names_the_leaf(source, tmp_path):
    outcome = call("run", "auprc", *TINY, "--net", "linear", "--init", source, "--out", tmp_path / "runs")
    assert outcome.code == BAD_INPUT
    assert "the leaf '1.weight' has the shape 32×64, the model's has 1×64" in outcome.err
    assert not (tmp_path / "runs").exists()
