"""PAGE: coins that all clients obey."""

from dataclasses import replace

from fedcso.algorithms import FCSG, PAGE, BSpiderBoost
from fedcso.core.plan import Plan
from fedcso.engines import run
from fedcso.engines.job import Job
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import CLEARLY, assert_close, gap, nested_quadratic, run_on

ALPHA, LARGE = 0.1, 6
CASE = nested_quadratic()
SINGLE = Plan(rounds=12, local_steps=1, outer_batch=2, inner_batch=3)
PLAN = replace(SINGLE, rounds=4, local_steps=3)


def last(method, case=CASE, plan=SINGLE):
    return run_on("reference", method, case, plan).last


def test_it_is_that_of_the_paper_with_the_coins_it_throws():
    method = PAGE(ALPHA, period=3, large_batch=LARGE, coins=1)
    samples = literal.drawn(job := Job(method, CASE, SINGLE))
    coins = [method.starts_anew(t) for t in range(SINGLE.rounds)]
    assert coins[0]
    assert 2 <= sum(coins) < SINGLE.rounds  # others than the first, and not all
    assert [len(batches[0].xi) for batches in samples[: len(coins)]] == [LARGE if coin else 2 for coin in coins]
    x, u = server.page(job.start(), samples, literal.quadratic_gradient, coins, ALPHA)
    assert_close(run_on("reference", method, CASE, SINGLE).shared, {"x": x, "u": u})
    first_only = [True] + [False] * (len(coins) - 1)
    assert gap(server.page(job.start(), samples, literal.quadratic_gradient, first_only, ALPHA)[0], x) > CLEARLY


def test_with_a_large_batch_in_every_step_it_is_fcsg():
    for plan in (SINGLE, PLAN):
        fcsg = last(FCSG(ALPHA), plan=replace(plan, outer_batch=LARGE))
        assert_close(last(PAGE(ALPHA, period=1, large_batch=LARGE), plan=plan), fcsg)
        assert gap(last(PAGE(ALPHA, period=4, large_batch=LARGE), plan=plan), fcsg) > CLEARLY


def test_with_one_large_batch_it_is_bspiderboost_with_one_period():
    alone = replace(CASE, clients=CASE.clients[:1])
    never = 10**9
    assert not any(PAGE(period=never).starts_anew(t) for t in range(1, SINGLE.rounds))
    assert_close(last(PAGE(ALPHA, never, LARGE), alone), last(BSpiderBoost(ALPHA, never, LARGE), alone))
    assert gap(last(PAGE(ALPHA, never, LARGE), alone), last(BSpiderBoost(ALPHA, 4, LARGE), alone)) > CLEARLY


def test_coins_fall_with_their_probability_and_depend_on_nothing_but_their_seed():
    thrown = [PAGE(period=5).starts_anew(t) for t in range(2000)]
    assert thrown == [PAGE(0.5, period=5, large_batch=7).starts_anew(t) for t in range(2000)]
    assert thrown != [PAGE(period=5, coins=1).starts_anew(t) for t in range(2000)]
    assert abs(sum(thrown) / 2000 - 1 / 5) < 0.04  # four standard deviations


def test_a_large_batch_costs_one_gradient_a_sample_and_a_small_one_two():
    method, clients = PAGE(ALPHA, 3, LARGE), len(CASE.clients)
    coins = [method.starts_anew(t) for t in range(SINGLE.rounds)]
    costs = run(method, CASE, SINGLE).costs
    large, small = clients * LARGE * sum(coins), clients * SINGLE.outer_batch * (len(coins) - sum(coins))
    assert (costs.outer_samples, costs.gradients) == (large + small, large + 2 * small)


def test_all_seeds_of_a_run_share_the_coins():
    one, two = (run(PAGE(ALPHA, 3, LARGE), CASE, SINGLE, seed=seed) for seed in (0, 1))
    assert one.costs == two.costs
    assert gap(one.last, two.last) > CLEARLY
