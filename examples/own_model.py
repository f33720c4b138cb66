"""A custom network on custom data: any `nn.Module` with one output can rank rare positives.

python examples/own_model.py
"""

import torch
from torch import nn

from fedcso import Plan, stream
from fedcso.algorithms import FCSGM
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.problems import AUPRC
from fedcso.problems.scores import Scores, ranking_judge


def hospital(number: int, patients: int = 400) -> Examples:
    """Return ten measurements per patient; about one in twelve is ill, which depends on the product of two of them."""
    rng = stream(seed=0, client=number, round=0)
    measured = torch.randn(patients, 10, generator=rng)
    ill = measured[:, 0] * measured[:, 1] + 0.3 * torch.randn(patients, generator=rng) > 1.3
    return Examples(measured, ill.long())


def network() -> nn.Module:
    """Return a network with two hidden layers; it is called for each seed, so that each starts from new weights."""
    return nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def main() -> None:
    """Train at four hospitals, choose the model on the patients of a fifth, and evaluate it on those of a sixth."""
    problem = AUPRC(Scores(network), margin=0.5)
    clients, validation, test = [hospital(n) for n in range(4)], hospital(5), hospital(4, patients=2000)
    task = Task(problem, clients, test, validation, ranking_judge(problem.scores))
    plan = Plan(rounds=40, local_steps=10, outer_batch=8, inner_batch=32, evaluate_every=10)
    trace = run(FCSGM(learning_rate=0.3, momentum=0.5), task, plan)
    for row in trace.rows:
        print(f"round {row['round']:3}  AP {row['average_precision']:.3f}  (chance {row['prevalence']:.3f})")


if __name__ == "__main__":
    main()
