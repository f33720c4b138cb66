"""A search for the settings of several methods that gives each of them the same number of trials.

In the first turn all learning rates are tried, with every other setting in the middle of its grid (or where the space
says that it starts). Each further turn tries two more values of the other settings, in the order of their distance
from the start: both other values of a single setting, or the next value of each of two. A method without further
settings (FCSG) tries learning rates between those of the grid instead. So no method has an advantage from more trials,
or a disadvantage from more settings.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

FINER = 10 ** (1 / 4)
"""The first rates between those of the grid are the best one divided and multiplied by this, then by its root."""

Settings = dict[str, float]


class Space(NamedTuple):
    """The values that a method may choose from: learning rates, and three values of each further setting."""

    rates: Sequence[float]
    others: dict[str, Sequence[float]]
    start: Settings | None = None
    """The values of the further settings in the first turn; by default the middle ones."""

    def started(self) -> Settings:
        """Return the values of the further settings in the first turn."""
        return self.start or {name: sorted(values)[len(values) // 2] for name, values in self.others.items()}

    def further(self) -> list[Settings]:
        """Return the other values of the further settings, those next to the start first."""
        start = self.started()
        by_setting = [
            [{name: value} for value in _by_distance(values, start[name])] for name, values in self.others.items()
        ]
        return [one for nearest in zip(*by_setting, strict=True) for one in nearest]


class Trial(NamedTuple):
    """Settings and their score; lower is better."""

    settings: Settings
    score: float


M = TypeVar("M", bound=Hashable)
"""A method: its name, or whatever identifies it in an experiment."""

Evaluate = Callable[[int, dict[M, list[Settings]]], dict[M, list[float]]]
"""Runs a turn: from (turn, settings by method) to the scores by method; lower is better."""


def search(spaces: Mapping[M, Space], turns: int, evaluate: Evaluate[M]) -> dict[M, list[Trial]]:
    """Search for `turns` turns after the first; return all trials of every method."""
    tried: dict[M, list[Trial]] = {method: [] for method in spaces}
    for turn in range(turns + 1):
        settings = {method: _proposals(space, turn, tried[method]) for method, space in spaces.items()}
        scores = evaluate(turn, settings)
        for method, trials in tried.items():
            trials.extend(Trial(*pair) for pair in zip(settings[method], scores[method], strict=True))
    return tried


def best(trials: Sequence[Trial]) -> Settings:
    """Return the settings with the lowest score, the first of equal ones. A run that failed counts as the worst."""
    return min(trials, key=lambda trial: trial.score if math.isfinite(trial.score) else math.inf).settings


def as_rows(tried: dict[str, list[Trial]], score: str) -> list[dict[str, Any]]:
    """Return all trials as rows of a table."""
    return [
        {"algorithm": method} | trial.settings | {score: trial.score}
        for method, trials in tried.items()
        for trial in trials
    ]


def _by_distance(values: Sequence[float], start: float) -> list[float]:
    """Return the values other than the start by their distance from it, counted in values of the grid."""
    rank = {value: place for place, value in enumerate(sorted(values))}
    return sorted((value for value in values if value != start), key=lambda value: abs(rank[value] - rank[start]))


def _proposals(space: Space, turn: int, trials: Sequence[Trial]) -> list[Settings]:
    if turn == 0:
        return [{"learning_rate": rate} | space.started() for rate in space.rates]
    so_far = best(trials)
    if next_two := space.further()[2 * (turn - 1) : 2 * turn]:
        return [so_far | one for one in next_two]
    factor = FINER ** (0.5 ** (turn - len(space.others) - 1))
    rate = so_far["learning_rate"]
    return [so_far | {"learning_rate": value} for value in (rate / factor, rate * factor)]
