"""A user's typed program, and the mistakes that a type checker finds in such programs.

`make types` checks this file as strictly as the package. Each mistake is marked with the error that mypy must report:
strict mode also fails on a mark without an error, so a mistake that passes unnoticed fails the check.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import fedcso
from fedcso.algorithms import FCSGM


class RobustLocation(fedcso.Problem):
    """The problem of `examples/own_problem.py`, with types."""

    def init(self, rng: torch.Generator) -> torch.Tensor:
        return torch.zeros(2)

    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        chosen: torch.Tensor = data[torch.randint(len(data), shape, generator=rng)]
        return chosen

    def sample_inner(self, data: Any, rng: torch.Generator, xi: torch.Tensor, m: int) -> torch.Tensor:
        return xi.unsqueeze(-2) + torch.randn(*xi.shape[:-1], m, 2, generator=rng)

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
        return eta.mean(-2) - x

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        return (1 + y.square().sum(-1)).sqrt()


@dataclass(frozen=True)
class SignedSteps(fedcso.Algorithm):
    """A method: move by the signs of the gradient."""

    learning_rate: float = 0.1

    def step(self, state: fedcso.State, oracle: fedcso.Oracle, batch: fedcso.Batch, t: int) -> fedcso.State:
        x = state.shared["x"]
        return fedcso.State({"x": oracle.move(x, oracle.grad(x, batch).sign(), self.learning_rate)})


def make_task(hospitals: int = 2) -> fedcso.Task:
    rngs = [fedcso.stream(seed=0, client=n, round=0) for n in range(hospitals)]
    return fedcso.Task(RobustLocation(), [torch.randn(20, 2, generator=rng) for rng in rngs])


def run_and_compare(out: Path) -> pd.DataFrame:
    """Run two methods, read the folder again, and return their differences."""
    methods: list[str | fedcso.Algorithm] = [FCSGM(momentum=0.5), SignedSteps()]
    run = fedcso.run(make_task(), methods, seeds=2, rounds=2, local_steps=2, out=str(out), say=lambda line: None)
    loaded = fedcso.load(run.folder)
    assert isinstance(loaded, fedcso.RunResult)
    names: list[str] = loaded.table["algorithm"].unique().tolist()
    weights: dict[str, torch.Tensor] = loaded.model(names[1], seed=1, which="final")
    assert weights
    return fedcso.compare(loaded, baseline=names[1]).differences


def tune_and_fit(rows: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    """What a longer program would do with a table; only the types are checked."""
    tuned = fedcso.tune("nested_quadratic", "FCSG", grid={"learning_rate": [0.03, 0.1]})
    return tuned.chosen, fedcso.fit(rows, "fraud", "bank", minutes=0.5).predict(rows)


def make_mistakes(rows: pd.DataFrame) -> None:
    """Each of these lines is wrong."""
    fedcso.run(3)  # type: ignore[arg-type]  # neither a name nor a task
    fedcso.run("nested_quadratic", FCSGM)  # type: ignore[arg-type]  # the class instead of an object
    fedcso.run("nested_quadratic", seeds="two")  # type: ignore[arg-type]
    fedcso.Task(RobustLocation)  # type: ignore[call-arg, arg-type]  # no clients, and the class
    fedcso.Plan(rounds="many")  # type: ignore[arg-type]
    fedcso.tune("nested_quadratic", grid=["learning_rate"])  # type: ignore[arg-type]
    fedcso.fit(rows)  # type: ignore[call-arg]  # which column is the label?
    fedcso.compare(rows)  # type: ignore[arg-type]
    print(fedcso.load("runs/one").metrics)  # type: ignore[union-attr]  # perhaps it is a fit
    fedcso.runn("nested_quadratic")  # type: ignore[attr-defined]
