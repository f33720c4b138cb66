"""Plan, Trace, random streams, and the loop over rounds that all engines share.

An engine plays rounds: it knows where clients live and how their local steps are carried out. What
comes between rounds (evaluation, counting, choosing the iterates to report) is the same for all and
stands here. Every module in `fedcso.engines` exports

    run(algorithm, problem, clients, plan, seed=0, *, test=None, estimator=plain, device="cpu",
        on_round=None) -> Trace
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch

from fedcso.algorithm import Algorithm
from fedcso.costs import Costs
from fedcso.errors import (
    FedcsoError,
    InvalidValue,
    NonFinite,
    is_number,
    require,
    require_choice,
    require_count,
)
from fedcso.estimator import Estimator, plain
from fedcso.metrics import evaluate, is_better
from fedcso.problem import Problem
from fedcso.tree import Tree, nbytes, to_device

# Streams that belong to no client.
SERVER, START, OUTPUT = -1, -2, -3


def stream(seed: int, client: int, round: int) -> torch.Generator:
    """The random numbers of one client in one round.

    They depend on nothing else, so clients are independent, all engines draw the same samples, the
    order of clients does not matter, a run resumes without saved generators, and nothing random
    has to travel.
    """
    entropy = np.random.SeedSequence((seed, client % 2**32, round)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(entropy[0]))


@dataclass(frozen=True)
class Plan:
    """How long and in what portions a run goes, whatever the algorithm."""

    rounds: int = 100
    """Communication rounds; T = rounds · local_steps."""
    local_steps: int = 50
    """q, the steps between two communications."""
    outer_batch: int = 1
    """b, outer samples per step."""
    inner_batch: int = 10
    """m, inner samples per outer sample."""
    initial_batch: int | None = None
    """B, outer samples of the very first estimate; b if not given."""
    participation: float | int = 1.0
    """How many clients take part in a round, drawn by seed: a fraction (float) or a number (int)."""
    weights: Literal["uniform", "size"] = "uniform"
    """How clients count in averages: all alike as in the paper, or by the size of their data."""
    evaluate_every: int = 1
    """Rounds between two evaluations; the start and the last round are always evaluated."""
    on_nonfinite: Literal["stop", "drop"] = "stop"
    """A client whose loss, gradient or update is not finite stops the run, or is left out of the round."""

    def __post_init__(self) -> None:
        for name in ("rounds", "local_steps", "outer_batch", "inner_batch", "evaluate_every"):
            require_count(name, getattr(self, name))
        if self.initial_batch is not None:
            require_count("initial_batch", self.initial_batch)
        require(
            "participation",
            self.participation,
            lambda p: is_number(p) and (p >= 1 if isinstance(p, int) else 0 < p <= 1),
            "a fraction in (0, 1] (float) or a number of clients, at least 1 (int)",
        )
        require_choice("weights", self.weights, ("uniform", "size"))
        require_choice("on_nonfinite", self.on_nonfinite, ("stop", "drop"))

    @property
    def initial(self) -> int:
        """B."""
        return self.outer_batch if self.initial_batch is None else self.initial_batch

    @property
    def total_steps(self) -> int:
        """T."""
        return self.rounds * self.local_steps

    def steps(self, round: int) -> range:
        """The steps t of a round."""
        return range(round * self.local_steps, (round + 1) * self.local_steps)

    def participants(self, seed: int, round: int, clients: int) -> list[int]:
        """Which clients take part in a round, in ascending order."""
        if isinstance(self.participation, float):
            number = max(1, round_half_up(self.participation * clients))
        else:
            number = self.participation
        if number == clients:
            return list(range(clients))
        chosen = torch.randperm(clients, generator=stream(seed, SERVER, round))[:number]
        return sorted(chosen.tolist())


def round_half_up(value: float) -> int:
    """To the nearest whole number, halves upwards (Python's own `round` goes to the even one)."""
    return int(value + 0.5)


def require_single_machine(method: str, plan: Plan, clients: int) -> None:
    """For methods of one machine: a single client (with all the data) and q = 1."""
    if clients != 1:
        raise InvalidValue(
            "clients", clients, f"1 for {method}, which runs on one machine: pool the data first"
        )
    if plan.local_steps != 1:
        raise InvalidValue("local_steps", plan.local_steps, f"1 for {method}, which has no local steps")


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

    def __post_init__(self) -> None:
        require_count("seed", self.seed, least=0)
        number = len(self.clients)
        require("clients", number, lambda n: n >= 1, "at least one client's data")
        if isinstance(self.plan.participation, int) and self.plan.participation > number:
            raise InvalidValue(
                "participation", self.plan.participation, f"at most the {number} clients there are"
            )
        self.algorithm.check(self.plan, number)

    def weights(self, clients: Sequence[int]) -> list[float]:
        """How much each of the given clients counts (not normalised)."""
        if self.plan.weights == "uniform":
            return [1.0] * len(clients)
        return [float(self.problem.size(self.clients[n])) for n in clients]

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

    jobs: Sequence[Job]

    def play(self, round: int) -> list[Report | FedcsoError]:
        """Carry out a round of every run; a run that broke off is answered by the reason."""


@dataclass
class Trace:
    """What a run returns."""

    rows: list[dict[str, float]] = field(default_factory=list)
    """One per evaluation: round, step, metrics, counted costs, seconds."""
    last: Tree = None
    """x̄ after the last round."""
    best: Tree = None
    """x̄ at the evaluation with the best `Problem.select` metric."""
    output: Tree = None
    """x̄_t at a uniformly random step t, which the theorems speak of."""
    shared: Tree = None
    """The server's whole final state (x, u, …)."""
    costs: Costs = field(default_factory=Costs)
    participation: list[int] = field(default_factory=list)
    """How many rounds each client took part in."""
    dropped: list[NonFinite] = field(default_factory=list)
    """Updates left out because they were not finite."""
    failure: FedcsoError | None = None
    """Why the run broke off, if it did (only in grids; a single run raises it)."""

    def column(self, name: str) -> list[float]:
        """One quantity over all evaluations."""
        return [row[name] for row in self.rows]


OnRound = Callable[[int, Sequence[Trace]], None]
"""Called after every round with the number of rounds done and the traces so far."""


def drive(rounds: Rounds, on_round: OnRound | None = None) -> list[Trace]:
    """Play all rounds; between them evaluate, count, and keep the iterates that are to be reported."""
    jobs = rounds.jobs
    plan = jobs[0].plan
    models = [job.start() for job in jobs]
    traces = [Trace(last=x, best=x, output=x, participation=[0] * len(jobs[0].clients)) for x in models]
    started = time.perf_counter()
    _record(jobs, traces, models, 0, [float("nan")] * len(jobs), started)
    for r in range(plan.rounds):
        reports = rounds.play(r)
        losses = [float("nan")] * len(jobs)
        for i, (trace, report) in enumerate(zip(traces, reports, strict=True)):
            if isinstance(report, FedcsoError):
                trace.failure = trace.failure or report
                continue
            losses[i] = report.train_loss
            trace.last, trace.shared = report.shared["x"], report.shared
            trace.output = trace.output if report.output is None else report.output
            trace.dropped += report.dropped
            trace.costs += report.costs
            for client in report.participants:
                trace.participation[client] += 1
        if (r + 1) % plan.evaluate_every == 0 or r + 1 == plan.rounds:
            _record(jobs, traces, [trace.last for trace in traces], r + 1, losses, started)
        if on_round:
            on_round(r + 1, traces)
        if all(trace.failure for trace in traces):
            break
    return traces


def _record(
    jobs: Sequence[Job],
    traces: Sequence[Trace],
    models: Sequence[Tree],
    done: int,
    train_losses: Sequence[float],
    started: float,
) -> None:
    job = jobs[0]
    everyone = range(len(job.clients))
    results = evaluate(job.problem, models, job.test, job.clients, job.weights(everyone))
    for trace, x, metrics, train_loss in zip(traces, models, results, train_losses, strict=True):
        if trace.failure:
            continue
        row = {"round": done, "step": done * job.plan.local_steps, "train_loss": train_loss, **metrics}
        row |= trace.costs.as_dict() | {"seconds": time.perf_counter() - started}
        select = job.problem.select if job.problem.select in row else "train_loss"
        if is_better(select, row[select], [earlier[select] for earlier in trace.rows]):
            trace.best = x
        trace.rows.append(row)


def only(traces: Sequence[Trace]) -> Trace:
    """The trace of a single run; raises what broke it off."""
    (trace,) = traces
    if trace.failure:
        raise trace.failure
    return trace


def communication(before: Tree, after: Tree, receivers: int, senders: int) -> Costs:
    """The costs of one round's messages: the server's last state down, a state like its next one up."""
    return Costs(rounds=1, bytes_up=senders * nbytes(after), bytes_down=receivers * nbytes(before))


def no_one_left(round: int, dropped: Sequence[NonFinite]) -> FedcsoError:
    """All clients of a round were dropped: there is nothing to average."""
    return FedcsoError(
        f"round {round}: every participating client was dropped; the first because of {dropped[0]}"
    )
