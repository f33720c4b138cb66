"""Small models: all settings of a grid, all seeds and all clients in one automatic differentiation.

Leaves have leading axes (grid point g, row r), where a row is one client of one seed. Each loss depends only on its own
x, so the gradient of their sum contains every client's gradient. All grid points see the same samples, and a whole grid
costs little more than one setting.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from fedcso.core.algorithm import Algorithm, State, grid
from fedcso.core.codec import Memory, Message
from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError, NonFinite
from fedcso.core.estimator import draw_for_all
from fedcso.core.oracle import Cohort
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, index, leaves, map_leaves, nbytes, stack, to_device
from fedcso.core.workers import one_thread
from fedcso.engines.along_axis import AlongAxis, mean
from fedcso.engines.client import Client, local_round, portions
from fedcso.engines.engine import Engine
from fedcso.engines.exchange import open_round
from fedcso.engines.job import Job
from fedcso.engines.local_states import LOCAL, MEMORY
from fedcso.engines.loop import Rounds
from fedcso.engines.recorder import Recorder, sum_from
from fedcso.engines.server import Gathered, Opened, Outcome, Report, begin, fatal, restore_server
from fedcso.engines.slots import Slots, choose


def possible(job: Job) -> bool:
    """Return whether method, codec and problem work with leading axes for many clients."""
    problem, estimator = job.problem, job.estimator
    if not (job.algorithm.stacks and job.codec.stacks):
        return False
    if problem.broadcasts and estimator.is_plain:
        return True
    # vmap can't batch every forward pass (data-dependent control flow, for example), so try it.
    data = job.clients[job.able[0]]
    m = min(2, job.plan.inner_batch)  # the data may have no more
    (batch,) = split_steps(estimator.draw(problem, data, stream(0, 0, 0), 1, 1, m).batch, 1)
    x = problem.init(stream(0, 0, 0))
    try:
        Cohort(problem, 1, estimator).grad(stack([stack([x])]), stack([batch]))
    except (RuntimeError, ValueError):
        return False
    return True


class Stacked(Rounds):
    """Rounds of many runs together: the server's leaves are (g, seed, ...), the clients' (g, row, ...)."""

    def __init__(self, algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]):
        self.jobs = [replace(job, algorithm=a, seed=seed) for a in algorithms for seed in seeds]
        settings = [one.algorithm for one in self.jobs[:: len(seeds)]]
        self.job, self.seeds = replace(job, algorithm=grid(settings)), list(seeds)
        self.algorithm, self.codec = self.job.algorithm, job.codec
        self.shape = len(algorithms), len(seeds)
        first_setting = self.jobs[: len(seeds)]
        start = stack([one.start() for one in first_setting])
        self.server = begin(
            self.job, map_leaves(lambda leaf: leaf.expand(self.shape[0], *leaf.shape).contiguous(), start)
        )
        lasts = self.algorithm.durable
        self.local = Slots(self.shape, lasts)
        self.memory = Slots(self.shape, lasts and self.codec.durable)
        self.output_steps = [one.output_step() for one in first_setting]
        self.failures: dict[int, FedcsoError] = {}

    def state(self) -> dict[str, Tree]:
        """Return the stacked states of servers and clients."""
        return self.server._asdict() | {LOCAL: self.local.state(), MEMORY: self.memory.state()}

    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""
        self.server = restore_server(self.job, state, self.server)
        self.local.load(state[LOCAL])
        if MEMORY in state:
            self.memory.load(state[MEMORY])

    def run_round(self, round: int) -> list[Report | FedcsoError]:
        """Run a round of all runs."""
        opened = open_round(self.job, self.server, round, self.shape)
        clients = [job.participants(round) for job in self.jobs[: self.shape[1]]]
        found = self.local_rounds(opened, clients)
        healthy = found.healthy.cpu()
        dropped = self.explain(opened, clients, healthy)

        weights = torch.tensor([self.job.weights(some) for some in clients], dtype=torch.float64)
        weights = weights.to(self.job.device).expand(healthy.shape)
        if self.job.plan.on_nonfinite == "drop":
            weights = weights * found.healthy
        present = found.healthy.sum(-1)
        outcomes = self.outcomes(clients, found, weights, dropped)
        fraction = present.double() / len(self.job.able)
        self.server, reports = opened.close(Gathered(AlongAxis(found.message, weights), fraction, outcomes))
        self.local.put(clients, found.local, found.healthy)
        self.memory.put(clients, found.memory, found.healthy)
        return reports

    def outcomes(
        self, clients: list[list[int]], found: "Found", weights: torch.Tensor, dropped: list[list[Fault]]
    ) -> list[Outcome | FedcsoError]:
        """Return the outcome of each run's round, or why the run failed."""
        losses = mean(found.losses, weights).flatten().tolist()
        outputs = {s: mean(x, weights[:, s]) for s, x in found.snapshots.items()}
        counts = found.healthy.sum(-1).flatten().tolist()
        known = found.known.sum(-1).flatten().tolist()
        samples = (found.healthy.cpu() * found.samples).sum(-1).flatten(1).T.tolist()
        bytes_up = nbytes(found.message) // found.healthy.numel()
        outcomes: list[Outcome | FedcsoError] = []
        for i in range(len(self.jobs)):
            g, s = divmod(i, self.shape[1])
            if i in self.failures:
                outcomes.append(self.failures[i])
                continue
            outcomes.append(
                Outcome(
                    clients[s],
                    dropped[i],
                    costs=Costs(*samples[i]) + (found.asked + Costs(bytes_up=bytes_up)) * counts[i],
                    train_loss=losses[i],
                    output=index(outputs[s], g) if s in outputs else None,
                    receivers=len(clients[s]),
                    known=known[i],
                )
            )
        return outcomes

    def parts(self, steps: range, batch: Batch) -> list[tuple[range, "Advance"]]:
        """Split steps into parts, each with the function that runs it; here, single steps."""
        samples = zip(steps, split_steps(batch, len(steps)), strict=True)
        return [(range(t, t + 1), partial(self.take_step, one, t)) for t, one in samples]

    def take_step(self, batch: Batch, t: int, state: State, answers: "Recorder") -> State:
        """Run a single step."""
        return self.algorithm.step(state, answers.oracle, batch, t)

    def local_rounds(self, opened: Opened, clients: list[list[int]]) -> "Found":
        """Run the round of all rows: decode the messages, take q steps, encode the replies."""
        job, cohort = self.job, (*self.shape, len(clients[0]))
        rows = [(seed, client) for seed, some in zip(self.seeds, clients, strict=True) for client in some]
        generators = [stream(seed, client, opened.round.number) for seed, client in rows]
        everyone = job.clients
        data = [everyone[client] for _, client in rows]
        answers = Recorder(job, self.shape[0])
        snapshots: dict[int, Tree] = {}
        all_costs: list[list[Costs]] = []
        state, memory, known = self.receive(opened, clients, cohort)
        for steps, b in portions(job.work, opened.round.number):
            drawn, costs = draw_for_all(
                job.estimator, job.problem, data, generators, len(steps), b, job.plan.inner_batch
            )
            all_costs.append(costs)
            batch = to_device(drawn, job.device)
            for part, advance in self.parts(steps, batch):
                state = advance(state, answers)
                for s, output_step in enumerate(self.output_steps):
                    if output_step == part[-1]:
                        snapshots[s] = index(_by_client(state.shared["x"], cohort), (slice(None), s))
        state = self.algorithm.send(state, opened.round.steps)
        message, memory = self.codec.reply(state.shared, memory, opened.round)
        message = _by_client(message, cohort)
        losses, probes = answers.found()
        healthy = torch.isfinite(probes.sum(0)).reshape(cohort)  # a finite sum has finite summands
        for leaf in leaves(self.codec.read(message)):
            healthy &= torch.isfinite(sum_from(leaf, 3))
        return Found(
            message=message,
            local=_by_client(state.local, cohort),
            memory=_by_client(memory, cohort),
            healthy=healthy,
            known=known,
            losses=losses.mean(0).reshape(cohort),
            snapshots=snapshots,
            samples=_samples(all_costs).reshape(2, 1, *cohort[1:]),
            asked=answers.oracle.costs,
        )

    def receive(
        self, opened: Opened, clients: list[list[int]], cohort: tuple[int, int, int]
    ) -> tuple[State, Memory, torch.Tensor]:
        """Let every row receive the server's message, with its memory and local state if it has them."""
        rows = cohort[1] * cohort[2]

        def to_rows(leaf: torch.Tensor) -> torch.Tensor:
            return leaf.expand(*cohort, *leaf.shape[3:]).reshape(cohort[0], rows, *leaf.shape[3:])

        def read(memory: Memory | None) -> tuple[dict[str, Tree], Memory]:
            message = map_leaves(to_rows, opened.messages(known=memory is not None))
            return self.codec.receive(message, memory, opened.round)

        (shared, memory), known = _with_what_is_there(self.memory, clients, read)
        state, _ = _with_what_is_there(self.local, clients, lambda local: self.algorithm.receive(shared, local))
        return state, memory, known

    def explain(self, opened: Opened, clients: list[list[int]], healthy: torch.Tensor) -> list[list[Fault]]:
        """Find out why clients failed by running the round of each of them again, checking every step."""
        dropped: list[list[Fault]] = [[] for _ in self.jobs]
        if bool(healthy.all()):
            return dropped
        for g, s, k in (~healthy).nonzero().tolist():
            i = g * self.shape[1] + s
            if i in self.failures:
                continue
            dropped[i].append(self.replay(opened, i, clients[s][k]))
            left = len(clients[s]) - len(dropped[i])
            if reason := fatal(self.job, opened.round.number, left, dropped[i]):
                self.failures[i] = reason
        return dropped

    def replay(self, opened: Opened, i: int, client: int) -> NonFinite:
        """Run one client's round and return the failure that it raises."""
        job, run, round = self.jobs[i], divmod(i, self.shape[1]), opened.round.number
        local, memory = self.local.one(run, client), self.memory.one(run, client)
        message = opened.message(memory is not None, client, run)
        try:
            local_round(job.work, Client(client, job.clients[client], local, memory), round, message)
        except NonFinite as reason:
            return reason
        return NonFinite("update", client, round, opened.round.steps[-1], job.seed)


class Found(NamedTuple):
    """The results of all rows after a round; leaves are (g, seed, client, ...)."""

    message: Message
    local: dict[str, Tree]
    memory: Memory
    healthy: torch.Tensor
    """Whether all losses, gradients and messages are finite."""
    known: torch.Tensor
    """Whether the client had a memory when the round began."""
    losses: torch.Tensor
    snapshots: dict[int, Tree]
    """By seed, the models after the seed's output step, if that step is in the round."""
    samples: torch.Tensor
    """The numbers of outer and inner samples, (2, 1, seed, client)."""
    asked: Costs
    """The gradients evaluated by each row."""


Advance = Callable[[State, Recorder], State]
"""Runs a part of a round's steps, and records its losses."""


SAMPLES = ("outer_samples", "inner_samples")


def _samples(costs: list[list[Costs]]) -> torch.Tensor:
    """Return the numbers of outer and inner samples (2, row) of costs by portion and row."""
    outer, inner = ([[getattr(one, name) for one in some] for some in costs] for name in SAMPLES)
    return torch.tensor([outer, inner]).sum(1)


def _by_client(tree: Tree, cohort: tuple[int, int, int]) -> Tree:
    """Reshape (g, row, ...) to (g, seed, client, ...)."""
    return map_leaves(lambda leaf: leaf.reshape(*cohort, *leaf.shape[2:]), tree)


def _with_what_is_there(
    slots: Slots, clients: list[list[int]], use: Callable[[dict[str, Tree] | None], Tree]
) -> tuple[Tree, torch.Tensor]:
    """Apply `use` to the rows' states, or to None for rows without one; return the result and which rows have one."""
    held, known = slots.take(clients)
    if held is None:
        return use(None), known
    found = use(map_leaves(lambda leaf: leaf.flatten(1, 2), held))
    if known.all():
        return found, known
    mask = known.flatten(1)
    return map_leaves(lambda a, b: choose(mask, a, b), found, use(None)), known


def start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int], kind: type[Stacked]) -> Iterator[Rounds]:
    """Yield the rounds of the given class, with torch limited to one thread."""
    if not possible(job):
        method, problem = type(job.algorithm).__name__, type(job.problem).__name__
        raise FedcsoError(f"{method} on {problem} can't be stacked; use --engine simulation")
    with one_thread():
        yield kind(algorithms, job, seeds)


ENGINE = Engine(contextmanager(partial(start, kind=Stacked)), runs_grids=lambda job: True)
