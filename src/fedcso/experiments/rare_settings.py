"""The settings of the experiment on rare positives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedcso.core.plan import Plan
from fedcso.experiments.experiment import Settings, require_known
from fedcso.experiments.rare_positives import Method

RARE = 0.02
"""The share of positives at which, and below which, the objectives are expected to differ."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set of the experiment: its shares of positives, and the length of its runs."""

    shares: Sequence[float]
    """Shares of positives in the training data, in the order of the runs; more than the data have means all of them."""
    clients: int
    rounds: int
    rates: Sequence[float]
    seeds: Sequence[int]
    evaluations: int
    tuned_once: bool = False
    """True if all learning rates are run for the first share and seed only, and the best of these on validation data is
    used for all others. False runs all of them for every share and seed; data without a published test set need this,
    because what one seed tests, another trains on."""
    mirrored: bool = False
    moved: int = 0


@dataclass(frozen=True, kw_only=True)
class RareSettings(Settings):
    """The settings of the experiment; those that differ between data sets are given by data set."""

    sources: Mapping[str, Source]
    local_steps: int = 10
    outer_batch: int = 8
    inner_batch: int = 32
    clip: float = 1.0
    momentum: float = 0.5
    proximity: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        typed = {name: _source(one) for name, one in self.sources.items()}
        object.__setattr__(self, "sources", typed)

    def limited_to(self, data: Sequence[str]) -> "RareSettings":
        """Return these settings for some of the data sets only."""
        require_known(data, list(self.sources))
        return replace(self, sources={name: one for name, one in self.sources.items() if name in data})

    def plan(self, method: Method, rounds: int, evaluations: int) -> Plan:
        """Return a plan in which all methods see as many examples per step: b positives and m others, or b + m."""
        b, m = self.outer_batch, self.inner_batch
        sizes = (b, m) if method.problem == "auprc" else (b + m, m)
        return Plan(rounds, self.local_steps, *sizes, evaluate_every=max(1, rounds // evaluations), clip=self.clip)


def _source(one: Source | dict[str, Any]) -> Source:
    return one if isinstance(one, Source) else Source(**one)


def settings(quick: bool) -> RareSettings:
    """Return the settings of the full experiment; `quick` has two small data sets that come with scikit-learn."""
    if quick:
        small = {"clients": 4, "rounds": 10, "rates": [0.3, 1.0], "seeds": [0, 1, 2], "evaluations": 10}
        sources = {
            "digits": Source(shares=[0.05, 0.17], **small),  # type: ignore[arg-type]
            "breast_cancer": Source(shares=[0.05], **small),  # type: ignore[arg-type]
        }
        return RareSettings(sources=sources)
    rates = [0.3, 1.0, 3.0]
    table: dict[str, Any] = {"clients": 8, "rounds": 60, "rates": rates, "seeds": list(range(10)), "evaluations": 15}
    pictures: dict[str, Any] = {"clients": 4, "seeds": [0, 1, 2], "tuned_once": True}
    moving: dict[str, Any] = {"mirrored": True, "moved": 2}
    return RareSettings(
        sources={
            "flchain": Source(shares=[0.005, 0.01, 0.015], **table),
            "diamonds": Source(shares=[0.005, 0.01, 0.02, 0.05, 0.17], **table),
            "mnist": Source(shares=[0.02, 0.005, 0.01, 0.05, 0.17], rounds=10, rates=rates, evaluations=5, **pictures),
            "cifar10": Source(
                shares=[0.02, 0.01, 0.17], rounds=60, rates=[0.3, 1.0], evaluations=6, **moving, **pictures
            ),
        }
    )
