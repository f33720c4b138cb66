"""Table 1 for estimators with a smaller bias: samples and rounds to reach ε on a problem with a smooth f.

The corollaries' powers of ε, from constants that fit the largest ε: α falls like ε² (Acc-FCSG-M: ε) and β like ε², q
and B grow like 1/ε. m is the least number with which the estimator's bias at the minimum of F, which is known exactly,
is at most a share of ε. If the theory is right, this reaches every ε in T ~ ε⁻⁴ (ε⁻³) steps, and samples grow like
ε^−(4 + 1/r) (3 + 1/r), where r is the order of the bias.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM
from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.estimators import ESTIMATORS
from fedcso.experiments.complexity import Instance, Reached, exponent, measured_from, reached
from fedcso.experiments.levels import logistic_by_levels
from fedcso.experiments.reproduction import Statement
from fedcso.reports.tables import Estimate
from fedcso.runs.study import Results, Unit
from fedcso.theory.prescribe import THEOREMS

NAMES = ("plain", "extrapolated", "three_level")
METHODS: dict[str, Callable[[float, float], Algorithm]] = {
    "FCSG": lambda rate, momentum: FCSG(rate),
    "FCSG-M": FCSGM,
    "Acc-FCSG-M": AccFCSGM,
}

UNLIKE = 2.0
"""How much the clients' labels differ, so that no x classifies all points and F has a minimum."""


@dataclass(frozen=True)
class Scaling:
    """Settings; those of the methods hold for the first and largest ε of each method."""

    clients: int
    noise: float
    """σ₂."""
    outer_batch: int
    bias: float
    """The bias that m must reach, as a share of ε."""
    shares: Mapping[str, Sequence[float]]
    """By method, the accuracies ε as shares of ‖∇F(x_0)‖, the largest first."""
    rates: Mapping[str, float]
    momenta: Mapping[str, float]
    most_steps: int
    """T at the largest ε, after which a run gives up."""


class Cell(NamedTuple):
    """A measurement."""

    method: str
    estimator: str
    share: float


class Run(NamedTuple):
    """A cell's unit, and the problem that it runs on."""

    instance: Instance
    unit: Unit


def scaled(config: Scaling, seeds: Sequence[int]) -> dict[Cell, Run]:
    """Return the runs of every method with every estimator for every ε."""
    runs = {}
    for name in NAMES:
        problem = logistic_by_levels(name, config.noise)
        clients = problem.clients(config.clients, unlike_truth=UNLIKE)
        instance, x = measured_from(problem, clients, radius=3.0), problem.minimiser(clients)
        for method, shares in config.shares.items():
            for share in shares:
                epsilon = share * instance.start
                m = problem.least_inner_batch(x, clients, config.bias * epsilon)
                cell = Cell(method, name, share)
                algorithm, plan = _setting(config, cell, epsilon, m)
                label = f"estimators {method} {name} {share:g}"
                unit = Unit(label, Task(problem, clients), plan, [algorithm], seeds)
                runs[cell] = Run(instance, unit)
    return runs


def _setting(config: Scaling, cell: Cell, epsilon: float, m: int) -> tuple[Algorithm, Plan]:
    smaller = config.shares[cell.method][0] / cell.share
    power = THEOREMS[cell.method].steps_exponent
    q = round(smaller)
    b, first = config.outer_batch, config.outer_batch * (q if cell.method == "Acc-FCSG-M" else 1)
    rate, momentum = config.rates[cell.method], config.momenta[cell.method]
    algorithm = METHODS[cell.method](rate * smaller ** (2 - power), momentum * smaller**-2)
    rounds = math.ceil(config.most_steps * smaller**power / q)
    # As many evaluations as ε^−2: the start, which is one of them, has the same weight for every ε.
    every = max(1, round(smaller ** (power - 2) / q))
    return algorithm, Plan(rounds, q, b, m, first, evaluate_every=every, epsilon=epsilon)


Crossings = dict[Cell, list[Reached]]


def crossings(runs: dict[Cell, Run], found: Results) -> Crossings:
    """Return when each run reached its ε."""
    return {
        cell: [
            reached(trace, cell.share * run.instance.start, len(run.instance.clients))
            for trace in found[run.unit.name][0]
        ]
        for cell, run in runs.items()
    }


def of(found: Crossings, method: str, estimator: str) -> dict[float, list[Reached]]:
    """Return when a method with an estimator reached each ε."""
    return {cell.share: by_seed for cell, by_seed in found.items() if cell[:2] == (method, estimator)}


def _pairs(found: Crossings) -> list[tuple[str, str]]:
    return list(dict.fromkeys(cell[:2] for cell in found))


def growth(found: Crossings, method: str, estimator: str, what: str) -> Estimate:
    """Return the exponent of 1/ε with which samples or rounds grow."""
    here = of(found, method, estimator)
    slope = exponent(list(here), [[getattr(one, what) for one in by_seed] for by_seed in here.values()])
    return Estimate(-slope.mean, slope.half_width)


def proven(method: str, estimator: str) -> float:
    """Return the exponent of the samples that follows from the order of the bias."""
    return THEOREMS[method].samples_exponent(ESTIMATORS[estimator].bias_order)


def table(found: Crossings) -> list[dict[str, Any]]:
    """Return a row for each method and estimator."""
    rows = []
    for method, name in _pairs(found):
        here = of(found, method, name)
        least = min(here)
        row: dict[str, Any] = {"settings": "scaled", "problem": "smooth logistic", "method": method, "estimator": name}
        for what, exact in (("samples", proven(method, name)), ("rounds", THEOREMS[method].exponents[1])):
            row[f"{what} ~ ε^−"] = growth(found, method, name, what)
            row[f"{what}, proven"] = f"{exact:.3g}"
        row["smallest ε / ‖∇F(x₀)‖"] = f"{least:g}"
        for what in ("samples", "rounds"):
            needed = fmean(getattr(one, what) for one in here[least])
            row[f"{what} to reach it"] = f"{needed:.4g}" if needed < math.inf else "not reached"
        rows.append(row)
    return rows


def rows(found: Crossings, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for each cell and seed."""
    return [
        {**cell._asdict(), "seed": seed, "samples": one.samples, "rounds": one.rounds}
        for cell, by_seed in found.items()
        for seed, one in zip(seeds, by_seed, strict=True)
    ]


CLOSE = 0.25
"""How far a fitted slope may be from the exponent: half of the difference between plain and extrapolated."""


def check(found: Crossings) -> list[Statement]:
    """Check the exponents, and that a smaller bias saves samples."""
    slopes = {pair: growth(found, *pair, "samples") for pair in _pairs(found)}
    follow = Statement(
        "for a smooth f, samples grow like ε^−(4 + 1/r) (FCSG, FCSG-M) and ε^−(3 + 1/r) (Acc-FCSG-M), where r is the "
        "order of the estimator's bias",
        all(abs(slope.mean - proven(*pair)) <= CLOSE for pair, slope in slopes.items()),
        "exponents "
        + "; ".join(
            f"{method}, {name}: {slope.mean:.2f} ± {slope.half_width:.2f} (theory {proven(method, name):.3g})"
            for (method, name), slope in slopes.items()
        )
        + f" (“like” means within {CLOSE:g}; this follows from the theorems and docs/theory.md, and is not in the "
        "paper).",
    )
    methods = list(dict.fromkeys(method for method, _ in slopes))
    saved = {method: _saved(found, method) for method in methods}
    ordered = all(slopes[method, "extrapolated"].mean < slopes[method, "plain"].mean for method in methods)
    fewer = Statement(
        "extrapolation needs fewer samples than the plain estimator, and the more so the smaller ε is",
        ordered and all(last > 1 for _, last in saved.values()),
        "plain over extrapolated at the largest and at the smallest ε: "
        + "; ".join(f"{method} {first:.2f}, {last:.2f}" for method, (first, last) in saved.items()),
    )
    return [follow, fewer]


def _saved(found: Crossings, method: str) -> tuple[float, float]:
    """Return the samples of plain over those of extrapolated, at the largest and at the smallest ε."""
    plain, better = (of(found, method, name) for name in ("plain", "extrapolated"))

    def ratio(share: float) -> float:
        return fmean(one.samples for one in plain[share]) / fmean(one.samples for one in better[share])

    return ratio(max(plain)), ratio(min(plain))
