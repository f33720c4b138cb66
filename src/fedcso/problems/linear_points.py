"""Linear models: their losses, examples dealt to clients, and the judge of models under shifts of the inputs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from fedcso.core.errors import InvalidValue, require_choice, require_nonnegative
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import partition, train_validation_test

ACCURACY = Metric("accuracy", higher_is_better=True, share=True)
ROBUST_ACCURACY = Metric("robust_accuracy", "accuracy under attack", higher_is_better=True, share=True)
ERROR = Metric("error", "mean squared error", higher_is_better=False)
ROBUST_ERROR = Metric("robust_error", "mean squared error under attack", higher_is_better=False)


class Loss(NamedTuple):
    """A loss ℓ(u, y) of the prediction u = θᵀa + θ₀ for the target y, and its derivative by u."""

    value: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    slope: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _squared(u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 0.5 * (y - u).square()


def _squared_slope(u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return u - y


def _logistic(u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.softplus(-y * u)


def _logistic_slope(u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -y * torch.sigmoid(-y * u)


SQUARED = Loss(_squared, _squared_slope)
"""½ (y − u)²."""
LOGISTIC = Loss(_logistic, _logistic_slope)
"""log(1 + exp(−y u)), for labels −1 and 1."""


class Points(NamedTuple):
    """Examples with their indices: a client's data, or a batch. Targets are numbers, or labels −1 and 1."""

    which: torch.Tensor
    inputs: torch.Tensor
    target: torch.Tensor


class LinearData(NamedTuple):
    """The clients' examples and held-out ones, with standardised inputs."""

    clients: list[Points]
    validation: Points
    test: Points
    regression: bool
    """True if targets are numbers (standardised), False if they are labels."""
    more: Mapping[str, Any] = MappingProxyType({})
    """What else the task of a user's table has: names of sites, notes, files to export, weights."""

    def task(self, problem: Problem, judge: Judge) -> Task:
        """Return the task of a problem on these examples."""
        return Task(problem, self.clients, self.test, self.validation, judge, **self.more)


def predict(x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Return θᵀa + θ₀ for inputs a, (..., n, d), and x = (θ, θ₀), (..., d + 1)."""
    return (inputs * x[..., :-1].unsqueeze(-2)).sum(-1) + x[..., -1:]


class TableOptions(NamedTuple):
    """Which columns and labels of a user's table are used; see `fedcso.datasets.tables.sites.load_sites`."""

    label: str
    site: str
    positive: str


def load_points(data: str, clients: int, alpha: float, seed: int, table: TableOptions) -> LinearData:
    """Return a data set by name, dealt to clients, or a user's table; alpha makes the quarters of targets unlike."""
    if Path(data).suffix or Path(data).exists():
        return _own_table(data, seed, table)
    require_choice("data", data, [*NUMBERS, *LABELS, "FILE.csv", "FOLDER"])
    regression = data in NUMBERS
    inputs, target = (NUMBERS | LABELS)[data]()
    train, validation, test = train_validation_test(len(target), seed)
    inputs = (inputs - inputs[train].mean(0)) / inputs[train].std(0)
    if regression:
        target = (target - target[train].mean()) / target[train].std()

    def points(which: torch.Tensor) -> Points:
        return Points(torch.arange(len(which)), inputs[which], target[which])

    own = target[train]
    quarters = torch.bucketize(own, own.quantile(torch.tensor([0.25, 0.5, 0.75]).to(own)))
    shares = partition(quarters, clients, alpha, seed)
    return LinearData([points(train[share]) for share in shares], points(validation), points(test), regression)


def _own_table(data: str, seed: int, options: TableOptions) -> LinearData:
    """Return the examples of a table with a binary label."""
    from fedcso.datasets.tables.table import load_table  # imported late: pandas takes long to load

    table = load_table(data, options.label, options.site or None, options.positive or None, seed)
    if len(table.train[0].inputs.shape) != 2:
        raise InvalidValue("data", data, "a table with numbers and categories: a linear model can't use pictures")

    def points(*parts: Examples) -> Points:
        inputs, labels = (torch.cat([part[place][:] for part in parts]).double() for place in (0, 1))
        return Points(torch.arange(len(labels)), inputs, 2 * labels - 1)

    files = {"preparation.json": table.preparation.to_json()} if table.preparation else {}
    more = {"names": table.sites, "notes": table.notes, "weights": "size", "files": files}
    clients = [points(part) for part in table.train]
    return LinearData(clients, points(*table.validation), points(*table.test), False, more)


def attacked_judge(regression: bool, attack: float) -> Judge:
    """Return the judge that measures linear models also under the worst shift of each input by this norm."""
    require_nonnegative("attack", attack)

    def measure_error(x: torch.Tensor, data: Points) -> dict[str, Any]:
        rest = (predict(x, data.inputs) - data.target).abs()
        worst = rest + attack * x[..., :-1].norm(dim=-1, keepdim=True)
        return {ROBUST_ERROR.name: worst.square().mean(-1), ERROR.name: rest.square().mean(-1)}

    def measure_accuracy(x: torch.Tensor, data: Points) -> dict[str, Any]:
        score = predict(x, data.inputs) * data.target
        worst = score - attack * x[..., :-1].norm(dim=-1, keepdim=True)
        robust = (worst > 0).double().mean(-1)
        return {ROBUST_ACCURACY.name: robust, ACCURACY.name: (score > 0).double().mean(-1)}

    if regression:
        return Judge(measure_error, [ROBUST_ERROR, ERROR], broadcasts=True)
    return Judge(measure_accuracy, [ROBUST_ACCURACY, ACCURACY], broadcasts=True)


def _diabetes() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's diabetes data: 442 patients, 10 measurements, progression of the disease after a year."""
    from sklearn.datasets import load_diabetes  # imported late: slow to load

    data = load_diabetes()
    return torch.from_numpy(data.data), torch.from_numpy(data.target)


def _breast_cancer() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's breast cancer data: 569 tumours, 30 measurements, labels −1 and 1."""
    examples = load("breast_cancer")
    return examples.inputs.double(), 2.0 * examples.labels.double() - 1


NUMBERS = {"diabetes": _diabetes}
LABELS = {"breast_cancer": _breast_cancer}
