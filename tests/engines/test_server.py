"""The server's state: what it keeps for itself, whatever the engine, and how it goes on from older snapshots."""

from dataclasses import dataclass, replace

import pytest
import torch

from fedcso.algorithms import FCSG
from fedcso.codecs import BFloat16, Inferred, Int8, Occasional
from fedcso.core.algorithm import Algorithm, Server, State
from fedcso.core.codec import KEPT, full
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.tree import add_scaled, subtract, zeros_like
from fedcso.engines import run_grid
from fedcso.engines.snapshot import from_bytes, to_bytes
from tests.helpers import CLEARLY, ENGINES, SETTINGS, assert_close, assert_same_run, gap, nested_quadratic, run_on

CASE = nested_quadratic(clients=4)
PLAN = Plan(rounds=5, local_steps=2, outer_batch=2, inner_batch=3, participation=3)


@dataclass(frozen=True)
class ServerMomentum(Algorithm):
    """FCSG whose server moves by a running sum of the clients' moves (FedAvgM); it shares a u that nobody uses."""

    learning_rate: float = 0.05
    inertia: float = 0.5

    def init(self, x):
        return Server({"x": x, "u": zeros_like(x)}, {"velocity": zeros_like(x)})

    def step(self, state, oracle, batch, t):
        x, u = state.shared["x"], state.shared["u"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), self.learning_rate), "u": u})

    def aggregate(self, server, mean, fraction):
        assert KEPT not in server.kept  # what the codec keeps is not the method's
        x = server.shared["x"]
        velocity = add_scaled(subtract(mean["x"], x), server.kept["velocity"], self.inertia)
        return Server(mean | {"x": add_scaled(x, velocity, 1.0)}, {"velocity": velocity})


def kept_by(engine, codec=full, algorithm=ServerMomentum()):
    snapshots = []
    trace = run_on(
        engine,
        algorithm,
        CASE,
        PLAN,
        codec=codec,
        callbacks=[lambda p: snapshots.append(from_bytes(to_bytes(p.snapshot())))],
    )
    return trace, snapshots


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_server_keeps_comes_back_to_it_and_does_not_travel(engine):
    trace, snapshots = kept_by(engine)
    expected, _ = kept_by("reference")
    assert_same_run(trace, expected)
    assert trace.shared.keys() == {"x", "u"}
    assert gap(trace.last, run_on(engine, FCSG(0.05), CASE, PLAN).last) > CLEARLY
    vector = CASE.problem.dimension * 8
    assert trace.costs.bytes_up == trace.costs.bytes_down == 2 * vector * 3 * PLAN.rounds
    for snapshot in snapshots[:-1]:
        assert snapshot.state["kept"].keys() == {"velocity"}
        assert_same_run(run_on(engine, ServerMomentum(), CASE, PLAN, start=snapshot), trace, tolerance=0.0)


def test_settings_of_a_grid_keep_their_own():
    settings = [ServerMomentum(0.05, inertia) for inertia in (0.5, 0.1)]
    for setting, (trace,) in zip(settings, run_grid(settings, CASE, PLAN), strict=True):
        assert_same_run(trace, run_on("reference", setting, CASE, PLAN))


@pytest.mark.parametrize(
    ("codec", "keeps"), [(BFloat16(), {"error"}), (Int8(), {"error"}), (Inferred(), {"x"}), (Occasional(2), set())]
)
def test_the_codec_keeps_what_it_needs_under_its_own_key(codec, keeps):
    _, snapshots = kept_by("reference", codec)
    for snapshot in snapshots:
        assert snapshot.state["kept"].keys() == {"velocity"} | ({KEPT} if keeps else set())
        assert snapshot.state["kept"].get(KEPT, {}).keys() == keeps


@pytest.mark.parametrize("codec", [BFloat16(), Int8(), Inferred(), Occasional(2)], ids=lambda one: type(one).__name__)
def test_a_codec_does_not_disturb_a_method_whose_server_moves_x(codec):
    """u is not used here, so that it does not matter how it travels."""
    expected, _ = kept_by("reference")
    assert_close(kept_by("reference", codec)[0].last, expected.last, tolerance=0.0)


# ---------------------------------------------------------------------------------- older versions


def older(snapshot):
    """A snapshot as it was written when servers kept nothing."""
    return snapshot._replace(state={name: snapshot.state[name] for name in ("shared", "local")})


@pytest.mark.parametrize("method", ["FCSG-M", "Acc-FCSG-M", "SCAFFOLD"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_goes_on_from_a_snapshot_of_an_older_version(engine, method):
    trace, snapshots = kept_by(engine, algorithm=SETTINGS[method])
    for snapshot in snapshots[:-1]:
        again = run_on(engine, SETTINGS[method], CASE, PLAN, start=older(snapshot))
        assert_same_run(again, trace, tolerance=0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_older_version_has_not_kept_is_as_at_the_start(engine):
    trace, snapshots = kept_by(engine)
    again = run_on(engine, ServerMomentum(), CASE, PLAN, start=older(snapshots[0]))
    assert gap(again.last, trace.last) > CLEARLY
    assert torch.isfinite(again.last).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_sent_less_in_an_older_version_is_not_continued(engine):
    _, snapshots = kept_by(engine, BFloat16(), SETTINGS["FCSG-M"])
    with pytest.raises(FedcsoError, match=r"earlier version .* start it again"):
        run_on(engine, SETTINGS["FCSG-M"], CASE, PLAN, codec=BFloat16(), start=older(snapshots[0]))


def test_a_method_written_for_an_older_version_is_told_what_to_return():
    class Old(FCSG):
        def init(self, x):
            return {"x": x}

    for engine in ENGINES:
        with pytest.raises(FedcsoError, match=r"Old.init returned a dict: return fedcso.Server\(shared\) instead"):
            run_on(engine, Old(0.1), CASE, replace(PLAN, rounds=1))
