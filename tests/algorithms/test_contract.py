"""The contract that every algorithm must satisfy, on every kind of problem.

A row in `fedcso.algorithms.ALGORITHMS` adds a new algorithm to these tests. (Methods that keep a state for each ξ run
on problems with finitely many, `helpers.FINITE`, and on engines that do not stack states.)

All engines give the same run, whichever clients take part and however they are weighted; the state stays finite; and a
run that is interrupted between two rounds resumes exactly.

The full product of methods, problems, plans and engines would take minutes, so these are covering sets: all engines are
compared for every method with every plan, each on another problem, and for every problem with every plan. Every method
is interrupted on every engine, repeated with the same seed, and run in grids, on problems that differ from method to
method.
"""

from dataclasses import fields, replace

import pytest

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.topology import SERVER
from fedcso.core.tree import is_finite
from fedcso.engines import run_grid
from fedcso.engines.loop import Progress
from fedcso.estimators import ESTIMATORS
from fedcso.estimators.plain import plain
from tests.examples import example
from tests.helpers import (
    CASES,
    CLEARLY,
    FINITE,
    SETTINGS,
    Case,
    Unreliable,
    assert_same_run,
    cases_for,
    engines_for,
    for_method,
    gap,
    in_turn,
    run_on,
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

OWN = {"own": example("own_algorithm").HeavyBall(learning_rate=0.05)}
"""The example of a user's method must satisfy the contract too."""

VARIANTS = {"Local-SCGDM blending each": replace(SETTINGS["Local-SCGDM"], blend="each")}
"""Other computations of the same methods."""

METHODS = SETTINGS | OWN | VARIANTS


def covering() -> list:
    """Every method with every plan, each on another of the problems that it accepts, from method to method others."""
    found = []
    for number, (name, algorithm) in enumerate(METHODS.items()):
        cases = cases_for(algorithm)
        turns = zip(in_turn(cases, number * len(PLANS), len(PLANS)), in_turn(PLANS, number, len(PLANS)), strict=True)
        for (where, case), (how, plan) in turns if cases else ():
            found.append(pytest.param(algorithm, case, plan, id=f"{how}-{where}-{name}"))
    return found


def some_problems(number: int, engines=lambda algorithm: [()], methods=METHODS) -> list:
    """Every method by every engine on so many problems, different ones for each method and engine."""
    return [
        pytest.param(algorithm, case, *engine, id="-".join((*engine, where, name)))
        for turn, (name, algorithm) in enumerate(methods.items())
        for k, engine in enumerate(engines(algorithm))
        for where, case in in_turn(cases_for(algorithm), turn + k, min(number, len(cases_for(algorithm))))
    ]


STACKED = {name: algorithm for name, algorithm in METHODS.items() if algorithm.stacks}
FEDERATED = {
    name: one
    for name, one in SETTINGS.items()
    # CODA+ needs a saddle and FeDXL2 scores; nobody can be dropped from a network without a server.
    if not runs_on_one_machine_only(one) and "few_points" in cases_for(one) and one.topology == SERVER
}
every_federated_algorithm = pytest.mark.parametrize("algorithm", FEDERATED.values(), ids=FEDERATED)


def assert_engines_agree(algorithm, case, plan, **options):
    """Assert that all engines that can run the method agree with the reference, and return its trace."""
    expected = run_on("reference", algorithm, case, plan, **options)
    assert is_finite(expected.shared)
    for engine in engines_for(algorithm):
        if engine not in ("reference", "threads"):
            assert_same_run(run_on(engine, algorithm, case, plan, **options), expected)
    assert_same_run(run_on("threads", algorithm, case, plan, workers=2, **options), expected, tolerance=0.0)
    return expected


@pytest.mark.parametrize("algorithm", METHODS.values(), ids=METHODS)
def test_a_method_accepts_some_problem(algorithm):
    assert cases_for(algorithm), "add a problem that it accepts to tests/helpers.py"


@pytest.mark.parametrize(("algorithm", "case", "plan"), covering())
def test_engines_agree_and_stay_finite(algorithm, case, plan):
    assert_engines_agree(algorithm, *for_method(algorithm, case, plan))


@pytest.mark.parametrize(
    ("algorithm", "case", "engine"), some_problems(1, lambda algorithm: [(name,) for name in engines_for(algorithm)])
)
def test_an_interrupted_run_goes_on_to_the_last_bit(algorithm, case, engine):
    case, plan = for_method(algorithm, case, PLANS["two_clients"])
    snapshots = []

    def keep(progress: Progress) -> None:
        snapshots.append(progress.snapshot())

    whole = run_on(engine, algorithm, case, plan, callbacks=[keep])
    middle = snapshots[1]
    assert middle.done == 2 < plan.rounds
    assert_same_run(run_on(engine, algorithm, case, plan, start=middle), whole, tolerance=0.0)


@pytest.mark.parametrize(("algorithm", "case"), some_problems(1))
def test_a_run_is_its_seed(algorithm, case):
    case, plan = for_method(algorithm, case, PLANS["two_clients"])
    engine = "stacked" if algorithm.stacks else "reference"
    once = run_on(engine, algorithm, case, plan, seed=1)
    assert_same_run(run_on(engine, algorithm, case, plan, seed=1), once, tolerance=0.0)
    assert gap(run_on(engine, algorithm, case, plan, seed=2).last, once.last) > CLEARLY


def smaller(algorithm, factor: float):
    """Return the same method with all its real hyper-parameters scaled, also those of a method inside."""

    def scaled(value):
        return smaller(value, factor) if isinstance(value, Algorithm) else value * factor

    given = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    return replace(
        algorithm, **{name: scaled(value) for name, value in given.items() if isinstance(value, float | Algorithm)}
    )


@pytest.mark.parametrize(("algorithm", "case"), some_problems(2, methods=STACKED))
def test_a_grid_is_its_settings_run_one_by_one(algorithm, case):
    case, plan = for_method(algorithm, case, PLANS["two_by_size"])
    settings, seeds = [algorithm, smaller(algorithm, 0.5)], [0, 5]
    grid = run_grid(settings, case, plan, seeds)
    for setting, traces in zip(settings, grid, strict=True):
        for seed, trace in zip(seeds, traces, strict=True):
            assert_same_run(trace, run_on("reference", setting, case, plan, seed))
    assert gap(grid[0][0].last, grid[1][0].last) > CLEARLY
    assert gap(grid[0][0].last, grid[0][1].last) > CLEARLY


@every_federated_algorithm
def test_engines_agree_on_whom_they_drop_and_how_these_come_back(algorithm):
    problem = Unreliable()
    case = Case(problem, problem.points((3, 5, 4, 6)))
    plan = Plan(**SIZES | {"rounds": 8}, participation=3, on_nonfinite="drop")
    assert assert_engines_agree(algorithm, case, plan).dropped


ESTIMATED = {name: SETTINGS[name] for name in ("FCSG", "Acc-FCSG-M", "SCAFFOLD", "BSpiderBoost")}
"""Methods that move by ∇F̂, with every estimator, on every one of four problems; one evaluates a batch at two points."""


PROBLEMS = ["nested_quadratic", "invariant_logistic_unlike", "classification", "auprc"]


@pytest.mark.parametrize(
    ("algorithm", "estimator", "where"),
    [
        pytest.param(algorithm, ESTIMATORS[estimator], PROBLEMS[(i + j) % len(PROBLEMS)], id=f"{estimator}-{name}")
        for i, (name, algorithm) in enumerate(ESTIMATED.items())
        for j, estimator in enumerate(ESTIMATORS)
    ],
)
def test_engines_agree_with_every_estimator_and_on_what_it_costs(algorithm, estimator, where):
    plan = Plan(**SIZES | {"inner_batch": 4}, participation=2)
    case, plan = for_method(algorithm, (CASES | FINITE)[where], plan)
    found = assert_engines_agree(algorithm, case, plan, estimator=estimator)
    grid = run_grid([algorithm, smaller(algorithm, 0.5)], case, plan, [0, 5], estimator=estimator)
    assert grid[0][0].costs == found.costs
    assert_same_run(grid[1][1], run_on("reference", smaller(algorithm, 0.5), case, plan, 5, estimator=estimator))


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if one.tracks])
def test_a_method_that_tracks_the_inner_value_takes_no_other_estimator(name):
    case = next(iter(cases_for(SETTINGS[name]).values()))
    with pytest.raises(FedcsoError, match="tracks the inner value"):
        run_on("reference", SETTINGS[name], case, PLANS["everyone"], estimator=ESTIMATORS["mean_outside"])


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if not one.tracks])
def test_every_other_method_uses_the_estimator_that_it_is_given(name):
    case, plan = for_method(SETTINGS[name], next(iter(cases_for(SETTINGS[name]).values())), PLANS["everyone"])
    runs = [run_on("reference", SETTINGS[name], case, plan, estimator=one) for one in (plain, halved)]
    assert gap(runs[0].last, runs[1].last) > CLEARLY


@Estimator
def halved(problem, x, batch):
    """Return the losses of another objective, half of the original."""
    return plain(problem, x, batch) / 2
