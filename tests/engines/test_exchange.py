"""Gossip: what W says is done to what clients share, in every engine, and it is saved, counted and refused rightly."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from fedcso.algorithms import FCSG, SLATE, SLATEM, AccFCSGM, FeDXL2
from fedcso.codecs import Int8
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.topology import mixing_matrix
from fedcso.core.tree import map_leaves
from fedcso.engines import run, run_grid
from fedcso.engines.exchange import CLIENTS
from fedcso.engines.job import Job
from fedcso.engines.snapshot import from_bytes, to_bytes
from tests.engines.test_server import ServerMomentum
from tests.helpers import (
    CLEARLY,
    ENGINES,
    FINITE,
    SETTINGS,
    Case,
    NestedQuadratic,
    assert_close,
    assert_same_run,
    engines_for,
    gap,
    in_ball,
    nested_quadratic,
    run_on,
    runs_on_one_machine_only,
)
from tests.over_ranks import play, said
from tests.rare import auprc_case

CASE = nested_quadratic(clients=5)
PLAN = Plan(rounds=6, local_steps=1, outer_batch=2, inner_batch=3, initial_batch=4, topology="ring")
ALONE = "; ".join(" ".join("1" if n == j else "0" for j in range(5)) for n in range(5))
LOPSIDED = ".7 .2 .1 0 0; 0 .7 .2 .1 0; 0 0 .7 .2 .1; .1 0 0 .7 .2; .2 .1 0 0 .7"
"""Doubly stochastic, but not symmetric: client n listens to n + 1 and n + 2."""


def states_of(engine, method, case=CASE, plan=PLAN, **options):
    """Return the trace, and the clients' `shared` after each round."""
    found = []
    keep = [lambda now: found.append([one["shared"] for one in now.snapshot().state["kept"][CLIENTS]])]
    return run_on(engine, method, case, plan, callbacks=keep, **options), found


# ---------------------------------------------------------------------------------------- what W does


EVERYONE = {
    name: one
    for name, one in SETTINGS.items()
    if not runs_on_one_machine_only(one) and not one.pooled and name != "CODA+"
}


@pytest.mark.parametrize("algorithm", EVERYONE.values(), ids=EVERYONE)
def test_with_everyone_as_a_neighbour_every_method_is_as_with_a_server(algorithm):
    case = CASE if algorithm.stacks else FINITE["few_points"]
    plan = replace(PLAN, local_steps=1 if algorithm.topology != "server" else 3)
    found, expected = (run_on("reference", algorithm, case, replace(plan, topology=t)) for t in ("complete", "server"))
    assert_close(found.shared, expected.shared)
    assert gap(run_on("reference", algorithm, case, plan).last, expected.last) > 1e-6


def test_what_the_server_would_keep_each_client_keeps():
    found, expected = (
        run_on("reference", ServerMomentum(), CASE, replace(PLAN, topology=t)) for t in ("complete", None)
    )
    assert_close(found.shared, expected.shared)


@pytest.mark.parametrize("method", [SLATE(0.05), SLATEM(0.05, 0.3)], ids=["SLATE", "SLATE-M"])
@pytest.mark.parametrize("engine", ENGINES)
def test_with_no_neighbours_clients_are_single_machines(engine, method):
    _, found = states_of(engine, method, plan=replace(PLAN, topology=ALONE))
    single = {SLATE: FCSG, SLATEM: AccFCSGM}[type(method)](**vars(method))
    for n, x in enumerate(_each(found[-1], engine)):
        others = [data if k == n else None for k, data in enumerate(CASE.clients)]
        alone = run_on("reference", single, Case(OnlyOne(CASE.problem), others), replace(PLAN, topology=None))
        assert_close(x, alone.last)


class OnlyOne(NestedQuadratic):
    """The nested quadratic of one client, which keeps its number and so its samples."""

    def __init__(self, problem):
        vars(self).update(vars(problem))

    def trains(self, data):
        return data is not None

    exact = None


def _each(shared, engine):
    """Return the clients' x; engines that stack runs have two more axes."""
    return [one["x"][0, 0] if engine == "stacked" else one["x"] for one in shared]


@pytest.mark.parametrize("topology", ["ring", "torus", "complete", LOPSIDED])
def test_without_gradients_clients_are_mixed_by_w_alone(topology):
    """α is so small that x only changes by W; clients differ after one step with a large one."""
    clients = 6 if topology == "torus" else 5
    case, matrix = nested_quadratic(clients), mixing_matrix(topology, clients)
    plan = replace(PLAN, topology=topology, rounds=5)
    _, found = states_of("reference", FCSG(lambda t: 1.0 if t == 0 else 1e-300), case, plan)
    for before, after in pairwise(found):
        x, mixed = (torch.stack([one["x"] for one in some]) for some in (before, after))
        assert_close(mixed, matrix @ x)
        assert_close(mixed.mean(0), x.mean(0))
    assert (topology == "complete") == (gap(found[0][0]["x"], found[0][1]["x"]) < 1e-9)


def test_disagreement_shrinks_like_the_second_eigenvalue():
    matrix = mixing_matrix("ring", 5)
    slowest = torch.linalg.eigvalsh(matrix).abs().sort().values[-2]
    plan = replace(PLAN, rounds=40)
    _, found = states_of("reference", FCSG(lambda t: 1.0 if t == 0 else 1e-300), CASE, plan)
    apart = [torch.stack([one["x"] for one in some]) for some in found]
    lengths = [float((x - x.mean(0)).norm()) for x in apart]
    assert all(after <= slowest * before * (1 + 1e-9) for before, after in pairwise(lengths[:21]))
    assert (lengths[20] / lengths[0]) ** (1 / 20) == pytest.approx(float(slowest), rel=0.05)


@pytest.mark.parametrize("case", [CASE, in_ball(5)], ids=["everywhere", "in a ball"])
def test_what_is_evaluated_is_the_mean_over_clients(case):
    trace, found = states_of("reference", SLATEM(0.05, 0.3), case)
    mean = {name: torch.stack([one[name] for one in found[-1]]).mean(0) for name in ("x", "u")}
    assert_close(trace.shared, mean)
    assert_close(trace.last, mean["x"])
    assert gap(found[-1][0]["x"], found[-1][2]["x"]) > CLEARLY


# --------------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize("topology", ["ring", LOPSIDED])
@pytest.mark.parametrize("name", ["FCSG-M", "SCAFFOLD", "Local-SCGDM", "Acc-FCSG-M"])
def test_engines_agree_with_local_steps_and_go_on_to_the_last_bit(name, topology):
    method, plan = SETTINGS[name], replace(PLAN, local_steps=3, topology=topology)
    expected = run_on("reference", method, CASE, plan)
    for engine in engines_for(method):
        snapshots = []
        keep = [lambda now, kept=snapshots: kept.append(from_bytes(to_bytes(now.snapshot())))]
        assert_same_run(run_on(engine, method, CASE, plan, callbacks=keep), expected)
        assert_same_run(run_on(engine, method, CASE, plan, start=snapshots[2]), expected, tolerance=1e-12)
        resumed, whole = run_on(engine, method, CASE, plan, start=snapshots[2]), run_on(engine, method, CASE, plan)
        assert_same_run(resumed, whole, tolerance=0.0)


def test_settings_of_a_grid_have_clients_of_their_own():
    settings, seeds = [SLATEM(0.05, 0.3), SLATEM(0.02, 0.5)], [0, 5]
    for setting, traces in zip(settings, run_grid(settings, CASE, PLAN, seeds), strict=True):
        for seed, trace in zip(seeds, traces, strict=True):
            assert_same_run(trace, run_on("reference", setting, CASE, PLAN, seed))


def over_ranks():
    for topology in ("ring", LOPSIDED):
        plan = replace(PLAN, local_steps=2, topology=topology)
        for name in ("FCSG", "Acc-FCSG-M"):
            expected = run_on("reference", SETTINGS[name], CASE, plan)
            assert_same_run(run(SETTINGS[name], CASE, plan, engine="distributed"), expected)


def test_ranks_gossip_as_one_process_does(tmp_path):
    assert play(3, over_ranks, place=tmp_path) == [0] * 3, said(tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("topology", "messages"), [("ring", 10), ("complete", 20), (ALONE, 0), (LOPSIDED, 10)])
def test_a_message_to_each_neighbour_is_counted(engine, topology, messages):
    vector = CASE.problem.dimension * 8
    for method, vectors in ((SLATE(), 1), (SLATEM(), 2)):
        costs = run_on(engine, method, CASE, replace(PLAN, topology=topology)).costs
        assert (costs.bytes_up, costs.bytes_down) == (vectors * vector * messages * PLAN.rounds, 0)
        assert costs.rounds == PLAN.rounds


# -------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"participation": 3}, r"participation = 3 must be 1.0 over the topology ring"),
        ({"participation": 0.5}, r"participation = 0.5 must be 1.0 over the topology ring"),
        ({"weights": "size"}, r"weights = 'size' must be uniform over the topology ring"),
        ({"on_nonfinite": "drop"}, r"on_nonfinite = 'drop' must be stop over the topology ring"),
        ({"topology": "star"}, r"topology = 'star' must be server, ring"),
    ],
)
def test_a_plan_that_leaves_somebody_out_is_refused(changes, says):
    Job(FCSG(), CASE, PLAN)
    Job(FCSG(), CASE, replace(PLAN, participation=5))
    with pytest.raises(InvalidValue, match=says):
        Job(FCSG(), CASE, replace(PLAN, **changes))


def test_codecs_and_pools_need_a_server():
    with pytest.raises(FedcsoError, match="u is sent in full over the topology ring: leave out send_u"):
        Job(AccFCSGM(), CASE, PLAN, codec=Int8())
    with pytest.raises(FedcsoError, match="FeDXL2 needs a server, which collects scores of all clients"):
        Job(FeDXL2(), auprc_case(), PLAN)


def test_clients_without_training_data_are_not_in_the_network():
    case = Case(OnlyOne(CASE.problem), [CASE.clients[0], None, *CASE.clients[1:3]])
    trace, found = states_of("reference", SLATE(0.05), case)
    assert len(found[-1]) == 3
    assert_same_run(run_on("threads", SLATE(0.05), case, PLAN), trace, tolerance=0.0)
    assert map_leaves(torch.isfinite, trace.last).all()
