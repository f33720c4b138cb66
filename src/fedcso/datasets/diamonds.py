"""Prices and grades of 53,940 diamonds (from the R package ggplot2); positive are those of very high clarity."""

import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.fetch.published import Published
from fedcso.datasets.r_tables import RTable

TABLE = RTable(
    "ggplot2",
    "diamonds",
    Published(3_192_560, "fc2f171cc18eae2138d01dcca7179db3bb30ff047dceae4467a056d52133810a"),
)

CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
COLOURS = "JIHGFED"
"""Grades from the worst to the best."""

CLEAR = ("VVS2", "VVS1", "IF")
"""Very, very slight inclusions or none: every fifth stone."""


def diamonds() -> Examples:
    """Return weight, cut, colour, depth, table, price and measures of each stone, labelled 1 if it is very clear."""
    table = TABLE.read()
    grades = {"cut": table["cut"].map(CUTS.index), "color": table["color"].map(COLOURS.index)}
    numbers = table.drop(columns="clarity").assign(**grades)
    labels = table["clarity"].isin(CLEAR)
    return Examples(torch.tensor(numbers.to_numpy("float32")), torch.tensor(labels.to_numpy("int64")))
