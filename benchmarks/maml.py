"""Compare one local step of federated MAML with the ordinary loop.

    python -m benchmarks.maml

16 clients with one or five 5-way 1-shot tasks each, 15 query images per class, the strided conv4, FCSG. The ordinary
loop adapts with `create_graph=True` and differentiates the mean query loss of a client's tasks, for one client after
the other, once with torch's default number of threads and once with one thread. Both average after the round's 10
steps. For one client's step, the bytes that are kept for differentiation are counted too: in the ordinary loop they
grow with the number of tasks.
"""

import sys
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.func import functional_call

from benchmarks.results import save
from benchmarks.timing import as_rows, describe_machine, interleave, kept_bytes, operations, report, report_peak
from fedcso.algorithms import FCSG
from fedcso.core.estimator import sample
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.engines import run
from fedcso.models.conv4 import Conv4
from fedcso.problems import MAML

CLIENTS, WAYS, QUERIES, RATE = 16, 5, 15, 0.4
ONE_THREAD = "ordinary loop, 1 torch thread"
STEPS, QUICK_STEPS = 10, 3
TASKS = 5
"""The tasks of a client in a step of the second case."""

Weights = dict[str, torch.Tensor]


def ordinary_step(network: Conv4, weights: Weights, data: torch.Tensor, tasks: int) -> Weights:
    support_labels, query_labels = torch.arange(WAYS), torch.arange(WAYS).repeat_interleave(QUERIES)
    parameters = {name: p.detach().requires_grad_() for name, p in weights.items()}
    losses = []
    for _ in range(tasks):
        chosen = torch.randperm(len(data))[:WAYS]
        images = data[chosen][:, torch.randperm(data.shape[1])].float().unsqueeze(2) / 255
        loss = F.cross_entropy(functional_call(network, parameters, images[:, QUERIES]), support_labels)
        slopes = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        adapted = {name: p - RATE * g for (name, p), g in zip(parameters.items(), slopes, strict=True)}
        query = functional_call(network, adapted, images[:, :QUERIES].flatten(0, 1))
        losses.append(F.cross_entropy(query, query_labels))
    gradients = torch.autograd.grad(torch.stack(losses).mean(), list(parameters.values()))
    return {name: p.detach() - 0.1 * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}


def ordinary_loop(clients: list[torch.Tensor], intra_op: int, steps: int, tasks: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(intra_op)
    network = Conv4(WAYS)
    start = {name: p.detach() for name, p in network.named_parameters()}
    models = [start] * CLIENTS
    for _ in range(steps):
        models = [ordinary_step(network, model, data, tasks) for model, data in zip(models, clients, strict=True)]
    for name in start:
        torch.stack([model[name] for model in models]).mean(0)
    torch.set_num_threads(before)


def measure(problem: MAML, clients: list[torch.Tensor], tasks: int, quick: bool) -> dict[str, Any]:
    steps = QUICK_STEPS if quick else STEPS
    plan = Plan(rounds=1, local_steps=steps, outer_batch=tasks, inner_batch=1)
    default = torch.get_num_threads()
    timings = interleave(
        {
            f"ordinary loop, {default} torch threads": (lambda: ordinary_loop(clients, default, steps, tasks), steps),
            ONE_THREAD: (lambda: ordinary_loop(clients, 1, steps, tasks), steps),
            "threads engine": (lambda: run(FCSG(0.1), Task(problem, clients), plan, engine="threads"), steps),
        },
        repetitions=2 if quick else 5,
    )
    report(f"One local step of 16 clients, tasks of each: {tasks}", timings, ONE_THREAD, "step")
    rng = stream(0, 0, 0)
    (batch,) = split_steps(sample(problem, clients[0], rng, 1, tasks, 1), 1)
    x = problem.init(rng)
    work = operations(lambda: problem.closed_form(x, batch.xi, batch.eta))
    kept = {
        "ordinary loop": kept_bytes(lambda: ordinary_step(Conv4(WAYS), x, clients[0], tasks)),
        "threads engine": kept_bytes(lambda: problem.closed_form(x, batch.xi, batch.eta)),
    }
    print("  kept for differentiation: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in kept.items()))
    peak = report_peak("threads engine", CLIENTS * work, timings["threads engine"].median)
    return {"step": as_rows(timings, ONE_THREAD), "share_of_peak": peak, "kept": kept}


def main(quick: bool = False) -> None:
    describe_machine()
    rng = stream(0, 0, 0)
    clients = [torch.randint(0, 256, (40, 20, 28, 28), generator=rng, dtype=torch.uint8) for _ in range(CLIENTS)]
    problem = MAML(partial(Conv4, WAYS), WAYS, QUERIES, RATE)
    one, several = (measure(problem, clients, tasks, quick) for tasks in (1, TASKS))
    save("maml", **one, several_tasks={"tasks": TASKS, **several})


if __name__ == "__main__":
    main("--quick" in sys.argv)
