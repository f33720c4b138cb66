"""What a finished fit hands on to a federation."""

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.fitting.chosen import FILE, read_chosen
from fedcso.fitting.config import FitConfig
from fedcso.fitting.objectives import OBJECTIVES
from fedcso.fitting.pipeline import Found, for_real_sites
from fedcso.fitting.train import Group, Tried
from fedcso.reports.wishes import Wishes
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder

FIT = FitConfig(
    "patients.csv", "ill", "hospital", positive="yes", drop="name", precision=0.5, prevalence=0.02, data_seed=3
)


def tried(key, value, first_rate=None):
    return Tried(Group(key, "mlp", first_rate), 0.3, 200, value, 0, None, False, None, ())


def fit_folder(root, *ranked, config=FIT, status="done"):
    folder = RunFolder.create(root, "fit", {"command": "fit"} | config.flat(), {})
    if ranked:
        folder.write(FILE, for_real_sites(Found(ranked[0], ranked, {}, [])))
    folder.mark(status)
    return folder.path


@pytest.mark.parametrize("key", [key for key, objective in OBJECTIVES.items() if objective.after is None])
def test_the_settings_are_those_of_the_chosen_objective(key, tmp_path):
    chosen = read_chosen(fit_folder(tmp_path, tried(key, 0.7)))
    objective = OBJECTIVES[key]
    config = RunConfig.from_flat({"problem": chosen.problem} | chosen.settings | chosen.method)
    ((name, built),) = config.built().items()
    assert (chosen.problem, name, chosen.note) == (objective.problem, objective.method, "")
    assert built.algorithm == objective.algorithm(0.3, 200)
    assert (config.plan.rounds, config.plan.outer_batch, config.plan.weights) == (20, objective.outer_batch, "size")
    assert config.problem_options.items() >= {"net": "mlp", **objective.options}.items()


def test_sites_read_their_tables_as_the_fit_did_and_thresholds_are_wanted_for_the_same(tmp_path):
    chosen = read_chosen(fit_folder(tmp_path, tried("weighted", 0.7)))
    found = chosen.settings
    assert {name: found[name] for name in ("label", "positive", "drop", "data_seed")} == {
        "label": "ill",
        "positive": "yes",
        "drop": "name,hospital",  # the column that named the site is none to learn from
        "data_seed": 3,
    }
    assert chosen.wishes == Wishes(precision=0.5, prevalence=0.02)
    assert not {"site", "data", "minutes", "columns", "prevalence"} & found.keys()


def test_the_column_of_sites_is_not_dropped_twice_where_columns_are_named(tmp_path):
    config = FitConfig("patients.csv", "ill", "hospital", columns="age,sex")
    found = read_chosen(fit_folder(tmp_path, tried("weighted", 0.7), config=config)).settings
    assert found["columns"] == "age,sex"
    assert "drop" not in found


def test_of_two_objectives_one_after_the_other_the_best_single_one_is_taken_and_the_note_says_so(tmp_path):
    ranked = tried("auprc_after_weighted", 0.81, 0.1), tried("auprc", 0.78), tried("weighted", 0.7)
    chosen = read_chosen(fit_folder(tmp_path, *ranked))
    assert (chosen.problem, chosen.method["algorithm"]) == ("auprc", ["FCSG-M"])
    assert f"one after the other: {OBJECTIVES['auprc_after_weighted'].title}" in chosen.note
    assert "validation average precision 0.7800 instead of 0.8100" in chosen.note


def test_a_folder_that_is_no_finished_fit_is_refused(tmp_path):
    with pytest.raises(FedcsoError, match="not a run folder"):
        read_chosen(tmp_path)
    other = RunFolder.create(tmp_path, "run", {"command": "run", "problem": "auprc"}, {}).path
    with pytest.raises(FedcsoError, match="written by `fedcso run`; name a folder written by `fedcso fit`"):
        read_chosen(other)
    for begun in (
        fit_folder(tmp_path, tried("weighted", 0.7), status="interrupted"),
        fit_folder(tmp_path, status="running"),
    ):
        with pytest.raises(FedcsoError, match=r"is not finished .*; continue it with: fedcso resume"):
            read_chosen(begun)


@pytest.mark.parametrize("content", ["rounds: 3", "problem: auprc\nalgorithm: []", "problem: auprc\nalgorithm: [A, B]"])
def test_a_damaged_file_is_refused(content, tmp_path):
    folder = fit_folder(tmp_path, tried("weighted", 0.7))
    (folder / FILE).write_text(content)
    with pytest.raises(FedcsoError, match="does not name a problem and one algorithm"):
        read_chosen(folder)
