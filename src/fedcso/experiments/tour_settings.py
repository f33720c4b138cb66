"""The settings of the tour."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedcso.core.errors import require_count
from fedcso.experiments.experiment import Settings


@dataclass(frozen=True, kw_only=True)
class BiasSizes:
    """The first part: a problem whose answer is known."""

    clients: int = 8
    rounds: int = 120
    local_steps: int = 10
    outer_batch: int = 4
    inner_batch: int = 8
    """m of the estimators that are compared."""
    fewer: int = 2
    more: int = 64
    """Other m for the plain estimator."""
    learning_rate: float = 0.1
    evaluations: int = 30


@dataclass(frozen=True, kw_only=True)
class RareSizes:
    """The second part: rare positives at several sites."""

    rounds: int = 24
    local_steps: int = 10
    outer_batch: int = 8
    inner_batch: int = 32
    rates: Sequence[float] = (0.3, 1.0, 3.0)
    momentum: float = 0.5
    clip: float = 1.0
    evaluations: int = 8


@dataclass(frozen=True, kw_only=True)
class TourSettings(Settings):
    """All settings of the tour."""

    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    bias: BiasSizes = BiasSizes()
    rare: RareSizes = RareSizes()


def settings(quick: bool, seeds: int | None = None) -> TourSettings:
    """Return the settings; `quick` is a smaller version whose numbers mean little, for a first try."""
    number = seeds if seeds is not None else 2 if quick else 5
    require_count("seeds", number)
    own = tuple(range(number))
    if not quick:
        return TourSettings(seeds=own)
    return TourSettings(
        seeds=own,
        bias=BiasSizes(rounds=20, evaluations=5),
        rare=RareSizes(rounds=3, rates=(1.0, 3.0), evaluations=3),
    )
