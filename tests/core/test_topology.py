"""Networks without a server: what their matrices are, which are refused, and how many messages they take."""

import math

import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.topology import TOPOLOGIES, count_edges, mixing_matrix


def second_largest(matrix: torch.Tensor) -> float:
    return float(torch.linalg.eigvalsh(matrix).abs().sort().values[-2])


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("clients", [4, 6, 9, 20])
def test_every_topology_is_symmetric_doubly_stochastic_and_connected(name, clients):
    matrix = mixing_matrix(name, clients)
    assert torch.equal(matrix, matrix.T)
    torch.testing.assert_close(matrix.sum(0), torch.ones(clients, dtype=torch.float64))
    assert (matrix >= 0).all()
    assert second_largest(matrix) < 1


def test_a_ring_averages_left_own_and_right():
    matrix = mixing_matrix("ring", 5) * 3
    assert matrix[0].tolist() == [1, 1, 0, 0, 1]
    assert matrix[3].tolist() == [0, 0, 1, 1, 1]
    assert second_largest(mixing_matrix("ring", 20)) == pytest.approx((1 + 2 * math.cos(2 * math.pi / 20)) / 3)


def test_a_torus_averages_five_and_is_as_square_as_possible():
    matrix = mixing_matrix("torus", 12) * 5  # three rows of four
    assert matrix[0].nonzero().flatten().tolist() == [0, 1, 3, 4, 8]
    assert second_largest(mixing_matrix("torus", 16)) < second_largest(mixing_matrix("ring", 16))


@pytest.mark.parametrize(("name", "clients", "edges"), [("ring", 5, 10), ("torus", 12, 48), ("complete", 4, 12)])
def test_each_client_sends_to_each_neighbour(name, clients, edges):
    assert count_edges(mixing_matrix(name, clients)) == edges


@pytest.mark.parametrize("clients", [1, 2])
def test_small_rings_are_rings(clients):
    matrix = mixing_matrix("ring", clients)
    torch.testing.assert_close(matrix.sum(1), torch.ones(clients, dtype=torch.float64))


def test_a_server_has_no_matrix():
    assert mixing_matrix("server", 4) is None


def test_a_matrix_is_read_from_text():
    assert mixing_matrix("0.5 0.5 0; 0.5 0.25 0.25\n0 0.25 0.75", 3).tolist() == [
        [0.5, 0.5, 0],
        [0.5, 0.25, 0.25],
        [0, 0.25, 0.75],
    ]


@pytest.mark.parametrize(
    ("text", "clients", "says"),
    [
        ("rings", 3, "must be server, ring, torus, complete, or W: rows of numbers"),
        ("0.5 0.5; 1", 2, "must be server, ring, torus"),
        ("0.5 0.5; 0.5 0.5", 3, "must be 3 rows of 3 numbers"),
        ("0.5 0.5; 0.6 0.4", 2, "each row and each column sums to 1"),
        ("1.5 -0.5; -0.5 1.5", 2, "numbers of at least 0"),
        ("nan 1; 1 0", 2, "numbers of at least 0"),
        ("torus", 7, "must be a ring for 7 clients, which do not fill a grid"),
    ],
)
def test_what_is_no_network_is_refused(text, clients, says):
    with pytest.raises(InvalidValue, match=f"^topology = .*{says}"):
        mixing_matrix(text, clients)
