"""Settings for several methods, each with the same number of trials.

First all learning rates, with every other setting in the middle of its grid; then, turn by turn, the other values of
one further setting; and who has no further setting to choose (FCSG) tries rates between those of the grid instead.
So nobody is ahead for having been looked at longer, and no method pays for having more settings.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

FINER = 10 ** (1 / 4)
"""The first rates between: this factor above and below the best; the next ones its root."""

Settings = dict[str, float]


class Space(NamedTuple):
    """What a method may choose from: its rates, and three values of each further setting."""

    rates: Sequence[float]
    others: dict[str, Sequence[float]]


class Trial(NamedTuple):
    """Settings and how they did: less is better."""

    settings: Settings
    score: float


Play = Callable[[int, dict[str, list[Settings]]], dict[str, list[float]]]
"""Carries out a turn: (turn, settings by method) -> scores by method, less is better."""


def search(spaces: dict[str, Space], turns: int, play: Play) -> dict[str, list[Trial]]:
    """All trials of every method."""
    tried: dict[str, list[Trial]] = {method: [] for method in spaces}
    for turn in range(turns + 1):
        settings = {method: _proposals(space, turn, tried[method]) for method, space in spaces.items()}
        scores = play(turn, settings)
        for method, trials in tried.items():
            trials.extend(Trial(*pair) for pair in zip(settings[method], scores[method], strict=True))
    return tried


def best(trials: Sequence[Trial]) -> Settings:
    """The settings with the least score; the first of equals. A run that broke off counts as the worst."""
    return min(trials, key=lambda trial: trial.score if math.isfinite(trial.score) else math.inf).settings


def as_rows(tried: dict[str, list[Trial]], score: str) -> list[dict[str, Any]]:
    """The table of all trials."""
    return [
        {"algorithm": method} | trial.settings | {score: trial.score}
        for method, trials in tried.items()
        for trial in trials
    ]


def _proposals(space: Space, turn: int, trials: Sequence[Trial]) -> list[Settings]:
    if turn == 0:
        middle = {name: sorted(values)[len(values) // 2] for name, values in space.others.items()}
        return [{"learning_rate": rate} | middle for rate in space.rates]
    so_far = best(trials)
    names = list(space.others)
    if turn <= len(names):
        name = names[turn - 1]
        return [so_far | {name: value} for value in space.others[name] if value != so_far[name]]
    factor = FINER ** (0.5 ** (turn - len(names) - 1))
    rate = so_far["learning_rate"]
    return [so_far | {"learning_rate": value} for value in (rate / factor, rate * factor)]
