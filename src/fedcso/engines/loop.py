"""The loop over rounds that all engines share.

An engine runs rounds: it knows where clients are and how their local steps are executed. What happens between rounds
(evaluation, counting, choosing the iterates to report) is the same for all engines.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fedcso.core.errors import FedcsoError
from fedcso.core.evaluation import GRADIENT_NORM, declare_metrics, merge_metrics
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import Tree
from fedcso.engines.choice import choose, deciding_metric, prefers
from fedcso.engines.job import Job
from fedcso.engines.server import TRAIN_LOSS, Report
from fedcso.engines.snapshot import Snapshot
from fedcso.engines.stopping import MEAN_GRADIENT_NORM, is_exhausted, is_small_enough
from fedcso.theory import monitor


class Rounds(ABC):
    """An engine's implementation of rounds, for one run or for several runs (settings and seeds) together."""

    jobs: list[Job]
    failures: dict[int, FedcsoError]
    """The errors of failed runs, by their index in `jobs`."""

    @abstractmethod
    def run_round(self, round: int) -> list[Report | FedcsoError]:
        """Run a round of every run; return its report, or the error if the run has failed."""

    @abstractmethod
    def state(self) -> dict[str, Tree]:
        """Return the state of the server and of the clients, on which the next round depends."""

    @abstractmethod
    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""

    def evaluate(self, models: Sequence[Tree]) -> list[dict[str, float]]:
        """Return the metrics of each run's model."""
        return self.jobs[0].evaluate(models)

    def agree_on(self, start: Snapshot | None) -> Snapshot | None:
        """Return the snapshot to start from; engines with several processes make sure that all have the same."""
        return start

    def announce(self, progress: "Progress", callbacks: Sequence["Callback"]) -> None:
        """Call the callbacks after a round."""
        for callback in callbacks:
            callback(progress)


class Progress(NamedTuple):
    """What callbacks receive after every round."""

    done: int
    """Completed rounds."""
    traces: Sequence[Trace]
    rounds: Rounds

    @property
    def over(self) -> bool:
        """True if no rounds are left."""
        return over(self.rounds.jobs[0].task, self.rounds.jobs[0].plan, self.done, self.traces)

    @property
    def declared(self) -> DeclaredMetrics:
        """The metrics that the runs record."""
        return declare(self.rounds.jobs[0].task)

    def snapshot(self) -> Snapshot:
        """Return a snapshot from which the run can continue."""
        return Snapshot(self.done, self.rounds.state(), [trace.copied() for trace in self.traces])


Callback = Callable[[Progress], None]
"""A function called after every round; it may raise to stop the run."""


def run_rounds(rounds: Rounds, callbacks: Sequence[Callback] = (), start: Snapshot | None = None) -> list[Trace]:
    """Run all rounds; evaluate and count costs between them, and keep the iterates to be reported."""
    jobs, task, plan = rounds.jobs, rounds.jobs[0].task, rounds.jobs[0].plan
    clock = time.perf_counter()
    start = rounds.agree_on(start)
    if start is None:
        models = [job.start() for job in jobs]
        traces = [Trace(last=x, best=x) for x in models]
        best = [float("nan")] * len(jobs)
        _record(rounds, traces, best, 0, [float("nan")] * len(jobs), clock, range(len(jobs)))
    else:
        rounds.load(start.state)
        traces = [trace.copied() for trace in start.traces]  # the snapshot itself stays as it is
        rounds.failures |= {i: trace.failure for i, trace in enumerate(traces) if trace.failure}
        clock -= max(trace.rows[-1]["seconds"] for trace in traces)
        best = [_best_of(trace.rows, deciding_metric(jobs[0].task)) for trace in traces]
    for r in range(start.done if start else 0, plan.rounds):
        if over(task, plan, r, traces):
            break
        reports = rounds.run_round(r)
        # Runs that have stopped stay as they are while others that are stacked with them go on.
        going = [i for i, trace in enumerate(traces) if not is_exhausted(plan, trace.rows, deciding_metric(task))]
        losses = [float("nan")] * len(jobs)
        for i in going:
            trace, report = traces[i], reports[i]
            if isinstance(report, FedcsoError):
                trace.failure = report
                continue
            losses[i] = report.train_loss
            trace.last, trace.shared = report.shared["x"], report.shared
            trace.output = trace.output if report.output is None else report.output
            trace.dropped = [*trace.dropped, *report.dropped]
            trace.costs += report.costs
            trace.participation.update(report.participants)
        _record_outputs(rounds, traces, [(i, reports[i]) for i in going], r + 1)
        if (r + 1) % plan.evaluate_every == 0 or r + 1 == plan.rounds or monitor.due(plan, r + 1):
            _record(rounds, traces, best, r + 1, losses, clock, going)
        rounds.announce(Progress(r + 1, traces, rounds), callbacks)
    return traces


def over(task: Task, plan: Plan, done: int, traces: Sequence[Trace]) -> bool:
    """Return whether all rounds are done, or every run has failed, reached the plan's ε or exhausted its patience."""
    return done == plan.rounds or all(
        trace.failure is not None
        or is_small_enough(plan, trace.rows)
        or is_exhausted(plan, trace.rows, deciding_metric(task))
        for trace in traces
    )


def declare(task: Task) -> DeclaredMetrics:
    """Return the metrics that runs on a task record, and which of them decides."""
    deciding = deciding_metric(task).name
    return DeclaredMetrics(
        [*declare_metrics(task), MEAN_GRADIENT_NORM, *monitor.METRICS, TRAIN_LOSS],
        deciding,
        task.validates,
        headline=deciding if task.test is None else task.judge.select or deciding,
    )


def _record(
    rounds: Rounds,
    traces: Sequence[Trace],
    best: list[float],
    done: int,
    train_losses: Sequence[float],
    clock: float,
    going: Sequence[int],
) -> None:
    """Evaluate the models of the runs that go on and append a row to each; `best` is each run's best value so far."""
    jobs, job, deciding = rounds.jobs, rounds.jobs[0], deciding_metric(rounds.jobs[0].task)
    results = rounds.evaluate([traces[i].last for i in going])
    for i, found in zip(going, results, strict=True):
        one, trace = jobs[i], traces[i]
        if trace.failure:
            continue
        row = {"round": done, "step": done * job.plan.local_steps, TRAIN_LOSS.name: train_losses[i]}
        row = merge_metrics(row, found)
        if job.plan.epsilon and GRADIENT_NORM.name in row:
            before = trace.rows[-1][MEAN_GRADIENT_NORM.name] if trace.rows else 0.0
            count = len(trace.rows)
            mean_square = (before**2 * count + row[GRADIENT_NORM.name] ** 2) / (count + 1)
            row[MEAN_GRADIENT_NORM.name] = mean_square**0.5
        if monitor.due(job.plan, done):
            row = merge_metrics(row, _diagnosed(one, trace, done))
        counted = {name: count for name, count in trace.costs.as_dict().items() if name != "rounds"}
        row = merge_metrics(row, counted, {"seconds": time.perf_counter() - clock})
        if prefers(deciding, row[deciding.name], best[i]):
            trace.best, best[i] = trace.last, row[deciding.name]
        trace.rows = [*trace.rows, row]


def _best_of(rows: Sequence[dict[str, float]], deciding: Metric) -> float:
    """Return the value of the deciding metric at the iterate chosen so far."""
    chosen = choose(rows, deciding)
    return float("nan") if chosen is None else chosen[deciding.name]


def _record_outputs(
    rounds: Rounds, traces: Sequence[Trace], reports: Sequence[tuple[int, Report | FedcsoError]], done: int
) -> None:
    """Evaluate the random iterates that fell into the last round."""
    met = [i for i, report in reports if isinstance(report, Report) and report.output is not None]
    if not met:
        return
    for i, found in zip(met, rounds.evaluate([traces[i].output for i in met]), strict=True):
        traces[i].output_row = merge_metrics({"round": done, "step": rounds.jobs[i].output_step() + 1}, found)


def _diagnosed(job: Job, trace: Trace, done: int) -> dict[str, float]:
    """Measure bias and noise at the clients of the next round, and count what that costs."""
    some = job.participants(done)
    data, weights = [job.clients[n] for n in some], job.weights(some)
    found = monitor.look(job.problem, trace.last, data, weights, job.plan, job.seed, done)
    trace.costs += found.costs
    return found.columns
