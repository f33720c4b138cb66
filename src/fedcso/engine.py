"""The loop over rounds that all engines share.

An engine plays rounds: it knows where clients live and how their local steps are carried out. What
comes between rounds (evaluation, counting, choosing the iterates to report) is the same for all and
stands here. Every module in `fedcso.engines` exports

    run(algorithm, problem, clients, plan, seed=0, *, test=None, estimator=plain, device="cpu",
        on_round=None, start=None) -> Trace
"""

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch

from fedcso.algorithm import Algorithm
from fedcso.costs import Costs
from fedcso.errors import FedcsoError, InvalidValue, NonFinite, require, require_count
from fedcso.estimator import Estimator, plain
from fedcso.metrics import evaluate, is_better
from fedcso.plan import Plan
from fedcso.problem import Problem
from fedcso.streams import OUTPUT, START, stream
from fedcso.trace import Trace
from fedcso.tree import Tree, nbytes, to_device


@dataclass(frozen=True)
class Job:
    """One run, completely: which method on which problem over which clients, how long, which seed."""

    algorithm: Algorithm
    problem: Problem
    clients: Sequence[Any]
    plan: Plan
    seed: int = 0
    test: Any = None
    estimator: Estimator = plain
    device: str = "cpu"
    able: list[int] = field(init=False, repr=False)
    """The clients that have something to train with."""

    def __post_init__(self) -> None:
        require_count("seed", self.seed, least=0)
        require("clients", len(self.clients), lambda n: n >= 1, "at least one client's data")
        able = [n for n, data in enumerate(self.clients) if self.problem.trains(data)]
        object.__setattr__(self, "able", able)
        require("clients", len(able), lambda n: n >= 1, "at least one with something to train on")
        if isinstance(self.plan.participation, int) and self.plan.participation > len(able):
            raise InvalidValue(
                "participation", self.plan.participation, f"at most the {len(able)} clients there are to train"
            )
        self.algorithm.check(self.plan, self.problem, self.clients)

    def participants(self, round: int) -> list[int]:
        """Which clients take part in a round, in ascending order."""
        return [self.able[place] for place in self.plan.participants(self.seed, round, len(self.able))]

    def weights(self, clients: Sequence[int]) -> list[float]:
        """How much each of the given clients counts (not normalised)."""
        if self.plan.weights == "uniform":
            return [1.0] * len(clients)
        return [float(self.problem.size(self.clients[n])) for n in clients]

    def evaluate(self, models: Sequence[Tree]) -> list[dict[str, float]]:
        """The metrics of some models."""
        return evaluate(self.problem, models, self.test, self.clients, self.weights(range(len(self.clients))))

    def start(self) -> Tree:
        """x_0, on the device, inside X."""
        return to_device(self.problem.project(self.problem.init(stream(self.seed, START, 0))), self.device)

    def output_step(self) -> int:
        """The uniformly random step t whose x̄_t the theorems speak of: 0 ≤ t < T, x̄ taken after it."""
        return int(torch.randint(self.plan.total_steps, (), generator=stream(self.seed, OUTPUT, 0)))


class Report(NamedTuple):
    """What happened in one round of one run."""

    shared: dict[str, Tree]
    """What the server holds after the round and sends next."""
    participants: list[int]
    dropped: list[NonFinite]
    """Participants whose update was left out, and why."""
    costs: Costs
    """Of all participants together; what a dropped one had computed is not counted."""
    train_loss: float
    """Mean of the losses F̂ + r seen in the round's local steps."""
    output: Tree | None
    """x̄_t at the random output step, if it fell into this round."""


class Rounds(Protocol):
    """An engine at work on one or several runs (a grid, several seeds) in step with each other."""

    jobs: list[Job]
    failures: dict[int, FedcsoError]
    """Runs that broke off, by their place in `jobs`, and why."""

    def play(self, round: int) -> list[Report | FedcsoError]:
        """Carry out a round of every run; a run that broke off is answered by the reason."""

    def evaluate(self, models: Sequence[Tree]) -> list[dict[str, float]]:
        """The metrics of each run's model."""

    def state(self) -> dict[str, Tree]:
        """All that the next round depends on: the server's state and the clients' local ones."""

    def load(self, state: dict[str, Tree]) -> None:
        """Go on from such a state."""


class Snapshot(NamedTuple):
    """A run between two rounds: with it, the rest comes out as if nothing had happened."""

    done: int
    """Rounds played."""
    state: dict[str, Tree]
    traces: list[Trace]


class Progress(NamedTuple):
    """What is told after every round."""

    done: int
    traces: Sequence[Trace]
    rounds: Rounds

    def snapshot(self) -> Snapshot:
        """All that is needed to go on from here."""
        return Snapshot(self.done, self.rounds.state(), [copy(trace) for trace in self.traces])


OnRound = Callable[[Progress], None]


def drive(rounds: Rounds, on_round: OnRound | None = None, start: Snapshot | None = None) -> list[Trace]:
    """Play all rounds; between them evaluate, count, and keep the iterates that are to be reported."""
    jobs, plan = rounds.jobs, rounds.jobs[0].plan
    clock = time.perf_counter()
    if start is None:
        models = [job.start() for job in jobs]
        traces = [Trace(last=x, best=x, output=x, participation=[0] * len(jobs[0].clients)) for x in models]
        _record(rounds, traces, 0, [float("nan")] * len(jobs), clock)
    else:
        rounds.load(start.state)
        traces = [copy(trace) for trace in start.traces]  # the snapshot itself stays as it is
        rounds.failures |= {i: trace.failure for i, trace in enumerate(traces) if trace.failure}
        clock -= max(trace.rows[-1]["seconds"] for trace in traces)
    for r in range(start.done if start else 0, plan.rounds):
        reports = rounds.play(r)
        losses = [float("nan")] * len(jobs)
        for i, (trace, report) in enumerate(zip(traces, reports, strict=True)):
            if isinstance(report, FedcsoError):
                trace.failure = report
                continue
            losses[i] = report.train_loss
            trace.last, trace.shared = report.shared["x"], report.shared
            trace.output = trace.output if report.output is None else report.output
            trace.dropped = trace.dropped + report.dropped
            trace.costs += report.costs
            present = set(report.participants)
            trace.participation = [count + (n in present) for n, count in enumerate(trace.participation)]
        if (r + 1) % plan.evaluate_every == 0 or r + 1 == plan.rounds:
            _record(rounds, traces, r + 1, losses, clock)
        if on_round:
            on_round(Progress(r + 1, traces, rounds))
        if all(trace.failure for trace in traces):
            break
    return traces


def _record(rounds: Rounds, traces: Sequence[Trace], done: int, train_losses: Sequence[float], clock: float) -> None:
    """Evaluate the models as they are after `done` rounds."""
    job = rounds.jobs[0]
    results = rounds.evaluate([trace.last for trace in traces])
    for trace, metrics, train_loss in zip(traces, results, train_losses, strict=True):
        if trace.failure:
            continue
        row = {"round": done, "step": done * job.plan.local_steps, "train_loss": train_loss, **metrics}
        counted = {name: count for name, count in trace.costs.as_dict().items() if name != "rounds"}
        row |= counted | {"seconds": time.perf_counter() - clock}
        select = job.problem.select if job.problem.select in row else "train_loss"
        if is_better(select, row[select], [earlier[select] for earlier in trace.rows]):
            trace.best = trace.last
        trace.rows = [*trace.rows, row]


def only(traces: Sequence[Trace]) -> Trace:
    """The trace of a single run; raises what broke it off."""
    (trace,) = traces
    if trace.failure:
        raise trace.failure
    return trace


def communication(
    job: Job, round: int, before: dict[str, Tree], mean: dict[str, Tree], receivers: Sequence[int], senders: int
) -> Costs:
    """The costs of one round's messages: the server's last state down, replies like their mean up."""
    last, steps = set(job.participants(round - 1) if round else ()), job.plan.steps(round)
    informed = sum(client in last for client in receivers)
    down = [nbytes(job.algorithm.downlink(before, was_there, steps)) for was_there in (True, False)]
    return Costs(
        rounds=1,
        bytes_up=senders * nbytes(job.algorithm.uplink(mean)),
        bytes_down=informed * down[0] + (len(receivers) - informed) * down[1],
    )


def no_one_left(round: int, dropped: Sequence[NonFinite]) -> FedcsoError:
    """All clients of a round were dropped: there is nothing to average."""
    return FedcsoError(f"round {round}: every participating client was dropped; the first because of {dropped[0]}")
