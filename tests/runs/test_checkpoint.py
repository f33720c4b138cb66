"""A snapshot comes back from its file bit by bit, and a damaged file is never taken for a whole one."""

import hashlib
import json
import math
import os
import pickle
from collections import Counter
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, NonFinite
from fedcso.core.trace import Trace
from fedcso.core.tree import leaves
from fedcso.engines.snapshot import Snapshot, from_bytes, to_bytes
from fedcso.runs import checkpoint

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def snapshot_of(state, done=3, **fields):
    x = torch.tensor([1.0, 2.0])
    trace = Trace(rows=[{"round": 0, "loss": 0.1}], last=x, best=x, output=x, shared={"x": x}, **fields)
    return Snapshot(done, state, [trace])


def there_and_back(snapshot):
    return from_bytes(to_bytes(snapshot))


def assert_identical(actual, expected):
    """The same structure, types, shapes and bits."""
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        raw, wanted = (t.reshape(-1).contiguous().view(torch.uint8) for t in (actual, expected))
        assert torch.equal(raw, wanted)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key in expected:
            assert_identical(actual[key], expected[key])
    else:
        assert len(actual) == len(expected)
        for part, other in zip(actual, expected, strict=True):
            assert_identical(part, other)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
    if dtype is torch.bool:
        raw = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    else:  # any bits: also infinities, NaNs with a payload, and the negative zero
        raw = list(draw(st.binary(min_size=size, max_size=size)))
    return torch.tensor(raw, dtype=torch.uint8).view(dtype).reshape(shape)


trees = st.recursive(
    tensors(),
    lambda children: (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=6,
)


@given(state=st.dictionaries(st.text(max_size=5), trees, max_size=3))
def test_any_tree_comes_back_bit_by_bit(state):
    assert_identical(there_and_back(snapshot_of(state)).state, state)


def test_a_trace_comes_back_whole():
    trace = Trace(
        rows=[
            {"round": 0, "step": 0, "train_loss": math.nan, "loss": 0.1 + 0.2, "seconds": 1e-300},
            {"round": 2, "step": 10, "train_loss": math.inf, "loss": -0.0, "seconds": 12345678.9},
        ],
        last={"w": torch.tensor([1.0]), "layers": (torch.tensor(2), [torch.tensor([[3.0]])])},
        best=torch.tensor([math.nan, math.inf]),
        output=[torch.tensor(1.5)],
        shared={"x": torch.zeros(2), "u": (), "y": {}},
        costs=Costs(1, 2, 3, 4, 5, 6),
        participation=Counter({0: 3, 2: 2}),
        dropped=[NonFinite("gradient w", client=1, round=2, step=7, seed=3)],
        failure=FedcsoError("round 3: all participating clients were dropped"),
    )
    back = there_and_back(Snapshot(2, {}, [trace, trace])).traces
    for found in back:
        assert repr(found.rows) == repr(trace.rows)  # as text, because NaN is not equal to itself
        for name in ("last", "best", "output", "shared"):
            assert_identical(getattr(found, name), getattr(trace, name))
        assert found.costs == trace.costs
        assert found.participation == trace.participation
        assert [vars(reason) for reason in found.dropped] == [vars(reason) for reason in trace.dropped]
        assert str(found.failure) == str(trace.failure)
    assert len(back) == 2


def test_a_run_without_a_failure_comes_back_without_one():
    assert there_and_back(snapshot_of({})).traces[0].failure is None


def test_the_number_of_rounds_comes_back():
    assert there_and_back(snapshot_of({}, done=17)).done == 17


def test_a_tensor_held_in_several_places_is_stored_once():
    large = torch.zeros(10_000)
    once = len(to_bytes(snapshot_of({"a": large})))
    twice = len(to_bytes(snapshot_of({"a": large, "b": {"c": (large, large)}})))
    assert twice - once < large.numel()


def test_views_of_one_tensor_stay_apart():
    base = torch.arange(6.0).reshape(2, 3)
    state = {"row": base[1], "column": base[:, 1], "turned": base.T}
    assert_identical(there_and_back(snapshot_of(state)).state, {k: v.clone() for k, v in state.items()})


def test_what_comes_back_has_no_history():
    state = {"x": torch.ones(2, requires_grad=True) * 2}
    (leaf,) = leaves(there_and_back(snapshot_of(state)).state)
    assert not leaf.requires_grad


def test_a_key_that_is_no_text_comes_back_as_it_was_or_is_refused():
    state = {"local": {0: torch.ones(1)}}
    try:
        content = to_bytes(snapshot_of(state))
    except FedcsoError:
        return
    assert_identical(from_bytes(content).state, state)


class Weights(NamedTuple):
    w: torch.Tensor


def test_a_named_tuple_is_refused_with_what_to_do():
    with pytest.raises(FedcsoError, match=r"a model of type Weights can't be saved: use tensors in dicts"):
        to_bytes(snapshot_of({"x": Weights(torch.ones(1))}))


@pytest.mark.parametrize("thing", [1.5, "text", None, {1, 2}])
def test_what_is_no_tensor_is_refused(thing):
    with pytest.raises(FedcsoError, match=type(thing).__name__):
        to_bytes(snapshot_of({"x": thing}))


# ------------------------------------------------------------------------------------- in folders


def save(folder, *rounds):
    for done in rounds:
        checkpoint.save(folder, snapshot_of({"x": torch.full((50,), float(done))}, done))


def test_there_is_none_in_a_folder_that_is_not_there(tmp_path):
    assert checkpoint.newest(tmp_path / "nowhere") is None
    assert checkpoint.newest(tmp_path) is None


def test_the_newest_is_taken(tmp_path):
    save(tmp_path, 1, 2, 11)
    assert checkpoint.newest(tmp_path).done == 11


def test_only_the_last_few_stay(tmp_path):
    save(tmp_path, *range(1, checkpoint.KEEP + 4))
    stay = [int(path.name.partition("-")[0]) for path in checkpoint.files(tmp_path)]
    assert stay == list(range(4, checkpoint.KEEP + 4))
    assert len(os.listdir(tmp_path)) == checkpoint.KEEP


def flip(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGES = {
    "flipped in the head": lambda content: flip(content, 20),
    "flipped in a tensor": lambda content: flip(content, len(content) - 3),
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_reported_and_the_one_before_it_used(tmp_path, caplog, damage):
    save(tmp_path, 1, 2)
    broken = checkpoint.files(tmp_path)[-1]
    broken.write_bytes(DAMAGES[damage](broken.read_bytes()))
    found = checkpoint.newest(tmp_path)
    assert found.done == 1
    assert torch.equal(found.state["x"], torch.full((50,), 1.0))
    assert str(broken) in caplog.text
    assert "damaged" in caplog.text


def test_without_damage_nothing_is_reported(tmp_path, caplog):
    save(tmp_path, 1, 2)
    assert checkpoint.newest(tmp_path).done == 2
    assert caplog.text == ""


def test_if_all_are_damaged_there_is_none(tmp_path):
    save(tmp_path, 1, 2)
    for path in checkpoint.files(tmp_path):
        path.write_bytes(b"nothing")
    assert checkpoint.newest(tmp_path) is None


def test_what_a_killed_writer_left_is_not_looked_at(tmp_path, caplog):
    save(tmp_path, 1)
    (tmp_path / f".{checkpoint.files(tmp_path)[0].name}.x7f2k").write_bytes(b"half of it")
    assert checkpoint.newest(tmp_path).done == 1
    assert caplog.text == ""


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


@pytest.fixture
def trap(tmp_path):
    marker = tmp_path / "executed"
    content = pickle.dumps(Trap(marker))
    pickle.loads(content).close()
    assert marker.exists()  # the trap works
    marker.unlink()
    return content, marker


def test_a_pickle_in_place_of_a_checkpoint_is_passed_over(tmp_path, trap, caplog):
    content, marker = trap
    save(tmp_path, 1)
    (tmp_path / "0000009-0123456789abcdef.safetensors").write_bytes(content)
    assert checkpoint.newest(tmp_path).done == 1
    assert not marker.exists()
    assert "damaged" in caplog.text


def test_a_pickle_named_by_its_digest_is_not_executed(tmp_path, trap):
    content, marker = trap
    digest = hashlib.sha256(content).hexdigest()[:16]
    (tmp_path / f"0000009-{digest}.safetensors").write_bytes(content)
    with pytest.raises(FedcsoError, match=r"is undamaged but can't be read .* remove it to go on"):
        checkpoint.newest(tmp_path)
    assert not marker.exists()


def test_a_checkpoint_can_be_read_without_this_package(tmp_path):
    save(tmp_path, 5)
    content = checkpoint.files(tmp_path)[0].read_bytes()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["fedcso"])
    assert head["done"] == 5
