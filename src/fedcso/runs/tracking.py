"""Experiment trackers (TensorBoard, MLflow, Weights & Biases) behind one interface; off by default."""

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fedcso.core.errors import FedcsoError

if TYPE_CHECKING:
    from fedcso.engines.loop import Progress


class Tracker(Protocol):
    """A tracker that receives the metrics of every round."""

    def log(self, unit: str, seeds: Sequence[int], progress: "Progress") -> None:
        """Log the traces of a unit's runs after a round."""

    def close(self) -> None:
        """Finish logging."""


class Silent:
    """No tracker."""

    def log(self, unit: str, seeds: Sequence[int], progress: "Progress") -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Forward:
    """Passes the newest metrics of every run to `write(run name, metrics, round)`."""

    def __init__(self, write: Callable[[str, dict[str, float], int], None], close: Callable[[], None]):
        self.write, self.close = write, close

    def log(self, unit: str, seeds: Sequence[int], progress: "Progress") -> None:
        """Log the last evaluation if it belongs to this round."""
        for i, trace in enumerate(progress.traces):
            row = trace.rows[-1]
            if row["round"] != progress.done:
                continue
            setting, seed = i // len(seeds), seeds[i % len(seeds)]
            name = f"{unit}/seed{seed}" if len(progress.traces) == len(seeds) else f"{unit}/{setting}/seed{seed}"
            self.write(name, {key: value for key, value in row.items() if key != "round"}, int(row["round"]))


def _module(name: str, tracker: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FedcsoError(f"the tracker {tracker!r} needs {name}: pip install 'fedcso[track]'") from error


def require_tracker(tracker: str) -> None:
    """Raise if a tracker is not installed."""
    if tracker in _MODULES:
        _module(_MODULES[tracker], tracker)


_MODULES = {"tensorboard": "torch.utils.tensorboard", "mlflow": "mlflow", "wandb": "wandb"}


def _tensorboard(folder: Path) -> Tracker:
    module = _module(_MODULES["tensorboard"], "tensorboard")
    writer = module.SummaryWriter(str(folder / "tensorboard"))

    def write(run: str, metrics: dict[str, float], round: int) -> None:
        for key, value in metrics.items():
            writer.add_scalar(f"{key}/{run}", value, round)

    return Forward(write, writer.close)


def _mlflow(folder: Path) -> Tracker:
    mlflow = _module("mlflow", "mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{(folder / 'mlflow.db').absolute()}")
    mlflow.set_experiment("fedcso")
    mlflow.start_run(run_name=folder.name)

    def write(run: str, metrics: dict[str, float], round: int) -> None:
        # MLflow does not allow brackets and commas in names.
        name = re.sub(r"[^\w./ :-]", "_", run)
        mlflow.log_metrics({f"{name}/{key}": value for key, value in metrics.items()}, step=round)

    return Forward(write, mlflow.end_run)


def _wandb(folder: Path) -> Tracker:
    wandb = _module("wandb", "wandb")
    run = wandb.init(mode="offline", dir=str(folder), name=folder.name, project="fedcso")

    def write(name: str, metrics: dict[str, float], round: int) -> None:
        run.log({f"{name}/{key}": value for key, value in metrics.items()} | {"round": round})

    return Forward(write, run.finish)


TRACKERS: dict[str, Callable[[Path], Tracker]] = {
    "none": lambda folder: Silent(),
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
"""Every tracker by name; each writes to the run folder."""
