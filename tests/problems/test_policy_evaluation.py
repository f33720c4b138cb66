"""Policy evaluation: the Bellman residual compared with sampling and with the solution of linear equations; tables."""

import numpy as np
import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.problems.policy_evaluation import VALUE_ERROR, measure_values, policy_evaluation
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, standard_error
from tests.problems.sampling import assert_exact_gradient_is_that_of_the_exact_value, sample_gradients

TASK = policy_evaluation(clients=3, states=8, features=4, successors=3, alpha=0.7)
X = torch.linspace(-1, 2, 4, dtype=torch.float64)


@pytest.mark.parametrize("m", [1, 3])
def test_sampled_values_and_gradients_have_the_exact_mean_and_the_bias_of_double_sampling(m):
    chain, problem = TASK.clients[1], TASK.problem
    value, gradient = problem.exact(X, [chain], [1.0])
    sampled = sample_gradients(problem, chain, X, 40_000, m)
    sampled.assert_mean_gradient(gradient + problem.bias(X, [chain], m))
    sampled.assert_mean_value(value + problem.value_bias(X, [chain], m))
    assert problem.bias(X, [chain], 1).norm() > 6 * standard_error(sampled.gradients).norm()


def test_the_objective_is_the_weighted_bellman_residual():
    chain = TASK.clients[0]
    v = chain.features @ X
    residual = v - chain.discount * chain.transition @ v - (chain.transition * chain.reward).sum(1)
    ahead = chain.reward + chain.discount * v
    mean = (chain.transition * ahead).sum(1, keepdim=True)
    variance = (chain.transition * (ahead - mean) ** 2).sum(1)
    value, _ = TASK.problem.exact(X, [chain], [1.0])
    assert_close(value, 0.5 * (chain.visits * residual**2).sum())
    assert_close(TASK.problem.value_bias(X, [chain], 5), (chain.visits * variance).sum() / 10)


def test_exact_gradient_is_that_of_the_exact_value():
    assert_exact_gradient_is_that_of_the_exact_value(TASK.problem, X, TASK.clients, [1.0, 2.0, 3.0])


def test_with_a_feature_for_every_state_the_minimiser_is_the_true_value_only_without_bias():
    task = policy_evaluation(clients=2, states=8, alpha=1.0)
    errors = [
        float(measure_values(task.problem.minimiser(task.clients, m), task.test)[VALUE_ERROR.name])
        for m in (1, 10, np.inf)
    ]
    assert errors[0] > 3 * errors[1] > 1e-3
    assert errors[2] < 1e-10
    v, chain = task.test.values, task.clients[0]
    assert_close(v, (chain.transition * (chain.reward + chain.discount * v)).sum(1))


def test_clients_visit_states_by_alpha():
    assert len({tuple(chain.visits.tolist()) for chain in TASK.clients}) == 3
    alike = policy_evaluation(clients=3, states=8)
    assert_close(alike.clients[2].visits, torch.full((8,), 1 / 8, dtype=torch.float64))


# -------------------------------------------------------------------------------------- tables

COLUMNS = {"state": "at", "reward": "r", "next_state": "to"}
STEPS = """site,at,r,to
n,a,1,b
n,a,3,end
n,b,0,a
n,b,0,a
s,a,2,b
s,b,1,a
s,b,,a
"""


@pytest.fixture
def steps(tmp_path):
    file = tmp_path / "steps.csv"
    file.write_text(STEPS)
    return str(file)


def test_values_of_a_table_solve_the_bellman_equations_of_its_rows(steps):
    """V_a = 2 + δ (V_b + 0 + V_b)/3 and V_b = 1/3 + δ V_a, where `end` is terminal."""
    task = policy_evaluation(data=steps, **COLUMNS, discount=0.5)
    expected = np.linalg.solve([[1, -1 / 3], [-0.5, 1]], [2, 1 / 3])
    assert_close(task.test.values, torch.tensor(expected))
    assert task.problem.outer_count(task.clients[0]) == 2
    assert any("terminal, with value 0: end" in note for note in task.notes)
    assert any("left out: 1" in note for note in task.notes)
    assert any("alphabetical order (a, b)" in note for note in task.notes)


def test_sites_of_a_table_are_clients(steps):
    task = policy_evaluation(data=steps, **COLUMNS, site="site")
    assert task.names == ["n", "s"]
    assert [source.rows for source in task.clients] == [4, 2]
    x = torch.linspace(-1, 1, 3, dtype=torch.float64)
    _, gradient = task.problem.exact(x, task.clients[:1], [1.0])
    sampled = sample_gradients(task.problem, task.clients[0], x, 20_000, 2)
    sampled.assert_mean_gradient(gradient + task.problem.bias(x, task.clients[:1], 2))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"reward": ""}, "--reward is missing"),
        ({"reward": "to"}, "must be a number"),
        ({"next_state": "next"}, "'next'"),
    ],
)
def test_mistakes_in_tables_are_named(steps, options, told):
    with pytest.raises(FedcsoError, match=told):
        policy_evaluation(data=steps, **(COLUMNS | options))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--discount", "1"], "discount = 1.0"),
        (["--states", "4"], "successors = 5 must be at most 4"),
        (["--features", "21"], "features = 21 must be at most 20"),
        (["--alpha", "-1"], "alpha = -1.0"),
        (["--reward", "r"], "reward = 'r' must be left out without data"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "policy_evaluation", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
