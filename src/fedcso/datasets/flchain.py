"""Free light chains in the blood of 7,874 people over 50 (from the R package survival); positive are those with MGUS.

MGUS, a precursor of myeloma, is found in 1.5 % of them. Death and its cause, which came later, are left out.

Reference: Dispenzieri et al., Use of Nonclonal Serum Immunoglobulin Free Light Chains to Predict Overall Survival in
the General Population, Mayo Clinic Proceedings 2012.
"""

import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.fetch.published import Published
from fedcso.datasets.r_tables import RTable

TABLE = RTable(
    "survival",
    "flchain",
    Published(386_453, "6b9198b58354c2f2d45edaf4b38c237b9b9fcc22703a73baab75dd6f3d72606c"),
)

USUAL_CREATININE = 1.0
"""In mg/dl, for the sixth of people in whom it was not measured."""


def flchain() -> Examples:
    """Return age, year, both light chains, their group, sex, creatinine and whether it was measured, by person."""
    table = TABLE.read()
    numbers = table[["age", "sample.yr", "kappa", "lambda", "flc.grp"]].assign(
        female=table["sex"] == "F",
        creatinine=table["creatinine"].fillna(USUAL_CREATININE),
        measured=table["creatinine"].notna(),
    )
    return Examples(torch.tensor(numbers.to_numpy("float32")), torch.tensor(table["mgus"].to_numpy("int64")))
