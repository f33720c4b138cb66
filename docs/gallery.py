"""The figures of the gallery: for each problem with an exact objective, what its estimate is with m samples."""

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import torch
from matplotlib.figure import Figure

from fedcso.core.estimator import sample
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.recommended import recommended
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.tree import Tree, map_leaves
from fedcso.engines import run
from fedcso.problems import PROBLEMS
from fedcso.runs.methods import build_all, parse_methods

SIZES = (1, 2, 4, 8, 16, 32)
"""The values of m."""

DRAWN = (
    *("instrumental", "policy_evaluation", "information", "sinkhorn_dro", "kl_dro", "invariant_images"),
    *("partial_auc", "ndcg", "contrastive"),
)
"""The problems in the gallery, in its order."""


class BiasCurve(NamedTuple):
    """The mean of F̂ for each m, and F."""

    means: list[float]
    errors: list[float]
    """Standard errors of the means."""
    exact: float


def write(folder: Path) -> None:
    """Draw the figures that are not there yet; they don't change from build to build."""
    folder.mkdir(exist_ok=True)
    for name in DRAWN:
        file = folder / f"{name}.svg"
        if not file.is_file():
            draw(name, file)


def draw(name: str, file: Path) -> None:
    """Draw the curve of a problem after a short run, in which the model has left its starting point."""
    task = PROBLEMS[name](clients=2)
    curve = bias_curve(task, _after_a_short_run(name, task))
    with mpl.rc_context({"svg.hashsalt": "fedcso", "font.size": 9}):
        figure = Figure(figsize=(4.2, 2.2), layout="constrained")
        axes = figure.subplots()
        axes.errorbar(SIZES, curve.means, [2 * error for error in curve.errors], marker="o", ms=4, capsize=2)
        axes.axhline(curve.exact, color="black", lw=1, ls="--")
        axes.annotate("F(x)", (SIZES[-1], curve.exact), textcoords="offset points", xytext=(0, 4), ha="right")
        axes.set_xscale("log", base=2)
        axes.set_xticks(SIZES, [str(m) for m in SIZES])
        axes.set_xlabel("inner samples m")
        axes.set_ylabel("mean of F̂(x)")
        figure.savefig(file, metadata={"Date": None})


def bias_curve(task: Task, x: Tree, steps: int = 150, b: int = 16) -> BiasCurve:
    """Return the mean of F̂ at x over many batches; those with fewer samples are parts of the largest ones."""
    problem = task.problem
    assert problem.exact is not None, f"{type(problem).__name__} does not know F"
    weights = [1.0] * len(task.clients)
    by_size = []
    with torch.no_grad():
        penalty = 0.0 if problem.regulariser is None else float(problem.regulariser(x))
        batches = [
            split_steps(sample(problem, data, stream(0, n, 0), steps, b, SIZES[-1]), steps)
            for n, data in enumerate(task.clients)
        ]
        for m in SIZES:
            losses = [
                [problem.outer(problem.inner(x, xi, _first(eta, m)), xi).mean() for xi, eta in of_client]
                for of_client in batches
            ]
            by_size.append(torch.tensor(losses, dtype=torch.float64).mean(0) + penalty)
        exact = float(problem.exact(x, task.clients, weights)[0])
    return BiasCurve([float(v.mean()) for v in by_size], [float(v.std() / steps**0.5) for v in by_size], exact)


def _first(eta: Tree, m: int) -> Tree:
    """Return the first m inner samples of each ξ."""
    return map_leaves(lambda leaf: leaf[:, :m], eta)


def _after_a_short_run(name: str, task: Task) -> Tree:
    """Return the model after a few rounds with the settings that the problem recommends."""
    settings = recommended(PROBLEMS[name])
    (method,) = build_all(parse_methods(["FCSG-M"]), settings.settings).values()
    plan = Plan(**{**settings.plan, "rounds": 8, "evaluate_every": 8})
    return run(method.algorithm, task, plan).last
