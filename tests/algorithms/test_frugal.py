"""Methods that send less: what they send is counted, and where nothing is lost nothing changes."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM
from fedcso.algorithms.frugal import Inferred, Occasional, Rounded, sending, spelled
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.engines import run_grid
from tests.command_line import BAD_INPUT, QUADRATIC, call
from tests.helpers import CLEARLY, assert_close, assert_same_run, engines_for, gap, nested_quadratic, play

CASE = nested_quadratic(clients=4)
PLAN = Plan(rounds=6, local_steps=3, outer_batch=2, inner_batch=3)
FEW = replace(PLAN, participation=2)
VECTOR = CASE.problem.dimension * 8
"""Bytes of x in float64."""

BASES = {"FCSG-M": FCSGM(0.05, 0.3), "Acc-FCSG-M": AccFCSGM(0.05, 0.3)}
WAYS = ["bfloat16", "int8", "every(3)", "inferred"]
every_base = pytest.mark.parametrize("base", BASES.values(), ids=BASES)


@every_base
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("plan", [PLAN, FEW], ids=["all", "few"])
def test_engines_agree(base, way, plan):
    method = sending(way, base)
    expected = play("reference", method, CASE, plan)
    for engine in engines_for(method):
        assert_same_run(play(engine, method, CASE, plan), expected)
    assert gap(expected.last, play("reference", base, CASE, plan).last) > 1e-9  # it is another method


@every_base
def test_going_on_changes_nothing(base):
    for way in WAYS:
        snapshots, method = [], sending(way, base)
        engine = engines_for(method)[-1]
        whole = play(engine, method, CASE, FEW, callbacks=[lambda p, kept=snapshots: kept.append(p.snapshot())])
        for snapshot in snapshots[:-1]:
            assert_same_run(play(engine, method, CASE, FEW, start=snapshot), whole, tolerance=0.0)


# ------------------------------------------------------------------------------ where nothing is lost


@every_base
def test_what_is_inferred_of_a_single_step_is_u(base):
    """(x̄_start − x̄_end) / α = ū: for q = 1 the method is the same."""
    plan = replace(PLAN, local_steps=1, rounds=12)
    assert_close(play("reference", Inferred(base), CASE, plan).last, play("reference", base, CASE, plan).last, 1e-9)


@every_base
def test_u_sent_every_round_is_u_sent(base):
    assert_close(play("reference", Occasional(base, 1), CASE, PLAN).last, play("reference", base, CASE, PLAN).last)


def test_u_never_sent_is_u_at_home():
    """With β = 1 nothing is remembered in u, so that it does not matter where it is."""
    never = Occasional(FCSGM(0.05, 1.0), 1000)
    assert_close(play("reference", never, CASE, PLAN).last, play("reference", FCSG(0.05), CASE, PLAN).last)


def test_a_schedule_is_summed_up():
    falling = FCSGM(lambda t: 0.1 / (1 + t), 0.3)
    plan = replace(PLAN, local_steps=1)
    assert_close(
        play("reference", Inferred(falling), CASE, plan).last, play("reference", falling, CASE, plan).last, 1e-9
    )


# --------------------------------------------------------------------------------------- rounding


@pytest.mark.parametrize("bits", [16, 8])
def test_what_rounding_takes_is_added_before_the_next(bits):
    """The sum of what is sent stays within one rounding of the sum of what was meant, however many rounds there are."""
    method = Rounded(FCSGM(), bits)
    u = torch.tensor([1.0, 0.003, -0.7], dtype=torch.float64)
    error, total = torch.zeros_like(u), torch.zeros_like(u)
    for rounds in range(1, 200):
        sent, error = method.rounded(u, error)
        total = total + sent
        assert (total - rounds * u).abs().max() < 0.02
    assert (199 * method.rounded(u, torch.zeros_like(u))[0] - 199 * u).abs().max() > 0.02  # without it, errors add up


@pytest.mark.parametrize("bits", [16, 8])
def test_a_message_holds_what_was_sent(bits):
    method = Rounded(FCSGM(), bits)
    sent, _ = method.rounded({"w": torch.randn(50), "b": torch.zeros(3)}, {"w": torch.zeros(50), "b": torch.zeros(3)})
    again, _ = method.rounded(sent, {"w": torch.zeros(50), "b": torch.zeros(3)})
    assert_close(again, sent, tolerance=1e-6)


def test_rounding_moves_a_run_little():
    expected = play("reference", BASES["FCSG-M"], CASE, PLAN).last
    gaps = [gap(play("reference", Rounded(BASES["FCSG-M"], bits), CASE, PLAN).last, expected) for bits in (16, 8)]
    assert all(1e-9 < found < 10 * CLEARLY for found in gaps)


# ------------------------------------------------------------------------------------- what travels


def sent(method, plan, engine="reference"):
    costs = play(engine, method, CASE, plan).costs
    return costs.bytes_up, costs.bytes_down


@every_base
def test_bytes_are_those_of_the_messages(base):
    messages, few_bits = 4 * PLAN.rounds, VECTOR // 8
    assert sent(base, PLAN) == (2 * messages * VECTOR,) * 2
    assert sent(Rounded(base, 16), PLAN) == (messages * (VECTOR + 2 * few_bits),) * 2
    assert sent(Rounded(base, 8), PLAN) == (messages * (VECTOR + few_bits + 4),) * 2
    # u goes up in rounds 3 and 6, and down in rounds 1 and 4.
    assert sent(Occasional(base, 3), PLAN) == ((messages + 4 * 2) * VECTOR,) * 2
    # Only at the start does nobody know what happened before.
    assert sent(Inferred(base), PLAN) == (messages * VECTOR, (messages + 4) * VECTOR)


def test_who_was_not_there_needs_u():
    there = [set(FEW.participants(0, r, 4)) for r in range(FEW.rounds)]
    absent = 2 + sum(len(now - before) for before, now in pairwise(there))
    up, down = sent(Inferred(FCSGM(0.05, 0.3)), FEW)
    assert (up, down) == (2 * FEW.rounds * VECTOR, (2 * FEW.rounds + absent) * VECTOR)


@pytest.mark.parametrize("way", ["bfloat16", "every(3)", "inferred"])
def test_settings_of_a_grid_are_each_their_own(way):
    settings = [sending(way, FCSGM(rate, 0.3)) for rate in (0.05, 0.02)]
    for method, (trace,) in zip(settings, run_grid(settings, CASE, FEW), strict=True):
        assert_same_run(trace, play("reference", method, CASE, FEW))


# ------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("way", WAYS)
def test_a_way_is_spelled_as_it_was_asked_for(way):
    assert spelled(sending(way, FCSGM())) == way


@pytest.mark.parametrize("way", ["int4", "every", "every(0)", "every(x)", ""])
def test_an_unknown_way_is_refused(way):
    with pytest.raises(InvalidValue, match="send_u"):
        sending(way, FCSGM())


def test_ways_can_be_compared_on_the_command_line(tmp_path):
    methods = ["FCSG-M", "FCSG-M(send_u=int8)", "FCSG-M(send_u=every(2))", "FCSG-M(send_u='inferred')"]
    assert call("run", *QUADRATIC, "--algorithm", *methods, "--out", tmp_path).code == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [(["FCSG", "--send-u", "int8"], "none of FCSG has it"), (["FCSG-M", "--send-u", "zip"], "bfloat16")],
)
def test_mistakes_are_told(options, reason, tmp_path):
    outcome = call("run", *QUADRATIC, "--algorithm", *options, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "send_u = " in outcome.err
    assert reason in outcome.err
