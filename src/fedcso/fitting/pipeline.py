"""`fedcso fit` from start to end: search on validation data, compare on test data, decide, export."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient
from fedcso.core.task import Task
from fedcso.datasets.examples import pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting.budget import Budget, plan_search
from fedcso.fitting.config import FitConfig, table_path
from fedcso.fitting.contenders import compare
from fedcso.fitting.objectives import ORDINARY
from fedcso.fitting.search import Search
from fedcso.fitting.train import LOCAL_STEPS, Trainer, Tried
from fedcso.fitting.yardsticks import Yardstick, measure_yardsticks, rank_with
from fedcso.reports import tables
from fedcso.runs.execute import execute_study
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Results, Study, Unit

Say = Callable[[str], None]


def begin(config: FitConfig, sites: Sites) -> RunFolder:
    """Create the run folder of a fit."""
    data = {"digest": digest_sites(sites), "clients": len(sites.names)}
    return RunFolder.create(Path(config.out), config.name, {"command": "fit"} | config.flat(), data, config.sources())


def search(folder: RunFolder, config: FitConfig, sites: Sites, say: Say) -> tuple[Search, list[Tried], Trainer]:
    """Search for the best settings on validation data; finished runs are read from their checkpoints."""

    def run(units: Sequence[Unit]) -> Results:
        return execute_study(folder, Study(units, folder.path / "checkpoints", warns=False), "none")

    nets = config.nets(sites)
    trainer = Trainer(sites, run)
    searching = Search(trainer, nets, plan_search(config.minutes, sites, nets), config.seed, say)
    ranked = searching.find()
    folder.write("trials.csv", tables.as_csv(trial_rows(searching)))
    return searching, ranked, trainer


def trial_rows(searching: Search) -> list[dict[str, Any]]:
    """Return all settings that were tried, in the order in which they were."""
    return [
        {
            "rung": rung,
            "objective": one.group.objective.title,
            "network": one.group.net,
            "learning rate": one.rate,
            "learning rate of the first objective": one.group.first_rate or "",
            "steps": one.total_steps,
            "seeds": len(one.traces),
            "validation average precision": one.value,
        }
        for rung, tried in searching.tried.items()
        for one in tried
    ]
