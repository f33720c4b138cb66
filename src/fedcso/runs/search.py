"""Hyper-parameter search with Optuna, stored in a SQLite file so that it can be stopped and resumed."""

import importlib
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fedcso.core.errors import FedcsoError, InvalidValue

Evaluate = Callable[[int, dict[str, float]], float]
"""(trial number, values) → score, where higher is better. It is called again for finished trials, whose runs it can
read from checkpoints."""


def require_optuna() -> Any:
    """Return the module optuna; raise if it is not installed."""
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise FedcsoError("a search needs Optuna: pip install 'fedcso[sweep]' (a --grid does not)") from error


class Range(NamedTuple):
    """A range of a hyper-parameter, searched on a logarithmic scale."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low}:{self.high}"

    @classmethod
    def parse(cls, name: str, text: str) -> "Range":
        """Parse `LOW:HIGH`."""
        low, colon, high = text.partition(":")
        try:
            found = cls(float(low), float(high))
        except ValueError:
            found = cls(0.0, 0.0)
        if not colon or not 0 < found.low < found.high < math.inf:
            raise InvalidValue("search", f"{name}={text}", f"{name}=LOW:HIGH with 0 < LOW < HIGH")
        return found


def optimise(database: Path, name: str, ranges: Mapping[str, Range], trials: int, evaluate: Evaluate) -> None:
    """Evaluate `trials` points in the given ranges."""
    optuna = require_optuna()
    optuna.logging.set_verbosity(logging.WARNING)
    space = {key: optuna.distributions.FloatDistribution(*ends, log=True) for key, ends in ranges.items()}
    study = optuna.create_study(
        storage=f"sqlite:///{database}", study_name=name, direction="maximize", load_if_exists=True
    )
    done = 0
    for trial in study.get_trials(deepcopy=False):
        if trial.params.keys() != space.keys():
            if not trial.state.is_finished():  # interrupted before it had values
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            continue
        value = evaluate(trial.number, trial.params)
        if not trial.state.is_finished():  # interrupted while running
            study.tell(trial.number, value)
        done += 1
    while done < trials:
        # Seeded by trial, so that a suggestion depends on the study alone and not on the process.
        study.sampler = optuna.samplers.TPESampler(seed=done)
        trial = study.ask(space)
        study.tell(trial, evaluate(trial.number, trial.params))
        done += 1
