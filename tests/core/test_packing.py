"""Trees packed into bytes: any shape and dtype, readable by safetensors."""

import pytest
import torch
from safetensors.torch import load

from fedcso.core.errors import FedcsoError
from fedcso.core.packing import DTYPES, pack, unpack
from tests.helpers import assert_close


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_kind_of_number_comes_back(dtype):
    tree = {"a": [torch.tensor([0, 1, 1]).to(dtype), (torch.ones(2, 3).to(dtype).T,)], "b": {}}
    found, _ = unpack(pack(tree))
    assert_close(found, tree, tolerance=0.0)
    assert found["a"][0].dtype == dtype


def test_empty_and_single_numbers_come_back():
    tree = (torch.empty(0, 3), torch.tensor(2.5, dtype=torch.float64))
    found, notes = unpack(pack(tree, client=3))
    assert notes == {"client": 3}
    assert found[0].shape == (0, 3)
    assert float(found[1]) == 2.5


def test_it_is_a_safetensors_file():
    (tensor,) = load(pack({"x": torch.arange(5.0)})).values()
    assert tensor.tolist() == [0, 1, 2, 3, 4]


def test_a_tensor_that_occurs_twice_is_kept_once():
    x = torch.zeros(1000)
    assert len(pack([x, x])) < 1.5 * len(pack([x]))


def test_what_is_no_tree_is_refused():
    with pytest.raises(FedcsoError, match="a model of type set can't be saved"):
        pack({"x": {1, 2}})
