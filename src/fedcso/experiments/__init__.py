"""The paper's figures and tables: settings, what the paper states, and what comes out here."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fedcso.experiments import bias, communication, few_shot, figure1, table1, table2
from fedcso.runs.config import Config
from fedcso.runs.folder import RunFolder


class Experiment(NamedTuple):
    """`settings(quick=…)` is all that it depends on; `carry_out(folder)` does what is left of it."""

    title: str
    settings: Callable[..., Config]
    carry_out: Callable[[RunFolder], int]


EXPERIMENTS = {
    "bias": Experiment(
        "Estimators with less bias for the same samples, and an m that grows.", bias.settings, bias.carry_out
    ),
    "figure1": Experiment(
        "Invariant logistic regression for three noise ratios and three inner batch sizes.",
        figure1.settings,
        figure1.carry_out,
    ),
    "figure2": Experiment(
        "Federated MAML on Omniglot, 5-way-1-shot.", partial(few_shot.settings, 1), few_shot.carry_out
    ),
    "figure3": Experiment(
        "Federated MAML on Omniglot, 5-way-5-shot.", partial(few_shot.settings, 5), few_shot.carry_out
    ),
    "table1": Experiment(
        "Samples and rounds to reach ε, beside the theorems' bounds.", table1.settings, table1.carry_out
    ),
    "table2": Experiment(
        "Average precision with rare positives on MNIST and CIFAR-10.", table2.settings, table2.carry_out
    ),
    "communication": Experiment(
        "Accuracy against bytes for several ways to send u.", communication.settings, communication.carry_out
    ),
}
"""By name. A new one is a file and a row here."""
