"""Compare one local step of federated MAML with the ordinary loop.

    python -m benchmarks.maml

16 clients with one 5-way 1-shot task each, 15 query images per class, the strided conv4, FCSG. The ordinary loop adapts
with `create_graph=True` and differentiates the query loss, for one client after the other, once with torch's default
number of threads and once with one thread. Both average after the round's 10 steps.
"""

import sys
from functools import partial

import torch
import torch.nn.functional as F
from torch.func import functional_call

from benchmarks.results import save
from benchmarks.timing import as_rows, describe_machine, interleave, operations, report, report_peak
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
STEPS, QUICK_STEPS = 10, 3


def ordinary_loop(clients: list[torch.Tensor], intra_op: int, steps: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(intra_op)
    network = Conv4(WAYS)
    support_labels, query_labels = torch.arange(WAYS), torch.arange(WAYS).repeat_interleave(QUERIES)
    start = {name: p.detach() for name, p in network.named_parameters()}
    models = [start] * CLIENTS
    for _ in range(steps):
        for n, data in enumerate(clients):
            chosen = torch.randperm(len(data))[:WAYS]
            images = data[chosen][:, torch.randperm(data.shape[1])].float().unsqueeze(2) / 255
            parameters = {name: p.detach().requires_grad_() for name, p in models[n].items()}
            loss = F.cross_entropy(functional_call(network, parameters, images[:, QUERIES]), support_labels)
            slopes = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
            adapted = {name: p - RATE * g for (name, p), g in zip(parameters.items(), slopes, strict=True)}
            query = functional_call(network, adapted, images[:, :QUERIES].flatten(0, 1))
            gradients = torch.autograd.grad(F.cross_entropy(query, query_labels), list(parameters.values()))
            models[n] = {name: p - 0.1 * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}
    for name in start:
        torch.stack([model[name] for model in models]).mean(0)
    torch.set_num_threads(before)


def main(quick: bool = False) -> None:
    describe_machine()
    rng = stream(0, 0, 0)
    clients = [torch.randint(0, 256, (40, 20, 28, 28), generator=rng, dtype=torch.uint8) for _ in range(CLIENTS)]
    problem = MAML(partial(Conv4, WAYS), WAYS, QUERIES, RATE)
    steps = QUICK_STEPS if quick else STEPS
    plan = Plan(rounds=1, local_steps=steps, outer_batch=1, inner_batch=1)
    default = torch.get_num_threads()
    timings = interleave(
        {
            f"ordinary loop, {default} torch threads": (lambda: ordinary_loop(clients, default, steps), steps),
            "ordinary loop, 1 torch thread": (lambda: ordinary_loop(clients, 1, steps), steps),
            "threads engine": (lambda: run(FCSG(0.1), Task(problem, clients), plan, engine="threads"), steps),
        },
        repetitions=2 if quick else 5,
    )
    report("One local step of 16 clients", timings, "ordinary loop, 1 torch thread", "step")
    (batch,) = split_steps(sample(problem, clients[0], rng, 1, 1, 1), 1)
    x = problem.init(rng)
    per_task = operations(lambda: problem.closed_form(x, batch.xi, batch.eta))
    peak = report_peak("threads engine", CLIENTS * per_task, timings["threads engine"].median)
    save("maml", step=as_rows(timings, "ordinary loop, 1 torch thread"), share_of_peak=peak)


if __name__ == "__main__":
    main("--quick" in sys.argv)
