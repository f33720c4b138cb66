"""Every experiment: its settings come back from a file, also from files of version 0.1.0 (`old_settings/`).

Tables 1 and 2, Figures 2 and 3 and the comparison of estimators are not among the old ones: their runs have become
longer, take more tasks per step, or are on other problems, so folders of that version can't be continued.
"""

from pathlib import Path

import pytest
import yaml

from fedcso.experiments import EXPERIMENTS
from fedcso.experiments.experiment import Runner, Settings
from fedcso.runs.folder import RunFolder

OLD = {path.stem: yaml.safe_load(path.read_text()) for path in (Path(__file__).parent / "old_settings").glob("*.yaml")}

every_experiment = pytest.mark.parametrize("name", EXPERIMENTS)


def plain(settings: Settings) -> dict:
    """As they stand in a file."""
    return yaml.safe_load(yaml.safe_dump(settings.flat()))


@every_experiment
@pytest.mark.parametrize("quick", [True, False])
def test_its_settings_come_back_from_a_file(name, quick):
    experiment = EXPERIMENTS[name]
    settings = experiment.settings(quick)
    values = plain(settings)
    assert plain(EXPERIMENTS[name].settings(not quick).updated(values)) == values


@every_experiment
def test_it_has_a_title_and_a_smaller_version(name):
    experiment = EXPERIMENTS[name]
    assert experiment.title
    assert plain(experiment.settings(True)) != plain(experiment.settings(False))


@pytest.mark.parametrize("name", sorted(OLD))
def test_settings_of_the_first_version_are_the_same(name):
    old = OLD[name]
    settings = EXPERIMENTS[old["experiment"]].settings(old["quick"])
    left_out = {"command", "experiment", "quick", "track"}
    known = {key: value for key, value in old.items() if key not in left_out}
    assert {key: plain(settings)[key] for key in known} == known  # there may be new ones
    assert plain(settings.updated(old)) == plain(settings)


def test_what_a_file_says_counts(tmp_path):
    settings = EXPERIMENTS["table1"].settings(True)
    changed = settings.updated({"seeds": [5], "speed_up": {"steps": 7}, "track": "none"})
    assert changed.seeds == [5]
    assert (changed.speed_up.steps, changed.speed_up.share) == (7, settings.speed_up.share)


def test_checkpoints_come_as_the_settings_say(tmp_path):
    settings = EXPERIMENTS["figure1"].settings(True).updated({"checkpoint_rounds": 3})
    folder = RunFolder.create(tmp_path, "figure1", settings.flat(), {})
    assert Runner(folder, settings).rhythm.rounds == 3
