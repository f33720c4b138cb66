"""Table 1: samples and rounds that it takes to reach ε, measured, beside the exponents that are proven.

With the theory's own settings, and with tuned ones; the measured curves under the theorems' bounds; and the linear
speed-up with the number of clients. All runs are stacked: settings, seeds and clients in one pass.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

from fedcso.algorithm import Algorithm
from fedcso.algorithms import FCSG, FCSGM, AccFCSGM, BSpiderBoost
from fedcso.commands.common import carry_out as execute
from fedcso.experiments.complexity import INSTANCES, Instance, Reached, exponent, quadratic, reached, running_means
from fedcso.experiments.reproduction import About, Statement, conclude
from fedcso.experiments.table1_pictures import Curve, pictures
from fedcso.folder import RunFolder
from fedcso.plan import Plan
from fedcso.results import Estimate, as_csv
from fedcso.settings import Config, study_of
from fedcso.study import Results, Unit
from fedcso.task import Task
from fedcso.theory import SINGLE_MACHINE, THEOREMS, Setting, algorithm_of, bound, prescribe

METHODS = list(THEOREMS)
FEDERATED = [method for method in METHODS if method not in SINGLE_MACHINE]
TOGETHER = 64
"""Steps of BSGD played as one round of FCSG with a single client, which is the same and quicker."""


def settings(quick: bool) -> Config:
    """All that it depends on; accuracies are shares of ‖∇F(x_0)‖."""
    return {
        "clients": 4,
        "seeds": list(range(2 if quick else 4)),
        "theory": {
            "nested quadratic": [0.8, 0.57, 0.4] if quick else [0.8, 0.57, 0.4, 0.28, 0.2],
            "invariant logistic": [0.9, 0.75] if quick else [0.9, 0.75, 0.6, 0.5],
        },
        "tuned": [0.4, 0.2] if quick else [0.4, 0.28, 0.2, 0.14, 0.1, 0.07],
        "tuning_seeds": [1000, 1001],
        "tuned_rounds": 40 if quick else 250,
        "local_steps": 8,
        "inner": [1, 16] if quick else [1, 4, 16, 64, 256],
        "rates": [0.5, 0.125] if quick else [0.5, 0.25, 0.125, 0.06, 0.03, 0.015],
        "momenta": [0.3] if quick else [0.3, 0.1, 0.03],
        "periods": [8] if quick else [4, 8, 16],
        "speed_up": [1, 4, 16] if quick else [1, 2, 4, 8, 16, 32, 64],
        "speed_up_epsilon": 0.2 if quick else 0.12,
        "speed_up_steps": 400 if quick else 2500,
        "checkpoint_rounds": 0,
        "checkpoint_seconds": 30.0,
        "track": "none",
    }


class Cell(NamedTuple):
    """One measurement: where, by which method, to which accuracy."""

    where: str
    method: str
    share: float


def carry_out(folder: RunFolder) -> int:
    """Run, fit, draw, check; goes on where it was interrupted."""
    config = folder.config()
    theory, tuned, faster = _theory(config), _tuned(config), _speed_up(config)
    units = [*theory.values(), *(unit for some in tuned.values() for unit in some), *faster.values()]
    found = execute(folder, study_of(config, units, folder.path), "none")
    by_theory = {cell: _crossings(config, cell, found[unit.name][0]) for cell, unit in theory.items()}
    by_tuning = _best(config, tuned, found)
    speed = _fastest(config, faster, found)
    curves = [_curve(config, cell, found[theory[cell].name][0]) for cell in theory]
    rows = [*_rows("theory", by_theory), *_rows("tuned", by_tuning)]
    folder.write("complexity.csv", as_csv(rows))
    folder.write("speed-up.csv", as_csv([{"method": m, "clients": n, "steps": s} for (m, n), s in _means(speed).items()]))
    exponents = _exponents({"theory": by_theory, "tuned": by_tuning})
    slopes = {m: exponent(config["speed_up"], _by_seed([speed[m, n] for n in config["speed_up"]], "steps")) for m in FEDERATED}
    seconds = sum(max(t.rows[-1]["seconds"] for s in some for t in s) for some in found.values())
    drawn = pictures(rows, exponents, curves, _means(speed), slopes)
    conclude(folder, _about(config), drawn, _table(exponents), check(exponents, curves, slopes), seconds)
    return 0
