"""A site's own account: ε is exactly that of the Gaussian mechanism, and counts every update."""

import math

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.federation import privacy
from fedcso.federation.sovereignty.update import Update, epsilon


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_epsilon_is_where_the_hockey_stick_divergence_of_two_gaussians_is_delta(mu, delta):
    x = np.linspace(-12, mu + 12, 2_000_001)
    here, there = (np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi) for centre in (mu, 0.0))
    found = np.trapezoid(np.maximum(here - math.exp(epsilon(mu**2, delta)) * there, 0), x)
    assert found == pytest.approx(delta, rel=1e-3)


def test_it_is_below_what_renyi_differential_privacy_bounds_but_not_far():
    for z, updates in ((1.0, 1), (2.0, 10), (5.0, 100), (20.0, 100)):
        bound = privacy.epsilon(z, updates, 3, 1e-5)
        assert 0.8 * bound < epsilon(updates / z**2, 1e-5) <= bound


def test_it_grows_with_updates_and_has_sensible_ends():
    assert epsilon(0.0, 1e-5) == 0
    assert epsilon(math.inf, 1e-5) == math.inf
    found = [epsilon(Update(clip=1, noise=z).cost(n), 1e-5) for n, z in ((1, 4), (10, 4), (10, 2), (10_000, 0.1))]
    assert found == sorted(found)
    assert all(map(math.isfinite, found))


def test_any_change_of_the_rows_moves_an_update_by_twice_the_clip():
    assert Update(clip=3, noise=4).cost() == (2 / 4) ** 2
    assert Update(clip=3, noise=4).deviation == 12
    shared = Update(clip=3, noise=4, gaussian="distributed", sites=9)
    assert shared.deviation == 12 / 3  # nine of these have the variance 12² together
    assert shared.cost(updates=2) == 2 * (2 / 4) ** 2
    assert Update().cost() == 0
