"""FAFED, and why every client must divide by the same numbers."""

from dataclasses import dataclass

import pytest
import torch

from fedcso.algorithms import FAFED, FCSG, FCSGM, AccFCSGM, FedAdam
from fedcso.core.algorithm import Algorithm, State
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.core.tree import mix, zeros_like
from fedcso.engines import run
from fedcso.engines.job import Job
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import CLEARLY, assert_close, gap, nested_quadratic, run_on

ALPHA, BETA, BETA_2, RHO = 0.1, 0.3, 0.6, 0.5
PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
CASE = nested_quadratic()


def test_it_is_storm_with_a_shared_preconditioner_that_is_held_for_a_round():
    samples = literal.drawn(job := Job(FAFED(AccFCSGM(ALPHA, BETA), BETA_2, RHO), CASE, PLAN))
    arguments = (job.start(), samples, literal.quadratic_gradient, PLAN.rounds, PLAN.local_steps, ALPHA, BETA)
    x, u, v = server.fafed(*arguments, BETA_2, RHO)
    found = run_on("reference", job.algorithm, CASE, PLAN).shared
    assert_close(found, {"x": x, "u": u, "preconditioner": v.sqrt() + RHO})
    assert gap(server.fafed(*arguments, 0.9, RHO)[0], x) > CLEARLY


@pytest.mark.parametrize("base", [FCSGM(ALPHA, BETA), AccFCSGM(ALPHA, BETA)])
def test_a_preconditioner_that_stays_one_is_the_method_inside(base):
    def last(method):
        return run_on("reference", method, CASE, PLAN).last

    assert_close(last(FAFED(base, server_decay=1.0, floor=1.0)), last(base))
    assert gap(last(FAFED(base, server_decay=0.9, floor=1.0)), last(base)) > CLEARLY


def test_the_preconditioner_is_sent_down_only():
    inside, around = (run(one, CASE, PLAN).costs for one in (FCSGM(ALPHA, BETA), FAFED(FCSGM(ALPHA, BETA))))
    assert around.bytes_up == inside.bytes_up
    assert 2 * around.bytes_down == 3 * inside.bytes_down


def test_methods_that_do_not_share_u_are_refused():
    for base in (FCSG(), FedAdam(FCSG())):
        with pytest.raises(FedcsoError, match=f"FAFED can't wrap {type(base).__name__}, which does not share u"):
            Job(FAFED(base), CASE, PLAN)
    with pytest.raises(FedcsoError, match="FAFED can't wrap FedAdam, which has a preconditioner already"):
        Job(FAFED(FedAdam(FAFED())), CASE, PLAN)


# ---------------------------------------------------------- why moments of Adam do not stay at the clients


@dataclass(frozen=True)
class TwoQuadratics(Problem):
    """F_n = ½ a_n (x − c_n)² with noise ±a_n σ in the gradient (+ − − +); a client's data are (a_n, c_n)."""

    noise: float = 2.0
    broadcasts = True

    def init(self, rng):
        return torch.zeros(1, dtype=torch.float64)

    def sample_outer(self, data, rng, shape):
        curvature, centre = data
        signs = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64).reshape(4, 1, 1).expand(*shape, 1)
        return torch.cat([torch.full_like(signs, curvature), torch.full_like(signs, centre), self.noise * signs], -1)

    def sample_inner(self, data, rng, xi, m):
        return ()

    def inner(self, x, xi, eta):
        return x.unsqueeze(-2).expand(*x.shape[:-1], *xi.shape[-2:-1], 1)

    def outer(self, y, xi):
        curvature, centre, noise = xi.unbind(-1)
        return 0.5 * curvature * (y.squeeze(-1) - centre).square() + curvature * noise * y.squeeze(-1)


@dataclass(frozen=True)
class LocalAdam(Algorithm):
    """Adam (with β₁ = 0) whose moments stay at each client: what the package does not offer."""

    learning_rate: float = 0.01
    decay: float = 0.99

    def receive(self, shared, local):
        x = shared["x"]
        return State(shared, local or {"v": zeros_like(x)})

    def step(self, state, oracle, batch, t):
        x, gradient = state.shared["x"], oracle.grad(state.shared["x"], batch)
        v = mix(state.local["v"], gradient.square(), 1 - self.decay)
        corrected = v / (1 - self.decay ** (t + 1))
        return State({"x": oracle.move(x, gradient / (corrected.sqrt() + 1e-12), self.learning_rate)}, {"v": v})


def test_moments_of_adam_that_stay_at_clients_lead_elsewhere():
    """F is stationary at Σ a_n c_n / Σ a_n = 10/11. With D_n ∝ a_n, Σ ∇F_n/D_n vanishes at the mean of the c_n, 1/2."""
    task = Task(TwoQuadratics(), [(1.0, 0.0), (10.0, 1.0)])
    plan = Plan(rounds=200, local_steps=4, evaluate_every=200)

    def end(method):
        return float(run(method, task, plan, engine="stacked").last)

    assert abs(end(LocalAdam(0.02)) - 1 / 2) < 0.01
    for offered in (FAFED(FCSGM(0.03, 1.0), 0.9, 0.5), FedAdam(FCSG(0.003), 0.01), FCSG(0.003)):
        assert abs(end(offered) - 10 / 11) < 0.01
