"""Compare one local step of federated AUPRC with the ordinary loop.

    python -m benchmarks.auprc

16 clients, the CIFAR network, 8 positives and 32 other examples per step, FCSG-M and Acc-FCSG-M. The ordinary loop does
the same computation for one client after the other, with an `nn.Module` in the usual order (convolution, ReLU, pooling)
and `backward`, once with torch's default number of threads and once with one thread. Both average x and u after the
round's 10 steps.
"""

import copy
import sys
from functools import partial

import torch
from torch import nn

from benchmarks.results import save
from benchmarks.timing import as_rows, describe_machine, interleave, operations, report, report_peak
from fedcso.algorithms import FCSGM, AccFCSGM
from fedcso.core.algorithm import Algorithm
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.estimators.plain import plain
from fedcso.models.score_nets import cifar
from fedcso.problems import AUPRC
from fedcso.problems.scores import Scores

CLIENTS, POSITIVES, OTHERS, MARGIN, RATE, MOMENTUM = 16, 8, 32, 0.5, 0.1, 0.5
STEPS, QUICK_STEPS = 10, 3
SHAPE = torch.Size((3, 32, 32))


def ordinary_network() -> nn.Module:
    blocks: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 64)):
        blocks += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(
        *blocks,
        *(nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 1)),
    )


def gradient(
    network: nn.Module, positives: torch.Tensor, others: torch.Tensor, labels: torch.Tensor
) -> list[torch.Tensor]:
    scores = network(torch.cat([positives, others])).squeeze(1).sigmoid()
    losses = (MARGIN - scores[:POSITIVES, None] + scores[POSITIVES:][None]).relu().square()
    g1 = ((losses * labels).sum(1) + MARGIN**2) / (OTHERS + 1)
    g2 = (losses.sum(1) + MARGIN**2) / (OTHERS + 1)
    network.zero_grad()
    (-(g1 / g2)).mean().backward()
    return [p.grad.clone() for p in network.parameters() if p.grad is not None]


def ordinary_loop(clients: list[Examples], intra_op: int, two_points: bool, steps: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(intra_op)
    start = ordinary_network()
    sent: list[list[torch.Tensor]] = []
    for data in clients:
        network, previous = copy.deepcopy(start), copy.deepcopy(start)
        u = [torch.zeros_like(p) for p in network.parameters()]
        where = data.labels.nonzero().squeeze(1)
        for _ in range(steps):
            chosen = where[torch.randint(len(where), (POSITIVES,))]
            any_ = torch.randint(len(data.labels), (OTHERS,))
            positives, others = (data.inputs[i].float() / 127.5 - 1 for i in (chosen, any_))
            new = gradient(network, positives, others, data.labels[any_])
            if two_points:
                old = gradient(previous, positives, others, data.labels[any_])
                u = [n + (1 - MOMENTUM) * (a - o) for n, a, o in zip(new, u, old, strict=True)]
                previous.load_state_dict(network.state_dict())
            else:
                u = [(1 - MOMENTUM) * a + MOMENTUM * n for a, n in zip(u, new, strict=True)]
            with torch.no_grad():
                for p, direction in zip(network.parameters(), u, strict=True):
                    p.sub_(direction, alpha=RATE)
        sent.append([*(p.detach() for p in network.parameters()), *u])
    for parts in zip(*sent, strict=True):
        torch.stack(parts).mean(0)
    torch.set_num_threads(before)


def main(quick: bool = False) -> None:
    describe_machine()
    rng = stream(0, 0, 0)
    clients = [
        Examples(
            torch.randint(0, 256, (500, *SHAPE), generator=rng, dtype=torch.uint8),
            (torch.arange(500) < 80).long(),
        )
        for _ in range(CLIENTS)
    ]
    problem = AUPRC(Scores(partial(cifar, SHAPE)), MARGIN, sigmoid=True, bounded=False, logarithm=False)
    steps = QUICK_STEPS if quick else STEPS
    plan = Plan(1, steps, POSITIVES, OTHERS)
    default = torch.get_num_threads()
    (batch,) = split_steps(sample(problem, clients[0], rng, 1, POSITIVES, OTHERS), 1)
    oracle, x = Oracle(problem, plain), problem.init(rng)
    once = operations(lambda: oracle.grad(x, batch))
    methods: dict[str, tuple[Algorithm, bool]] = {
        "FCSG-M": (FCSGM(RATE, MOMENTUM), False),
        "Acc-FCSG-M": (AccFCSGM(RATE, MOMENTUM), True),
    }
    results = {}
    for name, (algorithm, two_points) in methods.items():
        timings = interleave(
            {
                f"ordinary loop, {default} torch threads": (
                    partial(ordinary_loop, clients, default, two_points, steps),
                    steps,
                ),
                "ordinary loop, 1 torch thread": (partial(ordinary_loop, clients, 1, two_points, steps), steps),
                "threads engine": (partial(run, algorithm, Task(problem, clients), plan, engine="threads"), steps),
            },
            repetitions=2 if quick else 5,
        )
        report(f"One local step of 16 clients, {name}", timings, "ordinary loop, 1 torch thread", "step")
        # The first step of Acc-FCSG-M evaluates one point only.
        gradients = (2 * steps - 1) / steps if two_points else 1
        peak = report_peak("threads engine", int(CLIENTS * gradients * once), timings["threads engine"].median)
        results[name] = {"step": as_rows(timings, "ordinary loop, 1 torch thread"), "share_of_peak": peak}
    save("auprc", methods=results)


if __name__ == "__main__":
    main("--quick" in sys.argv)
