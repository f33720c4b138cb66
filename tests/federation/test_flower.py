"""The parts of the Flower engine that need no process: what travels, which answers count, what a site remembers."""

import json
import pickle
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedcso.algorithms import FCSGM
from fedcso.core.algorithm import Server
from fedcso.core.costs import Costs
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.core.tree import named_leaves
from fedcso.engines.job import Job
from fedcso.engines.server import open_round
from fedcso.federation import wire
from fedcso.federation.acceptance import Expected, accepted
from fedcso.federation.exchange import Response
from fedcso.federation.memory import Memory
from fedcso.federation.privacy import epsilon
from fedcso.federation.remote_problem import remote_judge
from fedcso.federation.request import Order
from fedcso.federation.wire import Unreadable, pack, size, unpack
from fedcso.problems import PROBLEMS
from fedcso.reports.export import as_onnx
from tests.helpers import nested_quadratic

TREE = {
    "shared": {
        "x": {"w": torch.randn(3, 2), "b": torch.tensor(1.5)},
        "u": (torch.arange(3), torch.zeros(0)),
        "v": [
            torch.randn(2, 3).to(torch.bfloat16),
            torch.tensor(0.1, dtype=torch.bfloat16),
            torch.ones(2).to(torch.int8),
        ],
    }
}
BEFORE = {"x": torch.zeros(4), "u": torch.zeros(4)}


def test_a_tree_and_words_arrive_as_they_were_sent():
    words, tree = unpack(pack({"round": 3, "name": "ξ"}, TREE))
    assert words == {"round": 3, "name": "ξ"}
    for (path, a), (same, b) in zip(named_leaves(TREE), named_leaves(tree), strict=True):
        assert path == same
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    assert size(pack({}, TREE)) > sum(leaf.numel() * leaf.element_size() for _, leaf in named_leaves(TREE))


class Malicious:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("stype", ["numpy.ndarray", "pickle"])
def test_a_pickle_on_the_wire_is_never_opened(stype):
    for content in (pickle.dumps(Malicious()), b"\x93NUMPY", b""):
        array = Array("object", (), stype, content)
        text = json.dumps({"tree": "0", "tensors": [["U8", [len(content)]]]})
        words = ConfigRecord({"json": text})
        with pytest.raises(Unreadable):
            unpack(RecordDict({"arrays": ArrayRecord({"tensors": array}), "words": words}))


def received(tree="0", tensors=(("F32", [2]),), sent=None):
    """What is read from a message with two numbers, if its JSON or its bytes are others."""
    content = pack({}, torch.tensor([1.0, 2.0]))
    record = content.config_records["words"]
    record["json"] = json.dumps({"tree": tree, "tensors": tensors})
    record["tensors"] = record["tensors"] if sent is None else sent
    return unpack(content)[1]


@pytest.mark.parametrize("tree", ["9", {"dict": 3}, {"set": []}, {}, None, 7, {"dict": {}, "list": []}])
def test_a_message_of_another_kind_is_unreadable_and_nothing_worse(tree):
    assert torch.equal(received(), torch.tensor([1.0, 2.0]))
    with pytest.raises(Unreadable):
        received(tree)
    with pytest.raises(Unreadable):
        unpack(RecordDict())


@pytest.mark.parametrize(
    "tensors",
    [
        [["F32", [2]], ["F32", [2]]],  # the same bytes twice
        [["F32", [1]]],
        [["F32", [3]]],
        [["F32", [-1]]],
        [["F32", [2.0]]],
        [["F32", [1 << 60]]],
        [["O", [2]]],
        [],
        7,
    ],
)
def test_tensors_must_be_all_bytes_that_were_sent_each_once(tensors):
    with pytest.raises(Unreadable):
        received(tensors=tensors)


@pytest.mark.parametrize("sent", ["12345678", 8, [0.5] * 8, b"1234567"])
def test_bytes_must_come_as_bytes(sent):
    with pytest.raises(Unreadable):
        received(sent=sent)


def test_large_tensors_are_an_array_beside_the_record(monkeypatch):
    small = pack({"round": 3}, TREE)
    monkeypatch.setattr(wire, "SMALL", 10)
    large = pack({"round": 3}, TREE)
    assert (len(small), len(large)) == (1, 2)
    assert size(small) < size(large) < size(small) + 200
    for (path, a), (same, b) in zip(named_leaves(TREE), named_leaves(unpack(large)[1]), strict=True):
        assert path == same
        assert torch.equal(a, b)
    sent = np.zeros(8, np.uint8)
    for array in (sent.view(np.int8), sent.reshape(2, 4)):
        words = ConfigRecord({"json": json.dumps({"tree": "0", "tensors": [["U8", [8]]]})})
        with pytest.raises(Unreadable):
            unpack(RecordDict({"words": words, "arrays": ArrayRecord({"tensors": Array(array)})}))


def answer(shared, **words):
    said = {"costs": Costs().as_dict(), "train_loss": 1.0, "seconds": 0.5} | words
    return Response(pack(said, {"shared": shared}), "", 1.0, 10, 10)


def both(value, length=4, dtype=torch.float32):
    return {"x": torch.full((length,), value, dtype=dtype), "u": torch.full((length,), value, dtype=dtype)}


def judged(*arrivals, before=BEFORE, outlier=1000.0):
    opened = open_round(Job(FCSGM(), nested_quadratic(), Plan()), Server(before), 0)
    replies, _, faults = accepted(dict(enumerate(arrivals)), Expected(opened, False, outlier, seconds=10.0))
    return sorted(replies), faults


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (answer(both(float("nan"))), "not finite"),
        (answer(both(float("inf"))), "not finite"),
        (answer(both(1.0, length=5)), "other shapes"),
        (answer(both(1.0, dtype=torch.float64)), "other shapes"),
        (answer({"x": torch.zeros(4)}), "other shapes"),
        (answer(both(1.0) | {"z": torch.zeros(1)}), "other shapes"),
        (answer(both(1e9)), "times as long"),
        (answer(both(1.0), costs=None), "is incomplete"),
        (answer(both(1.0), refused="it raised KeyError"), "it raised KeyError"),
        (Response(None, "its connection was lost", 46.0, 10, 0), "connection was lost"),
        (Response(RecordDict(), "", 1.0, 10, 0), "can't be read"),
    ],
)
def test_what_may_not_count_does_not_and_the_others_do(bad, reason):
    for place in range(3):
        arrivals = [answer(both(1.0)), answer(both(1.1))]
        arrivals.insert(place, bad)
        counted, faults = judged(*arrivals)
        assert counted == [n for n in range(3) if n != place]
        assert list(faults) == [place]
        assert reason in faults[place]


def test_without_a_limit_long_updates_count_and_a_lone_site_has_no_one_to_be_compared_with():
    assert judged(answer(both(1.0)), answer(both(1e9)), outlier=0.0)[0] == [0, 1]
    assert judged(answer(both(1e9)))[0] == [0]
    assert judged(answer(both(0.0)), answer(both(0.0)), answer(both(1.0)))[0] == [0, 1, 2]


def test_what_the_server_has_nothing_of_yet_is_as_most_sites_have_it():
    before = BEFORE | {"y": ()}
    good, odd = both(1.0) | {"y": torch.ones(2)}, both(1.0) | {"y": torch.ones(3)}
    assert judged(answer(good), answer(odd), answer(good), before=before)[0] == [0, 2]


def test_a_site_takes_up_the_round_that_counted_and_forgets_the_others(tmp_path):
    memory = Memory(tmp_path, "run/FCSG/seed0")
    assert memory.recall(-1) is None
    for round, besides in ((0, -1), (1, 0), (2, 0)):
        memory.keep(round, {"previous": torch.full((2,), float(round))}, besides)
    assert memory.recall(1) is None  # round 1 was answered too late: round 2 began again from round 0
    assert torch.equal(memory.recall(0)["previous"], torch.zeros(2))
    assert torch.equal(memory.recall(2)["previous"], torch.full((2,), 2.0))
    assert Memory(tmp_path, "other/FCSG/seed0").recall(2) is None


def test_an_order_of_another_version_is_refused_in_words():
    order = Order({"problem": "auprc"}, ["0", "1"], round=4)
    assert Order.read(order.words()) == order
    with pytest.raises(Unreadable, match="version"):
        Order.read(order.words() | {"colour": "red"})


def test_epsilon_falls_with_noise_grows_with_rounds_and_is_near_the_gaussian_mechanisms_own():
    assert epsilon(1.0, 0, 3, 1e-5) == 0
    assert epsilon(1.0, 10, 3, 1e-5) > epsilon(2.0, 10, 3, 1e-5) > epsilon(2.0, 5, 3, 1e-5) > 0
    # Rényi: ε(α) = α/(2z²); the classical conversion min_α α/2z² + log(1/δ)/(α−1) is an upper bound
    orders = np.linspace(1.01, 100, 10_000)
    z, delta = 4.0, 1e-5
    bound = float(np.min(orders / (2 * z * z) + np.log(1 / delta) / (orders - 1)))
    assert 0.5 * bound < epsilon(z, 1, 3, delta) <= bound


@pytest.mark.parametrize(("listening", "code"), [(True, 0), (False, 1)])
def test_the_coordinators_process_ends_when_no_one_listens_at_the_superlinks_port(listening, code):
    with socket.socket() as superlink:
        superlink.bind(("127.0.0.1", 0))
        if listening:
            superlink.listen(1000)
        impatient = "import time, fedcso.federation.deploy.watchdog as w; w.LOOK_SECONDS, w.GONE_SECONDS = 0.02, 0.1\n"
        impatient += f"with w.watched({superlink.getsockname()[1]}): time.sleep(1)"
        assert subprocess.run([sys.executable, "-c", impatient], check=False).returncode == code


def test_the_coordinator_delivers_the_network_though_it_has_no_data():
    task = PROBLEMS["auprc"](data="digits", clients=3)
    judge = remote_judge(task.judge, task.clients[0])
    assert judge.network is not None
    assert as_onnx(judge.network(task.problem.init(stream(0, 0, 0)), None))
