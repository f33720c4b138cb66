"""What a run leaves: files, table, page and exported network speak of the same models, and test data choose none."""

from dataclasses import replace
from statistics import fmean

import onnxruntime
import pytest
import torch
from safetensors.torch import load_file

from fedcso.algorithms import FCSG
from fedcso.core.judge import ByClient
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.tree import leaves
from fedcso.engines import run_grid
from fedcso.engines.job import Job
from fedcso.reports import outputs
from fedcso.reports.recorded import record_of
from fedcso.runs.folder import RunFolder
from fedcso.runs.tables import table_in
from tests.command_line import without_drawing, without_figures
from tests.rare import auprc_case, labelled

F1 = Metric("f1", "F1", higher_is_better=True)
SEEDS = [4, 7, 9]
PLAN = Plan(rounds=6, local_steps=2, outer_batch=2, inner_batch=4)
TEST, VALIDATION = labelled(30, 8, seed=99), labelled(20, 6, seed=98)


def length(x):
    return float(sum(leaf.square().sum() for leaf in leaves(x)))


def f1(x, data):
    """On test data the shortest x is best, on validation data one of length 0.65, which is met in the middle."""
    return {"f1": -abs(length(x) - 0.65) if data is VALIDATION else -length(x)}


def task(**held_out):
    case = auprc_case(sigmoid=True, margin=0.5)
    return replace(case, judge=replace(case.judge, evaluate=f1, metrics=[F1], select="f1"), **held_out)


def carried_out(place, whole):
    """A run's folder, its table, its traces, and by seed the iterates after 0, 1, 2, … rounds."""
    iterates = {seed: [Job(FCSG(0.5), whole, PLAN, seed).start()] for seed in SEEDS}

    def note(progress):
        for seed, trace in zip(SEEDS, progress.traces, strict=True):
            iterates[seed].append(trace.last)

    (traces,) = run_grid([FCSG(0.5)], whole, PLAN, SEEDS, callbacks=[note])
    folder = RunFolder.create(place, "run", {"problem": "own", "rounds": PLAN.rounds}, {"clients": 4})
    return folder, outputs.write_all(folder, {"FCSG": [traces]}, SEEDS, whole), traces, iterates


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return tmp_path


def in_file(folder, name, seed):
    tensors = load_file(folder.path / f"model-{name}.safetensors")
    return {leaf: tensors[f"FCSG/{seed}/{leaf}"] for leaf in ("weight", "bias")}


def same(x, y):
    return all(torch.equal(x[name], y[name]) for name in ("weight", "bias"))


def test_validation_data_choose_what_is_exported_where_test_data_disagree(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    folder, table, _, iterates = carried_out(tmp_path, task(test=TEST, validation=VALIDATION))
    values = {(seed, r): f1(x, VALIDATION)["f1"] for seed, some in iterates.items() for r, x in enumerate(some)}
    tested = {(seed, r): f1(x, TEST)["f1"] for seed, some in iterates.items() for r, x in enumerate(some)}
    seed, place = max(values, key=values.__getitem__)
    assert seed not in (SEEDS[0], max(tested, key=tested.__getitem__)[0])
    assert 0 < place < PLAN.rounds

    best = {one: max(range(PLAN.rounds + 1), key=lambda r, one=one: values[one, r]) for one in SEEDS}
    for one in SEEDS:
        assert same(in_file(folder, "best", one), iterates[one][best[one]])
        assert same(in_file(folder, "final", one), iterates[one][-1])
    session = onnxruntime.InferenceSession(folder.path / "models" / "FCSG.onnx")
    (scores,) = session.run(None, {"inputs": TEST.inputs.numpy()})
    expected = auprc_case().problem.scores.logits(iterates[seed][place], TEST.inputs).detach()
    torch.testing.assert_close(torch.from_numpy(scores).flatten(), expected)

    statement = f"FCSG: seed {seed}, after round {place} (best validation F1, {values[seed, place]:.4g})"
    assert record_of(folder).statements() == [statement]
    assert statement in (folder.path / "models" / "LOADING.md").read_text()
    assert statement in (folder.path / "report.html").read_text()
    line = next(line for line in table if line["iterate"] == "best")
    assert line["f1"].mean == pytest.approx(sum(tested[one, r] for one, r in best.items()) / len(SEEDS))


def test_clients_and_precision_recall_curves_are_of_the_best_iterate(drawn):
    case = auprc_case(sigmoid=True, margin=0.5)
    both = replace(
        case.judge, evaluate=lambda x, data: f1(x, data) | case.judge.evaluate(x, data), metrics=[F1], select="f1"
    )
    at_home = ByClient(TEST, [TEST] * len(case.clients))
    folder, _, traces, _ = carried_out(drawn, replace(case, test=at_home, validation=VALIDATION, judge=both))
    precision = [float(case.judge.measure(trace.best, TEST)["average_precision"]) for trace in traces]
    assert precision != pytest.approx([trace.rows[-1]["average_precision"] for trace in traces])
    first = [row["average_precision"] for row in table_in(folder.path / "clients.csv") if row["client"] == 0]
    assert first == pytest.approx(precision)
    ranked = table_in(folder.path / "precision-recall.csv")
    areas = [fmean(row["precision"] for row in ranked if row["seed"] == seed) for seed in SEEDS]
    assert areas == pytest.approx(precision, abs=0.01)


def test_the_random_iterate_is_in_its_file_in_the_table_and_on_the_page(drawn):
    folder, table, traces, _ = carried_out(drawn, task(test=TEST, validation=VALIDATION))
    tested = [f1(trace.output, TEST)["f1"] for trace in traces]
    for seed, trace in zip(SEEDS, traces, strict=True):
        assert same(in_file(folder, "random", seed), trace.output)
    line = next(line for line in table if line["iterate"] == "random")
    assert line["f1"].mean == pytest.approx(fmean(tested))
    assert "<td>random</td>" in (folder.path / "report.html").read_text()
    rows = table_in(folder.path / "random-iterate.csv")
    assert [(row["seed"], row["f1"]) for row in rows] == list(zip(SEEDS, tested, strict=True))


def test_without_validation_data_the_first_seed_is_exported_and_test_data_choose_nothing(drawn):
    folder, _, traces, iterates = carried_out(drawn, task(test=TEST))
    losses = traces[0].column("train_loss")
    place = losses.index(min(losses[1:]))
    assert place != traces[0].column("f1").index(max(traces[0].column("f1")))
    assert same(in_file(folder, "best", SEEDS[0]), iterates[SEEDS[0]][place])
    (statement,) = record_of(folder).statements()
    assert statement.startswith(f"FCSG: seed {SEEDS[0]}, after round {place} (chosen without validation data: ")


def test_a_report_made_anew_from_the_folder_says_the_same(drawn):
    folder, table, _, _ = carried_out(drawn, task(test=TEST, validation=VALIDATION))
    before = (folder.path / "report.html").read_text()
    again = outputs.write_report(folder, record_of(folder), outputs.title_of(folder), PLAN.rounds)
    assert again == table
    assert (folder.path / "report.html").read_text() == before


def test_a_folder_without_declarations_is_shown_without_a_chosen_model(drawn):
    """As earlier versions left it; they chose on test data."""
    folder, _, _, _ = carried_out(drawn, task(test=TEST, validation=VALIDATION))
    for name in ("metrics.json", "random-iterate.csv"):
        (folder.path / name).unlink()
    table = outputs.write_report(folder, record_of(folder), "title", PLAN.rounds)
    assert [line["iterate"] for line in table] == ["last"]
    assert "f1" in table[0]
    assert "Exported" not in (folder.path / "report.html").read_text()
