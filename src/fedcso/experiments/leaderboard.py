"""Every method on every problem that it fits, with equal numbers of samples and of trials: who is ahead, and where?

A contest is a problem in a small size. Each method is tuned at the full length of its runs, with a seed of its own and
by validation data where there are any, and then run with the final seeds. All of them draw the same number of ξ, and m
inner samples for each. A method that refuses a problem, or fails in every trial, is left out with a note.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from fedcso.algorithms import ALGORITHMS
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm
from fedcso.core.algorithm import settings as hyper_parameters
from fedcso.core.errors import FedcsoError
from fedcso.core.evaluation import GRADIENT_NORM, OBJECTIVE
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.user_code import is_own
from fedcso.engines.choice import deciding_metric
from fedcso.engines.job import Job
from fedcso.experiments import leaderboard_report as report
from fedcso.experiments import trials
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.leaderboard_ranks import Entry
from fedcso.experiments.leaderboard_settings import Contest, LeaderboardSettings, settings
from fedcso.experiments.trials import Space
from fedcso.problems import PROBLEMS
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.folder import RunFolder
from fedcso.runs.methods import MethodSpec
from fedcso.runs.study import Unit

log = logging.getLogger("fedcso")

LARGE = 10
"""B' of PAGE and BSpiderBoost as a multiple of b; their runs are shorter by as much."""

STAGES = 4
"""Stages of a run of CODA+ and CODASCA."""


class Pose(NamedTuple):
    """A problem as a method can run it: the task, the plan, and the method's settings that follow from the plan."""

    options: Mapping[str, Any]
    task: Task
    plan: Plan
    common: Mapping[str, int]


class LeftOut(NamedTuple):
    """A method that does not take part in a contest."""

    problem: str
    method: str
    reason: str


def execute(folder: RunFolder, config: LeaderboardSettings) -> None:
    """Tune and run what is left, rank the methods, and write the pages."""
    folder.require_same_sources()
    run = Runner(folder, config, warns=False)
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    for problem, contest in config.contests.items():
        for text in config.methods:
            try:
                entries.append(_compete(run, config, problem, contest, MethodSpec.parse(text)))
            except Interrupted:
                raise
            except FedcsoError as reason:
                left_out.append(LeftOut(problem, text, str(reason)))
                log.info("%s does not take part in %s: %s", text, problem, reason)
        _task.cache_clear()  # the data of one problem at a time
    report.write(folder, config, entries, left_out, run.seconds)


def _compete(run: Runner, config: LeaderboardSettings, problem: str, contest: Contest, spec: MethodSpec) -> Entry:
    """Tune a method and run it with the final seeds; raise `FedcsoError` if it does not fit or always fails."""
    pose = pose_for(problem, contest, spec)
    metric = scored_by(contest, pose.task)
    labels = {"problem": problem, **pose.options, **_fingerprints(spec)}

    def unit(name: str, task: Task, some: Sequence[trials.Settings], seeds: Sequence[int]) -> Unit:
        methods = [build(spec, pose, values) for values in some]
        return Unit(f"{problem} {spec.text} {name}", task, pose.plan, methods, seeds, labels=labels)

    def evaluate(turn: int, some: dict[str, list[trials.Settings]]) -> dict[str, list[float]]:
        tried = unit(f"trials {turn}", pose.task.for_tuning(), some[spec.text], [config.trial_seed])
        tuned_by = metric.on_validation() if pose.task.validates and not contest.score else metric
        sign = -1 if metric.higher_is_better else 1
        return {spec.text: [sign * last(trace, tuned_by) for (trace,) in run.outcomes([tried])[tried.name]]}

    rates = [float(f"{contest.rate * factor:.6g}") for factor in config.factors]
    tried = trials.search({spec.text: space(spec, pose, rates)}, config.turns, evaluate)[spec.text]
    if not any(math.isfinite(trial.score) for trial in tried):
        raise FedcsoError(f"all {len(tried)} trials of {spec.text} failed: its loss or model was not finite")
    chosen = trials.best(tried)
    final = unit("final", pose.task.for_reporting(), [chosen], config.seeds)
    (traces,) = run.outcomes([final])[final.name]
    return Entry(
        problem=problem,
        method=spec.text,
        group=_group(spec),
        metric=metric.on_test() if pose.task.validates and not contest.score else metric,
        scores=[last(trace, metric) for trace in traces],
        curves=[trace.rows for trace in traces],
        costs=traces[0].costs,
        settings=chosen,
        at_edge=len(rates) > 2 and not min(rates) < chosen["learning_rate"] < max(rates),
    )


def pose_for(problem: str, contest: Contest, spec: MethodSpec) -> Pose:
    """Return the first pose of the problem that a method accepts; raise its first refusal if there is none."""
    (options, plan), *_ = contest.poses()
    clients = len(_task(problem, **options).clients)
    budget = clients * plan.total_steps * plan.outer_batch
    refusals = []
    for options, plan in contest.poses():
        try:
            task = _task(problem, **options)
            task = replace(task, stands_for=clients // len(task.clients))  # a single client draws the samples of all
            whole = plan.for_task(task)
            common = {"large_batch": LARGE * whole.outer_batch, "stage_steps": max(1, plan.total_steps // STAGES)}
            own = {name: value for name, value in common.items() if name in spec.hyper_parameters({})}
            method = spec.build(own).algorithm
            Job(method, task, whole)
        except FedcsoError as reason:
            refusals.append(reason)
            continue
        rounds = rounds_within(budget, method, task, plan)
        return Pose(
            options, task, replace(plan, rounds=rounds, evaluate_every=max(1, rounds // contest.evaluations)), own
        )
    raise refusals[0]


def rounds_within(budget: int, method: Algorithm, task: Task, plan: Plan) -> int:
    """Return the number of rounds in which all clients together draw at most `budget` outer samples, at least one."""
    whole = plan.for_task(task)
    drawn, rounds = 0, 0
    while drawn <= budget:
        drawn += len(task.clients) * sum(method.outer_batch(t, whole) for t in whole.steps(rounds))
        rounds += 1
    return max(1, rounds - 1)


def scored_by(contest: Contest, task: Task) -> Metric:
    """Return the metric that decides: the contest's own, else the judge's, else F if it is known exactly."""
    if contest.score:
        return {one.name: one for one in (OBJECTIVE, GRADIENT_NORM)}[contest.score]
    return task.judge.metric(str(task.judge.select)) if task.validates else deciding_metric(task)


def space(spec: MethodSpec, pose: Pose, rates: Sequence[float]) -> Space:
    """Return what a method chooses from: learning rates, and three values of each further real number that it has.

    These are its default, a third of it, and three times as much (of a number below 1, at most half way from it to 1).
    """
    real = {
        name: value
        for name, value in hyper_parameters(build(spec, pose, {}))
        if isinstance(value, float) and value > 0 and name != "learning_rate"
    }
    above = {name: min(3 * value, (1 + value) / 2) if value < 1 else 3 * value for name, value in real.items()}
    return Space(rates, {name: (value / 3, value, above[name]) for name, value in real.items()}, start=real)


def build(spec: MethodSpec, pose: Pose, values: Mapping[str, float]) -> Algorithm:
    """Return the method with these settings."""
    return spec.build(pose.common, values).algorithm


def last(trace: Trace, metric: Metric) -> float:
    """Return the metric of the last iterate; nan if the run failed."""
    return math.nan if trace.failure else trace.rows[-1][metric.name]


@cache
def _task(problem: str, **options: Any) -> Task:
    return PROBLEMS[problem](**options)


def _group(spec: MethodSpec) -> str:
    found = [title for title, names in ALGORITHMS.groups().items() for name in names if ALGORITHMS[name] is spec.kind]
    return found[0] if found else "your own"


def _fingerprints(spec: MethodSpec) -> dict[str, str]:
    """Return the digests of the user's files, so that outcomes of another version of a method do not count."""
    own = [level.name for level in spec.levels({}) if is_own(level.name)]
    return {name: user_code.read_source("algorithm", name).fingerprint[:16] for name in own}


LEADERBOARD = Experiment("Every method on every problem that it fits, tuned alike.", settings, execute)
