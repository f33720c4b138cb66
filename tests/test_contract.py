"""What every algorithm owes, on every kind of problem.

A row in `helpers.SETTINGS` enters a new algorithm here, one in `helpers.CASES` a new problem.

All engines play the same run, whoever takes part and however clients count; the state stays finite; and
a run that was interrupted between two rounds goes on as if it had not been.
"""

from dataclasses import fields, replace

import pytest

from fedcso.algorithms import ALGORITHMS
from fedcso.engine import Progress
from fedcso.engines.stacked import run_grid
from fedcso.plan import Plan
from fedcso.problems import PROBLEMS
from fedcso.tree import is_finite
from tests.helpers import (
    CASES,
    CLEARLY,
    ENGINES,
    SETTINGS,
    Case,
    Unreliable,
    assert_same_run,
    for_method,
    gap,
    play,
    runs_on_one_machine_only,
)

SIZES = {"rounds": 4, "local_steps": 2, "outer_batch": 2, "inner_batch": 3, "initial_batch": 4}
PLANS = {
    "everyone": Plan(**SIZES),
    "two_clients": Plan(**SIZES, participation=2),
    "a_fraction": Plan(**SIZES, participation=0.7),
    "by_size": Plan(**SIZES, weights="size"),
    "two_by_size": Plan(**SIZES, weights="size", participation=2),
}

every_algorithm = pytest.mark.parametrize("algorithm", SETTINGS.values(), ids=SETTINGS)
FEDERATED = {name: one for name, one in SETTINGS.items() if not runs_on_one_machine_only(one)}
every_federated_algorithm = pytest.mark.parametrize("algorithm", FEDERATED.values(), ids=FEDERATED)
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
every_engine = pytest.mark.parametrize("engine", ENGINES)


def test_every_algorithm_has_a_row():
    assert SETTINGS.keys() == ALGORITHMS.keys()
    assert all(type(algorithm) is ALGORITHMS[name] for name, algorithm in SETTINGS.items())


def test_every_problem_has_a_case():
    """But MAML, which differentiates inside g and so can't be stacked: `problems/test_maml.py` has its contract."""
    assert PROBLEMS.keys() - {"maml"} <= CASES.keys()


@every_algorithm
@every_case
@every_plan
def test_engines_agree_and_stay_finite(algorithm, case, plan):
    case, plan = for_method(algorithm, case, plan)
    expected = play("reference", algorithm, case, plan)
    assert is_finite(expected.shared)
    assert_same_run(play("stacked", algorithm, case, plan), expected)
    assert_same_run(play("threads", algorithm, case, plan, workers=2), expected, tolerance=0.0)


@every_algorithm
@every_case
@every_engine
def test_an_interrupted_run_goes_on_to_the_last_bit(algorithm, case, engine):
    case, plan = for_method(algorithm, case, PLANS["two_clients"])
    snapshots = []

    def keep(progress: Progress) -> None:
        snapshots.append(progress.snapshot())

    whole = play(engine, algorithm, case, plan, on_round=keep)
    middle = snapshots[1]
    assert middle.done == 2 < plan.rounds
    assert_same_run(play(engine, algorithm, case, plan, start=middle), whole, tolerance=0.0)


@every_algorithm
@every_case
def test_a_run_is_its_seed(algorithm, case):
    case, plan = for_method(algorithm, case, PLANS["two_clients"])
    once = play("stacked", algorithm, case, plan, seed=1)
    assert_same_run(play("stacked", algorithm, case, plan, seed=1), once, tolerance=0.0)
    assert gap(play("stacked", algorithm, case, plan, seed=2).last, once.last) > CLEARLY


def smaller(algorithm, factor: float):
    """The same method with all its real numbers scaled."""
    reals = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    return replace(algorithm, **{name: value * factor for name, value in reals.items() if type(value) is float})


@every_algorithm
@every_case
def test_a_grid_is_its_settings_run_one_by_one(algorithm, case):
    case, plan = for_method(algorithm, case, PLANS["two_by_size"])
    settings, seeds = [algorithm, smaller(algorithm, 0.5), smaller(algorithm, 0.1)], [0, 5]
    grid = run_grid(settings, case.problem, case.clients, plan, seeds, test=case.test)
    for setting, traces in zip(settings, grid, strict=True):
        for seed, trace in zip(seeds, traces, strict=True):
            assert_same_run(trace, play("reference", setting, case, plan, seed))
    assert gap(grid[0][0].last, grid[1][0].last) > CLEARLY
    assert gap(grid[0][0].last, grid[0][1].last) > CLEARLY


@every_federated_algorithm
def test_engines_agree_on_whom_they_drop_and_how_these_come_back(algorithm):
    problem = Unreliable()
    case = Case(problem, problem.centres(4))
    plan = Plan(**SIZES | {"rounds": 8}, participation=3, on_nonfinite="drop")
    expected = play("reference", algorithm, case, plan)
    assert expected.dropped
    assert is_finite(expected.shared)
    assert_same_run(play("stacked", algorithm, case, plan), expected)
    assert_same_run(play("threads", algorithm, case, plan, workers=2), expected, tolerance=0.0)
