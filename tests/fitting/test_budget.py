import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.datasets.examples import Examples
from fedcso.fitting.budget import BRIEF, LEAST_STEPS, MOST_STEPS, cost_of, count_flops, plan_search
from fedcso.fitting.config import FitConfig
from tests.fitting.small_sites import small_sites


def pictures(sites: int = 8):
    images = Examples(torch.zeros(4, 3, 32, 32, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    return small_sites()._replace(names=[str(n) for n in range(sites)], train=[images] * sites)


def test_tables_are_searched_thoroughly_in_the_default_time():
    budget = plan_search(5, small_sites(), ("linear", "mlp"))
    assert budget.steps == MOST_STEPS
    assert budget.finer
    assert budget.seeds == (1, 2, 3)


def test_pictures_are_searched_with_fewer_settings_and_more_steps_in_more_time():
    short, long = (plan_search(minutes, pictures(), ("auto",)) for minutes in (5, 10))
    assert short.objectives == long.objectives == BRIEF.objectives
    assert LEAST_STEPS < short.steps < long.steps
    assert plan_search(60, pictures(), ("auto",)).objectives != BRIEF.objectives


def test_large_pictures_are_searched_at_a_lower_resolution_unless_there_is_much_time():
    scans = Examples(torch.zeros(4, 1, 128, 128, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    sites = small_sites()._replace(train=[scans] * 3)
    nets = FitConfig("scans.npz").nets(sites)
    assert plan_search(5, sites, nets).nets == ("coarse",)
    assert plan_search(5, sites, nets).steps > 3 * plan_search(5, sites, ("auto",)).steps
    assert plan_search(10_000, sites, nets).nets == nets == ("coarse", "auto")


def test_all_runs_that_are_planned_take_no_longer_than_the_limit():
    for minutes in (5, 20, 60):
        budget = plan_search(minutes, pictures(), ("auto",))
        runs = budget.runs().items()
        planned = sum(number * budget.cost.of_run(rung.share * budget.steps, rung.evaluations) for rung, number in runs)
        assert planned <= budget.seconds


def test_a_larger_network_more_sites_and_more_validation_rows_cost_more():
    table = cost_of(small_sites(), "mlp")
    assert table.step < cost_of(pictures(2), "cifar").step < cost_of(pictures(8), "cifar").step
    assert table.evaluation < cost_of(small_sites(1500), "mlp").evaluation


def test_very_many_validation_rows_are_evaluated_in_part():
    def evaluation(rows):
        labels = torch.zeros(rows, dtype=torch.int64)
        labels[::20] = 1
        held = Examples(torch.zeros(rows, 3), labels)
        return cost_of(small_sites()._replace(validation=[held]), "mlp").evaluation

    assert evaluation(100_000) == pytest.approx(evaluation(20_000))


def test_no_time_is_refused():
    with pytest.raises(InvalidValue, match="minutes = 0"):
        plan_search(0, small_sites(), ("linear",))


def test_flops_of_layers_are_counted():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    assert count_flops(network, torch.zeros(1, 3, 8, 8)) == 2 * (4 * 36 * 27 + 5 * 144)
