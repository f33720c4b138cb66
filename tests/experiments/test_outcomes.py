"""Outcomes of finished runs: small files from which an experiment goes on without running them again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.experiments import EXPERIMENTS
from fedcso.experiments.experiment import Runner, Settings
from fedcso.experiments.outcomes import FOLDER, Outcomes, outcomes_of
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit
from tests.helpers import nested_quadratic

PLAN = Plan(rounds=3, local_steps=2)
UNITS = [
    Unit("FCSG", nested_quadratic(), PLAN, [FCSG(Cosine(0.1, 6))], [0, 1], labels={"noise": 0.5}),
    Unit("FCSG-M", nested_quadratic(), PLAN, [FCSGM(0.1), FCSGM(0.2)], [0], engine="reference"),
]


def runner(folder) -> Runner:
    return Runner(folder, Settings())


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, "first", {}, {})


def measure(part, trace):
    return {"norm": float(trace.last.norm())}


def never(part, trace):
    raise AssertionError(f"{part.title} was run again")


def begin_from(folder, root, name="second"):
    """Start another folder with the outcomes of the first."""
    return RunFolder.create(root, name, {}, {}, files=outcomes_of(folder.path).files())


def test_an_experiment_goes_on_from_outcomes_without_running_them_again(folder, tmp_path):
    found = runner(folder).outcomes(UNITS, measure)
    recalled = runner(begin_from(folder, tmp_path)).outcomes(UNITS, never)
    for unit in UNITS:
        for setting, same in zip(found[unit.name], recalled[unit.name], strict=True):
            for trace, again in zip(setting, same, strict=True):
                assert json.dumps(again.rows) == json.dumps(trace.rows)
                assert again.costs == trace.costs
                assert again.measured == trace.measured == {"norm": float(trace.last.norm())}
                assert again.last is None


def test_only_what_is_missing_is_run(folder, tmp_path):
    runner(folder).outcomes(UNITS[:1], measure)
    ran = []

    def note(part, trace):
        ran.append(part.unit.name)
        return {}

    runner(begin_from(folder, tmp_path)).outcomes(UNITS, note)
    assert set(ran) == {"FCSG-M"}


@pytest.mark.parametrize(
    "changed",
    [
        replace(UNITS[0], plan=replace(PLAN, inner_batch=3)),
        replace(UNITS[0], algorithms=[FCSG(Cosine(0.2, 6))]),
        replace(UNITS[0], seeds=[0, 2]),
        replace(UNITS[0], labels={"noise": 0.7}),
    ],
    ids=["plan", "method", "seeds", "labels"],
)
def test_an_outcome_with_other_settings_does_not_count(folder, changed, caplog):
    runner(folder).outcomes(UNITS[:1], measure)
    found = runner(folder).outcomes([changed], lambda part, trace: {"again": 1.0})
    assert found["FCSG"][0][0].measured == {"again": 1.0}
    assert "other settings" in caplog.text


def change_saved(folder, change):
    """Change the saved settings of the first unit, as another version would have written them."""
    path = next((folder.path / FOLDER / "FCSG").iterdir())
    content = json.loads(path.read_text())
    change(content["settings"])
    path.write_text(json.dumps(content))


def test_an_outcome_stays_valid_when_a_field_is_added(folder):
    runner(folder).outcomes(UNITS[:1], measure)
    change_saved(folder, lambda settings: settings["plan"].pop("patience"))
    runner(folder).outcomes(UNITS[:1], never)


def test_an_outcome_with_another_default_does_not_count(folder):
    runner(folder).outcomes(UNITS[:1], measure)
    change_saved(folder, lambda settings: settings["plan"].update(clip="0.5"))
    assert runner(folder).outcomes(UNITS[:1], lambda part, trace: {"again": 1.0})["FCSG"][0][0].measured


def test_runs_of_several_seeds_are_saved_one_by_one(folder):
    runner(folder).outcomes(UNITS[1:], measure)
    assert [path.name for path in sorted((folder.path / FOLDER / "FCSG-M").iterdir())] == [
        "setting0-seed0.json",
        "setting1-seed0.json",
    ]


PUBLISHED = sorted((Path(__file__).parents[2] / "docs/reproduction/outcomes").iterdir())


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_published_outcomes_belong_to_an_experiment_and_can_be_read(folder):
    assert folder.name in EXPERIMENTS
    assert outcomes_of(folder).files()


def test_a_folder_without_outcomes_is_refused(tmp_path):
    with pytest.raises(FedcsoError, match="has no outcomes"):
        Outcomes(tmp_path).files()


@pytest.mark.parametrize("content", ["", "[]", '{"traces": [{}]}', '{"traces": []}'])
def test_a_damaged_outcome_is_named(tmp_path, content):
    path = tmp_path / "FCSG" / "all.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(FedcsoError, match=r"FCSG/all\.json is not an outcome"):
        Outcomes(tmp_path).files()
