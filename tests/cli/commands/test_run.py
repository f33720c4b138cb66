"""`fedcso run`: from options, files and own problems to a folder with everything in it."""

import json
import re
import statistics
import struct
import sys

import pytest
import torch
import yaml
from safetensors.torch import load_file

from fedcso import datasets
from fedcso.problems import PROBLEMS
from fedcso.runs.config import RunConfig, option_names
from fedcso.runs.folder import RunFolder
from tests.command_line import (
    BROKE_OFF,
    CLASSIFICATION,
    FINE,
    LOGISTIC,
    QUADRATIC,
    assert_same_contents,
    call,
    folders,
    read_csv,
    run,
    timeless,
    without_drawing,
)

MAML = ["maml", "--ways", "2", "--queries", "1", "--filters", "2", "--test-tasks", "2", "--validation-tasks", "2"]
ONE_ROUND = ["--rounds", "1", "--local-steps", "1", "--clients", "2", "--seeds", "1", "--algorithm", "Acc-FCSG-M"]
WITHOUT_CLIENTS = [*ONE_ROUND[:4], *ONE_ROUND[6:]]
OWN_OPTIONS = {
    "invariant_logistic": LOGISTIC,
    "nested_quadratic": QUADRATIC,
    "classification": CLASSIFICATION,
    "maml": [*MAML, *ONE_ROUND],
    "pretraining": ["pretraining", *MAML[1:], *ONE_ROUND],
    "auroc": ["auroc", *ONE_ROUND[:-1], "CODA+"],
}
COMMANDS = {
    problem: OWN_OPTIONS.get(
        problem, [problem, *(ONE_ROUND if "clients" in option_names(problem) else WITHOUT_CLIENTS)]
    )
    for problem in PROBLEMS
}
"""A short run of every problem: a new one is tried through its row in `fedcso.problems`."""
REPEATED = {"invariant_logistic", "classification", "auprc", "maml"}
"""One problem of each kind, run twice; that settings come back from a file is tested for all in `test_config`."""
METHODS = ["FCSG", "FCSG-M", "Acc-FCSG-M"]
SEEDS, ROUNDS, CLIENTS = 2, 3, 3

FILES = {
    *("config.yaml", "env.json", "status.json", "log.txt"),
    *("metrics.csv", "metrics.json", "random-iterate.csv", "clients.csv", "table.csv", "table.md", "table.tex"),
    *("curves.png", "curves.pdf", "report.html"),
    *("model-final.safetensors", "model-best.safetensors", "model-random.safetensors"),
}


RANKED = {"precision-recall.csv", "precision-recall.png", "precision-recall.pdf"}
"""What problems with positives and negatives leave besides."""


def files_of(task):
    """Return the files that a run of a task leaves."""
    more = RANKED if task.judge.rank is not None else set()
    more = more | {"models"} if task.judge.network is not None or task.files else more
    return {*FILES, *more, "checkpoints", *(["notes.txt"] if task.notes else [])}


@pytest.fixture
def quick_characters(monkeypatch):
    """Noise instead of characters, which take their time to be drawn."""
    noise = [torch.randint(256, (6, 20, 28, 28), dtype=torch.uint8) for _ in range(3)]
    monkeypatch.setitem(datasets.CHARACTERS, "glyphs", lambda: datasets.Characters(*noise))


@pytest.mark.parametrize("problem", COMMANDS)
@pytest.mark.usefixtures("quick_characters")
def test_a_run_leaves_all_files_and_its_settings_give_the_same_run_again(tmp_path, monkeypatch, problem):
    without_drawing(monkeypatch)
    folder = run("run", *COMMANDS[problem], out=tmp_path / "a")
    expected = files_of(RunConfig.of(RunFolder(folder)).task())
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} == expected
    if problem not in REPEATED:
        return
    again = run("run", "--config", folder / "config.yaml", out=tmp_path / "b")
    for name in ("metrics.csv", "random-iterate.csv", "clients.csv"):
        assert timeless(read_csv(again / name)) == timeless(read_csv(folder / name))
    for name in ("model-final.safetensors", "model-best.safetensors", "model-random.safetensors"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with everything."""
    return run("run", *LOGISTIC, out=tmp_path_factory.mktemp("runs"))


def test_settings_environment_status_and_log_can_be_read(finished):
    assert yaml.safe_load((finished / "config.yaml").read_text())["problem"] == LOGISTIC[0]
    assert json.loads((finished / "status.json").read_text()) == {"status": "done"}
    environment = json.loads((finished / "env.json").read_text())
    assert environment["seeds"] == list(range(SEEDS))
    assert re.fullmatch("[0-9a-f]{16}", environment["data"]["digest"])
    assert environment["versions"].keys() >= {"python", "torch", "fedcso"}
    assert "FCSG-M: 3 rounds done" in (finished / "log.txt").read_text()


def test_there_is_a_row_for_every_evaluation_and_client(finished):
    metrics, clients = read_csv(finished / "metrics.csv"), read_csv(finished / "clients.csv")
    runs = [(name, str(seed)) for name in METHODS for seed in range(SEEDS)]
    assert [(row["algorithm"], row["seed"], row["round"]) for row in metrics] == [
        (*one, str(r)) for one in runs for r in range(ROUNDS + 1)
    ]
    assert [(row["algorithm"], row["seed"], row["client"]) for row in clients] == [
        (*one, str(n)) for one in runs for n in range(CLIENTS)
    ]
    assert all(row["rounds"] == str(ROUNDS) and row["dropped"] == "0" for row in clients)
    assert all(float(row["loss"]) == float(row["loss"]) for row in metrics)


def test_the_models_of_all_runs_are_there(finished):
    for which in ("final", "best"):
        tensors = load_file(finished / f"model-{which}.safetensors")
        owners = {name.rsplit("/", 1)[0] for name in tensors}
        assert owners == {f"{name}/{seed}" for name in METHODS for seed in range(SEEDS)}


def test_the_table_has_a_line_for_every_iterate_of_every_method(finished):
    table = read_csv(finished / "table.csv")
    assert [(row["algorithm"], row["iterate"]) for row in table] == [
        (name, iterate) for name in METHODS for iterate in ("last", "best", "random")
    ]
    assert all(row["seeds"] == str(SEEDS) for row in table)
    assert all(row["rounds"] == str(ROUNDS) for row in table if row["iterate"] == "last")
    for file in ("table.md", "table.tex"):
        assert all(name in (finished / file).read_text() for name in METHODS)


def test_the_figures_are_what_they_are_called(finished):
    png, pdf = (finished / "curves.png").read_bytes(), (finished / "curves.pdf").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert min(width, height) > 500
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")


def test_the_page_stands_alone_and_has_the_table(finished):
    page = (finished / "report.html").read_text()
    assert not re.search(r"(src|href)=[\"'](?!data:)|@import|url\(|<link", page)
    assert "http://" not in page
    assert "https://" not in page
    assert all(f"<td>{name}</td>" in page for name in METHODS)
    assert "data:image/png;base64," in page
    assert f"problem: {LOGISTIC[0]}" in page


def test_it_says_where_everything_is(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    outcome = call("run", *QUADRATIC, "--out", tmp_path / "runs")
    (folder,) = folders(tmp_path / "runs")
    for file in ("curves.png", "report.html"):
        assert str(folder / file) in outcome.out
    assert all(name in outcome.out for name in METHODS)


# ------------------------------------------------------------------------------ the same run again


@pytest.fixture
def drawn_blank(tmp_path, monkeypatch):
    """A working folder in which figures are left out."""
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_printed_settings_give_the_same_run(drawn_blank):
    options = [*LOGISTIC, "--algorithm", "FCSG-M(momentum=0.5)", "SCAFFOLD", "--learning-rate", "cosine(0.1, 6)"]
    printed = call("run", *options, "--print-config")
    assert printed.code == FINE
    assert folders(drawn_blank / "runs") == []
    (drawn_blank / "printed.yaml").write_text(printed.out)
    first = run("run", *options, out=drawn_blank / "a")
    second = run("run", "--config", "printed.yaml", out=drawn_blank / "b")
    assert timeless(read_csv(first / "metrics.csv")) == timeless(read_csv(second / "metrics.csv"))


def test_options_go_before_the_file(drawn_blank):
    (drawn_blank / "settings.yaml").write_text("problem: nested_quadratic\nrounds: 5\nseeds: [4, 7]\nclients: 2\n")
    folder = run("run", "--config", "settings.yaml", "--rounds", "1", out=drawn_blank / "runs")
    rows = read_csv(folder / "metrics.csv")
    assert {row["round"] for row in rows} == {"0", "1"}
    assert {row["seed"] for row in rows} == {"4", "7"}


def test_a_file_written_by_hand_may_have_plain_numbers_and_names(drawn_blank):
    (drawn_blank / "settings.yaml").write_text(
        "problem: nested_quadratic\nalgorithm: FCSG-M\nlearning_rate: 0.05\nmomentum: 0.5\nrounds: 2\nseeds: 1\n"
    )
    by_file = run("run", "--config", "settings.yaml", out=drawn_blank / "a")
    options = ["--learning-rate", "0.05", "--momentum", "0.5", "--rounds", "2", "--seeds", "1"]
    by_hand = run("run", "nested_quadratic", "--algorithm", "FCSG-M", *options, out=drawn_blank / "b")
    assert timeless(read_csv(by_file / "metrics.csv")) == timeless(read_csv(by_hand / "metrics.csv"))


def test_dashes_and_underscores_are_the_same(drawn_blank):
    base = ["nested_quadratic", "--rounds", "1", "--seeds", "1"]
    dashes = run("run", *base, "--local-steps", "2", "--inner-batch=3", "--data-seed", "1", out=drawn_blank / "a")
    lines = run("run", *base, "--local_steps", "2", "--inner_batch=3", "--data_seed", "1", out=drawn_blank / "b")
    assert timeless(read_csv(dashes / "metrics.csv")) == timeless(read_csv(lines / "metrics.csv"))


def test_names_of_methods_may_be_in_any_case(drawn_blank):
    folder = run("run", *QUADRATIC, "--algorithm", "fcsg-m", "Scaffold", out=drawn_blank)
    assert {row["algorithm"] for row in read_csv(folder / "metrics.csv")} == {"fcsg-m", "Scaffold"}


@pytest.mark.parametrize("way", ["option", "file"])
def test_participation_may_be_a_number_of_clients(drawn_blank, way):
    (drawn_blank / "two.yaml").write_text("problem: nested_quadratic\nparticipation: 2\n")
    chosen = ["nested_quadratic", "--participation", "2"] if way == "option" else ["--config", "two.yaml"]
    folder = run("run", *chosen, *QUADRATIC[1:], "--algorithm", "FCSG", out=drawn_blank / "runs")
    clients = read_csv(folder / "clients.csv")
    assert sum(int(row["rounds"]) for row in clients) == 2 * ROUNDS * SEEDS


def test_one_participant_is_one_client_and_not_all(drawn_blank):
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "--participation", "1", out=drawn_blank)
    assert sum(int(row["rounds"]) for row in read_csv(folder / "clients.csv")) == ROUNDS * SEEDS


def test_a_common_setting_goes_to_every_method_that_has_it(drawn_blank):
    common = run("run", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", "--momentum", "0.7", out=drawn_blank / "a")
    alone = run("run", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M(momentum=0.7)", out=drawn_blank / "b")
    losses = [[row["loss"] for row in read_csv(folder / "metrics.csv")] for folder in (common, alone)]
    assert losses[0] == losses[1]


def test_a_methods_own_setting_goes_before_the_common_one(drawn_blank):
    options = ["--algorithm", "FCSG-M(momentum=0.2)", "--momentum", "0.9"]
    both = run("run", *QUADRATIC, *options, out=drawn_blank / "a")
    own = run("run", *QUADRATIC, *options[:2], out=drawn_blank / "b")
    losses = [[row["loss"] for row in read_csv(folder / "metrics.csv")] for folder in (both, own)]
    assert losses[0] == losses[1]


def test_options_reach_the_method_inside_another(drawn_blank):
    options = ["--base", "FCSG-M", "--momentum", "0.7", "--server-rate", "0.3"]
    common = run("run", *QUADRATIC, "--algorithm", "FedAdam", *options, out=drawn_blank / "a")
    nested = "FedAdam(base=FCSG-M(momentum=0.7), server_rate=0.3)"
    alone = run("run", *QUADRATIC, "--algorithm", nested, out=drawn_blank / "b")
    other = run("run", *QUADRATIC, "--algorithm", "FedAdam(base=FCSG-M, server_rate=0.3)", out=drawn_blank / "c")
    losses = [[row["loss"] for row in read_csv(folder / "metrics.csv")] for folder in (common, alone, other)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("engine", ["stacked", "threads", "reference"])
def test_engines_agree(drawn_blank, engine):
    expected = run("run", *QUADRATIC, out=drawn_blank / "a")
    folder = run("run", *QUADRATIC, "--engine", engine, out=drawn_blank / "b")
    for row, other in zip(read_csv(folder / "metrics.csv"), read_csv(expected / "metrics.csv"), strict=True):
        assert float(row["loss"]) == pytest.approx(float(other["loss"]))


def test_the_folder_is_called_after_the_name(drawn_blank):
    assert "_trial_" in run("run", *QUADRATIC, "--name", "trial", out=drawn_blank).name


# ---------------------------------------------------------------------------------- own problems

OWN = """
from dataclasses import dataclass

import torch

from fedcso import Judge, Problem, Task


@dataclass(frozen=True)
class Mean(Problem):
    shift: float = 0.0

    def init(self, rng):
        return {"x": torch.zeros(2, dtype=torch.float64)}

    def sample_outer(self, data, rng, shape):
        return data[torch.randint(len(data), shape, generator=rng)]

    def sample_inner(self, data, rng, xi, m):
        return xi.unsqueeze(-2) + torch.randn(*xi.shape[:-1], m, 2, generator=rng)

    def inner(self, x, xi, eta):
        return eta.mean(-2) - x["x"]

    def outer(self, y, xi):
        return (y - self.shift).square().sum(-1)


def measure_distance(x, test):
    return {"distance": (x["x"] - test).norm()}


def task(hospitals: int = 2, shift: float = 0.0) -> Task:
    clients = [torch.full((5, 2), n, dtype=torch.float64) for n in range(hospitals)]
    return Task(Mean(shift), clients, test=torch.ones(2), judge=Judge(measure_distance))


ready = task(3)
"""

FEW = ["--rounds", "2", "--seeds", "1", "--algorithm", "FCSG-M"]


@pytest.fixture
def own(drawn_blank, monkeypatch):
    monkeypatch.syspath_prepend(str(drawn_blank))
    (drawn_blank / "ownproblem.py").write_text(OWN)
    return drawn_blank


@pytest.mark.parametrize("name", ["ownproblem.py:task", "ownproblem:task", "./ownproblem.py:task"])
def test_an_own_problem_has_its_arguments_as_options(own, name):
    folder = run("run", name, *FEW, "--hospitals", "4", "--shift", "1.5", out=own / "runs")
    assert len(read_csv(folder / "clients.csv")) == 4
    assert yaml.safe_load((folder / "config.yaml").read_text())["shift"] == 1.5
    assert call("run", name, "--help").out.count("--hospitals") > 0


def test_an_own_problem_may_be_a_ready_task(own):
    folder = run("run", "ownproblem.py:ready", *FEW, out=own / "runs")
    assert len(read_csv(folder / "clients.csv")) == 3


def test_an_own_problem_in_the_current_folder_is_found_as_a_module(own, monkeypatch):
    monkeypatch.delitem(sys.modules, "ownproblem", raising=False)
    monkeypatch.undo()
    monkeypatch.chdir(own)
    without_drawing(monkeypatch)
    assert run("run", "ownproblem:task", *FEW, out=own / "runs")


def test_an_own_problem_runs_again_from_its_settings(own):
    folder = run("run", "ownproblem.py:task", *FEW, "--shift", "2", out=own / "a")
    again = run("run", "--config", folder / "config.yaml", out=own / "b")
    assert timeless(read_csv(again / "metrics.csv")) == timeless(read_csv(folder / "metrics.csv"))


def test_an_own_metric_is_in_the_metrics_and_in_the_table(own):
    folder = run("run", "ownproblem.py:task", *FEW, out=own / "runs")
    assert all(float(row["distance"]) > 0 for row in read_csv(folder / "metrics.csv"))
    assert "distance" in (folder / "table.md").read_text()


def test_an_own_file_does_not_take_the_place_of_a_module(own, monkeypatch):
    monkeypatch.setitem(sys.modules, "statistics", statistics)  # is put back
    (own / "statistics.py").write_text(OWN)
    run("run", "statistics.py:task", *FEW, out=own / "runs")
    assert sys.modules["statistics"] is statistics


# ------------------------------------------------------------------------------------ divergence

HUGE = "1e200"


def test_a_run_that_diverges_is_told_and_the_others_finish(drawn_blank):
    broken = f"FCSG(learning_rate={HUGE})"
    outcome = call("run", *QUADRATIC, "--algorithm", broken, "SCAFFOLD")
    (folder,) = folders(drawn_blank / "runs")
    assert outcome.code == BROKE_OFF
    assert "Traceback" not in outcome.err
    for seed in range(SEEDS):
        told = f"fedcso: {re.escape(broken)} failed: non-finite .* at client 0, round 0, .*seed {seed}"
        assert re.search(told, outcome.err)
    rows = read_csv(folder / "metrics.csv")
    assert max(int(row["round"]) for row in rows if row["algorithm"] == "SCAFFOLD") == ROUNDS
    assert max(int(row["round"]) for row in rows if row["algorithm"] == broken) == 0
    table = {row["algorithm"]: row["broke off"] for row in read_csv(folder / "table.csv")}
    assert table == {broken: str(SEEDS), "SCAFFOLD": ""}
    assert json.loads((folder / "status.json").read_text()) == {"status": "failed"}


@pytest.mark.parametrize("engine", ["stacked", "threads", "reference"])
def test_every_engine_tells_a_run_that_diverges(drawn_blank, engine):
    outcome = call("run", *QUADRATIC, "--engine", engine, "--algorithm", "FCSG", "--learning-rate", HUGE)
    assert outcome.code == BROKE_OFF
    assert outcome.err.count("at client 0, round 0") == SEEDS


def test_if_all_runs_break_off_the_table_says_so(drawn_blank):
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "--learning-rate", HUGE, out=drawn_blank, code=BROKE_OFF)
    rows = read_csv(folder / "table.csv")
    assert [(row["iterate"], row.get("broke off")) for row in rows] == [("last", str(SEEDS)), ("best", str(SEEDS))]


def test_a_run_that_grows_without_bounds_but_stays_finite_is_reported(drawn_blank):
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "--learning-rate", "1e30", out=drawn_blank)
    assert float(read_csv(folder / "table.csv")[0]["loss"]) > 1e100


def test_a_learning_rate_beyond_the_models_numbers_breaks_the_run_off(drawn_blank):
    outcome = call("run", *LOGISTIC, "--algorithm", "FCSG", "--learning-rate", HUGE)  # in single precision
    assert outcome.code == BROKE_OFF
    assert "at client 0, round 0" in outcome.err


def test_a_run_that_diverges_at_once_is_drawn_without_a_warning(tmp_path, monkeypatch):
    (tmp_path / "ownproblem.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    folder = run("run", "ownproblem.py:task", *FEW, "--learning-rate", HUGE, out=tmp_path / "runs", code=BROKE_OFF)
    assert (folder / "curves.png").stat().st_size > 0


def test_clients_that_are_dropped_are_counted(own):
    (own / "spoilt.py").write_text(OWN.replace("n, dtype", "n if n != 1 else torch.nan, dtype"))
    options = ["--rounds", "3", "--seeds", "1", "--algorithm", "FCSG", "--hospitals", "3", "--on-nonfinite", "drop"]
    folder = run("run", "spoilt.py:task", *options, out=own / "runs")
    assert [row["dropped"] for row in read_csv(folder / "clients.csv")] == ["0", "3", "0"]


def test_two_runs_in_the_same_second_have_folders_of_their_own(drawn_blank):
    folders_made = {run("run", *QUADRATIC, "--algorithm", "FCSG", out=drawn_blank) for _ in range(3)}
    assert len(folders_made) == 3
    first, *others = sorted(folders_made)
    for other in others:
        assert_same_contents(other, first)


def test_fedavg_on_a_nested_problem_is_told_to_be_another_method(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    tiny = ["--rounds", "1", "--local-steps", "1", "--seeds", "1", "--clients", "2", "--net", "linear", "--algorithm"]
    for problem, told in (("auprc", True), ("cross_entropy", False)):
        outcome = call("run", problem, *tiny, "FedAvg", "--out", tmp_path)
        assert ("note    FedAvg on AUPRC is FCSG" in outcome.out) is told
    assert "FedAvg on" not in call("run", "auprc", *tiny, "FCSG", "--out", tmp_path).out


def test_a_run_whose_patience_is_over_has_not_broken_off(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    few = ["--rounds", "20", "--local-steps", "1", "--seeds", "2", "--clients", "2", "--net", "linear"]
    folder = run("run", "auprc", *few, "--algorithm", "FCSG", "--evaluate-every", "1", "--patience", "1", out=tmp_path)
    last = {row["seed"]: int(row["round"]) for row in read_csv(folder / "metrics.csv")}
    assert max(last.values()) < 20
    assert "broke off" not in (folder / "table.md").read_text()
    assert RunFolder(folder).status == "done"


def test_a_finished_run_names_the_next_useful_command(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    several = call("run", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", "--out", tmp_path / "a").out
    assert several.splitlines()[-1].startswith(f"next    fedcso report {tmp_path / 'a'}")
    one = call("run", *QUADRATIC, "--algorithm", "FCSG", "--out", tmp_path / "b").out
    assert one.splitlines()[-1].startswith(f"next    fedcso compare {tmp_path / 'b'}")
    broken = call("run", *QUADRATIC, "--algorithm", "FCSG", "--learning-rate", 1e200, "--out", tmp_path / "c")
    assert broken.code == BROKE_OFF
    assert broken.out.splitlines()[-1].startswith(f"next    fedcso run --config {tmp_path / 'c'}")
