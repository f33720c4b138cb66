"""Judge an inner batch size m by the bias and the noise of ∇F̂ that were measured for it.

Noise averages out over rounds, and bias does not. A run stops where ‖∇F‖ is about as large as the bias, so the verdict
compares the bias with ‖∇F‖, and with the noise of a round. `fedcso.theory.diagnosis` measures all three.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fedcso.core.costs import Costs

HARMLESS, MISLEADING = 0.1, 0.5
"""Shares of ‖∇F‖: a bias below the first hardly changes a step, and one above the second is most of the step."""


class Magnitude(NamedTuple):
    """A norm, with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


class Size(NamedTuple):
    """Bias and noise of the estimate with m inner samples."""

    m: int
    bias: Magnitude
    """‖E∇F̂ − ∇F‖."""
    noise: Magnitude
    """The standard deviation of ∇F̂ for a single ξ, over all coordinates together."""


class Judgement(StrEnum):
    """Whether m is large enough at a point."""

    ENOUGH = "large enough"
    FOR_NOW = "large enough for now"
    TOO_SMALL = "TOO SMALL"
    UNCLEAR = "not clear"


CONSEQUENCE = {
    Judgement.ENOUGH: "more inner samples would not help here",
    Judgement.FOR_NOW: "steps still lead down, but the run will stop where ‖∇F‖ is about as large as the bias",
    Judgement.TOO_SMALL: "more inner samples or another estimator will help, more rounds will not",
    Judgement.UNCLEAR: "look with more samples",
}


@dataclass(frozen=True)
class Diagnosis:
    """Bias and noise for several inner batch sizes; a round averages `averaged` estimates, which reduces the noise."""

    gradient: Magnitude
    """‖∇F‖, extrapolated."""
    sizes: list[Size]
    averaged: int
    costs: Costs

    def noise(self, size: Size) -> float:
        """Return the noise of the mean of `averaged` estimates."""
        return size.noise.value / math.sqrt(self.averaged)

    def share(self, size: Size) -> Magnitude:
        """Return the bias as a share of ‖∇F‖, between the least and the greatest that both intervals allow."""
        pairs = zip(size.bias, (self.gradient.value, self.gradient.high, self.gradient.low), strict=True)
        return Magnitude(*(_ratio(bias, gradient) for bias, gradient in pairs))

    def judge(self, size: Size) -> Judgement:
        """Judge an inner batch size by its bias beside ‖∇F‖ and beside the noise of a round.

        The bias beside ‖∇F‖ says whether steps lead to the right point; beside the noise of a round, whether it is
        noticed at all in a single round. Whole intervals decide:

        - large enough: at most a tenth of ‖∇F‖, and at most the noise;
        - too small: more than half of ‖∇F‖, whatever the noise; or more than a tenth of it and above the noise;
        - large enough for now: neither of these, and at most half of ‖∇F‖.
        """
        share, noise = self.share(size), self.noise(size)
        if share.high <= HARMLESS and size.bias.high <= noise:
            return Judgement.ENOUGH
        if share.low > MISLEADING or (share.low > HARMLESS and size.bias.low > noise):
            return Judgement.TOO_SMALL
        return Judgement.FOR_NOW if share.high <= MISLEADING else Judgement.UNCLEAR

    def verdict(self, size: Size) -> str:
        """Return the judgement in words, with the numbers that it follows from."""
        judgement, share = self.judge(size), self.share(size)
        times = _ratio(size.bias.value, self.noise(size))
        return (
            f"{judgement}: the bias is {percent(share.value)} of ‖∇F‖ ({percent(share.low)} to {percent(share.high)}) "
            f"and {times:.2g} times the noise of a round; {CONSEQUENCE[judgement]}"
        )

    def needed(self, target: float | None = None) -> float:
        """Return the m that is large enough, or brings the bias below a target, if the bias falls like 1/m.

        It is infinite if ‖∇F‖ is not distinguished from 0, where every bias is too large.
        """
        for size in self.sizes:
            if self.judge(size) == Judgement.ENOUGH if target is None else size.bias.value <= target:
                return size.m
        largest = self.sizes[-1]
        limit = min(self.noise(largest), HARMLESS * self.gradient.value) if target is None else target
        times = _ratio(largest.bias.value, limit)
        return math.ceil(largest.m * max(1.0, times)) if math.isfinite(times) else math.inf

    def advice(self, target: float | None = None) -> list[str]:
        """Say which m would be needed."""
        aim = f"{target:g}" if target else "a tenth of ‖∇F‖ and the noise"
        needed, largest = self.needed(target), self.sizes[-1]
        lines = [f"‖∇F‖ is {self.gradient}; the noise is that of the mean of {self.averaged} estimates"]
        if not math.isfinite(needed):
            lines.append("‖∇F‖ is not distinguished from 0, so no m brings the bias below a tenth of it")
        elif target is None and needed == largest.m and self.judge(largest) != Judgement.ENOUGH:
            lines.append(f"m = {largest.m} may be large enough: look with more samples to be certain")
        else:
            lines.append(f"it takes about m = {needed} to bring the bias below {aim}")
        return lines

    def __str__(self) -> str:
        each = [f"m = {s.m}: bias {s.bias}, noise {self.noise(s):.3g}: {self.verdict(s)}" for s in self.sizes]
        return "\n".join(each + self.advice())


def percent(share: float) -> str:
    """Write a share in per cent, small ones with two digits."""
    if share > 10:
        return "over 1000 %"
    return f"{100 * share:.0f} %" if share >= 0.1 or share < 1e-4 else f"{100 * share:.2g} %"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.inf if part else 0.0
