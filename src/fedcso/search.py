"""A search by Optuna whose study is a SQLite file: it can be stopped at any moment and continued."""

import importlib
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcso.errors import FedcsoError, InvalidValue

Evaluate = Callable[[int, dict[str, float]], float]
"""(number of the trial, values) -> score, higher is better. Called again for trials already finished, so
that it may take their runs from its checkpoints."""


def require_optuna() -> Any:
    """Optuna, or what to do to have it."""
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise FedcsoError("a search needs Optuna: pip install 'fedcso[sweep]' (a --grid does not)") from error


def optimise(
    database: Path, name: str, ranges: dict[str, tuple[float, float]], trials: int, evaluate: Evaluate
) -> None:
    """Try `trials` points of the ranges, searched on a logarithmic scale."""
    optuna = require_optuna()
    optuna.logging.set_verbosity(logging.WARNING)
    study = optuna.create_study(
        storage=f"sqlite:///{database}",
        study_name=name,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        load_if_exists=True,
    )
    # A trial that was cut off is still marked as running: it is carried out before anything new.
    for trial in study.get_trials(deepcopy=False):
        value = evaluate(trial.number, trial.params)
        if not trial.state.is_finished():
            study.tell(trial.number, value)
    while len(study.get_trials(deepcopy=False)) < trials:
        trial = study.ask({k: optuna.distributions.FloatDistribution(a, b, log=True) for k, (a, b) in ranges.items()})
        study.tell(trial, evaluate(trial.number, trial.params))


def parse_range(text: str) -> tuple[str, tuple[float, float]]:
    """`NAME=LOW:HIGH` as a name and its bounds."""
    name, _, values = text.partition("=")
    low, colon, high = values.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError:
        bounds = 0.0, 0.0
    if not colon or not 0 < bounds[0] < bounds[1] < math.inf:
        raise InvalidValue("search", text, f"{name}=LOW:HIGH with 0 < LOW < HIGH")
    return name, bounds
