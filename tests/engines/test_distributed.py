"""Ranks that own clients: the run is the simulation's, however many there are, wherever it was begun."""

import os
import pickle
import signal
from dataclasses import replace
from functools import cache

import pytest

from fedcso import engines
from fedcso.algorithms import FCSG, FCSGM
from fedcso.codecs import BFloat16, Inferred, Int8, Occasional
from fedcso.core.codec import full
from fedcso.core.errors import FedcsoError, NonFinite
from fedcso.core.judge import ByClient, Judge
from fedcso.core.plan import Plan
from fedcso.engines import distributed, ranks, torchrun
from fedcso.engines.distributed import Stopped
from fedcso.problems import AUPRC
from fedcso.runs import checkpoint
from tests.helpers import (
    CLEARLY,
    NEVER,
    SETTINGS,
    Case,
    Clock,
    assert_same_run,
    cases_for,
    few_points,
    for_method,
    gap,
    in_turn,
    nested_quadratic,
    rare_positives,
    run_on,
)
from tests.over_ranks import play as on_ranks
from tests.over_ranks import said

PLAN = Plan(rounds=3, local_steps=2, outer_batch=2, inner_batch=3, initial_batch=4, participation=3, weights="size")
sizes = pytest.mark.parametrize("processes", [1, 2, 3])


def run(algorithm, case, plan=PLAN, seed=0, **options):
    return engines.run(algorithm, case, plan, seed, **options, engine="distributed")


# ------------------------------------------------------------------------------- it is the simulation


def methods_on_problems(most):
    """Yield every method on at most so many of the problems that it accepts, different ones for each method."""
    for turn, method in enumerate(SETTINGS.values()):
        accepted = cases_for(method)
        for _, case in in_turn(accepted, turn, min(most, len(accepted))):
            yield method, *for_method(method, case, PLAN)


@pytest.fixture(scope="module")
def simulated():
    """By the number of problems, the traces of the simulation; made here once, not by every rank of every test."""
    return cache(lambda most: pickle.dumps([run_on("reference", *one) for one in methods_on_problems(most)]))


def every_method_equals(expected, problems):
    for one, trace in zip(methods_on_problems(problems), pickle.loads(expected), strict=True):
        assert_same_run(run(*one), trace)


@pytest.mark.parametrize(("processes", "problems"), [(1, 1), (2, 2), (3, 1)])
def test_every_method_equals_the_simulation(processes, problems, simulated, tmp_path):
    codes = on_ranks(processes, every_method_equals, simulated(problems), problems, place=tmp_path)
    assert codes == [0] * processes, said(tmp_path)


def few_take_part():
    """Most ranks have no participant, and learn from the others what a message looks like."""
    for case in (nested_quadratic(clients=5), few_points()):
        for participation in (1, 2):
            plan = replace(PLAN, participation=participation, rounds=4)
            for name in ("FCSG-M", "Local-SCGDM", "SCAFFOLD"):
                assert_same_run(run(SETTINGS[name], case, plan), run_on("reference", SETTINGS[name], case, plan))
    other = run_on("reference", FCSGM(0.1, 0.3), nested_quadratic(), PLAN, seed=1)
    assert gap(run(FCSGM(0.1, 0.3), nested_quadratic()).last, other.last) > CLEARLY


@pytest.mark.parametrize("processes", [2, 3])
def test_ranks_may_be_idle(processes, tmp_path):
    assert on_ranks(processes, few_take_part, place=tmp_path) == [0] * processes, said(tmp_path)


def every_codec_is_the_simulations():
    """Also where a rank has no participant, or one of its clients comes back after a round without it."""
    for codec in (BFloat16(), Int8(), Occasional(2), Inferred()):
        for name in ("FCSG-M", "Acc-FCSG-M", "SOX"):
            for participation in (1, 3):
                plan = replace(PLAN, rounds=5, participation=participation)
                expected = run_on("reference", SETTINGS[name], few_points(), plan, codec=codec)
                assert_same_run(run(SETTINGS[name], few_points(), plan, codec=codec), expected)


@pytest.mark.parametrize("processes", [1, 3])
def test_every_codec_is_the_simulations(processes, tmp_path):
    assert on_ranks(processes, every_codec_is_the_simulations, place=tmp_path) == [0] * processes, said(tmp_path)


def evaluation_is_shared_out():
    case = rare_positives(AUPRC)
    case = replace(case, test=ByClient(case.test, [case.test, *case.clients]), validation=case.clients[0])
    trace = run(FCSG(0.1), case)
    assert_same_run(trace, run_on("reference", FCSG(0.1), case, PLAN))
    assert "client_margin" in trace.rows[-1]
    assert "validation_margin" in trace.rows[-1]
    measured = []
    counting = Judge(lambda x, test: measured.append(test) or {})
    run(FCSG(0.1), replace(case, judge=counting), replace(PLAN, rounds=1))
    at_home = 0 if not torchrun.follows() else len(case.test.clients) / (torchrun.size() - 1)
    by_leader = 0 if torchrun.follows() else 2  # the whole test data, and the validation data
    assert len(measured) == 3 * (at_home + by_leader)  # before and after the round, and the random iterate


def test_evaluation_is_shared_out(tmp_path):
    """The leader measures on everything, the other at home."""
    assert on_ranks(2, evaluation_is_shared_out, place=tmp_path) == [0, 0], said(tmp_path)


# ------------------------------------------------------------------------------------ numbers that break


def breaks_are_told_everywhere():
    plan = Plan(rounds=4, local_steps=2)
    case = Case(Clock(), clients=[NEVER, 3.0, NEVER, 3.0])
    for policy in ("stop", "drop"):
        strict = replace(plan, on_nonfinite=policy)
        if policy == "drop":
            assert_same_run(run(FCSG(1.0), case, strict), run_on("reference", FCSG(1.0), case, strict))
            continue
        with pytest.raises(NonFinite) as caught:
            run(FCSG(1.0), case, strict)
        assert (caught.value.client, caught.value.round, caught.value.step) == (1, 1, 3)
    with pytest.raises(FedcsoError, match="all participating clients were dropped"):
        run(FCSG(1.0), Case(Clock(), [3.0] * 3), replace(plan, on_nonfinite="drop"))


@sizes
def test_a_client_that_breaks_is_named_by_every_rank(processes, tmp_path):
    assert on_ranks(processes, breaks_are_told_everywhere, place=tmp_path) == [0] * processes, said(tmp_path)


# ------------------------------------------------------------------------------------- going on elsewhere


TO_GO_ON = {"FCSG-M": Int8(), "Acc-FCSG-M": full, "STEM": Occasional(2), "SCAFFOLD": full}


def snapshots_of(folder):
    """Every snapshot of some runs, saved by the leader; together they must be a simulation's."""
    for name, codec in TO_GO_ON.items():

        def save(progress, name=name):
            checkpoint.save(folder / name / str(progress.done), progress.snapshot())

        run(SETTINGS[name], nested_quadratic(clients=5), codec=codec, callbacks=[save])


def goes_on_from(folder):
    for name, codec in TO_GO_ON.items():
        whole = run_on("reference", SETTINGS[name], nested_quadratic(clients=5), PLAN, codec=codec)
        for done in (1, 2):
            start = None if torchrun.follows() else checkpoint.newest(folder / name / str(done))
            assert_same_run(run(SETTINGS[name], nested_quadratic(clients=5), codec=codec, start=start), whole)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """By the number of ranks that saved them, folders of snapshots."""

    @cache
    def saved(processes):
        folder = tmp_path_factory.mktemp(f"by-{processes}-ranks")
        assert on_ranks(processes, snapshots_of, folder, place=folder) == [0] * processes, said(folder)
        return folder

    return saved


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 2), (2, 2)])
def test_a_run_is_resumed_with_any_number_of_ranks(before, after, snapshots, tmp_path):
    assert on_ranks(after, goes_on_from, snapshots(before), place=tmp_path) == [0] * after, said(tmp_path)


def test_a_run_of_ranks_is_resumed_by_threads(snapshots):
    case = nested_quadratic(clients=5)
    start = checkpoint.newest(snapshots(2) / "SCAFFOLD" / "1")
    whole = run_on("reference", SETTINGS["SCAFFOLD"], case, PLAN)
    assert_same_run(run_on("threads", SETTINGS["SCAFFOLD"], case, PLAN, start=start), whole)


def leader_stops():
    def stop(progress):
        if progress.done == 2:
            raise FedcsoError("enough")

    with pytest.raises(Stopped if torchrun.follows() else FedcsoError):
        run(FCSG(0.1), nested_quadratic(), callbacks=[stop])
    # And all are ready for another.
    assert_same_run(run(FCSG(0.1), nested_quadratic()), run_on("reference", FCSG(0.1), nested_quadratic(), PLAN))


def test_all_stop_when_the_leader_does(tmp_path):
    assert on_ranks(3, leader_stops, place=tmp_path) == [0, 0, 0], said(tmp_path)


# --------------------------------------------------------------------------------------------- mistakes


def test_a_rank_that_is_gone_is_told_of(tmp_path):
    assert on_ranks(3, dies_after_a_round, place=tmp_path) == [0, -signal.SIGKILL, 0], said(tmp_path)


def dies_after_a_round():
    """Rank 1 is killed while the others are at work."""
    problem = nested_quadratic().problem
    rounds = []
    original = distributed.OverRanks.run_round

    def counted(self, round):
        rounds.append(round)
        if round == 2 and torchrun.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, round)

    distributed.OverRanks.run_round = counted
    with pytest.raises(ranks.RankLost, match=r"rank \d of 3 lost the others: a rank was killed or failed"):
        run(FCSG(0.1), Case(problem, problem.centres(4)), replace(PLAN, rounds=1000))
    assert len(rounds) == 3


def test_without_torchrun_it_says_what_to_do():
    with pytest.raises(FedcsoError, match=r"needs torchrun: start your script with `torchrun"):
        run(FCSG(0.1), nested_quadratic())
