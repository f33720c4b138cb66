"""Figures 2 and 3 in miniature, and their statements on results made by hand."""

import re

import pytest

from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError
from fedcso.core.trace import Trace
from fedcso.experiments import few_shot
from fedcso.experiments import few_shot_report as report
from fedcso.experiments.few_shot_report import PANELS
from fedcso.experiments.few_shot_settings import METHODS, OURS, PER_STEP, PER_TASK, THEIRS
from fedcso.models.conv4 import Conv4
from fedcso.problems import PROBLEMS
from fedcso.reports.tables import Estimate
from fedcso.runs import checkpoint
from fedcso.runs.study import as_file_name
from tests.command_line import FINE, INTERRUPTED, call, contents, interrupt_after, read_csv, run, without_drawing
from tests.experiments.miniature import NETWORK, shrink, shrink_few_shot

TINY = {
    "data": "glyphs",
    "clients": 2,
    "filters": 4,
    "local_steps": 1,
    "rounds": 2,
    "step_tasks": 2,
    "rotations": False,
    "long_steps": 10,
    "seeds": [0, 1],
    "evaluate_every": 2,
    "curve_tasks": 1,
    "client_tasks": 1,
    "test_tasks": 2,
    "trial_rounds": 1,
    "rates": [0.1, 0.01],
    "chosen": {},
}


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """Both figures with few of everything, a network of one layer, and nothing drawn."""
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink_few_shot(patch)
        for name in ("figure2", "figure3"):
            shrink(patch, name, **TINY)
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "figure2", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_statements_and_a_report(finished):
    for name in ("figure2.png", "figure2.pdf", "figure2-long.png", "figure2-long.pdf", "report.html", "table.tex"):
        assert (finished / name).is_file()
    document = (finished / "reproduction.md").read_text()
    assert document.startswith("# Figure 2: federated MAML, 5-way-1-shot\n")
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 6
    assert "4 trials of 1 steps for each method" in document
    assert "`fedcso reproduce figure2`" in document


def test_every_method_is_measured_for_every_seed_and_the_best_of_each_side_for_longer(finished):
    metrics = read_csv(finished / "metrics.csv")
    runs = {(row["algorithm"], row["seed"]) for row in metrics}
    longer = {method for method, _ in runs} - METHODS.keys()
    assert runs == {(method, seed) for method in METHODS for seed in "01"} | {(name, "0") for name in longer}
    sides = [OURS, *THEIRS.values()]
    assert len(longer) == len(sides)
    for side in sides:
        assert len(longer & {f"{method}, 10 steps" for method in side}) == 1
    for name in longer:
        assert [row["round"] for row in metrics if row["algorithm"] == name] == [str(done) for done in range(11)]
    assert all(row[metric.name] for row in metrics for metric in PANELS)


def test_every_method_was_tried_as_often_and_the_best_by_validation_is_reported(finished):
    tried = read_csv(finished / "trials.csv")
    assert [row["algorithm"] for row in tried] == [method for method in METHODS for _ in range(4)]
    for method in METHODS:
        best = min((row for row in tried if row["algorithm"] == method), key=lambda row: float(row["validation_loss"]))
        (line,) = [row for row in read_csv(finished / "table.csv") if row["algorithm"] == method]
        for name in ("learning_rate", *METHODS[method].tuned):
            assert float(line[name.replace("_", " ")]) == pytest.approx(float(best[name]), rel=0.005)


def test_test_tasks_decide_nothing(finished):
    """Settings and who runs for longer are chosen by tasks of validation characters."""
    options = ("clients", "filters", "test_tasks", "client_tasks")
    task = PROBLEMS["maml"](**{name: TINY[name] for name in options})

    def validated(unit, part):
        (trace,) = checkpoint.newest(finished / "checkpoints" / as_file_name(unit) / part).traces
        return {name: float(value) for name, value in task.judge.measure(trace.last, task.validation).items()}

    tried = {row["algorithm"]: float(row["validation_loss"]) for row in reversed(read_csv(finished / "trials.csv"))}
    for method in METHODS:
        assert validated(f"trial 0 {method}", "setting0-seed1000")["loss"] == tried[method]
    longer = {row["algorithm"] for row in read_csv(finished / "metrics.csv")} - METHODS.keys()
    for side in (OURS, *THEIRS.values()):
        scores = {m: sum(validated(m, f"setting0-seed{seed}")["accuracy"] for seed in (0, 1)) for m in side}
        assert f"{max(side, key=scores.__getitem__)}, 10 steps" in longer


def test_it_goes_on_from_the_outcomes_of_an_earlier_run(finished, tmp_path, monkeypatch):
    """Nothing is run or measured again, so no model is needed."""
    monkeypatch.setattr(few_shot, "measured_on", lambda task: lambda part, trace: pytest.fail("measured again"))
    folder = run("reproduce", "figure2", "--from", finished, out=tmp_path)
    assert not list(folder.glob("checkpoints/*"))
    for name in ("metrics.csv", "clients.csv", "trials.csv", "table.csv"):
        assert (folder / name).read_text() == (finished / name).read_text()


def test_clients_measure_the_last_models_at_home(finished):
    rows = read_csv(finished / "clients.csv")
    assert len(rows) == 2 * (2 * len(METHODS) + len(THEIRS) + 1)
    last = [row for row in read_csv(finished / "metrics.csv") if row["algorithm"] == "FCSG" and row["seed"] == "1"][-1]
    mean = sum(float(row["loss"]) for row in rows if row["algorithm"] == "FCSG" and row["seed"] == "1") / 2
    assert float(last["client_loss"]) == pytest.approx(mean, rel=1e-12)


def test_curves_and_table_are_of_different_tasks(finished):
    """The table's test tasks are all of them, the curves' only the first."""
    last = [row for row in read_csv(finished / "metrics.csv") if row["algorithm"] == "FCSG" and row["round"] == "2"]
    (line,) = [row for row in read_csv(finished / "table.csv") if row["algorithm"] == "FCSG"]
    assert float(line["unseen loss"]) != pytest.approx(sum(float(row["loss"]) for row in last) / 2)


def test_interrupted_and_resumed_it_ends_the_same(finished, tmp_path):
    """Once while settings are tried, and once in a run that is reported."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(patch, rounds=1, unit=f"trial 0 Local-SCGD, {PER_STEP}")
        folder = run("reproduce", "figure2", out=tmp_path, code=INTERRUPTED)
        interrupt_after(patch, rounds=1, unit="Acc-FCSG-M")
        assert call("resume", folder).code == INTERRUPTED
    assert call("resume", folder).code == FINE
    (folder / "reproduction.md").unlink()  # names the seconds of computing
    expected = contents(finished)
    expected.pop("reproduction.md")
    assert contents(folder) == expected


def test_quick_tries_nothing_and_says_so(tmp_path, monkeypatch):
    """With the network itself."""
    monkeypatch.setattr(*NETWORK, Conv4)
    whole = few_shot.settings(5, quick=True)
    shrink(monkeypatch, "figure3", rounds=1, seeds=[0], chosen=whole.chosen, long_steps=whole.long_steps)
    folder = run("reproduce", "figure3", "--quick", out=tmp_path)
    document = (folder / "reproduction.md").read_text()
    assert "quick version, which is too short" in document
    assert "Not tuned here, but roughly those of trials on Omniglot with one task per client and step" in document
    assert document.startswith("# Figure 3: federated MAML, 5-way-5-shot\n")
    assert {row["algorithm"] for row in read_csv(folder / "metrics.csv")} == METHODS.keys()
    assert not list((folder / "checkpoints").glob("trial*"))
    assert not (folder / "figure3-long.png").exists()


@pytest.mark.parametrize("shots", [1, 5])
def test_quick_is_smaller_in_everything(shots):
    quick, whole = few_shot.settings(shots, True), few_shot.settings(shots, False)
    for name in ("clients", "rounds", "long_steps", "filters", "curve_tasks", "test_tasks"):
        assert getattr(quick, name) < getattr(whole, name)
    assert len(quick.seeds) < len(whole.seeds)
    assert quick.chosen.keys() == METHODS.keys()
    for method, settings in quick.chosen.items():
        assert settings.keys() == {"learning_rate", *METHODS[method].tuned}
    assert not whole.chosen
    assert whole.trial_seed not in whole.seeds
    assert whole.shots == quick.shots == shots


@pytest.mark.parametrize("shots", [1, 5])
def test_the_settings_are_the_published_ones_and_the_papers_rates_are_among_ours(shots):
    config = few_shot.settings(shots, quick=False)
    assert (config.clients, config.step_tasks, config.local_steps, config.long_steps) == (16, 5, 10, 500)
    assert config.filters == 64
    assert config.rotations
    plan = few_shot.plan_of(config, 2)
    assert (plan.outer_batch, plan.inner_batch, plan.local_steps, plan.rounds) == (5, shots, 10, 2)
    assert list(config.momentum) == [0.1, 0.5, 0.9]
    assert {0.1, 0.05, 0.01} <= set(config.rates)


# ------------------------------------------------------------------------------- results made by hand

NOISE = [-0.01, 0.0, 0.01]
"""Of a seed, the same for all methods: seed by seed nothing is left of it."""


def measured(accuracy, validated=None):
    """What a run has measured; by default the same accuracy on validation tasks."""
    validated = accuracy if validated is None else validated
    return {
        "accuracy": accuracy,
        "validation_accuracy": validated,
        "loss": 1 - accuracy,
        "accuracy_interval": 0.02,
    }


def final(noise=NOISE, **levels):
    """Accuracies around a level for each method (with _ for -), the same for both rules, all others at 0.5."""
    levels = {name: levels.get(what.algorithm.replace("-", "_"), 0.5) for name, what in METHODS.items()}
    return {method: [measured(level + part) for part in noise] for method, level in levels.items()}


AHEAD = {"FCSG": 0.8, "FCSG_M": 0.85, "Acc_FCSG_M": 0.9, "Local_SCGD": 0.6, "Local_SCGDM": 0.7}


def check(results):
    """Return the statements for the first rule, which must be those for the second."""
    statements = report.check(results, {})
    first, second = (
        [one._replace(paper="", measured=one.measured.replace(rule, "")) for one in statements if rule in one.paper]
        for rule in (PER_STEP, PER_TASK)
    )
    assert first == second
    return first


def verdicts(**changes):
    return [statement.holds for statement in check(final(**AHEAD | changes))]


def test_all_statements_hold_where_they_are_made_to():
    assert verdicts() == [True, True]


@pytest.mark.parametrize("method", ["FCSG", "FCSG_M"])
def test_the_order_does_not_hold_if_one_of_ours_is_behind(method):
    assert verdicts(**{method: 0.65}) == [False, True]
    assert verdicts(**{method: 0.7}) == [False, True]  # beside is not ahead


@pytest.mark.parametrize("method", ["Local_SCGD", "Local_SCGDM"])
def test_the_order_does_not_hold_if_one_of_theirs_is_ahead(method):
    assert verdicts(**{method: 0.82}) == [False, True]
    assert verdicts(**{method: 0.95}) == [False, False]


def test_each_rule_is_judged_by_itself():
    results = final(**AHEAD)
    results[f"Local-SCGDM, {PER_TASK}"] = [measured(0.95)] * 3
    assert [statement.holds for statement in report.check(results, {})] == [True, True, False, False]


def test_the_margin_does_not_hold_if_seeds_disagree():
    results = final(**AHEAD)
    for rule in THEIRS:  # 0.7 in the mean, as before
        results[f"Local-SCGDM, {rule}"] = [measured(value) for value in (0.4, 0.75, 0.95)]
    assert [statement.holds for statement in check(results)] == [True, False]


def test_the_margin_is_that_of_the_best_of_each_side_on_validation_tasks_seed_by_seed():
    best = f"Local-SCGDM, {PER_STEP}, each the best of its side on validation tasks, seed by seed:"
    results = final(**AHEAD)
    _, margin, *_ = report.check(results, {})
    assert margin.measured.startswith(f"Acc-FCSG-M minus {best} 0.2000 ± 0.0000")
    results["FCSG"] = [measured(0.8 + part, validated=0.95) for part in NOISE]
    _, margin, *_ = report.check(results, {})
    assert margin.measured.startswith(f"FCSG minus {best} 0.1000 ± 0.0000")


def test_one_seed_is_not_enough_for_a_margin():
    assert [statement.holds for statement in check(final([0.0], **AHEAD))] == [True, False]


def test_a_run_that_broke_off_is_not_ahead():
    for method in OURS:
        order, _ = check(final(**AHEAD) | {method: [{}, {}, {}]})
        assert not order.holds


@pytest.mark.parametrize(("theirs", "holds"), [(0.8, True), (0.88, False), (0.95, False)])
def test_longer_runs_must_differ_by_more_than_the_interval_over_tasks(theirs, holds):
    longer = {"FCSG": "FCSG, 500 steps"} | {rule: f"{rule}, 500 steps" for rule in THEIRS}
    runs = {name: [{"accuracy": theirs, "accuracy_interval": 0.02}] for name in longer.values()}
    runs["FCSG, 500 steps"] = [{"accuracy": 0.9, "accuracy_interval": 0.02}]
    statements = report.check(final(**AHEAD) | runs, longer)
    assert [one.holds for one in statements] == [True, True, holds] * 2
    assert "0.0283" in statements[2].measured


def test_the_numbers_stand_in_the_statements():
    order, *_ = report.check(final(**AHEAD), {})
    ours, theirs = "Acc-FCSG-M 0.9000; FCSG-M 0.8500; FCSG 0.8000", ("Local-SCGDM", "Local-SCGD")
    assert order.measured.startswith(f"{ours}; {theirs[0]}, {PER_STEP} 0.7000; {theirs[1]}, {PER_STEP} 0.6000")
    assert str(order).startswith("HOLDS: “the three FCSG methods are ahead")


# ---------------------------------------------------------------------------------- tables and panels


def rows(methods=("FCSG", "FCSG-M"), seeds=(0, 1), rounds=(0, 3, 6), local_steps=10):
    return [
        {"algorithm": method, "seed": seed, "round": r, "step": r * local_steps}
        | dict.fromkeys([metric.name for metric in PANELS], 0.1 * (r + 1) + 0.01 * seed)
        | Costs(10 * r, 20 * r, 30 * r, r, 40 * r, 50 * r).as_dict()
        | {"seconds": 2.0 * r}
        for method in methods
        for seed in seeds
        for r in rounds
    ]


def test_the_table_has_the_last_models_on_all_tasks_their_settings_and_costs():
    measured = {
        method: [
            {"accuracy": 0.5, "loss": 2.0, "accuracy_interval": 0.03},
            {"accuracy": 0.7, "loss": 1.0, "accuracy_interval": 0.05},
        ]
        for method in ("FCSG", "FCSG-M")
    }
    chosen = {"FCSG": FCSG(0.123456), "FCSG-M": FCSGM(0.1, 0.5)}
    at_home = [
        {"algorithm": method, "seed": seed, "client": client, "accuracy": 0.5 + 0.1 * client + 0.05 * seed}
        for method in chosen
        for seed in (0, 1)
        for client in (1, 2)
    ]
    table = report.table(rows(), at_home, measured, chosen)
    assert [line["algorithm"] for line in table] == ["FCSG", "FCSG-M"]
    for line in table:
        assert line["seeds"] == 2
        assert line["unseen accuracy"].mean == pytest.approx(0.6)
        assert line["unseen loss"].mean == pytest.approx(1.5)
        assert line["± over tasks"] == "0.0400"
        assert line["worst client"] == "0.6000"
        assert isinstance(line["training accuracy"], Estimate)
        assert line["training accuracy"].mean == pytest.approx(0.705)
        assert [line[name] for name in ("rounds", "samples ξ", "gradients", "bytes sent", "seconds")] == [
            6,
            60,
            180,
            540,
            12.0,
        ]
        assert list(line)[-1] == "seconds"
    assert table[0]["learning rate"] == "0.123"
    assert table[1]["learning rate"] == "0.1"
    assert table[1]["momentum"] == "0.5"


def test_there_are_panels_for_loss_and_accuracy_of_characters_trained_on_and_unseen():
    figure = report.panels(rows(), {"FCSG": 0, "FCSG-M": 1})
    panels = figure.axes
    assert [axes.get_ylabel() for axes in panels] == list(PANELS.values())
    assert {axes.get_xlabel() for axes in panels} == {"local steps"}
    for axes in panels:
        assert [line.get_label() for line in axes.get_lines()] == ["FCSG", "FCSG-M"]
        assert list(axes.get_lines()[0].get_xdata()) == [0, 30, 60]
        assert axes.get_lines()[0].get_ydata() == pytest.approx([0.105, 0.405, 0.705])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FCSG", "FCSG-M"]


def test_a_curve_has_the_look_of_its_place():
    several = report.panels(rows(), {"FCSG": 0, "FCSG-M": 1})
    one = report.panels([row for row in rows() if row["algorithm"] == "FCSG-M"], {"FCSG-M": 1})
    (alone,), (_, beside) = one.axes[0].get_lines(), several.axes[0].get_lines()
    assert alone.get_color() == beside.get_color()
    assert alone.get_linestyle() == beside.get_linestyle()


def test_above_each_panel_stand_the_rounds():
    figure = report.panels(rows(), {"FCSG": 0, "FCSG-M": 1})
    figure.draw_without_rendering()
    above = [axes.child_axes for axes in figure.axes]
    for axes, (rounds,) in zip(figure.axes, above, strict=True):
        assert rounds.get_xlim() == pytest.approx([step / 10 for step in axes.get_xlim()])
    labels = [rounds.get_xlabel() for (rounds,) in above]
    assert labels == ["communication rounds"] * 2 + [""] * 2


def test_a_trial_that_broke_off_counts_as_the_worst():
    fine = Trace(rows=[{"validation_loss": 2.0}, {"validation_loss": 1.0}])
    assert few_shot._loss(fine) == 1
    assert few_shot._loss(Trace(rows=[{"validation_loss": 0.5}], failure=FedcsoError("non-finite loss"))) == float(
        "inf"
    )
