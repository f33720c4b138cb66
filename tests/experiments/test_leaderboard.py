"""The leaderboard in miniature: equal budgets, methods that are left out, a method of the user, and the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fedcso.experiments.leaderboard import build, pose_for, rounds_within, space
from fedcso.experiments.leaderboard_settings import settings
from fedcso.experiments.outcomes import read_outcome
from fedcso.runs.methods import MethodSpec
from tests.browser import needs_browser, visit
from tests.command_line import BAD_INPUT, call, read_csv, run, without_drawing
from tests.experiments.miniature import shrink

METHODS = ["FCSG", "FCSG-M", "PAGE", "SLATE", "SOX", "BSGD"]
OWN = """
from dataclasses import dataclass
from fedcso import Algorithm, State

@dataclass(frozen=True)
class Mine(Algorithm):
    learning_rate: float = 0.01

    def step(self, state, oracle, batch, t):
        x = state.shared["x"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), self.learning_rate)})
"""


@pytest.fixture(scope="module", autouse=True)
def tiny():
    contests = settings(False).contests
    small = {
        "nested_quadratic": replace(
            contests["nested_quadratic"], options={"clients": 2}, rounds=8, evaluations=2, local_steps=5, outer_batch=2
        ),
        "kl_dro": replace(
            contests["kl_dro"],
            options={"clients": 2},
            rounds=8,
            evaluations=2,
            local_steps=5,
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink(patch, "leaderboard", contests=small, methods=METHODS, factors=[0.3, 1.0, 3.0], turns=1, seeds=[0, 1])
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "leaderboard", out=tmp_path_factory.mktemp("runs"))


def test_every_method_takes_part_where_it_fits_and_is_else_left_out_with_a_note(finished):
    took_part = {(row["problem"], row["method"]) for row in read_csv(finished / "results.csv")}
    left_out = {(row["problem"], row["method"]): row["reason"] for row in read_csv(finished / "left-out.csv")}
    assert took_part | left_out.keys() == {
        (problem, name) for problem in ("nested_quadratic", "kl_dro") for name in METHODS
    }
    assert left_out.keys() == {("nested_quadratic", "SOX"), ("nested_quadratic", "BSGD")}
    for (_, method), reason in left_out.items():
        assert method in reason


def test_all_methods_draw_the_same_number_of_samples_or_fewer_by_less_than_a_round(finished):
    for row in read_csv(finished / "results.csv"):
        whole = 2 * 40 * (2 if row["problem"] == "nested_quadratic" else 1)
        if row["method"] == "PAGE":
            assert whole / 2 < int(row["samples ξ"]) <= whole
        else:
            per_sample = 8 if row["problem"] == "nested_quadratic" else 16
            assert (int(row["samples ξ"]), int(row["samples η"])) == (whole, per_sample * whole)


def test_all_methods_have_the_same_number_of_trials(finished):
    for problem in ("nested_quadratic", "kl_dro"):
        for method in {row["method"] for row in read_csv(finished / "results.csv") if row["problem"] == problem}:
            tried = [finished / "outcomes" / f"{problem}_{method}_trials_{turn}" for turn in (0, 1)]
            assert [sum(len(read_outcome(path)["traces"]) for path in one.glob("*.json")) for one in tried] == [3, 2]


def test_ranks_over_problems_are_in_the_table_and_the_page(finished):
    table = read_csv(finished / "table.csv")
    ranks = [float(row["mean relative rank"]) for row in table]
    assert ranks == sorted(ranks)
    assert {row["method"]: row["problems"] for row in table} == dict.fromkeys(METHODS, "2") | {"SOX": "1", "BSGD": "1"}
    assert (finished / "leaderboard.png").is_file()
    html = (finished / "leaderboard.html").read_text()
    assert not re.search(r"https?://|<link|src=", html)
    assert html.count("<table>") == 3
    assert '<select data-column="problem">' in html
    assert "BSGD, which runs on one machine" in html
    assert "`fedcso reproduce leaderboard`" in (finished / "reproduction.md").read_text()


def test_a_method_of_the_user_takes_part_and_nothing_else_is_run_again(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    added = run("reproduce", "leaderboard", "--algorithm", "mine.py:Mine", "--from", finished, out=tmp_path / "runs")
    results = {(row["problem"], row["method"]): row for row in read_csv(added / "results.csv")}
    for problem in ("nested_quadratic", "kl_dro"):
        mine, same = results[problem, "mine.py:Mine"], results[problem, "FCSG"]
        assert mine["group"] == "your own"
        assert mine["score"] == same["score"]  # this method is FCSG
    assert all("Mine" in path.name for path in (added / "checkpoints").iterdir())
    assert list((added / "sources").glob("mine-*.py"))
    assert "`fedcso reproduce leaderboard --algorithm mine.py:Mine`" in (added / "reproduction.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["leaderboard", "--algorithm", "FCSG"], "takes part already"),
        (["leaderboard", "--algorithm", "nowhere.py:Mine"], "there is no file"),
        (["leaderboard", "--algorithm", "FCSGG"], "did you mean FCSG"),
        (["leaderboard", "--data", "cifar10"], "unknown data set"),
        (["tracking", "--algorithm", "FCSG"], "no choice of methods"),
    ],
)
def test_mistakes_are_explained(tmp_path, arguments, said):
    outcome = call("reproduce", *arguments, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert said in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_problem_alone_has_the_same_runs(finished, tmp_path):
    folder = run("reproduce", "leaderboard", "--data", "kl_dro", "--from", finished, out=tmp_path)
    assert not (folder / "checkpoints").exists()
    assert {row["problem"] for row in read_csv(folder / "results.csv")} == {"kl_dro"}


def test_a_method_is_run_as_it_accepts_the_problem():
    """FCSG as it is, SLATE with a step in every round, BSGD with the data and the samples of all clients."""
    contest = settings(False).contests["auprc"]
    plans = {name: pose_for("auprc", contest, MethodSpec.parse(name)) for name in ("FCSG", "SLATE", "BSGD")}
    assert [len(pose.task.clients) for pose in plans.values()] == [8, 8, 1]
    assert [pose.plan.local_steps for pose in plans.values()] == [8, 1, 1]
    assert [pose.plan.rounds for pose in plans.values()] == [25, 200, 200]


def test_methods_with_larger_batches_have_fewer_rounds():
    contest = settings(False).contests["nested_quadratic"]
    pose = pose_for("nested_quadratic", contest, MethodSpec.parse("PAGE"))
    method = build(MethodSpec.parse("PAGE"), pose, {})
    budget = 8 * contest.rounds * contest.local_steps * contest.outer_batch
    rounds = rounds_within(budget, method, pose.task, pose.plan)
    drawn = [8 * sum(method.outer_batch(t, pose.plan) for t in range(10 * some)) for some in (rounds, rounds + 1)]
    assert drawn[0] <= budget < drawn[1]
    assert pose.plan.rounds == rounds < contest.rounds


def test_further_hyper_parameters_are_tried_around_their_defaults():
    contest = settings(False).contests["kl_dro"]

    def others(name):
        spec = MethodSpec.parse(name)
        return space(spec, pose_for("kl_dro", contest, spec), [0.1]).others

    assert others("FCSG") == {}
    assert others("FCSG-M") == {"momentum": pytest.approx((0.1 / 3, 0.1, 0.3))}
    assert others("SOX")["tracking"] == pytest.approx((0.5 / 3, 0.5, 0.75))
    assert others("ServerRate") == {"server_rate": pytest.approx((1 / 3, 1, 3))}


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_tables_sort_and_rows_are_chosen(finished, tmp_path, width):
    script = """
        const [methods, byProblem] = document.querySelectorAll('table');
        const names = () => [...methods.tBodies[0].rows].map(row => row.cells[0].textContent).join(' ');
        const head = methods.tHead.rows[0].cells[0], seen = [];
        head.click(); seen.push(head.getAttribute('aria-sort'), names());
        head.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));
        seen.push(head.getAttribute('aria-sort'), names());
        const select = document.querySelector('select[data-column=problem]');
        select.value = 'kl_dro'; select.dispatchEvent(new Event('change'));
        seen.push([...byProblem.tBodies[0].rows].filter(row => !row.hidden).length, byProblem.tBodies[0].rows.length);
        seen.push(document.documentElement.scrollWidth <= innerWidth);
        return seen.join('|');
    """
    seen = visit(finished / "leaderboard.html", script, tmp_path, width)
    ordered = " ".join(sorted(METHODS, key=str.lower))
    backwards = " ".join(sorted(METHODS, key=str.lower, reverse=True))
    assert seen.found == f"descending|{backwards}|ascending|{ordered}|6|10|true"
    assert seen.console == []
