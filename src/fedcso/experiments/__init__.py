"""Reproductions of the paper's figures and tables: settings, runs, and checks of what the paper states."""

from typing import TYPE_CHECKING, Any

from fedcso.core.registry import Registry

if TYPE_CHECKING:
    from fedcso.experiments.experiment import Experiment

EXPERIMENTS: "Registry[Experiment[Any]]" = Registry(
    "experiment",
    __name__,
    {
        "bias": "bias:BIAS",
        "figure1": "figure1:FIGURE1",
        "figure2": "few_shot:FIGURE2",
        "figure3": "few_shot:FIGURE3",
        "table1": "table1:TABLE1",
        "table2": "table2:TABLE2",
        "tables": "tables:TABLES_EXPERIMENT",
        "rare": "rare:RARE",
        "communication": "communication:COMMUNICATION",
        "tracking": "tracking:TRACKING",
        "task-batch": "task_batch:TASK_BATCH",
        "few-shot": "few_shot_best:FEW_SHOT",
        "leaderboard": "leaderboard:LEADERBOARD",
    },
)
"""The experiments by name. To add one, add a file and a row here."""
