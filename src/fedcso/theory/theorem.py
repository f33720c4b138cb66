"""The form of a theorem: a bound from constants and settings, and settings from constants and a number of steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fedcso.core.algorithm import Algorithm
from fedcso.core.constants import Constants
from fedcso.core.plan import Plan


@dataclass(frozen=True)
class Setting:
    """A method's hyper-parameters, in the paper's symbols."""

    method: str
    clients: int
    """N."""
    steps: int
    """T."""
    learning_rate: float
    """α."""
    momentum: float = 1.0
    """β."""
    local_steps: int = 1
    """q."""
    outer_batch: int = 1
    """b."""
    inner_batch: int = 1
    """m."""
    initial_batch: int = 1
    """B, the number of outer samples in the first step."""
    period: int | None = None
    """Steps between two batches of the initial size (BSpiderBoost); None if only the first step has one."""

    @property
    def rounds(self) -> int:
        """The number of communication rounds, T/q."""
        return self.steps // self.local_steps

    @property
    def samples(self) -> int:
        """The number of inner samples of one client over the whole run."""
        large = math.ceil(self.steps / self.period) if self.period else 1
        return self.inner_batch * (large * self.initial_batch + (self.steps - large) * self.outer_batch)

    def plan(self, **more: Any) -> Plan:
        """Return the plan of a run with these sizes; `more` sets further fields of the plan."""
        sizes = Plan(self.rounds, self.local_steps, self.outer_batch, self.inner_batch, self.initial_batch)
        return replace(sizes, **more)


Terms = dict[str, float]
"""The terms of a bound by name: start, noise, drift, …"""


class Theorem(NamedTuple):
    """A theorem about one method."""

    source: str
    exponents: tuple[int, int]
    """The proven exponents: inner samples of a client, and communication rounds, grow like ε to minus these."""
    largest_rate: Callable[[Constants, int], float]
    """(constants, q) → the largest α that the proof allows."""
    terms: Callable[[Constants, Setting], Terms]
    """(constants, setting) → the terms of the bound, without the bias."""
    bias_factor: float
    """The bias term is this factor times the bound of the squared bias, L_g² S_f² σ_g² / m in the paper."""
    choose: Callable[[Constants, int, int, int], Setting]
    """(constants, N, b, T) → the corollary's settings, rounded."""
    algorithm: Callable[[Setting], Algorithm]

    @property
    def steps_exponent(self) -> int:
        """The proven exponent of T, and of BSpiderBoost's outer samples; the paper's m grows like ε⁻²."""
        return self.exponents[0] - 2

    def samples_exponent(self, order: float = 0.5) -> float:
        """Return the exponent of the inner samples if the bias falls like m⁻ʳ: m grows like ε^(−1/r)."""
        return self.steps_exponent + 1 / order
