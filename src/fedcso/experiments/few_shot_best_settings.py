"""Few-shot learning in a long run and its alternatives: the settings of the full experiment and of the quick one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedcso.experiments.experiment import Settings, require_known
from fedcso.experiments.few_shot_ways import WAYS
from fedcso.problems.few_shot_judge import ACCURACY

SHOTS = {"1-shot": 1, "5-shot": 5}
TARGETS = {"1-shot": 0.96, "5-shot": 0.988}
"""The accuracies on unseen characters that a long run should reach."""
VALIDATED = ACCURACY.on_validation().name


@dataclass(frozen=True, kw_only=True)
class BestSettings(Settings):
    """The settings of the experiment."""

    cases: Sequence[str] = tuple(SHOTS)
    data: str
    clients: int
    filters: int
    steps: int
    """T of the comparison; a step has one task of each client."""
    trial_steps: int
    """The steps of a trial of each rate; 0 for no trials."""
    finalists: int = 2
    """How many of the rates are tried again for T steps."""
    trial_seed: int = 1000
    long_steps: int
    """T of the long run; 0 for none."""
    seeds: Sequence[int]
    curve_tasks: int = 100
    client_tasks: int = 4
    test_tasks: int
    validation_tasks: int

    def limited_to(self, data: Sequence[str]) -> "BestSettings":
        """Return these settings for 1-shot or 5-shot tasks only."""
        require_known(data, self.cases)
        return replace(self, cases=[case for case in self.cases if case in data])

    def problem(self, case: str, way: str) -> dict[str, Any]:
        """Return the options of a way's problem."""
        names = ("data", "clients", "filters", "client_tasks", "test_tasks", "validation_tasks")
        common = {name: getattr(self, name) for name in names} | {"rotations": True, "shots": SHOTS[case]}
        return common | dict(WAYS[way].options)

    def labels(self, case: str, way: str) -> dict[str, Any]:
        """Return what a unit stands for."""
        return {"way": way, **self.problem(case, way)}


def settings(quick: bool) -> BestSettings:
    """Return the settings of the full experiment; `quick` has embedded glyphs, less of everything, and no tuning."""
    return BestSettings(
        cases=["1-shot"] if quick else list(SHOTS),
        data="glyphs" if quick else "omniglot",
        clients=4 if quick else 16,
        filters=16 if quick else 64,
        steps=20 if quick else 500,
        trial_steps=0 if quick else 130,
        long_steps=40 if quick else 10_000,
        seeds=[0] if quick else [0, 1, 2],
        test_tasks=60 if quick else 1000,
        validation_tasks=20 if quick else 200,
    )
