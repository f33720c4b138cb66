"""Instrumental variables: exact moments compared with sampling and formulas, the bias of a small m, and tables."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.algorithms import FCSGM
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.engines import run
from fedcso.problems.demand_design import Demand
from fedcso.problems.instrumental import Instrumental, instrumental
from fedcso.problems.instruments import Scalar
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, standard_error
from tests.problems.sampling import assert_exact_gradient_is_that_of_the_exact_value, sample_gradients

LINE = Scalar(strength=0.8, confounding=1.2)
SOURCES = {
    "linear": LINE,
    "abs": Scalar("abs", 2, confounding=-0.5, centre=0.4),
    "step": Scalar("step", 1),
    "demand": Demand(confounding=0.7, centre=0.2),
}
X = torch.linspace(-1, 2, 9, dtype=torch.float64)


def point_for(source):
    """Return a point near the minimiser, where noise is small and the bias can be seen."""
    d = len(source.moments.cross)
    return Instrumental(d).minimiser([source]) + (0.001 if isinstance(source, Demand) else 0.1) * X[:d]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("m", [1, 4])
def test_sampled_gradients_have_the_exact_mean_and_the_bias_of_the_formula(name, m):
    source = SOURCES[name]
    x = point_for(source)
    problem = Instrumental(len(x))
    bias = problem.bias(x, [source], m)
    sampled = sample_gradients(problem, source, x, 40_000, m)
    value, gradient = problem.exact(x, [source], [1.0])
    sampled.assert_mean_gradient(gradient + bias)
    sampled.assert_mean_value(value + problem.value_bias(x, [source], m))
    if m == 1:  # the bias is large enough to be seen
        assert bias.norm() > 6 * standard_error(sampled.gradients).norm()


def test_the_linear_design_has_its_closed_forms():
    problem, theta, variance = Instrumental(1), 2.0, 3.0  # of z ~ U(−3, 3)
    w = torch.tensor([0.7], dtype=torch.float64)
    value, gradient = problem.exact(w, [LINE], [1.0])
    explained = 0.8**2 * variance
    assert float(value) == pytest.approx(0.5 * (theta - 0.7) ** 2 * explained)
    assert float(gradient) == pytest.approx(-(theta - 0.7) * explained)
    for m in (1, 2, 10):
        expected = theta + 2 * 1.2 / m / (explained + (1.2**2 + 0.01) / m)
        assert float(problem.minimiser([LINE], m)) == pytest.approx(expected)
    assert float(problem.minimiser([LINE])) == pytest.approx(theta)


def test_conditional_means_of_sines_are_damped_sines():
    """E[sin ωx | z] = sin(ωπz) exp(−ω²V/2), so that E[φ̄²] is a simple integral."""
    source = Scalar("sin", 1, strength=0.9, confounding=0.7)
    omega, variance = math.pi / 4, 0.7**2 + 0.01
    slope = 6 * 0.9 * omega  # ∫ sin²(az) over U(−3, 3) = ½ − sin(6a) / (12a)
    expected = math.exp(-(omega**2) * variance) * (0.5 - math.sin(slope) / (2 * slope))
    assert float(source.moments.square[-1, -1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("confounding", [0.0, 1.0, -3.0])
def test_conditional_means_of_a_step_are_exact_for_weak_and_strong_confounding(confounding):
    """E[h₀(x) | z] = 1 + 1.5 Φ(πz/√V), which is steep if V is small."""
    z = torch.linspace(-2.5, 3.5, 400_001, dtype=torch.float64)
    mean = 1 + 1.5 * torch.special.ndtr(0.7 * z / math.sqrt(confounding**2 + 0.01))
    source = Scalar("step", strength=0.7, confounding=confounding, centre=0.5)
    assert float(source.moments.constant) == pytest.approx(float(torch.trapezoid(mean**2, z) / 6), rel=1e-9)
    assert float(source.moments.cross) == pytest.approx(float(torch.trapezoid(mean * 0.7 * z, z) / 6), rel=1e-8)


@pytest.mark.parametrize("name", SOURCES)
def test_exact_gradient_is_that_of_the_exact_value_and_vanishes_at_the_minimiser(name):
    clients = [SOURCES[name]] * 2
    x = point_for(clients[0])
    problem = Instrumental(len(x))
    assert_exact_gradient_is_that_of_the_exact_value(problem, x, clients, [1.0, 3.0])
    _, gradient = problem.exact(problem.minimiser(clients), clients, [1.0, 1.0])
    assert_close(gradient, torch.zeros_like(gradient), tolerance=1e-9)
    values, gradients = problem.exact(torch.stack([x, 2 * x]), clients, [1.0, 3.0])
    for at, value, gradient in zip((x, 2 * x), values, gradients, strict=True):
        assert_close((value, gradient), problem.exact(at, clients, [1.0, 3.0]))


def test_a_run_ends_at_the_minimiser_for_its_m_and_not_at_the_effect():
    task = instrumental("linear", clients=4)
    trace = run(FCSGM(0.05, 0.3), task, Plan(rounds=60, local_steps=10, outer_batch=8, inner_batch=2))
    biased, effect = (float(task.problem.minimiser(task.clients, m)) for m in (2, math.inf))
    assert abs(float(trace.last) - biased) < 0.2 * abs(effect - biased)


def test_clients_can_differ():
    alike, unlike = instrumental("linear", clients=3), instrumental("linear", clients=3, unlike=0.5)
    assert alike.clients[0].moments == alike.clients[2].moments
    assert len({source.confounding for source in unlike.clients}) == 3
    assert len({source.confounding for source in instrumental("demand", clients=3, unlike=0.2).clients}) == 3


# -------------------------------------------------------------------------------------- tables

COLUMNS = {"instrument": "quarter", "treatment": "schooling", "outcome": "wage"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A treatment with the effect 3 on the outcome, and an instrument with four values, at two sites."""
    rng = np.random.default_rng(0)
    z, e, noise, other = rng.integers(4, size=600), *rng.normal(size=(3, 600))
    x = 5 + 2 * z + 1.5 * e + noise
    y = 3 * x + 4 * e + other
    site = np.where(np.arange(600) % 3, "north", "south")
    rows = pd.DataFrame({"quarter": np.array([*"abcd"])[z], "schooling": x, "wage": y, "region": site})
    file = tmp_path_factory.mktemp("table") / "table.csv"
    rows.to_csv(file, index=False)
    return file, rows


def slope(x, y, weights):
    return np.polyfit(x, y, 1, w=np.sqrt(weights))[0]


@pytest.mark.parametrize("groups", [["quarter"], ["quarter", "region"]])
def test_a_table_has_least_squares_for_m_1_and_two_stage_least_squares_in_the_limit(table, groups):
    file, rows = table
    task = instrumental(data=str(file), **COLUMNS, site="region" if len(groups) > 1 else "")
    assert len(task.clients) == len(groups)
    unit = float(rows.wage.std(ddof=0) / rows.schooling.std(ddof=0))
    found = [unit * float(task.problem.minimiser(task.clients, m)[1]) for m in (1, math.inf)]
    means = rows.groupby(groups)[["schooling", "wage"]].mean()
    counts = rows.groupby(groups).size()
    assert found[0] == pytest.approx(slope(rows.schooling, rows.wage, np.ones(len(rows))))
    assert found[1] == pytest.approx(slope(means.schooling, means.wage, counts))
    assert abs(found[1] - 3) < 0.1 < found[0] - 3
    assert f"{found[1]:.4g} by two-stage least squares" in task.notes[-1]


def test_rows_are_drawn_from_the_group_of_their_instrument(table):
    source = instrumental(data=str(table[0]), **COLUMNS).clients[0]
    problem, x = Instrumental(2), torch.tensor([0.3, -0.4], dtype=torch.float64)
    _, gradient = problem.exact(x, [source], [1.0])
    sampled = sample_gradients(problem, source, x, 20_000, 2)
    sampled.assert_mean_gradient(gradient + problem.bias(x, [source], 2))
    assert problem.outer_count(source) == 4
    assert problem.size(source) == 600


def test_rows_without_a_value_are_left_out_with_a_note(table, tmp_path):
    file = tmp_path / "gaps.csv"
    file.write_text(table[0].read_text() + "a,,3,north\n")
    task = instrumental(data=str(file), **COLUMNS, site="region")
    assert sum(source.rows for source in task.clients) == 600
    assert "left out: 1" in task.notes[0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"instrument": ""}, "--instrument is missing"),
        ({"instrument": "wages"}, "'wages'; did you mean wage"),
        ({"instrument": "schooling"}, "each value of the instrument must be in several rows"),
        ({"treatment": "region"}, "'region' holds .* must be a number"),
        ({"data": "nowhere.csv"}, "data = 'nowhere.csv'"),
    ],
)
def test_mistakes_in_tables_are_named(table, options, told):
    with pytest.raises(FedcsoError, match=told):
        instrumental(**({"data": str(table[0]), **COLUMNS} | options))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--design", "cubic"], "design = 'cubic'"),
        (["--strength", "0"], "strength = 0.0 must be not 0"),
        (["--confounding", ".inf"], "confounding = inf"),
        (["--frequencies", "-1"], "frequencies = -1"),
        (["--design", "demand", "--confounding", "2"], "confounding = 2.0"),
        (["--treatment", "dose"], "treatment = 'dose' must be left out without data"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "instrumental", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
