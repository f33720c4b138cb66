"""Figures 2 and 3: the methods that are compared, and the settings of the full experiment and of the quick one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.experiments import trials
from fedcso.experiments.experiment import Settings
from fedcso.experiments.trials import Space


class Contender(NamedTuple):
    """A method of the comparison: its name in `ALGORITHMS`, the settings to tune, and those that are fixed."""

    algorithm: str
    tuned: tuple[str, ...] = ()
    """Besides the learning rate."""
    fixed: tuple[tuple[str, Any], ...] = ()

    def build(self, settings: Mapping[str, Any]) -> Algorithm:
        """Return the method with these settings."""
        return ALGORITHMS[self.algorithm](**dict(self.fixed), **settings)


PER_STEP, PER_TASK = "y per step", "y per task"
BLENDS = {PER_STEP: (("blend", "mean"),), PER_TASK: (("blend", "each"),)}
"""The two rules of Local-SCGD and Local-SCGDM: one y for all tasks of a step, or a blend for each of them."""

OURS = ("FCSG", "FCSG-M", "Acc-FCSG-M")
THEIRS = {rule: (f"Local-SCGD, {rule}", f"Local-SCGDM, {rule}") for rule in BLENDS}
"""The baselines by rule."""
METHODS = {
    "FCSG": Contender("FCSG"),
    "FCSG-M": Contender("FCSG-M", ("momentum",)),
    "Acc-FCSG-M": Contender("Acc-FCSG-M", ("momentum",)),
    f"Local-SCGD, {PER_STEP}": Contender("Local-SCGD", ("tracking",), BLENDS[PER_STEP]),
    f"Local-SCGD, {PER_TASK}": Contender("Local-SCGD", ("tracking",), BLENDS[PER_TASK]),
    f"Local-SCGDM, {PER_STEP}": Contender("Local-SCGDM", ("tracking", "momentum"), BLENDS[PER_STEP]),
    f"Local-SCGDM, {PER_TASK}": Contender("Local-SCGDM", ("tracking", "momentum"), BLENDS[PER_TASK]),
}

FOUND = {
    "FCSG": {"learning_rate": 0.4},
    "FCSG-M": {"learning_rate": 0.9, "momentum": 0.1},
    "Acc-FCSG-M": {"learning_rate": 0.3, "momentum": 0.9},
    "Local-SCGD": {"learning_rate": 0.3, "tracking": 0.9},
    "Local-SCGDM": {"learning_rate": 0.5, "tracking": 0.9, "momentum": 0.1},
}
"""Roughly the settings that trials chose for one task per client and step, where both rules are the same. The quick
version takes them as they are; the trials of the full one begin with these momenta and tracking weights."""


@dataclass(frozen=True, kw_only=True)
class FewShotSettings(Settings):
    """The settings of the experiment."""

    shots: int
    data: str
    clients: int
    filters: int
    step_tasks: int = 5
    """b, tasks per client and step."""
    local_steps: int = 10
    rotations: bool = True
    rounds: int
    long_steps: int
    """Steps of the longer runs at the end; 0 for no such runs."""
    seeds: Sequence[int]
    evaluate_every: int
    curve_tasks: int
    client_tasks: int = 4
    test_tasks: int
    trial_rounds: int = 3
    trial_turns: int = 1
    trial_seed: int = 1000
    rates: Sequence[float] = (0.01, 0.05, 0.1, 0.5)
    momentum: Sequence[float] = (0.1, 0.5, 0.9)
    tracking: Sequence[float] = (0.1, 0.5, 0.9)
    chosen: Mapping[str, trials.Settings]
    """The settings of every method; if empty, they are chosen by trials."""

    def space(self, method: str) -> Space:
        """Return what may be chosen for a method."""
        what, grids = METHODS[method], {"momentum": self.momentum, "tracking": self.tracking}
        start = {name: FOUND[what.algorithm][name] for name in what.tuned}
        return Space(self.rates, {name: grids[name] for name in what.tuned}, start)

    def problem(self) -> dict[str, Any]:
        """Return the options of the problem."""
        names = ("data", "clients", "shots", "filters", "rotations", "client_tasks", "test_tasks")
        return {name: getattr(self, name) for name in names}


def settings(shots: int, quick: bool) -> FewShotSettings:
    """Return the settings of the full experiment; `quick` has embedded glyphs, less of everything, and no tuning."""
    return FewShotSettings(
        shots=shots,
        data="glyphs" if quick else "omniglot",
        clients=4 if quick else 16,
        filters=32 if quick else 64,
        rounds=5 if quick else 15,
        long_steps=0 if quick else 500,
        seeds=[0] if quick else [0, 1, 2],
        evaluate_every=1 if quick else 3,
        curve_tasks=60 if quick else 100,
        test_tasks=200 if quick else 1000,
        chosen={method: FOUND[what.algorithm] for method, what in METHODS.items()} if quick else {},
    )
