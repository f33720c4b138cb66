"""Profile one step of every workload: its operators, and their shares of the time.

    python -m benchmarks.operators

Everything runs in this thread, so that the profiler sees it. The stacked step of W1 has all 16 clients; the steps of
W2, W3 and W4 are those of one client.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.algorithms import FCSG, FCSGM, FedAvg
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.models.conv4 import Conv4
from fedcso.models.score_nets import cifar
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import AUPRC, MAML, Classification, InvariantLogistic
from fedcso.problems.scores import Scores

SHOWN = 8


def workloads() -> dict[str, tuple[Callable[[int], object], int]]:
    """Return functions by name that run a number of steps, with a number that makes the start of a run negligible."""
    logistic = InvariantLogistic()
    sources = logistic.clients(16)
    rng = stream(0, 0, 0)
    drawings = torch.randint(0, 256, (40, 20, 28, 28), generator=rng, dtype=torch.uint8)
    maml = MAML(partial(Conv4, 5), 5, 15, 0.4)
    shape = torch.Size((3, 32, 32))
    pictures = torch.randint(0, 256, (500, *shape), generator=rng, dtype=torch.uint8)
    rare = Examples(pictures, (torch.arange(500) < 80).long())
    auprc = AUPRC(Scores(partial(cifar, shape)), 0.5)
    digits = Examples(torch.randn(500, 1, 28, 28, generator=rng), torch.randint(10, (500,), generator=rng))
    cnn = Classification(SmallCNN)
    return {
        "W1 invariant logistic, 16 clients stacked, FCSG-M": (
            lambda q: run(FCSGM(), Task(logistic, sources), Plan(1, q, inner_batch=10), engine="stacked"),
            50,
        ),
        "W2 MAML, one client, FCSG": (
            lambda q: run(FCSG(0.1), Task(maml, [drawings]), Plan(1, q, 1, 1), engine="reference"),
            5,
        ),
        "W3 AUPRC, CIFAR network, one client, FCSG-M": (
            lambda q: run(FCSGM(0.1, 0.5), Task(auprc, [rare]), Plan(1, q, 8, 32), engine="reference"),
            20,
        ),
        "W4 small CNN, one client, FedAvg": (
            lambda q: run(FedAvg(), Task(cnn, [digits]), Plan(1, q, 32), engine="reference"),
            20,
        ),
    }


def table(work: Callable[[int], object], steps: int) -> dict[str, Any]:
    """Return the most expensive operators, and the number of operators per step."""
    work(steps)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work(steps)
    events = [event for event in profiler.key_averages() if event.key.startswith("aten::")]
    total = sum(event.self_cpu_time_total for event in events)
    ranked = sorted(events, key=lambda event: event.self_cpu_time_total, reverse=True)
    return {
        "operators_per_step": sum(event.count for event in events) / steps,
        "top": [
            {
                "operator": event.key.removeprefix("aten::"),
                "share": event.self_cpu_time_total / total,
                "calls_per_step": event.count / steps,
            }
            for event in ranked[:SHOWN]
        ],
    }


def main(quick: bool = False) -> None:
    describe_machine()
    torch.set_num_threads(1)
    found = {}
    for name, (work, steps) in workloads().items():
        found[name] = table(work, steps)
        print(f"\n{name}: {found[name]['operators_per_step']:.0f} operators per step")
        for line in found[name]["top"]:
            print(f"  {line['operator']:36} {100 * line['share']:5.1f} %  {line['calls_per_step']:7.1f} calls per step")
    save("operators", workloads=found)


if __name__ == "__main__":
    main("--quick" in sys.argv)
