"""Methods around others: whatever they do not change is the base's, at any depth."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import (
    CODA,
    FAFED,
    FCSG,
    FCSGM,
    MIME,
    SOX,
    AccFCSGM,
    BSpiderBoost,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedProx,
    LocalSCGD,
    Scaffold,
    ServerRate,
)
from fedcso.algorithms.wrapper import Wrapper
from fedcso.core.algorithm import Algorithm, bind_schedules, grid, settings
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.engines import run, run_grid
from fedcso.engines.compiled import why_not_compiled
from fedcso.engines.job import Job
from tests.helpers import (
    CLEARLY,
    FINITE,
    SADDLES,
    assert_close,
    assert_same_run,
    engines_for,
    gap,
    nested_quadratic,
    run_on,
    setting_of,
)

ALPHA, BETA = 0.05, 0.3
PLAN = Plan(rounds=4, local_steps=2, outer_batch=2, inner_batch=3, initial_batch=4, participation=2)
CASE = nested_quadratic()
WRAPPERS = [FedAdam, FedProx, FAFED]
"""One of each kind: at the server, at the clients, at both."""
BASES = {
    "FCSG-M": (FCSGM(ALPHA, BETA), CASE),
    "Acc-FCSG-M": (AccFCSGM(ALPHA, BETA), CASE),
    "SCAFFOLD": (Scaffold(ALPHA), CASE),
    "MIME": (MIME(ALPHA, BETA), CASE),
    "SOX": (SOX(ALPHA), FINITE["few_points"]),
    "Local-SCGD": (LocalSCGD(ALPHA), CASE),
    "CODA+": (CODA(ALPHA), SADDLES["auroc"]),
}
DEEP = FedProx(FedAvgM(FAFED(FCSGM(ALPHA, BETA), 0.5, 0.5), 0.8, 0.3), 2.0)


def accepted(method, case) -> bool:
    try:
        method.check(PLAN, case.problem, case.clients)
    except FedcsoError:
        return False
    return True


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("base", "case"), BASES.values(), ids=BASES)
def test_engines_agree_on_every_wrapper_around_every_kind_of_method(wrapper, base, case):
    method = replace(setting_of(wrapper), base=base)
    if not accepted(method, case):
        assert wrapper is FAFED  # it refuses methods that do not share u
        assert "u" not in base.init(torch.zeros(())).shared
        return
    expected = run_on("reference", method, case, PLAN)
    assert gap(expected.last, run_on("reference", base, case, PLAN).last) > CLEARLY
    for engine in engines_for(method):
        assert_same_run(run_on(engine, method, case, PLAN), expected)


@pytest.mark.parametrize("base", [base for base, _ in BASES.values()], ids=BASES)
def test_traits_are_those_of_the_method_inside(base):
    for method in (Wrapper(base), FedProx(FedAdam(base))):
        for trait in ("durable", "stacks", "tracks", "steady"):
            assert getattr(method, trait) is getattr(base, trait)


def test_a_wrapper_that_changes_nothing_is_the_method_inside():
    for base, case in BASES.values():
        assert_same_run(run_on("reference", Wrapper(base), case, PLAN), run_on("reference", base, case, PLAN), 0.0)


def test_wrappers_wrap_wrappers():
    expected = run_on("reference", DEEP, CASE, PLAN)
    assert_same_run(run_on("stacked", DEEP, CASE, PLAN), expected)
    for less in (DEEP.base, DEEP.base.base, FedProx(FAFED(FCSGM(ALPHA, BETA), 0.5, 0.5), 2.0)):
        assert gap(run_on("reference", less, CASE, PLAN).last, expected.last) > CLEARLY


def test_two_optimisers_of_one_kind_keep_separate_moments():
    twice = ServerRate(ServerRate(FCSG(ALPHA), 0.5), 0.5)
    assert_close(run(twice, CASE, PLAN).last, run(ServerRate(FCSG(ALPHA), 0.25), CASE, PLAN).last)
    momentum = FedAvgM(FedAvgM(FCSG(ALPHA), 1.0, 0.0), 0.5, 0.7)
    assert_close(run(momentum, CASE, PLAN).last, run(FedAvgM(FCSG(ALPHA), 0.5, 0.7), CASE, PLAN).last)


def test_a_grid_varies_both_levels():
    methods = [FedAdam(FCSGM(0.05, 0.3), 0.1), FedAdam(FCSGM(0.1, 0.3), 0.1), FedAdam(FCSGM(0.05, 0.5), 0.2)]
    joint = grid(methods)
    assert joint.server_rate.tolist() == [0.1, 0.1, 0.2]
    assert joint.base.learning_rate.tolist() == [0.05, 0.1, 0.05]
    assert joint.adaptivity == 0.001
    for (trace,), method in zip(run_grid(methods, CASE, PLAN), methods, strict=True):
        assert_same_run(trace, run_on("reference", method, CASE, PLAN))
    with pytest.raises(InvalidValue, match=r"algorithms = \['FCSG', 'FCSGM'\]"):
        grid([FedAdam(FCSG()), FedAdam(FCSGM())])


def test_schedules_inside_are_bound_to_the_length_of_the_run():
    method = FedProx(FedAdam(FCSGM(Cosine(0.1), BETA)), prox_weight=Cosine(0.5))
    bound = bind_schedules(method, Plan(rounds=8, local_steps=1))
    assert bound == FedProx(FedAdam(FCSGM(Cosine(0.1, 8), BETA)), prox_weight=Cosine(0.5, 8))
    assert_close(run(method, CASE, PLAN).last, run(bound, CASE, PLAN).last, tolerance=0.0)
    assert bind_schedules(bound, Plan(rounds=9, local_steps=1)) is bound
    assert dict(settings(bound))["learning_rate"] == Cosine(0.1, 8)


def test_the_engine_compiled_looks_inside():
    def reason(method):
        return why_not_compiled(method)

    assert reason(FedAdam(FCSGM())) == reason(FCSGM())
    assert "are not all alike" in reason(FedAdam(FCSGM(Cosine(0.1, 5))))
    assert "are not all alike" in reason(FedProx(Scaffold()))


def test_what_a_method_inside_refuses_is_refused():
    with pytest.raises(InvalidValue, match="1 for BSpiderBoost"):
        Job(FedAdam(BSpiderBoost()), CASE, PLAN)
    with pytest.raises(FedcsoError, match=r"CODA\+ can't be used with NestedQuadratic"):
        Job(FedProx(FedAvgM(CODA())), CASE, PLAN)


def test_a_remark_of_the_method_inside_is_made():
    assert "FedAvg on NestedQuadratic is FCSG" in FedProx(FedAdam(FedAvg())).remark(CASE.problem)


def test_a_wrapper_has_all_traits_of_its_base():
    traits = [name for name, value in vars(Algorithm).items() if isinstance(value, property)]
    assert {"durable", "stacks", "tracks", "steady", "pooled", "topology"} <= set(traits)
    assert all(name in vars(Wrapper) for name in traits)
