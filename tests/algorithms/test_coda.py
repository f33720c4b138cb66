"""CODA+ against a literal transcription; without stages and anchors it is FedAvg; it needs min-max problems."""

from dataclasses import dataclass, field, replace

import pytest
import torch

from fedcso.algorithms import CODA, FedAvg
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import is_finite, nbytes
from fedcso.engines import run_grid
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.command_line import BAD_INPUT, call, folders
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, assert_same_run, gap, run_on
from tests.rare import as_model, as_vector, auprc_case, auroc_case, auroc_gradient

RATE, PROXIMITY = 0.4, 0.7
THREE = ((9, 3), (12, 2), (7, 4))
CASE = auroc_case(*THREE)
START = CASE.problem.init(torch.Generator().manual_seed(0))
PLAN = Plan(rounds=5, local_steps=2, outer_batch=4)
every_engine = pytest.mark.parametrize("engine", ENGINES)


# -------------------------------------------------------------------------------------- line by line


@dataclass
class Client:
    """v = (w, a, b) and y of one client, and its anchor in each stage that it took part in."""

    v: torch.Tensor
    y: torch.Tensor
    anchors: dict[int, torch.Tensor] = field(default_factory=dict)


def coda(case, plan, stage_steps, rate=RATE, proximity=PROXIMITY, seed=0):
    """Transcribe the method: anchor ← v at the start of stage s, η = η₀/3^s; average v and y after each round.

        v ← v − η(∇_v + (v − anchor)/γ),    y ← y + η ∂_y

    A client that missed the start of a stage takes as anchor what it received when it first took part in the stage.
    """
    job = Job(CODA(rate, proximity, stage_steps), case, plan, seed)
    samples, start, p = literal.drawn(job), job.start(), case.problem.positive_rate
    v = torch.cat([as_vector(start["primal"]["w"]), start["primal"]["a"][None], start["primal"]["b"][None]])
    y = start["dual"]
    clients = [Client(v, y) for _ in case.clients]
    for r in range(plan.rounds):
        chosen = job.participants(r)
        for n in chosen:
            one = clients[n]
            one.v, one.y = v, y
            for t in plan.steps(r):
                stage = t // stage_steps
                anchor = one.anchors.setdefault(stage, one.v)
                w_part, a_part, b_part, y_part = auroc_gradient(
                    p, one.v[:-2], one.v[-2], one.v[-1], one.y, samples[t][n].xi
                )
                gradient = torch.cat([w_part, a_part[None], b_part[None]])
                step = rate / 3**stage
                one.v, one.y = one.v - step * (gradient + (one.v - anchor) * proximity), one.y + step * y_part
        v, y = literal.mean([clients[n].v for n in chosen]), literal.mean([clients[n].y for n in chosen])
    return {"primal": {"w": as_model(v[:-2]), "a": v[-2], "b": v[-1]}, "dual": y}


@pytest.mark.parametrize("stage_steps", [4, 3, 1, 1000], ids=lambda steps: f"stages of {steps}")
def test_it_is_its_description_line_by_line(stage_steps):
    """Stages that start with a round (4), in the middle of one (3), at every step, and never."""
    expected = coda(CASE, PLAN, stage_steps)
    for engine, tolerance in {"reference": 1e-12, "stacked": 1e-12, "threads": 1e-12}.items():
        assert_close(run_on(engine, CODA(RATE, PROXIMITY, stage_steps), CASE, PLAN).last, expected, tolerance)


def test_anchors_and_stages_make_a_difference():
    last = run_on("reference", CODA(RATE, PROXIMITY, 4), CASE, PLAN).last
    assert gap(last, coda(CASE, PLAN, 4, proximity=1e-9)) > CLEARLY
    assert gap(last, coda(CASE, PLAN, 1000)) > CLEARLY
    assert gap(last, coda(CASE, PLAN, 5)) > CLEARLY


def test_who_missed_the_beginning_of_a_stage_is_held_by_what_it_received_in_it():
    """Two stages of four rounds; one client takes part in each round."""
    plan, algorithm, seed = Plan(rounds=8, local_steps=2, outer_batch=4, participation=1), CODA(RATE, PROXIMITY, 8), 1
    present = [Job(algorithm, CASE, plan, seed).participants(r)[0] for r in range(8)]
    assert set(present[:4]) & set(present[5:]) - {present[4]}  # was there in the first, and came late to the second
    assert_close(run_on("reference", algorithm, CASE, plan, seed).last, coda(CASE, plan, 8, seed=seed))


# ---------------------------------------------------------------------------------------- reductions


@every_engine
def test_without_anchor_and_stages_it_is_fedavg(engine):
    plan = replace(PLAN, participation=2)
    expected = run_on(engine, FedAvg(RATE), CASE, plan).last
    free = CODA(RATE, proximity=1e-14, stage_steps=plan.total_steps + 1)
    assert_close(run_on(engine, free, CASE, plan).last, expected, tolerance=1e-9)
    assert gap(run_on(engine, replace(free, proximity=1.0), CASE, plan).last, expected) > CLEARLY
    assert gap(run_on(engine, replace(free, stage_steps=5), CASE, plan).last, expected) > CLEARLY


def test_the_dual_ascends_while_the_rest_descends():
    """Compute one step of one client by hand."""
    case, plan = auroc_case((20, 6)), Plan(rounds=1, local_steps=1, outer_batch=20)
    job = Job(CODA(0.1), case, plan)
    start = job.start()
    ((batch,), *_) = literal.drawn(job)
    w, a, b, y = auroc_gradient(
        case.problem.positive_rate,
        as_vector(start["primal"]["w"]),
        *torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64),
        batch.xi,
    )
    x = run_on("reference", job.algorithm, case, plan).last
    assert_close(x["dual"], 0.1 * y)
    assert_close((x["primal"]["a"], x["primal"]["b"]), (0.5 - 0.1 * a, 0.5 - 0.1 * b))
    assert_close(as_vector(x["primal"]["w"]), as_vector(start["primal"]["w"]) - 0.1 * w)
    assert min(abs(a), abs(b), abs(y)) > 1e-4  # all three move
    assert x["dual"].abs() > CLEARLY


# ------------------------------------------------------------------------------------------ in a run


@every_engine
def test_an_interrupted_run_goes_on_to_the_last_bit(engine):
    plan, snapshots = replace(PLAN, participation=2), []
    algorithm = CODA(RATE, PROXIMITY, 3)
    whole = run_on(engine, algorithm, CASE, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    for middle in snapshots[:-1]:
        assert_same_run(run_on(engine, algorithm, CASE, plan, start=middle), whole, tolerance=0.0)


@pytest.mark.parametrize("participation", [1, 2, 0.5])
def test_engines_agree_and_stay_finite_whoever_takes_part(participation):
    plan, algorithm = replace(PLAN, participation=participation), CODA(RATE, PROXIMITY, 3)
    expected = run_on("reference", algorithm, CASE, plan)
    assert is_finite(expected.shared)
    assert all(row["average_precision"] == row["average_precision"] for row in expected.rows)
    assert_same_run(run_on("threads", algorithm, CASE, plan, workers=2), expected, tolerance=0.0)
    assert_same_run(run_on("stacked", algorithm, CASE, plan), expected, tolerance=1e-10)


def test_engines_agree_on_shortened_gradients():
    """Some leaves of the model are single numbers."""
    plan, algorithm = replace(PLAN, clip=0.1), CODA(RATE, PROXIMITY, 3)
    expected = run_on("reference", algorithm, CASE, plan)
    assert_same_run(run_on("threads", algorithm, CASE, plan, workers=2), expected, tolerance=0.0)
    assert_same_run(run_on("stacked", algorithm, CASE, plan), expected, tolerance=1e-10)
    assert gap(expected.last, run_on("reference", algorithm, CASE, PLAN).last) > CLEARLY


def test_a_grid_is_its_settings_run_one_by_one():
    settings = [CODA(RATE, PROXIMITY, 3), CODA(0.1, PROXIMITY, 3), CODA(RATE, 0.01, 3)]
    grid = run_grid(settings, CASE, PLAN, [0, 5])
    for setting, traces in zip(settings, grid, strict=True):
        for seed, trace in zip([0, 5], traces, strict=True):
            assert_same_run(trace, run_on("reference", setting, CASE, PLAN, seed), tolerance=1e-10)
    assert gap(grid[0][0].last, grid[1][0].last) > CLEARLY
    assert gap(grid[0][0].last, grid[2][0].last) > CLEARLY


def test_only_x_travels_and_the_anchor_stays():
    trace = run_on("reference", CODA(), CASE, PLAN)
    assert trace.shared.keys() == {"x"}
    each_way = nbytes(START) * len(CASE.clients) * PLAN.rounds
    assert (trace.costs.bytes_up, trace.costs.bytes_down) == (each_way, each_way)


@pytest.mark.parametrize("field", ["learning_rate", "proximity"])
def test_its_numbers_may_be_schedules(field):
    """What the constructor accepts must work in a run."""
    constant = replace(
        CODA(RATE, PROXIMITY, 3), **{field: lambda t: {"learning_rate": RATE, "proximity": PROXIMITY}[field]}
    )
    expected = run_on("reference", CODA(RATE, PROXIMITY, 3), CASE, PLAN).last
    assert_close(run_on("reference", constant, CASE, PLAN).last, expected)


def test_a_site_without_positives_trains_too():
    """Its negatives are part of the objective."""
    trace = run_on("reference", CODA(), auroc_case((9, 3), (6, 0)), PLAN)
    assert trace.participation == {0: 5, 1: 5}
    assert is_finite(trace.last)


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", CASES)
def test_a_problem_without_a_dual_is_refused_by_name(name):
    case = CASES[name]
    with pytest.raises(
        FedcsoError, match=f"CODA\\+ can't be used with {type(case.problem).__name__}: it needs a min-max problem"
    ):
        Job(CODA(), case, Plan())


def test_average_precision_is_no_min_max_problem():
    with pytest.raises(FedcsoError, match="CODA\\+ can't be used with AUPRC"):
        run_on("reference", CODA(), auprc_case(), PLAN)


@pytest.mark.parametrize("problem", ["auprc", "cross_entropy", "nested_quadratic"])
def test_it_is_refused_on_the_command_line(tmp_path, problem):
    outcome = call("run", problem, "--algorithm", "CODA+", "--clients", 3, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert outcome.err.startswith("fedcso: CODA+ can't be used with ")
    assert outcome.err.count("\n") == 1
    assert folders(tmp_path) == []
