"""Show what becomes of positives that are ranked low: with sigmoid scores they are no longer pushed up.

python examples/lost_positives.py

It trains on the table of fraud_auprc.py, once with sigmoid scores and margin 0.5, once with raw scores and margin 1,
and looks at the training positives that more than a tenth of the negatives is ranked above.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from fedcso import Plan, Progress, Task
from fedcso.algorithms import FCSGM
from fedcso.core.schedules import Cosine
from fedcso.core.tree import Tree
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.engines import run
from fedcso.problems.auprc import AUPRC, auprc
from fedcso.problems.scores import measure_ranking
from fraud_auprc import payments

PLAN = Plan(rounds=60, local_steps=10, outer_batch=8, inner_batch=32, clip=1.0, evaluate_every=60)
LOOKS = (1, 5, 20, 60)


class Look(NamedTuple):
    """The training positives after a round."""

    auroc: float
    active: float
    """The share of pairs of a positive and a negative with a loss above 0."""
    low: int
    """The number of positives below a tenth of the negatives."""
    push_low: float
    """How strongly the loss of all training data pushes the score of a low positive up, on average."""
    push_others: float


def look(problem: AUPRC, x: Tree, data: Examples) -> Look:
    """Look at all training data; ĝ is their mean, without sampling."""
    logits = problem.scores.logits(x, data.inputs).detach().requires_grad_()
    h = logits.sigmoid() if problem.sigmoid else logits
    is_positive = data.labels == 1
    gaps = problem.margin - h[is_positive].unsqueeze(1) + h
    losses = gaps.relu().square()
    own = problem.margin**2 / len(h)
    precision = ((losses * data.labels).mean(1) + own) / (losses.mean(1) + own)
    (slope,) = torch.autograd.grad(precision.sum(), logits)
    above = (logits[is_positive].unsqueeze(1) < logits[~is_positive]).double().mean(1)
    low, push = above > 0.1, slope[is_positive].abs()
    return Look(
        measure_ranking(logits.detach(), data.labels)["auroc"],
        float((gaps[:, ~is_positive] > 0).double().mean()),
        int(low.sum()),
        float(push[low].mean()),
        float(push[~low].mean()),
    )


def watch(task: Task) -> dict[int, Look]:
    """Train, and look after some of the rounds."""
    looks: dict[int, Look] = {}
    data = pool_examples(list(task.clients))

    def after_round(progress: Progress) -> None:
        if progress.done in LOOKS:
            looks[progress.done] = look(task.problem, progress.traces[0].last, data)  # type: ignore[arg-type]

    run(FCSGM(Cosine(1.0), 0.3), task, PLAN, callbacks=[after_round])
    return looks


def main() -> dict[str, dict[int, Look]]:
    """Print a table for both kinds of scores, and return it."""
    paper = partial(auprc, bounded=False, logarithm=False)  # with the default surrogate fewer positives are lost
    kinds = {"sigmoid, margin 0.5": (True, 0.5), "raw, margin 1": (False, 1.0)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fraud.csv"
        payments().to_csv(path, index=False)
        made = {
            name: paper(data=str(path), label="fraud", site="bank", sigmoid=sigmoid, margin=margin)
            for name, (sigmoid, margin) in kinds.items()
        }
    found = {name: watch(task) for name, task in made.items()}
    for name, looks in found.items():
        print(f"{name}\n  round  AUROC  active pairs  low positives  push on them  on the others")
        for done, one in looks.items():
            print(
                f"  {done:5d}  {one.auroc:5.2f}  {one.active:12.0%}  {one.low:13d}"
                f"  {one.push_low:12.4f}  {one.push_others:13.4f}"
            )
    return found


if __name__ == "__main__":
    main()
