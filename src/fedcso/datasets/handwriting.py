"""Distort printed characters so that they look drawn by hand.

A printed character is represented by a distance field: for each point the distance to the edge of the ink, positive
inside. A drawing reads the field at displaced points (rotated, sheared, scaled, shifted and bent smoothly) and inks the
points whose distance exceeds a threshold, which determines the weight of the stroke. All drawings of a batch are made
at once.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from fedcso.datasets.characters import SIDE

ROTATION = math.radians(15)
SHEAR = 0.25
SCALE = 0.2
SHIFT = 0.12
BEND = 0.075
"""Largest angle, shear, logarithm of a scale, and shift; deviation of the bends. Half a side has length 1."""

KNOTS = 5
"""Bends are drawn at the points of a grid with this many points on a side, and interpolated smoothly."""

STROKE = (-0.5, 1.0)
"""The range of growth of the ink, in points of the field."""


def distance_field(ink: np.ndarray) -> np.ndarray:
    """Return the signed distance of each point from the edge of the ink; `ink` is boolean, for each point."""
    from scipy.ndimage import distance_transform_edt  # imported here because it is slow to load

    inside, outside = distance_transform_edt(ink), distance_transform_edt(~ink)
    field: np.ndarray = (inside - outside).astype(np.float32)
    return field


def draw(fields: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Return one drawing of each field, each distorted independently: uint8 (n, 28, 28), ink 255."""
    points = _displace_grid(len(fields), 2 * SIDE, rng)
    read = F.grid_sample(fields[:, None], points, padding_mode="border", align_corners=False)
    growth = torch.empty(len(fields), 1, 1, 1).uniform_(*STROKE, generator=rng)
    ink = F.avg_pool2d((read + growth + 0.5).clamp(0, 1), 2)  # an edge is one point wide
    return (255 * ink[:, 0]).round().to(torch.uint8)


def _displace_grid(number: int, side: int, rng: torch.Generator) -> torch.Tensor:
    """Return where each point of each drawing is read from, in [-1, 1]²."""
    angle, shear, wide, high, right, down = (torch.rand(6, number, generator=rng) * 2 - 1).unbind()
    angle, shear = ROTATION * angle, SHEAR * shear
    wide, high = torch.exp(SCALE * wide), torch.exp(SCALE * high)
    cos, sin = torch.cos(angle), torch.sin(angle)
    top = torch.stack([wide * cos, wide * (shear * cos - sin), SHIFT * right], -1)
    bottom = torch.stack([high * sin, high * (shear * sin + cos), SHIFT * down], -1)
    straight = F.affine_grid(torch.stack([top, bottom], 1), [number, 1, side, side], align_corners=False)
    knots = BEND * torch.randn(number, 2, KNOTS, KNOTS, generator=rng)
    bends = F.interpolate(knots, (side, side), mode="bicubic", align_corners=True)
    return straight + bends.movedim(1, -1)
