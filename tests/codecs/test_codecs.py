"""The contract of every codec: all engines apply it and count the bytes of its messages, and both sides agree.

A row in `CODECS` adds a new codec to these tests, for every method that shares what it needs.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
import torch

from fedcso import codecs
from fedcso.codecs import BFloat16, Inferred, Int8, Occasional
from fedcso.core.algorithm import Algorithm, Server
from fedcso.core.codec import Codec, MissingMemory, Round, full
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.topology import SERVER
from fedcso.core.tree import map_leaves, nbytes
from fedcso.engines import run_grid
from tests.helpers import (
    CASES,
    CLEARLY,
    SETTINGS,
    Case,
    Unreliable,
    assert_close,
    assert_same_run,
    cases_for,
    engines_for,
    for_method,
    gap,
    in_turn,
    nested_quadratic,
    run_on,
)

CASE = nested_quadratic(clients=4)
PLAN = Plan(rounds=6, local_steps=3, outer_batch=2, inner_batch=3)
FEW = replace(PLAN, participation=2)
VECTOR = CASE.problem.dimension * 8
"""Bytes of x in float64."""

CODECS: dict[str, Codec] = {
    "full": full,
    "bfloat16": BFloat16(),
    "int8": Int8(),
    "every": Occasional(3),
    "inferred": Inferred(),
}
LESS = {name: codec for name, codec in CODECS.items() if codec != full}
every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
every_way_to_send_less = pytest.mark.parametrize("codec", LESS.values(), ids=LESS)


def shared_by(algorithm):
    return algorithm.init(torch.zeros(())).shared.keys()


MOMENTUM = {name: one for name, one in SETTINGS.items() if "u" in shared_by(one) and one.topology == SERVER}
ON_POINTS = {name: one for name, one in MOMENTUM.items() if "few_points" in cases_for(one)}  # FeDXL2 needs scores
FCSGM = SETTINGS["FCSG-M"]


def accepted_codecs(algorithm):
    """Return the codecs that can send what a method shares; u of a method around another can't be inferred."""

    def accepts(codec):
        try:
            codec.check(algorithm, dict.fromkeys(shared_by(algorithm)))
        except FedcsoError:
            return False
        return True

    return {name: codec for name, codec in CODECS.items() if accepts(codec)}


def test_every_codec_has_a_row():
    assert CODECS.keys() == codecs.CODECS.keys()
    assert all(type(codec) is codecs.CODECS[name] for name, codec in CODECS.items())


# ------------------------------------------------------------------------------------ one server and one client


def tree(seed, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    return {"w": torch.randn(50, generator=rng, dtype=dtype), "b": [torch.randn((), generator=rng, dtype=dtype)]}


def shared_of(seed, dtype=torch.float64):
    return {"x": tree(seed, dtype), "u": tree(seed + 100, dtype), "y": torch.ones(3, dtype=dtype)}


def a_round(number):
    return Round(number, PLAN, FCSGM)


@dataclass
class Conversation:
    """One server and one client that never misses a round and sends back what it received."""

    codec: Codec
    kept: dict = field(default_factory=dict)
    memory: dict | None = None

    def down(self, shared, number):
        """Return what the client reads from the server's message."""
        sent = self.codec.broadcast(shared, self.kept, a_round(number))
        message = sent.to_new if self.memory is None else sent.to_known
        received, self.memory = self.codec.receive(message, self.memory, a_round(number))
        fresh, _ = self.codec.receive(sent.to_new, None, a_round(number))
        self.kept = sent.memory
        return received, fresh

    def up(self, shared, number):
        """Return what the server reads from the client's message."""
        message, self.memory = self.codec.reply(shared, self.memory, a_round(number))
        return self.codec.read(message)


@every_codec
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_but_u_arrives_as_it_was_sent(codec, dtype):
    talk = Conversation(codec)
    for number in range(4):
        shared = shared_of(number, dtype)
        for heard in (*talk.down(shared, number), talk.up(shared, number)):
            for name in ("x", "y"):
                assert_close(heard[name], shared[name], tolerance=0.0)


@every_codec
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_and_types_of_u_stay(codec, dtype):
    talk = Conversation(codec)
    for number in range(4):
        shared = shared_of(number, dtype)
        for heard in (*talk.down(shared, number), talk.up(shared, number)):
            if "u" in heard:
                map_leaves(torch.testing.assert_close, map_leaves(torch.zeros_like, heard["u"]), zeros(shared["u"]))


def zeros(one):
    return map_leaves(torch.zeros_like, one)


@pytest.mark.parametrize("codec", [full, Occasional(1)], ids=["full", "every round"])
def test_what_loses_nothing_is_the_identity(codec):
    talk = Conversation(codec)
    for number in range(4):
        shared = shared_of(number)
        for heard in (*talk.down(shared, number), talk.up(shared, number)):
            assert_close(heard, shared, tolerance=0.0)


@every_codec
def test_a_client_that_was_there_and_one_that_was_not_hear_the_same(codec):
    """Exactly, except for the codec that lets each client continue with its own u."""
    talk = Conversation(codec)
    for number in range(4):
        known, fresh = talk.down(shared_of(number), number)
        if not isinstance(codec, Occasional) or number % codec.every == 0:
            assert_close([known[name] for name in fresh], list(fresh.values()), tolerance=0.0)
        talk.up(shared_of(number + 50), number)


@pytest.mark.parametrize("codec", [Occasional(3), Inferred()], ids=["every", "inferred"])
def test_a_message_that_counts_on_a_memory_is_not_read_without_one(codec):
    talk = Conversation(codec)
    talk.down(shared_of(0), 0)
    talk.up(shared_of(0), 0)
    sent = codec.broadcast(shared_of(1), talk.kept, a_round(1))
    with pytest.raises(MissingMemory):
        codec.receive(sent.to_known, None, a_round(1))


@every_codec
def test_messages_and_memories_are_left_alone(codec):
    talk, shared = Conversation(codec), shared_of(0)
    talk.down(shared, 0)
    talk.up(shared, 0)
    kept, memory = map_leaves(torch.clone, talk.kept), map_leaves(torch.clone, talk.memory)
    before = talk.kept, talk.memory
    talk.down(shared, 1)
    talk.up(shared, 1)
    assert_close(shared, shared_of(0), tolerance=0.0)
    assert_close(before, (kept, memory), tolerance=0.0)


# --------------------------------------------------------------------------------------- rounding


@pytest.mark.parametrize("codec", [BFloat16(), Int8()], ids=["bfloat16", "int8"])
@pytest.mark.parametrize("way", ["up", "down"])
def test_what_rounding_takes_is_added_before_the_next(codec, way):
    """The sum of the sent values stays within one rounding of the sum of the exact ones, for any number of rounds."""
    u = torch.tensor([1.0, 0.003, -0.7], dtype=torch.float64)
    shared, talk, total = {"x": torch.zeros_like(u), "u": u}, Conversation(codec), torch.zeros_like(u)
    talk.down(shared, 0)
    for number in range(1, 200):
        heard = talk.up(shared, number) if way == "up" else talk.down(shared, number)[0]
        total = total + heard["u"]
        assert (total - number * u).abs().max() < 0.02
    once = Conversation(codec).down(shared, 0)[0]["u"]
    assert (199 * once - 199 * u).abs().max() > 0.02  # without it, errors add up


@pytest.mark.parametrize("codec", [BFloat16(), Int8()], ids=["bfloat16", "int8"])
def test_what_is_rounded_already_is_not_rounded_again(codec):
    once, _ = Conversation(codec).down(shared_of(0, torch.float32), 0)
    again, _ = Conversation(codec).down(once, 0)
    assert_close(again, once, tolerance=1e-6)


@pytest.mark.parametrize("codec", [BFloat16(), Int8()], ids=["bfloat16", "int8"])
def test_rounding_moves_a_run_little(codec):
    expected = run_on("reference", FCSGM, CASE, PLAN).last
    assert 1e-9 < gap(run_on("reference", FCSGM, CASE, PLAN, codec=codec).last, expected) < 10 * CLEARLY


# ------------------------------------------------------------------------------------------ engines agree


def assert_engines_agree(algorithm, case, plan, codec):
    """Assert that all engines that can run it agree with the reference, and return its trace."""
    expected = run_on("reference", algorithm, case, plan, codec=codec)
    assert_same_run(run_on("threads", algorithm, case, plan, codec=codec, workers=2), expected, tolerance=0.0)
    if "stacked" in engines_for(algorithm, codec):
        assert_same_run(run_on("stacked", algorithm, case, plan, codec=codec), expected)
    return expected


PLANS = {"all": PLAN, "few": FEW, "by size": replace(FEW, weights="size")}


def with_plans_in_turn():
    """Return FCSG-M with every codec and plan, and every other method with two codecs, both and plans in turn."""
    found = []
    for number, (name, algorithm) in enumerate(MOMENTUM.items()):
        accepted, whole = accepted_codecs(algorithm), algorithm is FCSGM
        codecs = in_turn(accepted, 2 * number, len(accepted) if whole else min(2, len(accepted)))
        for turn, (sent, codec) in enumerate(codecs):
            for how, plan in in_turn(PLANS, number + turn, len(PLANS) if whole else 1):
                found.append(pytest.param(algorithm, codec, plan, id=f"{how}-{sent}-{name}"))
    return found


@pytest.mark.parametrize(("algorithm", "codec", "plan"), with_plans_in_turn())
def test_engines_agree(algorithm, codec, plan):
    case, plan = for_method(algorithm, next(iter(cases_for(algorithm).values())), plan)
    expected = assert_engines_agree(algorithm, case, plan, codec)
    if codec != full and len(case.clients) > 1:
        assert gap(expected.last, run_on("reference", algorithm, case, plan).last) > 1e-9  # it is another method


@every_codec
@pytest.mark.parametrize("where", CASES)
def test_engines_agree_on_every_problem(codec, where):
    assert_engines_agree(FCSGM, CASES[where], FEW, codec)


def with_codecs_in_turn():
    """Return FCSG-M with every codec, and every other method with one of them, in turn."""
    return [
        pytest.param(algorithm, codec, id=f"{sent}-{name}")
        for number, (name, algorithm) in enumerate(ON_POINTS.items())
        for sent, codec in in_turn(accepted_codecs(algorithm), number, len(CODECS) if algorithm is FCSGM else 1)
    ]


@pytest.mark.parametrize(("algorithm", "codec"), with_codecs_in_turn())
def test_engines_agree_on_whom_they_drop_and_how_these_come_back(algorithm, codec):
    problem = Unreliable()
    case, plan = Case(problem, problem.points((3, 5, 4, 6))), replace(FEW, participation=3, rounds=8)
    case, plan = for_method(algorithm, case, replace(plan, on_nonfinite="drop"))
    if len(case.clients) > 1:
        assert assert_engines_agree(algorithm, case, plan, codec).dropped


@pytest.mark.parametrize("algorithm", [FCSGM, SETTINGS["Acc-FCSG-M"], SETTINGS["SOX"]], ids=["M", "Acc", "SOX"])
@every_codec
def test_going_on_changes_nothing(algorithm, codec):
    case = next(iter(cases_for(algorithm).values()))
    for engine in engines_for(algorithm, codec):
        snapshots = []
        options = {"codec": codec, "callbacks": [lambda p, kept=snapshots: kept.append(p.snapshot())]}
        whole = run_on(engine, algorithm, case, FEW, **options)
        for snapshot in snapshots[:-1]:
            assert_same_run(run_on(engine, algorithm, case, FEW, codec=codec, start=snapshot), whole, tolerance=0.0)


@pytest.mark.parametrize("codec", [one for one in LESS.values() if one.stacks], ids=lambda one: type(one).__name__)
def test_settings_of_a_grid_are_each_their_own(codec):
    settings = [type(FCSGM)(rate, 0.3) for rate in (0.05, 0.02)]
    for method, (trace,) in zip(settings, run_grid(settings, CASE, FEW, codec=codec), strict=True):
        assert_same_run(trace, run_on("reference", method, CASE, FEW, codec=codec))


# ------------------------------------------------------------------------------ where nothing is lost


@pytest.mark.parametrize("algorithm", [FCSGM, SETTINGS["Acc-FCSG-M"]], ids=["M", "Acc"])
def test_what_is_inferred_of_a_single_step_is_u(algorithm):
    """(x̄_start − x̄_end) / α = ū: for q = 1 the method is the same."""
    plan = replace(PLAN, local_steps=1, rounds=12)
    expected = run_on("reference", algorithm, CASE, plan)
    assert_close(run_on("reference", algorithm, CASE, plan, codec=Inferred()).last, expected.last, 1e-9)


def test_a_schedule_is_summed_up():
    falling = type(FCSGM)(lambda t: 0.1 / (1 + t), 0.3)
    plan = replace(PLAN, local_steps=1)
    expected = run_on("reference", falling, CASE, plan)
    assert_close(run_on("reference", falling, CASE, plan, codec=Inferred()).last, expected.last, 1e-9)


def test_u_sent_every_round_is_u_sent():
    expected = run_on("reference", FCSGM, CASE, FEW)
    assert_same_run(run_on("reference", FCSGM, CASE, FEW, codec=Occasional(1)), expected, tolerance=0.0)


def test_u_never_sent_is_u_at_home():
    """With β = 1, u has no memory, so it does not matter which u a client has."""
    never = run_on("reference", type(FCSGM)(0.05, 1.0), CASE, PLAN, codec=Occasional(1000))
    assert_close(never.last, run_on("reference", SETTINGS["FCSG"], CASE, PLAN).last)


def test_the_server_has_the_last_average_of_u_between_two():
    shared = []
    run_on("reference", FCSGM, CASE, PLAN, codec=Occasional(3), callbacks=[lambda p: shared.append(p.traces[0].shared)])
    us = [one["u"] for one in shared]
    assert [torch.equal(a, b) for a, b in pairwise(us)] == [True, False, True, True, False]


# ------------------------------------------------------------------------------------- what travels


@dataclass(frozen=True)
class Tapped(Codec):
    """A codec that counts the bytes of every message that clients receive and send."""

    codec: Codec = full
    heard: dict = field(default_factory=lambda: defaultdict(int), compare=False)

    def broadcast(self, *arguments):
        return self.codec.broadcast(*arguments)

    def receive(self, message, memory, round):
        self.heard["down"] += nbytes(message)
        return self.codec.receive(message, memory, round)

    def reply(self, *arguments):
        message, memory = self.codec.reply(*arguments)
        self.heard["up"] += nbytes(message)
        return message, memory

    def read(self, message):
        return self.codec.read(message)

    def combine(self, *arguments):
        return self.codec.combine(*arguments)


class TappedBriefly(Tapped):
    durable = False


@every_codec
@pytest.mark.parametrize("plan", [PLAN, FEW], ids=["all", "few"])
def test_bytes_are_those_of_the_messages(codec, plan):
    tapped = (Tapped if codec.durable else TappedBriefly)(codec)
    costs = run_on("reference", FCSGM, CASE, plan, codec=tapped).costs
    assert (costs.bytes_up, costs.bytes_down) == (tapped.heard["up"], tapped.heard["down"])
    for engine in engines_for(FCSGM, codec):
        assert run_on(engine, FCSGM, CASE, plan, codec=codec).costs == costs


def sent(codec, plan):
    costs = run_on("reference", FCSGM, CASE, plan, codec=codec).costs
    return costs.bytes_up, costs.bytes_down


def test_bytes_are_those_of_the_paper_or_fewer():
    messages, one_byte = 4 * PLAN.rounds, VECTOR // 8
    assert sent(full, PLAN) == (2 * messages * VECTOR,) * 2
    assert sent(BFloat16(), PLAN) == (messages * (VECTOR + 2 * one_byte),) * 2
    assert sent(Int8(), PLAN) == (messages * (VECTOR + one_byte + 4),) * 2
    # Clients send u in rounds 3 and 6, the server in rounds 1 and 4.
    assert sent(Occasional(3), PLAN) == ((messages + 4 * 2) * VECTOR,) * 2
    # Only in the first round does no client remember the previous x.
    assert sent(Inferred(), PLAN) == (messages * VECTOR, (messages + 4) * VECTOR)


def test_who_was_not_there_needs_u():
    there = [set(FEW.participants(0, r, 4)) for r in range(FEW.rounds)]
    absent = 2 + sum(len(now - before) for before, now in pairwise(there))
    up, down = sent(Inferred(), FEW)
    assert (up, down) == (2 * FEW.rounds * VECTOR, (2 * FEW.rounds + absent) * VECTOR)


# ------------------------------------------------------------------------------------- what is refused


@every_way_to_send_less
def test_a_method_that_shares_no_u_has_none_to_send(codec):
    with pytest.raises(FedcsoError, match="FCSG does not share u"):
        run_on("reference", SETTINGS["FCSG"], CASE, PLAN, codec=codec)


def test_u_is_inferred_of_methods_with_a_learning_rate_only():
    class Parameterless(Algorithm):
        def init(self, x):
            return Server({"x": x, "u": x})

        def step(self, state, oracle, batch, t):
            return state

    with pytest.raises(FedcsoError, match="Parameterless, which has no learning_rate"):
        run_on("reference", Parameterless(), CASE, PLAN, codec=Inferred())


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "2"])
def test_turns_are_whole_numbers(every):
    with pytest.raises(InvalidValue, match="every"):
        Occasional(every)


def test_the_engine_stacked_refuses_what_can_not_be_stacked():
    with pytest.raises(FedcsoError, match="can't be stacked"):
        run_on("stacked", FCSGM, CASE, PLAN, codec=Int8())
