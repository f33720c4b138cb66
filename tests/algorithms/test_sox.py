"""SOX and MOML: a state for each ξ, kept by the client; refused if ξ are not finite in number or too many."""

import pytest
import torch

from fedcso.algorithms import MOML, SOX, sox
from fedcso.core.algorithm import State
from fedcso.core.errors import FedcsoError
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.engines import simulation, threads
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from tests.command_line import BAD_INPUT, call, folders, read_csv, run, without_drawing
from tests.few_characters import ON_THE_COMMAND_LINE, instead_of_glyphs
from tests.helpers import CASES, CLEARLY, Numbered, assert_close, few_points, gap, run_on

ALPHA, GAMMA, BETA = 0.1, 0.4, 0.3
CASE = few_points(sizes=(4,))
POINTS = CASE.clients[0]
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)


def batch_of(*numbers: int, seed: int = 0) -> Batch:
    number = torch.tensor(numbers)
    eta = torch.randn(len(numbers), 2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Batch(Numbered(number, POINTS[number]), eta)


def step(batch: Batch, local=None, t: int = 1) -> State:
    """Return the state after one step from X and u = 0."""
    oracle = Oracle(CASE.problem, plain)
    oracle.outer_count = len(POINTS)
    return SOX(ALPHA, GAMMA, BETA).step(State({"x": X, "u": torch.zeros_like(X)}, local or {}), oracle, batch, t)


def inner_values(batch: Batch) -> torch.Tensor:
    return batch.eta.mean(1) * X


# -------------------------------------------------------------------------------------- the table


def test_at_first_sight_the_tracked_value_is_the_estimate():
    batch = batch_of(2, 0)
    local = step(batch).local
    assert local["seen"].tolist() == [True, False, True, False]
    assert_close(local["y"][[2, 0]], inner_values(batch))


def test_what_was_seen_is_tracked_and_the_rest_stays_as_it_is():
    first, second = batch_of(2, 0), batch_of(2, 3, seed=1)
    before = step(first).local
    local = step(second, before).local
    assert local["seen"].tolist() == [True, False, True, True]
    assert_close(local["y"][2], (1 - GAMMA) * inner_values(first)[0] + GAMMA * inner_values(second)[0])
    assert_close(local["y"][3], inner_values(second)[1])
    assert_close(local["y"][[0, 1]], before["y"][[0, 1]], tolerance=0.0)


@pytest.mark.parametrize("known", [False, True], ids=["at first sight", "seen before"])
def test_of_one_that_is_twice_in_a_batch_the_later_counts(known):
    before = step(batch_of(1, 3)).local if known else None
    batch = batch_of(1, 0, 1, seed=1)
    local = step(batch, before).local
    expected = torch.lerp(before["y"][1], inner_values(batch)[2], GAMMA) if known else inner_values(batch)[2]
    assert_close(local["y"][1], expected)
    assert gap(inner_values(batch)[0], inner_values(batch)[2]) > CLEARLY


def test_each_of_the_two_enters_the_gradient_with_its_own_value():
    batch = batch_of(1, 1)
    state = step(batch, t=0)
    z = (batch.eta.mean(1) * (inner_values(batch) - POINTS[1])).mean(0)
    assert_close(state.shared, {"x": X - ALPHA * z, "u": z})


def test_a_step_leaves_the_state_it_began_with_alone():
    before = step(batch_of(1)).local
    copy = {name: leaf.clone() for name, leaf in before.items()}
    step(batch_of(1, 2, seed=1), before)
    assert_close(before, copy, tolerance=0.0)


def test_a_client_that_missed_a_round_has_kept_its_table():
    case, plan = few_points(), Plan(rounds=6, local_steps=1, outer_batch=2, inner_batch=2, participation=2)
    tables = []
    run_on(
        "reference", SOX(), case, plan, callbacks=[lambda progress: tables.append(progress.snapshot().state["local"])]
    )
    absent = 0
    for r in range(1, plan.rounds):
        for client in tables[r - 1].keys() - set(map(str, plan.participants(0, r, 4))):
            assert_close(tables[r][client], tables[r - 1][client], tolerance=0.0)
            absent += 1
    assert absent > 0


def test_the_table_does_not_travel():
    shared = run_on("reference", SOX(), few_points(), Plan(rounds=1, local_steps=1)).shared
    assert shared.keys() == {"x", "u"}


def test_moml_is_sox_where_the_outer_sample_is_a_task():
    assert MOML.step is SOX.step


# ------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("name", CASES)
def test_outer_samples_that_are_never_the_same_are_refused(name):
    case = CASES[name]
    with pytest.raises(
        FedcsoError, match=f"{type(case.problem).__name__} never draws the same outer sample twice; use FCSG-M"
    ):
        Job(SOX(), case, Plan())


def test_a_table_for_which_there_is_no_room_is_refused(monkeypatch):
    """Each state has 3 numbers: 5 fit into 15, a sixth does not."""
    monkeypatch.setattr(sox, "MOST_NUMBERS", 15)
    fits, too_many = few_points(sizes=(3, 5)), few_points(sizes=(3, 5, 6))
    Job(SOX(), fits, Plan())
    with pytest.raises(
        FedcsoError, match=r"client 2 has 6 outer samples .* a state of 3 numbers .* use at most 5 outer samples"
    ):
        Job(SOX(), too_many, Plan())


def test_the_refusal_says_how_much_memory_it_would_take(monkeypatch):
    monkeypatch.setattr(CASE.problem.__class__, "outer_count", lambda self, data: 1_000_000_000)
    with pytest.raises(
        FedcsoError, match=r"client 0 has 1,000,000,000 outer samples .* 12\.0 GB .* use at most 16,666,666 "
    ):
        Job(SOX(), CASE, Plan())


def test_it_is_played_by_threads_because_tables_differ_in_size():
    assert simulation.choose(Job(SOX(), CASE, Plan())) is threads.ENGINE


def test_it_can_not_be_stacked_and_says_so():
    with pytest.raises(FedcsoError, match="stacked"):
        run_on("stacked", SOX(), CASE, Plan(rounds=1, local_steps=1))


# ----------------------------------------------------------------------------------- command line


@pytest.fixture
def characters(monkeypatch):
    without_drawing(monkeypatch)
    instead_of_glyphs(monkeypatch)


def assert_refused(*arguments, says):
    outcome = call("run", "maml", *ON_THE_COMMAND_LINE, "--algorithm", "MOML", *arguments)
    assert outcome.code == BAD_INPUT, outcome
    assert outcome.err.startswith("fedcso: ")
    assert outcome.err.count("\n") == 1, outcome.err
    for words in says:
        assert words in outcome.err


def test_tasks_drawn_afresh_are_refused_on_the_command_line(characters, tmp_path):
    assert_refused("--out", tmp_path, says=["MAML never draws the same outer sample twice", "(for maml: tasks)"])
    assert not folders(tmp_path)


def test_too_many_tasks_are_refused_on_the_command_line(characters, tmp_path):
    says = ["client 0 has 200,000 outer samples (for maml: tasks)", "GB in float32", "use at most"]
    assert_refused("--tasks", 200_000, "--out", tmp_path, says=says)
    assert not folders(tmp_path)


def test_few_tasks_are_played_on_the_command_line(characters, tmp_path):
    options = ["--algorithm", "MOML", "FCSG-M", "--tasks", 2, "--local_steps", 3]
    folder = run("run", "maml", *ON_THE_COMMAND_LINE, *options, out=tmp_path)
    metrics = read_csv(folder / "metrics.csv")
    assert {row["algorithm"] for row in metrics} == {"MOML", "FCSG-M"}
    assert len({row["loss"] for row in metrics}) == 3  # both start at the same, and end where the other does not
