"""Simulated patients at several hospitals, a few of whom have a rare disease that no single blood value shows.

It shows in the ratio of two blood values, which is unusually high or unusually low, while each of the two varies much
more with the work of the kidneys, as with free light chains in the blood. Hospitals differ in size, in the age of their
patients and in the share of positives.
"""

from typing import NamedTuple

import numpy as np
import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import Sites

FEATURES = ("first value", "second value", "creatinine", "age", "sex", "haemoglobin", "protein", "calcium")
"""The columns, all but the sex on logarithmic or standard scales."""

SHIFT = 2.0
"""By how much the disease moves the two values apart; healthy people's difference has the standard deviation 0.5."""


class Hospital(NamedTuple):
    """A hospital: its patients, and the share of them who have the disease."""

    name: str
    patients: int
    share: float


HOSPITALS = (
    Hospital("Ash", 2400, 0.010),
    Hospital("Beech", 1600, 0.015),
    Hospital("Hazel", 900, 0.012),
    Hospital("Linden", 500, 0.020),
)
PARTS = {"train": 0.7, "validation": 0.3, "test": 2.0}
"""The number of rows of each part, as shares of a hospital's patients; test rows cost little, and make results sure."""


def draw_patients(seed: int) -> Sites:
    """Draw the patients of all hospitals; inputs are standardised by the training rows of all."""
    parts: dict[str, list[Examples]] = {}
    for part, (name, share) in enumerate(PARTS.items()):
        for place, hospital in enumerate(HOSPITALS):
            rng = np.random.default_rng((seed, part, place))
            parts.setdefault(name, []).append(_draw(rng, hospital, place, round(share * hospital.patients)))
    pooled = torch.cat([one.inputs for one in parts["train"]])
    mean, scale = pooled.mean(0), pooled.std(0)

    def scaled(part: str) -> list[Examples]:
        return [Examples((one.inputs - mean) / scale, one.labels) for one in parts[part]]

    return Sites([one.name for one in HOSPITALS], scaled("train"), scaled("validation"), scaled("test"), notes=[])


def _draw(rng: np.random.Generator, hospital: Hospital, place: int, rows: int) -> Examples:
    sick = np.arange(rows) < round(rows * hospital.share)  # every hospital has some in every part
    kidneys, age = rng.normal(0, 1, rows), rng.normal(0.3 * place + 0.5 * sick, 1, rows)
    direction = SHIFT * sick * rng.choice([-1, 1], rows)
    first, second = (0.9 * kidneys + 0.35 * rng.normal(0, 1, rows) + sign * direction / 2 for sign in (1, -1))
    others = rng.normal(0, 1, (rows, 3)) + 0.2 * kidneys[:, None]
    creatinine, sex = kidneys + 0.5 * rng.normal(0, 1, rows), rng.integers(2, size=rows)
    columns = np.column_stack([first, second, creatinine, age, sex, others])
    return Examples(torch.tensor(columns, dtype=torch.float32), torch.tensor(sick, dtype=torch.int64))
