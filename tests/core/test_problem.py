"""Tools to write problems with: `per_sample` for a g of one sample, `ascend` for min-max."""

from dataclasses import dataclass

import pytest
import torch

from fedcso.algorithms import FCSG
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem, ascend, per_sample, split_steps
from fedcso.core.streams import stream
from fedcso.estimators.plain import plain
from fedcso.problems import InvariantLogistic
from tests.helpers import CASES, Case, assert_close, in_ball, invariant_logistic, nested_quadratic, run_on

# ------------------------------------------------------------------------------------ per_sample


def test_per_sample_is_the_mean_of_g_over_the_inner_samples():
    case = nested_quadratic()
    problem = case.problem
    batch = sample(problem, case.clients[0], stream(0, 0, 0), steps=1, b=4, m=5)
    (batch,) = split_steps(batch, 1)
    x = problem.init(stream(1, 0, 0))
    lifted = per_sample(lambda x, xi, eta: eta * x)
    assert_close(lifted(x, batch.xi, batch.eta), problem.inner(x, batch.xi, batch.eta))


def test_per_sample_pairs_each_xi_with_its_own_eta():
    xi = torch.tensor([1.0, 2.0])
    eta = torch.tensor([[10.0, 20.0], [30.0, 50.0]])
    values = per_sample(lambda x, xi, eta: {"product": x * xi * eta})(torch.tensor(2.0), xi, eta)
    assert values["product"].tolist() == [2 * 1 * 15, 2 * 2 * 40]


# ---------------------------------------------------------------------------------------- ascend


def test_ascend_keeps_the_value_and_turns_the_gradient():
    alpha = torch.tensor([0.1, -3.0], requires_grad=True)
    slopes = torch.tensor([2.0, 5.0])
    value = ascend(alpha)
    assert torch.equal(value, alpha)
    (value @ slopes).backward()
    assert torch.equal(alpha.grad, -slopes)


def test_ascend_can_be_batched():
    values = torch.tensor([0.1, -3.0])
    assert torch.equal(torch.func.vmap(ascend)(values), values)


@dataclass(frozen=True)
class Saddle(Problem):
    """min over v, max over w of ½(v − 1)² + 2vw − ½w²; the saddle is at v = 1/5, w = 2/5.

    Descent with step 1/5 comes nearer to it by a factor of √0.8 every step.
    """

    def init(self, rng):
        return {"v": torch.zeros(1, dtype=torch.float64), "w": torch.zeros(1, dtype=torch.float64)}

    def sample_outer(self, data, rng, shape):
        return torch.zeros(*shape, 1, dtype=torch.float64)

    def sample_inner(self, data, rng, xi, m):
        return ()

    def inner(self, x, xi, eta):
        return {name: leaf.expand_as(xi) for name, leaf in x.items()}

    def outer(self, y, xi):
        v, w = y["v"], ascend(y["w"])
        return (0.5 * (v - 1) ** 2 + 2 * v * w - 0.5 * w**2).sum(-1)


@pytest.mark.parametrize("engine", ["reference", "stacked"])
def test_descent_on_a_problem_with_ascend_finds_the_saddle(engine):
    case = Case(Saddle(), clients=[None, None])
    trace = run_on(engine, FCSG(learning_rate=1 / 5), case, Plan(rounds=60, local_steps=5))
    v, w = torch.tensor([[1 / 5], [2 / 5]], dtype=torch.float64)
    assert_close(trace.last, {"v": v, "w": w})


# ------------------------------------------------------------------------------------ the defaults


def test_a_problem_has_a_closed_form_only_if_it_brings_one():
    assert invariant_logistic().problem.closed_form is not None
    assert nested_quadratic().problem.closed_form is None


def test_a_problem_is_unbounded_unless_it_projects():
    assert nested_quadratic().problem.project is None
    assert in_ball().problem.project is not None


def test_defaults_add_nothing():
    problem = Saddle()
    assert problem.regulariser is problem.project is problem.exact is problem.constants is None
    assert problem.inner_samples(3, 4) == 3 * 4


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_split_steps_splits_a_batch_along_its_first_axis(case):
    whole = sample(case.problem, case.clients[0], stream(0, 0, 0), steps=3, b=2, m=4)
    parts = split_steps(whole, 3)
    assert len(parts) == 3
    assert all(isinstance(part, Batch) for part in parts)
    x = case.problem.init(stream(1, 0, 0))
    values = [float(Oracle(case.problem, plain).value(x, part)) for part in parts]
    assert len(set(values)) == 3, "steps have samples of their own"


# --------------------------------------------------------------------------------- sample_together


def test_a_problem_that_draws_in_another_way_does_not_inherit_how_samples_are_drawn_together():
    class Louder(InvariantLogistic):
        def sample_inner(self, data, rng, xi, m):
            return 2 * super().sample_inner(data, rng, xi, m)

    class SameSamples(InvariantLogistic):
        def outer(self, y, xi):
            return -super().outer(y, xi)

    assert Louder().sample_together is None
    assert SameSamples().sample_together is not None
