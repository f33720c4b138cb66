"""What a method pools is concatenated over clients, with their weights, by every engine, codec and over ranks."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from fedcso.codecs import Inferred, Int8, Occasional
from fedcso.core.algorithm import Algorithm, Server, State
from fedcso.core.codec import concatenate
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import add_scaled, zeros_like
from fedcso.engines import run, run_grid
from fedcso.engines.snapshot import from_bytes, to_bytes
from tests.helpers import CLEARLY, ENGINES, Case, Unreliable, assert_close, assert_same_run, few_points, gap, run_on
from tests.over_ranks import play, said

CASE = few_points()
PLAN = Plan(rounds=4, local_steps=2, outer_batch=2, inner_batch=3, participation=3, weights="size")


@dataclass(frozen=True)
class Drawn(Algorithm):
    """FCSG that is also drawn to the weighted mean of the coordinates of all clients' last x, which are pooled."""

    learning_rate: float = 0.05
    pull: float = 0.5
    pooled: ClassVar[frozenset[str]] = frozenset({"seen"})

    def init(self, x):
        return Server({"x": x, "u": zeros_like(x), "seen": ()})

    def receive(self, shared, local):
        seen = shared["seen"] or {"entries": zeros_like(shared["x"]), "weight": torch.ones_like(shared["x"])}
        return State(shared, {"centre": (seen["entries"] * seen["weight"]).mean(-1, keepdim=True)})

    def step(self, state, oracle, batch, t):
        x, centre = state.shared["x"], state.local["centre"]
        u = add_scaled(oracle.grad(x, batch), x - centre, self.pull)
        return State(state.shared | {"x": oracle.move(x, u, self.learning_rate), "u": u}, state.local)

    def send(self, state, steps):
        return State(state.shared | {"seen": state.shared["x"]})


def test_entries_are_in_the_order_of_clients_and_their_weights_are_those_of_clients():
    parts = [{"score": torch.tensor([1.0, 2.0])}, {"score": torch.tensor([3.0])}]
    found = concatenate(parts, [4.0, 2.0])
    assert found["entries"]["score"].tolist() == [1.0, 2.0, 3.0]
    assert found["weight"].tolist() == [1.0, 1.0, 1.0]  # 4 for two entries, 2 for one
    found = concatenate(parts, [1.0, 1.0])
    assert found["weight"].tolist() == [0.75, 0.75, 1.5]


def test_weights_are_real_numbers_whatever_is_counted():
    assert concatenate([torch.tensor([1, 2])], [3.0])["weight"].dtype == torch.float32
    assert concatenate([torch.tensor([1.0, 2.0]).double()], [3.0])["weight"].dtype == torch.float64


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, participation=1.0, weights="uniform")], ids=["some", "all"])
def test_engines_agree_on_pools_and_their_bytes(engine, plan):
    snapshots = []
    keep = [lambda now: snapshots.append(from_bytes(to_bytes(now.snapshot())))]
    found = run_on(engine, Drawn(), CASE, plan, callbacks=keep)
    assert_same_run(found, run_on("reference", Drawn(), CASE, plan))
    clients = 3 if plan is PLAN else 4
    vector = CASE.problem.dimension * 8
    assert found.shared["seen"]["entries"].shape == (clients * CASE.problem.dimension,)
    assert found.costs.bytes_up == 3 * vector * clients * plan.rounds
    pools = 2 * clients * vector * (plan.rounds - 1)  # entries and weights, from the second round on
    assert found.costs.bytes_down == clients * (2 * vector * plan.rounds + pools)
    assert_same_run(run_on(engine, Drawn(), CASE, plan, start=snapshots[1]), found, tolerance=0.0)


def test_the_pool_is_what_the_clients_sent():
    plan = replace(PLAN, rounds=1, participation=1.0)
    pooled = run_on("reference", Drawn(), CASE, plan).shared["seen"]
    weights = [3.0, 5.0, 4.0, 6.0]
    apart = [run_on("reference", Drawn(), Case(CASE.problem, [data]), plan) for data in CASE.clients[:1]]
    assert_close(pooled["entries"][:3], apart[0].last)  # the first client is alone in the same stream
    by_client = pooled["weight"].reshape(4, -1).mean(1)
    assert_close(by_client, torch.tensor(weights).double() / torch.tensor(weights).double().mean())


def test_a_grid_pools_each_of_its_runs():
    settings, seeds = [Drawn(), Drawn(pull=0.1)], [0, 5]
    for setting, traces in zip(settings, run_grid(settings, CASE, PLAN, seeds), strict=True):
        for seed, trace in zip(seeds, traces, strict=True):
            assert_same_run(trace, run_on("reference", setting, CASE, PLAN, seed))


@pytest.mark.parametrize("codec", [Int8(), Inferred(), Occasional(2)], ids=lambda one: type(one).__name__)
def test_codecs_of_u_leave_pools_alone(codec):
    """u is not used, so that it does not matter how it is sent."""
    found = run_on("reference", Drawn(), CASE, PLAN, codec=codec)
    expected = run_on("reference", Drawn(), CASE, PLAN)
    assert_close(found.shared["seen"], expected.shared["seen"], tolerance=0.0)
    assert gap(found.last, run_on("reference", Drawn(pull=0.1), CASE, PLAN).last) > CLEARLY


def test_a_client_that_is_dropped_is_not_in_the_pool_and_grids_say_that_they_cannot():
    problem = Unreliable(rate=0.1)
    case = Case(problem, problem.points((3, 5, 4, 6)))
    plan = replace(PLAN, participation=1.0, rounds=8, on_nonfinite="drop")
    found = run_on("reference", Drawn(), case, plan)
    assert found.dropped
    assert_same_run(run_on("threads", Drawn(), case, plan), found)
    with pytest.raises(FedcsoError, match="pools of different sizes can't be stacked: use --engine threads"):
        run_on("stacked", Drawn(), case, plan)


def over_ranks():
    for participation in (1, 3, 1.0):
        plan = replace(PLAN, participation=participation)
        expected = run_on("reference", Drawn(), CASE, plan)
        assert_same_run(run(Drawn(), CASE, plan, engine="distributed"), expected)


@pytest.mark.parametrize("processes", [1, 3])
def test_ranks_gather_the_same_pools(processes, tmp_path):
    assert play(processes, over_ranks, place=tmp_path) == [0] * processes, said(tmp_path)
