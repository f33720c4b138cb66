"""Instrumental variables: the effect of a treatment x on an outcome y that share unobserved causes.

    min_w ½ E_z ( E[ y − h_w(x) | z ] )²,      h_w(x) = wᵀφ(x)

    ξ = z, an instrument: it changes x, and y only through x,   η | ξ = (x, y)
    g = y − wᵀφ(x),   f(g) = ½ g²

The features may be any functions of x. The minimiser of E F̂ with m inner samples is known
(`fedcso.problems.conditional_squares`):

    w_m = (A + V/m)⁻¹ (c + C/m),      A = E[φ̄ φ̄ᵀ],   c = E[φ̄ ȳ],   V = E Cov(φ | z),   C = E Cov(φ, y | z)

w_1 is ordinary least squares, which confounds the effect with the common causes, and w_∞ is two-stage least squares,
the effect itself: the bias of a small m is the bias of the wrong method. In the linear design (`Scalar`) with slope θ
and variance σ² of z, F = ½ (θ − w)² π² σ² and w_m = θ + (2ρ/m) / (π² σ² + (ρ² + 0.01)/m).

Several (x, y) are needed for each z: from a simulator, or from a table in which each value of the instrument is in
several rows.
"""

from typing import Any

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, require_count, require_nonnegative
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.problems.conditional_squares import REAL, ConditionalSquares
from fedcso.problems.demand_design import Demand
from fedcso.problems.instruments import RESPONSES, Scalar

ERROR = Metric("response_error", "mean (h − h₀)² on a grid", higher_is_better=False, log=True)
DISTANCE = Metric("distance", "distance to two-stage least squares", higher_is_better=False, log=True)
EFFECT = Metric("effect", "effect of one unit of the treatment")


class Instrumental(ConditionalSquares):
    """The squared conditional moment of wᵀφ(x); a client's data are a `Source` of instruments, treatments, outcomes."""


@with_methods(learning_rate="cosine(0.3)", momentum=0.3)
@with_plan(rounds=50, local_steps=10, outer_batch=8, inner_batch=16)
def instrumental(
    design: str = "sin",
    clients: int = 16,
    frequencies: int | None = None,
    strength: float = 1.0,
    confounding: float | None = None,
    unlike: float = 0.0,
    data: str = "",
    instrument: str = "",
    treatment: str = "",
    outcome: str = "",
    site: str = "",
    data_seed: int = 0,
) -> Task:
    """Estimate the effect of a treatment by an instrument, where treatment and outcome share unobserved causes.

    Args:
        design: h₀ of simulated data: linear, abs, sin, step, polynomial, or demand (prices, seasons and customers)
        clients: simulated data, the number of clients
        frequencies: of sines and cosines among the features, 0 for h = w x; by default 0 for linear, else 2
        strength: π, the effect of the instrument on the treatment; small is a weak instrument
        confounding: ρ, how much treatment and outcome have in common; by default 1, and 0.5 for demand
        unlike: how much the clients' instruments and confounding differ; 0 for not at all
        data: your own table instead (.csv, .xlsx, .parquet or .npz), or a folder with one for each site
        instrument: of your own table, the column with a discrete instrument
        treatment: of your own table, the column with the treatment
        outcome: of your own table, the column with the outcome
        site: of your own table, the column that says where a row belongs; without it every file is a site
        data_seed: seed of the differences between clients
    """
    if data:
        return _table_task(data, instrument, treatment, outcome, site)
    for name, column in (("instrument", instrument), ("treatment", treatment), ("outcome", outcome), ("site", site)):
        if column:
            raise InvalidValue(name, column, "left out without data, your own table")
    require_count("clients", clients)
    require_nonnegative("unlike", unlike)
    if design not in RESPONSES and design != "demand":
        raise InvalidValue("design", design, "one of " + ", ".join(map(repr, (*RESPONSES, "demand"))))
    sources = _simulated(design, clients, frequencies, strength, confounding, unlike, data_seed)
    features, truth = sources[0].grid()
    problem = Instrumental(features.shape[-1])

    def measure(w: torch.Tensor, grid: tuple[torch.Tensor, torch.Tensor]) -> dict[str, Any]:
        return {ERROR.name: (w @ grid[0].T - grid[1]).square().mean(-1)}

    best, naive = (problem.minimiser(sources, m) for m in (float("inf"), 1))
    errors = [float(measure(w, (features, truth))[ERROR.name]) for w in (best, naive)]
    note = f"mean (h − h₀)²: {errors[0]:.4g} at the minimiser of F, {errors[1]:.4g} of least squares (m = 1)"
    judge = Judge(measure, [ERROR], broadcasts=True)
    return Task(problem, sources, test=(features, truth), judge=judge, notes=[note])


def _simulated(
    design: str,
    clients: int,
    frequencies: int | None,
    strength: float,
    confounding: float | None,
    unlike: float,
    seed: int,
) -> list[Scalar] | list[Demand]:
    """Return the clients' sources; those of clients that are alike are the same object."""
    shifts = unlike * torch.randn(clients, 2, generator=stream(seed, DATA, 0), dtype=REAL)
    different = shifts.tolist() if unlike else [[0.0, 0.0]]
    if design == "demand":
        rho = 0.5 if confounding is None else confounding
        demand = [Demand(float(np.clip(rho + shift, -1, 1)) if shift else rho, centre) for shift, centre in different]
        return demand * (clients // len(demand))
    rho = 1.0 if confounding is None else confounding
    number = (0 if design == "linear" else 2) if frequencies is None else frequencies
    scalar = [Scalar(design, number, strength, rho * (1 + shift), centre) for shift, centre in different]
    return scalar * (clients // len(scalar))


def _table_task(data: str, instrument: str, treatment: str, outcome: str, site: str) -> Task:
    from fedcso.problems.instrument_tables import load_instrument_table

    table = load_instrument_table(data, instrument, treatment, outcome, site)
    problem = Instrumental(2)
    best, naive = (problem.minimiser(table.sources, m) for m in (float("inf"), 1))

    def measure(w: torch.Tensor, best: torch.Tensor) -> dict[str, Any]:
        return {DISTANCE.name: (w - best).norm(dim=-1), EFFECT.name: table.unit * w[..., 1]}

    note = f"effect of {treatment}: {table.unit * float(best[1]):.4g} by two-stage least squares, "
    note += f"{table.unit * float(naive[1]):.4g} by least squares (m = 1)"
    judge = Judge(measure, [DISTANCE, EFFECT], broadcasts=True)
    notes = [*table.notes, note]
    return Task(problem, table.sources, test=best, judge=judge, names=table.sites, notes=notes, weights="size")
