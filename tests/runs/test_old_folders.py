"""Run folders of version 0.1.0, begun and interrupted by it, are read and carried to their end as it would have done.

`old_folders/` holds what that version left: settings, environment and checkpoints, and the results of the same runs
when they were not interrupted (`expected-…`).
"""

import math
import shutil
from pathlib import Path

import pytest
import yaml

from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.tuning import SweepConfig
from tests.command_line import FINE, call, read_csv, timeless, without_drawing

OLD = Path(__file__).parent / "old_folders"
KINDS = {"run": RunConfig, "sweep": SweepConfig}

LAST_BITS = 1e-13
"""Another processor may add in another order."""


CALLED_NOW = {"validation loss": "loss F(x)", "validation loss ±": "loss F(x) ±"}
"""Columns of sweep.csv that have another name today."""


def assert_same_rows(found: Path, expected: Path) -> None:
    for row, old in zip(timeless(read_csv(found)), timeless(read_csv(expected)), strict=True):
        other = {CALLED_NOW.get(name, name): value for name, value in old.items()}
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert value == other[name] or math.isclose(float(value), float(other[name]), rel_tol=LAST_BITS), name


@pytest.mark.parametrize("kind", KINDS)
def test_its_settings_become_an_object_and_the_same_settings_again(kind):
    flat = RunFolder.open(OLD / kind).config()
    written = {"command": kind} | KINDS[kind].from_flat(flat).flat()
    assert {name: written[name] for name in flat} == flat
    assert {name: written[name] for name in written.keys() - flat.keys()} == {"weight_decay": 0.0, "patience": 0}


def test_its_settings_are_understood():
    config = RunConfig.of(RunFolder.open(OLD / "run"))
    assert config.problem == "nested_quadratic"
    assert config.problem_options["dimension"] == 2
    assert [method.text for method in config.methods] == ["FCSG-M", "Acc-FCSG-M(momentum=0.5)", "SCAFFOLD"]
    assert config.hyper_parameters == {"learning_rate": "cosine(0.1, 8)", "momentum": 0.2}
    assert (config.plan.rounds, config.plan.local_steps, config.plan.participation) == (4, 2, 2)
    assert config.seeds == (0, 1)
    assert (config.engine, config.estimator, config.device, config.track) == ("simulation", "plain", "cpu", "none")


def test_a_setting_that_it_lacks_is_what_was_done_then(tmp_path):
    """The paper's surrogate of average precision, the only one of that version; today's default is another."""
    folder = shutil.copytree(OLD / "run", tmp_path / "run")
    settings = folder / "config.yaml"
    settings.write_text(settings.read_text().replace("problem: nested_quadratic", "problem: auprc"))
    options = RunConfig.of(RunFolder.open(folder)).problem_options
    assert (options["bounded"], options["logarithm"]) == (False, False)
    settings.write_text(settings.read_text() + "bounded: true\nlogarithm: true\n")
    options = RunConfig.of(RunFolder.open(folder)).problem_options
    assert (options["bounded"], options["logarithm"]) == (True, True)


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_to_the_same_end(tmp_path, monkeypatch, kind):
    without_drawing(monkeypatch)
    folder = shutil.copytree(OLD / kind, tmp_path / kind)
    before = {path.name for path in folder.rglob("*.safetensors")}
    outcome = call("resume", folder)
    assert outcome.code == FINE, outcome.err
    assert before & {path.name for path in folder.rglob("*.safetensors")}  # it began with what was there
    assert_same_rows(folder / "metrics.csv", folder / "expected-metrics.csv")
    if kind == "sweep":
        assert_same_rows(folder / "sweep.csv", folder / "expected-sweep.csv")
        chosen, expected = (
            yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("chosen", "expected-chosen")
        )
        assert chosen == expected
