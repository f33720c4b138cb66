"""The settings of the leaderboard: the contests, one for each problem, and the methods that take part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fedcso.algorithms import ALGORITHMS
from fedcso.core import user_code
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.user_code import is_own
from fedcso.experiments.experiment import Settings, require_known
from fedcso.runs.methods import MethodSpec, parse_methods

BASELINE = "FCSG"
"""The method that every contest has, whose progress states the accuracy to which samples and bytes are counted."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A problem in a small size, the plan of its runs, and the learning rates to choose from."""

    options: Mapping[str, Any]
    """What the problem is asked for."""
    rounds: int
    local_steps: int
    outer_batch: int
    inner_batch: int
    clip: float = 0.0
    evaluations: int = 20
    """Evaluations of a run, besides that of the start."""
    rate: float
    """The learning rate in the middle of the grid."""
    score: str = ""
    """The exactly known metric (loss, gradient_norm) that decides; by default that of the task."""
    otherwise: Sequence[Mapping[str, Any]] = ()
    """Changes of options and plan, tried in turn for a method that refuses the problem as it is: a step in every round,
    or all data in one place. The number of samples stays the same."""

    def poses(self) -> list[tuple[dict[str, Any], Plan]]:
        """Return the problem's options and the plan: as they are, and with each of the changes."""
        sizes = {one.name for one in fields(Plan)}
        plan = Plan(self.rounds, self.local_steps, self.outer_batch, self.inner_batch, clip=self.clip)
        return [
            (
                {**self.options, **{name: value for name, value in changes.items() if name not in sizes}},
                replace(plan, **{name: value for name, value in changes.items() if name in sizes}),
            )
            for changes in ({}, *self.otherwise)
        ]


@dataclass(frozen=True, kw_only=True)
class LeaderboardSettings(Settings):
    """The settings of the experiment."""

    contests: Mapping[str, Contest]
    """By problem."""
    methods: Sequence[str]
    """Methods as on the command line; your own as path.py:Name."""
    factors: Sequence[float]
    """The learning rates, as multiples of the contest's."""
    turns: int
    """Turns of the search after that for the learning rate, with two trials each."""
    trial_seed: int = 100
    """The seed of trials, which is none of those of the final runs."""
    seeds: Sequence[int] = field(default_factory=lambda: [0, 1, 2])

    def __post_init__(self) -> None:
        super().__post_init__()
        typed = {name: one if isinstance(one, Contest) else Contest(**one) for name, one in self.contests.items()}
        object.__setattr__(self, "contests", typed)

    def limited_to(self, data: Sequence[str]) -> "LeaderboardSettings":
        """Return these settings for some of the problems only."""
        require_known(data, list(self.contests))
        return replace(self, contests={name: one for name, one in self.contests.items() if name in data})

    def with_methods(self, texts: Sequence[str]) -> "LeaderboardSettings":
        """Return these settings with further methods."""
        for text in texts:
            if text in self.methods:
                raise InvalidValue("algorithm", text, "left out: it takes part already")
        parse_methods(texts)
        return replace(self, methods=[*self.methods, *texts])

    def own_files(self) -> list[user_code.Source]:
        """Return the user's files that define methods."""
        names = [level.name for text in self.methods for level in MethodSpec.parse(text).levels({})]
        return list(dict.fromkeys(user_code.read_source("algorithm", name) for name in names if is_own(name)))


ONE_STEP = {"local_steps": 1}
"""For methods without local steps: SLATE, FedMeta."""

POOLED = {"train_on": "pooled", "local_steps": 1}
"""For methods of one machine, where a problem can be asked to pool the sites' data."""

ALONE = {"clients": 1, "local_steps": 1}
"""For the same methods, where a single client has all the data; it draws the samples of all clients."""

N = 8
"""Clients of most contests."""


def _contests() -> dict[str, Contest]:
    few: dict[str, Any] = {"clients": N}
    tasks: dict[str, Any] = {"validation_tasks": 30, "test_tasks": 100, "client_tasks": 1, "queries": 5}
    glyphs: dict[str, Any] = {"data": "glyphs", "clients": 4, "filters": 8, **tasks}
    digits: dict[str, Any] = {"data": "digits", **few}
    rare: dict[str, Any] = {**digits, "removed": 0.95}
    papers: dict[str, Any] = {**rare, "bounded": False, "logarithm": False}
    return {
        "nested_quadratic": Contest(
            options={**few, "dimension": 10},
            **_plan(50, 10, 4, 8),
            rate=0.01,
            otherwise=[ONE_STEP],
        ),
        "invariant_logistic": Contest(
            options={**few, "test_points": 2000, "unlike_truth": 0.5},
            **_plan(50, 10, 4, 8),
            rate=0.1,
            score="gradient_norm",
            otherwise=[ONE_STEP],
        ),
        "instrumental": Contest(options=few, **_plan(50, 10, 8, 8), rate=0.1, otherwise=[ONE_STEP]),
        "policy_evaluation": Contest(options=few, **_plan(50, 10, 8, 4), rate=0.5, otherwise=[ONE_STEP]),
        "information": Contest(options=few, **_plan(50, 10, 8, 4), rate=1.0, otherwise=[ONE_STEP]),
        "sinkhorn_dro": Contest(options=few, **_plan(30, 10, 8, 8), rate=0.01, otherwise=[ONE_STEP, ALONE]),
        "kl_dro": Contest(options=few, **_plan(30, 10, 1, 16), clip=1.0, rate=0.003, otherwise=[ONE_STEP, ALONE]),
        "classification": Contest(
            options={**digits, "alpha": 0.3}, **_plan(25, 8, 8, 1), rate=1.0, otherwise=[ONE_STEP, ALONE]
        ),
        "invariant_images": Contest(options=few, **_plan(25, 8, 8, 2), rate=0.3, otherwise=[ONE_STEP, ALONE]),
        "ndcg": Contest(options=few, **_plan(25, 8, 8, 8), rate=1.0, otherwise=[ONE_STEP, ALONE]),
        "contrastive": Contest(options=few, **_plan(20, 8, 8, 8), rate=0.03, otherwise=[ONE_STEP, ALONE]),
        "auprc": Contest(options=papers, **_plan(25, 8, 8, 32), clip=1.0, rate=0.5, otherwise=[ONE_STEP, POOLED]),
        "partial_auc": Contest(options=rare, **_plan(25, 8, 8, 32), clip=1.0, rate=0.5, otherwise=[ONE_STEP, POOLED]),
        "auroc": Contest(options=rare, **_plan(25, 8, 40, 1), rate=1.0, otherwise=[ONE_STEP, POOLED]),
        "cross_entropy": Contest(options=rare, **_plan(25, 8, 40, 1), rate=1.0, otherwise=[ONE_STEP, POOLED]),
        "robust": Contest(options=digits, **_plan(25, 8, 1, 20), rate=0.1, otherwise=[ONE_STEP]),
        "personalised": Contest(
            options=digits, **_plan(25, 8, 8, 8), rate=0.5, otherwise=[ONE_STEP, {"inner_steps": 0}]
        ),
        "maml": Contest(options=glyphs, **_plan(10, 5, 1, 1), evaluations=2, rate=0.5, otherwise=[ONE_STEP]),
        "pretraining": Contest(options=glyphs, **_plan(10, 8, 20, 1), evaluations=2, rate=1.0, otherwise=[ONE_STEP]),
    }


def _plan(rounds: int, q: int, b: int, m: int) -> dict[str, Any]:
    return {"rounds": rounds, "local_steps": q, "outer_batch": b, "inner_batch": m}


def settings(quick: bool) -> LeaderboardSettings:
    """Return the settings of the full experiment; `quick` has three problems, ten methods and two learning rates."""
    contests = _contests()
    if not quick:
        return LeaderboardSettings(
            contests=contests, methods=list(ALGORITHMS), factors=[0.1, 0.3, 1.0, 3.0, 10.0], turns=1
        )
    few = ("nested_quadratic", "kl_dro", "auprc")
    some = ("FCSG", "FCSG-M", "Acc-FCSG-M", "MimeLite", "FedAdam", "FedAvg", "Local-SCGDM", "SOX", "CODA+", "BSGD")
    return LeaderboardSettings(
        contests={name: replace(contests[name], rounds=10) for name in few},
        methods=list(some),
        factors=[1.0, 3.0],
        turns=0,
    )
