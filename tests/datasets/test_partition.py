"""Splits are disjoint and complete, and every client gets an example, however different the clients are."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import InvalidValue
from fedcso.datasets.partition import partition, pathological, train_validation_test

labels = st.lists(st.integers(0, 4), min_size=1, max_size=40).map(torch.tensor)
alphas = st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 1.0, 100.0, 1e6]) | st.floats(1e-6, 1e6)


@given(st.data(), labels, alphas, st.integers(0, 3))
def test_it_ends_is_disjoint_and_complete_and_leaves_no_client_without(data, labels, alpha, seed):
    clients = data.draw(st.integers(1, len(labels)))
    shares = partition(labels, clients, alpha, seed)
    assert len(shares) == clients
    assert all(len(share) >= 1 for share in shares)
    assert sorted(torch.cat(shares).tolist()) == list(range(len(labels)))


@pytest.mark.parametrize("alpha", [1e-300, 1e-6, 1e6, 1e300])
def test_extreme_concentrations_end(alpha):
    many = torch.arange(1000) % 10
    shares = partition(many, 100, alpha, seed=0)
    assert sorted(torch.cat(shares).tolist()) == list(range(1000))
    assert min(map(len, shares)) >= 1


@given(labels, alphas, st.integers(0, 3))
def test_as_many_clients_as_examples_get_one_each(labels, alpha, seed):
    assert [len(share) for share in partition(labels, len(labels), alpha, seed)] == [1] * len(labels)


@given(labels, alphas, st.integers(1, 5))
def test_more_clients_than_examples_are_refused(labels, alpha, more):
    clients = len(labels) + more
    with pytest.raises(
        InvalidValue, match=f"clients = {clients} .* at most {len(labels)}, the number of training examples"
    ):
        partition(labels, clients, alpha, seed=0)


@pytest.mark.parametrize("alpha", [-1.0, -1e-9, float("nan")])
def test_a_concentration_below_zero_is_refused(alpha):
    with pytest.raises(InvalidValue, match="alpha = "):
        partition(torch.zeros(5), 2, alpha, seed=0)


@pytest.mark.parametrize("clients", [0, -1])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_no_clients_are_refused(clients, alpha):
    with pytest.raises(InvalidValue, match=f"clients = {clients}"):
        partition(torch.zeros(5), clients, alpha, seed=0)


BALANCED = torch.arange(2000) % 4


def mean_largest_share(alpha):
    """Return the share of a client's data that is of its most frequent class, averaged over clients."""
    shares = partition(BALANCED, 20, alpha, seed=0)
    return sum(float(BALANCED[share].bincount().max()) / len(share) for share in shares) / len(shares)


def test_small_concentrations_make_clients_unlike_and_large_ones_alike():
    assert mean_largest_share(0.01) > 0.9
    assert mean_largest_share(1e6) < 0.3
    assert mean_largest_share(0.01) > mean_largest_share(1.0) > mean_largest_share(100.0)


def test_without_concentration_shares_are_equal_up_to_one():
    sizes = {len(share) for share in partition(BALANCED[:1999], 20, 0.0, seed=0)}
    assert sizes == {99, 100}


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_the_seed_decides(alpha):
    def made(seed):
        return [share.tolist() for share in partition(BALANCED, 5, alpha, seed)]

    assert made(1) == made(1)
    assert made(1) != made(2)


@given(st.integers(0, 500), st.integers(0, 3))
def test_train_validation_and_test_are_disjoint_and_complete(number, seed):
    parts = train_validation_test(number, seed)
    assert sorted(torch.cat(parts).tolist()) == list(range(number))
    assert [len(part) for part in parts] == [
        int(0.7 * number),
        int(0.8 * number) - int(0.7 * number),
        number - int(0.8 * number),
    ]


def test_another_seed_holds_other_examples_out():
    assert train_validation_test(100, 0)[2].tolist() == train_validation_test(100, 0)[2].tolist()
    assert train_validation_test(100, 0)[2].tolist() != train_validation_test(100, 1)[2].tolist()


# --------------------------------------------------------------------------------- few labels a client


@given(st.data(), labels, st.integers(0, 3))
def test_each_client_has_the_given_number_of_labels_and_no_example_is_lost(data, labels, seed):
    known = len(torch.unique(labels))
    clients, classes = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    possible = sum(min(clients, int((labels == label).sum())) for label in torch.unique(labels))
    if classes > known or not known <= clients * classes <= possible:
        with pytest.raises(InvalidValue, match="classes = " if classes > known else "clients = "):
            pathological(labels, clients, classes, seed)
        return
    shares = pathological(labels, clients, classes, seed)
    assert len(shares) == clients
    assert sorted(torch.cat(shares).tolist()) == list(range(len(labels)))
    assert all(len(torch.unique(labels[share])) == classes for share in shares)


@pytest.mark.parametrize(("clients", "classes"), [(10, 2), (100, 2), (5, 3), (7, 3), (20, 1), (4, 4), (1, 4), (333, 2)])
def test_with_balanced_labels_sizes_are_near_equal(clients, classes):
    sizes = [len(share) for share in pathological(BALANCED, clients, classes, seed=0)]
    if clients * classes % 4 == 0:
        assert max(sizes) - min(sizes) <= classes  # portions of a label differ by at most one
    assert max(sizes) - min(sizes) <= max(classes, 0.35 * min(sizes))


def test_unequal_labels_are_cut_so_that_sizes_are_near_equal():
    uneven = torch.repeat_interleave(torch.arange(4), torch.tensor([4000, 1000, 600, 400]))
    for clients, classes in [(12, 1), (30, 1), (40, 2), (20, 2)]:
        shares = pathological(uneven, clients, classes, seed=0)
        sizes = [len(share) for share in shares]
        assert max(sizes) <= 1.5 * min(sizes), (clients, classes)
        assert {len(uneven[share].unique()) for share in shares} == {classes}


def test_a_client_with_few_examples_does_not_get_more_labels():
    labels = torch.tensor([0] * 100 + [1, 2, 3])
    assert [len(labels[share].unique()) for share in pathological(labels, 2, 2, seed=0)] == [2, 2]


def test_large_portions_are_combined_with_small_ones():
    digits = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # of each in MNIST
    labels = torch.repeat_interleave(torch.arange(10), torch.tensor(digits) // 10)
    sizes = [len(share) for share in pathological(labels, 10, 2, seed=0)]
    assert max(sizes) < 1.05 * min(sizes)


def test_the_seed_decides_who_has_which_labels():
    def made(seed):
        return [share.tolist() for share in pathological(BALANCED, 6, 2, seed)]

    assert made(1) == made(1)
    assert made(1) != made(2)
    shares = [share for seed in range(20) for share in pathological(BALANCED, 6, 2, seed)]
    pairs = {tuple(BALANCED[share].unique().tolist()) for share in shares}
    assert len(pairs) == 6  # all pairs of four labels occur


@pytest.mark.parametrize(
    ("clients", "classes", "message"),
    [
        (1, 3, r"clients = 1 .* at least 2 .* the examples of some of the 4 labels would not be used"),
        (3, 1, r"clients = 3 .* at least 4"),
        (2, 5, "classes = 5 .* at most 4, the number of labels"),
        (30, 2, r"clients = 30 .* smaller: it needs 30 × 2 portions, and there are examples for 40"),
        (0, 2, "clients = 0"),
        (2, 0, "classes = 0"),
        (2, 1.5, "classes = 1.5"),
    ],
)
def test_what_can_not_be_done_is_refused(clients, classes, message):
    with pytest.raises(InvalidValue, match=message):
        pathological(torch.arange(40) % 4, clients, classes, seed=0)


def test_no_examples_have_no_labels():
    with pytest.raises(InvalidValue, match="at most 0, the number of labels"):
        pathological(torch.tensor([], dtype=torch.int64), 1, 1, seed=0)
