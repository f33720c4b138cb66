"""Clipping of gradients to a norm, for each client and setting; values that are not finite stay visible."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from fedcso.algorithms import BSGD, FCSG, FCSGM, SOX, AccFCSGM, FedAvg, LocalSCGD, LocalSCGDM, Scaffold
from fedcso.core.errors import InvalidValue, NonFinite
from fedcso.core.estimator import sample
from fedcso.core.oracle import Cohort, Oracle, clip_norm
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import norm, stack
from fedcso.engines import run_grid
from fedcso.estimators.plain import plain
from tests.command_line import BAD_INPUT, call, folders
from tests.helpers import (
    CLEARLY,
    ENGINES,
    NEVER,
    BoxedClock,
    Case,
    Clock,
    assert_close,
    assert_same_run,
    few_points,
    gap,
    invariant_logistic,
    nested_quadratic,
    run_on,
)

CASE = nested_quadratic()
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
PLAN = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=3)
every_engine = pytest.mark.parametrize("engine", ENGINES)
METHODS = {
    "FCSG": FCSG(0.05),
    "FCSG-M": FCSGM(0.05, 0.3),
    "Acc-FCSG-M": AccFCSGM(0.05, 0.3),
    "FedAvg": FedAvg(0.05),
    "Local-SCGD": LocalSCGD(0.05, 0.4),
    "Local-SCGDM": LocalSCGDM(0.05, 0.4, 0.3),
    "SCAFFOLD": Scaffold(0.05),
    "SOX": SOX(0.05, 0.4, 0.3),
}


def batches(clients: int = 4):
    drawn = [sample(CASE.problem, CASE.clients[n], stream(0, n, 0), 1, 2, 3) for n in range(clients)]
    return [split_steps(batch, 1)[0] for batch in drawn]


# ------------------------------------------------------------------------------------- one gradient

number = st.floats(-1e3, 1e3)
trees = st.tuples(st.lists(number, min_size=1, max_size=4), number)


def tree(parts) -> dict:
    return {"w": torch.tensor(parts[0], dtype=torch.float64), "b": torch.tensor(parts[1], dtype=torch.float64)}


@example(([0.0], 570.9852168530831), 570.9852168530831)  # longest / length rounds to less than 1
@given(trees, st.floats(1e-3, 1e3))
def test_what_is_too_long_is_shortened_and_the_rest_stays_as_it_is(parts, longest):
    gradient = tree(parts)
    before, after = norm(gradient).item(), clip_norm(gradient, longest)
    if before <= longest:
        assert torch.equal(after["w"], gradient["w"])
        assert torch.equal(after["b"], gradient["b"])
    else:
        assert norm(after).item() == pytest.approx(longest, rel=1e-14)
        assert_close(after, {name: leaf * (longest / before) for name, leaf in gradient.items()})


def test_the_length_is_that_of_all_leaves_together():
    after = clip_norm({"w": torch.tensor([3.0, 0.0]), "b": torch.tensor(4.0)}, 1.0)
    assert_close(after, {"w": torch.tensor([0.6, 0.0]), "b": torch.tensor(0.8)}, tolerance=1e-6)


def test_no_gradient_stays_none():
    assert torch.equal(clip_norm(torch.zeros(3), 1.0), torch.zeros(3))


@pytest.mark.parametrize("size", [1e18, 1e25, 1e38])
def test_a_gradient_whose_square_overflows_is_shortened_too(size):
    """An overflow of the norm would set the gradient to 0."""
    after = clip_norm(torch.tensor([3.0, -4.0]) * (size / 5), 1.0)
    assert_close(after, torch.tensor([0.6, -0.8]), tolerance=1e-5)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_does_not_become_so(broken):
    after = clip_norm({"w": torch.tensor([broken, 1.0]), "b": torch.tensor(1.0)}, 1.0)
    assert not torch.isfinite(after["w"][0])


# ---------------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("problem", ["a formula", "differentiated", "tracked"])
def test_the_oracle_shortens_whatever_gradient_it_is_asked_for(problem):
    case = invariant_logistic() if problem == "a formula" else CASE
    (batch,) = split_steps(sample(case.problem, case.clients[0], stream(0, 0, 0), 1, 2, 3), 1)

    def gradient(clip):
        oracle = Oracle(case.problem, plain, clip=clip)
        if problem != "tracked":
            return oracle.grad(X, batch)
        _, chain = oracle.inner(X, batch)
        return chain(X + 1)

    whole = gradient(0.0)
    length = whole.norm().item()
    assert_close(gradient(length / 3), whole / 3)
    assert torch.equal(gradient(length * 1.001), whole)


def test_what_is_watched_is_the_whole_gradient():
    seen = []
    Oracle(CASE.problem, plain, watch=lambda loss, gradient: seen.append(gradient), clip=0.01).grad(X, batches()[0])
    assert torch.equal(seen[0], Oracle(CASE.problem, plain).grad(X, batches()[0]))


@pytest.mark.parametrize("grid", [1, 3])
def test_in_a_cohort_each_client_and_setting_is_shortened_by_itself(grid):
    points = torch.stack([torch.stack([X * (g + 1) * (n + 0.1) for n in range(4)]) for g in range(grid)])
    lengths = torch.stack(
        [
            torch.stack([Oracle(CASE.problem, plain).grad(points[g, n], batches()[n]).norm() for n in range(4)])
            for g in range(grid)
        ]
    )
    clip = lengths.median().item()
    assert lengths.min() < clip < lengths.max()
    together = Cohort(CASE.problem, grid, plain, clip=clip).grad(points, stack(batches()))
    for g in range(grid):
        for n in range(4):
            alone = Oracle(CASE.problem, plain, clip=clip).grad(points[g, n], batches()[n])
            assert_close(together[g, n], alone)
            assert together[g, n].norm().item() == pytest.approx(min(lengths[g, n].item(), clip), rel=1e-12)


# --------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("name", METHODS)
def test_engines_agree(name):
    algorithm = METHODS[name]
    case, plan = few_points() if name == "SOX" else CASE, replace(PLAN, clip=1.0, participation=3)
    expected = run_on("reference", algorithm, case, plan)
    assert_same_run(run_on("threads", algorithm, case, plan, workers=2), expected, tolerance=0.0)
    if algorithm.stacks:
        assert_same_run(run_on("stacked", algorithm, case, plan), expected)
    assert gap(run_on("reference", algorithm, case, replace(plan, clip=0.0)).last, expected.last) > CLEARLY


def test_a_grid_is_its_settings_run_one_by_one():
    settings, plan = [FCSGM(0.5, 0.3), FCSGM(0.01, 0.9)], replace(PLAN, clip=1.0)
    grid = run_grid(settings, CASE, plan, [0, 5])
    for setting, traces in zip(settings, grid, strict=True):
        for seed, trace in zip([0, 5], traces, strict=True):
            assert_same_run(trace, run_on("reference", setting, CASE, plan, seed))


@every_engine
def test_no_step_is_longer_than_the_learning_rate_times_the_norm(engine):
    case, plan = Case(CASE.problem, CASE.clients[:1]), Plan(rounds=6, local_steps=1, clip=0.25)
    models = []
    trace = run_on(engine, BSGD(0.1), case, plan, callbacks=[lambda now: models.append(now.traces[0].last)])
    steps = [(b - a).norm().item() for a, b in pairwise(models)]
    assert max(steps) <= 0.1 * 0.25 * (1 + 1e-12)
    assert max(steps) == pytest.approx(0.1 * 0.25, rel=1e-12)
    assert trace.costs.gradients == 6


@every_engine
@pytest.mark.parametrize("clip", [0, 0.0, 1e9, math.inf])
def test_without_a_norm_or_with_one_never_reached_all_is_as_before(engine, clip):
    before = run_on(engine, METHODS["FCSG-M"], CASE, PLAN)
    assert_same_run(run_on(engine, METHODS["FCSG-M"], CASE, replace(PLAN, clip=clip)), before, tolerance=0.0)


# ------------------------------------------------------------------------------------------ mistakes


@every_engine
@pytest.mark.parametrize("problem", [Clock("loss"), Clock("gradient"), BoxedClock("gradient")])
def test_a_number_that_is_none_is_still_told_with_client_and_round(engine, problem):
    """The third client breaks at the fifth step, which is the first of the third round."""
    case, plan = Case(problem, [NEVER, NEVER, 4.0, NEVER]), Plan(rounds=4, local_steps=2, clip=1.0)
    with pytest.raises(NonFinite) as caught:
        run_on(engine, FCSG(1.0), case, plan)
    assert (caught.value.client, caught.value.round, caught.value.step) == (2, 2, 4)
    assert caught.value.quantity == problem.breaks


@every_engine
def test_such_a_client_can_be_left_out(engine):
    case = Case(Clock("gradient"), [NEVER, 2.0, NEVER])
    plan = Plan(rounds=3, local_steps=2, clip=1.0, on_nonfinite="drop")
    trace = run_on(engine, FCSG(1.0), case, plan)
    assert [(fault.client, fault.round) for fault in trace.dropped] == [(1, 1), (1, 2)]
    assert trace.last.item() == 6.0


@pytest.mark.parametrize("clip", [-1, -0.1, math.nan, "1", None, True, [1.0]])
def test_what_is_no_norm_is_refused(clip):
    with pytest.raises(InvalidValue, match=r"clip = .* must be a norm, or 0 for no clipping"):
        Plan(clip=clip)


@pytest.mark.parametrize("clip", ["-1", "nan", "long"])
def test_what_is_no_norm_is_refused_on_the_command_line(tmp_path, clip):
    outcome = call("run", "nested_quadratic", f"--clip={clip}", "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert outcome.err.startswith("fedcso: clip")
    assert outcome.err.count("\n") == 1
    assert folders(tmp_path) == []
