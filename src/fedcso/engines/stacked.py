"""Small models: all settings of a grid, all seeds and all clients in one automatic differentiation.

Leaves get leading axes (grid point g, row r), a row being one client of one seed. Each loss depends on
its own x alone, so the gradient of their sum is every client's gradient. All grid points see the same
samples. A whole grid costs little more than one setting.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import torch

from fedcso.core.algorithm import Algorithm, State, grid
from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError, NonFinite
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, steps_of
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, index, leaves, map_leaves, split, stack, to_device
from fedcso.core.workers import one_thread
from fedcso.engines.client import local_round, portions
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Report, communication, no_one_left
from fedcso.engines.slots import Slots, choose


def possible(job: Job) -> bool:
    """True if method and problem can deal with many clients at once."""
    problem, estimator = job.problem, job.estimator
    if not job.algorithm.stacks or (problem.broadcasts and estimator.is_plain):
        return job.algorithm.stacks
    # Not every forward pass can be batched by vmap (one that looks at a value can't): trying tells.
    data = next((data for data in job.clients if problem.trains(data)), job.clients[0])
    (batch,) = steps_of(estimator.draw(problem, data, stream(0, 0, 0), 1, 1, 2).batch, 1)
    x = problem.init(stream(0, 0, 0))
    try:
        Oracle.cohort(problem, 1, estimator).grad(stack([stack([x])]), stack([batch]))
    except (RuntimeError, ValueError):
        return False
    return True


class Stacked(Rounds):
    """Rounds of many runs in step: the server's leaves are (g, seed, ...), those at work (g, row, ...)."""

    def __init__(self, algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]):
        self.jobs = [replace(job, algorithm=a, seed=seed) for a in algorithms for seed in seeds]
        self.job, self.seeds = job, list(seeds)
        self.algorithm = grid(algorithms)
        self.shape = len(algorithms), len(seeds)
        first_setting = self.jobs[: len(seeds)]
        start = stack([one.start() for one in first_setting])
        self.shared: dict[str, Tree] = self.algorithm.init(
            map_leaves(lambda leaf: leaf.expand(self.shape[0], *leaf.shape).contiguous(), start)
        )
        self.local = Slots(self.shape, len(job.clients), self.algorithm.durable)
        self.output_steps = [one.output_step() for one in first_setting]
        self.failures: dict[int, FedcsoError] = {}

    def state(self) -> dict[str, Tree]:
        """The server's states and the clients' local ones, stacked as they are."""
        return {"shared": self.shared, "local": self.local.state()}

    def load(self, state: dict[str, Tree]) -> None:
        """Go on from such a state."""
        self.shared = state["shared"]
        self.local.load(state["local"])

    def resize(self, inner_batch: int) -> None:
        """From now on draw so many inner samples for each ξ."""
        self.job, *self.jobs = (one.resized(inner_batch) for one in (self.job, *self.jobs))

    def play(self, round: int) -> list[Report | FedcsoError]:
        """A round of all runs."""
        clients = [job.participants(round) for job in self.jobs[: self.shape[1]]]
        answers = Answers(self.job, self.shape[0])
        state, snapshots, drawn = self.local_steps(round, clients, answers)

        cohort = (*self.shape, len(clients[0]))
        sent = _by_client(state.shared, cohort)
        healthy = torch.isfinite(torch.stack(answers.probes)).all(0).reshape(cohort)
        for leaf in leaves(sent):
            healthy &= torch.isfinite(_sum_from(leaf, 3))
        dropped = self.explain(round, clients, healthy.cpu())

        weights = torch.tensor([self.job.weights(some) for some in clients], dtype=torch.float64)
        weights = weights.to(self.job.device).expand(cohort)
        if self.job.plan.on_nonfinite == "drop":
            weights = weights * healthy
        present = healthy.sum(-1)
        before, mean = self.shared, _mean(sent, weights)
        self.shared = self.algorithm.aggregate(before, mean, present.double() / len(self.job.able))
        self.local.put(clients, _by_client(state.local, cohort), healthy)

        mean_losses = _mean(torch.stack(answers.losses).mean(0).reshape(cohort), weights).flatten().tolist()
        outputs = {s: _mean(x, weights[:, s]) for s, x in snapshots.items()}
        counts = present.flatten().tolist()
        samples = (healthy.cpu() * drawn.reshape(2, 1, *cohort[1:])).sum(-1).flatten(1).T.tolist()
        reports: list[Report | FedcsoError] = []
        for i, shared in enumerate(split(self.shared, self.shape)):
            g, s = divmod(i, self.shape[1])
            if i in self.failures:
                reports.append(self.failures[i])
                continue
            reports.append(
                Report(
                    shared=shared,
                    participants=clients[s],
                    dropped=dropped[i],
                    costs=Costs(*samples[i])
                    + answers.oracle.costs * counts[i]
                    + communication(
                        self.jobs[i], round, index(before, (g, s)), index(mean, (g, s)), clients[s], counts[i]
                    ),
                    train_loss=mean_losses[i],
                    output=index(outputs[s], g) if s in outputs else None,
                )
            )
        return reports

    def parts(self, steps: range, batch: Batch) -> list[tuple[range, Batch]]:
        """Steps that are taken in one go, and their samples: here every one by itself."""
        return [(range(t, t + 1), one) for t, one in zip(steps, steps_of(batch, len(steps)), strict=True)]

    def advance(self, state: State, answers: "Answers", batch: Batch, steps: range) -> State:
        """Take such a part."""
        return self.algorithm.step(state, answers.oracle, batch, steps[0])

    def local_steps(
        self, round: int, clients: list[list[int]], answers: "Answers"
    ) -> tuple[State, dict[int, Tree], torch.Tensor]:
        """q steps of every row, the models after their seeds' output step, numbers of outer and inner samples."""
        job, cohort = self.job, (*self.shape, len(clients[0]))
        rows = [(seed, client) for seed, some in zip(self.seeds, clients, strict=True) for client in some]
        generators = [stream(seed, client, round) for seed, client in rows]
        snapshots: dict[int, Tree] = {}
        counts = torch.zeros(2, len(rows), dtype=torch.int64)
        state = self.receive(clients, cohort)
        for steps, b in portions(job, round):
            drawn = [
                job.estimator.draw(job.problem, job.clients[client], rng, len(steps), b, job.plan.inner_batch)
                for (_, client), rng in zip(rows, generators, strict=True)
            ]
            counts += torch.tensor([[one.costs.outer_samples, one.costs.inner_samples] for one in drawn]).T
            batch = to_device(stack([one.batch for one in drawn], axis=1), job.device)
            for part, samples in self.parts(steps, batch):
                state = self.advance(state, answers, samples, part)
                for s, output_step in enumerate(self.output_steps):
                    if output_step == part[-1]:
                        snapshots[s] = index(_by_client(state.shared["x"], cohort), (slice(None), s))
        return self.algorithm.send(state, job.plan.steps(round)), snapshots, counts

    def receive(self, clients: list[list[int]], cohort: tuple[int, int, int]) -> State:
        """Every row takes up the server's message with the local state it has, if it has one."""
        rows = cohort[1] * cohort[2]

        def to_rows(leaf: torch.Tensor) -> torch.Tensor:
            return leaf.unsqueeze(2).expand(*cohort, *leaf.shape[2:]).reshape(cohort[0], rows, *leaf.shape[2:])

        shared = map_leaves(to_rows, self.shared)
        local, known = self.local.take(clients)
        if local is None:
            return self.algorithm.receive(shared, None)
        state = self.algorithm.receive(shared, map_leaves(lambda leaf: leaf.flatten(1, 2), local))
        if known.all():
            return state
        fresh = self.algorithm.receive(shared, None)
        mask = known.flatten(1)
        return State(*(map_leaves(lambda a, b: choose(mask, a, b), *both) for both in zip(state, fresh, strict=True)))

    def explain(self, round: int, clients: list[list[int]], healthy: torch.Tensor) -> list[list[Fault]]:
        """Why clients broke: the round is played again for each of them alone, watched at every step."""
        dropped: list[list[Fault]] = [[] for _ in self.jobs]
        for g, s, k in (~healthy).nonzero().tolist():
            i, client = g * self.shape[1] + s, clients[s][k]
            if i in self.failures:
                continue
            reason = self.replay(self.jobs[i], client, round, (g, s))
            if self.job.plan.on_nonfinite == "stop":
                self.failures[i] = reason
            else:
                dropped[i].append(reason)
                if len(dropped[i]) == len(clients[s]):
                    self.failures[i] = no_one_left(round, dropped[i])
        return dropped

    def replay(self, job: Job, client: int, round: int, run: tuple[int, int]) -> NonFinite:
        """One client's round on its own, which raises what went wrong."""
        try:
            local_round(job, client, round, index(self.shared, run), self.local.one(run, client))
        except NonFinite as reason:
            return reason
        return NonFinite("update", client, round, job.plan.steps(round)[-1], job.seed)


class Answers:
    """Asks the oracle for all rows at once, and keeps what it answers in a round: losses, and numbers that are finite
    if all of a gradient was. They are looked at once a round.

    Where x is free, a gradient that is not finite stays in it, and the losses will do; a projection could hide it.
    """

    def __init__(self, job: Job, settings: int):
        self.oracle = Oracle.cohort(job.problem, settings, job.estimator, self.keep, job.plan.clip)
        self.losses: list[torch.Tensor] = []
        self.probes: list[torch.Tensor] = self.losses if job.problem.project is None else []

    def keep(self, loss: torch.Tensor, gradient: Tree) -> None:
        """A step's."""
        self.losses.append(loss)
        if self.probes is not self.losses:  # a finite sum has finite summands
            self.probes.append(sum((_sum_from(leaf, 2) for leaf in leaves(gradient)), loss))


def _sum_from(leaf: torch.Tensor, axis: int) -> torch.Tensor:
    """Sum over all axes from the given one on."""
    return leaf.flatten(axis).sum(-1) if leaf.ndim > axis else leaf


def _by_client(tree: Tree, cohort: tuple[int, int, int]) -> Tree:
    """(g, row, ...) as (g, seed, client, ...)."""
    return map_leaves(lambda leaf: leaf.reshape(*cohort, *leaf.shape[2:]), tree)


def _mean(tree: Tree, weights: torch.Tensor) -> Tree:
    """Weighted mean over the clients' axis, which is the weights' last, in float64; weight 0 hides a NaN."""
    share = weights / weights.sum(-1, keepdim=True)

    def mean(leaf: torch.Tensor) -> torch.Tensor:
        aligned = share.reshape(share.shape + (1,) * (leaf.ndim - share.ndim))
        visible = torch.where(aligned > 0, leaf, torch.zeros_like(leaf))
        return (visible.to(torch.float64) * aligned).sum(share.ndim - 1).to(leaf.dtype)

    return map_leaves(mean, tree)


def start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int], kind: type[Stacked]) -> Iterator[Rounds]:
    """Yield the rounds of such a kind, played on one of torch's threads."""
    if not possible(job):
        method, problem = type(job.algorithm).__name__, type(job.problem).__name__
        raise FedcsoError(f"{method} on {problem} can't be stacked; use the engine simulation, which knows another way")
    with one_thread():
        yield kind(algorithms, job, seeds)


def can_play_together(job: Job) -> bool:
    """True unless each run chooses an m of its own."""
    return not job.plan.adaptive


ENGINE = Engine(contextmanager(partial(start, kind=Stacked)), can_play_together)
