import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.datasets.examples import Examples
from fedcso.fitting.budget import LEAST_STEPS, MOST_STEPS, count_flops, plan_search, seconds_per_step
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
    short, long = (plan_search(minutes, pictures(), ("auto",)) for minutes in (5, 60))
    assert not short.finer
    assert LEAST_STEPS <= short.steps < long.steps


def test_a_larger_network_and_more_sites_cost_more():
    table = seconds_per_step(small_sites(), "mlp")
    assert table < seconds_per_step(pictures(2), "cifar") < seconds_per_step(pictures(8), "cifar")


def test_no_time_is_refused():
    with pytest.raises(InvalidValue, match="minutes = 0"):
        plan_search(0, small_sites(), ("linear",))


def test_flops_of_layers_are_counted():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    assert count_flops(network, torch.zeros(1, 3, 8, 8)) == 2 * (4 * 36 * 27 + 5 * 144)
