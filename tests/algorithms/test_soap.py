"""SOAP against a literal transcription on average precision; it is SOX without momentum."""

import pytest
import torch

from fedcso.algorithms import FCSG, SOAP, SOX, sox
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import nbytes
from fedcso.engines import simulation, threads
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, assert_close, assert_same_run, gap, run_on
from tests.rare import as_model, as_vector, auprc_case, f_gradient, ghat, inner_of

ALPHA, GAMMA = 0.5, 0.4
CASE = auprc_case()
PLAN = Plan(rounds=5, local_steps=2, outer_batch=3, inner_batch=4)
SOME = Plan(rounds=6, local_steps=2, outer_batch=3, inner_batch=4, participation=2)


def soap(case, plan, alpha=ALPHA, gamma=GAMMA):
    """Transcribe Qi et al. 2021 with local steps: y_i ← (1 − γ) y_i + γ ĝ, x ← x − α (1/b) Σ_i ∇ĝᵀ∇f(y_i).

    Return x and all y_i. A client that does not take part keeps its y_i; if a positive is in a batch twice, the later
    value is taken.
    """
    job = Job(SOAP(alpha, gamma), case, plan)
    samples, x = literal.drawn(job), as_vector(job.start())
    tracked: list[dict[int, torch.Tensor]] = [{} for _ in case.clients]
    for r in range(plan.rounds):
        models = []
        for n in job.participants(r):
            x_n = x
            for t in plan.steps(r):
                batch, before, directions = samples[t][n], dict(tracked[n]), []
                for place, (i, positive) in enumerate(zip(*batch.xi, strict=True)):
                    value, jacobian = ghat(case.problem, x_n, positive, inner_of(batch, place))
                    known = before.get(i.item())
                    y = value if known is None else (1 - gamma) * known + gamma * value
                    tracked[n][i.item()] = y
                    directions.append(jacobian.T @ f_gradient(y, case.problem.logarithm))
                x_n = x_n - alpha * literal.mean(directions)
            models.append(x_n)
        x = literal.mean(models)
    return as_model(x), tracked


@pytest.mark.parametrize(
    "case", [CASE, auprc_case(shared=False, sigmoid=False, margin=1.0)], ids=["shared", "for each"]
)
@pytest.mark.parametrize("plan", [PLAN, SOME], ids=["everyone", "two"])
def test_it_is_its_description_line_by_line(case, plan):
    states = []
    trace = run_on(
        "reference",
        SOAP(ALPHA, GAMMA),
        case,
        plan,
        callbacks=[lambda now: states.append(now.snapshot().state["local"])],
    )
    x, tracked = soap(case, plan)
    assert_close(trace.last, x)
    assert any(len(table) > 1 for table in tracked)
    for client, table in states[-1].items():
        seen = {i: table["y"][i] for i in table["seen"].nonzero().flatten().tolist()}
        assert_close(dict(sorted(seen.items())), dict(sorted(tracked[int(client)].items())))


def test_tracking_makes_a_difference():
    last = run_on("reference", SOAP(ALPHA, GAMMA), CASE, PLAN).last
    assert gap(last, soap(CASE, PLAN, gamma=0.9)[0]) > CLEARLY


def test_it_is_sox_without_momentum():
    plan = SOME
    soap_run, sox_run = (run_on("reference", a, CASE, plan) for a in (SOAP(ALPHA, GAMMA), SOX(ALPHA, GAMMA, 1.0)))
    assert_close(soap_run.last, sox_run.last, tolerance=0.0)
    assert soap_run.column("train_loss")[1:] == sox_run.column("train_loss")[1:]
    assert gap(soap_run.last, run_on("reference", SOX(ALPHA, GAMMA, 0.5), CASE, plan).last) > CLEARLY


def test_with_nothing_of_the_past_it_is_fcsg():
    expected = run_on("reference", FCSG(ALPHA), CASE, PLAN)
    assert_close(run_on("reference", SOAP(ALPHA, 1.0), CASE, PLAN).last, expected.last)
    assert gap(run_on("reference", SOAP(ALPHA, GAMMA), CASE, PLAN).last, expected.last) > CLEARLY


def test_only_x_travels():
    trace, more = (run_on("reference", a, CASE, SOME) for a in (SOAP(), SOX()))
    each_way = nbytes(trace.last) * 2 * SOME.rounds
    assert trace.shared.keys() == {"x"}
    assert (trace.costs.bytes_up, trace.costs.bytes_down) == (each_way, each_way)
    assert more.costs.bytes_up == 2 * each_way


def test_an_interrupted_run_goes_on_to_the_last_bit():
    snapshots = []
    whole = run_on("threads", SOAP(ALPHA, GAMMA), CASE, SOME, callbacks=[lambda now: snapshots.append(now.snapshot())])
    assert_same_run(run_on("threads", SOAP(ALPHA, GAMMA), CASE, SOME, start=snapshots[2]), whole, tolerance=0.0)


def test_it_is_played_by_threads_because_tables_differ_in_size():
    assert simulation.choose(Job(SOAP(), CASE, Plan())) is threads.ENGINE


@pytest.mark.parametrize("name", CASES)
def test_outer_samples_that_are_never_the_same_are_refused(name):
    case = CASES[name]
    with pytest.raises(FedcsoError, match=f"{type(case.problem).__name__} never draws the same outer sample twice"):
        Job(SOAP(), case, Plan())


def test_a_table_for_which_there_is_no_room_is_refused(monkeypatch):
    """Each positive has two numbers: three fit into 7, four do not."""
    monkeypatch.setattr(sox, "MOST_NUMBERS", 7)
    Job(SOAP(), auprc_case((9, 3), (8, 2)), Plan())
    with pytest.raises(FedcsoError, match=r"client 1 has 4 outer samples .* a state of 2 numbers .* use at most 3 "):
        Job(SOAP(), auprc_case((9, 3), (8, 4)), Plan())
