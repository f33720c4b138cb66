"""MIME and MimeLite: momentum of the server's, made of gradients at the round's start."""

from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, FCSGM, MIME, AccFCSGM, FedAdam, MimeLite, ServerRate
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.schedules import Cosine
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.problems import NestedQuadratic
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import (
    CLEARLY,
    Case,
    assert_close,
    assert_same_run,
    gap,
    invariant_logistic,
    nested_quadratic,
    run_on,
)

ALPHA, BETA = 0.1, 0.3
PLAN = Plan(rounds=6, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
LOGISTIC = invariant_logistic(unlike=0.5)
NESTED = {
    "nested_quadratic": (nested_quadratic(), literal.quadratic_gradient),
    "invariant_logistic": (LOGISTIC, literal.logistic_gradient(LOGISTIC.problem)),
}
nested = pytest.mark.parametrize(("case", "gradient"), NESTED.values(), ids=NESTED)
CASE = NESTED["nested_quadratic"][0]


def arguments(method, case, gradient):
    samples = literal.drawn(job := Job(method, case, PLAN))
    return job.start(), samples, gradient, PLAN.rounds, PLAN.local_steps, ALPHA


@nested
def test_mimelite_is_that_of_the_paper(case, gradient):
    method = MimeLite(ALPHA, BETA)
    given = arguments(method, case, gradient)
    x, momentum = server.mimelite(*given, BETA)
    assert_close(run_on("reference", method, case, PLAN).shared, {"x": x, "u": momentum})
    assert gap(server.mimelite(*given, 0.5)[0], x) > CLEARLY


@nested
def test_mime_is_that_of_the_paper_with_an_exchange_of_its_own_for_c(case, gradient):
    method = MIME(ALPHA, BETA)
    given = arguments(method, case, gradient)
    x, _ = server.mime(*given, BETA)
    assert_close(run_on("reference", method, case, PLAN).shared, {"x": x})
    assert gap(server.mime(*given, 0.5)[0], x) > CLEARLY


def test_mimelite_without_memory_is_fcsg_and_without_local_steps_fcsg_m():
    def last(method, plan=PLAN):
        return run_on("reference", method, CASE, plan).last

    single = replace(PLAN, local_steps=1)
    assert_close(last(MimeLite(ALPHA, 1.0)), last(FCSG(ALPHA)))
    assert_close(last(MimeLite(ALPHA, BETA), single), last(FCSGM(ALPHA, BETA), single))
    assert gap(last(MimeLite(ALPHA, BETA)), last(FCSG(ALPHA))) > CLEARLY
    assert gap(last(MimeLite(ALPHA, BETA)), last(FCSGM(ALPHA, BETA))) > CLEARLY


class Noiseless(NestedQuadratic):
    """The nested quadratic with ξ = c_n and η = E[η | ξ], so that all gradients are exact."""

    def sample_outer(self, data, rng, shape):
        return data.expand(*shape, self.dimension)

    def sample_inner(self, data, rng, xi, m):
        return (1 + self.coupling * xi).unsqueeze(-2).expand(*xi.shape[:-1], m, self.dimension)


def test_where_gradients_are_exact_mime_of_one_client_is_gradient_descent_in_every_second_round():
    """c = G(x_start) then, so the correction vanishes; with several clients it does not."""
    problem = Noiseless()
    centres = problem.centres(4)
    plan, half = Plan(rounds=6, local_steps=3), Plan(rounds=3, local_steps=3)

    def apart(clients):
        case = Case(problem, clients)
        moved = run_on("reference", MIME(ALPHA, 1.0), case, plan).last
        return gap(moved, run_on("reference", FCSG(ALPHA), case, half).last)

    assert apart(centres[:1]) < 1e-12
    assert apart(centres) > CLEARLY


def test_where_gradients_are_exact_mime_ends_at_the_optimum_and_fcsg_does_not():
    """With local steps unlike clients drift; the correction removes that, whatever q."""
    problem = Noiseless()
    case = Case(problem, problem.centres(4))
    plan = Plan(rounds=80, local_steps=3, evaluate_every=80)
    batches = [Batch(centre.unsqueeze(0), (1 + 0.5 * centre).reshape(1, 1, -1)) for centre in case.clients]

    def slope(x):
        return float(literal.mean([literal.quadratic_gradient(x, batch) for batch in batches]).abs().max())

    assert slope(run(MIME(ALPHA, 0.5), case, plan).last) < 1e-5
    assert slope(run(FCSG(ALPHA), case, plan).last) > 1e-3


def test_measuring_sends_gradients_and_leaves_x():
    one, two = (run(MIME(ALPHA, BETA), CASE, replace(PLAN, rounds=r)) for r in (1, 2))
    assert_close(one.last, Job(MIME(ALPHA), CASE, PLAN).start(), tolerance=0.0)
    size, clients, q = one.last.numel() * 8, len(CASE.clients), PLAN.local_steps
    assert (one.costs.bytes_down, one.costs.bytes_up) == (size * clients, size * clients)
    assert (two.costs.bytes_down, two.costs.bytes_up) == (4 * size * clients, 2 * size * clients)
    drawn = PLAN.initial + (q - 1) * PLAN.outer_batch
    assert one.costs.gradients == clients * drawn
    assert two.costs.gradients == clients * (drawn + 2 * q * PLAN.outer_batch)


@pytest.mark.parametrize("engine", ["reference", "stacked"])
def test_a_run_goes_on_between_measuring_and_moving(engine):
    snapshots = []
    some = replace(PLAN, participation=2)
    method = FedAdam(MIME(ALPHA, BETA), 0.1)
    whole = run_on(engine, method, CASE, some, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    for middle in snapshots[:3]:
        assert_same_run(run_on(engine, method, CASE, some, start=middle), whole, tolerance=0.0)


def test_mimelite_costs_two_gradients_a_step_as_acc_fcsg_m():
    lite, acc = (run(one, CASE, PLAN).costs for one in (MimeLite(ALPHA, BETA), AccFCSGM(ALPHA, BETA)))
    assert lite.gradients == acc.gradients + PLAN.initial * len(CASE.clients)  # also in step 0
    assert (lite.bytes_up, lite.bytes_down) == (acc.bytes_up, acc.bytes_down)


def test_a_server_optimiser_around_mime_leaves_x_where_c_is_measured():
    assert_close(run(ServerRate(MIME(ALPHA, BETA), 1.0), CASE, PLAN).last, run(MIME(ALPHA, BETA), CASE, PLAN).last)
    start = Job(MIME(ALPHA), CASE, PLAN).start()
    traces = [run(FedAdam(MIME(ALPHA, BETA), 0.1), CASE, replace(PLAN, rounds=r)) for r in (1, 2, 3)]
    assert_close(traces[0].last, start, tolerance=0.0)
    assert gap(traces[1].last, start) > CLEARLY
    assert_close(traces[2].last, traces[1].last, tolerance=0.0)


def test_the_momentum_of_mime_is_a_number_because_the_server_uses_it():
    with pytest.raises(InvalidValue, match=r"^global_momentum = .*a number"):
        MIME(ALPHA, Cosine(0.3))
