"""Schedules: hyper-parameters, such as learning rates, that change with the step t = 0, 1, 2, …"""

import math
from dataclasses import dataclass, replace

from fedcso.core.errors import InvalidValue, require_count, require_fraction, require_positive


@dataclass(frozen=True)
class InverseSqrt:
    """start / √(1 + t / steps), the classic decay for stochastic gradients."""

    start: float
    steps: int = 1

    def __post_init__(self) -> None:
        require_positive("start", self.start)
        require_count("steps", self.steps)

    def __call__(self, t: int) -> float:
        """Return the value at step t."""
        return self.start / math.sqrt(1 + t / self.steps)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from start to start·floor over `steps` steps, constant after that."""

    start: float
    steps: int | None = None
    """By default the steps of the run, which fill it in (`over`)."""
    floor: float = 0.01

    def __post_init__(self) -> None:
        require_positive("start", self.start)
        if self.steps is not None:
            require_count("steps", self.steps)
        require_fraction("floor", self.floor)

    def over(self, length: int) -> "Cosine":
        """Return the schedule of a run of this length."""
        return replace(self, steps=length) if self.steps is None else self

    def __call__(self, t: int) -> float:
        """Return the value at step t; raise if the number of steps is not known yet."""
        if self.steps is None and t > 0:
            raise InvalidValue("steps", None, "given, as in cosine(0.1, 5000): the length is known only in a run")
        progress = min(t / (self.steps or 1), 1.0)
        return self.start * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * progress)) / 2)


@dataclass(frozen=True)
class Exponential:
    """start · factor^(t / steps): the value is multiplied by `factor` every `steps` steps."""

    start: float
    factor: float
    steps: int = 1

    def __post_init__(self) -> None:
        require_positive("start", self.start)
        require_fraction("factor", self.factor)
        require_count("steps", self.steps)

    def __call__(self, t: int) -> float:
        """Return the value at step t."""
        return float(self.start * self.factor ** (t / self.steps))


SCHEDULES = {"inverse_sqrt": InverseSqrt, "cosine": Cosine, "exponential": Exponential}
"""Schedules by their names on the command line and in files: `learning_rate=cosine(0.1)`, `cosine(0.1, 5000)`."""
