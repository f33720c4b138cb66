"""CODASCA against a literal transcription; it is CODA+ without control variates, and SCAFFOLD without stages."""

from dataclasses import dataclass, field, replace

import pytest
import torch

from fedcso.algorithms import CODA, CODASCA, Scaffold
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import nbytes
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.command_line import BAD_INPUT, call, folders
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, gap, run_on
from tests.rare import as_model, as_vector, auroc_case, auroc_gradient

RATE, PROXIMITY = 0.2, 0.7
CASE = auroc_case((9, 3), (12, 2), (7, 4))
PLAN = Plan(rounds=5, local_steps=2, outer_batch=4)
every_engine = pytest.mark.parametrize("engine", ENGINES)


@dataclass
class Client:
    """The control variates of one client, and its anchor in each stage that it took part in."""

    c: torch.Tensor
    k: torch.Tensor
    anchors: dict[int, torch.Tensor] = field(default_factory=dict)


def codasca(plan, stage_steps, seed=0):
    """Transcribe the method with v = (w, a, b), y, and a control variate for each: c and k."""
    job = Job(CODASCA(RATE, PROXIMITY, stage_steps), CASE, plan, seed)
    samples, start, p = literal.drawn(job), job.start(), CASE.problem.positive_rate
    v = torch.cat([as_vector(start["primal"]["w"]), start["primal"]["a"][None], start["primal"]["b"][None]])
    y = start["dual"]
    c, k = torch.zeros_like(v), torch.zeros_like(y)
    clients = [Client(c, k) for _ in CASE.clients]
    for r in range(plan.rounds):
        ends, changes = [], []
        for n in job.participants(r):
            one, v_n, y_n = clients[n], v, y
            gradients = []
            for t in plan.steps(r):
                stage = t // stage_steps
                anchor, eta = one.anchors.setdefault(stage, v_n), RATE / 3**stage
                w_part, a_part, b_part, g_y = auroc_gradient(p, v_n[:-2], v_n[-2], v_n[-1], y_n, samples[t][n].xi)
                g_v = torch.cat([w_part, a_part[None], b_part[None]])
                gradients.append((g_v, g_y))
                v_n = v_n - eta * (g_v - one.c + c + PROXIMITY * (v_n - anchor))
                y_n = y_n + eta * (g_y - one.k + k)
            new_c, new_k = (literal.mean(list(parts)) for parts in zip(*gradients, strict=True))
            ends.append((v_n, y_n))
            changes.append((new_c - one.c, new_k - one.k))
            one.c, one.k = new_c, new_k
        v, y = (literal.mean(list(parts)) for parts in zip(*ends, strict=True))
        share = len(ends) / len(clients)
        c, k = (
            old + share * literal.mean(list(parts))
            for old, parts in zip((c, k), zip(*changes, strict=True), strict=True)
        )
    # The package descends on all leaves, and the dual's gradient is negated: its control variate is −k.
    return {
        "x": {"primal": {"w": as_model(v[:-2]), "a": v[-2], "b": v[-1]}, "dual": y},
        "c": {"primal": {"w": as_model(c[:-2]), "a": c[-2], "b": c[-1]}, "dual": -k},
    }


@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
@pytest.mark.parametrize("stage_steps", [4, 3, 1000], ids=lambda steps: f"stages of {steps}")
def test_it_is_its_description_line_by_line(stage_steps, participation):
    plan = replace(PLAN, participation=participation)
    expected = codasca(plan, stage_steps)
    for engine in ENGINES:
        assert_close(run_on(engine, CODASCA(RATE, PROXIMITY, stage_steps), CASE, plan).shared, expected)


# ---------------------------------------------------------------------------------------- reductions


def test_in_the_first_round_it_is_coda():
    """All control variates are still zero."""
    first, coda = replace(PLAN, rounds=1), CODA(RATE, PROXIMITY, 1000)
    method = CODASCA(RATE, PROXIMITY, 1000)
    assert_close(run_on("reference", method, CASE, first).last, run_on("reference", coda, CASE, first).last)
    assert gap(run_on("reference", method, CASE, PLAN).last, run_on("reference", coda, CASE, PLAN).last) > CLEARLY


def test_of_a_single_client_it_is_coda():
    """Its control variate equals the server's, so the correction c − c_n vanishes."""
    alone = auroc_case((9, 3))
    coda = run_on("reference", CODA(RATE, PROXIMITY, 3), alone, PLAN).last
    assert_close(run_on("reference", CODASCA(RATE, PROXIMITY, 3), alone, PLAN).last, coda)


@every_engine
def test_without_anchor_and_stages_it_is_scaffold(engine):
    """The mean of the round's gradients is the control variate of option II."""
    plan = replace(PLAN, participation=2)
    free = CODASCA(RATE, proximity=1e-14, stage_steps=plan.total_steps + 1)
    expected = run_on(engine, Scaffold(RATE), CASE, plan).shared
    assert_close(run_on(engine, free, CASE, plan).shared, expected, tolerance=1e-9)
    assert gap(run_on(engine, replace(free, proximity=1.0), CASE, plan).shared, expected) > CLEARLY
    assert gap(run_on(engine, replace(free, stage_steps=3), CASE, plan).shared, expected) > CLEARLY


# ------------------------------------------------------------------------------------------ in a run


def test_x_and_the_control_variate_travel_and_the_rest_stays():
    trace = run_on("reference", CODASCA(), CASE, PLAN)
    assert trace.shared.keys() == {"x", "c"}
    each_way = 2 * nbytes(CASE.problem.init(torch.Generator())) * len(CASE.clients) * PLAN.rounds
    assert (trace.costs.bytes_up, trace.costs.bytes_down) == (each_way, each_way)


@pytest.mark.parametrize("name", CASES)
def test_a_problem_without_a_dual_is_refused_by_name(name):
    case = CASES[name]
    with pytest.raises(FedcsoError, match=f"CODASCA can't be used with {type(case.problem).__name__}: it needs a min-"):
        Job(CODASCA(), case, Plan())


def test_it_is_refused_on_the_command_line(tmp_path):
    outcome = call("run", "nested_quadratic", "--algorithm", "CODASCA", "--clients", 3, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert outcome.err.startswith("fedcso: CODASCA can't be used with ")
    assert outcome.err.count("\n") == 1
    assert folders(tmp_path) == []
