"""All data sets of characters: rotations, assigning classes to clients, and the check."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets import load_characters
from fedcso.datasets.characters import check, split_classes, with_rotations


def numbered(classes, drawings=2):
    """Return classes that can be told apart: each pixel is the index of its class."""
    return torch.arange(classes, dtype=torch.uint8).view(-1, 1, 1, 1).expand(classes, drawings, 28, 28)


def test_rotations_are_new_classes():
    images = torch.zeros(2, 3, 28, 28, dtype=torch.uint8)
    images[:, :, 0, 5] = 255  # at the top, 5 from the left
    rotated = with_rotations(images)
    assert rotated.shape == (8, 3, 28, 28)
    assert rotated.dtype == torch.uint8
    for classes, row, column in [((0, 1), 0, 5), ((2, 3), 22, 0), ((4, 5), 27, 22), ((6, 7), 5, 27)]:
        for number in classes:
            assert (rotated[number].nonzero()[:, 1:] == torch.tensor([row, column])).all()


@given(classes=st.integers(1, 200), clients=st.integers(1, 200), seed=st.integers(0, 2**32))
def test_each_class_is_at_one_client_and_shares_are_even(classes, clients, seed):
    if clients > classes:
        with pytest.raises(InvalidValue, match=f"at most {classes}, the number of classes"):
            split_classes(numbered(classes), clients, seed)
        return
    shares = split_classes(numbered(classes), clients, seed)
    assert len(shares) == clients
    held = torch.cat(shares)[:, 0, 0, 0].tolist()
    assert sorted(held) == list(range(classes))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_the_seed_decides_who_gets_what():
    def first(seed):
        return split_classes(numbered(100), 10, seed)[0][:, 0, 0, 0].tolist()

    assert first(3) == first(3)
    assert first(3) != first(4)


@pytest.mark.parametrize("clients", [0, -1, 1.5])
def test_a_number_of_clients_is_a_positive_whole_number(clients):
    with pytest.raises(InvalidValue, match="clients"):
        split_classes(numbered(5), clients, 0)


def test_enough_drawings_pass():
    check(numbered(4, drawings=20), 20)


def test_the_class_with_too_few_drawings_is_named():
    with pytest.raises(FedcsoError, match="class 1 has 3 drawings, but each class needs 5"):
        check([numbered(1, drawings)[0] for drawings in (5, 3, 6)], 5)


@pytest.mark.parametrize("shape", [(20, 28, 27), (20, 784), (20, 1, 28, 28)])
def test_the_class_with_other_images_is_named(shape):
    with pytest.raises(FedcsoError, match="class 1 has the shape 20×"):
        check([torch.zeros(20, 28, 28), torch.zeros(shape)], 20)


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"did you mean omniglot\?"):
        load_characters("omniglott")
