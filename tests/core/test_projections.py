"""Projections are idempotent, non-expansive, and end in their sets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import InvalidValue
from fedcso.core.projections import ball, box, nonnegative, simplex
from tests.helpers import assert_close

SIZE = 1e3
"""The magnitude of the largest coordinates tried; rounding errors are relative to it."""
ROUNDING = 1e-12 * SIZE

PROJECTIONS = {
    "ball": lambda x: ball(x, radius=2.0),
    "box": lambda x: box(x, -0.5, 2.0),
    "nonnegative": nonnegative,
    "simplex": lambda x: simplex(x, total=3.0),
}
INSIDE = {
    "ball": lambda x: x.norm() <= 2.0 + ROUNDING,
    "box": lambda x: x.min() >= -0.5 and x.max() <= 2.0,
    "nonnegative": lambda x: x.min() >= 0,
    "simplex": lambda x: x.min() >= 0 and abs(x.sum() - 3.0) <= ROUNDING,
}
every_projection = pytest.mark.parametrize("name", PROJECTIONS)
points = st.lists(st.floats(-SIZE, SIZE), min_size=4, max_size=4).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)


@every_projection
@given(x=points)
def test_a_projection_ends_in_its_set(name, x):
    assert INSIDE[name](PROJECTIONS[name](x))


@every_projection
@given(x=points)
def test_a_projection_is_idempotent(name, x):
    once = PROJECTIONS[name](x)
    assert_close(PROJECTIONS[name](once), once, tolerance=ROUNDING)


@every_projection
@given(x=points, y=points)
def test_a_projection_is_non_expansive(name, x, y):
    project = PROJECTIONS[name]
    assert (project(x) - project(y)).norm() <= (x - y).norm() + ROUNDING


@every_projection
@given(x=points, y=points)
def test_a_projection_is_the_nearest_point(name, x, y):
    """⟨x − Πx, z − Πx⟩ ≤ 0 for every z of the set."""
    nearest, other = PROJECTIONS[name](x), PROJECTIONS[name](y)
    assert (x - nearest) @ (other - nearest) <= ROUNDING * SIZE


@every_projection
def test_a_projection_acts_on_the_last_axis_alone(name):
    many = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = PROJECTIONS[name](many)
    for g in range(2):
        for n in range(3):
            assert_close(together[g, n], PROJECTIONS[name](many[g, n]))


@pytest.mark.parametrize("name", ["ball", "box", "nonnegative"])
def test_points_inside_stay_where_they_are(name):
    inside = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    assert torch.equal(PROJECTIONS[name](inside), inside)


def test_the_centre_of_a_ball_stays_and_has_a_gradient():
    centre = torch.zeros(3, requires_grad=True)
    ball(centre).sum().backward()
    assert torch.equal(centre.grad, torch.ones(3))


def test_the_simplex_is_found_from_far_away():
    far = torch.tensor([1e8, 0.0, -1e8])
    assert simplex(far).tolist() == [1.0, 0.0, 0.0]


def test_sets_that_make_no_sense_are_refused():
    x = torch.zeros(2)
    with pytest.raises(InvalidValue, match=r"radius = 0 .*a finite number above 0"):
        ball(x, radius=0)
    with pytest.raises(InvalidValue, match=r"total = -1\.0 .*a finite number above 0"):
        simplex(x, total=-1.0)
    with pytest.raises(InvalidValue, match=r"low = 2\.0 .*at most high = 1\.0"):
        box(x, 2.0, 1.0)
